/* SPDX-License-Identifier: Apache-2.0 */
/* memo_edge.c - the edges of a memo: recorded, taken again; see memo.h. */
#include "memo.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- recordings ------------------------------------------------------------------------------ */

enum { FIRST_CAP = 16, CACHE_LINE = 64 };

/* The records of an edge, in the order it keeps them, those with pointers first. */
#define KIND_LIST(X) X(draw) X(start) X(hold) X(change) X(iteration)

/* Room for one more item in *items. */
static bool has_room(struct recording *recording, void **items, int count, int *cap, size_t size)
{
    if (count < *cap)
        return true;
    int larger = *cap ? 2 * *cap : FIRST_CAP;
    void *grown = realloc(*items, (size_t)larger * size);
    if (!grown) {
        recording->failed = true;
        return false;
    }
    *items = grown;
    *cap = larger;
    return true;
}

#define ADD(recording, kind, ...)                                                                  \
    do {                                                                                           \
        void *items = (recording)->kind##s;                                                        \
        bool room = has_room((recording), &items, (recording)->kind##_count,                       \
                             &(recording)->kind##_cap, sizeof *(recording)->kind##s);              \
        (recording)->kind##s = items;                                                              \
        if (room)                                                                                  \
            (recording)->kind##s[(recording)->kind##_count++] = (struct memo_##kind){__VA_ARGS__}; \
    } while (0)

void recording_fini(struct recording *recording)
{
#define X(kind) free(recording->kind##s);
    KIND_LIST(X)
#undef X
}

void recording_start(struct simulation *sim, int agent, int priority, const struct timed_op *ops,
                     int count)
{
    for (int i = 0; i < count; i++) {
        const struct op_time *time = &sim->timing->ops[ops[i].op];
        struct draws *draws = time->draw >= 0 ? &sim->clocks.draws[time->draw] : NULL;
        ADD(sim->recording, draw, draws, time->mean_ns, ops[i].op, (int)ops[i].iteration);
    }
    ADD(sim->recording, start, {.place = sim->clocks.events.places[agent]}, events_order(priority),
        count);
}

void recording_hold(struct simulation *sim, int op)
{
    ADD(sim->recording, hold, op);
}

void recording_lane(struct simulation *sim, int stream, int from, int to)
{
    ADD(sim->recording, change, .number = stream, .from = from, .to = to);
}

void recording_common(struct simulation *sim, int number, const struct stall *value)
{
    ADD(sim->recording, change, .number = ~number, .value = *value);
}

void recording_admitted(struct simulation *sim, int rank, int64_t iteration, int64_t in_flight)
{
    ADD(sim->recording, iteration, rank, (int)iteration, (int)in_flight);
}

void recording_finished(struct simulation *sim, int rank, int64_t iteration)
{
    ADD(sim->recording, iteration, rank, (int)iteration, ENDS);
}

/* ---- edges ----------------------------------------------------------------------------------- */

/* The next of the edge's lists begins at *at and is a copy. */
static void *copy_list(char **at, const void *items, int count, size_t size)
{
    char *copy = *at;
    if (count)
        memcpy(copy, items, (size_t)count * size);
    *at += (size_t)count * size;
    return copy;
}

/* Recorded events have agents; they have seats once each agent has a place. */
static void find_seats(struct simulation *sim, struct memo_edge *edge, int agent)
{
    edge->seat = events_seat(&sim->clocks.events, sim->clocks.events.places[agent]);
    for (int i = 0; i < edge->start_count; i++)
        edge->starts[i].seat = events_seat(&sim->clocks.events, edge->starts[i].seat.place);
}

static size_t size_of(const struct recording *r)
{
    size_t bytes = sizeof(struct memo_edge);
#define X(kind) bytes += (size_t)r->kind##_count * sizeof *r->kind##s;
    KIND_LIST(X)
#undef X
    return (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

/* The recording's lists move behind the edge. */
static void move_lists(struct memo_edge *edge, struct recording *r)
{
    char *at = (char *)(edge + 1);
#define X(kind)                                                                                    \
    edge->kind##s = copy_list(&at, r->kind##s, r->kind##_count, sizeof *r->kind##s);               \
    edge->kind##_count = r->kind##_count;                                                          \
    r->kind##_count = 0;
    KIND_LIST(X)
#undef X
}

struct memo_edge *memo_edge_make(struct simulation *sim, int agent, size_t *bytes)
{
    *bytes = size_of(sim->recording);
    struct memo_edge *edge = sim->recording->failed ? NULL : aligned_alloc(CACHE_LINE, *bytes);
    if (!edge)
        return NULL;
    *edge = (struct memo_edge){0};
    move_lists(edge, sim->recording);
    find_seats(sim, edge, agent);
    edge->plain = edge->start_count == 1 && edge->draw_count == 1 && !edge->change_count &&
                  !edge->iteration_count && !sim->clocks.sharing;
    if (edge->plain) {
        edge->draw = edge->draws[0];
        edge->order = edge->starts->order;
    }
    edge->again = edge->plain && edge->starts->seat.place == edge->seat.place;
    return edge;
}

static inline void start(struct simulation *sim, const struct memo_start *start,
                         const struct memo_draw *draws)
{
    int64_t longest_ns = memo_draw_ns(sim, draws);
    for (int i = 1; i < start->draws; i++) {
        int64_t ns = memo_draw_ns(sim, &draws[i]);
        longest_ns = ns > longest_ns ? ns : longest_ns;
    }
    events_put(&sim->clocks.events, &start->seat, sim->now_ns + longest_ns, start->order);
}

/* The same for sharing.h: ends, waits and starts. */
static void share(struct simulation *sim, const struct memo_edge *edge)
{
    const int *agents = sim->clocks.events.agents;
    const struct memo_draw *draws = edge->draws;
    sharing_finish(sim->clocks.sharing, agents[edge->seat.place], sim->now_ns);
    for (int i = 0; i < edge->hold_count; i++)
        sharing_hold(sim->clocks.sharing, edge->holds[i].op);
    for (int i = 0; i < edge->start_count; draws += edge->starts[i++].draws) {
        const struct memo_start *start = &edge->starts[i];
        for (int k = 0; k < start->draws; k++)
            sharing_start(sim->clocks.sharing, agents[start->seat.place], draws[k].op,
                          *start->seat.due_ns - sim->now_ns, sim->now_ns);
    }
    if (edge->settles)
        sharing_settle(sim->clocks.sharing, sim->now_ns, &sim->clocks.events);
}

void memo_edge_take_all(struct simulation *sim, const struct memo_edge *edge)
{
    const struct memo_draw *draws = edge->draws;
    events_take(&sim->clocks.events, &edge->seat);
    for (int i = 0; i < edge->start_count; draws += edge->starts[i++].draws)
        start(sim, &edge->starts[i], draws);
    if (sim->clocks.sharing)
        share(sim, edge);
    if (edge->change_count)
        account_apply(sim, edge->changes, edge->change_count);
    if (edge->iteration_count)
        simulation_iterations(sim, edge->iterations, edge->iteration_count);
    sim->base += edge->shift;
}
