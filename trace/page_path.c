/* SPDX-License-Identifier: Apache-2.0 */
/* page_path.c - see page_path.h. */
#include "page_path.h"

#include <stdlib.h>

/* Edges by the span they lead to, and work by its end. */
struct inward {
    size_t *first; /* per span, and one behind the last */
    int *from;
    int *ends;
    size_t end_count;
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

static bool is_work(const struct trace_span *span)
{
    return span->kind == SPAN_DEVICE || span->kind == SPAN_HOST;
}

static int compare_ends(const void *left, const void *right, void *context)
{
    const struct trace_span *spans = context, *a = &spans[*(const int *)left],
                            *b = &spans[*(const int *)right];
    return (a->end_ns > b->end_ns) - (a->end_ns < b->end_ns);
}

static bool sort_ends(const struct trace *trace, struct arena *arena, struct inward *out)
{
    out->ends = ARENA_ARRAY(arena, trace->span_count + 1, int);
    out->end_count = 0;
    for (size_t i = 0; out->ends && i < trace->span_count; i++)
        if (is_work(&trace->spans[i]))
            out->ends[out->end_count++] = (int)i;
    if (out->ends && out->end_count)
        qsort_r(out->ends, out->end_count, sizeof *out->ends, compare_ends, trace->spans);
    return out->ends != NULL;
}

static int find_last(const struct trace *trace)
{
    int last = -1;
    for (size_t i = 0; i < trace->span_count; i++)
        if (is_work(&trace->spans[i]) &&
            (last < 0 || trace->spans[i].end_ns > trace->spans[last].end_ns))
            last = (int)i;
    return last;
}

/* Work leads to later work only, so that the walk ends: it begins earlier, or at the same time and is no shorter. */
static bool is_earlier(const struct trace_span *a, const struct trace_span *b)
{
    return is_work(a) &&
           (a->start_ns < b->start_ns || (a->start_ns == b->start_ns && a->end_ns < b->end_ns));
}

/* Work of the same rank is more likely to be the cause than that of another; a gap is between ranks as a rule. */
static int find_ending(const struct trace *trace, const struct inward *inward, int span)
{
    const struct trace_span *spans = trace->spans, *late = &spans[span];
    size_t low = 0, high = inward->end_count;
    int best = -1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (spans[inward->ends[middle]].end_ns < late->start_ns)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < inward->end_count && spans[inward->ends[low]].end_ns == late->start_ns; low++) {
        int from = inward->ends[low];
        bool near = trace->agents[spans[from].agent].rank == trace->agents[late->agent].rank;
        if (is_earlier(&spans[from], late) && (best < 0 || near))
            best = from;
    }
    return best;
}

/* Of what the span needed, that which was over last; -1: nothing. */
static int find_need(const struct trace *trace, const struct inward *inward, const int *before,
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

/* Edges lead neither from device to host nor from rank to rank, and know no order of a communicator: where they
   leave a gap, work that was over at the very start fills it. */
static int find_cause(const struct trace *trace, const struct inward *inward, const int *before,
                      int span)
{
    int need = find_need(trace, inward, before, span);
    bool gap = need < 0 || trace->spans[need].end_ns < trace->spans[span].start_ns;
    int ending = gap ? find_ending(trace, inward, span) : -1;
    return ending >= 0 ? ending : need;
}

bool page_path_find(const struct trace *trace, const int *before, struct arena *arena, int **path,
                    size_t *count)
{
    struct inward inward;
    size_t length = 0;
    if (!sort_edges(trace, arena, &inward) || !sort_ends(trace, arena, &inward))
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
