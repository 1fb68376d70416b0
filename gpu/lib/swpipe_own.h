/* SPDX-License-Identifier: Apache-2.0 */
/*
 * swpipe_own.h - what the program has made itself and a pipeline shall use; part of swpipe.h.
 *
 * Streams, communicators and memory stay the program's: the library waits for its own work in them before it lets go,
 * and destroys none, but for a communicator in an abort. They are used from swpipe_open to swpipe_close, and again in
 * each run; meanwhile the program may push work of its own to a stream, which comes in between the plan's, and must
 * call nothing on a communicator outside the functions of its tasks. The proof knows nothing of such work.
 *
 * On the host device streams and communicators have no handles: it refuses both, SWPIPE_INPUT. Its allocator is used
 * where all ranks are in the process, for else others must reach the memory: in a group it is refused, too.
 */
#ifndef SWPIPE_OWN_H
#define SWPIPE_OWN_H

#include <stddef.h>

#include "swpipe_status.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined __GNUC__
#pragma GCC visibility push(default)
#endif

struct swpipe;
struct swpipe_context;

/* A stream of the plan, and the cudaStream_t that it is. It is on the rank's GPU, has cudaStreamNonBlocking, and stands
   for one stream of the plan; else SWPIPE_INPUT. Serial runs have a stream of the library. */
struct swpipe_own_stream {
    const char *name;
    void *handle;
};

/* A communicator of the plan, and the ncclComm_t that it is: of as many members, with this rank in its place, on the
   rank's GPU, of the same libnccl; else SWPIPE_INPUT. All its members give one, or none does. Opening a pipeline sends
   a number between each pair. When a run fails, is stopped or times out, only ncclCommAbort ends its kernels: then
   the handle is gone, must not be destroyed again, and the pipeline cannot be filled again. Of NCCL's configuration the
   library sets `blocking` alone for those that it makes; one that needs another, a CTA policy for instance, is made by
   the program. */
struct swpipe_own_comm {
    const char *name;
    void *handle;
};

/* Device memory: of the plan's buffers, swpipe_alloc, and what the library needs besides. Called on the calling thread
   and on those of the library, several at a time; aligned to 256 bytes, else SWPIPE_SYSTEM; NULL: there is no more.
   Without `release` nothing is given back; without `alloc` there must be no release. Memory in which an aborted run may still work is
   not released. */
struct swpipe_allocator {
    void *(*alloc)(void *arg, int rank, size_t bytes);
    void (*release)(void *arg, int rank, void *address, size_t bytes);
    void *arg;
};

/* Member of struct swpipe_config; zero: the library makes everything. Strings and arrays are needed during swpipe_open only. */
struct swpipe_own {
    const struct swpipe_own_stream *streams;
    size_t stream_count;
    const struct swpipe_own_comm *comms;
    size_t comm_count;
    struct swpipe_allocator allocator;
};

/* Returns 1 if a failure has aborted the program's communicator of this name, so that its handle is gone. Else it returns
   0, and the program destroys the communicator once the pipeline is closed. */
int swpipe_comm_is_lost(const struct swpipe *pipe, const char *comm);

/* ---- events ---------------------------------------------------------------------------------- */

/* An event of a rank, by which work of different tasks and iterations, or a thread of the program, can be made to wait
   for work of a task, besides what the plan says. The proof knows nothing of it: one that is waited for before
   its record is pushed stands for no work, and one that is recorded behind its own wait hangs.

   With a cudaEvent_t of the program's own the calls of CUDA do the same on swpipe_stream. */
struct swpipe_event;

/* Make an event of a rank of this process; swpipe_error has the reason of a failure. USAGE: the rank is
   not in this process, or the pipeline did not open. */
enum swpipe_status swpipe_event_open(struct swpipe *pipe, int rank, struct swpipe_event **out);
/* Free the event, before the pipeline is closed and not while it is filled. NULL is allowed. */
void swpipe_event_close(struct swpipe_event *event);
/* In a function: the event stands for all that has been pushed to the task's stream so far. Returns 0, or -1: the task
   fails. */
int swpipe_event_record(struct swpipe_context *context, struct swpipe_event *event);
/* In a function: what is pushed to the task's stream from now on waits for the work of the event's last record, made
   before this call. 0, or -1: the task fails. */
int swpipe_event_wait(struct swpipe_context *context, struct swpipe_event *event);
/* Returns 1 if the work of the event's last record is done, 0 if it is not, -1 if the run has failed. Any thread may call
   it while the pipeline is filled. */
int swpipe_event_done(struct swpipe_event *event);
/* Wait until the work of the event's last record is done, for at most `limit_ns` (-1: no limit); TIMEOUT and FAILED
   are among the answers. */
enum swpipe_status swpipe_event_sync(struct swpipe_event *event, long long limit_ns);

#if defined __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
