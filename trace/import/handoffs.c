/* SPDX-License-Identifier: Apache-2.0 */
/* handoffs.c - see handoffs.h: all candidates, sorted, without those that others imply. */
#include "handoffs.h"

#include <stdlib.h>

/* Does call `a` begin before call `b`? In a thread the order of calls is that of their numbers. */
static bool comes_before(const struct job_rank *rank, int a, int b)
{
    const int64_t start_a = rank->calls[a].start_ns, start_b = rank->calls[b].start_ns;
    return start_a != start_b ? start_a < start_b : a < b;
}

static bool add(const struct job_rank *rank, struct handoffs *out, int call, int other, bool at_end)
{
    if (call < 0 || other < 0 || rank->calls[call].thread == rank->calls[other].thread ||
        !comes_before(rank, other, call))
        return true;
    if (out->count == out->cap) {
        const size_t cap = out->cap ? out->cap * 2 : 64;
        struct handoff *more = realloc(out->items, cap * sizeof *more);
        if (!more)
            return false;
        out->items = more;
        out->cap = cap;
    }
    out->items[out->count++] = (struct handoff){call, other, at_end};
    return true;
}

static bool add_stream_orders(const struct job_rank *rank, struct handoffs *out)
{
    for (size_t s = 0; s < rank->stream_count; s++) {
        int before = -1;
        for (int i = 0; i < rank->streams[s].count; i++) {
            const int call = rank->works[rank->by_stream[rank->streams[s].first + i]].call;
            if (call < 0)
                continue;
            if (!add(rank, out, call, before, false))
                return false;
            before = call;
        }
    }
    return true;
}

static bool add_records(const struct job_rank *rank, const struct evidence *evidence,
                        struct handoffs *out)
{
    for (size_t i = 0; i < evidence->edge_count; i++) {
        const struct edge_found *edge = &evidence->edges[i];
        if (!add(rank, out, rank->works[edge->work].call, rank->works[edge->source].call, false))
            return false;
    }
    for (size_t i = 0; i < rank->call_count; i++) {
        const int work = evidence->waits[i].work;
        if (rank->calls[i].kind == CALL_SYNC_EVENT && work >= 0 &&
            !add(rank, out, (int)i, rank->works[work].call, false))
            return false;
    }
    return true;
}

/* The first call of a thread that begins at `time_ns` or later; the number behind its last one if there is none. */
static int first_from(const struct job_rank *rank, int thread, int64_t time_ns)
{
    int low = rank->first_call[thread], high = rank->first_call[thread + 1];
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (rank->calls[middle].start_ns < time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The last call of another thread that was over at `time_ns`, made since `since_ns`, if its thread then made none for
   a while; -1. */
static int handed_over(const struct job_rank *rank, int thread, int64_t since_ns, int64_t time_ns)
{
    int best = -1;
    for (int other = 0; other < (int)rank->threads.count; other++) {
        const int next = first_from(rank, other, time_ns);
        if (other == thread || next == rank->first_call[other])
            continue;
        const struct job_call *last = &rank->calls[next - 1];
        const bool goes_on =
            next < rank->first_call[other + 1] && rank->calls[next].start_ns < time_ns + HANDOFF_NS;
        if (goes_on || last->end_ns > time_ns || last->end_ns < since_ns)
            continue;
        if (best < 0 || last->end_ns > rank->calls[best].end_ns)
            best = next - 1;
    }
    return best;
}

static bool add_idle_ends(const struct job_rank *rank, struct handoffs *out)
{
    for (int thread = 0; thread < (int)rank->threads.count; thread++) {
        int64_t idle_since = 0;
        for (int i = rank->first_call[thread]; i < rank->first_call[thread + 1]; i++) {
            const struct job_call *call = &rank->calls[i];
            if (call->start_ns - idle_since > HANDOFF_NS &&
                !add(rank, out, i, handed_over(rank, thread, idle_since, call->start_ns), true))
                return false;
            idle_since = call->end_ns > idle_since ? call->end_ns : idle_since;
        }
    }
    return true;
}

/* By call; then the latest ends and pushes first, which imply the others. */
static int compare(const void *left, const void *right)
{
    const struct handoff *a = left, *b = right;
    if (a->call != b->call)
        return a->call < b->call ? -1 : 1;
    if (a->other != b->other)
        return a->other > b->other ? -1 : 1;
    return b->at_end - a->at_end;
}

/* How far each thread has seen each other one: twice the number of the call, and one more at its end. */
static bool leave_out_implied(const struct job_rank *rank, struct handoffs *out)
{
    const size_t threads = rank->threads.count;
    int64_t *seen = malloc((threads * threads + 1) * sizeof *seen);
    if (!seen)
        return false;
    for (size_t i = 0; i < threads * threads; i++)
        seen[i] = -1;
    size_t kept = 0;
    for (size_t i = 0; i < out->count; i++) {
        const struct handoff *item = &out->items[i];
        const size_t row = (size_t)rank->calls[item->call].thread;
        int64_t *place = &seen[row * threads + (size_t)rank->calls[item->other].thread];
        const int64_t shows = 2 * (int64_t)item->other + item->at_end;
        if (shows <= *place)
            continue;
        *place = shows;
        out->items[kept++] = *item;
    }
    out->count = kept;
    free(seen);
    return true;
}

bool handoffs_find(const struct job_rank *rank, const struct evidence *evidence,
                   struct handoffs *out)
{
    *out = (struct handoffs){0};
    if (rank->threads.count < 2)
        return true;
    /* Threads of a job on CPUs work between their calls. */
    if (!add_stream_orders(rank, out) || !add_records(rank, evidence, out) ||
        (!rank->is_host && !add_idle_ends(rank, out)))
        return false;
    if (out->count > 0)
        qsort(out->items, out->count, sizeof *out->items, compare);
    return leave_out_implied(rank, out);
}

void handoffs_fini(struct handoffs *handoffs)
{
    free(handoffs->items);
    *handoffs = (struct handoffs){0};
}
