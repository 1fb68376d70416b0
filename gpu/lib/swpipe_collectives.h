/* SPDX-License-Identifier: Apache-2.0 */
/*
 * swpipe_collectives.h - collectives and messages between ranks, called by a task's function on memory of its
 * own; part of swpipe.h.
 *
 *     static int exchange(struct swpipe_context *context, void *arg)
 *     {
 *         struct ids *ids = arg;
 *         return swpipe_all_to_all_v(context, NULL, ids->mine, ids->give, ids->theirs, ids->get, SWPIPE_I64);
 *     }
 *
 * They are pushed to the task's stream, NCCL's calls on cuda, and begin when what was pushed before is
 * done; the memory must stay valid until they have finished, which is so at the latest when the values of
 * the iteration are freed (swpipe_set). It is device memory: addresses of the GPU on cuda, of this process on the host device. Counts are known
 * when the call is made: swpipe_sync first, where they come from the device.
 *
 * `comm` is a communicator that the plan gives the task; NULL: its only one. A communicator that the task does not
 * have in the plan is refused. Members have their places in it by ascending rank; `root` and `peer` are such places.
 *
 * The proof of the plan takes all calls of a function for the one collective or message that the plan describes for
 * its task: it orders the task among the others of its communicator, on all ranks. It does not see into the
 * function: that all members make the same calls there, in the same order and with counts that fit, at least one of
 * them, and that a receive has its send in the same task, is the function's part. swpipe_open names the tasks
 * for which that is so to the message function.
 *
 * Sums. On the host device in the order of the places: f32 in f32; f16 and bf16 in f32, rounded once; i32 and i64 wrap
 * around: the same bits on every rank and in every run. On cuda NCCL adds, in an order and precision of its own.
 *
 * Memory. What is sent and what is received lie apart, or in place, as NCCL has it: all_reduce and broadcast with recv =
 * send, all_gather with send at this rank's block of recv, reduce_scatter with recv at this rank's block of send. NULL is
 * allowed where there are no bytes.
 *
 * A call is one operation of its stream, and what is pushed behind it waits for it: ranks that all send first and then
 * receive wait for each other. An exchange is swpipe_all_to_all_v.
 *
 * Every function returns 0, or -1: the task fails, with a reason. Members that call different things, or with
 * different counts, 0 too, are told on the host device, and so are collectives of different iterations that meet, since one
 * member has left a call out; NCCL waits for ever, until a time limit ends the run. Functions that
 * are device_only cannot call them: a graph keeps the addresses and counts of the call that was captured, and neither
 * need be those of the next iteration. The call is refused, and the task fails.
 */
#ifndef SWPIPE_COLLECTIVES_H
#define SWPIPE_COLLECTIVES_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined __GNUC__
#pragma GCC visibility push(default)
#endif

struct swpipe_context;

enum swpipe_number { SWPIPE_F32, SWPIPE_F16, SWPIPE_BF16, SWPIPE_I32, SWPIPE_I64 };

/* How many members the communicator has, and this rank's place among them; -1: the task has no such communicator. */
int swpipe_comm_size(struct swpipe_context *context, const char *comm);
int swpipe_comm_place(struct swpipe_context *context, const char *comm);

/* On cuda the communicator itself, an ncclComm_t, for calls of the user's own on swpipe_stream, under the same rules: no
   other thread may use it meanwhile, and the plan makes sure of that where the task is globally ordered. It is the
   library's to destroy. NULL on the host device, or where the task has no such communicator. */
void *swpipe_comm_handle(struct swpipe_context *context, const char *comm);

/* Each member gives `count` numbers; `recv` gets their sums, and may be `send`. */
int swpipe_all_reduce(struct swpipe_context *context, const char *comm, const void *send,
                      void *recv, size_t count, enum swpipe_number number);
/* Each member gives `count` numbers; `recv` gets those of all members, by place. */
int swpipe_all_gather(struct swpipe_context *context, const char *comm, const void *send,
                      void *recv, size_t count, enum swpipe_number number);
/* Each member gives `count` numbers for every member; `recv` gets the sums of those for this rank. */
int swpipe_reduce_scatter(struct swpipe_context *context, const char *comm, const void *send,
                          void *recv, size_t count, enum swpipe_number number);
/* `recv` of every member gets the root's `count` numbers; `send` is read at the root only. */
int swpipe_broadcast(struct swpipe_context *context, const char *comm, const void *send, void *recv,
                     size_t count, enum swpipe_number number, int root);
/* Each member gives `count` numbers for every member; `recv` gets those for this rank, by place. */
int swpipe_all_to_all(struct swpipe_context *context, const char *comm, const void *send,
                      void *recv, size_t count, enum swpipe_number number);
/* The same with a count for each place: blocks follow each other without gaps. A send count must be the
   receiver's count for this place. */
int swpipe_all_to_all_v(struct swpipe_context *context, const char *comm, const void *send,
                        const size_t *send_counts, void *recv, const size_t *recv_counts,
                        enum swpipe_number number);
/* The n-th send to a peer goes to its n-th receive from here. */
int swpipe_send(struct swpipe_context *context, const char *comm, const void *data, size_t count,
                enum swpipe_number number, int peer);
int swpipe_receive(struct swpipe_context *context, const char *comm, void *data, size_t count,
                   enum swpipe_number number, int peer);

/* Wait until all that was pushed to the task's stream is done, at most the time limit of waits. */
int swpipe_sync(struct swpipe_context *context);

#if defined __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
