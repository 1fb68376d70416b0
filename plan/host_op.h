/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_op.h - host programs: the operations of threads, graphs and repeats.
 */
#ifndef SWSIM_HOST_OP_H
#define SWSIM_HOST_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "dist.h"
#include "ops.h"
#include "work.h"

/* A part of a group: a collective, a send or a receive. */
struct p2p_part {
    bool is_collective;
    bool send;     /* a message: else it is received */
    bool metadata; /* lowered rank programs: it tells the shape of the tensor behind it */
    const char *tag;
    int peer;                        /* a message */
    enum collective_kind collective; /* a collective */
    int root;                        /* a collective with a root: a rank; -1: the lowest */
    int comm, stream;                /* -1: the group's */
    uint32_t listed;                 /* index + 1 into plan->listed; 0: none */
    int numbered;                    /* as of a host_op, for `tag` */
    int device;                      /* 1 + a rank; 0: the group's */
    int64_t bytes;
    int64_t elements; /* as `count` says; 0: not given */
    enum element element;
    struct index_list reads, writes; /* plan->buffers */
    struct mark mark;
};

/* A call of torch.distributed: it runs on the stream of its process group, between two events of the calling
   thread. */
struct process_group {
    bool async;      /* else the stream of the call waits for the end */
    int stream;      /* plan->streams */
    int ready, done; /* plan->events; `work: done`, or one of the thread */
    bool named;      /* `done` is named by the plan */
};

/* SYNC_LOAD, SYNC_RETRY and SYNC_STAGED are never written in a plan: lowering adds them under lazy_load, under
   alloc_may_sync, and behind a copy with pageable memory. At the last two a thread goes on to the sync behind it, or
   past that. */
#define SYNC_LIST(X)                                                                               \
    X(STREAM, "stream")                                                                            \
    X(EVENT, "event") X(DEVICE, "device") X(LOAD, NULL) X(RETRY, NULL) X(STAGED, NULL)
enum sync_kind {
#define X(name, key) SYNC_##name,
    SYNC_LIST(X)
#undef X
};

/* How an operation changes its flag, or what it waits for: base + each * iteration, in a repeat. */
struct flag_use {
    bool given; /* else what its kind does by default: host_op_flag_use */
    enum flag_rule rule;
    int64_t base, each;
};
enum { PLAN_MAX_FLAG = 1000000000 }; /* values of flags, and the sum of all that one may be given */

/* Times of one operation by position: those of the iterations of its repeat, in order and from the first again. */
struct time_list {
    int64_t *items;
    size_t count;
};

/* The buffers that an operation accesses. */
struct host_accesses {
    struct index_list reads, writes; /* plan->buffers */
};

/* Types of numbers that GPUs compute at different rates. */
#define RATE_LIST(X) X(F64, "f64") X(F32, "f32") X(TF32, "tf32") X(F16, "f16") X(F8, "f8")
enum rate {
#define X(name, key) RATE_##name,
    RATE_LIST(X)
#undef X
        RATES
};

/* Of a kernel: the bytes that it moves and the operations with numbers that it does. */
struct op_cost {
    int64_t bytes, flops;
    enum rate rate;
    const char *shapes; /* types and sizes of its operator's tensors (operator_times.h); NULL */
};

/* The label of CPU work that marks the end of a step. */
#define PLAN_STEP "step"

/* What few operations say: of work. */
struct host_details {
    struct op_cost cost; /* LAUNCH: of which predict --hardware makes a time */
    struct time_list *times,
        *host_times; /* that time_ns and host_time_ns are from; NULL: given as one time */
    struct dist jitter;
    struct shares shares;
    struct work
        work; /* LAUNCH: for a real run; WORK_NONE spins for time_ns. COLLECTIVE: its elements. See host_op_work */
};

/* The parts of operations lie in one place: an operation has those of its kind (host_op_is_* and host_op_*_count below).
   Under --enable-checks they lie side by side, and those that a plan's operation does not have are filled with a pattern, so
   that the tests notice who reads them. */
#ifdef SWSIM_CHECKS
#define HOST_OP_PARTS struct
#else
#define HOST_OP_PARTS union
#endif

/* One operation of a host thread; which members mean something follows from `kind` (ops.h). Objects
   (events, flags, queues, locks, barriers) are indices into the plan's tables. */
