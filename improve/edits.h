/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edits.h - small changes of a plan, as an expert would try them.
 *
 * An edit is a value: a kind and where it applies, by indices into the plan. edits_list proposes
 * all that might repair a violation, the most likely first; edit_apply makes one on a plan;
 * edit_describe puts it into words. repair.h finds out by the checker whether an edit helps.
 *
 * Order. Every edit has a cost; less is tried earlier. It is the sum of
 *
 *     kind            A knob that is not at its safe default costs least, then changes of order,
 *                     then new synchronisation, then resources of the machine (a fact rather than a
 *                     choice); last edits that weaken the plan: a dependence or an operation removed.
 *                     Hangs and races have their own prices: an order for one, an edge for the
 *                     other.
 *     distance        2 for each step away from a suspect (suspects.h): operations of the same
 *                     thread count their distance, tasks whether the violation names them.
 *     size            moving an operation by one place costs less than by three, an edit that
 *                     changes the depth of a pipeline more than one that does not.
 *
 * Ties keep the order of the plan, so the list is the same on every machine. Ranks that run the
 * same program get the same edit, which counts as one ("on every rank"), where only that makes
 * sense.
 *
 * Positions. The marks of host operations and actions in a plan that is searched are not places in
 * a file but in the plan: line - 1 is the thread (or rank), col - 1 the operation. edits_number
 * makes them so. All iterations of a repeat have the place of its first, since the text has them once; an edit is of
 * a plan whose threads are folded, in which these places are indices, and applies to every iteration.
 */
#ifndef SWSIM_EDITS_H
#define SWSIM_EDITS_H

#include "check/suspects.h"
#include "plan/plan.h"

/*            NAME            meaning of a, b, c; `to` is the new value */
#define EDIT_LIST(X)                                                                               \
    X(RETIRE)      /* pipeline: retire: device */                                                  \
    X(FORGET_DONE) /* back to the default, as the next three */                                    \
    X(RETIRED_DEP)                                                                                 \
    X(SLOT_RESET)                                                                                  \
    X(TICKET_AT)                                                                                   \
    X(NUM_SLOTS)      /* back to the default: depth + largest distance */                          \
    X(ELIDE)          /* elide_same_stream: to */                                                  \
    X(BATCHES)        /* all as few as the fewest */                                               \
    X(ORDER_RULE)     /* enqueue_order: the rule `to` */                                           \
    X(ORDER_MOVE)     /* task a directly before task b */                                          \
    X(OVERRIDE_ORDER) /* override a loses its own order */                                         \
    X(STAGE)          /* task a to stage `to` */                                                   \
    X(ADD_DEP)        /* task a depends on task b, distance `to` */                                \
    X(REMOVE_DEP)     /* dependence a */                                                           \
    X(MAX_DEPTH)      /* max_depth: to */                                                          \
    X(GROUP)          /* task a to thread group `to`; -1: one of its own */                        \
    X(MERGE_GROUPS)   /* all tasks of group a to group b */                                        \
    X(GLOBAL_ORDER)   /* globally_ordered for task a: to */                                        \
    X(ORDER_COMMS)    /* globally_ordered for all tasks that communicate */                        \
    X(TASK_STREAM)    /* task a to stream `to`; -1: one of its own */                              \
    X(TASK_SYNC)      /* task a: host_sync: stream; `to` 1: sync_after: stream */                  \
    X(DECLARE)        /* buffer a: one for all iterations */                                       \
    X(SORT_HOLDS)     /* every task takes its locks in one order */                                \
    X(ON_FAILURE)     /* on_failure: to */                                                         \
    X(SM_SLOTS)       /* machine: to */                                                            \
    X(HW_QUEUES)                                                                                   \
    X(LAUNCH_QUEUE)                                                                                \
    X(LAUNCH_ORDER)   /* launch_order_implicit: true */                                            \
    X(LAZY_LOAD)      /* false */                                                                  \
    X(FIRST_USE)      /* first_use_blocks: false */                                                \
    X(EAGER)          /* eager_messages of communicator a: to */                                   \
    X(MOVE)           /* host: thread a, operation b to position `to` */                           \
    X(EVENT)          /* thread a: event behind operation b, waited for before operation c */      \
    X(SIGNAL)         /* signal behind a's operation b, await before `to`'s operation c */         \
    X(LOCK)           /* threads a and `to` hold a lock while they push to stream b */             \
    X(JOIN)           /* thread a: the group at b takes in the group at c */                       \
    X(OP_STREAM)      /* thread a, operation b (to c) to stream `to`; -1: one of its own */        \
    X(OP_COMM)        /* collectives with the tag of thread a's operation b: own communicator */   \
    X(SYNC_BEFORE)    /* thread a: sync stream `to` before operation b */                          \
    X(WAIT_EVENT)     /* thread a: before operation c its stream waits for record b */             \
    X(SYNC_EVENT)     /* thread a: sync the event of record b before operation c */                \
    X(UNSYNC)         /* thread a: the streams it pushes to wait in its place at the sync b */     \
    X(RECORD_STREAM)  /* thread a: record_stream of buffer c on stream `to` before b */            \
    X(SAME_CALL)      /* thread a, operation b becomes a copy of thread c's operation `to` */      \
    X(ADD_CALL)       /* thread a: what thread c's operation `to` waits for, before operation b */ \
    X(QUEUE_CAPACITY) /* queue a: to */                                                            \
    X(REMOVE_OP)      /* thread a, operation b */                                                  \
    X(ACTION_MOVE)    /* programs: rank a, action b to position `to` */                            \
    X(P2P_BATCH)      /* p2p: {batch: true} */                                                     \
    X(P2P_FIFO)       /* p2p: {fifo: to} */                                                        \
    X(P2P_EAGER)      /* p2p: {eager_messages: to} */                                              \
    X(ACTION_ADD)     /* programs: rank a, at b the other end of rank c's message `to` */          \
    X(MESSAGE_ADD)    /* programs: rank a, both ends of what part c of pass b needs; to: places */ \
    X(ACTION_REMOVE)  /* programs: rank a, message b, which is there twice */                      \
    X(RANK_ALIKE)     /* parallel: {ranks} loses entry a */

