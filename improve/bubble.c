/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bubble.c - see bubble.h.
 *
 * A rank goes on while the inputs of its next pass have a known time, so no clock is needed: which rank goes first does
 * not change any time. Each pass is visited once.
 */
#include "bubble.h"

#include <assert.h>
#include <string.h>

/* One rank in the making. */
struct rank_state {
    size_t at; /* in its order */
    int64_t now_ns, first_ns;
    int64_t work_ns;        /* of all its passes */
    int64_t idle_ns;        /* so far, since the first */
    int held_percent;       /* of activations */
    struct pass_code *owed; /* W, oldest first */
    int *owed_microbatch;
    size_t owed_first, owed_end;
};

struct bubble_room {
    int64_t *forward_ns,
        *backward_ns; /* ends; -1: not known yet. [stage * microbatches + microbatch] */
    int (*next)[2];   /* per stage: the microbatch of the next F and I */
    struct rank_state *ranks;
    int *ready; /* ranks that may go on */
    bool *is_ready;
};

int64_t bubble_backward_ns(const struct bubble_problem *problem, int stage, int microbatch)
{
    const struct pass_times *times = &problem->times[stage];
    return times->i_ns + (microbatch < problem->again ? times->f_ns : 0);
}

/* F, I and W of all microbatches. */
static int64_t stage_work(const struct bubble_problem *problem, int stage)
{
    const struct pass_times *times = &problem->times[stage];
    return problem->microbatches * (times->f_ns + times->i_ns + times->w_ns) +
           problem->again * times->f_ns;
}

bool bubble_room_make(const struct bubble_problem *problem, struct arena *arena,
                      struct bubble_room **out)
{
    size_t cells = (size_t)problem->stages * (size_t)problem->microbatches;
    size_t ranks = (size_t)problem->ranks;
    struct bubble_room *room = *out = ARENA_ARRAY(arena, 1, struct bubble_room);
    if (!room)
        return false;
    room->forward_ns = ARENA_ARRAY(arena, cells, int64_t);
    room->backward_ns = ARENA_ARRAY(arena, cells, int64_t);
    room->next = arena_array(arena, (size_t)problem->stages, sizeof *room->next);
    room->ranks = ARENA_ARRAY(arena, ranks, struct rank_state);
    room->ready = ARENA_ARRAY(arena, ranks, int);
    room->is_ready = ARENA_ARRAY(arena, ranks, bool);
    size_t *counts = ARENA_ARRAY(arena, ranks, size_t);
    if (!counts || !room->ranks)
        return false;
    for (int stage = 0; stage < problem->stages; stage++) {
        counts[problem->rank_of[stage]] += (size_t)problem->microbatches;
        room->ranks[problem->rank_of[stage]].work_ns += stage_work(problem, stage);
    }
    for (size_t rank = 0; rank < ranks; rank++) {
        room->ranks[rank].owed = ARENA_ARRAY(arena, counts[rank], struct pass_code);
        room->ranks[rank].owed_microbatch = ARENA_ARRAY(arena, counts[rank], int);
    }
    return !arena->failed;
}

/* ---- one pass -------------------------------------------------------------------------------- */

struct bubble_walk {
    const struct bubble_problem *problem;
    const struct bubble_order *order;
    struct bubble_room *room;
    struct rank_program *lists;
    int64_t most_ns;
    size_t ready_count;
};

static size_t bubble_cell(const struct bubble_problem *problem, int stage, int microbatch)
{
    return (size_t)stage * (size_t)problem->microbatches + (size_t)microbatch;
}

static void bubble_make_ready(struct bubble_walk *walk, int rank)
{
    if (walk->room->is_ready[rank])
        return;
    walk->room->is_ready[rank] = true;
    walk->room->ready[walk->ready_count++] = rank;
}

static void list_pass(struct bubble_walk *walk, int rank, enum action_kind kind, int stage,
                      int microbatch)
{
    if (!walk->lists)
        return;
    struct rank_program *list = &walk->lists[rank];
    list->actions[list->count++] =
        (struct action){.kind = kind, .stage = stage, .microbatch = microbatch};
}

static void do_weight(struct bubble_walk *walk, int rank)
{
    struct rank_state *state = &walk->room->ranks[rank];
    assert(state->owed_first < state->owed_end);
    int stage = state->owed[state->owed_first].stage;
    list_pass(walk, rank, ACTION_W, stage, state->owed_microbatch[state->owed_first]);
    state->now_ns += walk->problem->times[stage].w_ns;
    state->held_percent -= walk->problem->left_percent[stage];
    state->owed_first++;
}

/* When a result of a neighbouring stage is here; -1: not known yet. */
static int64_t arrival(const struct bubble_walk *walk, const int64_t *ends, int stage, int from,
                       int microbatch)
{
    const struct bubble_problem *problem = walk->problem;
    int64_t end_ns = ends[bubble_cell(problem, from, microbatch)];
    if (end_ns < 0)
        return end_ns;
    return end_ns + (from < stage ? problem->up_ns[from] : problem->down_ns[stage]);
}

