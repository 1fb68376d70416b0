/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - a plan as its author wrote it: tasks, actions or host operations, and the machine's
 * knobs.
 *
 * A plan is data. It is built by parse.h (YAML, JSON) or csv.h (PyTorch schedules), printed by
 * print.h and given its meaning by program.h (lowering) and machine.h. All memory belongs to the
 * plan's arena: plan_init / plan_fini. Names are resolved: a reference to a task, stream, comm,
 * queue or buffer is an index into the plan's table, -1 for none. Times are nanoseconds, sizes
 * bytes. A `struct mark` is a position in the file.
 */
#ifndef SWSIM_PLAN_H
#define SWSIM_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "plan/schedules/arithmetic.h"
#include "plan/schedules/costs.h"
#include "base/diag.h"
#include "dist.h"
#include "ops.h"
#include "plan/schedules/parallel.h"
#include "plan/schedules/tensors.h"

/* Limits of sizes that an input determines; the message that refuses more names the limit. */
enum {
    PLAN_MAX_FILE_BYTES = 512 * 1024 * 1024,
    PLAN_MAX_RANKS = 4096,
    PLAN_MAX_CORES = 65536,
    PLAN_MAX_TASKS = 4096,
    PLAN_MAX_STAGE = 255,
    PLAN_MAX_DEPTH = 255,
    PLAN_MAX_IN_FLIGHT = 1 << 20,
    PLAN_MAX_DISTANCE = 64,
    PLAN_MAX_ITERATIONS = 1 << 30,        /* the machine counts them in 32 bits */
    PLAN_MAX_OPS = 4 * 1024 * 1024,       /* operations of host programs */
    PLAN_MAX_LOWERED = 128 * 1024 * 1024, /* operations of the machine */
    PLAN_MAX_ACTIONS = 64 * 1024 * 1024,  /* in all lists of rank programs */
    PLAN_MAX_PASSES = 16 * 1024 * 1024,   /* stages times microbatches of rank programs */
    PLAN_MAX_MICROBATCHES = 65536,
    PLAN_MAX_MODEL_STAGES = 65536, /* stages of a model split over ranks: actions */
    PLAN_MAX_EAGER = 65536,        /* messages sent on credit and not received */
    PLAN_MAX_NAME = 200
};

/* The stream and the thread group of what names none. It is no legacy default stream of CUDA: streams
   are independent of each other. */
#define PLAN_IMPLICIT_STREAM "main"
#define PLAN_IMPLICIT_GROUP  "default"

enum plan_form { FORM_PIPELINE, FORM_PROGRAMS, FORM_THREADS };

/* ---- the work of a task or an operation in a real run ---------------------------------------- */

#define WORK_LIST(X)                                                                               \
    X(NONE, "")                                                                                    \
    X(COPY, "copy")             /* copy: direction, bytes, [pageable] */                           \
    X(COLLECTIVE, "collective") /* collective: kind, comm, bytes, [sm] */                          \
    X(SEND, "send")             /* send: tag, peer, comm, bytes */                                 \
    X(RECV, "recv")                                                                                \
    X(GEMM, "gemm")     /* gemm: {m, n, k, dtype} */                                               \
    X(GATHER, "gather") /* gather: {rows, dim, dtype} */                                           \
    X(AXPY, "axpy")     /* axpy: elements */                                                       \
    X(SPIN, "spin")     /* spin: time on the device */                                             \
    X(HOST, "host")     /* host: time on the CPU only, nothing is pushed */

enum work_kind {
#define X(name, key) WORK_##name,
    WORK_LIST(X)
#undef X
};

#define DIRECTION_LIST(X) X(H2D, "h2d") X(D2H, "d2h") X(D2D, "d2d")
enum direction {
#define X(name, key) DIRECTION_##name,
    DIRECTION_LIST(X)
#undef X
};

#define COLLECTIVE_LIST(X)                                                                         \
    X(ALL_TO_ALL, "all_to_all")                                                                    \
    X(ALL_REDUCE, "all_reduce")                                                                    \
    X(ALL_GATHER, "all_gather")                                                                    \
    X(REDUCE_SCATTER, "reduce_scatter")                                                            \
    X(BROADCAST, "broadcast")                                                                      \
    X(BARRIER, "barrier")
