/* SPDX-License-Identifier: Apache-2.0 */
/* steady.c - the steady state of an event graph: its maximum cycle ratio; see steady.h. */
#include "steady.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/integers.h"
#include "observed_event_graph.h"

void steady_set(struct steady *steady, int64_t ns, int64_t iterations)
{
    int64_t divisor = integers_gcd(ns, iterations);
    steady->kind = STEADY_EXACT;
    steady->num_ns = ns / divisor;
    steady->den = iterations / divisor;
}

void steady_add(struct steady *steady, const struct steady_part *part)
{
    struct steady_part *last = steady->part_count ? &steady->parts[steady->part_count - 1] : NULL;
    if (last && last->kind == part->kind && last->rank == part->rank && last->task == part->task)
        last->ns += part->ns;
    else
        steady->parts[steady->part_count++] = *part;
}

/* The cycle in words begins at the driver if it is on it, else at the least event. */
static int first_edge(const struct event_graph *graph, const struct ratio_edge *edges,
                      const struct cycle_ratio *ratio)
{
    int first = 0;
    for (int i = 1; i < ratio->length; i++)
        if (edges[ratio->cycle[i]].from < edges[ratio->cycle[first]].from)
            first = i;
    for (int i = 0; i < ratio->length; i++)
        if (graph->events[edges[ratio->cycle[i]].from].kind == EVENT_DRIVER)
            return i;
    return first;
}

/* Operations without a time are left out, except from a deadlock. */
static enum status list_parts(struct steady *steady, const struct event_graph *graph,
                              const struct ratio_edge *edges, const struct cycle_ratio *ratio,
                              struct diag *diag)
{
    int first = first_edge(graph, edges, ratio);
    steady->parts = calloc((unsigned)ratio->length, sizeof *steady->parts);
    if (!steady->parts)
        return diag_no_memory(diag);
    for (int i = 0; i < ratio->length; i++) {
        const struct ratio_edge *edge = &edges[ratio->cycle[(first + i) % ratio->length]];
        const struct event *event = &graph->events[edge->from];
        struct steady_part part = {event->kind, event->rank, event->task, edge->weight_ns};
        if (ratio->kind == RATIO_FOUND && part.ns == 0 && part.kind != EVENT_DRIVER)
            continue;
        steady_add(steady, &part);
    }
    return STATUS_OK;
}

static enum status describe(struct steady *steady, const struct event_graph *graph,
                            const struct ratio_edge *edges, const struct cycle_ratio *ratio,
                            struct diag *diag)
{
    if (ratio->kind == RATIO_FOUND) {
        steady_set(steady, ratio->weight_ns, ratio->height);
        steady->iterations = ratio->height;
    } else {
        assert(ratio->kind == RATIO_DEADLOCK); /* the driver alone is a cycle */
        steady->kind = STEADY_DEADLOCK;
    }
    return list_parts(steady, graph, edges, ratio, diag);
}

/* In the steady state all edges of events exist. Returns the number of those kept. */
static int drop_spare_edges(const struct event_graph *graph, struct ratio_edge *out)
{
    int kept = 0;
    for (int e = 0; e < graph->edge_count; e++)
        if (!graph->links[e].spare)
            out[kept++] = graph->edges[e];
    return kept;
}

static enum status solve(const struct event_graph *graph, struct steady *steady, struct diag *diag)
{
    struct cycle_ratio ratio = {0};
    struct ratio_edge *edges = malloc(((size_t)graph->edge_count + 1) * sizeof *edges);
    if (!edges)
        return diag_no_memory(diag);
    const struct ratio_graph plain = {graph->event_count, drop_spare_edges(graph, edges), edges};
    enum status status = cycle_ratio_find(&plain, &ratio, diag);
    if (status == STATUS_OK)
        status = describe(steady, graph, edges, &ratio, diag);
    cycle_ratio_fini(&ratio);
    free(edges);
    return status;
}

enum status steady_of_graph(const struct event_graph *graph, enum steady_way way,
                            struct steady *out, struct diag *diag)
{
    struct steady steady = {.kind = STEADY_UNKNOWN, .way = way};
    enum status status = STATUS_OK;
    if (*graph->why)
        snprintf(steady.why, sizeof steady.why, "%s", graph->why);
    else
        status = solve(graph, &steady, diag);
    if (status == STATUS_OK)
        *out = steady;
    else
        steady_fini(&steady);
    return status;
}

enum status steady_find(const struct program *program, const struct timing *timing,
                        struct steady *out, struct diag *diag)
{
    struct event_graph graph;
    enum status status = event_graph_build(program, timing, &graph, diag);
    if (status != STATUS_OK)
        return status;
    status = steady_of_graph(&graph, STEADY_BY_GRAPH, out, diag);
    event_graph_fini(&graph);
    return status;
}

static enum status find_by_causes(const struct program *program, const struct timing *timing,
                                  struct steady *out, struct diag *diag)
{
    struct event_graph graph;
    enum status status = observed_event_graph_build(program, timing, &graph, diag);
    if (status != STATUS_OK)
        return status;
    status = steady_of_graph(&graph, STEADY_BY_CAUSES, out, diag);
    event_graph_fini(&graph);
    return status;
}

enum status steady_find_by(const struct program *program, const struct timing *timing,
                           enum steady_way last, struct steady *out, struct diag *diag)
{
    enum status status = steady_find(program, timing, out, diag);
    if (status == STATUS_OK && out->kind == STEADY_UNKNOWN && program->credit_ends) {
        /* the other ways look at more data than the program has */
        snprintf(out->why, sizeof out->why,
                 "only the end of the data bounds the messages on credit");
        return STATUS_OK;
    }
    if (status == STATUS_OK && out->kind == STEADY_UNKNOWN && last >= STEADY_BY_CAUSES &&
        program->tasks)
        status = find_by_causes(program, timing, out, diag);
    if (status == STATUS_OK && out->kind == STEADY_UNKNOWN && last >= STEADY_BY_RECURRENT_STATE &&
        program->tasks)
        status = steady_recurrent(program, timing, out, diag);
    return status;
}

void steady_fini(struct steady *steady)
{
    free(steady->parts);
    *steady = (struct steady){0};
}