/* When the inputs of a pass are here; -1: not known yet. */
static int64_t bubble_input_time(const struct bubble_walk *walk, struct pass_code pass,
                                 int microbatch)
{
    const struct bubble_problem *problem = walk->problem;
    const struct bubble_room *room = walk->room;
    int stage = pass.stage;
    if (!pass.backward)
        return stage == 0 ? 0 : arrival(walk, room->forward_ns, stage, stage - 1, microbatch);
    int64_t own_ns = room->forward_ns[bubble_cell(problem, stage, microbatch)];
    if (own_ns < 0 || stage == problem->stages - 1)
        return own_ns;
    int64_t other_ns = arrival(walk, room->backward_ns, stage, stage + 1, microbatch);
    return other_ns < own_ns && other_ns >= 0 ? own_ns : other_ns;
}

static void do_pass(struct bubble_walk *walk, int rank, struct pass_code pass, int microbatch,
                    int64_t input_ns)
{
    const struct bubble_problem *problem = walk->problem;
    struct rank_state *state = &walk->room->ranks[rank];
    int stage = pass.stage;
    int64_t start_ns = input_ns > state->now_ns ? input_ns : state->now_ns;
    if (state->first_ns < 0)
        state->first_ns = start_ns;
    else
        state->idle_ns += start_ns - state->now_ns;
    state->now_ns = start_ns + (pass.backward ? bubble_backward_ns(problem, stage, microbatch)
                                              : problem->times[stage].f_ns);
    int64_t *ends = pass.backward ? walk->room->backward_ns : walk->room->forward_ns;
    ends[bubble_cell(problem, stage, microbatch)] = state->now_ns;
    walk->room->next[stage][pass.backward]++;
    list_pass(walk, rank, pass.backward ? ACTION_I : ACTION_F, stage, microbatch);
    if (pass.backward) {
        state->owed_microbatch[state->owed_end] = microbatch;
        state->owed[state->owed_end++] = pass;
        state->held_percent -= 100 - problem->left_percent[stage];
    } else {
        state->held_percent += 100;
    }
    int to = pass.backward ? stage - 1 : stage + 1;
    if (to >= 0 && to < problem->stages && problem->rank_of[to] != rank)
        bubble_make_ready(walk, problem->rank_of[to]);
    state->at++;
}

/* ---- a rank, as far as it can go ------------------------------------------------------------- */

enum progress { WENT_ON, MUST_WAIT, IMPOSSIBLE };

static enum progress next_step(struct bubble_walk *walk, int rank)
{
    const struct bubble_problem *problem = walk->problem;
    struct rank_state *state = &walk->room->ranks[rank];
    struct pass_code pass = walk->order->passes[rank][state->at];
    int microbatch = walk->room->next[pass.stage][pass.backward];
    bool owes = state->owed_first < state->owed_end;
    if (!pass.backward && state->held_percent + 100 > 100 * problem->limits[rank]) {
        if (!owes)
            return IMPOSSIBLE;
        do_weight(walk, rank);
        return WENT_ON;
    }
    int64_t input_ns = bubble_input_time(walk, pass, microbatch);
    if (input_ns < 0)
        return MUST_WAIT;
    int64_t gap_ns = input_ns - state->now_ns;
    if (owes && gap_ns > 0) {
        int64_t w_ns = problem->times[state->owed[state->owed_first].stage].w_ns;
        bool late = pass.backward && microbatch >= problem->microbatches - problem->ranks;
        if (4 * gap_ns >= walk->order->patience[rank][late] * w_ns) {
            do_weight(walk, rank);
            return WENT_ON;
        }
    }
    do_pass(walk, rank, pass, microbatch, input_ns);
    /* A rank that has been idle so long cannot end in time any more. */
    return state->work_ns + state->idle_ns > walk->most_ns ? IMPOSSIBLE : WENT_ON;
}

static void bubble_begin(struct bubble_walk *walk)
{
    const struct bubble_problem *problem = walk->problem;
    struct bubble_room *room = walk->room;
    size_t cells = (size_t)problem->stages * (size_t)problem->microbatches;
    memset(room->forward_ns, 0xff, cells * sizeof *room->forward_ns);
    memset(room->backward_ns, 0xff, cells * sizeof *room->backward_ns);
    memset(room->next, 0, (size_t)problem->stages * sizeof *room->next);
    for (int rank = problem->ranks - 1; rank >= 0; rank--) {
        struct rank_state *state = &room->ranks[rank];
        state->at = state->owed_first = state->owed_end = 0;
        state->now_ns = state->idle_ns = 0;
        state->first_ns = -1;
        state->held_percent = 0;
        room->is_ready[rank] = false;
        bubble_make_ready(walk, rank);
    }
}

