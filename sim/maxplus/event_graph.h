/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_graph.h - a clock-driven plan as a timed event graph.
 *
 * When every queue is filled by one thread in a fixed order, each event of an iteration (a thread
 * begins an instance, a stream starts a piece of work, the driver enqueues a period) happens when the
 * latest of some others does or is over, of this period or of earlier ones. That is a graph, whatever
 * the durations are. With them the recurrence (recurrence.h) computes all times; without jitter the
 * time of an iteration in the steady state is the graph's maximum cycle ratio, and the cycle says
 * what limits it. A cycle within one iteration is a deadlock (cycle_ratio.h).
 *
 * The graph also says what a stream is idle for before each piece of its work: a list of reasons in
 * the order in which they pass.
 */
#ifndef SWSIM_EVENT_GRAPH_H
#define SWSIM_EVENT_GRAPH_H

#include "machine/program.h"
#include "cycle_ratio.h"
#include "sim/engine/simulate.h"
#include "sim/engine/timing.h"

enum { EVENT_GRAPH_WHY = 160, EVENT_NONE = INT32_MIN, EVENT_WAIT = -1, EVENT_SPARE = -2 };

/* A time: when an event happens or, with `end`, when what it begins is over, `height` periods ago. */
struct event_ref {
    int event;
    int height;
    bool end;
};

/* Beside an edge: does it lead from the end of its tail? `lane` is that of a thread, stream or other
   FIFO whose order the edge is. EVENT_WAIT: the edge is a wait, of which there is none where there is
   nothing to wait for, before the first iteration; EVENT_SPARE: a wait that is implied by other edges
   unless some of those before it do not exist. `place` is the item whose push this is, if the edge is a
   wait for a place in a bounded stream; -1: it is not. */
struct event_link {
    bool end;
    int lane, place;
};

/* Pushes to a bounded stream in every period: a place is free again when the work is through. */
struct event_item {
    int stream, stage;
    int distance; /* of the dependence it waits for; the first iterations, which have none, push no wait */
    struct event_ref through;
};

/*
 * Why a stream is idle: until that time, if it is later than all before it in the list and the
 * instances it speaks of exist. For CLOCK `pushed` bounds it: until the earlier of both. For what a
 * wait in front of the work waits for, `pushed` is when the wait came to the stream.
 */
struct event_idle {
    struct event_ref until;
    struct event_ref pushed; /* event EVENT_NONE: none */
    struct event_ref owner;  /* an event of the instance whose reason it is; EVENT_NONE: none */
    int lane; /* the FIFO `until` is the last of: an event that does not exist gives way to the one before
                 it; -1: no FIFO */
    int place; /* `until` is when there is a place for this item; -1: it is something else */
    struct stall why;
};

/* A piece of work of a stream, or a record where a stream has no work. */
struct event_work {
    int stream;
    struct event_ref done; /* the stream is through with it */
    bool takes_time;
    int first, count; /* idles */
};

/* Events are counted by the period of their rank's clock; heights of edges are periods. */
struct event_graph {
    struct ratio_edge *edges;
    struct event_link *links; /* beside edges */
    int edge_count;
    struct event {
        enum event_kind { EVENT_DRIVER, EVENT_HOST, EVENT_DEVICE } kind;
        int rank;               /* -1: all members of a collective */
        int task;               /* DRIVER: -1 */
        int stage;              /* it belongs to iteration period - stage */
        int op_first, op_count; /* ops: it takes as long as the longest of these */
    } * events;
    int event_count;
    int *ops; /* operations of the program */
    int op_count;
    struct event_idle *idles;
    int idle_count;
    struct event_work *works; /* by stream, in its order */
    int work_count;
    struct event_item *items; /* of bounded streams, stream by stream in their order */
    int item_count;
    int *drivers; /* per rank: the event */
    int *
        finishes; /* per rank, with `retire: submit` and reasons: the device is through with an iteration,
                      whose stage is that of the iterations the driver retires */
    struct arena arena;
    char why[EVENT_GRAPH_WHY]; /* the plan has no such graph, and why; else "" */
};

/* STATUS_OK also when the plan has no event graph: see `why`. STATUS_SYSTEM when memory runs out,
   *out is then untouched. Works and idles are listed with `reasons` only, and then refused where they
   are more than EVENT_MOST_IDLES. */
enum { EVENT_MOST_IDLES = 1 << 19 };
enum status event_graph_build(const struct program *program, const struct timing *timing,
                              bool reasons, struct event_graph *out, struct diag *diag);
void event_graph_fini(struct event_graph *graph);

/* The mean duration of an event: of its longest operation, since members of a collective end together. */
int64_t event_graph_mean_ns(const struct event_graph *graph, const struct timing *timing,
                            int event);

#endif
