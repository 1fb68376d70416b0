/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slack.c - see slack.h. Lengths are weight - period * height, times the period's denominator, so that
 * they are whole numbers; no cycle is longer than zero. The longest way from the end of an event back
 * to it is found by relaxing edges until nothing changes (Bellman 1958).
 */
#include "slack.h"

#include <assert.h>
#include <stdlib.h>

#include "observed_event_graph.h"
#include "base/assert_index.h"

/* The usual size of a search. */
enum { FEW_ROUNDS = 8 };

struct slack_search {
    const struct event_graph *graph;
    const struct steady *steady;
    __int128 *far; /* per event: the longest way there */
    bool *known;
};

static bool slack_relax(struct slack_search *s, int edge, __int128 so_far)
{
    ASSERT_INDEX(edge, s->graph->edge_count);
    const struct ratio_edge *e = &s->graph->edges[edge];
    const int to = e->to;
    const __int128 there =
        so_far + (__int128)e->weight_ns * s->steady->den - (__int128)s->steady->num_ns * e->height;
    if (s->known[to] && s->far[to] >= there)
        return false;
    s->known[to] = true;
    s->far[to] = there;
    return true;
}

/* From the event's end back to its beginning; false: there is no way. */
static bool longest_way(struct slack_search *s, int event, __int128 *out)
{
    const struct event_graph *g = s->graph;
    bool changed = false;
    for (int v = 0; v < g->event_count; v++)
        s->known[v] = false;
    for (int e = 0; e < g->edge_count; e++)
        if (g->edges[e].from == event && g->links[e].end)
            changed |= slack_relax(s, e, 0);
    for (int round = 0; changed && round <= g->event_count; round++) {
        changed = false;
        for (int e = 0; e < g->edge_count; e++)
            if (g->edges[e].from != event && s->known[g->edges[e].from])
                changed |= slack_relax(s, e, s->far[g->edges[e].from]);
    }
    *out = s->far[event];
    return s->known[event];
}

static void search_all(struct slack_search *s, int tasks, int64_t *out_ns)
{
    static const enum event_kind kinds[] = {EVENT_DEVICE, EVENT_HOST};
    __int128 way;
    for (int t = 0; t < tasks; t++) {
        out_ns[t] = -1;
        for (int k = 0; k < 2 && out_ns[t] < 0; k++)
            for (int v = 0; v < s->graph->event_count; v++) {
                const struct event_graph_event *event = &s->graph->events[v];
                if (event->task != t || event->kind != kinds[k] || !event->op_count ||
                    !longest_way(s, v, &way))
                    continue;
                assert(way <= 0); /* no cycle is longer than the critical one */
                const int64_t slack = (int64_t)(-way / s->steady->den);
                if (out_ns[t] < 0 || slack < out_ns[t])
                    out_ns[t] = slack;
            }
    }
}

enum status slack_find(const struct program *program, const struct timing *timing,
                       const struct steady *steady, int64_t **out_ns, struct diag *diag)
{
    struct event_graph graph;
    *out_ns = NULL;
    if (steady->kind != STEADY_EXACT || steady->way == STEADY_BY_RECURRENT_STATE)
        return STATUS_OK;
    enum status status = steady->way == STEADY_BY_CAUSES
                             ? observed_event_graph_build(program, timing, &graph, diag)
                             : event_graph_build(program, timing, &graph, diag);
    if (status != STATUS_OK)
        return status;
    size_t events = (size_t)graph.event_count;
    struct slack_search search = {.graph = &graph, .steady = steady};
    if (!*graph.why &&
        (int64_t)graph.event_count * graph.edge_count * FEW_ROUNDS < SLACK_MOST_WORK) {
        search.far = calloc(events, sizeof *search.far);
        search.known = calloc(events, sizeof *search.known);
        *out_ns = calloc((size_t)program->tasks, sizeof **out_ns);
        if (search.far && search.known && *out_ns) {
            search_all(&search, program->tasks, *out_ns);
        } else {
            free(*out_ns);
            *out_ns = NULL;
            status = diag_no_memory(diag);
        }
    }
    free(search.far);
    free(search.known);
    event_graph_fini(&graph);
    return status;
}
