/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recurrence_shrink.c - the events of a plan in the order of their causes, and which of these matter; see
 * recurrence_internal.h.
 *
 * A cause goes if another one is never earlier: a search from the others back along their causes finds
 * it, in no more periods.
 */
#include "recurrence_internal.h"

#include <stdio.h>

enum { MOST_PRUNED = 3000, MOST_CHAINED = 1000, MOST_ROUNDS = 3 };

/* ---- the order of causes --------------------------------------------------------------------- */

bool recurrence_refuse(char why[EVENT_GRAPH_WHY], const char *text)
{
    snprintf(why, EVENT_GRAPH_WHY, "%s", text);
    return false;
}

/* Of the event at the edge's tail; NONE: it is of several. */
static int rank_of_tail(const struct recurrence *r, int edge)
{
    return r->graph.events[r->graph.edges[edge].from].rank;
}

/* All edges by the rank of their tails, NONE first. */
static int *sort_by_rank(struct recurrence *r)
{
    const struct event_graph *g = &r->graph;
    size_t ranks = (size_t)r->program->ranks;
    int *edges = ARENA_ARRAY(&r->arena, (size_t)g->edge_count + 1, int);
    int *first = ARENA_ARRAY(&r->arena, ranks + 3, int);
    if (r->arena.failed)
        return NULL;
    for (int e = 0; e < g->edge_count; e++)
        first[rank_of_tail(r, e) + 2]++;
    for (size_t rank = 0; rank < ranks; rank++)
        first[rank + 2] += first[rank + 1];
    for (int e = 0; e < g->edge_count; e++)
        edges[first[rank_of_tail(r, e) + 1]++] = e;
    return edges;
}

static bool list_causes(struct recurrence *r)
{
    const struct event_graph *g = &r->graph;
    size_t events = (size_t)g->event_count;
    r->in_first = ARENA_ARRAY(&r->arena, events + 2, int);
    r->in_edges = ARENA_ARRAY(&r->arena, (size_t)g->edge_count + 1, int);
    r->order = ARENA_ARRAY(&r->arena, events, int);
    const int *edges = sort_by_rank(r);
    if (r->arena.failed)
        return false;
    for (int e = 0; e < g->edge_count; e++)
        r->in_first[g->edges[e].to + 2]++;
    for (int v = 0; v < g->event_count; v++)
        r->in_first[v + 2] += r->in_first[v + 1];
    for (int i = 0; i < g->edge_count; i++)
        r->in_edges[r->in_first[g->edges[edges[i]].to + 1]++] = edges[i];
    return true;
}

/* Depth first along causes of the same period. 0: not seen, 1: on the way, 2: in order. */
static bool visit(struct recurrence *r, uint8_t *seen, int v, int *count)
{
    if (seen[v])
        return seen[v] == 2;
    seen[v] = 1;
    for (int i = r->in_first[v]; i < r->in_first[v + 1]; i++) {
        const struct ratio_edge *edge = &r->graph.edges[r->in_edges[i]];
        if (edge->height == 0 && !visit(r, seen, edge->from, count))
            return false;
    }
    seen[v] = 2;
    r->order[(*count)++] = v;
    return true;
}

/* The same order with chains kept together: the direct successor of the last one comes next, if all its
   causes have come. */
static bool chain_events(struct recurrence *r)
{
    const struct event_graph *g = &r->graph;
    const int count = g->event_count;
    int *order = ARENA_ARRAY(&r->arena, (size_t)count, int), placed = 0, last = NONE;
    int *left = ARENA_ARRAY(&r->arena, (size_t)count, int);
    bool *done = ARENA_ARRAY(&r->arena, (size_t)count, bool);
    if (r->arena.failed)
        return false;
    for (int e = 0; e < g->edge_count; e++)
        left[g->edges[e].to] += g->edges[e].height == 0;
    while (placed < count) {
        int next = NONE;
        for (int i = 0; i < count && next == NONE; i++) {
            int v = r->order[i];
            for (int k = r->in_first[v]; !done[v] && left[v] == 0 && k < r->in_first[v + 1]; k++)
                if (g->edges[r->in_edges[k]].from == last && g->edges[r->in_edges[k]].height == 0)
                    next = v;
        }
        for (int i = 0; i < count && next == NONE; i++)
            if (!done[r->order[i]] && left[r->order[i]] == 0)
                next = r->order[i];
        done[next] = true;
        order[placed++] = last = next;
        for (int e = 0; e < g->edge_count; e++)
            left[g->edges[e].to] -= g->edges[e].from == next && g->edges[e].height == 0;
    }
    r->order = order;
    return true;
}

