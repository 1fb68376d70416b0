/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops.h - the one table of machine operations.
 *
 * A row defines an operation. All other code asks the op_*() functions below or is generated from
 * the table, so there is one answer to "does it push?" or "which object does it use, and how?". The
 * first block is what a host program may say (doc/semantics.md, section 3), the second what only the
 * tasks of a pipeline contain (section 4).
 */
#ifndef SWSIM_OPS_H
#define SWSIM_OPS_H

#include <stdbool.h>
#include <stddef.h>

/* The role of an operation for its thread and its stream. */
enum op_role {
    ROLE_CONTROL, /* host: takes effect at once, maybe after a wait */
    ROLE_CPU,     /* host: work that takes time on the CPU */
    ROLE_ASK,     /* host: goes on in one of two branches, and never waits */
    ROLE_BRANCH,  /* a mark between branches, no step */
    ROLE_MARK,    /* pushed: takes effect at once at the head of its stream */
    ROLE_DEVICE,  /* pushed: device work, which starts, takes time and finishes */
    ROLE_COMM,    /* pushed: device work done together with other members of a communicator */
    ROLE_CALL,    /* pushed: host code, executed at its place in the stream */
    ROLE_STEP     /* pushed: takes effect in a step of its stream, and takes no time */
};

/* The kind of object it names: the table that its `object` is an index into. */
enum op_operand {
    OPERAND_NONE,
    OPERAND_EVENT, /* a sync names one only as `sync: event`, else its object is -1 */
    OPERAND_FLAG,
    OPERAND_QUEUE,
    OPERAND_LOCK,
    OPERAND_BARRIER,
    OPERAND_TURN, /* the turns of a rank: a ticket's number, no object */
    OPERAND_BUFFER,
    OPERAND_COMM,      /* of the rank on whose device it is done; in a plan it may name several */
    OPERAND_SUBMISSION /* of the task's instance to which the operation belongs, no object */
};
enum { OPERAND_COUNT = OPERAND_SUBMISSION + 1 };

/* When it uses that object: in the step of its thread, and, if it is pushed, when its stream comes to it. */
enum op_moment { AT_CALL, AT_STREAM, OP_MOMENTS };

/* How it uses the object at a moment, as bits. Others wait to take what it gives. Who looks at an object, in order to take
   something later or not at all, depends on what was set last. What follows from a use for the order of steps stands in
   operand_table (machine/uses.h). */
enum op_use { KEEPS = 0, GIVES = 1, TAKES = 2, SETS = 4, LOOKS = 8 };

/* The reason its thread can wait for at it, besides room in the stream for a push. */
enum op_wait { WAITS_NEVER, WAITS_DEVICE, WAITS_THREADS };

/* The words say what a thread does: %n is the operation's name, %o its object, %s its stream, %c its
   communicator. The words of a push say the same of it beside others on its stream.

     NAME, key in a plan, role, operand, use at the call, use at the stream, waits, words, words of a push */
