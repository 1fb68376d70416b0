/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.h - in which order a period's tasks are handed to the workers.
 *
 * Source: the SWPipeline reference's _build_enqueue_order (ready-first: a topological sort of the
 * period-local dependence graph by (stall cost, name)) and its stage-descending predecessor. All
 * functions write task indices; `out` has room for every task of the plan's pipeline.
 */
#ifndef SWSIM_ORDER_H
#define SWSIM_ORDER_H

#include "plan.h"

/* The enqueue order of `rank`, by its own stages and streams. Tasks on a period-local cycle (only in plans that deadlock) come
   last, by stage descending and name. */
enum status order_enqueue(const struct plan *plan, int rank, int *out, struct diag *diag);

/* The same for the data-flow driver, which ignores stages: all dependences within an iteration count, and no others. A list
   stays as it is. */
enum status order_dataflow(const struct plan *plan, int rank, int *out, struct diag *diag);

/* The order in which globally ordered tasks have their turns under data-flow: a software pipeline, as of modulo scheduling.
   In round r the task out[k], for k = 0, 1, ..., has its turn for iteration r - stage[out[k]]. Stages are those of the plan on
   rank 0, where it has any, else how often the longest chain of dependences from an input changes streams outside of
   recurrences; at most max_depth - 1. A task has no turn before those that it depends on. */
enum status order_pipelined(const struct plan *plan, int max_depth, int *stage, int *out,
                            struct diag *diag);

/* The order with every task behind those that it depends on within the iteration, and else unchanged. */
enum status order_behind_dependences(const struct plan *plan, const int *order, int *out,
                                     struct diag *diag);

/* Topological order of the intra-iteration dependences, ties by name. */
enum status order_topological(const struct plan *plan, int *out, struct diag *diag);

/* The topological order, sorted by the rank's stages, descending: the rows of `swsim schedule`. */
enum status order_stage_descending(const struct plan *plan, int rank, int *out, struct diag *diag);

/* Cross-stream in-edges of a task in the period-local graph of `rank`. */
int order_stall_cost(const struct plan *plan, int rank, int task);

#endif