/* Does anything refer to a later period, as a collective counted by another rank's stage may? */
static bool looks_ahead(const struct event_graph *g)
{
    bool ahead = false;
    for (int e = 0; e < g->edge_count; e++)
        ahead |= g->edges[e].height < 0;
    for (int w = 0; w < g->work_count; w++) {
        ahead |= g->works[w].done.height < 0;
        for (int i = g->works[w].first; i < g->works[w].first + g->works[w].count; i++)
            ahead |= g->idles[i].until.height < 0 || g->idles[i].owner.height < 0 ||
                     (g->idles[i].pushed.event != EVENT_NONE && g->idles[i].pushed.height < 0);
    }
    return ahead;
}

bool recurrence_order(struct recurrence *r, char why[EVENT_GRAPH_WHY])
{
    int count = 0;
    uint8_t *seen = ARENA_ARRAY(&r->arena, (size_t)r->graph.event_count, uint8_t);
    if (!list_causes(r))
        return false;
    if (looks_ahead(&r->graph))
        return recurrence_refuse(why, "ranks have one collective in different stages");
    for (int v = 0; seen && v < r->graph.event_count; v++)
        if (!visit(r, seen, v, &count))
            return recurrence_refuse(why, "the plan deadlocks");
    return seen && (count > MOST_CHAINED || chain_events(r));
}

/* ---- what a time is -------------------------------------------------------------------------- */

struct origin recurrence_resolve(const struct recurrence *r, struct event_ref ref)
{
    int64_t plus_ns = 0;
    for (;;) {
        int v = ref.event;
        if (ref.end && r->duration[v] == NONE) {
            plus_ns += r->constant_ns[v];
            ref.end = false;
        }
        if (ref.end || !r->follows[v])
            return (struct origin){ref, plus_ns};
        int height = ref.height;
        ref = r->only[v];
        ref.height += height;
    }
}

struct place recurrence_place(struct recurrence *r, struct event_ref ref)
{
    struct origin origin = recurrence_resolve(r, ref);
    int v = origin.ref.event;
    if (origin.ref.height > r->history)
        r->history = origin.ref.height;
    return (struct place){origin.ref.end ? r->ends[v] : r->starts[v], origin.ref.height,
                          origin.plus_ns};
}

static struct event_ref tail_of(const struct recurrence *r, int edge)
{
    const struct ratio_edge *e = &r->graph.edges[edge];
    return (struct event_ref){e->from, e->height, r->graph.links[edge].end};
}

/* Would the event, if it followed `cause`, follow itself? */
static bool goes_round(const struct recurrence *r, int event, struct event_ref cause)
{
    while (cause.event != event) {
        if ((cause.end && r->duration[cause.event] != NONE) || !r->follows[cause.event])
            return false;
        cause = r->only[cause.event];
    }
    return !cause.end || r->duration[event] == NONE;
}

/* Events with one cause left. */
static void find_followers(struct recurrence *r)
{
    for (int i = 0; i < r->graph.event_count; i++) {
        int v = r->order[i], causes = 0;
        struct event_ref cause = {0};
        for (int k = r->in_first[v]; !r->follows[v] && k < r->in_first[v + 1]; k++)
            if (!r->gone[r->in_edges[k]]) {
                cause = tail_of(r, r->in_edges[k]);
                causes++;
            }
        if (causes == 1 && !goes_round(r, v, cause)) {
            r->only[v] = cause;
            r->follows[v] = true;
        }
    }
}

/* ---- which causes matter --------------------------------------------------------------------- */

/* A search from a time back to what it cannot be earlier than. */
struct shrink {
    int rank;         /* the search keeps to events of this rank and collectives; NONE: to all */
    int *height;      /* per event: the least found on a way */
    int64_t *plus_ns; /* on that way */
    int *end_height;  /* the same of ways from its end, which varies */
    int64_t *end_plus_ns;
    int *queue, head, tail; /* a ring */
    bool *queued;
    int *reached, reached_count; /* events with a height */
};

