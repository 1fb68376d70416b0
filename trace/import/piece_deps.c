/* SPDX-License-Identifier: Apache-2.0 */
/* piece_deps.c - what pieces wait for, as most steps show it and none contradicts. */
#include "pieces_internal.h"

#include "base/array.h"
#include "base/assert_index.h"

/* Works and waits by their place in the steps. */

int *pieces_filled(struct arena *arena, size_t count, int value)
{
    int *items = ARENA_ARRAY(arena, count + 1, int);
    for (size_t i = 0; items && i < count; i++)
        items[i] = value;
    return items;
}

/* ---- where works are --------------------------------------------------------------------------- */

/* True if a work is of another rank than the one before it on its stream. */
static bool begins_turn(const struct piece_search *search, int work, int before)
{
    const struct turns *turns = search->turns;
    for (size_t r = 1; r < turns->count; r++) {
        const int first = (int)(turns->ranks[r].works - turns->rank.works);
        if (before < first)
            return work >= first;
    }
    return false;
}

/* The places of a stream's works: step * sections + section, or -1. One without a launch is where the one before is. */
static void place_stream(const struct piece_search *search, int stream, int *place)
{
    const struct job_rank *rank = search->rank;
    ASSERT_INDEX(stream, rank->stream_count);
    const struct job_stream *s = &rank->streams[stream];
    int last = -1;
    for (int i = 0; i < s->count; i++) {
        const int work = rank->by_stream[s->first + i];
        if (i == 0 || begins_turn(search, work, rank->by_stream[s->first + i - 1]))
            last = -1;
        const int call = rank->works[work].call;
        int step, section;
        if (call >= 0)
            last = sections_at(search->sections, rank->calls[call].start_ns, &step, &section)
                       ? step * (int)search->sections->count + section
                       : -1;
        place[work] = last;
    }
}

/* The most works of a step in each section and stream, as the numbers of their slots. */
static bool number_slots(struct piece_search *search, const int *place)
{
    const size_t sections = search->sections->count, streams = (size_t)search->streams;
    int *count = pieces_filled(search->arena, (size_t)search->steps * sections * streams, 0);
    search->base = pieces_filled(search->arena, sections * streams + 1, 0);
    if (!count || !search->base)
        return false;
    for (size_t w = 0; w < search->rank->work_count; w++)
        if (place[w] >= 0)
            count[(size_t)place[w] * streams + (size_t)search->rank->works[w].stream]++;
    for (size_t i = 0; i < sections * streams; i++) {
        int most = 0;
        for (int step = 0; step < search->steps; step++) {
            const int here = count[(size_t)step * sections * streams + i];
            most = here > most ? here : most;
        }
        search->base[i] = search->slots;
        search->slots += most;
    }
    search->base[sections * streams] = search->slots;
    return true;
}

bool pieces_fill_slots(struct piece_search *search)
{
    const struct job_rank *rank = search->rank;
    const int sections = (int)search->sections->count;
    int *place = pieces_filled(search->arena, rank->work_count, -1);
    search->slot_of = pieces_filled(search->arena, rank->work_count, -1);
    search->before = pieces_filled(search->arena, rank->work_count, -1);
    search->sum = ARENA_ARRAY(search->arena, rank->work_count + 1, int64_t);
    if (!place || !search->slot_of || !search->before || !search->sum)
        return false;
    for (int s = 0; s < search->streams; s++)
        place_stream(search, s, place);
    if (!number_slots(search, place))
        return false;
    search->work_at =
        pieces_filled(search->arena, (size_t)search->slots * (size_t)search->steps, -1);
    search->cut = ARENA_ARRAY(search->arena, (size_t)search->slots + 1, bool);
    search->beside = ARENA_ARRAY(search->arena, (size_t)search->slots + 1, bool);
    if (!search->work_at || !search->cut || !search->beside)
        return false;
    for (int s = 0; s < search->streams; s++) {
        int here = -1, next = 0;
        const int *works = &rank->by_stream[rank->streams[s].first];
        for (int i = 0; i < rank->streams[s].count; i++) {
            search->before[works[i]] =
                i > 0 && !begins_turn(search, works[i], works[i - 1]) ? works[i - 1] : -1;
            search->sum[works[i]] = rank->works[works[i]].end_ns - rank->works[works[i]].start_ns +
                                    (i > 0 ? search->sum[works[i - 1]] : 0);
            next = place[works[i]] == here ? next + 1 : 0;
            here = place[works[i]];
            if (here < 0)
                continue;
            int slot = search->base[here % sections * search->streams + s] + next;
            /* What was launched late may have begun early, between works of another section. */
            for (; pieces_work_at(search, slot, here / sections) >= 0; next++)
                slot++;
            search->slot_of[works[i]] = slot;
            search->work_at[(size_t)slot * (size_t)search->steps + (size_t)(here / sections)] =
                works[i];
        }
    }
    return true;
}

