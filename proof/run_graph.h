/*
 * run_graph.h - what waits for what in a program without iterations, if every run has the same answer.
 *
 * A run has three events for an operation: a thread executes it; its stream starts it; its stream is done with it.
 * The second and the third exist for what is pushed, and are one for a record, a wait or an allocation. A
 * collective has one event more, its meeting: all members have started. Events are numbers, `run_event`.
 *
 * All runs have the same answer where every stream, event, lock, hardware queue and place in a communicator belongs
 * to one body of operations, every flag is set once, and nothing competes for residency slots or tickets. Else the
 * graph is refused.
 *
 * This file is believed by swcheck (doc/checker.md); it shares nothing with the search or the machine's steps.
 */
#ifndef SWSIM_RUN_GRAPH_H
#define SWSIM_RUN_GRAPH_H

#include "machine/program.h"

enum run_part { RUN_EXECUTE, RUN_START, RUN_DONE, RUN_PARTS };

/* Operations or parts, listed by the object they use: items[first[object]] to items[first[object + 1]], in order. */
struct run_lists {
    int *first, *items;
};

struct run_graph {
    const struct program *program;
    struct arena arena;
    const char *refusal; /* why runs may differ, or a partner is missing; NULL: they do not */
    int *body;           /* per operation */
    int *caller;         /* per body: the callback it belongs to, -1: none */
    int *place;          /* per operation: its place in its stream or queue */
    struct run_lists pushes, puts, gets; /* operations by stream, by queue */
    int *bound;   /* per wait, sync with an event and await: the operation waited for, -1: none */
    int *turn;    /* per operation: the one before it in its communicator on this rank, -1: none */
    int *call;    /* the same over all communicators of the rank, with launch_order_implicit */
    int *queued;  /* the same in its hardware queue */
    int *meeting; /* per collective: its meeting */
    struct run_lists meetings; /* members by meeting */
    int meeting_count;
    int *owner;                       /* per part: its operation */
    struct run_lists sends, receives; /* parts by channel; the n-th ones meet */
    int *credit; /* per part: the part of the other side that must have started, -1: none */
};

/* False: memory is exhausted. run_graph_close in any case. The program has no iterations. */
bool run_graph_open(struct run_graph *graph, const struct program *program);
void run_graph_close(struct run_graph *graph);

int64_t run_event(const struct run_graph *graph, int op, enum run_part part);
int64_t run_meeting(const struct run_graph *graph, int meeting);
int64_t run_event_count(const struct run_graph *graph);
/* The event at which an operation accesses its buffers. */
int64_t run_access_event(const struct run_graph *graph, int op);

/* Call `visit` for the events that `event` waits for. `known`: what happened before that one has then happened
   before this one; else it is only awaited. Ends early, with false, when visit returns false. */
typedef bool run_visit(void *context, int64_t event, bool known);
bool run_each_wait(const struct run_graph *graph, int64_t event, run_visit *visit, void *context);

/* Are the two events of one thread's body, or of one stream, in this order? */
bool run_in_line(const struct run_graph *graph, int64_t first, int64_t second);

#endif
