/*
 * ops.h - the one list of machine operations.
 *
 * Parser, printer, machine, simulator, runtime and exports are generated from or switch over this
 * list, so they cannot drift apart. The first block is what a host program may say
 * (doc/semantics.md, section 3; the key in the plan file is the second column); the second block is
 * what only the pipeline drivers use (section 4).
 */
#ifndef SWSIM_OPS_H
#define SWSIM_OPS_H

#include <stdbool.h>

/*            NAME           key in a plan    pushes to a stream */
#define HOST_OP_LIST(X)                                                                            \
    X(HOST, "host", 0)             /* CPU work: time */                                            \
    X(LAUNCH, "launch", 1)         /* kernel: name, reads, writes, sm, time */                     \
    X(COPY, "copy", 1)             /* direction, bytes; a pageable one blocks the host */          \
    X(COLLECTIVE, "collective", 1) /* tag, comm, bytes, sm */                                      \
    X(GROUP, "group", 1)           /* comm, list of send/recv */                                   \
    X(RECORD, "record", 1)         /* event := all work in the stream so far */                    \
    X(WAIT, "wait", 1)             /* stream waits for the event as recorded now */                \
    X(SYNC, "sync", 0)             /* host waits for stream, event or device */                    \
    X(SIGNAL, "signal", 0)         /* set a CPU flag */                                            \
    X(AWAIT, "await", 0)           /* block until a CPU flag is set */                             \
    X(PUT, "put", 0)               /* into a bounded queue; full blocks */                         \
    X(GET, "get", 0)               /* from a bounded queue; empty blocks */                        \
    X(LOCK, "lock", 0)                                                                             \
    X(UNLOCK, "unlock", 0)                                                                         \
    X(BARRIER, "barrier", 0)   /* all threads that name it */                                      \
    X(TICKET, "ticket", 0)     /* block until n tickets before it have been served */              \
    X(SERVE, "serve", 0)       /* the turn a ticket gave is over */                                \
    X(CALLBACK, "callback", 1) /* host function run in stream order: body */                       \
    X(ALLOC, "alloc", 1)       /* the caching allocator hands memory to a stream */                \
    X(FREE, "free", 0)         /* on the host; reusable at once in the owning stream */            \
    X(RECORD_STREAM, "record_stream",                                                              \
      0) /* not reusable before that stream has passed this point  \
                                          */

#define DRIVER_OP_LIST(X)                                                                          \
    X(TAKE, "take", 0)         /* a worker takes an instance from its queue */                     \
    X(COMPLETE, "complete", 0) /* an instance is submitted; data-flow fires its successors */      \
    X(ENQUEUE, "enqueue", 0)   /* clock: enqueue one period */                                     \
    X(ADMIT, "admit", 0)       /* data-flow: give the next iteration a context and fire */         \
    X(RETIRE, "retire", 0)     /* wait for the oldest iteration and forget it */

#define OP_LIST(X) HOST_OP_LIST(X) DRIVER_OP_LIST(X)

enum op_kind {
#define X(name, key, pushes) OP_##name,
    OP_LIST(X)
#undef X
        OP_COUNT
};

/* The key of an operation in a plan file. */
const char *op_key(enum op_kind kind);
/* Does it take a place in a stream's FIFO? */
bool op_pushes(enum op_kind kind);

/* Properties that are checked (section 8): NAME, key in JSON and in `expect:`. */
#define PROPERTY_LIST(X)                                                                           \
    X(DEADLOCK, "deadlock")                                                                        \
    X(MISMATCH, "mismatch")                                                                        \
    X(RACE, "race")                                                                                \
    X(LIFETIME, "lifetime")                                                                        \
    X(SLOT, "slot")                                                                                \
    X(BOUND, "bound")                                                                              \
    X(DRAIN, "drain")                                                                              \
    X(FAULTS, "faults")

enum property {
#define X(name, key) PROPERTY_##name,
    PROPERTY_LIST(X)
#undef X
        PROPERTY_COUNT
};

const char *property_key(enum property property);

/* What is known about one property. */
#define OUTCOME_LIST(X)                                                                            \
    X(UNDECIDED, "undecided")                                                                      \
    X(PROVED, "proved")                                                                            \
    X(SOME, "some")     /* violated in some interleavings */                                       \
    X(ALWAYS, "always") /* violated in every interleaving */

enum outcome {
#define X(name, key) OUTCOME_##name,
    OUTCOME_LIST(X)
#undef X
        OUTCOME_COUNT
};

const char *outcome_key(enum outcome outcome);

#endif
