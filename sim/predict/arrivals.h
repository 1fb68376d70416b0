/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrivals.h - the messages of a schedule's picture, from when passes ended and when their messages had come.
 *
 * The charts of a plan and of a run (pass_chart.h) are filled through it.
 */
#ifndef SWSIM_ARRIVALS_H
#define SWSIM_ARRIVALS_H

#include "plan/schedules/actions.h"
#include "base/arena.h"
#include "plan/plan.h"
#include "trace/chart.h"

/* Of a stage and a microbatch; -1: never. */
struct arrival {
    int64_t forward_ns, backward_ns, input_ns, gradient_ns;
};

struct arrivals {
    struct arrival *cells; /* stage by stage */
    int stages, microbatches;
    const int *rank_of; /* of stages, for as long as this is used; -1: none */
};

/* All in `arena`. False: out of memory. */
bool arrivals_open(struct arrivals *arrivals, const int *rank_of, int stages, int microbatches,
                   struct arena *arena);
/* A pass or a receive is over. Other actions, and stages and microbatches that there are not, mean nothing. */
void arrivals_note(struct arrivals *arrivals, enum action_kind kind, int stage, int microbatch,
                   int64_t end_ns);
/* The messages between ranks, at times from start_ns on. False: out of memory. */
bool arrivals_messages(const struct arrivals *arrivals, int64_t start_ns, struct arena *arena,
                       struct chart *chart);

/* Stages of a rank are its chunks, in their order. */
int arrivals_chunk(const int *rank_of, int stage);

/* The second part of a composite is listed behind the first, in the same column; NULL: there is none. `listed`: as op.listed. */
const struct listed_action *arrivals_second(const struct plan *lowered, uint32_t listed);

/* False: the action is no pass. */
bool arrivals_kind(enum action_kind kind, enum chart_kind *out);

#endif
