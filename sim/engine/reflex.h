/*
 * reflex.h - what the machine did when somebody's time was over, written down and done again; private to
 * the event-driven engine.
 *
 * While the machine does it for the first time, simulate.c and account.c write into a recording: work
 * that starts, streams that change what they do, iterations that begin or end. A reflex is made of it: one
 * block of memory with all that does not change from time to time looked up, so that doing it again
 * takes draws, additions and stores. Most steps only let a stream go on with its next work; these are
 * plain and have a way of their own.
 *
 * Nothing here knows what an operation means: the order in which things were written down is that in
 * which they are done again.
 */
#ifndef SWSIM_REFLEX_H
#define SWSIM_REFLEX_H

#include "simulation.h"

struct node; /* of the automaton */

/* A duration to be drawn. */
struct reflex_draw {
    struct draws *draws; /* NULL: it never varies */
    int64_t mean_ns;
    int op, iteration; /* relative */
};

/* An event to be put: after the longest of so many of the reflex's draws. */
struct reflex_start {
    struct seat seat;
    uint64_t order;
    int draws;
    bool shares; /* it is work on a device */
};

/* An operation that waits for its peers and holds what it has of a device meanwhile (sharing.h). */
struct reflex_hold {
    int op;
};

/* A stream that changes what it does, or a common reason that changes. */
struct reflex_book {
    int number;   /* the stream's, or ~the common reason's */
    int from, to; /* blames of the stream's lane */
    struct stall value;
};

/* An iteration that begins, or ends. */
struct reflex_turn {
    int rank, iteration; /* relative */
    int in_flight;       /* ENDS: it ends */
};
enum { ENDS = -1 };

/* It knows where events are, and so is of no use when there are more places for them. What is needed each
   time stands in front: two lines of a cache. */
struct reflex {
    struct reflex *likely; /* what followed last, if that came alone at its time; NULL: not known */
    struct seat seat;      /* whose time is over */
    bool plain;            /* one start of one draw, and nothing else */
    bool again;            /* plain: at the same seat */
    int64_t taken;         /* so many times */
    uint64_t order;        /* plain: of the start, */
    struct reflex_draw draw;   /* its draw */
    struct node *to;           /* where it leads */
    struct reflex_draw *draws; /* of all starts; these lists stand behind it */
    struct reflex_start *starts;
    int start_count, hold_count, book_count, turn_count;
    struct reflex_hold *holds;
    struct reflex_book *books;
    struct reflex_turn *turns;
    bool settles;     /* the instant is over: rates may change (sharing.h) */
    int shift;        /* by so much iteration numbers become smaller each time */
    int steps, tasks; /* of the simulation's result, each time */
};

/* What happened, in order of each kind. That memory ran out is remembered. */
struct recording {
    struct reflex_draw *draws;
    struct reflex_start *starts;
    struct reflex_hold *holds;
    struct reflex_book *books;
    struct reflex_turn *turns;
    int draw_count, start_count, hold_count, book_count, turn_count;
    int draw_cap, start_cap, hold_cap, book_cap, turn_cap;
    bool failed;
};

void recording_fini(struct recording *recording);
void recording_start(struct simulation *sim, int agent, int priority, const struct timed_op *ops,
                     int count);
void recording_hold(struct simulation *sim, int op);
void recording_lane(struct simulation *sim, int stream, int from, int to);
void recording_common(struct simulation *sim, int number, const struct stall *value);
void recording_admitted(struct simulation *sim, int rank, int64_t iteration, int64_t in_flight);
void recording_retired(struct simulation *sim, int rank, int64_t iteration);

/* A reflex that does what was written down, which is forgotten. free() ends it; NULL: memory is exhausted.
   *bytes: its size. */
struct reflex *reflex_make(struct simulation *sim, int agent, size_t *bytes);

/* What is not plain. */
void reflex_do_all(struct simulation *sim, const struct reflex *reflex);

static inline int64_t reflex_draw(struct simulation *sim, const struct reflex_draw *draw)
{
    return draw->draws
               ? simulation_draw_next(sim, draw->draws, draw->op, draw->iteration + sim->base)
               : draw->mean_ns;
}

/* Do it again, now. */
static inline void reflex_do(struct simulation *sim, struct reflex *reflex)
{
    const int64_t now_ns = sim->now_ns = *reflex->seat.due_ns;
    const struct seat *seat = &reflex->seat;
    reflex->taken++;
    if (!reflex->plain) {
        reflex_do_all(sim, reflex);
        return;
    }
    if (!reflex->again) {
        events_leave(&sim->clocks.events, seat);
        seat = &reflex->starts->seat;
    }
    events_renew(&sim->clocks.events, seat, now_ns + reflex_draw(sim, &reflex->draw),
                 reflex->order);
}

#endif
