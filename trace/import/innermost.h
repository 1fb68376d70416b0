/* SPDX-License-Identifier: Apache-2.0 */
/*
 * innermost.h - the place of a thread in its program: the innermost annotation, or the call that blocks it; of a trace with a
 * device also the operator, the line of Python and the long call of the runtime.
 *
 * The annotations of the program and PyTorch's own (enumerate(DataLoader)) are nested; the steps of the profiler are
 * no places. Calls that wait for the device count as the innermost.
 */
#ifndef SWSIM_INNERMOST_H
#define SWSIM_INNERMOST_H

#include "trace/job/job.h"

struct innermost_stretch {
    int name;       /* job->names */
    int within;     /* of a call: the annotation or the operator around it; -1 */
    int line;       /* the line of Python around it; -1 */
    int annotation; /* the innermost that is one, or is around it; -1 */
    int64_t start_ns, end_ns;
};

struct innermost {
    struct innermost_stretch *stretches; /* by thread, then by time; without overlap */
    int *first;                          /* per thread, and one more at the end */
};

/* Of one rank, after job_finish; ended by innermost_fini, also after a failure. False: out of memory. */
bool innermost_find(const struct job *job, const struct job_rank *rank, struct innermost *out);
void innermost_fini(struct innermost *innermost);

/* The place where the thread is for most of this time, for at least a half of it, or else the annotation; false: none. */
bool innermost_place(const struct innermost *innermost, int thread, int64_t start_ns,
                     int64_t end_ns, struct innermost_stretch *out);

/* The first stretch of a thread that ends after this time: innermost->stretches. */
int innermost_after(const struct innermost *innermost, int thread, int64_t time_ns);

/* "hipFree in aten::empty, train.py(41): step", cut off at `cap`. */
void innermost_words(const struct job *job, const struct innermost_stretch *place, char *out,
                     size_t cap);

/*
 * What the host did while the device had no work because none was launched: the places of the threads that launched the
 * next work.
 */
struct host_share {
    struct innermost_stretch place; /* without times; name -1: no place is told */
    int64_t ns;
};
struct host_shares {
    struct host_share *items; /* the greatest first */
    size_t count, cap;
    int64_t all_ns;
};
struct evidence;
/* Ended by host_shares_fini. False: out of memory. */
bool host_shares_find(const struct job *job, const struct job_rank *rank,
                      const struct evidence *evidence, struct host_shares *out);
void host_shares_fini(struct host_shares *shares);

#endif