#define HOST_OP_LIST(X)                                                                            \
    X(HOST, "host", CPU, NONE, KEEPS, KEEPS, NEVER, "does the CPU part of %n", NULL)               \
    X(COMPUTE, "compute", CPU, NONE, KEEPS, KEEPS, NEVER, "computes %n", NULL)                     \
    X(LAUNCH, "launch", DEVICE, NONE, KEEPS, KEEPS, NEVER, "launches %n on stream %s", "%n")       \
    X(COPY, "copy", DEVICE, NONE, KEEPS, KEEPS, NEVER, "pushes copy %n on stream %s", "copy %n")   \
    X(COLLECTIVE, "collective", COMM, NONE, KEEPS, KEEPS, NEVER,                                   \
      "pushes collective %n of communicator %c on stream %s", "%n")                                \
    X(GROUP, "group", COMM, NONE, KEEPS, KEEPS, NEVER,                                             \
      "pushes a group of communicator %c (%n) on stream %s", "%n")                                 \
    X(RECORD, "record", MARK, EVENT, SETS, GIVES, NEVER, "records %o on stream %s", "record %o")   \
    X(WAIT, "wait", MARK, EVENT, LOOKS, TAKES, NEVER, "makes stream %s wait for %o",               \
      "wait for %o")                                                                               \
    X(SYNC, "sync", CONTROL, EVENT, LOOKS | TAKES, KEEPS, DEVICE, "has synchronised with %o",      \
      NULL)                                                                                        \
    X(SIGNAL, "signal", CONTROL, FLAG, GIVES, KEEPS, NEVER, "sets %o", NULL)                       \
    X(CLEAR, "clear", CONTROL, FLAG, GIVES, KEEPS, NEVER, "clears %o", NULL)                       \
    X(AWAIT, "await", CONTROL, FLAG, TAKES, KEEPS, THREADS, "passes %o", NULL)                     \
    X(ACQUIRE, "acquire", CONTROL, FLAG, GIVES | TAKES, KEEPS, THREADS, "acquires %o", NULL)       \
    X(WRITE, "write", STEP, FLAG, KEEPS, GIVES, NEVER, "makes stream %s set %o", "set %o")         \
    X(WAIT_FLAG, "wait_flag", STEP, FLAG, KEEPS, TAKES, NEVER, "makes stream %s wait for %o",      \
      "wait for %o")                                                                               \
    X(PUT, "put", CONTROL, QUEUE, GIVES, KEEPS, THREADS, "puts into queue %o", NULL)               \
    X(GET, "get", CONTROL, QUEUE, TAKES, KEEPS, THREADS, "gets from queue %o", NULL)               \
    X(LOCK, "lock", CONTROL, LOCK, TAKES, KEEPS, THREADS, "takes lock %o", NULL)                   \
    X(UNLOCK, "unlock", CONTROL, LOCK, GIVES, KEEPS, NEVER, "releases lock %o", NULL)              \
    X(BARRIER, "barrier", CONTROL, BARRIER, GIVES | TAKES, KEEPS, THREADS, "waits at barrier %o",  \
      NULL)                                                                                        \
    X(TICKET, "ticket", CONTROL, TURN, TAKES, KEEPS, THREADS, "has its turn for %n", NULL)         \
    X(SERVE, "serve", CONTROL, TURN, GIVES, KEEPS, NEVER, "ends its turn for %n", NULL)            \
    X(CALLBACK, "callback", CALL, NONE, KEEPS, KEEPS, NEVER, "pushes callback %n on stream %s",    \
      "callback %n")                                                                               \
    X(ALLOC, "alloc", MARK, BUFFER, SETS, LOOKS, NEVER, "allocates %o on stream %s", "%o")         \
    X(HOST_ALLOC, "host_alloc", CONTROL, BUFFER, SETS, KEEPS, NEVER, "allocates %o on the host",   \
      NULL)                                                                                        \
    X(FREE, "free", CONTROL, BUFFER, SETS, KEEPS, NEVER, "frees %o", NULL)                         \
    X(RECORD_STREAM, "record_stream", CONTROL, BUFFER, SETS, KEEPS, NEVER,                         \
      "marks %o as used by stream %s", NULL)                                                       \
    X(ABORT, "abort", CONTROL, COMM, SETS, KEEPS, NEVER, "aborts communicator %o", NULL)           \
    X(QUERY, "query", ASK, EVENT, LOOKS, KEEPS, NEVER, "asks for %o", NULL)                        \
    X(QUERY_FLAG, "query_flag", ASK, FLAG, LOOKS, KEEPS, NEVER, "asks for %o", NULL)               \
    X(QUERY_QUEUE, "query_queue", ASK, QUEUE, LOOKS, KEEPS, NEVER, "asks for queue %o", NULL)      \
    X(CHOOSE, "choose", ASK, NONE, KEEPS, KEEPS, NEVER, "chooses %n", NULL)

/* In the flat list of a thread: behind an operation with branches stand those of `then`, OP_ELSE and those of `else` if there
   are any, and OP_END. Neither is a step; a program has no OP_END. */
#define BRANCH_OP_LIST(X)                                                                          \
    X(ELSE, "else", BRANCH, NONE, KEEPS, KEEPS, NEVER, "ends the first branch, %n", NULL)          \
    X(END, "end", BRANCH, NONE, KEEPS, KEEPS, NEVER, "ends the branches, %n", NULL)

