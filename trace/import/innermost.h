/* SPDX-License-Identifier: Apache-2.0 */
/*
 * innermost.h - the place of a thread in its program: the innermost annotation, or the call that blocks it.
 *
 * The annotations of the program and PyTorch's own (enumerate(DataLoader)) are nested; the steps of the profiler are
 * no places. Calls that wait for the device count as the innermost.
 */
#ifndef SWSIM_INNERMOST_H
#define SWSIM_INNERMOST_H

#include "trace/job/job.h"

struct innermost_stretch {
    int name; /* job->names */
    int64_t start_ns, end_ns;
};

struct innermost {
    struct innermost_stretch *stretches; /* by thread, then by time; without overlap */
    int *first;                          /* per thread, and one more at the end */
};

/* Of one rank, after job_finish; ended by innermost_fini, also after a failure. False: out of memory. */
bool innermost_find(const struct job *job, const struct job_rank *rank, struct innermost *out);
void innermost_fini(struct innermost *innermost);

/* The place where the thread is for most of this time, for at least a half of it; -1: none. */
int innermost_name(const struct innermost *innermost, int thread, int64_t start_ns, int64_t end_ns);

#endif
