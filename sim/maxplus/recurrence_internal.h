/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recurrence_internal.h - what the files of the recurrence share; private to them.
 *
 *     recurrence_shrink.c    events in the order of their causes, and which of those matter
 *     recurrence_steps.c     what has to be computed, and how
 *     recurrence_account.c   why streams are idle, in a block of periods
 *     recurrence_edge.c      where not all instances exist: one event after the other
 *     recurrence_ahead.c     iterations in flight where the host runs ahead of the device
 *     recurrence_middle.c    everything else: a block of periods at a time
 *     recurrence.c           the public face: making it, a run from its beginning to its results
 *
 * The plan of the recursion. Of an event that waits for several others the start is computed, the latest
 * of theirs. One that waits for a single other starts when that is over: its start is no time of its own.
 * Nor is an end that comes a fixed time after the start. What is left are
 *
 *     start   the latest of several times
 *     end     a time and a duration that varies
 *
 * and any other time is one of these, so many periods ago, and so much later (struct place). Most ends
 * only the next in their stream waits for: they are left out of the recursion, which adds
 * their durations in one go (struct stretch), and are filled in afterwards (struct late).
 *
 * Periods are computed in blocks. A column holds one of these times, a place a period and lane:
 *
 *                     history                    block
 *     column   | H periods before it |  BLOCK / lanes periods  |     x RANDOM_LANES, or x 1
 *
 * A struct recurrence is made once and then only read; a struct runner is one run, of one thread.
 */
#ifndef SWSIM_RECURRENCE_INTERNAL_H
#define SWSIM_RECURRENCE_INTERNAL_H

#include "recurrence.h"

/* Values of a column in a block, as many as are drawn at once for all lanes; those that are added up side by
   side. */
enum { BLOCK = RANDOM_ROWS * RANDOM_LANES, SUMS = 8, NONE = -1 };

typedef int64_t vector __attribute__((vector_size(8 * SUMS), aligned(8), may_alias));
_Static_assert((int)BLOCK >= (int)RANDOM_RUN, "a run fits in a block");
_Static_assert((int)SUMS == (int)RANDOM_LANES, "a vector has a number of each lane");

/* A time of the graph as another one, so much later. */
struct origin {
    struct event_ref ref;
    int64_t plus_ns;
};

/* The same, in a column. */
struct place {
    int column, height;
    int64_t plus_ns;
};

/* One of the recursion: the latest of its sources, and an end that follows. */
struct step {
    int first, count; /* sources */
    int start, end;   /* columns; NONE: not wanted, none */
    int stretch;      /* between both */
};

/* Durations one after the other. */
struct stretch {
    int first, count; /* parts */
};

struct late {
    struct place from;
    int column, duration;
};

/* That of an event; it varies. */
struct duration {
    int op_first, op_count; /* of the graph's ops */
    int stage;
    int64_t constant_ns; /* the longest of those that do not vary */
};

/* One reason a stream is idle for. `slot` is the place in its account's sums. */
struct reason {
    struct place until, pushed; /* pushed.column NONE: none */
    int slot;
};

struct piece {
    struct place before;      /* the end of the piece before it */
    int stream, first, count; /* reasons */
    int64_t busy_ns;          /* it takes so long, */
    int duration;             /* and this, if not NONE */
};

struct recurrence {
    const struct program *program;
    const struct timing *timing;
    struct event_graph graph;
    struct arena arena;
    int64_t iterations;
    int *order;               /* events by their causes */
    int *in_first, *in_edges; /* edges into an event, by the rank of their tails, NONE first */
    /* the smaller graph; per event: */
    bool *gone;             /* per edge: another cause is never earlier */
    struct event_ref *only; /* its single cause, if `follows` */
    bool *follows;
    int64_t *constant_ns;  /* how long it takes, unless that varies */
    int *duration;         /* NONE: it does not */
    int *starts, *ends;    /* columns */
    struct shrink *shrink; /* while it is made */
    int column_count;
    struct step *steps;
    int step_count;
    struct place *sources;
    struct stretch *stretches;
    int stretch_count;
    int *parts; /* durations */
    struct late *lates;
    int late_count;
    struct duration *durations;
    int duration_count;
    struct place *drivers; /* per rank: when it comes to a period */
    bool runs_ahead;       /* of the device: iterations are over later than they are retired */
    struct place
        *finishes; /* per rank, if it does: the device is through with what the driver retires */
    int *passed;   /* per rank, if it does: what was retired so many periods ago is over for sure */
    struct piece *pieces; /* beside graph.works */
    struct reason *reasons;
    int reason_count;
    int *slots; /* per graph.idle: its place among the sums */
    struct slot {
        int stream;
        struct stall stall;
        int next; /* of the same stream; NONE */
    } * sums; /* one a stream and reason; the first are NO_MORE_DATA of each stream, then CLOCK */
    int slot_count;
    int history;     /* H */
    int reach;       /* periods the graph itself refers back */
    int first_stage; /* the lowest of the durations */
    int64_t first,
        last;    /* periods that are like all others, with all they refer to: first .. last - 1 */
    int64_t end; /* periods in all */
};