enum collective_kind {
#define X(name, key) COLLECTIVE_##name,
    COLLECTIVE_LIST(X)
#undef X
};

/* Does it have a root, from which all data go? The others give nothing. */
static inline bool collective_has_root(enum collective_kind kind)
{
    return kind == COLLECTIVE_BROADCAST;
}

#define DTYPE_LIST(X) X(F32, "f32", 4) X(F16, "f16", 2) X(BF16, "bf16", 2) X(F64, "f64", 8)
enum dtype {
#define X(name, key, bytes) DTYPE_##name,
    DTYPE_LIST(X)
#undef X
};

struct work {
    enum work_kind kind;
    enum direction direction;        /* COPY */
    bool pageable;                   /* COPY: with pageable memory, may block the host */
    enum collective_kind collective; /* COLLECTIVE */
    int root;                        /* COLLECTIVE, one with a root: a rank; -1: the lowest */
    int comm;                        /* COLLECTIVE, SEND, RECV: index into plan->comms, else -1 */
    int peer;                        /* SEND, RECV: rank */
    const char *tag;                 /* SEND, RECV */
    int64_t bytes;                   /* COPY, COLLECTIVE, SEND, RECV */
    int64_t m, n, k;                 /* GEMM */
    int64_t rows, dim;               /* GATHER */
    int64_t elements;                /* AXPY */
    enum dtype dtype;                /* GEMM, GATHER */
    int64_t time_ns;                 /* SPIN, HOST */
};

/* ---- the shares of the device that work takes ------------------------------------------------ */

/* Resources that all work on a device shares, and the cores of its host. A share is a part of the whole, or of one
   core, in millionths. Shares that are not given are those of machine: {shares: ...} for this kind of work, else
   0, of the cores 1. */
enum { SHARE_WHOLE = 1000 * 1000 };
struct share {
    bool given;
    int millionths;
};
struct shares {
    struct share sm, link, core;
};

/*            NAME        key */
#define SHARED_WORK_LIST(X)                                                                        \
    X(KERNEL, "kernel")         /* launches */                                                     \
    X(COPY, "copy")             /* copies, beside their engine */                                  \
    X(COLLECTIVE, "collective") /* collectives */                                                  \
    X(P2P, "p2p")               /* groups of sends and receives */
enum shared_work {
#define X(name, key) SHARED_WORK_##name,
    SHARED_WORK_LIST(X)
#undef X
        SHARED_WORK_COUNT
};

/* ---- pipeline form --------------------------------------------------------------------------- */

#define HOST_SYNC_LIST(X) X(NONE, "none") X(STREAM, "stream") X(DEVICE, "device")
enum host_sync {
#define X(name, key) HOST_SYNC_##name,
    HOST_SYNC_LIST(X)
#undef X
};

