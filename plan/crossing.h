/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crossing.h - buffers of a pipeline that tasks use from one iteration to the next, though each iteration has its own.
 *
 * A buffer that `buffers:` does not name has scope iteration. Where a task reads it before any task of the iteration
 * writes it, or waits for a task of an earlier iteration that uses it, one buffer for all iterations is meant.
 */
#ifndef SWSIM_CROSSING_H
#define SWSIM_CROSSING_H

#include "plan.h"

struct crossing {
    int first,
        second; /* plan->pipeline.tasks: `first` uses in an iteration what `second` left in an earlier one */
};

/* found[b] for each of plan->buffers; first -1: none. In `arena`; NULL without memory. */
struct crossing *crossings_find(const struct plan *plan, struct arena *arena);

#endif
