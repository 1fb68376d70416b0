/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steady.h - the exact steady state of a plan: how long an iteration takes in the long run.
 *
 * There are three ways to it, tried in this order:
 *
 *     event_graph.h        a clock-driven plan is an event graph: its maximum cycle ratio
 *     observed_event_graph.h   any plan whose steps are all free is one too: the graph is found by a run
 *     the recurrent state  any other plan: a run that returns to an earlier state repeats itself
 *
 * Where durations vary it is the steady state of their means, which no run of an event graph beats in
 * the long run.
 *
 * The recurrent state. Where durations do not vary, the next event is a function of the machine's state,
 * iteration numbers being relative, and of how long each busy agent has been busy. There are finitely many
 * of both within the bounds of a plan, so sooner or later a run comes to an instant that looks like an
 * earlier one, and from there on repeats the part between: its time over its iterations is the exact time
 * of an iteration. (Ghamarian, Geilen, Stuijk et al. 2006 find the throughput of data-flow graphs so.)
 *
 *     |--fill--|------ one repetition ------|------ one repetition ------| ...
 *              t1                           t2
 *
 * How long an agent has been busy says how long it will be only if nothing slows it down: where work
 * shares a device (sharing.h) nothing is found.
 *
 * Threads may race for a queue, a lock or residency slots; the winner wins each time. So the time is exact
 * for the schedule that comes about with these durations, under every driver. But only where no such race
 * is (event_graph.h) is it also a bound that no run with the same mean durations beats in the long run,
 * and only there is a task's slack known.
 *
 * Its critical cycle: every step leads back to the one that made it possible (enabling_steps.h), and in the steady
 * state to the same step of an earlier repetition in the end; going back arrives at a cycle.
 */
#ifndef SWSIM_STEADY_H
#define SWSIM_STEADY_H

#include "event_graph.h"

/* One iteration takes num_ns / den nanoseconds. */
struct steady {
    enum steady_kind { STEADY_UNKNOWN, STEADY_EXACT, STEADY_DEADLOCK } kind;
    int64_t num_ns, den; /* EXACT: in lowest terms */
    enum steady_way {
        STEADY_BY_GRAPH,  /* event_graph_build */
        STEADY_BY_CAUSES, /* observed_event_graph.h */
        STEADY_BY_RECURRENT_STATE /* a recurrent state: of the order that comes about with these durations, no bound on others */
    } way;
    /* EXACT: what takes time on the critical cycle, and the driver where it is on it; DEADLOCK: the circle of
       waits; in order of time. */
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
/* The same in the first of the ways up to `last` that finds one: an UNKNOWN one says why the last that
   was tried finds none. */
enum status steady_find_by(const struct program *program, const struct timing *timing,
                           enum steady_way last, struct steady *out, struct diag *diag);
/* The same of a graph that was found one way or the other. */
enum status steady_of_graph(const struct event_graph *graph, enum steady_way way,
                            struct steady *out, struct diag *diag);
void steady_fini(struct steady *steady);

/* Most iterations and steps of a run that are looked at. */
enum { STEADY_MOST_ITERATIONS = 4096, STEADY_MOST_STEPS = 1000000 };

/* The recurrent state: durations are the means, and data do not end. STEADY_UNKNOWN, with `why`, where the
   run does not repeat itself within those limits. Failures as for simulate_run; *out is set on success
   only. */
enum status steady_recurrent(const struct program *program, const struct timing *timing,
                             struct steady *out, struct diag *diag);

/* For steady*.c: ns / iterations in lowest terms; a part after the others, with the last if they are the
   same. */
void steady_set(struct steady *steady, int64_t ns, int64_t iterations);
void steady_add(struct steady *steady, const struct steady_part *part);

/* The number of parts before the cycle goes around the same ones again, perhaps not to the end in the last turn; part_count
   if it does not. */
int steady_turn(const struct steady *steady);

#endif
