/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memo.h - the machine's behaviour is remembered, so that it is asked once; private to
 * sim/engine/.
 *
 * Without its clocks a simulation has few states: those of the machine, iteration numbers being
 * relative (machine_canonical), and which agents are busy. The end of an operation has consequences
 * that depend on nothing else. So the simulation is a finite automaton, and the memo holds the part of
 * it that the run has met:
 *
 *     node   a state, as bytes
 *     edge   agent a's time is over: timers that start, streams that change what they do,
 *            iterations that begin or end, and the next node
 *
 * The first time an edge is taken the machine does the steps, and simulate.c and account.c write them
 * into a recording. An edge is made of it: one block of memory, so
 * that taking it again costs draws, additions and stores. The order of writing is the order of doing it
 * again; no edge knows what an operation means. Most edges only let a stream go on with its next work;
 * these are plain and have a way of their own.
 *
 * Durations are drawn in either case, and they alone are random. An edge is taken per event; of several
 * events at one time all but the last lead to an open node, where the instant has not been brought to
 * its end. The next event is random too, but mostly it is that of last time. So an edge remembers its
 * last successor, which is tried before the node is searched.
 *
 * Where work slows other work down (sharing.h), the work left decides when time is over, not what
 * follows. So it is no part of a state, and those accounts are kept beside it like the clocks.
 */
#ifndef SWSIM_MEMO_H
#define SWSIM_MEMO_H

#include "simulation.h"

/* Begin at the present instant, which is over. None, where it cannot pay. `fellow`: one with the same program, durations and
   places of events, whose memo, if it has one, serves both; NULL: none. */
void memo_open(struct simulation *sim, const struct simulation *fellow);
/* Go on as long as that is faster than asking the machine, and at most until the end of the data comes in sight: there it
   closes. Or until the simulation pauses. */
void memo_go_on(struct simulation *sim);
void memo_close(struct simulation *sim);

/* ---- edges ----------------------------------------------------------------------------------- */

struct memo_node;

/* A duration to be drawn. */
struct memo_draw {
    int draw; /* -1: it never varies */
    int64_t mean_ns;
    int op, iteration; /* relative */
};

/* An event to be put: after the longest of so many of the edge's draws. */
struct memo_start {
    struct seat seat;
    uint64_t order;
    int draws;
    bool lone; /* of a collective: lone_ranks.h */
};

/* An operation that waits for its peers and keeps its share of a device meanwhile (sharing.h). */
struct memo_hold {
    int op;
};

/* A stream that changes what it does, or a common reason that changes. */
struct memo_change {
    int number;   /* the stream's, or ~the common reason's */
    int from, to; /* blames of the stream's lane */
    struct stall value;
};

/* An iteration that begins, or ends. */
struct memo_iteration {
    int rank, iteration; /* relative */
    int in_flight;       /* ENDS: it ends */
};
enum { ENDS = -1 };

/* Seats depend on the number of places for events, so edges are void when there are more. The members
   needed each time stand in front: two lines of a cache. */
struct memo_edge {
    struct memo_edge *likely; /* the last successor alone at its time; NULL: not known */
    struct seat seat;         /* of the event that has come */
    bool plain;               /* one start of one draw, and nothing else */
    bool again;               /* plain: at the same seat */
    int64_t taken;            /* so many times */
    uint64_t order;           /* plain: of the start, */
    struct memo_draw draw;    /* its draw */
    struct memo_node *to;     /* where it leads */
    struct memo_draw *draws;  /* of all starts; these lists stand behind it */
    struct memo_start *starts;
    int draw_count, start_count, hold_count, change_count, iteration_count;
    struct memo_hold *holds;
    struct memo_change *changes;
    struct memo_iteration *iterations;
    bool settles;     /* the instant is over: rates may change (sharing.h) */
    int shift;        /* by so much iteration numbers become smaller each time */
    int steps, tasks; /* of the simulation's result, each time */
};

/* The consequences of an event, in order of each kind. That memory ran out is remembered. */
struct recording {
    struct memo_draw *draws;
    struct memo_start *starts;
    struct memo_hold *holds;
    struct memo_change *changes;
    struct memo_iteration *iterations;
    int draw_count, start_count, hold_count, change_count, iteration_count;
    int draw_cap, start_cap, hold_cap, change_cap, iteration_cap;
    bool failed;
};

void recording_fini(struct recording *recording);
void recording_start(struct simulation *sim, int agent, int priority, const struct timed_op *ops,
                     int count);
void recording_hold(struct simulation *sim, int op);
void recording_lane(struct simulation *sim, int stream, int from, int to);
void recording_common(struct simulation *sim, int number, const struct stall *value);
void recording_admitted(struct simulation *sim, int rank, int64_t iteration, int64_t in_flight);
void recording_finished(struct simulation *sim, int rank, int64_t iteration);

/* For edges that are not plain. */
void memo_edge_take_all(struct simulation *sim, const struct memo_edge *edge);

static inline int64_t memo_draw_ns(struct simulation *sim, const struct memo_draw *draw)
{
    return draw->draw >= 0 ? simulation_draw_next(sim, &sim->clocks.draws[draw->draw], draw->op,
                                                  draw->iteration + sim->base)
                           : draw->mean_ns;
}

/* Do its consequences again, now. */
static inline void memo_edge_take(struct simulation *sim, struct memo_edge *edge)
{
    const int64_t now_ns = sim->now_ns = sim->clocks.events.times_ns[edge->seat.node];
    const struct seat *seat = &edge->seat;
    edge->taken++;
    if (!edge->plain) {
        memo_edge_take_all(sim, edge);
        return;
    }
    if (!edge->again) {
        events_leave(&sim->clocks.events, seat);
        seat = &edge->starts->seat;
    }
    events_renew(&sim->clocks.events, seat, now_ns + memo_draw_ns(sim, &edge->draw), edge->order);
}

#endif