/* A list of indices into one of the plan's tables. */
struct index_list {
    int *items;
    int *
        ranks; /* host programs: 1 + the rank whose buffer each is, 0: that of the operation; NULL: all 0 */
    size_t count;
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

#define SCOPE_LIST(X) X(ITERATION, "iteration") X(SHARED, "shared")
enum buffer_scope {
#define X(name, key) SCOPE_##name,
    SCOPE_LIST(X)
#undef X
};

struct buffer {
    const char *name;
    enum buffer_scope scope; /* iteration: every iteration has its own instance */
    int64_t bytes;           /* 0: not given */
    bool declared;           /* named under `buffers:`, not only in reads or writes */
    int owner;  /* in lowered rank programs: 1 + the rank that has it; else 0: every rank has one */
    bool input; /* `inputs:` names it: it holds values before anything is written */
    int staleness; /* `staleness:`: iterations by which its reads may lag; 0: not given */
    struct mark mark;
    struct tensor holds; /* in lowered rank programs */
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
#define TICKET_AT_LIST(X)   X(ITERATION, "iteration") X(FIRE, "fire")
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
    size_t override_count;
};

/* ---- rank programs: PyTorch's actions -------------------------------------------------------- */

/*            NAME          text           has a microbatch */
#define ACTION_LIST(X)                                                                             \
    X(F, "F", 1)                                                                                   \
    X(I, "I", 1)                                                                                   \
    X(W, "W", 1)                                                                                   \
    X(B, "B", 1)                                                                                   \
    X(UNSHARD, "UNSHARD", 0)                                                                       \
    X(RESHARD, "RESHARD", 0)                                                                       \
    X(REDUCE_GRAD, "REDUCE_GRAD", 0)                                                               \
    X(SEND_F, "SEND_F", 1)                                                                         \
    X(RECV_F, "RECV_F", 1)                                                                         \
    X(SEND_B, "SEND_B", 1)                                                                         \
    X(RECV_B, "RECV_B", 1)                                                                         \
    X(WAIT_SEND_F, "WAIT_SEND_F", 1)                                                               \
    X(WAIT_SEND_B, "WAIT_SEND_B", 1)                                                               \
    X(WAIT_RECV_F, "WAIT_RECV_F", 1)                                                               \
    X(WAIT_RECV_B, "WAIT_RECV_B", 1)                                                               \
    X(WAIT_REDUCE_GRAD, "WAIT_REDUCE_GRAD", 0)                                                     \
    X(REDUCE_EMBEDDING, "REDUCE_EMBEDDING", 0)                                                     \
    X(OVERLAP_F_B, "OVERLAP_F_B", 0) /* composite: parts */                                        \
    X(IDLE, "", 0)                   /* an empty cell of a compute_only schedule */
enum action_kind {
#define X(name, text, microbatch) ACTION_##name,
    ACTION_LIST(X)
#undef X
};

struct action {
    enum action_kind kind;
    int stage;
    int microbatch; /* -1: none */
    int column;     /* of the list in the file, from 1; 0: it is generated */
    struct action
        *parts; /* OVERLAP_F_B: ACTION_PARTS, a forward pass and a backward pass; else NULL */
    struct mark mark;
};
enum { ACTION_PARTS = 2 };

/* Where an action, or a part of one, stands in the lists: all from 1. The end of a list is an ACTION_IDLE. */
struct listed_action {
    enum action_kind kind;
    int stage, microbatch;
    int row, column;
    int in_file; /* the column in the file, where the list is given: messages may have been added since */
};

struct rank_program {
    struct action *actions;
    size_t count;
    size_t unread; /* of them idle ones whose text is no action; only in lists that are refused */
};

/* The messages that share a communicator and its stream. GROUP is what PyTorch does with NCCL: see doc/semantics.md. */
#define FIFO_LIST(X) X(RANK, "group") X(PAIR, "pair") X(DIRECTION, "direction") X(EDGE, "edge")
enum fifo_rule {
#define X(name, key) FIFO_##name,
    FIFO_LIST(X)
#undef X
};

/* Messages that tell the shape of the tensor behind them: none, before the first one from a stage to another, or before
   each, as hfai does. */
#define METADATA_LIST(X) X(NONE, "none") X(FIRST, "first") X(EACH, "each")
enum metadata {
#define X(name, key) METADATA_##name,
    METADATA_LIST(X)
#undef X
};
enum { METADATA_BYTES = 64 };

/* The messages of Megatron-LM: neighbouring ones in a batch; one by one, odd and even ranks in opposite orders; awaited
   later; in warm-up and cool-down, too. */
#define MEGATRON_LIST(X)                                                                           \
    X(NONE, "none")                                                                                \
    X(BATCH, "batch")                                                                              \
    X(ODD_EVEN, "odd_even")                                                                        \
    X(OVERLAP, "overlap_p2p")                                                                      \
    X(FLUSH, "overlap_p2p_flush")
enum megatron_order {
#define X(name, key) MEGATRON_##name,
    MEGATRON_LIST(X)
#undef X
};

/* As many activations as `machine: {memory}` has room for, rank by rank. */
enum { GENERATE_FIT = -1 };

/* Generator parameters, `generate:`. */
struct generate_spec {
    bool given;
    const char *schedule; /* gpipe, 1f1b, interleaved_1f1b, ... */
    int ranks, chunks, microbatches;
    int group;                    /* microbatches that go through a chunk in a row; 0: as PyTorch */
    bool moe_overlap;             /* the two passes of a steady pair are one piece of work */
    enum megatron_order megatron; /* NONE: passes alone, whose messages are added as PyTorch does */
    int memory; /* schedules that are found: activations of a stage a rank holds; 0: by the schedule, GENERATE_FIT */
    struct mark mark;
};

/* Cost of one action kind, for prediction: `times: {F: 1ms, B: 2ms, ...}`. */
struct action_time {
    bool given;
    int64_t time_ns;
};

struct programs {
    struct rank_program *ranks; /* plan->ranks of them */
    bool has_comms;             /* at least one SEND or RECV: compute_comms, else compute_only */
    int copies;    /* `copies: 2`, of the model, half of the stages each; 0 or 1: one */
    bool fragment; /* `fragment: true`: a piece, whose other passes are elsewhere */
    struct generate_spec generate;
    enum fifo_rule fifo;    /* p2p: {fifo: rank|pair|direction|edge} */
    bool batch;             /* p2p: {batch: true}: neighbouring sends and receives form a group */
    enum metadata metadata; /* p2p: {metadata: each} */
    int64_t p2p_bytes;      /* p2p: {bytes: 4MiB}, per message, where its links say nothing else */
    struct links links;     /* p2p: {latency, bandwidth, ...} */
    struct stage_spec stages;      /* stages:, layers:, balance:, checkpoint:, release: */
    int eager_messages;            /* p2p: {eager_messages: 1}, per communicator; 0: rendezvous */
    int64_t eager_bytes;           /* p2p: {eager_bytes: 1MiB}; 0: rendezvous */
    int fsdp_replicas;             /* fsdp: {replicas: 2}, of the whole pipeline; 0 or 1: one */
    int64_t fsdp_bytes;            /* fsdp: {bytes: 1GiB}, the unsharded parameters of a stage */
    struct parallel_spec parallel; /* `parallel:`, the pipelines and groups of all ranks */
    struct action_time times[ACTION_IDLE];
    struct arithmetic arithmetic; /* arithmetic: */
};

/* ---- host programs --------------------------------------------------------------------------- */

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
    int64_t ticket; /* TICKET */
    int64_t bytes;
    int64_t time_ns;                      /* CPU work: CPU time; else device time */
    int64_t host_time_ns;                 /* operations that push: CPU time of the call */
    struct time_list *times, *host_times; /* that the two are from; NULL: given as one time */
    struct dist jitter;
    int sm;
    struct shares shares;
    struct work work;                    /* LAUNCH: for a real run; WORK_NONE spins for time_ns */
    struct index_list reads, writes;     /* plan->buffers */
    struct p2p_part *parts;              /* GROUP: all on one stream a communicator */
    struct process_group *process_group; /* COLLECTIVE, GROUP: called through one; else NULL */
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
    const char *name; /* without the "r0." */
    struct mark mark;
    struct host_op *ops;
    size_t op_count;
    struct repeat *repeats; /* in the order of `first` */
    size_t repeat_count;
};

