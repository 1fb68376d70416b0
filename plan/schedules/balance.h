/* SPDX-License-Identifier: Apache-2.0 */
/*
 * balance.h - layers divided into stages such that the slowest stage is the fastest (`balance: found`).
 *
 * Layers stay behind one another. With `machine: {memory}` a rank is to hold no more than that, by an estimate: weights
 * and state of its layers, and of each stage the activations of as many microbatches as its list ever has in flight
 * (where the list is itself found: as it may have); messages are not counted. Stages are filled from the first on: where
 * a rank has two, the first leaves no room for the second. Where no division is found that keeps to the memory, the
 * fastest is taken; verify says what a rank really holds.
 */
#ifndef SWSIM_BALANCE_H
#define SWSIM_BALANCE_H

#include "plan/plan.h"

/* The layers of each stage into `out`. `layers` has the model's costs, too. */
enum status balance_find(const struct plan *plan, const struct layers *layers, int stages, int *out,
                         struct diag *diag);

#endif
