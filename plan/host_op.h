/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_op.h - host programs: the operations of threads, graphs and repeats.
 */
#ifndef SWSIM_HOST_OP_H
#define SWSIM_HOST_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* One operation of a host thread; which members mean something follows from `kind` (ops.h). Objects
   (events, flags, queues, locks, barriers) are indices into the plan's tables. */
struct host_op {
    enum op_kind kind;
    struct mark mark;
    const char *name; /* LAUNCH, COMPUTE: function; COLLECTIVE: tag; else label or NULL */
    const char *at;   /* where in the program it is called, as "train.py:41"; NULL: not told */
    int stream;       /* plan->streams, -1 */
    bool is_graph;    /* LAUNCH: of a graph */
    int graph;        /* plan->graphs, where it is one; else -1 */
    int object;       /* index into the plan's table of its operand (op_operand), -1 */
    int object_rank;  /* WAIT, SYNC: 1 + the rank whose event it is; 0: that of the operation */
    int device;       /* 1 + the rank on whose device it is done; 0: that of the thread */
    int iteration;    /* 1 + the iteration of its thread, in a repeat; 0: in none */
    int comm;         /* op_uses_comm: plan->comms, else -1 */
    uint32_t listed;  /* index + 1 into plan->listed; 0: none */
    int numbered; /* of rank programs: 1 + the number of its name with who takes it; 0: `name` says it */
    enum collective_kind collective; /* COLLECTIVE: `op: all_reduce`; default all_reduce */
    enum sync_kind sync;
    enum direction direction; /* COPY */
    bool pageable;
    bool
        external; /* RECORD, WAIT of a graph: the event is the plan's, and each launch records it, or waits for it */
    int64_t ticket;           /* TICKET */
    struct flag_use flag_use; /* OPERAND_FLAG */
    int64_t bytes;
    int64_t time_ns;                      /* CPU work: CPU time; else device time */
    int64_t host_time_ns;                 /* operations that push: CPU time of the call */
    struct time_list *times, *host_times; /* that the two are from; NULL: given as one time */
    struct dist jitter;
    int sm;
    bool
        greedy; /* LAUNCH: it takes up to `sm` slots, as many as are free, and more as they become free */
    struct shares shares;
    struct work work;                    /* LAUNCH: for a real run; WORK_NONE spins for time_ns */
    struct index_list reads, writes;     /* plan->buffers */
    struct p2p_part *parts;              /* GROUP: all on one stream a communicator */
    struct process_group *process_group; /* COLLECTIVE, GROUP: called through one; else NULL */
    struct index_list *aborted;          /* ABORT: plan->comms, in one group; else NULL */
    size_t part_count;
    struct host_op
        *body; /* CALLBACK: host operations that touch no device; LAUNCH: steps of the kernel */
    size_t body_count;
};

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
    bool of_all; /* True if its list is that of all ranks, `r*.name`. */
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
/* Does the operation concern a stream: push to it, wait for it, or mark memory as used there? */
bool host_op_has_stream(const struct host_op *op);

#endif
