/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_graph_internal.h - the notes of the walk over a period: event_graph_scope.c says whether a plan has an
 * event graph, event_graph.c walks, event_graph_idle.c tells from the notes why streams are idle. Private to the three.
 */
#ifndef SWSIM_EVENT_GRAPH_INTERNAL_H
#define SWSIM_EVENT_GRAPH_INTERNAL_H

#include "event_graph.h"

enum { NONE = -1 };

/* Where the walk is. */
struct place {
    int rank, task, stage, thread;
};

/* The operations of a rank, in enqueue order: begins as {.rank = rank}. */
struct scan {
    int rank, position, next;
    struct place place; /* of the operation that event_graph_next returned last */
};

/* A collective that all members of a communicator take part in. */
struct joint {
    int event; /* NONE: no member has come to it in the walk */
    int stage; /* by which the event's period is counted */
};

/* An operation that can hold up a thread, in its order. */
struct note {
    enum { NOTE_HOST, NOTE_AWAIT, NOTE_TICKET, NOTE_PLACE } kind;
    struct event_ref until;
    int task, on; /* whose instance; AWAIT: the task waited for, PLACE: the stream */
    int begin;    /* event of the instance */
    int item;     /* PLACE: what is pushed */
};
struct notes {
    struct note *items;
    size_t count, cap;
};

/* A push to a stream, in its order. */
struct item {
    enum { ITEM_WAIT, ITEM_WORK, ITEM_RECORD, ITEM_LATE_RECORD } kind; /* LATE: behind CPU work */
    int task, on;            /* whose instance; WAIT: the task waited for */
    int begin;               /* event of the instance */
    size_t noted;            /* notes of its thread so far */
    struct event_ref pushed; /* the thread, then */
    struct event_ref until;  /* WAIT: the event; WORK, RECORD: the event of the graph */
    struct event_ref member; /* WORK: a collective: when its communicator is free */
    int lane;                /* of that communicator's member */
    int comm;                /* that communicator */
};
struct items {
    struct item *items;
    size_t count, cap;
};

struct builder {
    const struct program *p;
    const struct timing *timing;
    struct arena scratch;
    struct event_graph out;
    size_t edge_cap, link_cap, event_cap, closed_cap, op_cap, idle_cap;
    bool *closed;             /* per event: something depends on it */
    struct joint *joints;     /* per communicator and task */
    int *positions;           /* per rank and task: in enqueue order */
    int *stream_threads;      /* the thread that pushes; NONE: none */
    int *items, *first_item;  /* per stream: pushed by an iteration; its first slot */
    int *walked;              /* per stream: items of the period walked so far */
    struct event_ref *pushed; /* per stream: the thread, when it pushed last */
    struct event_ref *slots;
    int64_t *mean_ns;         /* per event */
    struct notes *notes;      /* per thread */
    struct items *pushes;     /* per stream */
    struct event_ref *serves; /* per rank and task: the end of its turn */
    int begin;                /* the event at which the instance in hand began */
    int slot_threads, slot_streams, slot_members, slot_served, slot_events, slot_signals;
    int slot_items; /* of bounded streams */
    int slot_count;
};

static inline struct event_ref ref_at(int event)
{
    return (struct event_ref){event, 0, false};
}

/* The next operation of the scan; NULL: that was the last. */
const struct op *event_graph_next(const struct builder *b, struct scan *scan);

/* Does the plan have an event graph? Fills stream_threads. false: no, or no memory (the arena remembers). */
bool event_graph_applies(struct builder *b);

/* The plan has no event graph, because of this. Returns false. */
bool event_graph_refuse(struct builder *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Works and idles of all streams. */
void event_graph_tell(struct builder *b);

#endif
