/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.c - see events.h. The group of node i begins at node 4 (i + 1), so node i > 3 goes on to node
 * i / 4 - 1.
 */
#include "events.h"

#include <assert.h>
#include <stdlib.h>

enum { NONE = -1 };

static int64_t time_of(const struct events *events, int place)
{
    return events->times_ns[events->first_leaf + place];
}

static bool events_is_free(const struct events *events, int place)
{
    return time_of(events, place) == INT64_MAX - place;
}

/* The place whose time a node holds, alone or not. */
static int first_at(const struct events *events, int node)
{
    int first = events->firsts[node];
    return first < 0 ? ~first : first;
}

/* Several of a group have the time `time_ns`: by priority and sequence. */
static int first_of_equals(const struct events *events, int group, int64_t time_ns)
{
    int first = NONE;
    for (int node = group; node < group + EVENTS_GROUP; node++)
        if (events->times_ns[node] == time_ns &&
            (first == NONE ||
             events->orders[first_at(events, node)] < events->orders[first_at(events, first)]))
            first = node;
    return first;
}

/* The node of a group whose time comes first; *alone: no other of the group has it. */
static int events_first_of(const struct events *events, int group, bool *alone)
{
    const int64_t *times_ns = events->times_ns + group;
    int low = times_ns[1] < times_ns[0], high = 2 + (times_ns[3] < times_ns[2]);
    int first = times_ns[high] < times_ns[low] ? high : low;
    const int64_t time_ns = times_ns[first];
    *alone = (times_ns[0] == time_ns) + (times_ns[1] == time_ns) + (times_ns[2] == time_ns) +
                 (times_ns[3] == time_ns) ==
             1;
    return *alone ? group + first : first_of_equals(events, group, time_ns);
}

void events_replay(struct events *events, int place)
{
    for (int node = events->first_leaf + place; node >= EVENTS_GROUP;) {
        bool alone;
        int first = events_first_of(events, node / EVENTS_GROUP * EVENTS_GROUP, &alone);
        node = node / EVENTS_GROUP - 1;
        int place_of_first = events->firsts[first];
        if (!alone && place_of_first >= 0)
            place_of_first = ~place_of_first;
        if (events->firsts[node] == place_of_first &&
            events->times_ns[node] == events->times_ns[first] && first_at(events, node) != place)
            return; /* another place is still the first, and wins or loses further on as before */
        events->times_ns[node] = events->times_ns[first];
        events->firsts[node] = place_of_first;
    }
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Room for `cap` places, all games played. Nothing changes if memory is exhausted. */
static bool events_make_room(struct events *events, int cap)
{
    int first_leaf = (cap - EVENTS_GROUP) / (EVENTS_GROUP - 1), nodes = first_leaf + cap;
    int64_t *times_ns = malloc((size_t)nodes * sizeof *times_ns);
    int *firsts = malloc((size_t)nodes * sizeof *firsts);
    uint64_t *orders = realloc(events->orders, (size_t)cap * sizeof *orders);
    events->orders = orders ? orders : events->orders;
    int *agents = realloc(events->agents, (size_t)cap * sizeof *agents);
    events->agents = agents ? agents : events->agents;
    if (!times_ns || !firsts || !orders || !agents) {
        free(times_ns);
        free(firsts);
        return false;
    }
    for (int place = 0; place < cap; place++) {
        bool known = place < events->cap;
        firsts[first_leaf + place] = place;
        times_ns[first_leaf + place] = known ? time_of(events, place) : INT64_MAX - place;
        orders[place] = known ? orders[place] : 0;
    }
    free(events->times_ns);
    free(events->firsts);
    events->times_ns = times_ns;
    events->firsts = firsts;
    events->cap = cap;
    events->first_leaf = first_leaf;
    for (int node = first_leaf - 1; node >= 0; node--) { /* the later nodes play first */
        times_ns[node] = INT64_MAX;
        firsts[node] = 0;
    }
    for (int place = 0; place < cap; place += EVENTS_GROUP)
        events_replay(events, place);
    assert(events_check(events));
    return true;
}

struct seat events_seat(const struct events *events, int place)
{
    assert(place >= 0 && place < events->cap);
    return (struct seat){events->first_leaf + place, place / (events->cap / EVENTS_GROUP), place};
}

bool events_init(struct events *events, int agent_count)
{
    *events = (struct events){.agent_count = agent_count};
    events->places = malloc(((size_t)agent_count + 1) * sizeof *events->places);
    for (int agent = 0; events->places && agent < agent_count; agent++)
        events->places[agent] = NONE;
    return events->places && events_make_room(events, EVENTS_GROUP);
}

void events_fini(struct events *events)
{
    free(events->times_ns);
    free(events->firsts);
    free(events->orders);
    free(events->agents);
    free(events->places);
    *events = (struct events){0};
}

/* ---- events ---------------------------------------------------------------------------------- */

bool events_place(struct events *events, int agent)
{
    assert(agent < events->agent_count);
    if (events->places[agent] != NONE)
        return true;
    if (events->place_count == events->cap && !events_make_room(events, EVENTS_GROUP * events->cap))
        return false;
    events->agents[events->place_count] = agent;
    events->places[agent] = events->place_count++;
    return true;
}

bool events_push(struct events *events, int64_t time_ns, int priority, int agent)
{
    if (!events_place(events, agent))
        return false;
    assert(events_is_free(events, events->places[agent]));
    const struct seat seat = events_seat(events, events->places[agent]);
    events_put(events, &seat, time_ns, events_order(priority));
    return true;
}

int events_first(const struct events *events, bool *alone)
{
    if (events->count == 0)
        return NONE;
    int node = events_first_of(events, 0, alone);
    *alone &= events->firsts[node] >= 0;
    return first_at(events, node);
}

bool events_next(const struct events *events, struct event *out)
{
    bool alone;
    int place = events_first(events, &alone);
    if (place == NONE)
        return false;
    const uint64_t order = events->orders[place];
    *out =
        (struct event){time_of(events, place), order & ((UINT64_C(1) << EVENTS_PRIORITY_BIT) - 1),
                       (int)(order >> EVENTS_PRIORITY_BIT), events->agents[place]};
    return true;
}

bool events_pop(struct events *events, struct event *out)
{
    if (!events_next(events, out))
        return false;
    events_drop(events, out->agent);
    return true;
}

void events_drop(struct events *events, int agent)
{
    assert(events->places[agent] != NONE && !events_is_free(events, events->places[agent]));
    const struct seat seat = events_seat(events, events->places[agent]);
    events_take(events, &seat);
    assert(events->count >= 0);
}

void events_retime(struct events *events, int agent, int64_t time_ns)
{
    assert(events->places[agent] != NONE && !events_is_free(events, events->places[agent]));
    const struct seat seat = events_seat(events, events->places[agent]);
    events_set(events, &seat, time_ns);
}

bool events_check(const struct events *events)
{
    int count = 0;
    for (int place = 0; place < events->cap; place++)
        count += !events_is_free(events, place);
    for (int node = 0; node < events->first_leaf; node++) {
        bool alone;
        int first = events_first_of(events, EVENTS_GROUP * (node + 1), &alone);
        if (events->times_ns[node] != events->times_ns[first] ||
            first_at(events, node) != first_at(events, first) ||
            (events->firsts[node] >= 0) != (alone && events->firsts[first] >= 0))
            return false;
    }
    return count == events->count;
}
