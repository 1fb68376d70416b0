/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random_costs.h - what random rank programs cost: layers, stages, a model, messages, memory, recomputation.
 *
 * The draws are of a seed of their own, so that a plan with costs has the actions that it has without.
 */
#ifndef SWSIM_RANDOM_COSTS_H
#define SWSIM_RANDOM_COSTS_H

#include "tests/random_draw.h"

/* Keys of a plan of `stages` stages; 0: their number is unknown. In half of the plans none. `grouped`: `parallel:` says
   the sizes of a model's groups. */
void random_costs(const struct random *plan, int stages, bool grouped);

/* Keys within `p2p: {...}`, each behind a comma. */
void random_link_costs(const struct random *plan);

/* `machine: {memory}`, in few plans. */
void random_memory(const struct random *plan);

#endif
