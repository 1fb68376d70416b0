/* SPDX-License-Identifier: Apache-2.0 */
/*
 * balance.h - layers divided into stages such that the slowest stage is the fastest (`balance: found`).
 *
 * Layers stay behind one another. With `machine: {memory}` a rank holds no more than that, if there is such a division:
 * weights and state of its layers, and their activations of as many microbatches as its list has in flight; messages
 * are not counted. Where no division keeps to it, the fastest is taken, and verify says that it does not fit.
 */
#ifndef SWSIM_BALANCE_H
#define SWSIM_BALANCE_H

#include "plan.h"

/* The layers of each stage into `out`. `layers` has the model's costs, too. */
enum status balance_find(const struct plan *plan, const struct layers *layers, int stages, int *out,
                         struct diag *diag);

#endif