enum edit_kind {
#define X(name) EDIT_##name,
    EDIT_LIST(X)
#undef X
        EDIT_COUNT
};

struct edit {
    enum edit_kind kind;
    int a, b, c, to;
    bool everywhere; /* host: in the same place of every rank that runs the same program */
    bool weakens;    /* gives up an order or an operation the plan had */
    bool alone;      /* costs overlap: worth it by itself, not as a part of a larger repair */
    int cost;
};

struct edit_list {
    struct edit *items;
    size_t count, cap;
};

/* "ORDER_MOVE", for tests and debugging. */
const char *edit_key(enum edit_kind kind);

/* Make the marks of host operations and actions their positions in the plan. */
void edits_number(struct plan *plan);

/* Leave one iteration of every repeat: what edits_list and edit_apply take. Without memory the arena of the plan has
   failed. */
void edits_fold(struct plan *plan);

/* True if it changes what the plan takes for granted about machine and libraries, and not the program. */
bool edit_is_of_machine(const struct edit *edit);

/* The limit that ends the search for edits early; NULL: none. */
struct edits_end {
    bool (*is_over)(const void *arg);
    const void *arg;
};

/* Edits of a numbered plan that might repair the violation of `suspects`, cheapest first; where `end` is over, those
   found until then. In `arena`. STATUS_SYSTEM: memory. */
enum status edits_list(const struct plan *plan, const struct suspects *suspects,
                       const struct edits_end *end, struct arena *arena, struct edit_list *out,
                       struct diag *diag);

/* Edits of a folded host program that may make it faster: streams wait in place of threads, other streams, other orders. */
enum status edits_list_faster(const struct plan *plan, const struct edits_end *end,
                              struct arena *arena, struct edit_list *out, struct diag *diag);

/* Change the plan; new memory is its own. The result may be ill-formed (a cycle of
   dependences): print and parse it to know. STATUS_SYSTEM: memory. */
enum status edit_apply(struct plan *plan, const struct edit *edit, struct diag *diag);

/* "stage of R: 1 instead of 0", of the plan as it was before. NULL: memory is exhausted. */
const char *edit_describe(const struct plan *plan, const struct edit *edit, struct arena *arena);

#endif
