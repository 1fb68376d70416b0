/* SPDX-License-Identifier: Apache-2.0 */
/*
 * swpipe_policy.h - the program's own scheduling policy, under data-flow; part of swpipe.h.
 *
 * Under data-flow a task is ready when its dependences are submitted, and its thread takes it as soon as it is idle. With a
 * policy the program chooses which of the ready tasks begins next:
 *
 *     static int youngest(void *arg, const struct swpipe_choice *choice)
 *     {
 *         return choice->ready_count - 1;
 *     }
 *     struct swpipe_config config = {..., .driver = SWPIPE_DATAFLOW, .policy = {youngest}};
 *
 * A thread group of the plan does its tasks in the order in which they get ready; a policy chooses among the groups
 * that are idle, of each its oldest task. So a plan that leaves a policy all freedom gives each task a group of its own.
 *
 * The proof. Every order that a policy can make is one in which threads are slower than they could be, and all of these
 * are explored: what `swsim verify --driver=dataflow` proves of a plan, no policy breaks. Deadlock freedom is proved of policies
 * that begin some task whenever they are asked. One that waits instead (SWPIPE_WAIT) can hold back a task that
 * another rank waits for: no proof covers that, and the limits of waiting end it.
 */
#ifndef SWPIPE_POLICY_H
#define SWPIPE_POLICY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A task that can begin now; names are the pipeline's. */
struct swpipe_ready {
    const char *task, *stream, *thread_group; /* as in the plan */
    int64_t iteration;
};

struct swpipe_choice {
    int rank;
    const struct swpipe_ready
        *ready;      /* [ready_count], the older iteration first; valid during the call */
    int ready_count; /* 1 or more */
    int running;     /* tasks of this rank that have begun and are not submitted yet */
    int in_flight,
        max_in_flight; /* iterations of this rank that have a context, and the most there can be */
    int64_t oldest;    /* the oldest iteration in flight */
    int may_wait; /* 1: SWPIPE_WAIT is allowed, because a task is running, or the oldest iteration is all submitted */
};

enum { SWPIPE_WAIT = -1 };

/* Returns the number in `ready` of the task that begins, or SWPIPE_WAIT: none until something has changed. Anything else, and a
   SWPIPE_WAIT that is not allowed, fails the pipeline. Called on threads of the library, never twice at a time for one rank, for
   ranks of one process at the same time; it must return, and call nothing of the library. */
typedef int swpipe_choose(void *arg, const struct swpipe_choice *choice);

/* Member of struct swpipe_config; zero: no policy. SWPIPE_USAGE with the clock driver, whose order is the plan's;
   SWPIPE_INPUT for a plan with one thread group, which leaves nothing to choose. Serial runs do not ask. */
struct swpipe_policy {
    swpipe_choose *choose;
    void *arg;
};

#ifdef __cplusplus
}
#endif

#endif
