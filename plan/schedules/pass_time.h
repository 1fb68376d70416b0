/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pass_time.h - how long the actions of rank programs take, but messages and collectives of groups.
 */
#ifndef SWSIM_PASS_TIME_H
#define SWSIM_PASS_TIME_H

#include "plan/plan.h"
#include "costs.h"

/* The times of actions in a plan. */
struct pass_clock {
    const struct plan *plan;
    const struct stage_cost *costs; /* per stage, see costs_resolve; NULL: F, I and W take 1, B 2 */
    int microbatches;
};

/* Of a pass with its all-to-alls, of a composite, or what `times:` says. Nanoseconds. */
int64_t pass_time(const struct pass_clock *clock, const struct action *action);

/* True if the plan says how long passes take. */
bool pass_time_known(const struct stage_cost *costs, int stages);

#endif