/* ---- the machine's knobs --------------------------------------------------------------------- */

struct comm {
    const char *name;
    int *members; /* ranks, ascending; NULL: all ranks */
    size_t member_count;
    int eager_messages; /* machine: {eager_messages: {A: 1}}; 0: rendezvous */
    int64_t eager_bytes;
    bool declared; /* named under `comms:`, not only where it is used */
    struct mark mark;
};

struct queue {
    const char *name;
    int capacity;
    struct mark mark;
};

struct machine_spec {
    int sm_slots;      /* residency slots of a device; 0: unlimited */
    int *share_device; /* per rank the first rank on its device; NULL: each has its own */
    struct mark share_device_mark;
    int hw_queues;             /* in-order hardware queues a rank; 0: one a stream */
    int launch_queue;          /* operations a stream can hold before a push blocks; 0: derived */
    int64_t launch_latency_ns; /* from a push until its work can begin; of time alone */
    bool first_use_blocks;
    bool launch_order_implicit;
    bool lazy_load;
    bool launch_lock; /* a push holds the context lock, also while it blocks */
    bool
        launch_blocking; /* CUDA_LAUNCH_BLOCKING=1: a kernel's launch returns when it has finished */
    bool alloc_may_sync; /* an allocation may free what is cached, and waits for the device then */
    int copy_engines;    /* that copies share; 0: as many as there are copies */
    int cores;           /* that the device work of all ranks shares; 0: as many as are wanted */
    struct shares shares[SHARED_WORK_COUNT]; /* of work without shares of its own */
    struct cost_list memory;                 /* bytes that a rank may hold: machine_memory */
};

