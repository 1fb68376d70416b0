/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline.h - the pipeline form of a plan: tasks, dependences, orders and what the drivers do.
 */
#ifndef SWSIM_PLAN_PIPELINE_H
#define SWSIM_PLAN_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "dist.h"
#include "work.h"

#define HOST_SYNC_LIST(X) X(NONE, "none") X(STREAM, "stream") X(DEVICE, "device")
enum host_sync {
#define X(name, key) HOST_SYNC_##name,
    HOST_SYNC_LIST(X)
#undef X
};

struct task {
    const char *name;
    struct mark mark;
    int stage;  /* clock-driven: works on iteration period - stage */
    int stream; /* index into plan->streams */
    int group;  /* index into plan->groups (thread groups) */
    bool globally_ordered;
    int64_t time_ns;       /* device part; 0 if not given */
    int64_t host_time_ns;  /* CPU part, before the push */
    int64_t host_after_ns; /* the same behind it */
    struct dist jitter;    /* of the device part, relative to time_ns */
    struct dist host_jitter;
    bool
        greedy; /* a kernel: it takes up to `sm` slots, as many as are free, and more as they become free */
    int sm; /* residency slots the device part holds, 0: none */
    struct shares shares;
    struct work work;
    struct index_list reads, writes; /* plan->buffers */
    enum host_sync host_sync;        /* before the CPU part */
    enum host_sync sync_after;       /* behind it, so for its own push too */
    struct index_list holds;         /* plan->locks, taken in this order during the CPU part */
};

/* `task` of iteration i depends on `on` of iteration i - distance; distance 0: intra-iteration. */
struct dep {
    int task, on;
    int distance;
    struct mark mark;
};

#define ORDER_LIST(X)                                                                              \
    X(READY_FIRST, "ready-first")                                                                  \
    X(STAGE_DESCENDING, "stage-descending")                                                        \
    X(STAGE_ASCENDING, "stage-ascending")                                                          \
    X(EXPLICIT, NULL) /* a list of tasks, not a word */
enum order_kind {
#define X(name, key) ORDER_##name,
    ORDER_LIST(X)
#undef X
};
struct order_spec {
    enum order_kind kind;
    struct index_list tasks; /* ORDER_EXPLICIT: every task once */
};

/* Knobs of the drivers (doc/semantics.md, section 4); the first of each is the default. */
#define RETIRE_LIST(X)      X(SUBMIT, "submit") X(DEVICE, "device") X(LAST_TASK, "last-task")
#define TICKET_AT_LIST(X)   X(PIPELINED, "pipelined") X(ITERATION, "iteration") X(FIRE, "fire")
#define FORGET_LIST(X)      X(NEVER, "false") X(AT_RETIRE, "retire")
#define RETIRED_DEP_LIST(X) X(WAIT, "wait") X(SKIP, "skip")
#define SLOT_RESET_LIST(X)  X(ADMIT, "admit") X(SUBMIT, "submit")
enum retire_rule {
#define X(name, key) RETIRE_##name,
    RETIRE_LIST(X)
#undef X
};
enum ticket_rule {
#define X(name, key) TICKET_AT_##name,
    TICKET_AT_LIST(X)
#undef X
};
enum forget_rule {
#define X(name, key) FORGET_##name,
    FORGET_LIST(X)
#undef X
};
enum retired_dep_rule {
#define X(name, key) RETIRED_DEP_##name,
    RETIRED_DEP_LIST(X)
#undef X
};
enum slot_reset_rule {
#define X(name, key) SLOT_RESET_##name,
    SLOT_RESET_LIST(X)
#undef X
};

/* The driver a plan is for, `driver:`; without it, both. */
#define PLAN_DRIVER_LIST(X) X(CLOCK, "clock") X(DATAFLOW, "dataflow")
enum plan_driver {
#define X(name, key) PLAN_DRIVER_##name,
    PLAN_DRIVER_LIST(X)
#undef X
};

/* How one rank differs from the others; see `rank_overrides:`. */
struct rank_override {
    int rank;
    struct mark mark;
    struct task *tasks; /* all tasks with the differences applied, or NULL */
    bool has_order;
    struct order_spec order;
};

struct pipeline {
    struct task *tasks; /* in file order */
    size_t task_count;
    struct dep *deps; /* intra first, then inter, each in file order */
    size_t dep_count, intra_count;
    bool driver_given;
    enum plan_driver driver; /* only if given */
    int depth;               /* max(stage) + 1 */
    bool depth_given;
    int max_depth; /* data-flow; default depth */
    bool max_depth_given;
    int max_in_flight; /* iterations with unfinished work that a rank may have; 0: any number */
    int num_slots;     /* default: see doc/semantics.md section 5; 0 until resolved by lowering */
    bool num_slots_given;
    struct order_spec order;
    bool order_given;
    enum retire_rule retire;
    bool elide_same_stream;
    enum ticket_rule ticket_at;
    enum forget_rule forget_done;
    enum retired_dep_rule retired_dep;
    enum slot_reset_rule slot_reset;
    int64_t *batches; /* one number of iterations a rank, or NULL: all the same */
    size_t batch_count;
    struct rank_override *overrides;
    bool overrides_ascend; /* by their ranks */
    size_t override_count;
};

#endif
