/*
 * event_graph.h - a clock-driven plan without jitter as a timed event graph, and its steady state.
 *
 * When nothing is left to chance - constant durations, every queue filled by one thread in a fixed
 * order - each event of an iteration (a thread begins an instance, a stream starts a piece of work,
 * the driver enqueues a period) happens a fixed time after the latest of some others, of this
 * period or of earlier ones. That is a graph; the time of an iteration in the steady state is its
 * maximum cycle ratio, and the cycle says what limits it. A cycle within one iteration is a
 * deadlock (cycle_ratio.h).
 */
#ifndef SWSIM_EVENT_GRAPH_H
#define SWSIM_EVENT_GRAPH_H

#include "core/program.h"
#include "sim/cycle_ratio.h"
#include "sim/timing.h"

enum { EVENT_GRAPH_WHY = 160 };

/* Events are counted by the period of their rank's clock; heights of edges are periods. */
struct event_graph {
    struct ratio_edge *edges;
    int edge_count;
    struct event {
        enum event_kind { EVENT_DRIVER, EVENT_HOST, EVENT_DEVICE } kind;
        int rank; /* -1: all members of a collective */
        int task; /* DRIVER: -1 */
    } * events;
    int event_count;
    struct arena arena;
    char why[EVENT_GRAPH_WHY]; /* the plan has no such graph, and why; else "" */
};

/* STATUS_OK also when the plan has no event graph: see `why`. STATUS_SYSTEM when memory runs out,
   *out is then untouched. */
enum status event_graph_build(const struct program *program, const struct timing *timing,
                              struct event_graph *out, struct diag *diag);
void event_graph_fini(struct event_graph *graph);

/* The steady state: one iteration takes num_ns / den nanoseconds. */
struct steady {
    enum steady_kind { STEADY_UNKNOWN, STEADY_EXACT, STEADY_DEADLOCK } kind;
    int64_t num_ns, den; /* EXACT: in lowest terms */
    /* EXACT: what takes time on the critical cycle, and the driver where it is on it; DEADLOCK: who
       waits in a circle for the next one; in order of time. */
    struct steady_part {
        enum event_kind kind;
        int rank, task;
        int64_t ns;
    } * parts;
    int part_count;
    int64_t iterations;        /* EXACT: that the cycle spans */
    char why[EVENT_GRAPH_WHY]; /* UNKNOWN */
};

/* Failures as for event_graph_build and cycle_ratio_find; *out is set on success only. */
enum status steady_find(const struct program *program, const struct timing *timing,
                        struct steady *out, struct diag *diag);
void steady_fini(struct steady *steady);

#endif