/* Bytes that this rank may hold, in rank programs every rank at this place of a pipeline; 0: any number. */
static inline int64_t machine_memory(const struct machine_spec *machine, int rank)
{
    size_t at = machine->memory.count > 1 ? (size_t)rank : 0;
    return at < machine->memory.count ? machine->memory.items[at] : 0;
}

/* Those of every rank; 0: any number, or ranks differ. */
static inline int64_t machine_same_memory(const struct machine_spec *machine)
{
    for (size_t i = 1; i < machine->memory.count; i++)
        if (machine->memory.items[i] != machine->memory.items[0])
            return 0;
    return machine_memory(machine, 0);
}

static inline bool machine_has_memory(const struct machine_spec *machine)
{
    for (size_t i = 0; i < machine->memory.count; i++)
        if (machine->memory.items[i] > 0)
            return true;
    return false;
}

/* The effect of a failed task (doc/semantics.md, section 4): only its thread ends; its rank is woken and
   stops; a watchdog stops the ranks it communicates with, too. */
#define ON_FAILURE_LIST(X) X(NONE, "none") X(WAKE, "wake") X(ABORT, "abort")
enum on_failure {
#define X(name, key) ON_FAILURE_##name,
    ON_FAILURE_LIST(X)
#undef X
};

/* A verdict the plan expects; OUTCOME_UNDECIDED where it names none (then: no violation). */
struct expectation {
    bool given; /* `expect:` is present, maybe empty: every property holds */
    bool named[PROPERTY_COUNT];
    enum outcome
        outcome[PROPERTY_COUNT];        /* for `race: order`: OUTCOME_SOME, any violation matches */
    bool any_violation[PROPERTY_COUNT]; /* named without always/some: either matches */
    struct mark mark;
};

/* A table of names; the rest of the plan refers to names by index. Small tables are searched one by
   one, large ones through a hash table in the same arena. */
struct names {
    const char **items;
    size_t count, cap;
    struct mark *marks; /* of the first of them: where the file uses them first */
    size_t mark_count, mark_cap;
    uint32_t *table; /* open addressing: index + 1, 0 empty; NULL while the table is small */
    size_t table_size;
};

/* An entry of `streams:`, for every rank. */
struct stream_spec {
    int stream;    /* plan->streams */
    bool legacy;   /* it waits for all blocking streams of its rank, and they for it */
    bool blocking; /* to the legacy stream; default: true */
    int hw_queue;  /* -1: dealt out by first use */
    struct mark mark;
};

/* An entry of `unrecorded:`: what the job that the plan was imported from did, and the plan does not have. */
struct unrecorded {
    const char *what, *why;
};

struct plan {
    struct arena arena;
    const char *file; /* as given by the user, "-" for standard input */
    const char *text; /* that it was read from, which all marks are positions in; NULL: none */
    const char *name; /* default: the file's base name without suffix */
    const char *about, *source;
    enum plan_form form;
    int ranks; /* >= 1 */
    struct machine_spec machine;
    enum on_failure on_failure; /* default: pipeline form abort, else none */
    struct comm *comms;
    size_t comm_count;
    struct queue *queues;
    size_t queue_count;
    struct buffer *buffers;
    size_t buffer_count;
    struct share
        unexplained; /* `unexplained:`, the idle time of the measured job without a cause */
    struct unrecorded *unrecorded; /* no verdict covers it */
    size_t unrecorded_count, unrecorded_cap;
    bool inputs_given;    /* `inputs:` is present: no other buffer holds values at the start */
    struct names streams; /* per rank: a stream of this name on every rank that uses it */
    struct stream_spec *stream_specs;
    size_t stream_spec_count;
    struct names groups;       /* thread groups, pipeline form */
    struct names events;       /* host programs, per rank */
    struct names flags;        /* host programs, plan-wide */
    struct names locks;        /* per rank */
    struct names barriers;     /* plan-wide */
    struct expectation expect; /* clock-driven, and the forms without a driver */
    struct expectation
        expect_dataflow; /* equal, unless `expect: {clock: {...}, dataflow: {...}}` */
    struct pipeline pipeline;
    struct programs programs;
    struct graph *graphs;
    size_t graph_count;
    struct host_thread *threads;
    size_t thread_count;
    struct listed_action *listed; /* in lowered rank programs */
    size_t listed_count;
};

