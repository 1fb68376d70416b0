/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.h - what will happen when: a tournament between agents, of which each has one event at most.
 *
 * The order is (time, priority, sequence): at one instant the lower priority first, and among
 * equals the one pushed first. Nothing else, no address and no hash, decides.
 *
 * An agent gets a place when it first has an event. Four neighbouring places meet in a group, the first
 * of each group goes on to a group of four, and so on to the last four; a place
 * whose event comes, goes or moves only has the games of its own groups played again. So everything takes time in proportion to
 * the logarithm of the number of agents, without a branch that cannot be foreseen; with four agents or
 * fewer, which is what small pipelines have, putting an event somewhere is a store.
 *
 *     nodes 0..3      [   12   |   18   |   -    |   -    ]    the first of groups 4.., 8.., 12.., 16..
 *                        /          \
 *     nodes 4..   [30|12|-|57]  [18|-|-|-]  ...                places 0..3, 4..7, ...
 *
 * A free place holds a time so late that it never comes, another one in each place. The tournament owns
 * its arrays; events_init / events_fini.
 */
#ifndef SWSIM_EVENTS_H
#define SWSIM_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sort.h"

enum { EVENTS_GROUP = 4, EVENTS_PRIORITY_BIT = 56 };

struct event {
    int64_t time_ns;
    uint64_t sequence; /* given by events_push */
    int priority;
    int agent;
};

struct events {
    int64_t *times_ns; /* per node: of the first place there */
    int *firsts;       /* per node: that place; ~place where another one has the same time */
    uint64_t *orders;  /* per place: priority and sequence */
    int *agents;       /* per place */
    int *places;       /* per agent: -1 where it has never had an event */
    int agent_count, place_count;
    int cap;        /* places there are, a power of four */
    int first_leaf; /* node of place 0 */
    int count;      /* events */
    uint64_t pushed;
};

/* false: memory is exhausted; fini is called all the same. */
bool events_init(struct events *events, int agent_count);
void events_fini(struct events *events);

/* The agent has a place from now on. false: memory is exhausted. */
bool events_place(struct events *events, int agent);

/* The agent has none. false: memory is exhausted, nothing was pushed. */
bool events_push(struct events *events, int64_t time_ns, int priority, int agent);

/* The next event, which stays or is taken; false when there is none. */
bool events_next(const struct events *events, struct event *out);
bool events_pop(struct events *events, struct event *out);

/* The agent's event, which it must have, is taken. */
void events_drop(struct events *events, int agent);

/* The agent's event, which it must have, happens at another time; among those of that time it keeps its
   place. */
void events_retime(struct events *events, int agent, int64_t time_ns);

/* True if every game has been played. For assertions. */
bool events_check(const struct events *events);

/* ---- by seat, for the memo -------------------------------------------------------------- */

/* Where the event of a place is; holds until there are more places (cap). */
struct seat {
    int node, top; /* its node, and the ancestor of that among the last four */
    int place;
};

struct seat events_seat(const struct events *events, int place);

/* The place of the next event, -1: there is none; *alone: nothing else happens at its time. */
int events_first(const struct events *events, bool *alone);

/* The games a place takes part in are played again, up to the last group. */
void events_replay(struct events *events, int place);

/* True if the event of this seat is the next, and alone at its time. */
static inline bool events_leads(const struct events *events, const struct seat *seat)
{
    const uint64_t time_ns =
        (uint64_t)events->times_ns[seat->top]; /* compilers add up unsigned comparisons best */
    const int64_t *last = events->times_ns;
    int later = 0;
    later += time_ns < (uint64_t)last[0];
    later += time_ns < (uint64_t)last[1];
    later += time_ns < (uint64_t)last[2];
    later += time_ns < (uint64_t)last[3];
    return later == EVENTS_GROUP - 1 && events->firsts[seat->top] == seat->place;
}

/* When the next event is, of which there is one. */
static inline int64_t events_next_ns(const struct events *events)
{
    return min_i64(min_i64(events->times_ns[0], events->times_ns[1]),
                   min_i64(events->times_ns[2], events->times_ns[3]));
}

static inline void events_set(struct events *events, const struct seat *seat, int64_t time_ns)
{
    events->times_ns[seat->node] = time_ns;
    if (seat->node != seat->top)
        events_replay(events, seat->place);
}

/* The priority, where it stands in an order; the sequence is added. */
static inline uint64_t events_order(int priority)
{
    return (uint64_t)priority << EVENTS_PRIORITY_BIT;
}

/* There is no event at the seat any more; another one comes instead, here or elsewhere. */
static inline void events_leave(struct events *events, const struct seat *seat)
{
    events_set(events, seat, INT64_MAX - seat->place);
}

static inline void events_renew(struct events *events, const struct seat *seat, int64_t time_ns,
                                uint64_t order)
{
    events->orders[seat->place] = order | events->pushed++;
    events_set(events, seat, time_ns);
}

/* One event less; one more. */
static inline void events_take(struct events *events, const struct seat *seat)
{
    events->count--;
    events_leave(events, seat);
}

static inline void events_put(struct events *events, const struct seat *seat, int64_t time_ns,
                              uint64_t order)
{
    events->count++;
    events_renew(events, seat, time_ns, order);
}

#endif
