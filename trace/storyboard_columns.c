/* SPDX-License-Identifier: Apache-2.0 */
/* storyboard_columns.c - see storyboard_columns.h. */
#include "storyboard_columns.h"

#include "base/repeats.h"

enum {
    LONG = BAND_STEPS + BAND_SLACK, /* columns of a witness that is shortened if it has more */
    WHOLE_END = 10,                 /* steps at the end that are never folded, */
    LEAST_FOLDED = 6,               /* the fewest that a repeat leaves out, */
    LEAST_RUN = 4,                  /* and the fewest of a run */
    FIRST_SHOWN = BAND_STEPS,       /* columns in front of those that are left out, */
    LAST_SHOWN = 3 * BAND_STEPS     /* and behind them */
};

struct folding {
    const struct trace *trace;
    int64_t steps;
    uint64_t *keys; /* of each step; those that are to stay by themselves are like no other */
    bool *alone;
    int *thread_of; /* the agent of a step; -1: no thread's */
    struct columns *out;
};

const struct trace_step *columns_step(const struct trace *trace, int64_t seq)
{
    if (seq >= 0 && (size_t)seq < trace->step_count && trace->steps[seq].seq == seq)
        return &trace->steps[seq]; /* the order of a store, and of the checker */
    return NULL;
}

/* ---- the steps ------------------------------------------------------------------------------- */

static void mark_races(struct folding *folding)
{
    const struct trace *trace = folding->trace;
    for (size_t i = 0; i < trace->edge_count; i++)
        for (int end = 0; trace->edges[i].kind == EDGE_RACE && end < 2; end++) {
            int64_t s = trace->spans[end ? trace->edges[i].to : trace->edges[i].from].start_ns;
            if (s < folding->steps)
                folding->alone[s] = true;
        }
}

static void find_threads(struct folding *folding)
{
    const struct trace *trace = folding->trace;
    for (int64_t s = 0; s < folding->steps; s++)
        folding->thread_of[s] = -1;
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct trace_span *span = &trace->spans[i];
        if (span->start_ns < folding->steps && span->kind != SPAN_WAIT &&
            trace->agents[span->agent].kind != TRACE_STREAM)
            folding->thread_of[span->start_ns] = span->agent;
    }
}

static bool read_steps(struct folding *folding, struct arena *arena)
{
    size_t count = (size_t)folding->steps + 1;
    folding->keys = ARENA_ARRAY(arena, count, uint64_t);
    folding->alone = ARENA_ARRAY(arena, count, bool);
    folding->thread_of = ARENA_ARRAY(arena, count, int);
    if (!folding->keys || !folding->alone || !folding->thread_of)
        return false;
    mark_races(folding);
    find_threads(folding);
    for (int64_t s = 0; s < folding->steps; s++) {
        const struct trace_step *step = columns_step(folding->trace, s);
        folding->keys[s] = step && !folding->alone[s]
                               ? repeats_key(step->op, repeats_key(step->agent, 1))
                               : (uint64_t)s + 2;
    }
    return true;
}

/* ---- the columns ----------------------------------------------------------------------------- */

static void add_column(struct columns *out, struct column column)
{
    out->items[out->count++] = column;
}

static void add_steps(struct columns *out, int64_t first, int64_t end)
{
    for (int64_t step = first; step < end; step++)
        add_column(out, (struct column){.first = step, .last = step});
}

/* A stretch of steps that comes several times in a row is told once. */
static bool fold_repeats(struct folding *folding, struct arena *arena)
{
    size_t steps = (size_t)folding->steps;
    struct stretch *found = ARENA_ARRAY(arena, steps / 2 + 1, struct stretch);
    if (!found)
        return false;
    size_t count = folding->steps > LONG
                       ? repeats_find(folding->keys, steps - WHOLE_END, LEAST_FOLDED, found)
                       : 0;
    int64_t step = 0;
    for (size_t f = 0; f < count; f++) {
        int64_t once = (int64_t)(found[f].first + found[f].length);
        int64_t end = (int64_t)(found[f].first + found[f].times * found[f].length);
        add_steps(folding->out, step, once);
        add_column(folding->out, (struct column){.kind = COLUMN_REPEAT,
                                                 .first = once,
                                                 .last = end - 1,
                                                 .length = found[f].length,
                                                 .times = found[f].times - 1});
        step = end;
    }
    add_steps(folding->out, step, folding->steps);
    return true;
}

/* Column `at` and the next one are steps of one thread. */
static bool goes_on(const struct folding *folding, int64_t at)
{
    const struct column *column = &folding->out->items[at];
    if (at + 1 >= folding->out->count || column[0].kind != COLUMN_STEP ||
        column[1].kind != COLUMN_STEP || column[1].last >= folding->steps - WHOLE_END)
        return false;
    int64_t step = column->first;
    return folding->thread_of[step] >= 0 &&
           folding->thread_of[step] == folding->thread_of[step + 1] && !folding->alone[step] &&
           !folding->alone[step + 1];
}

static void fold_runs(struct folding *folding)
{
    struct column *items = folding->out->items;
    int64_t kept = 0;
    for (int64_t at = 0; at < folding->out->count;) {
        int64_t last = at;
        while (goes_on(folding, last))
            last++;
        if (last - at + 1 < LEAST_RUN) {
            items[kept++] = items[at++];
            continue;
        }
        items[kept++] = (struct column){.kind = COLUMN_RUN,
                                        .first = items[at].first,
                                        .last = items[last].last,
                                        .agent = folding->thread_of[items[at].first]};
        at = last + 1;
    }
    folding->out->count = kept;
}

static bool has_alone(const struct folding *folding, const struct column *column)
{
    for (int64_t step = column->first; step <= column->last; step++)
        if (folding->alone[step])
            return true;
    return false;
}

static void leave_out_middle(struct folding *folding)
{
    struct column *items = folding->out->items;
    int64_t kept = FIRST_SHOWN, end = folding->out->count - LAST_SHOWN;
    for (int64_t at = FIRST_SHOWN; at < folding->out->count; at++) {
        bool shown = at >= end || has_alone(folding, &items[at]);
        struct column *before = &items[kept - 1];
        if (!shown && before->kind == COLUMN_LEFT_OUT) {
            before->last = items[at].last;
            continue;
        }
        items[kept] = items[at];
        if (!shown)
            items[kept].kind = COLUMN_LEFT_OUT;
        kept++;
    }
    folding->out->count = kept;
}

bool columns_choose(struct columns *out, const struct trace *trace, int64_t steps,
                    struct arena *arena)
{
    struct folding folding = {.trace = trace, .steps = steps, .out = out};
    *out = (struct columns){.items = ARENA_ARRAY(arena, (size_t)steps + 1, struct column),
                            .of_step = ARENA_ARRAY(arena, (size_t)steps + 1, int64_t)};
    if (!out->items || !out->of_step || !read_steps(&folding, arena) ||
        !fold_repeats(&folding, arena))
        return false;
    if (out->count > LONG)
        fold_runs(&folding);
    if (out->count > FIRST_SHOWN + LAST_SHOWN + BAND_SLACK)
        leave_out_middle(&folding);
    for (int64_t c = 0; c < out->count; c++)
        for (int64_t step = out->items[c].first; step <= out->items[c].last; step++)
            out->of_step[step] = c;
    return true;
}