void plan_init(struct plan *plan);
void plan_fini(struct plan *plan);

/* Add an error at a place of the plan's text, with that line. Returns STATUS_INPUT. */
enum status plan_error_at(const struct plan *plan, struct diag *diag, struct mark mark,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Add an entry of `unrecorded:`, unless there is one of the same `what`. False: no memory, also where a text is NULL. */
bool plan_add_unrecorded(struct plan *plan, const char *what, const char *why);

/* Was the job that the plan was imported from idle without a cause for more than a tenth of its idle time? A prediction
   of it would not be that of the job. */
bool plan_is_unexplained(const struct plan *plan);

/* The tasks as rank `rank` sees them; one of them. */
const struct task *plan_tasks(const struct plan *plan, int rank);
const struct task *plan_task(const struct plan *plan, int rank, int task);
/* Do the tasks of two ranks differ in durations and communicators only? */
bool plan_same_task(const struct task *a, const struct task *b);
/* Both CPU parts together take `time_ns`; each keeps its share. */
void plan_set_host_time(struct task *task, int64_t time_ns);
/* The ranks of a run: those of all pipelines. */
int plan_rank_count(const struct plan *plan);
/* The enqueue order as rank `rank` states it. */
const struct order_spec *plan_order(const struct plan *plan, int rank);
/* Index of a task by name, or -1. */
int plan_find_task(const struct plan *plan, const char *name);

/* The entry of a stream; NULL: none. The legacy stream; NULL: there is none. */
const struct stream_spec *plan_stream_spec(const struct plan *plan, int stream);
const struct stream_spec *plan_legacy_stream(const struct plan *plan);

/* The index of `name` in `names`, added if new; -1 when memory is exhausted. */
int names_intern(struct names *names, struct arena *arena, const char *name);
/* Where the file uses a name first; line 0: not in a file. */
struct mark names_mark(const struct names *names, size_t index);
/* The index of `name`, or -1. */
int names_find(const struct names *names, const char *name);

/* The name of the event, flag, queue, lock, barrier or buffer an operation uses; NULL: none. */
const char *plan_object_name(const struct plan *plan, const struct host_op *op);
/* The rank on whose device an operation, or a part of a group, of a thread of rank `home` is done. */
static inline int host_op_rank(const struct host_op *op, int home)
{
    return op->device > 0 ? op->device - 1 : home;
}
static inline int p2p_part_rank(const struct host_op *group, const struct p2p_part *part, int home)
{
    return part->device > 0 ? part->device - 1 : host_op_rank(group, home);
}
/* The most iterations of a repeat of a host program; 0: none has one. */
int plan_repeats(const struct plan *plan);
/* Does the operation concern a stream: push to it, wait for it, or mark memory as used there? */
bool host_op_has_stream(const struct host_op *op);

const char *work_key(enum work_kind kind);
const char *direction_key(enum direction direction);
const char *collective_key(enum collective_kind kind);
const char *dtype_key(enum dtype dtype);
int dtype_bytes(enum dtype dtype);
const char *action_text(enum action_kind kind);
bool action_has_microbatch(enum action_kind kind);
/* The action whose time is this cost: one of COST_F, I, W, B. */
enum action_kind action_of_cost(enum cost cost);
/* The reverse; false, and *out untouched: the action is no pass. */
bool action_cost(enum action_kind kind, enum cost *out);

#endif
