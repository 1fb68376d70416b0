/* SPDX-License-Identifier: Apache-2.0 */
/* piece_slots.c - works and waits by their place in the steps. */
#include "pieces_internal.h"

int *pieces_filled(struct arena *arena, size_t count, int value)
{
    int *items = ARENA_ARRAY(arena, count + 1, int);
    for (size_t i = 0; items && i < count; i++)
        items[i] = value;
    return items;
}

/* ---- where works are --------------------------------------------------------------------------- */

/* Is a work of another rank than the one before it on its stream? */
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
            const int slot = search->base[here % sections * search->streams + s] + next;
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
    if (!arena_grow(search->arena, (void **)&search->waits, search->wait_count, &search->wait_cap,
                    sizeof *search->waits))
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
