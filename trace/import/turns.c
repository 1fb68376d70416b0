/* SPDX-License-Identifier: Apache-2.0 */
/* turns.c - see turns.h. Copies of all lists, one rank behind the other; indices and times are displaced. */
#include "turns.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert_index.h"
#include "base/sort.h"

enum { PAUSE_NS = 1000 * 1000 * 1000 }; /* between two ranks */

/* The place at which the items of a rank begin in those of all. */
struct base {
    int call, work, range, pushed;
    int64_t later_ns;
    int *stream; /* per stream of the rank: that of all */
};

struct merger {
    const struct job *job;
    const struct evidence *evidence;
    struct arena *arena;
    struct turns *out;
    struct base *bases; /* per rank */
};

/* ---- streams --------------------------------------------------------------------------------- */

static int by_stream_number(const void *left, const void *right, void *context)
{
    const struct job_stream *streams = context;
    return compare_i64(streams[*(const int *)left].number, streams[*(const int *)right].number);
}

/* The streams of a rank in the order of their numbers. */
static int *sorted_streams(const struct job_rank *rank, struct arena *arena)
{
    int *order = ARENA_ARRAY(arena, rank->stream_count + 1, int);
    for (size_t s = 0; order && s < rank->stream_count; s++)
        order[s] = (int)s;
    if (order)
        SORT_BY(order, rank->stream_count, by_stream_number, rank->streams);
    return order;
}

/* As many as the first rank has: by place. */
static bool have_same_count(const struct job *job)
{
    for (size_t r = 1; r < job->rank_count; r++)
        if (job->ranks[r].stream_count != job->ranks[0].stream_count)
            return false;
    return true;
}

static int turns_find_stream(const struct job_rank *all, int64_t number)
{
    for (size_t s = 0; s < all->stream_count; s++)
        if (all->streams[s].number == number)
            return (int)s;
    return -1;
}

static bool map_rank(struct merger *merger, size_t r, bool by_place, const int *first_order)
{
    ASSERT_INDEX(r, merger->job->rank_count);
    const struct job_rank *rank = &merger->job->ranks[r];
    struct job_rank *all = &merger->out->rank;
    int *map = merger->bases[r].stream = ARENA_ARRAY(merger->arena, rank->stream_count + 1, int);
    const int *order = sorted_streams(rank, merger->arena);
    if (!map || !order)
        return false;
    for (size_t i = 0; i < rank->stream_count; i++) {
        const struct job_stream *stream = &rank->streams[order[i]];
        int at = by_place && r > 0 ? first_order[i] : turns_find_stream(all, stream->number);
        if (at < 0 || r == 0) {
            at = r == 0 ? order[i] : (int)all->stream_count;
            all->streams[at] = *stream;
            all->streams[at].first = all->streams[at].count = 0;
            all->stream_count++;
        }
        map[order[i]] = at;
        all->streams[at].count += stream->count;
    }
    return true;
}

static bool map_streams(struct merger *merger)
{
    const struct job *job = merger->job;
    struct job_rank *all = &merger->out->rank;
    const bool by_place = have_same_count(job);
    const int *first = sorted_streams(&job->ranks[0], merger->arena);
    size_t most = 0;
    for (size_t r = 0; r < job->rank_count; r++)
        most += job->ranks[r].stream_count;
    all->streams = ARENA_ARRAY(merger->arena, most + 1, struct job_stream);
    all->stream_count = 0;
    if (!first || !all->streams)
        return false;
    for (size_t r = 0; r < job->rank_count; r++)
        if (!map_rank(merger, r, by_place, first))
            return false;
    for (size_t s = 1; s < all->stream_count; s++)
        all->streams[s].first = all->streams[s - 1].first + all->streams[s - 1].count;
    return true;
}

/* ---- the items of a rank --------------------------------------------------------------------- */

static void copy_calls(struct merger *merger, size_t r)
{
    ASSERT_INDEX(r, merger->job->rank_count);
    const struct job_rank *from = &merger->job->ranks[r];
    const struct base *base = &merger->bases[r];
    struct job_call *calls = merger->out->rank.calls + base->call;
    for (size_t i = 0; i < from->call_count; i++) {
        calls[i] = from->calls[i];
        calls[i].first_work += base->pushed;
        calls[i].start_ns += base->later_ns;
        calls[i].end_ns += base->later_ns;
    }
}

