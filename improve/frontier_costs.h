/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frontier_costs.h - the costs of a plan for other schedules: divided among more or fewer stages, and what is missing.
 *
 * Tables that change are copied into `arena`; false: memory is exhausted.
 */
#ifndef SWSIM_FRONTIER_COSTS_H
#define SWSIM_FRONTIER_COSTS_H

#include "plan/plan.h"

/* True if the plan says this cost of stages or layers, or (frontier_has_bytes) any bytes. */
bool frontier_has_cost(const struct stage_spec *spec, enum cost cost);
bool frontier_has_bytes(const struct stage_spec *spec);

/* A backward pass that is only given as a whole is half I, half W. `assume`: F, I and W last 1 ms each, as the plan
   gives no times. `activation` is what F keeps of a microbatch; 0: what the plan says. */
bool frontier_fill_costs(struct programs *programs, bool assume, int64_t activation,
                         struct arena *arena);

/* Samples in a microbatch, before and now, and the number with which a pass has half of its best speed: its time is as
   the samples and that number together. */
struct frontier_sizes {
    int from, to, half;
};
/* Microbatches of another size: passes, activations and messages change, weights do not. */
bool frontier_scale_costs(struct programs *programs, const struct frontier_sizes *sizes,
                          struct arena *arena);

/* The same model in `to` stages instead of `from`. The costs that a plan gives of each stage are spread evenly over it; the
   input of a stage stays as big as it is. Layers are the model's own. */
bool frontier_divide_costs(struct programs *programs, int from, int to, struct arena *arena);

#endif
