/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune_host.h - a faster host program: waits of streams in place of waits of threads, other streams, another order of calls.
 *
 * From the given plan, and then from the best that was found, each change of one kind (edits_list_faster) makes a
 * candidate. Questions to a candidate, the cheapest first:
 *
 *     well-formed --> simulated --> shorter? --> same view --> proved --> the new best
 *
 * simulated  one run from its beginning to its end, under one seed for all.
 * same view  every read sees the write that it saw in the given plan, and the writes of each buffer come in the same order
 *            (tune_view.h has the idea). One run determines it, as in a plan without races conflicting accesses have one order.
 *            So all work must declare what it accesses, and no operation may have branches: STATUS_INPUT names what is missing.
 * proved     every property, by the ordinary checker.
 *
 * Of all candidates of a round the shortest that passes is kept; the search ends with a round that has none, with the budget
 * of candidates, or when it is interrupted. The order in which changes are tried is drawn from the seed.
 */
#ifndef SWSIM_TUNE_HOST_H
#define SWSIM_TUNE_HOST_H

#include "tune.h"

struct tune_host {
    struct tune_result before, after;
    const char **changes; /* NULL ends the list */
    struct tune_counts counts;
    bool better, interrupted,
        unfit; /* unfit: the given plan is not proved, and no better one was found */
};

/* Texts live in `arena`. STATUS_VIOLATED: the given plan hangs, so its results are unknown. On failure there is nothing to end. */
enum status tune_host(const struct plan *plan, const struct tune_options *options,
                      struct arena *arena, struct tune_host *out, struct diag *diag);
void tune_host_fini(struct tune_host *tune);

#endif
