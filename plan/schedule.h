/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.h - the tables a person reads a pipeline plan by: period x task, and the stage analysis.
 *
 * Source: the SWPipeline reference's print_schedule and print_stage_analysis. Both need a plan of
 * the pipeline form; any other is refused with STATUS_INPUT. The tables speak about rank 0, the
 * enqueue orders of ranks that override theirs follow in the stage analysis. Nothing is kept: all
 * functions write and return; a failed write is left in the FILE for the caller's fflush to find.
 */
#ifndef SWSIM_SCHEDULE_H
#define SWSIM_SCHEDULE_H

#include <stdio.h>

#include "plan.h"

struct json;

enum { SCHEDULE_MAX_PERIODS = 100000 };

/* The contents of a table. */
struct schedule_view {
    int periods;
    const bool *skipped; /* of every task: it is short-cut, "." in each period; NULL: none is */
    bool
        dataflow; /* the plan is run by the data-flow driver: say that it has no periods, and the order of turns */
};

/* The number of periods that shows fill and steady state of `plan`. */
int schedule_default_periods(const struct plan *plan);

/*
 * Which iteration each task works on in each of the first periods under the clock driver.
 * Rows stand in stage-descending topological order, independent of the enqueue order:
 *
 *      #  Task     Thread   Stream   |  P0  P1  P2
 *     --  -------  -------  -------  +  --  --  --
 *      0  Forward  default  default  |  --  i0  i1
 *      1  H2D      default  memcpy   |  i0  i1  i2
 */
enum status schedule_print(const struct plan *plan, const struct schedule_view *view, FILE *out,
                           struct diag *diag);
enum status schedule_write(const struct plan *plan, int periods, struct json *json,
                           struct diag *diag);

/*
 * The tasks in topological order; the longest strictly decreasing subsequence (LDS) of their stages
 * in stage-descending enqueue order, which by Dilworth's theorem is the least depth that can hold
 * them; the enqueue order that will be used, with the stalls that each task may cause.
 */
enum status schedule_print_stages(const struct plan *plan, FILE *out, struct diag *diag);
enum status schedule_write_stages(const struct plan *plan, struct json *json, struct diag *diag);

/* The longest strictly decreasing subsequence of `values`: its length, the values themselves in
   `out` (room for `count`). -1 when memory is exhausted. */
int schedule_longest_decreasing(const int *values, size_t count, int *out);

#endif
