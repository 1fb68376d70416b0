/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_fold.c - see timeline_view.h: spans in order, and ranks that look alike. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "timeline_view.h"

/* ---- order ----------------------------------------------------------------------------------- */

static int compare_spans(const void *left, const void *right, void *context)
{
    const struct trace_span *spans = context, *a = &spans[*(const int *)left],
                            *b = &spans[*(const int *)right];
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return (a->end_ns > b->end_ns) - (a->end_ns < b->end_ns);
}

bool timeline_order(struct view *view)
{
    const struct trace *trace = view->trace;
    size_t *next = ARENA_ARRAY(view->arena, trace->agent_count + 1, size_t);
    view->first = ARENA_ARRAY(view->arena, trace->agent_count + 2, size_t);
    view->order = ARENA_ARRAY(view->arena, trace->span_count + 1, int);
    if (!next || !view->first || !view->order)
        return false;
    for (size_t i = 0; i < trace->span_count; i++)
        view->first[trace->spans[i].agent + 1]++;
    for (size_t a = 0; a < trace->agent_count; a++) {
        view->first[a + 1] += view->first[a];
        next[a] = view->first[a];
    }
    for (size_t i = 0; i < trace->span_count; i++)
        view->order[next[trace->spans[i].agent]++] = (int)i;
    for (size_t a = 0; a < trace->agent_count; a++)
        if (view->first[a + 1] > view->first[a])
            qsort_r(view->order + view->first[a], view->first[a + 1] - view->first[a],
                    sizeof *view->order, compare_spans, trace->spans);
    return true;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

static bool is_shown(const struct view *view, size_t agent)
{
    return view->lanes.of_agent[agent] == 0;
}

/* The next work of an agent in the window; NULL: no more. */
static const struct trace_span *next_work(const struct view *view, size_t agent, size_t *at)
{
    while (*at < view->first[agent + 1]) {
        const struct trace_span *span = &view->trace->spans[view->order[(*at)++]];
        if (span->kind != SPAN_WAIT && view_has(view, span))
            return span;
    }
    return NULL;
}

/* To the eye: ends less than a point apart are the same. */
static bool are_alike(const struct view *view, const struct trace_span *a,
                      const struct trace_span *b)
{
    return a->task == b->task && a->iteration == b->iteration &&
           fabs(view_x(view, a->start_ns) - view_x(view, b->start_ns)) < 1 &&
           fabs(view_x(view, a->end_ns) - view_x(view, b->end_ns)) < 1;
}

static bool do_the_same(const struct view *view, size_t a, size_t b)
{
    const struct trace_agent *left = &view->trace->agents[a], *right = &view->trace->agents[b];
    size_t at = view->first[a], bt = view->first[b];
    if (left->kind != right->kind || strcmp(left->name, right->name) != 0)
        return false;
    for (;;) {
        const struct trace_span *x = next_work(view, a, &at), *y = next_work(view, b, &bt);
        if (!x || !y)
            return !x && !y;
        if (!are_alike(view, x, y))
            return false;
    }
}

/* The shown agents of each rank, in the order of the trace. */
struct members {
    size_t *agents, *first; /* first: per rank, and one behind the last */
};

static bool find_members(const struct view *view, struct members *out)
{
    size_t ranks = (size_t)view->rank_count, count = view->trace->agent_count;
    size_t *next = ARENA_ARRAY(view->arena, ranks + 1, size_t);
    out->agents = ARENA_ARRAY(view->arena, count + 1, size_t);
    out->first = ARENA_ARRAY(view->arena, ranks + 2, size_t);
    if (!next || !out->agents || !out->first)
        return false;
    for (size_t a = 0; a < count; a++)
        out->first[view->trace->agents[a].rank + 1] += is_shown(view, a);
    for (size_t r = 0; r < ranks; r++) {
        out->first[r + 1] += out->first[r];
        next[r] = out->first[r];
    }
    for (size_t a = 0; a < count; a++)
        if (is_shown(view, a))
            out->agents[next[view->trace->agents[a].rank]++] = a;
    return true;
}

static bool ranks_are_alike(const struct view *view, const struct members *members, int a, int b)
{
    size_t count = members->first[a + 1] - members->first[a];
    if (count == 0 || count != members->first[b + 1] - members->first[b])
        return false;
    for (size_t i = 0; i < count; i++)
        if (!do_the_same(view, members->agents[members->first[a] + i],
                         members->agents[members->first[b] + i]))
            return false;
    return true;
}

/* Each rank is held against the first of every group so far. */
bool timeline_fold(struct view *view)
{
    enum { MOST_GROUPS = 32 }; /* more would not be a picture anyway */
    struct members members;
    int groups[MOST_GROUPS], count = 0;
    view->like = ARENA_ARRAY(view->arena, (size_t)view->rank_count + 1, int);
    if (!view->like || !find_members(view, &members))
        return false;
    for (int rank = 0; rank < view->rank_count; rank++) {
        int g = 0;
        while (g < count && !ranks_are_alike(view, &members, groups[g], rank))
            g++;
        view->like[rank] = g < count ? groups[g] : rank;
        if (g == count && count < MOST_GROUPS)
            groups[count++] = rank;
    }
    return true;
}

const char *timeline_group_name(const struct view *view, int group)
{
    const char *text = NULL;
    int last = -1;
    for (int rank = group; rank < view->rank_count; rank++) {
        int end = rank;
        if (view->like[rank] != group)
            continue;
        while (end + 1 < view->rank_count && view->like[end + 1] == group)
            end++;
        last = end;
        text = end > rank
                   ? arena_printf(view->arena, "%s%s%d-%d", text ? text : "", text ? ", " : "",
                                  rank, end)
                   : arena_printf(view->arena, "%s%s%d", text ? text : "", text ? ", " : "", rank);
        rank = end;
    }
    return last > group ? arena_printf(view->arena, "ranks %s alike:", text) : NULL;
}
