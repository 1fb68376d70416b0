/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uses.h - the relation between operations: which objects a step uses, in which way, and what follows from it.
 *
 * Two agents affect each other only through objects that both use. The row of an operation in op_table (plan/ops.h) says
 * what the operation does to its object, and when. The row of its operand in operand_table says which way of use this is, and
 * which agents can help a blocked one. These files ask:
 *
 *     conflicts.c   which steps conflict: two ways to use one object (use_conflicts)
 *     enablers.c    who can help a blocked agent: those that use what it waits for in the helping way
 *     why.c         the first of these, for a story
 *     sim/engine    whom a step may wake: those that wait for the object that it helps with (op_awaited, op_helped)
 *
 * A row of operand_table that lacks a way has WAY_WRITE there, which conflicts with all, and an operand that lacks helpers is
 * helped by every agent. So an answer that was forgotten costs states, and no verdict.
 *
 * For every object there is a list of its uses. The table of uses belongs to the program and is never changed after it is
 * built.
 *
 *     first[object] --> {agent, way, tag, last} --> {agent, way, tag, last} --> -1
 */
#ifndef SWSIM_USES_H
#define SWSIM_USES_H

#include "base/table.h"
#include "fixed_order.h"
#include "machine.h"

enum object_kind {
    OBJECT_STREAM,    /* the tail of a stream */
    OBJECT_DEVICE,    /* per rank: true if anything is queued */
    OBJECT_HW_QUEUE,  /* the tail of a hardware queue */
    OBJECT_MEMBER,    /* per member of a communicator: the order of issue */
    OBJECT_ISSUE,     /* per rank: the order of issue on any communicator (launch_order_implicit) */
    OBJECT_EVENT,     /* family */
    OBJECT_FLAG,      /* family */
    OBJECT_QUEUE,     /* a bounded queue */
    OBJECT_LOCK,      /**/
    OBJECT_TICKET,    /* per rank: tickets served */
    OBJECT_MEMORY,    /* per rank: the allocator */
    OBJECT_SLOTS,     /* per rank: re-arming of slots that may still be read */
    OBJECT_RETIRED,   /* per rank: which iteration is the oldest */
    OBJECT_NUMBER,    /* per rank: the next ticket to hand out */
    OBJECT_INBOX,     /* per thread: a worker's queue */
    OBJECT_RESIDENCY, /* per device: residency slots */
    OBJECT_COMM,      /* a communicator that may be aborted */
    OBJECT_PROGRESS, /* per rank, or of all where they wait for each other's events: what the device has come to */
    OBJECT_KINDS
};

/* Ways to use an object. READ conflicts with WRITE; WRITE with all; PUT with PUT, GET with GET (the
   two ends of a FIFO are independent); ASK with CHANGE, but neither with itself; RELEASE with WRITE; NOTHING with none:
   it is in no list. */
enum way { WAY_WRITE, WAY_READ, WAY_PUT, WAY_GET, WAY_ASK, WAY_CHANGE, WAY_RELEASE, WAY_NOTHING };

/* The bits of enum op_use. */
enum use_kind { USE_GIVES, USE_TAKES, USE_SETS, USE_LOOKS, USE_KINDS };
_Static_assert(GIVES == 1 << USE_GIVES && TAKES == 1 << USE_TAKES && SETS == 1 << USE_SETS &&
                   LOOKS == 1 << USE_LOOKS,
               "the ways of an operand are in the order of the bits of a use");

/* How operations use an object of this kind. */
struct operand_row {
    enum object_kind object;
    bool of_rank;  /* the object is the one of a rank; else the operation's */
    bool has_room; /* who takes from it helps those that give to it */
    bool is_far;   /* agents of other ranks may use it */
    enum way way[USE_KINDS];
};
extern const struct operand_row operand_table[OPERAND_COUNT];

struct use {
    int agent, object;
    enum way way;
    int tag;   /* two uses with one tag (>= 0) do not conflict */
    int last;  /* host threads: the last operation of their body that does this; else INT_MAX */
    int next;  /* in the list of the object; -1: none */
    int other; /* the next one in that list of another agent; -1: none */
    int *
        places; /* host threads, where `order` is there: all operations of their body that do this */
    size_t place_count, place_cap;
};

