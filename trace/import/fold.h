/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold.h - the steps of a recorded rank as one step that is repeated, with the measured times by position.
 *
 * The threads of a rank are given call by call, with the operation at which each step begins. Steps do the same where
 * every thread has the same pushes, waits for the device and flags, in one order; the longest run of such steps, if it is
 * more than half of all, becomes a repeat; what is in front of it and behind it stays. A step waits for the same event again: it is recorded once in each
 * iteration, and a wait for the iteration before stands in front of it. Of threads that wait for each other's events, flags
 * must tell the iterations apart.
 *
 * Operations access the same memory in each step, or memory that its step alone uses, in the same places
 * (trace/job/repeated.h).
 *
 * Waits of streams are evidence, not calls, so they may differ where the calls do not. With `typical` the step has those
 * that most steps have, one a kind where their places differ a little; else such steps are not the same. Waits
 * that were changed so are `unrecorded` in the plan. Bytes are the most of any step.
 */
#ifndef SWSIM_FOLD_H
#define SWSIM_FOLD_H

#include "trace/job/job.h"

struct fold_thread {
    struct host_thread *thread;
    size_t *
        marks; /* per step, and one more for the end of the last: the first operation of `thread` */
};

/* Folds the steps of one rank where most do the same; else nothing changes. False without memory. */
bool fold_steps(struct job *job, struct fold_thread *threads, size_t count, size_t steps,
                bool typical);

#endif