struct runner {
    const struct recurrence *r;
    const struct simulate_options *options;
    struct diag *diag;
    int lanes;
    struct arena arena;
    struct iterations *iterations; /* per lane */
    int64_t *columns;              /* then zeros, scratch, stretches and the durations drawn */
    size_t stride;                 /* of a column */
    struct source {
        size_t at;
        int64_t plus_ns;
    } * sources;  /* of moves */
    struct move { /* per step: where it reads and writes in the block's first period */
        struct source a, b;
        bool follows; /* the move before, instead of `a` */
        size_t start, end, stretch;
        int first, count; /* further sources */
        bool drawn;       /* the stretch is a single duration, of those drawn from here on */
        size_t drawn_from;
    } * moves;
    int run_length;     /* iterations drawn at once */
    int64_t drawn_from; /* the period the durations begin with */
    size_t drawn_at;    /* the block's place in them */
    size_t drawn_stride;
    int64_t *sums;     /* per slot: SUMS partial sums; of lane l: those l mod lanes */
    int64_t *busy;     /* per stream */
    int64_t *over_ns;  /* scratch: ends of a block's iterations */
    int64_t *at;       /* scratch: a block */
    int64_t *one_draw; /* scratch: a run of draws */
    /* one by one: a ring of history + 1 periods */
    int64_t *starts, *ends;
    int ring;
    int64_t *since_ns;   /* per stream and lane: it has been idle */
    int64_t *place_ns;   /* a ring per item: when there was a place for it */
    int64_t places_from; /* the first period that this is known of */
    struct queued {      /* per bounded stream: the last items pushed, a ring */
        int64_t period;
        int item;
    } * queued;
    size_t *queued_first;    /* per stream: its places in `queued` */
    int64_t *queued_count;   /* per stream: all that have been pushed */
    int64_t *queued_number;  /* per item: that of this period */
    struct ahead {           /* per rank and lane */
        int64_t next;        /* period: what is retired in those before is over */
        int64_t admitted_ns; /* the last one; NONE: none */
    } * ahead;
    int64_t *finish_ns; /* a ring per rank and lane: when the device was through */
    int64_t *retire_ns; /* and when the driver was */
    int64_t in_flight_max[RANDOM_LANES];
    bool unclear;   /* an iteration is over just when another is admitted: which is first? */
    struct absent { /* per stream: pieces that do not exist, whose reasons may hold for the next */
        int64_t period;
        int work;
    } * pending;
    int *pending_count;
    size_t *pending_first; /* per stream: its places in `pending` */
    struct entry {         /* reasons of pending pieces, in order */
        int idle;
        int64_t period;
    } * entries;
    int entry_count;
    int64_t reached;                     /* periods computed */
    int64_t admitted_ns[RANDOM_LANES];   /* the last one */
    uint64_t in_flight_ns[RANDOM_LANES]; /* retirements less admissions so far, modulo 2^64 */
    int64_t in_flight;                   /* iterations of rank 0 */
    bool stopped;
    bool interrupted; /* that is why */
    int64_t interrupted_at;
};

/* Where the columns have a place in the block's first period. */
static inline size_t at_column(const struct runner *run, struct place place)
{
    return (size_t)place.column * run->stride +
           (size_t)(run->r->history - place.height) * (size_t)run->lanes;
}

