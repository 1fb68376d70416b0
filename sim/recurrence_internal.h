/*
 * recurrence_internal.h - what the files of the recurrence share; private to them.
 *
 *     recurrence_shrink.c    which events there are, in the order of their causes, and what each waits for
 *     recurrence_account.c   why streams are idle, in a block of periods
 *     recurrence_edge.c      where not all instances exist: one event after the other
 *     recurrence_middle.c    everything else: a block of periods at a time
 *     recurrence.c           the public face: making it, a run from its beginning to its results
 *
 * Periods are computed in blocks. A column holds the times of one event, a place a period and lane:
 *
 *                     history                    block
 *     column   | H periods before it |  BLOCK periods      |     x RANDOM_LANES, or x 1
 *
 * A struct recurrence is made once and then only read; a struct runner is one run, of one thread.
 */
#ifndef SWSIM_RECURRENCE_INTERNAL_H
#define SWSIM_RECURRENCE_INTERNAL_H

#include "sim/recurrence.h"

enum { BLOCK = RANDOM_RUN, SUMS = 8, NONE = -1 };

/* Where a time is: in a column, so many periods ago. */
/* Where a time is: in a column, so many periods ago. */
struct place {
    int column, height;
};

struct step {
    int column;       /* of the time; that of the end is the next one, if it takes time */
    int first, count; /* sources */
    int duration;     /* NONE: it takes no time */
};

struct duration {
    int op_first, op_count; /* of the graph's ops */
    int stage;
    int64_t constant_ns; /* what does not vary; the longest */
    bool varies;
};

/* One reason a stream is idle for. `slot` is the place in its account's sums. */
struct reason {
    struct place until, pushed; /* pushed.column NONE: none */
    int slot;
};

struct piece {
    struct place begin, end, before; /* before: the end of the piece before it */
    bool takes_time;
    int stream, first, count; /* reasons */
};

struct recurrence {
    const struct program *program;
    const struct timing *timing;
    struct event_graph graph;
    struct arena arena;
    int64_t iterations;
    int *order;               /* events by their causes */
    int *in_first, *in_edges; /* edges into an event */
    /* the smaller graph */
    struct event_ref *alias; /* per event: what it is another name for; itself, if for nothing */
    int *columns;            /* per event; NONE for an alias */
    int column_count;
    struct step *steps;
    int step_count;
    struct place *sources;
    struct duration *durations;
    int duration_count;
    struct piece *pieces; /* beside graph.works */
    struct reason *reasons;
    int *slots; /* per graph.idle: its place among the sums */
    struct slot {
        int stream;
        struct stall stall;
    } * sums; /* one a stream and reason; the first are NO_MORE_DATA of each stream, then CLOCK */
    int slot_count;
    int history; /* H */
    int64_t first,
        last;    /* periods that are like all others, with all they refer to: first .. last - 1 */
    int64_t end; /* periods in all */
};

/* Runs of draws of one operation. */
struct drawn {
    int64_t run[2];
    int64_t *ns[2];
};

struct runner {
    const struct recurrence *r;
    const struct simulate_options *options;
    struct diag *diag;
    int lanes;
    struct arena arena;
    struct iterations *iterations; /* per lane */
    int64_t *columns;              /* then the durations of the block */
    size_t stride;                 /* of a column */
    size_t *offsets;               /* per source: of its value in the block's first period */
    struct move {                  /* per step: where it reads and writes, likewise */
        size_t start, end, duration;
        int first, count;
        int64_t carry; /* all bits: the end of the step before is a source, too; it is at hand */
    } * moves;
    struct drawn *drawn; /* per operation that varies */
    int64_t *sums;       /* per slot: SUMS partial sums; of lane l: those l mod lanes */
    int64_t *busy;       /* per stream */
    int64_t *over_ns;    /* scratch: ends of a block's iterations, of one lane */
    int64_t *at;         /* scratch: a block */
    /* one by one: a ring of history + 1 periods */
    int64_t *starts, *ends;
    int ring;
    int64_t *since_ns; /* per stream and lane: it has been idle */
    struct absent { /* per stream: pieces that do not exist, whose reasons may hold for the next */
        int64_t period;
        int work;
    } * pending;
    int *pending_count;
    int pending_cap; /* per stream */
    struct entry {   /* reasons of pending pieces, in order */
        int idle;
        int64_t period;
    } * entries;
    int entry_count;
    int64_t reached;                     /* periods computed */
    int64_t admitted_ns[RANDOM_LANES];   /* the last one */
    uint64_t in_flight_ns[RANDOM_LANES]; /* retirements less admissions so far, modulo 2^64 */
    int64_t in_flight;                   /* iterations of rank 0 */
    bool stopped;
};

/* Where the columns have a place in the block's first period. */
static inline size_t at_column(const struct runner *run, struct place place)
{
    return (size_t)place.column * run->stride +
           (size_t)(run->r->history - place.height) * (size_t)run->lanes;
}

static inline size_t duration_at(const struct runner *run, int duration)
{
    return (size_t)run->r->column_count * run->stride +
           (size_t)(duration + 1) * BLOCK * (size_t)run->lanes;
}

static inline void take_later(int64_t *out, const int64_t *in, int count)
{
    for (int i = 0; i < count; i++)
        out[i] = out[i] > in[i] ? out[i] : in[i];
}

/* ---- recurrence_shrink.c --------------------------------------------------------------------- */

/* false: the plan has no recurrence, `why` says why, or memory is exhausted (the arena knows). */
bool recurrence_order(struct recurrence *r, char why[EVENT_GRAPH_WHY]);
bool recurrence_shrink(struct recurrence *r);
/* What a time has become in the smaller graph. */
struct event_ref recurrence_resolve(const struct recurrence *r, struct event_ref ref);
struct place recurrence_place(struct recurrence *r, struct event_ref ref);
bool recurrence_refuse(char why[EVENT_GRAPH_WHY], const char *text);

/* ---- recurrence_account.c -------------------------------------------------------------------- */

bool recurrence_make_pieces(struct recurrence *r);
/* Book the block's `count` values a column. */
void recurrence_book(struct runner *run, int count);

/* ---- recurrence_edge.c ----------------------------------------------------------------------- */

/* Periods from .. to - 1, one by one. */
void recurrence_run_edge(struct runner *run, int64_t from, int64_t to);
/* What streams have been idle for at the very end. */
void recurrence_end_edge(struct runner *run);
/* When an event happened, per lane, a period of the ring ago at most. */
int64_t *recurrence_edge_time(const struct runner *run, int event, int64_t period, bool end);

/* ---- recurrence_middle.c --------------------------------------------------------------------- */

/* Periods of which all instances exist, in blocks; run->reached says how far that went. */
void recurrence_run_middle(struct runner *run);
void recurrence_prepare_middle(struct runner *run);

/* ---- recurrence.c ---------------------------------------------------------------------------- */

/* `count` periods from `period` on have been computed: in the columns, `block` being the first of
   theirs, or, with `block` NONE, in the ring. */
void recurrence_note_periods(struct runner *run, int64_t period, int count, int64_t block);

#endif
