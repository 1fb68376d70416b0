/* SPDX-License-Identifier: Apache-2.0 */
/* page_path.c - see page_path.h. */
#include "page_path.h"

/* Edges by the span they lead to. */
struct inward {
    size_t *first; /* per span, and one behind the last */
    int *from;
};

static bool sort_edges(const struct trace *trace, struct arena *arena, struct inward *out)
{
    size_t *next = ARENA_ARRAY(arena, trace->span_count + 1, size_t);
    out->first = ARENA_ARRAY(arena, trace->span_count + 2, size_t);
    out->from = ARENA_ARRAY(arena, trace->edge_count + 1, int);
    if (!next || !out->first || !out->from)
        return false;
    for (size_t i = 0; i < trace->edge_count; i++)
        out->first[trace->edges[i].to + 1]++;
    for (size_t s = 0; s < trace->span_count; s++) {
        out->first[s + 1] += out->first[s];
        next[s] = out->first[s];
    }
    for (size_t i = 0; i < trace->edge_count; i++)
        out->from[next[trace->edges[i].to]++] = trace->edges[i].from;
    return true;
}

static int find_last(const struct trace *trace)
{
    int last = -1;
    for (size_t i = 0; i < trace->span_count; i++)
        if (trace->spans[i].kind != SPAN_WAIT &&
            (last < 0 || trace->spans[i].end_ns > trace->spans[last].end_ns))
            last = (int)i;
    return last;
}

/* Work leads to later work only, so that the walk ends: it begins earlier, or at the same time and is no shorter. */
static bool is_earlier(const struct trace_span *a, const struct trace_span *b)
{
    return a->kind != SPAN_WAIT &&
           (a->start_ns < b->start_ns || (a->start_ns == b->start_ns && a->end_ns < b->end_ns));
}

/* Of what the span needed, that which was over last; -1: nothing. */
static int find_cause(const struct trace *trace, const struct inward *inward, const int *before,
                      int span)
{
    const struct trace_span *spans = trace->spans;
    int best =
        before[span] >= 0 && is_earlier(&spans[before[span]], &spans[span]) ? before[span] : -1;
    for (size_t i = inward->first[span]; i < inward->first[span + 1]; i++) {
        int from = inward->from[i];
        if (is_earlier(&spans[from], &spans[span]) &&
            (best < 0 || spans[from].end_ns >= spans[best].end_ns))
            best = from;
    }
    return best;
}

bool page_path_find(const struct trace *trace, const int *before, struct arena *arena, int **path,
                    size_t *count)
{
    struct inward inward;
    size_t length = 0;
    if (!sort_edges(trace, arena, &inward))
        return false;
    int last = find_last(trace);
    for (int span = last; span >= 0; span = find_cause(trace, &inward, before, span))
        length++;
    *path = ARENA_ARRAY(arena, length + 1, int);
    *count = length;
    for (int span = last; *path && span >= 0; span = find_cause(trace, &inward, before, span))
        (*path)[--length] = span;
    return *path != NULL;
}