static void copy_works(struct merger *merger, size_t r)
{
    const struct job_rank *from = &merger->job->ranks[r];
    const struct base *base = &merger->bases[r];
    struct job_work *works = merger->out->rank.works + base->work;
    for (size_t i = 0; i < from->work_count; i++) {
        works[i] = from->works[i];
        works[i].stream = base->stream[works[i].stream];
        assert(works[i].stream >= 0 && (size_t)works[i].stream < merger->out->rank.stream_count);
        works[i].call += works[i].call >= 0 ? base->call : 0;
        works[i].start_ns += base->later_ns;
        works[i].end_ns += base->later_ns;
    }
}

static void copy_ranges(struct merger *merger, size_t r)
{
    ASSERT_INDEX(r, merger->job->rank_count);
    const struct job_rank *from = &merger->job->ranks[r];
    const struct base *base = &merger->bases[r];
    struct job_range *ranges = merger->out->rank.ranges + base->range;
    for (size_t i = 0; i < from->range_count; i++) {
        ranges[i] = from->ranges[i];
        ranges[i].start_ns += base->later_ns;
        ranges[i].end_ns += base->later_ns;
    }
}

/* Behind those of the ranks before it, on each stream; `filled`: how many of a stream are there. */
static void copy_orders(struct merger *merger, size_t r, int *filled)
{
    const struct job_rank *from = &merger->job->ranks[r];
    const struct base *base = &merger->bases[r];
    struct job_rank *all = &merger->out->rank;
    for (size_t s = 0; s < from->stream_count; s++) {
        const int to = base->stream[s];
        for (int i = 0; i < from->streams[s].count; i++)
            all->by_stream[all->streams[to].first + filled[to]++] =
                base->work + from->by_stream[from->streams[s].first + i];
        assert(filled[to] <= all->streams[to].count);
    }
}

static void copy_evidence(struct merger *merger, size_t r)
{
    const struct job_rank *rank = &merger->job->ranks[r];
    const struct evidence *from = &merger->evidence[r];
    const struct base *base = &merger->bases[r];
    struct evidence *out = &merger->out->evidence;
    for (size_t i = 0; i < rank->work_count; i++) {
        struct reason *reason = &out->reasons[base->work + (int)i];
        *reason = from->reasons[i];
        reason->source += reason->source >= 0 ? base->work : 0;
        reason->from_ns += base->later_ns;
        reason->ready_ns += base->later_ns;
        reason->other_ready_ns += base->later_ns;
    }
    for (size_t i = 0; i < from->edge_count; i++)
        out->edges[out->edge_count++] =
            (struct edge_found){from->edges[i].work + base->work,
                                from->edges[i].source + base->work, from->edges[i].word};
    for (size_t i = 0; i < rank->call_count; i++) {
        struct host_wait *wait = &out->waits[base->call + (int)i];
        *wait = from->waits[i];
        wait->stream = wait->stream >= 0 ? base->stream[wait->stream] : -1;
        wait->work += wait->work >= 0 ? base->work : 0;
    }
    for (size_t s = 0; s < rank->stream_count; s++)
        ledger_add(&out->streams[base->stream[s]], &from->streams[s]);
    assert(out->edge_count <= out->edge_cap);
    ledger_add(&out->total, &from->total);
    out->latency_ns += from->latency_ns / (int64_t)merger->job->rank_count;
}

/* ---- all ranks ------------------------------------------------------------------------------- */

static int64_t first_time(const struct job_rank *rank)
{
    int64_t first = 0;
    for (size_t i = 0; i < rank->range_count; i++)
        first = rank->ranges[i].start_ns < first ? rank->ranges[i].start_ns : first;
    return first;
}

static int64_t last_time(const struct job_rank *rank)
{
    int64_t last = rank->end_ns;
    for (size_t i = 0; i < rank->range_count; i++)
        last = rank->ranges[i].end_ns > last ? rank->ranges[i].end_ns : last;
    return last;
}