static bool shrink_init(struct recurrence *r)
{
    struct shrink *s = ARENA_ARRAY(&r->arena, 1, struct shrink);
    size_t events = (size_t)r->graph.event_count;
    if (!s)
        return false;
    r->gone = ARENA_ARRAY(&r->arena, (size_t)r->graph.edge_count + 1, bool);
    s->height = ARENA_ARRAY(&r->arena, events, int);
    s->plus_ns = ARENA_ARRAY(&r->arena, events, int64_t);
    s->end_height = ARENA_ARRAY(&r->arena, events, int);
    s->end_plus_ns = ARENA_ARRAY(&r->arena, events, int64_t);
    s->queue = ARENA_ARRAY(&r->arena, events + 1, int);
    s->queued = ARENA_ARRAY(&r->arena, events, bool);
    s->reached = ARENA_ARRAY(&r->arena, events, int);
    for (size_t v = 0; !r->arena.failed && v < events; v++)
        s->height[v] = s->end_height[v] = INT32_MAX;
    r->shrink = s;
    return !r->arena.failed;
}

static void start_search(struct recurrence *r, int rank)
{
    struct shrink *s = r->shrink;
    s->rank = rank;
    s->head = s->tail = 0;
    while (s->reached_count > 0) {
        int v = s->reached[--s->reached_count];
        s->height[v] = s->end_height[v] = INT32_MAX;
        s->queued[v] = false;
    }
}

static bool is_foreign(const struct recurrence *r, int event)
{
    int rank = r->graph.events[event].rank;
    return r->shrink->rank != NONE && rank != NONE && rank != r->shrink->rank;
}

/* The way has come to `ref`, and so much later than it. true: `wanted` is found. Events happen in the
   order of their periods, so fewer periods will do. */
static bool reach(struct recurrence *r, struct event_ref ref, int64_t plus_ns,
                  const struct origin *wanted)
{
    struct shrink *s = r->shrink;
    struct origin there = recurrence_resolve(r, ref);
    int v = there.ref.event;
    there.plus_ns += plus_ns;
    if (there.ref.height > wanted->ref.height)
        return false;
    if (v == wanted->ref.event && (there.ref.end || !wanted->ref.end) &&
        there.plus_ns >= wanted->plus_ns)
        return true;
    if (there.ref.end && there.ref.height < s->end_height[v]) {
        s->end_height[v] = there.ref.height;
        s->end_plus_ns[v] = there.plus_ns;
    }
    if (there.ref.height >= s->height[v] || is_foreign(r, v))
        return false;
    if (s->height[v] == INT32_MAX)
        s->reached[s->reached_count++] = v;
    s->height[v] = there.ref.height;
    s->plus_ns[v] = there.plus_ns;
    if (!s->queued[v]) {
        s->queued[v] = true;
        s->queue[s->tail] = v;
        s->tail = (s->tail + 1) % (r->graph.event_count + 1);
    }
    return false;
}