struct use_table {
    int base[OBJECT_KINDS], object_count;
    int *first;    /* per object: its newest use; -1: none */
    uint8_t *ways; /* per object: the ways of its uses, as bits */
    struct use *items;
    size_t count, cap;
    struct table entered;            /* the items */
    bool *lock_abused;               /* per lock: some thread may release it without holding it */
    const struct fixed_order *order; /* of host threads, by flags; NULL: none is known */
};

/* Number of an object in use_table.first. */
static inline int uses_use_object(const struct program *program, enum object_kind kind, int index)
{
    return program->uses->base[kind] + index;
}

/* The uses of its operand, as bits, that help who waits at an operation. */
unsigned op_helping(enum op_kind kind);
/* The object for which the thread of the operation may have to wait, whatever its state; -1: none. A push waits for its
   stream. */
int op_awaited(const struct program *program, const struct op *op, int thread);
/* The object for which its stream may have to wait before it starts, besides its communicator and residency slots; -1: none. */
int op_stream_awaits(const struct program *program, const struct op *op);
/* The object that the start of the operation by its stream helps others with; -1: none. */
int op_stream_gives(const struct program *program, const struct op *op);
/* The object that the operation's own step helps others with, when its thread comes to it; -1: none. */
int op_helped(const struct program *program, const struct op *op, int thread);

/* The ways, as bits, that this one conflicts with where no tags are equal. */
unsigned way_conflicts(enum way way);
bool use_conflicts(enum way way, int tag, const struct use *other);
/* The ways to use the operand of an operation, as bits, that help who waits at the operation. */
unsigned op_helping_ways(const struct program *program, const struct op *op);
/* True if this use can still happen. Only host threads come to an end, and a stream with them. */
bool use_is_ahead(const struct program *program, int32_t *cells, const struct use *use);
/* True if this use can happen while operation `at` of a host thread's body is not done, and behind the first `done`
   operations of the other thread. Not where the order of flags puts all these uses before it or behind it. */
bool use_may_meet(const struct program *program, int thread, int at, const struct use *use,
                  int done);

/* The last different operations of a thread by what they use: those of a long list are mostly alike, and one stands for
   all. Of several that fall into one place the last is kept.

       op 17: LAUNCH on compute   --.
       op 24: LAUNCH on compute   --+-> kept[hash of kind, stream, object, comm] = {op 17, ...}
       op 31: LAUNCH on compute   --'
 */
enum { USES_KEPT = 1024 };

struct uses_memo {
    struct uses_kept {
        const struct op *op;    /* NULL: none */
        int last;               /* uses_build: the last alike operation of the body */
        bool free, starts_free; /* program_find_conflicts: of op */
    } kept[USES_KEPT];
};

/* The place of an operation of the body. An operation that is kept there is of this body too. */
struct uses_kept *uses_place(struct uses_memo *memo, const struct program *program,
                             const struct body *body, const struct op *op);

/* Fill program->uses. */
enum status uses_build(struct program *program, struct diag *diag);

/* Call `visit` with every object that a step uses. */
typedef void use_visit(void *arg, int object, enum way way, int tag);
void uses_of_op(const struct program *program, const struct op *op, int thread, use_visit *visit,
                void *arg);
/* True if the objects and the ways are the same for two operations of a thread. True only if all that uses_of_op and
   uses_of_start look at is equal. */
bool uses_alike(const struct program *program, const struct op *a, const struct op *b);
void uses_of_take(const struct program *program, int thread, use_visit *visit, void *arg);
/* The data loader says that there are no more. */
void uses_of_data(const struct program *program, use_visit *visit, void *arg);
void uses_of_admit(const struct program *program, int rank, use_visit *visit, void *arg);
void uses_of_retire(const struct program *program, int rank, use_visit *visit, void *arg);
void uses_of_start(const struct program *program, int stream, const struct op *op, use_visit *visit,
                   void *arg);
/* Of the step that finishes what a stream runs. */
void uses_of_finish(const struct program *program, int stream, use_visit *visit, void *arg);
/* Of the step that completes a collective on all members of a communicator. */
void uses_of_completion(const struct program *program, int comm, use_visit *visit, void *arg);

#endif
