/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frontier_axes.h - the candidates of a frontier: the given plan, and every combination of the values of its axes.
 */
#ifndef SWSIM_FRONTIER_AXES_H
#define SWSIM_FRONTIER_AXES_H

#include "frontier.h"

/* The extent of lists of actions. */
struct frontier_shape {
    int stages, microbatches;
    bool backward;
};
struct frontier_shape frontier_shape_of(const struct rank_program *ranks, int count);

/* Fill in f->candidates; what the given plan is stands in *f. */
enum status frontier_list(struct frontier *f, struct diag *diag);

#endif