#define DRIVER_OP_LIST(X)                                                                          \
    X(COMPLETE, "complete", CONTROL, SUBMISSION, GIVES, KEEPS, NEVER, "has submitted %n", NULL)

#define OP_LIST(X) HOST_OP_LIST(X) BRANCH_OP_LIST(X) DRIVER_OP_LIST(X)

enum op_kind {
#define X(name, ...) OP_##name,
    OP_LIST(X)
#undef X
};

#define X(name, ...) +1
enum { HOST_OP_COUNT = 0 HOST_OP_LIST(X), OP_COUNT = 0 OP_LIST(X) };
#undef X

struct op_row {
    const char *key, *words, *pushed;
    enum op_role role;
    enum op_operand operand;
    unsigned char uses[OP_MOMENTS]; /* bits of enum op_use */
    enum op_wait waits;
};
extern const struct op_row op_table[OP_COUNT];

/* The key of an operation in a plan file. */
static inline const char *op_key(enum op_kind kind)
{
    return op_table[kind].key;
}

/* Words for the operation, with %n, %o, %s and %c in them. */
static inline const char *op_words(enum op_kind kind)
{
    return op_table[kind].words;
}

/* Words for the work that a push puts into its stream, with %n and %o in them; NULL: it pushes nothing. */
static inline const char *op_pushed(enum op_kind kind)
{
    return op_table[kind].pushed;
}

static inline enum op_role op_role(enum op_kind kind)
{
    return op_table[kind].role;
}

/* True if the operation is work that keeps its thread busy. */
static inline bool op_is_cpu_work(enum op_kind kind)
{
    return op_role(kind) == ROLE_CPU;
}

/* True if it takes a place in a stream's FIFO. */
static inline bool op_pushes(enum op_kind kind)
{
    return op_role(kind) >= ROLE_MARK;
}

/* True if it takes effect at once when its stream comes to it. */
static inline bool op_is_mark(enum op_kind kind)
{
    return op_role(kind) == ROLE_MARK;
}

/* True if it keeps its stream busy, from a start to a finish. */
static inline bool op_is_stream_work(enum op_kind kind)
{
    return op_role(kind) > ROLE_MARK;
}

/* True if the operation is work of the device itself, not of the host at its place in the stream. */
static inline bool op_is_device_work(enum op_kind kind)
{
    return op_role(kind) == ROLE_DEVICE || op_role(kind) == ROLE_COMM;
}

/* True if it always has branches: `then` and `else`. */
static inline bool op_asks(enum op_kind kind)
{
    return op_role(kind) == ROLE_ASK;
}

/* True if it may have branches: it is done if that needs no wait, and then `then` follows, else `else`. */
static inline bool op_may_try(enum op_kind kind)
{
    return kind == OP_ACQUIRE || kind == OP_PUT || kind == OP_GET || kind == OP_LOCK;
}

/* True if the operation is a mark between branches. */
static inline bool op_ends_branch(enum op_kind kind)
{
    return op_role(kind) == ROLE_BRANCH;
}

/* True if it takes time, of its thread or of its stream. */
static inline bool op_is_work(enum op_kind kind)
{
    return op_is_cpu_work(kind) || op_is_stream_work(kind);
}

/* True if it belongs to a communicator. */
static inline bool op_uses_comm(enum op_kind kind)
{
    return op_role(kind) == ROLE_COMM;
}

static inline bool op_allocates(enum op_kind kind)
{
    return kind == OP_ALLOC || kind == OP_HOST_ALLOC;
}

static inline enum op_operand op_operand(enum op_kind kind)
{
    return op_table[kind].operand;
}

/* Bits of enum op_use. */
static inline unsigned op_uses(enum op_kind kind, enum op_moment moment)
{
    return op_table[kind].uses[moment];
}

/* True if it uses an operand of this kind in one of these ways at this moment. */
static inline bool op_uses_so(enum op_kind kind, enum op_operand operand, enum op_moment moment,
                              unsigned uses)
{
    return op_operand(kind) == operand && op_uses(kind, moment) & uses;
}

