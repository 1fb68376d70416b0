/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_calls.h - the threads of a profiled job: the calls of each as operations of a plan.
 *
 * Every thread that pushes or waits becomes a thread of the job. The CPU time between two of its
 * operations is the measured one; a push takes effect when its work could begin, so the latency of a
 * launch is CPU time in front of it. Work keeps its measured time, with the device's own gap in front of it; the time
 * of a collective of several ranks is the least over the ranks: what is longer is waiting. Streams wait for
 * events where evidence.h found an edge, threads for each other where handoffs.h found an order.
 *
 * Work without a launch follows the work before it on its stream. `unexplained:` of the plan says how much of the
 * idle time has no cause; with `opaque` that time becomes work of that name instead.
 */
#ifndef SWSIM_HOST_CALLS_H
#define SWSIM_HOST_CALLS_H

#include "evidence.h"
#include "trace/job/job.h"

/* Which steps are written as one that is repeated (fold.h): those that do the same; LIKE: also those in which streams
   wait otherwise. */
enum host_calls_repeat { REPEAT_SAME, REPEAT_LIKE, REPEAT_NEVER };

struct host_calls_options {
    const char *name; /* of the plan */
    int64_t launch_queue;
    bool opaque;
    int repeat; /* enum host_calls_repeat */
    const char *without; /* of a job with a device: the host takes no time in the call, operator, annotation or line of
                            Python of this name; NULL: all time is kept */
};

/* Adds the threads to the job. `evidence`: one a rank. STATUS_INPUT where the
   collectives of the ranks do not match: the ranks do not belong together. */
enum status host_calls(struct job *job, const struct evidence *evidence,
                       const struct host_calls_options *options, struct diag *diag);

#endif
