/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bubble.h - orders of passes with split backwards: how long they take, and a search for a short one.
 *
 * A schedule with split backwards is an order of F and I on each rank; the W fill its gaps. The search is for the least
 * span: the longest time, over the ranks, from the start of the first pass to the end of the last. All times are in
 * nanoseconds.
 *
 *     bubble.c          the time of an order whose messages start when their content is there, and the least time of any
 *     bubble_channel.c  the time of lists whose messages share channels
 *     bubble_search.c   the search
 *
 * Sources: Qi et al. 2023 (zero bubble), for the objective and the memory, and 2024 (controllable memory: V-Min, V-Half,
 * V-ZB are repeated blocks).
 */
#ifndef SWSIM_BUBBLE_H
#define SWSIM_BUBBLE_H

#include "plan/plan.h"

struct pass_times {
    int64_t f_ns, i_ns, w_ns;
};

struct bubble_problem {
    int ranks, stages, microbatches;
    const int *rank_of;             /* per stage */
    const struct pass_times *times; /* per stage */
    const int64_t *later_ns; /* per stage: F and I of it and of the stages of its rank behind it */
    const int64_t *up_ns, *down_ns; /* per stage: of a message to the next one, and back from it */
    const int *left_percent;        /* per stage, of an activation: what I leaves for W */
    int again;                      /* I of the microbatches below it computes F once more */
    const int *limits;              /* per rank: activations of a stage that it may hold */
};

/* F and I of a stage on this rank; the microbatches of each go up. */
struct pass_code {
    uint16_t stage;
    bool backward;
};

/* Per rank `count` passes. */
struct bubble_order {
    struct pass_code **passes;
    size_t *counts;
    /* Per rank: a W is put into a gap of this many quarters of its time, or a longer one; [1] is for the gaps before the
       last backwards, as many as there are ranks: a delay there is not made good any more. */
    uint8_t (*patience)[2];
};

struct bubble_figures {
    int64_t span_ns; /* the longest */
    int64_t makespan_ns;
};

/* ---- one order ------------------------------------------------------------------------------- */

/* Working memory for one problem. */
struct bubble_room;

/* False and *out NULL: out of memory. In `arena`. */
bool bubble_room_make(const struct bubble_problem *problem, struct arena *arena,
                      struct bubble_room **out);

/* Every pass as early as its order lets it; W in gaps, where memory is short, and at the end. False: the order is
   impossible, needs more memory than there is, or has a span above `most_ns`. With `lists`, each with room for all its passes, also the passes with
   their W, in order. */
bool bubble_evaluate(const struct bubble_problem *problem, const struct bubble_order *order,
                     struct bubble_room *room, int64_t most_ns, struct bubble_figures *out,
                     struct rank_program *lists);

/* The time of I of a microbatch. */
int64_t bubble_backward_ns(const struct bubble_problem *problem, int stage, int microbatch);

/* No order has a smaller span. */
int64_t bubble_bound(const struct bubble_problem *problem);

/* ---- lists on shared channels (`p2p: {fifo}`) ------------------------------------------------- */

/* Lists with messages, each pass and message taking what the problem says; a message waits for those before it on its
   channel and for its other end, as in the machine. Messages go one by one and without buffers: batches, eager messages
   and those of metadata are not followed. False: the lists hang, or there is no memory. */
bool bubble_channel_evaluate(const struct bubble_problem *problem, enum fifo_rule fifo,
                             const struct rank_program *lists, struct bubble_figures *out);

/* The most activations that a rank holds at one time, rounded up. */
int bubble_channel_held(const struct bubble_problem *problem, const struct rank_program *list);

/* True if no rank of these lists holds more activations than the problem allows. */
bool bubble_channel_fits(const struct bubble_problem *problem, const struct rank_program *lists);

/* ---- the search ------------------------------------------------------------------------------ */

/* Three kinds of candidates are tried: leads (one stage a rank: how many forwards a rank is ahead), repeated blocks (two
   stages a rank in V shape) and the order `known`, lists whose W are left out (NULL: none). The best candidate is then
   changed step by step while that helps. The amount of work is limited, not the time: the same problem gives the same
   order on every machine. *ranks has the passes of each rank, W included, in `arena`.
   STATUS_OK with *ranks NULL: no candidate keeps within the memory. STATUS_SYSTEM: out of memory, not described. */
enum status bubble_search(const struct bubble_problem *problem, const struct rank_program *known,
                          struct arena *arena, struct rank_program **ranks,
                          struct bubble_figures *figures);

#endif
