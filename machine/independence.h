/*
 * independence.h - which steps can hinder each other: internal to core.
 *
 * Two agents notice each other only through objects both use. For every object there is a list of
 * who uses it how, from which follows whose steps may conflict with a given one: disable it, be
 * disabled by it, or lead elsewhere when done before instead of after it. The table belongs to the
 * program and is never changed after it is built; the argument is in independence.c.
 *
 *     first[object] --> {agent, way, tag, last} --> {agent, way, tag, last} --> -1
 */
#ifndef SWSIM_INDEPENDENCE_H
#define SWSIM_INDEPENDENCE_H

#include "program.h"

enum object_kind {
    OBJECT_STREAM,    /* the tail of a stream */
    OBJECT_DEVICE,    /* per rank: is anything queued? */
    OBJECT_HW_QUEUE,  /* the tail of a hardware queue */
    OBJECT_MEMBER,    /* per member of a communicator: the order of issue */
    OBJECT_ISSUE,     /* per rank: the order of issue on any communicator (launch_order_implicit) */
    OBJECT_EVENT,     /* family */
    OBJECT_FLAG,      /* family */
    OBJECT_QUEUE,     /* a bounded queue */
    OBJECT_LOCK,      /**/
    OBJECT_TICKET,    /* per rank: tickets served */
    OBJECT_MEMORY,    /* per rank: the allocator */
    OBJECT_SLOTS,     /* per rank: re-arming of slots that may still be looked at */
    OBJECT_RETIRED,   /* per rank: which iteration is the oldest */
    OBJECT_NUMBER,    /* per rank: the next ticket to hand out */
    OBJECT_INBOX,     /* per thread: a worker's queue */
    OBJECT_RESIDENCY, /* per rank: residency slots */
    OBJECT_KINDS
};

/* Ways to use an object. READ conflicts with WRITE; WRITE with all; PUT with PUT, GET with GET (the
   two ends of a FIFO do not mind each other); ASK with CHANGE, but neither with itself; RELEASE with
   nobody. */
enum way { WAY_READ, WAY_WRITE, WAY_PUT, WAY_GET, WAY_ASK, WAY_CHANGE, WAY_RELEASE };

struct use {
    int agent;
    enum way way;
    int tag;  /* two uses with one tag (>= 0) do not conflict */
    int last; /* host threads: the last operation of their body that does this; else INT_MAX */
    int next; /* in the list of the object; -1: none */
};

struct use_table {
    int base[OBJECT_KINDS];
    int *first; /* per object: its newest use; -1: none */
    struct use *items;
    size_t count, cap;
    bool *lock_abused; /* per lock: somebody releases what he may not hold */
};

/* Number of an object in use_table.first. */
static inline int use_object(const struct program *program, enum object_kind kind, int index)
{
    return program->uses->base[kind] + index;
}

bool use_conflicts(enum way way, int tag, const struct use *other);

/* Call `visit` with everything a step uses. */
typedef void use_visit(void *arg, int object, enum way way, int tag);
void uses_of_op(const struct program *program, const struct op *op, int thread, use_visit *visit,
                void *arg);
void uses_of_take(const struct program *program, int thread, use_visit *visit, void *arg);
void uses_of_admit(const struct program *program, int rank, use_visit *visit, void *arg);
void uses_of_retire(const struct program *program, int rank, use_visit *visit, void *arg);
void uses_of_start(const struct program *program, int stream, const struct op *op, use_visit *visit,
                   void *arg);

#endif
