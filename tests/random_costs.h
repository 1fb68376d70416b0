/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random_costs.h - what random rank programs cost: layers, stages, a model, messages, memory, recomputation.
 *
 * The draws are of a seed of their own, so that a plan with costs has the actions that it has without.
 */
#ifndef SWSIM_RANDOM_COSTS_H
#define SWSIM_RANDOM_COSTS_H

#include "random_draw.h"

/* Keys of a plan of `stages` stages; 0: their number is unknown. In half of the plans none. `tensor`: the ranks of a tensor
   group, where `parallel:` says the sizes of a model's groups; else 0. `sent`: messages have bytes. */
void random_costs(const struct random *plan, int stages, int tensor, bool sent);

/* Keys within `p2p: {...}`, each behind a comma. `bytes`: its messages have bytes. Returns whether they have now. */
bool random_link_costs(const struct random *plan, bool bytes);

/* `machine: {memory}`, in few plans. */
void random_memory(const struct random *plan);

#endif
