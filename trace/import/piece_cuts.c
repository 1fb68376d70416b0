/* SPDX-License-Identifier: Apache-2.0 */
/* piece_cuts.c - where a run of work is cut: see pieces.h. */
#include "pieces_internal.h"

#include "base/assert_index.h"
#include "base/sort.h"

static bool is_event(enum idle cause)
{
    return cause == IDLE_EVENT_ID || cause == IDLE_EVENT_CALL || cause == IDLE_EVENT_TIME ||
           cause == IDLE_RESIDENCY;
}

int64_t pieces_push_time(const struct piece_search *search, int work)
{
    ASSERT_INDEX(work, search->rank->work_count);
    const struct job_work *w = &search->rank->works[work];
    if (w->call < 0)
        return INT64_MIN;
    if (search->evidence->reasons[work].cause == IDLE_LAUNCH)
        return w->start_ns;
    const int64_t usual = search->rank->calls[w->call].start_ns + search->evidence->latency_ns;
    return usual < w->start_ns ? usual : w->start_ns;
}

/* The beginning of the idle time in front of a work: after the one before it and, for an event, after its push. */
static int64_t idle_since(const struct piece_search *search, int work)
{
    const int before = search->before[work];
    int64_t from = before >= 0 ? search->rank->works[before].end_ns : INT64_MIN;
    if (search->evidence->reasons[work].cause != IDLE_LAUNCH)
        from = later_of(from, pieces_push_time(search, work));
    const int64_t start = search->rank->works[work].start_ns;
    return from == INT64_MIN || from > start ? start : from;
}

static int64_t idle_before(const struct piece_search *search, int work)
{
    ASSERT_INDEX(work, search->rank->work_count);
    return search->rank->works[work].start_ns - idle_since(search, work);
}

/* True if waiting for other ranks is so long that as a rank's own time it would make the step longer. It depends on no
   option. */
static bool is_long_for_peers(const struct piece_search *search, int64_t sum_ns)
{
    enum { SHARE = 50 };
    return sum_ns / search->steps > search->sections->period_ns / SHARE;
}

/* The source of a work's edges that ends last; -1. */
static int last_source(const struct piece_search *search, int work)
{
    const struct evidence *evidence = search->evidence;
    size_t low = SORT_FIRST(i, 0, evidence->edge_count, evidence->edges[i].work >= work);
    int best = -1;
    for (; low < evidence->edge_count && evidence->edges[low].work == work; low++) {
        const int source = evidence->edges[low].source;
        if (best < 0 || search->rank->works[source].end_ns > search->rank->works[best].end_ns)
            best = source;
    }
    return best;
}

static void cut_behind(struct piece_search *search, int work)
{
    if (work >= 0 && search->slot_of[work] >= 0)
        search->cut[search->slot_of[work] + 1] = true;
}

/* Cuts at a slot that events delay for long, and around a long collective. */
static void cut_slot(struct piece_search *search, int slot)
{
    int64_t delayed = 0, for_peers = 0, collective = 0;
    bool meets = false;
    for (int step = 0; step < search->steps; step++) {
        const int work = pieces_work_at(search, slot, step);
        if (work < 0)
            continue;
        const struct job_work *w = &search->rank->works[work];
        if (is_event(search->evidence->reasons[work].cause)) {
            delayed += idle_before(search, work);
            for_peers += pieces_peer_ns(search, idle_since(search, work), w->start_ns);
        }
        collective += w->is_collective ? w->end_ns - w->start_ns : 0;
        meets |= pieces_meeting(search, work) != NULL;
    }
    const bool is_long = meets || collective > search->long_ns * search->steps;
    if (!is_long && delayed <= search->long_ns * search->steps &&
        !is_long_for_peers(search, for_peers))
        return;
    search->cut[slot] = true;
    if (is_long)
        search->cut[slot + 1] = true;
    for (int step = 0; step < search->steps; step++) {
        const int work = pieces_work_at(search, slot, step);
        if (work >= 0)
            cut_behind(search, last_source(search, work));
    }
}

/* The work that the call of a wait waits for in a step; -1. */
static int waited_work(const struct piece_search *search, const struct wait_slot *wait, int step)
{
    const int call = step >= 0 ? wait->calls[step] : -1;
    return call >= 0 ? search->evidence->waits[call].work : -1;
}

/* The work of its stream that a wait is for, since the wait that was kept before it, or since its own one of the step
   before: how long the thread may have to wait if the rest of the step becomes shorter. */
