/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work_names.h - what the work of a run is: copy, collective, message or kernel, by its name.
 *
 * Spans have names only. The plan that a run keeps says what each name is; where it has no such name, as in runs
 * that a profiler recorded, the names of CUDA's own copies and of NCCL's kernels do.
 */
#ifndef SWSIM_WORK_NAMES_H
#define SWSIM_WORK_NAMES_H

#include "base/arena.h"
#include "base/diag.h"
#include "plan/plan.h"
#include "base/status.h"
#include "trace.h"

enum work_class { WORK_CLASS_KERNEL, WORK_CLASS_COPY, WORK_CLASS_COLLECTIVE, WORK_CLASS_MESSAGE };

struct named_work {
    const char *name; /* NULL: an empty place */
    enum work_class class;
    enum direction direction; /* COPY */
    bool pageable;
    enum collective_kind collective; /* COLLECTIVE */
    const char *comm;                /* COLLECTIVE, MESSAGE; NULL: not known */
    int64_t bytes;                   /* 0: not known */
};

struct work_names {
    struct named_work *places; /* hash table */
    size_t cap;                /* a power of two; 0: no plan */
};

/* Read the plan of the run, if it has one, with all memory from `arena`. STATUS_INPUT where its text is no plan. */
enum status work_names_read(const struct run_info *info, struct arena *arena,
                            struct work_names *out, struct diag *diag);

/* The work of this name, without its iteration "(3)". */
struct named_work work_names_find(const struct work_names *names, const char *name);

#endif
