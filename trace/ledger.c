/* SPDX-License-Identifier: Apache-2.0 */
/* ledger.c - see ledger.h: a table of lines, found by agent and words through open addressing. */
#include "ledger.h"

#include <limits.h>

static size_t hash_line(int agent, const char *words)
{
    const uint64_t mixed = ((uint64_t)(uintptr_t)words >> 3) * UINT64_C(0x9e3779b97f4a7c15) +
                           (uint64_t)agent * UINT64_C(0xc2b2ae3d27d4eb4f);
    return (size_t)(mixed >> 20);
}

/* The place of a line, or the empty one where it belongs. */
static size_t find_place(const struct trace *trace, const int *places, size_t cap, int agent,
                         const char *words)
{
    size_t at = hash_line(agent, words) & (cap - 1);
    for (; places[at]; at = (at + 1) & (cap - 1)) {
        const struct trace_idle *line = &trace->idles[places[at] - 1];
        if (line->agent == agent && line->words == words)
            break;
    }
    return at;
}

static bool grow_places(struct trace *trace)
{
    const size_t cap = trace->idle_place_cap ? 2 * trace->idle_place_cap : 64;
    int *places = ARENA_ARRAY(trace->arena, cap, int);
    if (!places)
        return false;
    for (size_t i = 0; i < trace->idle_count; i++)
        places[find_place(trace, places, cap, trace->idles[i].agent, trace->idles[i].words)] =
            (int)i + 1;
    trace->idle_places = places;
    trace->idle_place_cap = cap;
    return true;
}

static bool own_texts(struct trace *trace, struct trace_idle *line)
{
    line->cause = trace_intern(trace, line->cause);
    line->word = trace_intern(trace, line->word);
    line->words = trace_intern(trace, line->words);
    const bool named = line->waits_for != NULL;
    line->waits_for = trace_intern(trace, line->waits_for);
    return line->cause && line->word && line->words && (!named || line->waits_for);
}

bool trace_add_idle(struct trace *trace, const struct trace_idle *line)
{
    struct trace_idle copy = *line;
    void *lines = trace->idles;
    if (!own_texts(trace, &copy))
        return false;
    if (2 * (trace->idle_count + 1) > trace->idle_place_cap && !grow_places(trace))
        return false;
    const size_t at =
        find_place(trace, trace->idle_places, trace->idle_place_cap, copy.agent, copy.words);
    if (trace->idle_places[at]) {
        struct trace_idle *old = &trace->idles[trace->idle_places[at] - 1];
        old->idle_ns += copy.idle_ns;
        return true;
    }
    if (trace->idle_count >= INT_MAX - 1 || !arena_grow(trace->arena, &lines, trace->idle_count,
                                                        &trace->idle_cap, sizeof *trace->idles))
        return false;
    trace->idles = lines;
    trace->idles[trace->idle_count++] = copy;
    trace->idle_places[at] = (int)trace->idle_count;
    return true;
}

const struct trace_idle *trace_find_idle(const struct trace *trace, int agent, const char *words)
{
    if (!words || !trace->idle_place_cap)
        return NULL;
    const int place = trace->idle_places[find_place(trace, trace->idle_places,
                                                    trace->idle_place_cap, agent, words)];
    return place ? &trace->idles[place - 1] : NULL;
}
