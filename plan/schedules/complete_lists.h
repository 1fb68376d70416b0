/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complete_lists.h - the lists of rank programs with all that a plan leaves to us.
 *
 * A plan may name a schedule instead of lists, lists without messages, and collectives at the ends of stages. A complete
 * list has every action that its rank executes.
 */
#ifndef SWSIM_COMPLETE_LISTS_H
#define SWSIM_COMPLETE_LISTS_H

#include "plan/plan.h"

#include "comms.h"

/* The copies of the model that the stages of a plan of FORM_PROGRAMS are. */
int complete_lists_copies(const struct plan *plan);

/* The same plan, but for a schedule that is found, whose lists need not be there yet: one that rules make stands in its
   place, with the same stages on each rank and the same microbatches. */
struct plan complete_lists_like(const struct plan *plan);

/* The lists as the plan has them or its generator makes them, without what is added. */
enum status complete_lists_given(const struct plan *plan, struct arena *arena,
                                 struct rank_program **ranks, int *rank_count, struct diag *diag);

/* The complete lists of a plan of FORM_PROGRAMS: generated if it has `generate:`, with messages
   added if it has none. In `arena`; the plan is not changed. */
enum status complete_lists_fill(const struct plan *plan, struct arena *arena,
                                struct rank_program **ranks, int *rank_count, struct diag *diag);

/* The same, and the list of each rank that differs (plan->programs.parallel.differing); NULL: none does. */
enum status complete_lists_fill_all(const struct plan *plan, struct arena *arena,
                                    struct rank_program **ranks, int *rank_count,
                                    struct rank_program **differing, struct diag *diag);

/* Both, and the map of their stages, with memory of their own; the plan must outlive them. On failure *out is untouched. */
struct complete_lists {
    struct arena arena;
    struct rank_program *ranks;
    int rank_count;
    struct rank_program *differing;
    struct stage_map map;
};
enum status complete_lists_make(const struct plan *plan, struct work_limit *limit,
                                struct complete_lists *out, struct diag *diag);
void complete_lists_fini(struct complete_lists *lists);

/* ---- collectives at the ends of stages ------------------------------------------------------- */

/*
 * The collectives at the end of stages put into lists of actions: `parallel: {grad_reduce, embedding}`.
 *
 * REDUCE_GRAD, WAIT_REDUCE_GRAD and REDUCE_EMBEDDING go where the plan says. A stage whose REDUCE_GRAD is in a list
 * already has that one alone, and so has a list with REDUCE_EMBEDDING.
 */

struct list_ends {
    enum grad_reduce reduce;
    enum embedding_reduce embedding;
};

/* The plan's words for its ranks, and for one that may differ (NULL: it does not). */
struct list_ends parallel_ends(const struct plan *plan, const struct rank_differs *differs);

#endif
