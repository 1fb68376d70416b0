/* SPDX-License-Identifier: Apache-2.0 */
/* host_waits.c - host_work.h: the waits that a trace tells, those that its times tell, and how long its threads are there. */
#include <stdlib.h>

#include "trace/job/call_names.h"
#include "host_work_internal.h"

/* A wait that is inferred ends so soon behind its operation. */
enum { SOON_NS = 500 * 1000 };
/* A thread that waits for so long has waited for the operation to end. */
enum { BLOCKED_NS = 20 * 1000 };

/* ---- waits ---------------------------------------------------------------------------------------- */

static bool add_wait(struct host_maker *maker, int deed, int thread, int64_t start_ns,
                     int64_t end_ns)
{
    struct job_rank *rank = maker->rank;
    const struct job_sync sync = {.correlation = host_id(deed, WAIT),
                                  .stream = -1,
                                  .source_stream = rank->streams[maker->stream[deed]].number,
                                  .is_event = true,
                                  .record = host_id(deed, RECORD)};
    maker->waited[deed] = true;
    rank->works[maker->work[deed]].awaited =
        host_is_message(maker, deed) && end_ns - start_ns > BLOCKED_NS;
    return job_add_sync(rank, &sync) &&
           host_add_call(maker, thread, rank->deeds[deed].name, CALL_SYNC_EVENT,
                         host_id(deed, WAIT), start_ns, end_ns);
}

/* Is this an operation that no thread has waited for yet? */
static bool is_open(const struct host_maker *maker, size_t deed)
{
    return maker->rank->deeds[deed].kind == DEED_DONE && maker->asked[deed] >= 0 &&
           !maker->waited[deed];
}

/* The operation that a thread's wait awaits: of those asked for before and not waited for yet the one that ends
   last within it, else the oldest one that has ended; -1. */
static int awaited(struct host_maker *maker, const struct job_deed *wait)
{
    const struct job_rank *rank = maker->rank;
    int within = -1, before = -1;
    while (maker->oldest < rank->deed_count && !is_open(maker, maker->oldest))
        maker->oldest++;
    for (size_t i = maker->oldest; i < rank->deed_count && rank->deeds[i].start_ns < wait->end_ns;
         i++) {
        const struct job_deed *done = &rank->deeds[i];
        const int asked = maker->asked[i];
        if (!is_open(maker, i) || rank->deeds[asked].start_ns > wait->start_ns ||
            rank->deeds[asked].thread != wait->thread || done->end_ns > wait->end_ns + SOON_NS)
            continue;
        if (done->end_ns <= wait->start_ns)
            before = before < 0 ? (int)i : before;
        else if (within < 0 || done->end_ns > rank->deeds[within].end_ns)
            within = (int)i;
    }
    return within >= 0 ? within : before;
}

static bool add_told_waits(struct host_maker *maker)
{
    const struct job_rank *rank = maker->rank;
    for (size_t i = 0; i < rank->deed_count; i++) {
        const struct job_deed *wait = &rank->deeds[i];
        const int deed = wait->kind == DEED_WAIT ? awaited(maker, wait) : -1;
        if (deed >= 0 && !add_wait(maker, deed, wait->thread, wait->start_ns, wait->end_ns))
            return false;
    }
    return true;
}