/* ---- waits of threads ---------------------------------------------------------------------------- */

/* How long a call waits for the device. */
int64_t pieces_blocked_ns(const struct piece_search *search, int at)
{
    ASSERT_INDEX(at, search->rank->call_count);
    const struct job_call *call = &search->rank->calls[at];
    const int work = search->evidence->waits[at].work;
    const int64_t until = work >= 0 ? search->rank->works[work].end_ns : 0;
    const int64_t end = until < call->end_ns ? until : call->end_ns;
    return end > call->start_ns ? end - call->start_ns : 0;
}

static struct wait_slot *wait_slot(struct piece_search *search, int section, int number)
{
    for (size_t i = 0; i < search->wait_count; i++)
        if (search->waits[i].section == section && number-- == 0)
            return &search->waits[i];
    if (!ARENA_GROW(search->arena, search->waits, search->wait_count, search->wait_cap))
        return NULL;
    struct wait_slot *slot = &search->waits[search->wait_count];
    *slot = (struct wait_slot){.section = section};
    slot->calls = pieces_filled(search->arena, (size_t)search->steps, -1);
    if (!slot->calls)
        return NULL;
    search->wait_count++;
    return slot;
}

/* The waits of each section, by their place in it. */
bool pieces_fill_waits(struct piece_search *search)
{
    enum { MOST = 256 }; /* of a section: one that polls has no structure */
    const size_t sections = search->sections->count;
    int *count = pieces_filled(search->arena, (size_t)search->steps * sections, 0);
    for (size_t i = 0; count && i < search->rank->call_count; i++) {
        int step, section;
        if (search->evidence->waits[i].work < 0 ||
            !sections_at(search->sections, search->rank->calls[i].start_ns, &step, &section))
            continue;
        int *number = &count[(size_t)step * sections + (size_t)section];
        if (*number == MOST)
            continue;
        struct wait_slot *slot = wait_slot(search, section, (*number)++);
        if (!slot)
            return false;
        slot->calls[step] = (int)i;
    }
    return count != NULL;
}

/* The number of the step that is so many places earlier; -1: it is not there. */
int pieces_step_before(const struct piece_search *search, int step, int distance)
{
    const struct section_step *steps = search->sections->steps;
    const int place = steps[step].place - distance;
    while (step >= 0 && steps[step].place > place)
        step--;
    return step >= 0 && steps[step].place == place ? step : -1;
}

enum { FARTHEST = 2 }; /* steps between a work and what it waits for */

/* How often a dependence was seen. */
struct seen {
    int times, told;
};

static size_t dep_index(const struct piece_search *search, int task, int on, int distance)
{
    const size_t count = search->out->count;
    return ((size_t)task * count + (size_t)on) * FARTHEST + (size_t)distance;
}

/* The step that a work is in; it is in one. */
static int piece_deps_step_of(const struct piece_search *search, int work)
{
    const int *at = &search->work_at[(size_t)search->slot_of[work] * (size_t)search->steps];
    int step = 0;
    while (at[step] != work)
        step++;
    return step;
}

/* `told`: an event's id or the wait of a thread says so; else it is inferred. */
static void count_dep(const struct piece_search *search, struct seen *counts, int task,
                      int task_step, int source, bool told)
{
    if (source < 0 || search->slot_of[source] < 0)
        return;
    const struct section_step *steps = search->sections->steps;
    const int on = search->piece_of[search->slot_of[source]];
    const int distance = steps[task_step].place - steps[piece_deps_step_of(search, source)].place;
    ASSERT_INDEX(task, search->out->count);
    if (distance < 0 || distance >= FARTHEST || (distance == 0 && on >= task) ||
        search->out->items[on].stream == search->out->items[task].stream)
        return;
    counts[dep_index(search, task, on, distance)].times++;
    counts[dep_index(search, task, on, distance)].told += told;
}

static void count_deps(const struct piece_search *search, struct seen *counts)
{
    const struct evidence *evidence = search->evidence;
    for (size_t i = 0; i < evidence->edge_count; i++) {
        const struct edge_found *edge = &evidence->edges[i];
        if (search->slot_of[edge->work] >= 0)
            count_dep(search, counts, search->piece_of[search->slot_of[edge->work]],
                      piece_deps_step_of(search, edge->work), edge->source,
                      edge->word == IDLE_EVENT_ID);
    }
    for (size_t p = 0; p < search->out->count; p++) {
        const struct piece *piece = &search->out->items[p];
        for (int step = 0; piece->kind == PIECE_WAIT && step < search->steps; step++) {
            const int call = search->waits[piece->wait].calls[step];
            if (call >= 0)
                count_dep(search, counts, (int)p, step, evidence->waits[call].work, true);
        }
    }
}

