/*
 * recurrence_shrink.c - the events of a plan in the order of their causes, and a smaller graph of them;
 * see recurrence_internal.h.
 *
 * An edge goes if another way from its tail to its head is at least as long and spans no more periods. An
 * event that takes no time and has one cause left is that cause under another name.
 */
#include "sim/recurrence_internal.h"

#include <stdio.h>

enum { MOST_PRUNED = 3000, MOST_CHAINED = 1000 };

/* ---- the order of causes --------------------------------------------------------------------- */

bool recurrence_refuse(char why[EVENT_GRAPH_WHY], const char *text)
{
    snprintf(why, EVENT_GRAPH_WHY, "%s", text);
    return false;
}

static bool list_causes(struct recurrence *r)
{
    const struct event_graph *g = &r->graph;
    size_t events = (size_t)g->event_count;
    r->in_first = ARENA_ARRAY(&r->arena, events + 2, int);
    r->in_edges = ARENA_ARRAY(&r->arena, (size_t)g->edge_count + 1, int);
    r->order = ARENA_ARRAY(&r->arena, events, int);
    if (r->arena.failed)
        return false;
    for (int e = 0; e < g->edge_count; e++)
        r->in_first[g->edges[e].to + 2]++;
    for (int v = 0; v < g->event_count; v++)
        r->in_first[v + 2] += r->in_first[v + 1];
    for (int e = 0; e < g->edge_count; e++)
        r->in_edges[r->in_first[g->edges[e].to + 1]++] = e;
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

/* The same order with chains kept together: who follows the last one directly comes next, if all its
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

/* ---- a smaller graph ------------------------------------------------------------------------- */

struct pruner {
    bool *gone;       /* per edge */
    int *height;      /* per event: of the shortest way from the tail */
    int *queue, tail; /* a ring */
    bool *queued;
    int *out_first, *out_edges;
};

static bool pruner_init(struct recurrence *r, struct pruner *pr)
{
    const struct event_graph *g = &r->graph;
    size_t events = (size_t)g->event_count, edges = (size_t)g->edge_count;
    pr->gone = ARENA_ARRAY(&r->arena, edges, bool);
    pr->height = ARENA_ARRAY(&r->arena, events, int);
    pr->queue = ARENA_ARRAY(&r->arena, events + 1, int);
    pr->queued = ARENA_ARRAY(&r->arena, events, bool);
    pr->out_first = ARENA_ARRAY(&r->arena, events + 2, int);
    pr->out_edges = ARENA_ARRAY(&r->arena, edges + 1, int);
    if (r->arena.failed)
        return false;
    for (int e = 0; e < g->edge_count; e++)
        pr->out_first[g->edges[e].from + 2]++;
    for (int v = 0; v < g->event_count; v++)
        pr->out_first[v + 2] += pr->out_first[v + 1];
    for (int e = 0; e < g->edge_count; e++)
        pr->out_edges[pr->out_first[g->edges[e].from + 1]++] = e;
    return true;
}

/* The way so far has come to `event` in `height` periods; where it leads next. With `from_end` only by
   edges that begin at the event's end. true: one leads to the head of `implied`. */
static bool go_on(const struct recurrence *r, struct pruner *pr, int implied, int event, int height,
                  bool from_end)
{
    const struct event_graph *g = &r->graph;
    for (int i = pr->out_first[event]; i < pr->out_first[event + 1]; i++) {
        int e = pr->out_edges[i], to = g->edges[e].to, there = height + g->edges[e].height;
        if (e == implied || pr->gone[e] || there > g->edges[implied].height ||
            there >= pr->height[to] || (from_end && !g->links[e].end))
            continue;
        if (to == g->edges[implied].to)
            return true;
        pr->height[to] = there;
        if (pr->queued[to])
            continue;
        pr->queued[to] = true;
        pr->queue[pr->tail] = to;
        pr->tail = (pr->tail + 1) % (g->event_count + 1);
    }
    return false;
}

/* Is there another way from the edge's tail, or from the tail's end, to its head, in no more
   periods? Heights only grow on the way, so a queue of improved events will do. */
static bool is_implied(const struct recurrence *r, struct pruner *pr, int edge)
{
    const struct event_graph *g = &r->graph;
    int head = 0;
    pr->tail = 0;
    for (int v = 0; v < g->event_count; v++) {
        pr->height[v] = INT32_MAX;
        pr->queued[v] = false;
    }
    bool implied = go_on(r, pr, edge, g->edges[edge].from, 0, g->links[edge].end);
    while (!implied && head != pr->tail) {
        int v = pr->queue[head];
        head = (head + 1) % (g->event_count + 1);
        pr->queued[v] = false;
        implied = go_on(r, pr, edge, v, pr->height[v], false);
    }
    return implied;
}

struct event_ref recurrence_resolve(const struct recurrence *r, struct event_ref ref)
{
    while (r->alias[ref.event].event != ref.event || r->alias[ref.event].height != 0) {
        struct event_ref next = r->alias[ref.event];
        next.height += ref.height;
        ref = next;
    }
    if (r->graph.events[ref.event].op_count == 0)
        ref.end = false;
    return ref;
}

/* An event without time of its own and with one cause. Drivers stay, their times are wanted. */
static void find_aliases(struct recurrence *r, const bool *gone)
{
    const struct event_graph *g = &r->graph;
    for (int i = 0; i < g->event_count; i++) {
        int v = r->order[i], causes = 0, edge = NONE;
        r->alias[v] = (struct event_ref){v, 0, false};
        for (int k = r->in_first[v]; k < r->in_first[v + 1]; k++)
            if (!gone[r->in_edges[k]]) {
                edge = r->in_edges[k];
                causes++;
            }
        if (causes == 1 && g->events[v].op_count == 0 && g->events[v].kind != EVENT_DRIVER &&
            g->edges[edge].height == 0)
            r->alias[v] = (struct event_ref){g->edges[edge].from, 0, g->links[edge].end};
    }
}

struct place recurrence_place(struct recurrence *r, struct event_ref ref)
{
    struct event_ref found = recurrence_resolve(r, ref);
    if (found.height > r->history)
        r->history = found.height;
    return (struct place){r->columns[found.event] + found.end, found.height};
}

/* ---- steps ----------------------------------------------------------------------------------- */

static int add_duration(struct recurrence *r, const struct event *event)
{
    if (event->op_count == 0)
        return NONE;
    struct duration *duration = &r->durations[r->duration_count];
    *duration = (struct duration){event->op_first, event->op_count, event->stage, 0, false};
    for (int i = 0; i < event->op_count; i++) {
        const struct op_time *time = &r->timing->ops[r->graph.ops[event->op_first + i]];
        if (time->dist)
            duration->varies = true;
        else if (time->mean_ns > duration->constant_ns)
            duration->constant_ns = time->mean_ns;
    }
    return r->duration_count++;
}

static void make_columns(struct recurrence *r)
{
    for (int i = 0; i < r->graph.event_count; i++) {
        int v = r->order[i];
        bool alias = r->alias[v].event != v;
        r->columns[v] = alias ? NONE : r->column_count;
        r->column_count += alias ? 0 : 1 + (r->graph.events[v].op_count > 0);
    }
}

static void make_steps(struct recurrence *r, const bool *gone)
{
    const struct event_graph *g = &r->graph;
    int sources = 0;
    for (int i = 0; i < g->event_count; i++) {
        int v = r->order[i];
        if (r->columns[v] == NONE)
            continue;
        struct step step = {r->columns[v], sources, 0, add_duration(r, &g->events[v])};
        for (int k = r->in_first[v]; k < r->in_first[v + 1]; k++) {
            int e = r->in_edges[k];
            if (!gone[e])
                r->sources[sources++] = recurrence_place(
                    r, (struct event_ref){g->edges[e].from, g->edges[e].height, g->links[e].end});
        }
        step.count = sources - step.first;
        r->steps[r->step_count++] = step;
    }
}

bool recurrence_shrink(struct recurrence *r)
{
    const struct event_graph *g = &r->graph;
    struct pruner pr;
    size_t events = (size_t)g->event_count;
    r->alias = ARENA_ARRAY(&r->arena, events, struct event_ref);
    r->columns = ARENA_ARRAY(&r->arena, events, int);
    r->steps = ARENA_ARRAY(&r->arena, events, struct step);
    r->durations = ARENA_ARRAY(&r->arena, events, struct duration);
    r->sources = ARENA_ARRAY(&r->arena, (size_t)g->edge_count + 1, struct place);
    if (!pruner_init(r, &pr))
        return false;
    for (int e = 0; g->edge_count <= MOST_PRUNED && e < g->edge_count; e++)
        pr.gone[e] = is_implied(r, &pr, e);
    find_aliases(r, pr.gone);
    make_columns(r);
    make_steps(r, pr.gone);
    return true;
}
