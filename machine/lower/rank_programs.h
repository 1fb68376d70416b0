/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_programs.h - rank programs (PyTorch's actions) as host programs: the calls and device work of each action.
 *
 * Every rank gets one thread "main", which issues its actions in their order and then waits for the
 * device. This is the whole meaning of an action:
 *
 *     F I B W        kernel "0F3" on stream compute; waits for the message it needs
 *     SEND, RECV     point-to-point group on the stream and communicator that `p2p: {fifo}` names;
 *                    a send waits for the pass whose result it carries, a receive for nothing
 *     OVERLAP_F_B    one kernel: it waits for what both parts need, both have results at its end
 *     UNSHARD        all-gather on stream fsdp; the next pass of the stage waits for it
 *     REDUCE_GRAD    reduce-scatter on stream fsdp; waits for the last backward pass of the stage
 *     RESHARD        host work; frees what UNSHARD gathered
 *
 * "Waits" is a stream waiting for an event recorded behind the other operation, provided the
 * program names that one first; order that a program does not state is not invented, so that its
 * absence shows as an order race on a buffer "act.STAGE.MICROBATCH" or "grad.STAGE.MICROBATCH". The
 * message for microbatch 3 arriving at stage 2 has the tag "F3@2" or "B3@2" on both sides. Stages
 * that live on one rank exchange no messages.
 */
#ifndef SWSIM_RANK_PROGRAMS_H
#define SWSIM_RANK_PROGRAMS_H

#include "plan/plan.h"
#include "plan/schedules/complete_lists.h"

/* Rank programs with more actions than this have buffers only on request: a state that knows of so many accesses is
   too big for a search. */
enum { RANK_PROGRAMS_MAX_TRACKED = 2048 };

/* True if so many copies of them, messages not counted, are too many to lower. */
bool rank_programs_are_big(const struct plan *plan, int copies);

/* Turn a plan of FORM_PROGRAMS into an equivalent one of FORM_THREADS, with memory of its own, and with buffers
   whatever its size if `all_buffers`. On success end it with plan_fini; on failure *out is untouched. */
enum status rank_programs_lower(const struct plan *plan, bool all_buffers, struct plan *out,
                                struct diag *diag);

/* The same, thread by thread, so that the operations of all are never there at once. `out` has everything but them;
   threads know their number. Of each dimension of groups but pp at most `few` ranks are lowered, if that is not 0. It ends after rank_programs_close; on failure it is untouched. What is built asks the limit of
   `arena`. `straight`: NULL, or it becomes the graph of the programs, in `arena`, if they have one (machine/straight.h);
   then no thread has operations, and else it is NULL. */
struct rank_programs;
struct straight;
enum status rank_programs_open(const struct plan *plan, bool all_buffers, int few,
                               struct arena *arena, struct plan *out,
                               struct rank_programs **programs, struct straight **straight,
                               struct diag *diag);
/* The messages of all threads. */
size_t rank_programs_parts(const struct rank_programs *programs);
/* Hands the operations of a thread on in their order; threads come in order, each once. An operation and what it points
   to is gone after the call. */
typedef enum status rank_op_take(void *arg, struct host_thread *thread, const struct host_op *op);
/* Takes a name that no other one equals, and returns its number; -1: out of memory. Operations and messages that have it
   are `numbered`. */
typedef int rank_name_take(void *arg, const char *text);
enum status rank_programs_thread(struct rank_programs *programs, int thread, rank_op_take *take,
                                 rank_name_take *name, void *arg);
/* The lists that it is made of: *out is the caller's, and no more threads are asked for. */
void rank_programs_take_lists(struct rank_programs *programs, struct complete_lists *out);
void rank_programs_close(struct rank_programs *programs);

#endif
