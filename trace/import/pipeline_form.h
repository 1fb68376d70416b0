/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline_form.h - a recorded job as a pipeline: its annotations become tasks.
 *
 * The pieces of the sections (pieces.h) are the tasks, in the order in which the stepping thread came to them; kernels
 * that other threads launch belong to the section that is open there. A task has the name of its section; more
 * pieces of one have that name and what they are: a collective, `wait` where the thread waits, `host` for
 * CPU time alone, else a number. Times are the means over the steps, jitter their factors.
 *
 * Ranks with the same annotations are one pipeline: a piece is long where it is long in the mean of their steps. A task
 * of a rank has its own times where they differ by more than 1% of those of another. Work of ranks together is a
 * collective; its time is the least over the ranks, because what is longer is waiting.
 *
 * A task's stage is told by the number that ends its annotation ("forward 12" beside "copy 14"), else by the names of
 * TorchRec's pipeline, else it is 0; stages that the trace contradicts are not taken. Dependences are those that the
 * trace shows, and that a stage begins after the one before.
 */
#ifndef SWSIM_PIPELINE_FORM_H
#define SWSIM_PIPELINE_FORM_H

#include "evidence.h"
#include "trace/job/job.h"

struct pipeline_form_options {
    const char *name; /* of the plan */
    int detail;  /* the share of a step above which parts are tasks of their own, in millionths */
    bool opaque; /* idle time without a cause is part of the work behind it */
};

/* (*out_tasks)[rank][work]: the task of the plan that a work is part of, -1: none; its memory is in `kept`.
   The caller ends *out with plan_fini; both are set on success only. STATUS_INPUT for ranks that are not alike, and where nothing
   is annotated. */
enum status pipeline_form(const struct job *job, const struct evidence *evidence,
                          const struct pipeline_form_options *options, struct arena *kept,
                          struct plan *out, int ***out_tasks, struct diag *diag);

#endif
