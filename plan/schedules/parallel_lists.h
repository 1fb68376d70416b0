/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parallel_lists.h - the collectives at the end of stages put into lists of actions: `parallel: {grad_reduce, embedding}`.
 *
 * REDUCE_GRAD, WAIT_REDUCE_GRAD and REDUCE_EMBEDDING go where the plan says. A stage whose REDUCE_GRAD is in a list
 * already has that one alone, and so has a list with REDUCE_EMBEDDING.
 */
#ifndef SWSIM_PARALLEL_LISTS_H
#define SWSIM_PARALLEL_LISTS_H

#include "comms.h"
#include "plan/plan.h"

struct list_ends {
    enum grad_reduce reduce;
    enum embedding_reduce embedding;
};

/* The plan's words for its ranks, and for one that may differ (NULL: it does not). */
struct list_ends parallel_ends(const struct plan *plan, const struct rank_differs *differs);

/* The list of place `own` of a pipeline with them, in `arena`. */
enum status parallel_add_ends(const struct plan *plan, const struct list_ends *ends,
                              const struct stage_map *map, int own, struct arena *arena,
                              struct rank_program *list, struct diag *diag);

#endif
