/* SPDX-License-Identifier: Apache-2.0 */
/*
 * many_times.h - a proof of host programs whose repeat is executed any number of times (doc/checker.md, "Any number of times").
 */
#ifndef SWSIM_MANY_TIMES_H
#define SWSIM_MANY_TIMES_H

#include "plan/plan.h"

/* A proof of a plan whose threads repeat their steps so often proves it for any greater number. */
enum { MANY_TIMES_LEAST = 3 };

/* True if *out, the plan with MANY_TIMES_LEAST times, stands for the plan and for any greater number; the caller frees its arena
   with arena_fini, and ends `plan` after it. False where it does not; *no_memory says that it is for want of memory. */
bool many_times_plan(const struct plan *plan, struct plan *out, bool *no_memory);

#endif
