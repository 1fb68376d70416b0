/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile_tasks.h - what the tasks of an imported pipeline took.
 *
 * An import of the pipeline form stores the measured run with its plan, whose tasks have the mean times of the steps and
 * their distributions, without what is waiting (trace/import/pieces.h). These are the parts of the profile; a task is found by
 * its name.
 */
#ifndef SWSIM_PROFILE_TASKS_H
#define SWSIM_PROFILE_TASKS_H

#include "profile.h"

/* The parts of profile->plan, by (kind, task, rank), with ranks and iterations of the imported run `trace`. STATUS_INPUT
   where that is not of a pipeline or has none of the plan's tasks. */
enum status profile_take_tasks(struct profile *profile, const struct trace *trace,
                               struct diag *diag);

#endif