struct host_op {
    enum op_kind kind : 8;
    bool has_branches : 1; /* op_asks: always; op_may_try: it does not wait */
    struct mark mark;
    int stream;       /* plan->streams, -1 */
    const char *name; /* LAUNCH, COMPUTE: function; COLLECTIVE: tag; else label or NULL */
    const char *at;   /* where in the program it is called, as "train.py:41"; NULL: not told */
    int object;       /* index into the plan's table of its operand (op_operand), -1 */
    int object_rank;  /* WAIT, SYNC: 1 + the rank whose event it is; 0: that of the operation */
    int comm;         /* op_uses_comm: plan->comms, else -1 */
    int device;       /* 1 + the rank on whose device it is done; 0: that of the thread */
    int iteration;    /* 1 + the iteration of its thread, in a repeat; 0: in none */
    int sm;           /* residency slots */
    uint32_t listed;  /* index + 1 into plan->listed; 0: none */
    int numbered; /* of rank programs: 1 + the number of its name with who takes it; 0: `name` says it */
    int64_t time_ns;                /* CPU work: CPU time; else device time */
    int64_t host_time_ns;           /* operations that push: CPU time of the call */
    struct host_accesses *accesses; /* NULL: none (host_op_reads, host_op_writes) */
    struct host_details *details;   /* NULL: none (host_op_details) */
    HOST_OP_PARTS
    {
        struct { /* host_op_may_have_body */
            struct host_op
                *body; /* CALLBACK: operations that touch no device; LAUNCH: steps of the kernel */
            size_t body_count;
            int graph;     /* LAUNCH: plan->graphs, if it is one */
            bool is_graph; /* LAUNCH: of a graph */
            bool
                greedy; /* LAUNCH: it takes up to `sm` slots, as many as are free, and more as they become free */
        };
        struct {                                 /* op_uses_comm, COPY */
            struct process_group *process_group; /* op_uses_comm: called through one; else NULL */
            HOST_OP_PARTS
            {
                struct {                    /* GROUP */
                    struct p2p_part *parts; /* all on one stream a communicator */
                    size_t part_count;
                };
                struct { /* COLLECTIVE, COPY */
                    int64_t bytes;
                    HOST_OP_PARTS
                    {
                        struct { /* COLLECTIVE */
                            enum collective_kind
                                collective; /* `op: all_reduce`; default all_reduce */
                            int root;       /* a rank; -1: the lowest */
                        };
                        struct { /* COPY */
                            enum direction direction;
                            bool pageable;
                        };
                    };
                };
            };
        };
        enum sync_kind sync; /* SYNC, QUERY */
        /* RECORD, WAIT of a graph: the event is the plan's, and each launch records it, or waits for it */
        bool external;
        int64_t ticket;             /* TICKET, SERVE */
        struct index_list *aborted; /* ABORT: plan->comms, in one group */
        struct flag_use flag_use;   /* OPERAND_FLAG */
    };
};
#ifndef SWSIM_CHECKS
_Static_assert(sizeof(struct host_op) <= 120, "programs of millions of operations fit into memory");
#endif

/* An operation of the kind with nothing in it. */
static inline struct host_op host_op_make(enum op_kind kind)
{
    struct host_op op = {.kind = kind, .stream = -1, .object = -1, .comm = -1};
    op.has_branches = op_asks(kind);
    if (kind == OP_COLLECTIVE) {
        op.collective = COLLECTIVE_ALL_REDUCE;
        op.root = -1;
    }
    return op;
}

/* Its accesses, or its details, to be written: they are made where there are none. NULL: memory is exhausted. Copies of an
   operation share them; host_op_own_details makes its own. */
struct host_accesses *host_op_make_accesses(struct host_op *op, struct arena *arena);
struct host_details *host_op_make_details(struct host_op *op, struct arena *arena);
struct host_details *host_op_own_details(struct host_op *op, struct arena *arena);

static inline const struct index_list *host_op_reads(const struct host_op *op)
{
    static const struct index_list none;
    return op->accesses ? &op->accesses->reads : &none;
}
static inline const struct index_list *host_op_writes(const struct host_op *op)
{
    static const struct index_list none;
    return op->accesses ? &op->accesses->writes : &none;
}
const struct host_details *host_op_details(const struct host_op *op);
/* What a real run does for it. */
struct work host_op_work(const struct host_op *op);