static int64_t piece_cuts_waited_for(const struct piece_search *search,
                                     const struct wait_slot *wait, int step)
{
    const struct job_work *works = search->rank->works;
    const int work = waited_work(search, wait, step);
    if (work < 0)
        return 0;
    const struct section_step *steps = search->sections->steps;
    const bool same_rank = step > 0 && steps[step].rank == steps[step - 1].rank;
    const int earlier = same_rank ? waited_work(search, wait, step - 1) : -1;
    int64_t since =
        earlier >= 0 && works[earlier].stream == works[work].stream ? search->sum[earlier] : 0;
    for (const struct wait_slot *other = search->waits; other < search->waits + search->wait_count;
         other++) {
        const int kept = other->kept ? waited_work(search, other, step) : -1;
        if (kept >= 0 && works[kept].stream == works[work].stream &&
            search->sum[kept] <= search->sum[work])
            since = later_of(since, search->sum[kept]);
    }
    return search->sum[work] - since;
}

/* After a long wait all streams begin anew, in the first step that has it; the work that it is for is the last one of
   its piece. */
static void cut_wait(struct piece_search *search, struct wait_slot *wait)
{
    int64_t blocked = 0, for_peers = 0, behind = 0;
    int step = -1;
    for (int s = 0; s < search->steps; s++) {
        const int call = wait->calls[s];
        const int64_t start_ns = call >= 0 ? search->rank->calls[call].start_ns : 0;
        const int64_t blocked_ns = call >= 0 ? pieces_blocked_ns(search, call) : 0;
        blocked += blocked_ns;
        for_peers += pieces_peer_ns(search, start_ns, start_ns + blocked_ns);
        behind += piece_cuts_waited_for(search, wait, s);
        step = step < 0 && wait->calls[s] >= 0 ? s : step;
    }
    wait->kept = blocked > search->long_ns * search->steps ||
                 behind > search->long_ns * search->steps || is_long_for_peers(search, for_peers);
    if (!wait->kept)
        return;
    const int64_t begin = search->rank->calls[wait->calls[step]].start_ns;
    for (int stream = 0; stream < search->streams; stream++) {
        const int *base = &search->base[wait->section * search->streams + stream];
        for (int slot = base[0]; slot < base[1]; slot++) {
            const int work = pieces_work_at(search, slot, step);
            const int call = work >= 0 ? search->rank->works[work].call : -1;
            if (call < 0 || search->rank->calls[call].start_ns <= begin)
                continue;
            search->cut[slot] = true;
            break;
        }
    }
    for (int s = 0; s < search->steps; s++)
        if (wait->calls[s] >= 0)
            cut_behind(search, search->evidence->waits[wait->calls[s]].work);
}

/* The end of the piece that begins at `slot`. */
int pieces_run_end(const struct piece_search *search, int slot, int end)
{
    slot++;
    while (slot < end && !search->cut[slot])
        slot++;
    return slot;
}

/* The mean idle time in front of a slot that its launch causes. */
static int64_t launch_idle(const struct piece_search *search, int slot)
{
    int64_t sum = 0;
    for (int step = 0; step < search->steps; step++) {
        const int work = pieces_work_at(search, slot, step);
        if (work >= 0 && search->evidence->reasons[work].cause == IDLE_LAUNCH)
            sum += idle_before(search, work);
    }
    return sum / search->steps;
}

/* Cuts a run that launches delay for long at the last work that one delays. */
static void cut_launched(struct piece_search *search, int first, int end)
{
    enum { NOTABLE_NS = 2000 };
    int64_t sum = 0;
    int last = -1;
    for (int slot = first + 1; slot < end; slot++) {
        const int64_t idle = launch_idle(search, slot);
        sum += idle;
        last = idle > NOTABLE_NS ? slot : last;
    }
    if (last > 0 && sum > search->long_ns)
        search->cut[last] = search->beside[last] = true;
}

void pieces_find_cuts(struct piece_search *search)
{
    for (int slot = 0; slot < search->slots; slot++)
        cut_slot(search, slot);
    for (size_t i = 0; i < search->wait_count; i++)
        cut_wait(search, &search->waits[i]);
    const int runs = (int)search->sections->count * search->streams;
    for (int run = 0; run < runs; run++)
        for (int slot = search->base[run]; slot < search->base[run + 1];) {
            const int end = pieces_run_end(search, slot, search->base[run + 1]);
            cut_launched(search, slot, end);
            slot = end;
        }
}
