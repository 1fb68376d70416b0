/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warnings.h - names of a plan that are probably misspelt, or that stand for nothing.
 *
 * Streams, events, flags, locks and buffers exist by being named, so a misspelt name makes a new object and the
 * plan means something else than its author thinks: a wait for an event that nobody records waits for nothing.
 * The warnings are about the text alone. All verdicts, predictions and runs are of the plan as it is written.
 */
#ifndef SWSIM_WARNINGS_H
#define SWSIM_WARNINGS_H

#include "base/json.h"
#include "plan/plan.h"

/*            NAME            key in JSON */
#define WARNING_LIST(X)                                                                            \
    X(NEVER_RECORDED, "never_recorded") /* an event that is waited for */                          \
    X(NEVER_SET, "never_set")           /* a flag that is awaited */                               \
    X(STAYS_SET, "stays_set")           /* a flag that is set and awaited in a repeat */           \
    X(NEVER_WRITTEN, "never_written")   /* a buffer that is read */                                \
    X(NEVER_USED, "never_used")         /* a buffer or stream, declared */                         \
    X(UNDECLARED, "undeclared")         /* a communicator, where others are; a written input */    \
    X(SIMILAR_NAME, "similar_name")     /* used once, and one edit from another name */            \
    X(DEFAULT_STREAM, "default_stream") /* a stream of that name, which is like the others */      \
    X(CPU_TASK, "cpu_task")             /* a task with CPU time alone */                           \
    X(DEAD_WRITE, "dead_write")         /* a write that is overwritten before a read: verify */    \
    X(DOUBLED, "doubled")               /* a send or receive of the lists */                       \
    X(MISSING, "missing")               /* an action that another needs, or a pass */              \
    X(UNPAIRED, "unpaired")           /* a send without its receive, a receive without its send */ \
    X(OUT_OF_ORDER, "out_of_order")   /* an action before what it needs */                         \
    X(UNUSED_EDGE, "unused_edge")     /* of p2p, between ranks without messages */                 \
    X(LATE_BACKWARD, "late_backward") /* of 1F1B's last rank: one forward too many before it */

enum warning_kind {
#define X(name, key) WARNING_##name,
    WARNING_LIST(X)
#undef X
};

struct warning {
    enum warning_kind kind;
    struct mark mark; /* where the name is used first */
    const char *text; /* one sentence, with a suggestion where a name is near */
};

/* In the order of the file; texts live in the arena they were found with. */
enum { WARNINGS_MOST = 100 };
struct warnings {
    struct warning *items; /* room for WARNINGS_MOST */
    size_t count;          /* at most WARNINGS_MOST: then the search ends */
};

/* All warnings about `plan`. STATUS_SYSTEM: no memory. */
enum status warnings_find(const struct plan *plan, struct arena *arena, struct warnings *out,
                          struct diag *diag);

/* The key "warnings" with an object for each: kind, file, line, column, text. */
void warnings_write(const struct warnings *warnings, const char *file, struct json *json);

#endif