/* Where it is in what follows the columns: zeros, scratch, */
static inline size_t zeros_at(const struct runner *run)
{
    return (size_t)run->r->column_count * run->stride;
}

/* the sums of a block's stretches, */
static inline size_t stretch_at(const struct runner *run, int stretch)
{
    return zeros_at(run) + (size_t)(2 + stretch) * BLOCK;
}

/* and the draws: of a duration from iteration drawn_from - stage on. */
static inline size_t drawn_at(const struct runner *run, int duration)
{
    return stretch_at(run, run->r->stretch_count) + (size_t)duration * run->drawn_stride;
}

static inline void take_later(int64_t *out, const int64_t *in, int count)
{
    for (int i = 0; i < count; i++)
        out[i] = out[i] > in[i] ? out[i] : in[i];
}

/* ---- recurrence_shrink.c --------------------------------------------------------------------- */

/* Why there is no recurrence; false. */
bool recurrence_refuse(char why[EVENT_GRAPH_WHY], const char *text);
/* false: the plan has no recurrence, `why` says why, or memory is exhausted (the arena knows). */
bool recurrence_order(struct recurrence *r, char why[EVENT_GRAPH_WHY]);
bool recurrence_shrink(struct recurrence *r);
/* A time of the smaller graph. */
struct origin recurrence_resolve(const struct recurrence *r, struct event_ref ref);
struct place recurrence_place(struct recurrence *r, struct event_ref ref);
/* Is `early` never later than the latest of these `count` times? false: it is not known. With a `rank` only
   by its own events and collectives; NONE: by those of all ranks. */
bool recurrence_is_bounded(struct recurrence *r, int rank, struct event_ref early,
                           const struct event_ref *late, int count);
/* So many periods before `late` all causes of the event `early`, which takes no time, are never later than it;
   more than r->reach: never. A search as above; the answer may be longer than the true one. */
int recurrence_periods_behind(struct recurrence *r, int rank, int early, int late);

/* ---- recurrence_steps.c ---------------------------------------------------------------------- */

bool recurrence_make_steps(struct recurrence *r);

/* ---- recurrence_account.c -------------------------------------------------------------------- */

bool recurrence_make_pieces(struct recurrence *r);
/* Book the block's `count` values a column. */
void recurrence_book(struct runner *run, int count);

/* ---- recurrence_edge.c ----------------------------------------------------------------------- */

/* Periods from .. to - 1, one by one. */
void recurrence_run_edge(struct runner *run, int64_t from, int64_t to);
/* The idle time of streams at the very end. */
void recurrence_end_edge(struct runner *run);
/* When an event happened, per lane, a period of the ring ago at most. */
int64_t *recurrence_edge_time(const struct runner *run, int event, int64_t period, bool end);

/* ---- recurrence_ahead.c ---------------------------------------------------------------------- */

/* false: memory. */
bool recurrence_make_ahead(struct recurrence *r);
bool recurrence_open_ahead(struct runner *run);
/* When the device was through with what is retired in the period, in a block or in the ring. */
int64_t recurrence_finish_ns(const struct runner *run, int rank, int64_t period, int64_t block,
                             int lane);
int64_t recurrence_driver_ns(const struct runner *run, int rank, int64_t period, int64_t block,
                             int lane);
/* Iterations come and go in this period. */
void recurrence_note_ahead(struct runner *run, int64_t period, int64_t block);

/* ---- recurrence_middle.c --------------------------------------------------------------------- */

/* Periods of which all instances exist, in blocks; run->reached says how far that went. */
void recurrence_run_middle(struct runner *run);
void recurrence_prepare_middle(struct runner *run);

/* ---- recurrence.c ---------------------------------------------------------------------------- */

/* `count` periods from `period` on have been computed: in the columns, `block` being the first of
   theirs, or, with `block` NONE, in the ring. */
void recurrence_note_periods(struct runner *run, int64_t period, int count, int64_t block);
/* Does the driver retire an iteration in this period, and does it admit one? */
bool recurrence_retires(const struct recurrence *r, int64_t period);
bool recurrence_admits(const struct recurrence *r, int64_t period);
/* Bytes of the buffers that every iteration has of its own. */
int64_t recurrence_iteration_bytes(const struct program *p);

#endif