/* Behind the operation and its branches, if it has any; OP_ELSE or OP_END behind the operations of a branch from `op` on. */
const struct host_op *host_op_behind(const struct host_op *op);
const struct host_op *host_op_behind_branch(const struct host_op *op);
/* The operations of a list that it takes: with those of its branches. */
static inline size_t host_op_length(const struct host_op *op)
{
    return (size_t)(host_op_behind(op) - op);
}

/* True if the operation may have operations inside: a callback's, or the steps of a kernel. */
static inline bool host_op_may_have_body(enum op_kind kind)
{
    return kind == OP_CALLBACK || kind == OP_LAUNCH;
}
static inline size_t host_op_body_count(const struct host_op *op)
{
    return host_op_may_have_body(op->kind) ? op->body_count : 0;
}
static inline size_t host_op_part_count(const struct host_op *op)
{
    return op->kind == OP_GROUP ? op->part_count : 0;
}
static inline const struct process_group *host_op_process_group(const struct host_op *op)
{
    return op_uses_comm(op->kind) ? op->process_group : NULL;
}
/* The bytes that it moves, where it says so itself. */
static inline int64_t host_op_bytes(const struct host_op *op)
{
    return op->kind == OP_COPY || op->kind == OP_COLLECTIVE ? op->bytes : 0;
}
static inline bool host_op_is_graph(const struct host_op *op)
{
    return op->kind == OP_LAUNCH && op->is_graph;
}
static inline bool host_op_is_greedy(const struct host_op *op)
{
    return op->kind == OP_LAUNCH && op->greedy;
}
static inline bool host_op_is_pageable(const struct host_op *op)
{
    return op->kind == OP_COPY && op->pageable;
}
static inline bool host_op_is_external(const struct host_op *op)
{
    return (op->kind == OP_RECORD || op->kind == OP_WAIT) && op->external;
}
/* True if it asks for, or waits for, what the device does, of this kind. */
static inline bool host_op_looks_at(const struct host_op *op, enum sync_kind sync)
{
    return (op->kind == OP_SYNC || op->kind == OP_QUERY) && op->sync == sync;
}
static inline bool host_op_syncs(const struct host_op *op, enum sync_kind sync)
{
    return op->kind == OP_SYNC && op->sync == sync;
}

/* A stream of a graph: what is captured from stream `of` runs on `stream`, and `end` is its last event. */
struct graph_stream {
    int of, stream; /* plan->streams */
    int end;        /* plan->events */
};

/* Work that is captured once and launched again. Its operations name streams and events of the plan, which stand
   for its own. */
struct graph {
    const char *name;
    struct mark mark;
    struct host_op *ops;
    size_t op_count;
    struct graph_stream *streams;
    size_t stream_count;
    int *events; /* per operation: plan->events that stands for its event, or -1 */
    int begin;   /* plan->events: a launch begins */
};

/* A piece of a thread's program that is executed `times` times: ops[first] and the `length` - 1 behind it, and so
   on, once for each iteration. */
struct repeat {
    size_t first, length;
    int times;
};

/* Its operations with those of every iteration of its repeats. */
struct host_thread {
    int rank;
    bool folded;      /* True if the operations of a repeat stand once: edits.h. */
    bool of_all;      /* True if its list is that of all ranks, `r*.name`. */
    const char *name; /* without the "r0." */
    struct mark mark;
    struct host_op *ops;
    size_t op_count;
    struct repeat *repeats; /* in the order of `first` */
    size_t repeat_count;
};

/* The rank on whose device an operation, or a part of a group, of a thread of rank `home` is done. */
static inline int host_op_rank(const struct host_op *op, int home)
{
    return op->device > 0 ? op->device - 1 : home;
}
static inline int p2p_part_rank(const struct host_op *group, const struct p2p_part *part, int home)
{
    return part->device > 0 ? part->device - 1 : host_op_rank(group, home);
}
/* How the operation uses its flag; its value, in the operation's iteration, goes to *value. */
enum flag_rule host_op_flag_use(const struct host_op *op, int64_t *value);
/* True if the operation concerns a stream: pushes to it, waits for it, or marks memory as used there. */
bool host_op_has_stream(const struct host_op *op);

#endif