/* True if in every step `task` began after `on` had ended, but for the last blocks of work that leaves room. */
static bool piece_deps_agrees(const struct piece_search *search, int task, int on, int distance)
{
    enum { TAIL_NS = 100 * 1000 };
    ASSERT_INDEX(on, search->out->count);
    ASSERT_INDEX(task, search->out->count);
    const struct piece *a = &search->out->items[task], *b = &search->out->items[on];
    for (int step = 0; step < search->steps; step++) {
        const int before = pieces_step_before(search, step, distance);
        if (before >= 0 && a->kind == PIECE_WORK && a->start_ns[step] > 0 &&
            b->end_ns[before] > a->start_ns[step] + TAIL_NS)
            return false;
    }
    return true;
}

/* One that waits for the same stream, and more of it: so it waits for this one, too. */
static bool is_implied(const struct piece_search *search, const struct seen *counts, int task,
                       int on, int distance)
{
    const struct piece *items = search->out->items;
    for (int d = 0; d <= distance; d++)
        for (int other = 0; other < (int)search->out->count; other++)
            if (items[other].kind == PIECE_WORK && items[other].stream == items[on].stream &&
                (d < distance || other > on) && counts[dep_index(search, task, other, d)].times > 0)
                return true;
    return false;
}

static bool piece_deps_add_dep(struct piece_search *search, const struct seen *counts, int task,
                               int on, int distance, size_t *cap)
{
    struct pieces *out = search->out;
    const struct seen *seen = &counts[dep_index(search, task, on, distance)];
    if (seen->times == 0 || is_implied(search, counts, task, on, distance))
        return true;
    if (!ARENA_GROW(search->arena, out->deps, out->dep_count, *cap))
        return false;
    out->deps[out->dep_count++] =
        (struct piece_dep){task, on, distance, seen->told * 2 > seen->times};
    return true;
}

bool pieces_find_deps(struct piece_search *search)
{
    const int count = (int)search->out->count;
    size_t cap = 0;
    struct seen *counts = ARENA_ARRAY(search->arena, dep_index(search, count, 0, 0), struct seen);
    if (!counts)
        return false;
    count_deps(search, counts);
    for (int task = 0; task < count; task++)
        for (int on = 0; on < count; on++)
            for (int d = 0; d < FARTHEST; d++) {
                struct seen *seen = &counts[dep_index(search, task, on, d)];
                if (seen->times * 2 < search->steps - d || !piece_deps_agrees(search, task, on, d))
                    seen->times = 0;
            }
    for (int task = 0; task < count; task++)
        for (int on = 0; on < count; on++)
            for (int d = 0; d < FARTHEST; d++)
                if (!piece_deps_add_dep(search, counts, task, on, d, &cap))
                    return false;
    return true;
}

static bool has_dep(const struct pieces *pieces, int task)
{
    for (size_t i = 0; i < pieces->dep_count; i++)
        if (pieces->deps[i].task == task)
            return true;
    return false;
}

/* A wait for other work in each step waits for none of the plan: it is CPU time, as long as measured. */
void pieces_settle_waits(struct piece_search *search)
{
    for (int at = 0; at < (int)search->out->count; at++) {
        struct piece *piece = &search->out->items[at];
        if (piece->kind != PIECE_WAIT || has_dep(search->out, at))
            continue;
        piece->kind = PIECE_HOST;
        for (int step = 0; step < search->steps; step++) {
            const int call = search->waits[piece->wait].calls[step];
            piece->host_ns[step] += call >= 0 ? pieces_blocked_ns(search, call) : 0;
        }
    }
}

/* A wait that no dependence, push or stream explains becomes time of the piece itself. */
static void add_own_gap(struct piece_search *search, int at, int step)
{
    ASSERT_INDEX(at, search->out->count);
    struct piece *piece = &search->out->items[at];
    const int first = pieces_first_work(search, piece, step);
    if (piece->kind != PIECE_WORK || first < 0 || !pieces_own_gap(search, first))
        return;
    const int before = search->before[first];
    int64_t ready = pieces_push_time(search, first);
    if (before >= 0)
        ready = later_of(ready, search->rank->works[before].end_ns);
    for (size_t i = 0; i < search->out->dep_count; i++) {
        const struct piece_dep *dep = &search->out->deps[i];
        const int earlier = dep->task == at ? pieces_step_before(search, step, dep->distance) : -1;
        if (earlier >= 0)
            ready = later_of(ready, search->out->items[dep->on].end_ns[earlier]);
    }
    if (ready != INT64_MIN && piece->start_ns[step] > ready)
        piece->time_ns[step] += piece->start_ns[step] - ready;
}

void pieces_add_own_gaps(struct piece_search *search)
{
    for (int at = 0; at < (int)search->out->count; at++)
        for (int step = 0; step < search->steps; step++)
            add_own_gap(search, at, step);
}
