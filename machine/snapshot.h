/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot.h - the host waits for a stream, a device or an event: for the work that it has at the call.
 *
 *     thread a:  launch X | sync device: call ------------------- end | ...
 *     thread b:                               launch Y on another stream
 *     streams:   X runs .......................... X ends         Y runs ....
 *
 * Work that other threads push behind the call does not count (CUDA: cudaDeviceSynchronize and
 * cudaStreamSynchronize return when all preceding work is done). Where no other thread pushes to what is
 * waited for, the wait is over when it is empty, and is one step. Elsewhere (op->snapshot) it is two: at the call the thread
 * notes a position for each stream, and it goes on when all have popped theirs. An event is the same: where other
 * threads of host programs record it anew, a wait is for the record that is the last at the call (CUDA:
 * cudaEventSynchronize).
 *
 * Knowledge: of a stream that is empty, or an event that is reached, at the call the thread learns then, of another
 * one when the position is popped; until the wait is over nothing looks at what the thread knows.
 */
#ifndef SWSIM_SNAPSHOT_H
#define SWSIM_SNAPSHOT_H

#include "machine_internal.h"

/* Find the waits with a snapshot (op->snapshot) and what each thread may have to note. */
enum status snapshot_build(struct program *program, struct diag *diag);

/* True if it is such a wait, for something. (A kernel that has been loaded needs none.) */
static inline bool snapshot_is_needed(const struct program *p, const int32_t *c, int thread,
                                      const struct op *op)
{
    return op->snapshot &&
           (op->sync != SYNC_LOAD ||
            !c[p->at.kernels + program_sync_rank(p, thread, op) * p->kernel_count + op->object]);
}
/* True if the thread, which is at such a wait, has called. */
bool snapshot_is_taken(const struct program *program, const int32_t *cells, int thread);
/* A stream that it still waits for; -1: none. */
int snapshot_awaits(const struct program *program, const int32_t *cells, int thread);

void snapshot_take(struct work_state *work, int thread, const struct op *op, int64_t iteration);
void snapshot_drop(struct work_state *work, int thread);
/* The head of `stream` was popped. */
void snapshot_reach(struct work_state *work, int stream);

#endif