/* The first rank keeps its times. */
static void take_sizes(struct merger *merger)
{
    struct job_rank *all = &merger->out->rank;
    int pushed = 0;
    int64_t later_ns = first_time(&merger->job->ranks[0]);
    for (size_t r = 0; r < merger->job->rank_count; r++) {
        const struct job_rank *rank = &merger->job->ranks[r];
        struct base *base = &merger->bases[r];
        base->call = (int)all->call_count;
        base->work = (int)all->work_count;
        base->range = (int)all->range_count;
        base->pushed = pushed;
        all->call_count += rank->call_count;
        all->work_count += rank->work_count;
        all->range_count += rank->range_count;
        merger->out->evidence.edge_cap += merger->evidence[r].edge_count;
        for (size_t i = 0; i < rank->call_count; i++)
            pushed += rank->calls[i].work_count;
        base->later_ns = later_ns - first_time(rank);
        later_ns = base->later_ns + last_time(rank) + PAUSE_NS;
    }
}

static bool turns_make_room(struct merger *merger)
{
    struct job_rank *all = &merger->out->rank;
    struct evidence *evidence = &merger->out->evidence;
    struct arena *arena = merger->arena;
    all->calls = ARENA_ARRAY(arena, all->call_count + 1, struct job_call);
    all->works = ARENA_ARRAY(arena, all->work_count + 1, struct job_work);
    all->ranges = ARENA_ARRAY(arena, all->range_count + 1, struct job_range);
    all->by_stream = ARENA_ARRAY(arena, all->work_count + 1, int);
    evidence->reasons = ARENA_ARRAY(arena, all->work_count + 1, struct reason);
    evidence->edges = ARENA_ARRAY(arena, evidence->edge_cap + 1, struct edge_found);
    evidence->waits = ARENA_ARRAY(arena, all->call_count + 1, struct host_wait);
    evidence->streams = ARENA_ARRAY(arena, all->stream_count + 1, struct ledger);
    return all->calls && all->works && all->ranges && all->by_stream && evidence->reasons &&
           evidence->edges && evidence->waits && evidence->streams;
}

static bool copy_meetings(struct merger *merger, const struct meetings *meetings)
{
    struct turns *out = merger->out;
    if (merger->job->rank_count == 1)
        return true;
    out->meetings = ARENA_ARRAY(merger->arena, out->rank.work_count + 1, struct meetings_meeting);
    for (size_t r = 0; out->meetings && r < merger->job->rank_count; r++)
        memcpy(&out->meetings[merger->bases[r].work], meetings->of[r],
               merger->job->ranks[r].work_count * sizeof *out->meetings);
    return out->meetings != NULL;
}

bool turns_take(const struct job *job, const struct evidence *evidence,
                const struct meetings *meetings, struct arena *arena, struct turns *out)
{
    struct merger merger = {.job = job, .evidence = evidence, .arena = arena, .out = out};
    *out = (struct turns){.rank = {.file = job->ranks[0].file}, .count = job->rank_count};
    merger.bases = ARENA_ARRAY(arena, job->rank_count, struct base);
    out->ranks = ARENA_ARRAY(arena, job->rank_count, struct job_rank);
    if (!merger.bases || !out->ranks)
        return false;
    take_sizes(&merger);
    int *filled = NULL;
    if (map_streams(&merger) && turns_make_room(&merger))
        filled = ARENA_ARRAY(arena, out->rank.stream_count + 1, int);
    if (!filled || !copy_meetings(&merger, meetings))
        return false;
    for (size_t r = 0; r < job->rank_count; r++) {
        copy_calls(&merger, r);
        copy_works(&merger, r);
        copy_ranges(&merger, r);
        copy_orders(&merger, r, filled);
        copy_evidence(&merger, r);
        /* The rank as it was, with its own part of the lists. */
        struct job_rank part = merger.job->ranks[r];
        part.calls = merger.out->rank.calls + merger.bases[r].call;
        part.works = merger.out->rank.works + merger.bases[r].work;
        part.ranges = merger.out->rank.ranges + merger.bases[r].range;
        out->ranks[r] = part;
    }
    return true;
}