/* The first of the edges from `first` on that comes from the rank of the search, or one behind it. */
static int skip_ranks(const struct recurrence *r, int first, int end)
{
    while (first < end) {
        int middle = first + (end - first) / 2;
        if (rank_of_tail(r, r->in_edges[middle]) < r->shrink->rank)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

/* A collective has an edge from the one before it for each of its ranks. */
static bool same_tail(const struct recurrence *r, int a, int b)
{
    const struct ratio_edge *x = &r->graph.edges[a], *y = &r->graph.edges[b];
    return x->from == y->from && x->height == y->height &&
           r->graph.links[a].end == r->graph.links[b].end;
}

/* On from where the search has come to, but for one edge. */
static bool search_on(struct recurrence *r, int without, const struct origin *wanted)
{
    struct shrink *s = r->shrink;
    while (s->head != s->tail) {
        int v = s->queue[s->head];
        s->head = (s->head + 1) % (r->graph.event_count + 1);
        s->queued[v] = false;
        int end = r->in_first[v + 1], last = NONE;
        for (int k = r->in_first[v]; k < end; k++) {
            if (is_foreign(r, r->graph.edges[r->in_edges[k]].from))
                k = skip_ranks(r, k, end);
            if (k == end || is_foreign(r, r->graph.edges[r->in_edges[k]].from))
                break;
            int e = r->in_edges[k];
            if (e == without || r->gone[e] || (last != NONE && same_tail(r, e, last)))
                continue;
            last = e;
            struct event_ref ref = tail_of(r, e);
            ref.height += s->height[v];
            if (reach(r, ref, s->plus_ns[v], wanted))
                return true;
        }
    }
    return false;
}

/* Do the other causes of the edge's head imply this one? */
static bool is_implied(struct recurrence *r, int edge)
{
    const struct origin wanted = recurrence_resolve(r, tail_of(r, edge));
    int to = r->graph.edges[edge].to;
    start_search(r, NONE);
    for (int k = r->in_first[to]; k < r->in_first[to + 1]; k++) {
        int e = r->in_edges[k];
        if (e != edge && !r->gone[e] && reach(r, tail_of(r, e), 0, &wanted))
            return true;
    }
    return search_on(r, edge, &wanted);
}

bool recurrence_is_bounded(struct recurrence *r, int rank, struct event_ref early,
                           const struct event_ref *late, int count)
{
    const struct origin wanted = recurrence_resolve(r, early);
    start_search(r, rank);
    for (int i = 0; i < count; i++)
        if (reach(r, late[i], 0, &wanted))
            return true;
    return search_on(r, NONE, &wanted);
}

/* The least number of periods before `early`, a cause of what is wanted, so that the search found it bounded;
   INT32_MAX: none. */
static int periods_before(const struct recurrence *r, struct event_ref early)
{
    const struct shrink *s = r->shrink;
    const struct origin wanted = recurrence_resolve(r, early);
    int v = wanted.ref.event, height = wanted.ref.end ? s->end_height[v] : s->height[v];
    int64_t plus_ns = wanted.ref.end ? s->end_plus_ns[v] : s->plus_ns[v];
    if (height == INT32_MAX || plus_ns < wanted.plus_ns)
        return INT32_MAX;
    return height > wanted.ref.height ? height - wanted.ref.height : 0;
}

int recurrence_periods_behind(struct recurrence *r, int rank, int early, int late)
{
    const struct origin nothing = {{NONE, 2 * r->reach, false}, 0};
    int most = 0;
    start_search(r, rank);
    reach(r, (struct event_ref){late, 0, false}, 0, &nothing);
    search_on(r, NONE, &nothing);
    for (int k = r->in_first[early]; k < r->in_first[early + 1]; k++) {
        int e = r->in_edges[k], periods = r->gone[e] ? 0 : periods_before(r, tail_of(r, e));
        most = periods > most ? periods : most;
    }
    return most;
}

/* How long an event takes: always the same, or a duration of its own. */
static void find_duration(struct recurrence *r, int v)
{
    const struct event *event = &r->graph.events[v];
    int64_t constant_ns = 0;
    bool varies = false;
    for (int i = 0; i < event->op_count; i++) {
        const struct op_time *time = &r->timing->ops[r->graph.ops[event->op_first + i]];
        if (time->draw >= 0)
            varies = true;
        else if (time->mean_ns > constant_ns)
            constant_ns = time->mean_ns;
    }
    r->constant_ns[v] = constant_ns;
    r->duration[v] = varies ? r->duration_count : NONE;
    if (varies)
        r->durations[r->duration_count++] =
            (struct duration){event->op_first, event->op_count, event->stage, constant_ns};
}

/* A cause goes, then an event may have but one left, and with times known to be others more go. */
static void drop_causes(struct recurrence *r)
{
    const struct event_graph *g = &r->graph;
    for (int round = 0, dropped = 1; round < MOST_ROUNDS && dropped; round++) {
        dropped = 0;
        for (int e = 0; g->edge_count <= MOST_PRUNED && e < g->edge_count; e++)
            if (!r->gone[e] && is_implied(r, e)) {
                r->gone[e] = true;
                dropped++;
            }
        find_followers(r);
    }
}

bool recurrence_shrink(struct recurrence *r)
{
    size_t events = (size_t)r->graph.event_count;
    r->only = ARENA_ARRAY(&r->arena, events, struct event_ref);
    r->follows = ARENA_ARRAY(&r->arena, events, bool);
    r->constant_ns = ARENA_ARRAY(&r->arena, events, int64_t);
    r->duration = ARENA_ARRAY(&r->arena, events, int);
    r->durations = ARENA_ARRAY(&r->arena, events, struct duration);
    if (r->arena.failed || !shrink_init(r))
        return false;
    for (int i = 0; i < r->graph.event_count; i++)
        find_duration(r, r->order[i]);
    drop_causes(r);
    return recurrence_make_steps(r);
}