/* True if it gives something, at whichever moment. */
static inline bool op_gives(enum op_kind kind)
{
    return (op_uses(kind, AT_CALL) | op_uses(kind, AT_STREAM)) & GIVES;
}

static inline bool op_takes(enum op_kind kind)
{
    return (op_uses(kind, AT_CALL) | op_uses(kind, AT_STREAM)) & TAKES;
}

/* True if it gives to, or takes from, an operand of this kind, at whichever moment. */
static inline bool op_gives_to(enum op_kind kind, enum op_operand operand)
{
    return op_operand(kind) == operand && op_gives(kind);
}
static inline bool op_takes_from(enum op_kind kind, enum op_operand operand)
{
    return op_operand(kind) == operand && op_takes(kind);
}

/* True if its thread waits for the device itself: for a stream, an event or all work. */
static inline bool op_syncs(enum op_kind kind)
{
    return op_table[kind].waits == WAITS_DEVICE;
}

/* True if a stream reaches a record with it (op_records), or waits with it for one. */
static inline bool op_records(enum op_kind kind)
{
    return op_uses_so(kind, OPERAND_EVENT, AT_STREAM, GIVES);
}
static inline bool op_waits_for_record(enum op_kind kind)
{
    return op_uses_so(kind, OPERAND_EVENT, AT_STREAM, TAKES);
}

/* True if a thread of its own does it, at its place in the stream. */
static inline bool op_calls_host(enum op_kind kind)
{
    return op_role(kind) == ROLE_CALL;
}

/* True if all members of its communicator end it in one step. Others of a communicator meet a peer at a time. */
static inline bool op_ends_together(enum op_kind kind)
{
    return kind == OP_COLLECTIVE;
}

/* True if it ends what a task's instance submits. */
static inline bool op_ends_submission(enum op_kind kind)
{
    return op_operand(kind) == OPERAND_SUBMISSION;
}

/* True if its stream waits for something that another agent may never give, in a step of its own. */
static inline bool op_stream_waits(enum op_kind kind)
{
    return op_role(kind) == ROLE_STEP && op_uses(kind, AT_STREAM) & TAKES;
}

/* In a pipeline, true if its thread waits for nothing that the device does but room in a stream, and its stream for
   nothing but records and collectives. */
bool op_runs_ahead(enum op_kind kind);

static inline enum op_wait op_waits(enum op_kind kind)
{
    return op_table[kind].waits;
}

/* How an operation changes the value of a flag, or what it waits for, and the key that says so. */
#define FLAG_RULE_LIST(X)                                                                          \
    X(SETS, "value") X(ADDS, "add") X(AT_LEAST, "at_least") X(EQUALS, "equals") X(TAKES, "count")
enum flag_rule {
#define X(name, key) FLAG_##name,
    FLAG_RULE_LIST(X)
#undef X
};

/* Properties that are checked (section 8): NAME, key in JSON and in `expect:`. */
#define PROPERTY_LIST(X)                                                                           \
    X(MESSAGE, "message")                                                                          \
    X(DEADLOCK, "deadlock")                                                                        \
    X(MISMATCH, "mismatch")                                                                        \
    X(RACE, "race")                                                                                \
    X(LIFETIME, "lifetime")                                                                        \
    X(VALUE, "value")                                                                              \
    X(SERIAL, "serial")                                                                            \
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

/* The outcome of one property. */
#define OUTCOME_LIST(X)                                                                            \
    X(UNDECIDED, "undecided")                                                                      \
    X(PROVED, "proved")                                                                            \
    X(SOME, "some")           /* violated in some interleavings */                                 \
    X(ALWAYS, "always")       /* violated in every interleaving */                                 \
    X(NONE, "not applicable") /* the form of the plan has no such property */

enum outcome {
#define X(name, key) OUTCOME_##name,
    OUTCOME_LIST(X)
#undef X
        OUTCOME_COUNT
};

const char *outcome_key(enum outcome outcome);
static inline bool outcome_is_violation(enum outcome outcome)
{
    return outcome == OUTCOME_SOME || outcome == OUTCOME_ALWAYS;
}

#endif
