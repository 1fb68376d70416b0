/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_graph.h - one table of what waits for what in a program without iterations, if every run has the same answer.
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

#include "lists.h"

enum run_part { RUN_EXECUTE, RUN_START, RUN_DONE, RUN_PARTS };

/* `known`: what happened before `awaited` has then happened before `event`; else it is only awaited. */
struct run_wait {
    int64_t event, awaited;
    bool known;
};

struct run_graph {
    const struct program *program;
    struct arena *arena;
    const char *refusal; /* why runs may differ, or partners are missing or differ; NULL: nothing */
    int *body;           /* per operation */
    int meeting_count;
    struct lists_lists meetings; /* members by meeting: the n-th collectives of a communicator */
    struct run_wait *waits;
    size_t count, cap; /* of waits */
};

/* All memory is the arena's. False: it is exhausted. The program has no iterations. */
bool run_graph_open(struct run_graph *graph, const struct program *program, struct arena *arena);

int64_t run_event(const struct run_graph *graph, int op, enum run_part part);
int64_t run_meeting(const struct run_graph *graph, int meeting);
int64_t run_event_count(const struct run_graph *graph);
/* The event at which an operation accesses its buffers. */
int64_t run_access_event(const struct run_graph *graph, int op);

/* True if the two events of one thread's body, or of one stream, are in this order. */
bool run_in_line(const struct run_graph *graph, int64_t first, int64_t second);

#endif
