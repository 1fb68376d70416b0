/* SPDX-License-Identifier: Apache-2.0 */
/*
 * found.h - the schedules that are searched for: zb_1p, zb_2p, zbv_auto, v_half, v_min.
 *
 * A plan with `generate: {schedule: zb_1p, ...}` says which lists it wants, and a search finds them from the costs, the
 * channel and the memory that the plan says. Neither reading nor lowering a plan searches: a verb that has read a plan calls
 * found_resolve once, and calls it again after a change of what the search looks at. The lists are kept with the plan
 * (plan->programs.generate.found), which prints as its author wrote it. The same plan gives the same lists on every
 * machine.
 */
#ifndef SWSIM_FOUND_H
#define SWSIM_FOUND_H

#include "plan/schedules/generate.h"

/* What was found; spans and bounds are those of bubble.h. */
struct found_figures {
    int64_t span_ns, makespan_ns;
    int64_t bound_ns, work_ns;   /* no order has a smaller span; the most that a rank does */
    int least_limit, most_limit; /* activations that a rank may hold, of the ranks */
};

/* The lists of `spec`, a schedule that is searched for, in `arena`. Passes and messages cost what the plan `costs` says;
   NULL: 1 a pass, nothing a message. `figures` may be NULL. Parameters that the schedule cannot have, and a memory that is
   too small for every order that was tried, are described in diag at spec->mark, without a file: STATUS_INPUT. */
enum status found_search(const struct generate_spec *spec, const struct plan *costs,
                         struct arena *arena, struct rank_program **ranks,
                         struct found_figures *figures, struct diag *diag);

/* True if found_resolve searches for this plan: its schedule is searched for, and its text has no lists for it. */
bool found_is_wanted(const struct plan *plan);

/* Search for the lists of such a plan and keep them with it, in `arena`, which must outlive the plan. Lists of an earlier
   call are forgotten; for other plans there is nothing to do. Refusals are those of found_search, with the plan's file. */
enum status found_resolve(struct plan *plan, struct arena *arena, struct diag *diag);

/* What the last searches of one caller have found, for a caller with many plans that differ little: the same question is
   not searched for twice. It has memory of its own, and no two threads share one. */
enum { FOUND_MEMO = 16 };
struct found_memo {
    struct found_answer *answers; /* FOUND_MEMO of them, the oldest replaced first */
    unsigned next;
};
enum status found_memo_open(struct found_memo *memo, struct diag *diag);
void found_memo_close(struct found_memo *memo);

/* As found_resolve; `memo` and `figures` may be NULL. *figures is set if there was a search. */
enum status found_resolve_with(struct plan *plan, struct arena *arena, struct found_memo *memo,
                               struct found_figures *figures, struct diag *diag);

#endif