static bool bubble_finish(struct bubble_walk *walk, struct bubble_figures *out)
{
    struct bubble_figures figures = {0};
    for (int rank = 0; rank < walk->problem->ranks; rank++) {
        struct rank_state *state = &walk->room->ranks[rank];
        if (state->at < walk->order->counts[rank])
            return false;
        while (state->owed_first < state->owed_end)
            do_weight(walk, rank);
        assert(state->held_percent == 0 && state->first_ns >= 0);
        int64_t span_ns = state->now_ns - state->first_ns;
        figures.span_ns = span_ns > figures.span_ns ? span_ns : figures.span_ns;
        figures.makespan_ns =
            state->now_ns > figures.makespan_ns ? state->now_ns : figures.makespan_ns;
    }
    *out = figures;
    return true;
}

bool bubble_evaluate(const struct bubble_problem *problem, const struct bubble_order *order,
                     struct bubble_room *room, int64_t most_ns, struct bubble_figures *out,
                     struct rank_program *lists)
{
    struct bubble_walk walk = {
        .problem = problem, .order = order, .room = room, .lists = lists, .most_ns = most_ns};
    bubble_begin(&walk);
    while (walk.ready_count > 0) {
        int rank = room->ready[--walk.ready_count];
        room->is_ready[rank] = false;
        enum progress progress = WENT_ON;
        while (progress == WENT_ON && room->ranks[rank].at < order->counts[rank])
            progress = next_step(&walk, rank);
        if (progress == IMPOSSIBLE)
            return false;
    }
    return bubble_finish(&walk, out);
}

/* ---- the bound ------------------------------------------------------------------------------- */

/* From the start of F on stage `from` until F on stage `to` may start. */
static int64_t way_up(const struct bubble_problem *problem, int from, int to)
{
    int64_t ns = 0;
    for (int stage = from; stage < to; stage++)
        ns += problem->times[stage].f_ns + problem->up_ns[stage];
    return ns;
}

/* From the end of I on stage `from` to the end of I on stage `to` below it. */
static int64_t way_down(const struct bubble_problem *problem, int from, int to)
{
    int64_t ns = 0;
    for (int stage = from; stage > to; stage--)
        ns += problem->down_ns[stage - 1] + problem->times[stage - 1].i_ns;
    return ns;
}

/* The first forward of a rank goes up to another, which does all its own from that stage on, and the last backward
   comes down again: the span holds all this. */
static int64_t bound_by_others(const struct bubble_problem *problem, int lowest)
{
    int64_t most_ns = 0, up_ns = 0, down_ns = 0;
    for (int stage = lowest + 1; stage < problem->stages; stage++) {
        const struct pass_times *below = &problem->times[stage - 1];
        up_ns += below->f_ns + problem->up_ns[stage - 1];
        down_ns += below->i_ns + problem->down_ns[stage - 1];
        if (problem->rank_of[stage] == problem->rank_of[lowest])
            continue;
        int64_t ns = up_ns + problem->microbatches * problem->later_ns[stage] + down_ns;
        most_ns = ns > most_ns ? ns : most_ns;
    }
    return most_ns + problem->times[lowest].w_ns;
}

/* Its own work, and the gap before its first backward: as many forwards fit into the wait for it as it can hold. */
static int64_t bound_by_work(const struct bubble_problem *problem, int rank, int lowest)
{
    int last = problem->stages - 1, highest = lowest;
    int64_t work_ns = 0, longest_ns = 0, forwards = 0;
    for (int stage = 0; stage <= last; stage++) {
        const struct pass_times *times = &problem->times[stage];
        if (problem->rank_of[stage] != rank)
            continue;
        work_ns += stage_work(problem, stage);
        longest_ns = times->f_ns > longest_ns ? times->f_ns : longest_ns;
        forwards += problem->microbatches;
        highest = stage;
    }
    if (forwards > problem->limits[rank])
        forwards = problem->limits[rank];
    int64_t wait_ns = way_up(problem, lowest, last) + problem->times[last].f_ns;
    if (highest < last)
        wait_ns += problem->times[last].i_ns + way_down(problem, last, highest) -
                   problem->times[highest].i_ns;
    int64_t gap_ns = wait_ns - forwards * longest_ns;
    return work_ns + (gap_ns > 0 ? gap_ns : 0);
}

int64_t bubble_bound(const struct bubble_problem *problem)
{
    int64_t bound_ns = 0;
    for (int rank = 0; rank < problem->ranks; rank++) {
        int lowest = 0;
        while (problem->rank_of[lowest] != rank)
            lowest++;
        int64_t own_ns = bound_by_work(problem, rank, lowest);
        bound_ns = own_ns > bound_ns ? own_ns : bound_ns;
        int64_t others_ns = bound_by_others(problem, lowest);
        bound_ns = others_ns > bound_ns ? others_ns : bound_ns;
    }
    return bound_ns;
}
