/* SPDX-License-Identifier: Apache-2.0 */
/*
 * many_ranks.h - a proof of any number of ranks that do what those of a host program do (doc/checker.md, "Ranks that were not recorded").
 */
#ifndef SWSIM_MANY_RANKS_H
#define SWSIM_MANY_RANKS_H

#include "verify.h"

/* The steps that a search of the whole plan may take before its parts are searched. */
enum { MANY_RANKS_STEPS = 1 << 14 };

/* --ranks of a host program that has fewer becomes options->many_ranks. */
void many_ranks_option(struct verify_options *options, const struct plan *plan);
/* True if other ranks are asked for, or if the plan is so large that a proof by parts may be faster. */
bool many_ranks_may_do(const struct plan *plan, const struct verify_options *options);
/* `report` is that of the plan itself, after a short search. If it is not violated, and what the ranks do in parts is proved, it
   becomes a proof of options->many_ranks, or of the plan's. Where they are asked for and it is not, it is undecided, and says
   why (`hidden`). STATUS_INPUT, and why, where the ranks of the plan cannot stand for others. */
enum status many_ranks_judge(const struct plan *plan, const struct verify_options *options,
                             struct verify_report *report, struct diag *diag);

#endif
