/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_graph.h - a clock-driven plan as a timed event graph.
 *
 * When every queue is filled by one thread in a fixed order, each event of an iteration (a thread
 * begins an instance, a stream starts a piece of work, the driver enqueues a period) happens when the
 * latest of some others does or is over, of this period or of earlier ones. That is a graph, whatever
 * the durations are. Without jitter the time of an iteration in the steady state is the graph's maximum
 * cycle ratio, and the cycle says what limits it. A cycle within one iteration is a deadlock (cycle_ratio.h).
 */
#ifndef SWSIM_EVENT_GRAPH_H
#define SWSIM_EVENT_GRAPH_H

#include "machine/program.h"
#include "cycle_ratio.h"
#include "sim/engine/simulate.h"
#include "sim/engine/timing.h"

enum { EVENT_GRAPH_WHY = 160 };

/* Beside an edge. */
struct event_link {
    bool end;   /* it leads from the end of its tail */
    bool spare; /* a wait that other edges imply, unless some of those before it do not exist */
};

/* Events are counted by the period of their rank's clock; heights of edges are periods. */
struct event_graph {
    struct ratio_edge *edges;
    struct event_link *links; /* beside edges */
    int edge_count;
    struct event_graph_event {
        enum event_kind { EVENT_DRIVER, EVENT_HOST, EVENT_DEVICE } kind;
        int rank;               /* -1: all members of a collective */
        int task;               /* DRIVER: -1 */
        int op_first, op_count; /* ops: it takes as long as the longest of these */
    } * events;
    int event_count;
    int *ops; /* operations of the program */
    int op_count;
    struct arena arena;
    char why[EVENT_GRAPH_WHY]; /* the plan has no such graph, and why; else "" */
};

/* STATUS_OK also when the plan has no event graph: see `why`. STATUS_SYSTEM when memory runs out,
   *out is then untouched. */
enum status event_graph_build(const struct program *program, const struct timing *timing,
                              struct event_graph *out, struct diag *diag);
void event_graph_fini(struct event_graph *graph);

/* The mean duration of an event: of its longest operation, since members of a collective end together. */
int64_t event_graph_mean_ns(const struct event_graph *graph, const struct timing *timing,
                            int event);

#endif
