/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_tasks.h - the work of a measured run, task by task, beside the same of its prediction.
 */
#ifndef SWSIM_COMPARE_TASKS_H
#define SWSIM_COMPARE_TASKS_H

#include "compare.h"
#include "trace/trace.h"

/* Fills the tasks of out->streams: those of the account of `measured`, whose spans are sorted and whole, and of one
   prediction of `plan`, where they have names in common; names live in `arena`. Memory of the prediction is in the trace's arena. */
enum status compare_tasks(struct trace *measured, const struct plan *plan,
                          const struct program_options *options, uint64_t seed, struct arena *arena,
                          struct comparison *out, struct diag *diag);

#endif