static int compare_edges(const void *left, const void *right)
{
    const struct edge *a = left, *b = right;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

static void add_edge(struct host_maker *maker, int thread, int64_t start_ns, int64_t end_ns)
{
    maker->edges[maker->edge_count++] = (struct edge){thread, start_ns};
    maker->edges[maker->edge_count++] = (struct edge){thread, end_ns};
}

/* The beginnings and ends of all annotations and operators. False without memory. */
static bool list_edges(struct host_maker *maker)
{
    const struct job_rank *rank = maker->rank;
    maker->edges = malloc((2 * (rank->range_count + rank->deed_count) + 1) * sizeof *maker->edges);
    if (!maker->edges)
        return false;
    for (size_t i = 0; i < rank->range_count; i++)
        add_edge(maker, rank->ranges[i].thread, rank->ranges[i].start_ns, rank->ranges[i].end_ns);
    for (size_t i = 0; i < rank->deed_count; i++)
        if (rank->deeds[i].kind == DEED_ASKED || rank->deeds[i].kind == DEED_WORKED)
            add_edge(maker, rank->deeds[i].thread, rank->deeds[i].start_ns, rank->deeds[i].end_ns);
    if (maker->edge_count > 0)
        qsort(maker->edges, maker->edge_count, sizeof *maker->edges, compare_edges);
    return true;
}

/* The last edge of the thread before this time, and the first one from it on. */
static void edges_around(const struct host_maker *maker, int thread, int64_t time_ns,
                         int64_t *before, int64_t *after)
{
    const struct edge key = {thread, time_ns};
    size_t low = 0, high = maker->edge_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare_edges(&maker->edges[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const struct edge *at = &maker->edges[low];
    *before = low > 0 && at[-1].thread == thread ? at[-1].time_ns : INT64_MIN;
    *after = low < maker->edge_count && at->thread == thread ? at->time_ns : INT64_MAX;
}

/* Of a message the end is that of its wait. */
static bool infer_wait(struct host_maker *maker, int deed)
{
    const struct job_rank *rank = maker->rank;
    const struct job_deed *done = &rank->deeds[deed], *asked = &rank->deeds[maker->asked[deed]];
    int64_t before, after;
    if (asked->waits)
        return add_wait(maker, deed, asked->thread, asked->end_ns, done->end_ns);
    edges_around(maker, asked->thread, done->end_ns, &before, &after);
    const bool goes_on = after <= done->end_ns + SOON_NS || host_is_message(maker, deed);
    return !goes_on || before < asked->start_ns ||
           add_wait(maker, deed, asked->thread, before, done->end_ns);
}

static bool add_inferred_waits(struct host_maker *maker)
{
    for (size_t i = 0; i < maker->rank->deed_count; i++)
        if (is_open(maker, i) && !infer_wait(maker, (int)i))
            return false;
    return true;
}

/* ---- threads -------------------------------------------------------------------------------------- */

/* A thread is there from its first annotation or operator to its last one; steps keep theirs. */
static bool add_ends(struct host_maker *maker)
{
    struct job_rank *rank = maker->rank;
    const int name = job_intern(maker->job, "edge");
    int64_t number, id = -2;
    for (size_t i = 0; name >= 0 && i < rank->range_count; i++) {
        const struct job_range *range = &rank->ranges[i];
        if (host_is_worker(maker, range->thread))
            continue;
        const bool step = range_is_step(maker->job->names.items[range->name], &number);
        const int64_t last_ns =
            step && range->end_ns > range->start_ns ? range->end_ns - 1 : range->end_ns;
        if (!host_add_call(maker, range->thread, name, CALL_OTHER, id--, range->start_ns, 0) ||
            !host_add_call(maker, range->thread, name, CALL_OTHER, id--, last_ns, 0))
            return false;
    }
    for (size_t i = 0; name >= 0 && i < maker->edge_count; i++) {
        const struct edge *edge = &maker->edges[i];
        const bool first = i == 0 || edge[-1].thread != edge->thread;
        const bool last = i + 1 == maker->edge_count || edge[1].thread != edge->thread;
        if ((first || last) && !host_is_worker(maker, edge->thread) &&
            !host_add_call(maker, edge->thread, name, CALL_OTHER, id--, edge->time_ns, 0))
            return false;
    }
    return name >= 0;
}

bool host_waits_make(struct host_maker *maker)
{
    return list_edges(maker) && add_told_waits(maker) && add_inferred_waits(maker) &&
           add_ends(maker);
}
