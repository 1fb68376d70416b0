/* SPDX-License-Identifier: Apache-2.0 */
/* tune_moves.c - see tune_climb.h: the moves of the local search. */
#include "tune_climb.h"

/* The first stage is 0. False: there are too many. */
static bool settle_stages(const struct tune_climb *s, int *cells)
{
    int *stage = climb_row(s, cells, TUNE_STAGE), least = stage[0], most = stage[0];
    for (size_t t = 1; t < s->tune->tasks; t++) {
        least = stage[t] < least ? stage[t] : least;
        most = stage[t] > most ? stage[t] : most;
    }
    for (size_t t = 0; t < s->tune->tasks; t++)
        stage[t] -= least;
    return most - least <= PLAN_MAX_STAGE;
}

/*                 NAME            knob    how many there are */
#define MOVE_LIST(X)                                                                               \
    X(TASK_STAGE, STAGE, 2 * n)       /* one task a stage up or down */                            \
    X(BLOCK_STAGE, STAGE, 2 * n)      /* the block of a task */                                    \
    X(STREAM_STAGE, STAGE, 2 * n)     /* all tasks on a task's stream */                           \
    X(REST_STAGE, STAGE, 2 * n)       /* the blocks of a task and of all behind it */              \
    X(STREAM, STREAM, n *streams)     /* a task to a stream */                                     \
    X(GROUP, GROUP, n *groups)        /* a task to a thread group */                               \
    X(STREAM_GROUP, GROUP, n *groups) /* all tasks on a task's stream */                           \
    X(RULE, ORDER, RULES)             /* another rule */                                           \
    X(ORDER, ORDER, n *n)             /* a task to a place in the enqueue order */                 \
    X(DEPTH, DEPTH, 2)                /* max_depth, one more or less */

enum move {
#define X(name, knob, count) MOVE_##name,
    MOVE_LIST(X)
#undef X
        MOVES
};

/* How many of a kind, or 0 if they make no difference or may not be made. */
static size_t count_moves(const struct tune *tune, enum move move)
{
    size_t n = tune->tasks, streams = (size_t)tune->streams, groups = (size_t)tune->groups;
    bool dataflow = tune->options->driver == DRIVER_DATAFLOW;
    static const enum tune_knob knobs[] = {
#define X(name, knob, count) TUNE_KNOB_##knob,
        MOVE_LIST(X)
#undef X
    };
    const size_t counts[] = {
#define X(name, knob, count) count,
        MOVE_LIST(X)
#undef X
    };
    if (!tune_may(tune, knobs[move]) || (dataflow && knobs[move] == TUNE_KNOB_STAGE) ||
        (!dataflow && knobs[move] == TUNE_KNOB_DEPTH))
        return 0;
    return counts[move];
}

/* Does a stage move of `task` take `other` along? */
static bool goes_along(struct tune_climb *s, enum move move, size_t task, size_t other)
{
    const int *stream = climb_row(s, s->candidate, TUNE_STREAM);
    switch (move) {
    case MOVE_BLOCK_STAGE: return s->block[task] == s->block[other];
    case MOVE_STREAM_STAGE:
    case MOVE_STREAM_GROUP: return stream[task] == stream[other];
    case MOVE_REST_STAGE: return s->last[other] >= s->place[task];
    default: return task == other;
    }
}

static void shift_stages(struct tune_climb *s, enum move move, size_t number)
{
    for (size_t t = 0; t < s->tune->tasks; t++)
        if (goes_along(s, move, number / 2, t))
            climb_row(s, s->candidate, TUNE_STAGE)[t] += number % 2 ? 1 : -1;
}

/* Spare streams and groups are alike: only the first that is free is worth a try. */
static int first_free(struct tune_climb *s, enum tune_row which, int count, int wanted)
{
    const int *items = climb_row(s, s->candidate, which);
    for (int i = count - TUNE_SPARES; i < wanted; i++) {
        bool used = false;
        for (size_t t = 0; t < s->tune->tasks; t++)
            used |= items[t] == i;
        if (!used)
            return i;
    }
    return wanted;
}

static void set_places(struct tune_climb *s, enum move move, size_t number)
{
    enum tune_row which = move == MOVE_STREAM ? TUNE_STREAM : TUNE_GROUP;
    int count = which == TUNE_STREAM ? s->tune->streams : s->tune->groups;
    int to = first_free(s, which, count, (int)(number % (size_t)count));
    for (size_t t = 0; t < s->tune->tasks; t++)
        if (goes_along(s, move, number / (size_t)count, t))
            climb_row(s, s->candidate, which)[t] = to;
}

static enum status move_in_order(struct tune_climb *s, size_t from, size_t to)
{
    enum status status = tune_order(s->tune, s->candidate, s->order, s->diag);
    if (status != STATUS_OK)
        return status;
    int task = s->order[from];
    if (from < to)
        memmove(&s->order[from], &s->order[from + 1], (to - from) * sizeof task);
    else
        memmove(&s->order[to + 1], &s->order[to], (from - to) * sizeof task);
    s->order[to] = task;
    s->candidate[tune_rule_at(s->tune)] = ORDER_EXPLICIT;
    memcpy(climb_row(s, s->candidate, TUNE_ORDER), s->order, s->tune->tasks * sizeof task);
    return STATUS_OK;
}

/* Change s->candidate by move `number` of its kind. *possible: that is still a plan. */
static enum status make_move(struct tune_climb *s, enum move move, size_t number, bool *possible)
{
    size_t n = s->tune->tasks;
    int *depth = &s->candidate[tune_depth_at(s->tune)];
    enum status status = STATUS_OK;
    *possible = true;
    switch (move) {
    case MOVE_TASK_STAGE:
    case MOVE_BLOCK_STAGE:
    case MOVE_STREAM_STAGE:
    case MOVE_REST_STAGE:
        shift_stages(s, move, number);
        *possible = settle_stages(s, s->candidate);
        break;
    case MOVE_STREAM:
    case MOVE_GROUP:
    case MOVE_STREAM_GROUP: set_places(s, move, number); break;
    case MOVE_RULE: climb_set_rule(s, s->candidate, (int)number); break;
    case MOVE_ORDER:
        if (number / n != number % n)
            status = move_in_order(s, number / n, number % n);
        break;
    default: *depth += number ? 1 : -1; *possible = *depth >= 1 && *depth <= PLAN_MAX_DEPTH;
    }
    return status;
}

size_t moves_count(const struct tune_climb *s)
{
    size_t all = 0;
    for (int move = 0; move < MOVES; move++)
        all += count_moves(s->tune, (enum move)move);
    return all;
}

enum status moves_make(struct tune_climb *s, size_t number, bool *possible)
{
    int move = 0;
    for (; number >= count_moves(s->tune, (enum move)move); move++)
        number -= count_moves(s->tune, (enum move)move);
    return make_move(s, (enum move)move, number, possible);
}
