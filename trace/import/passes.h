/* SPDX-License-Identifier: Apache-2.0 */
/*
 * passes.h - when a rank did the passes of its microbatches, by annotations that name them (plan/schedules/pass_names.h).
 *
 * A pass lasts from the first to the last kernel launched while its annotation was open, on whatever thread: a
 * backward pass is launched by autograd's thread, which has no annotation. Kernels of messages and collectives
 * do not count, for they begin by waiting; copies do where there is no kernel. Where a name has no launch, as in
 * a trace without calls, the profiler's annotation of the device is the pass, as far as its stream computes in it.
 * In a trace without a device the pass is the annotation itself.
 */
#ifndef SWSIM_PASSES_H
#define SWSIM_PASSES_H

#include "trace/job/job.h"

struct pass_found {
    int name; /* job->names */
    int64_t start_ns, end_ns;
};

struct passes {
    struct pass_found *items; /* by start */
    size_t count, cap;
};

/* Of a rank after job_finish; ended by passes_fini, also after a failure. False: no memory. */
bool passes_find(const struct job *job, const struct job_rank *rank, struct passes *out);
void passes_fini(struct passes *passes);

#endif
