/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - the interface of a device: ranks with streams, events, buffers and communicators.
 *
 * Two devices implement it: `host` computes on threads of this process, `cuda` on one GPU with
 * NCCL. A *world* is one run: its ranks, their communicators, its clock and its end. A *device* is
 * one rank of it. doc/semantics.md, section 3, defines the operations;
 * this header is the contract. The ranks of a world may be spread over processes that share a rendezvous
 * (gpu/net/rendezvous.h): each opens the world, which waits until all have, and in it its own ranks.
 *
 * Ownership: the caller that opens a handle closes it, in the order graphs, comms, events, streams, buffers,
 * device, world. Labels, tags and stamps given to an operation must live until it has finished (a
 * stamp: until it has been collected, or its device closed); the parts of a group are copied.
 *
 * Threads: every function may be called from any thread, except that a handle is closed only when
 * no thread uses it any more. No device function may be called from within a callback.
 *
 * Time: int64_t nanoseconds since the world was opened, on its monotonic clock; a deadline is such
 * a time, DEVICE_FOREVER none.
 *
 * Errors: STATUS_INPUT: the request has no meaning, and nothing happened.
 * STATUS_SYSTEM: memory, threads or the driver refused. STATUS_LIMIT: a deadline passed, and
 * nothing else happened. STATUS_VIOLATED: the work itself failed (mismatch, abort). An injected
 * failure has the status it was given.
 *
 * Failure. An operation that fails leaves its stream *failed*: that operation and those behind it
 * never finish, pushes are refused, queries and syncs report the first failure. It spreads to
 * streams that wait for its events, and on this rank to operations of a communicator it used. An event
 * whose record was refused stands for work that never finishes. A failure does not spread to other ranks
 * by communicators (NCCL has no time limit either): peers wait until device_world_abort.
 */
#ifndef SWSIM_DEVICE_H
#define SWSIM_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "dense.h"
#include "numbers.h"
#include "plan/plan.h"

struct device_world;
struct device;
struct device_stream;
struct device_event;
struct device_buffer;
struct device_comm;
struct device_graph;
struct gate;
struct rendezvous;

#define DEVICE_FOREVER INT64_MAX

/* ---- world ----------------------------------------------------------------------------------- */

#define DEVICE_KIND_LIST(X) X(HOST, "host") X(CUDA, "cuda")
enum device_kind {
#define X(name, key) DEVICE_KIND_##name,
    DEVICE_KIND_LIST(X)
#undef X
};

const char *device_kind_key(enum device_kind kind);

/* Things that the program has made itself and a device is to use; functions may be NULL, and return NULL where there is none for
   a name. It is borrowed while the world is open. The host device has memory only, and that where all ranks are in
   this process: others must reach it. */
struct device_own {
    void *(*stream)(void *arg, int rank, const char *name); /* a cudaStream_t */
    void *(*comm)(void *arg, int rank, const char *name);   /* an ncclComm_t */
    /* An abort has ended that communicator, and its handle is gone. */
    void (*comm_lost)(void *arg, int rank, const char *name);
    /* Memory of the device, aligned to DEVICE_OWN_ALIGN; NULL: there is no more. Given back when nothing uses it, but for an
       abort in which work may never end. */
    void *(*alloc)(void *arg, int rank, size_t bytes);
    void (*release)(void *arg, int rank, void *address, size_t bytes);
    void *arg;
};

enum { DEVICE_GPU_CURRENT = -1, DEVICE_OWN_ALIGN = 256 /* bytes */ };
struct device_config {
    enum device_kind kind;
    int ranks;       /* of the world */
    int first_rank;  /* of those that are in this process ... */
    int local_ranks; /* ... and how many; 0: all are. cuda: 1. As many in every process, in order */
    int sm_slots;    /* residency slots of a device, 0: unlimited; host only, a GPU has its own */
    const int
        *share_device; /* per rank the first rank on its device, whose slots it shares; NULL: each
                                has its own. Borrowed while devices open; host, one process only */
    int launch_queue;  /* unfinished operations a stream holds before a push blocks, 0: unlimited;
                         host only, a GPU has its own */
    int64_t launch_latency_ns; /* from a push until its work can begin; host only */
    struct rendezvous
        *rendezvous; /* where the processes of the world meet, borrowed; NULL: there is
                                      only this one. It is a member with the number first_rank /
                                      local_ranks. Time then counts from the board's base_ns */
    int gpu; /* cuda: its number + 1; DEVICE_GPU_CURRENT: the calling thread's; 0: by the place of the rank
                among those on this machine */
    int64_t meet_ns;              /* how long the processes wait for each other; 0: for ever */
    const struct device_own *own; /* NULL: the device makes everything itself */
    bool
        own_process; /* cuda: variables of CUDA and NCCL that the program's user left unset are set, as a
                         program does that has no other use for them. Else the environment stays as it is */
};

/* cuda: set these variables, where they are unset, that do not depend on a world. Before any thread and any call of
   CUDA. Returns how many were set, -1: memory. */
int device_set_environment(void);

/* STATUS_SYSTEM with the reason when this machine or this build has no such device. */
enum status device_world_open(const struct device_config *config, struct device_world **out,
                              struct diag *diag);
void device_world_close(struct device_world *world);

/* Bytes of freed buffers that stay allocated until the process ends, because work that an abort does not end, a
   kernel of the program's, may still use them. 0 on the host device. */
int64_t device_kept_bytes(const struct device *device);
/* Likewise communicators, whose abort waits for that work. */
int device_kept_comms(const struct device *device);

/* Fail all streams of all ranks with "aborted: why" and wake every waiter: syncs, blocked pushes,
   streams, collectives. Operations that are computing stop early. Returns at once; a second abort
   does nothing. For a watchdog or signal thread, not for a signal handler. Closing never hangs
   afterwards. */
void device_world_abort(struct device_world *world, const char *why);

/* STATUS_OK, or the first failure of any rank. Never blocks for work. `diag` may be NULL. */
enum status device_world_status(struct device_world *world, struct diag *diag);

/* A note for every stream that has unfinished work: what runs, or what its head waits for. */
void device_world_explain(struct device_world *world, struct diag *diag);

int64_t device_now(const struct device_world *world);

/* The moment `limit_ns` after `now_ns`; a limit that no process lives to see is none. */
static inline int64_t device_deadline(int64_t now_ns, int64_t limit_ns)
{
    return limit_ns > DEVICE_FOREVER / 2 ? DEVICE_FOREVER : now_ns + limit_ns;
}

/* In a loop that spins: the core may do something else for a moment. */
static inline void device_relax(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

/* ---- device: one rank ------------------------------------------------------------------------ */

enum status device_open(struct device_world *world, int rank, struct device **out,
                        struct diag *diag);
void device_close(struct device *device);

/* Make the rank's GPU the calling thread's; nothing on the host device. */
void device_enter(struct device *device);
/* The state of CUDA that a thread has as the caller of a library: its current GPU (-1: there is none) and its last
   error. Note it before calls of this interface and restore it behind them; an error that these calls met
   themselves, and reported, does not stay. One that was there before is kept as long as no call fails. */
struct device_caller {
    int gpu;
    void *context;                     /* the driver's that is current; NULL: none */
    int (*set_current)(void *context); /* the driver's; NULL: the GPU is restored by its number */
    bool had_error;
    int capture_mode; /* between both calls the thread's polls end no capture of the program's */
    int (*exchange_mode)(int *mode); /* the driver's; NULL: the mode stays */
};
/* `world` is NULL before it is opened. */
void device_note_caller(enum device_kind kind, const struct device_world *world,
                        struct device_caller *out);
void device_restore_caller(enum device_kind kind, const struct device_caller *caller);

const char *device_name(const struct device *device);        /* "host", "cuda" */
const char *device_description(const struct device *device); /* one line, for people */

/* ---- memory ---------------------------------------------------------------------------------- */

enum device_memory {
    MEMORY_DEVICE,  /* only operations touch it */
    MEMORY_PINNED,  /* host memory that copies reach without blocking the host */
    MEMORY_PAGEABLE /* host memory; a copy from or to it returns when it has finished */
};

/* Zeroed. `bytes` may be 0. May block until the device is idle, as cudaMalloc may. */
enum status device_alloc(struct device *device, enum device_memory memory, size_t bytes,
                         struct device_buffer **out, struct diag *diag);
/* MEMORY_DEVICE in the middle of a run: waits for no work, where the device can do without, as GPUs with memory pools. */
enum status device_alloc_beside(struct device *device, size_t bytes, struct device_buffer **out,
                                struct diag *diag);
/* Waits until the streams of this device are idle, as cudaFree does: no time limit, but an abort
   ends it. NULL is allowed. */
void device_free(struct device_buffer *buffer);

/* The bytes of host memory, for the caller to read and write while no operation uses them; NULL for
   MEMORY_DEVICE. */
void *device_host_pointer(const struct device_buffer *buffer);
/* Where it lies, for operations that are not ours: an address of the device, on the host device of this
   process. NULL when it has no bytes. */
void *device_address(const struct device_buffer *buffer);

/* A buffer of memory that is the caller's own and stays so: on the host device of this process, on cuda an
   address of the GPU. On the host device other processes cannot reach it. Freed as others, without waiting. */
enum status device_wrap(struct device *device, void *address, size_t bytes,
                        struct device_buffer **out, struct diag *diag);
void device_unwrap(struct device_buffer *buffer);

/* A place in a buffer, counted in bytes; operations check that what they need lies inside. */
struct device_ref {
    struct device_buffer *buffer;
    size_t offset;
};

/* ---- streams and events ---------------------------------------------------------------------- */

/* A stream is a FIFO. `name` is copied. */
enum status device_stream_open(struct device *device, const char *name, struct device_stream **out,
                               struct diag *diag);
/* Waits for the work pushed so far: sync before, or abort where it may never finish. */
void device_stream_close(struct device_stream *stream);
/* The driver's own handle: a cudaStream_t; NULL on the host device, which has none. To be asked for each time
   before something is given to it directly: what is pushed then comes after launches of graphs. */
void *device_stream_handle(struct device_stream *stream);

/* An event means: the work its last record covers. Never recorded, it means no work. A wait, query
   or sync looks at the last record *at the time of the call*; later records change nothing for it.
 */
enum status device_event_open(struct device *device, struct device_event **out, struct diag *diag);
void device_event_close(struct device_event *event);

/* ---- communicators --------------------------------------------------------------------------- */

/* `members` are ranks of the world, ascending, this device's among them. Each member opens its own
   handle; handles of one name and one set of members are one communicator, and one rank opens it
   once at a time. May block until all members came (cuda). */
enum status device_comm_open(struct device *device, const char *name, const int *members, int count,
                             struct device_comm **out, struct diag *diag);
/* Waits for the operations pushed to it, as device_stream_close. */
void device_comm_close(struct device_comm *comm);

/* NCCL's own handle, an ncclComm_t; NULL on the host device, which has none, and after an abort. */
void *device_comm_handle(struct device_comm *comm);
/* True if collectives of so many bytes, without a tag, may name memory of this process instead of buffers (struct
   device_staging). */
bool device_comm_takes_own(const struct device_comm *comm, size_t bytes);

/* `bytes` of a collective is the larger side, as nccl-tests counts; with n members:
       all_to_all       sends bytes, block j to member j; receives bytes, block i from member i
       all_reduce       sends and receives bytes, sums of its number
       all_gather       sends bytes/n, receives bytes, block i from member i
       reduce_scatter   sends bytes, receives bytes/n: member j gets the sums of block j
       broadcast        sends bytes (root), receives bytes (all, root included)
       barrier          sends and receives nothing
   bytes must divide into n blocks where there are blocks, into whole numbers where there are sums. The
   host device adds in the order of the members, as numbers.h says; NCCL in an order and precision of its own. In place as with NCCL; an all_to_all may not overlap itself. */
/* As the plan's collectives, whose numbers are f32. */
int64_t device_collective_round(enum collective_kind kind, int64_t bytes, int members); /* up */
int64_t device_collective_send_bytes(enum collective_kind kind, int64_t bytes, int members);
int64_t device_collective_recv_bytes(enum collective_kind kind, int64_t bytes, int members);

/* ---- operations ------------------------------------------------------------------------------ */

/*           NAME, in words; members of `struct device_op` it uses */
#define DEVICE_OP_LIST(X)                                                                          \
    X(SPIN, "spin")             /* time_ns only */                                                 \
    X(FILL, "fill")             /* fill */                                                         \
    X(GEMM, "gemm")             /* gemm */                                                         \
    X(GATHER, "gather")         /* gather */                                                       \
    X(AXPY, "axpy")             /* axpy */                                                         \
    X(DENSE, "dense")           /* dense */                                                        \
    X(COPY, "copy")             /* copy */                                                         \
    X(COLLECTIVE, "collective") /* collective */                                                   \
    X(GROUP, "group")           /* group */                                                        \
    X(RECORD, "record")         /* event */                                                        \
    X(WAIT, "wait")             /* event, of any rank of this process */                           \
    X(CALLBACK, "callback")     /* callback */

enum device_op_kind {
#define X(name, key) DEVICE_OP_##name,
    DEVICE_OP_LIST(X)
#undef X
};

/* out[i] = value for `elements` numbers of f32 or f64. */
struct device_fill {
    struct device_ref out;
    int64_t elements;
    enum dtype dtype;
    double value;
};

/* c = a * b, row-major: a is m x k, b k x n, c m x n; f32 or f64. c overlaps neither. */
struct device_gemm {
    struct device_ref a, b, c;
    int64_t m, n, k;
    enum dtype dtype;
};

/* Row i of `out` is row (index[i] mod table_rows) of `table`; index: `rows` uint32_t; any dtype. */
struct device_gather {
    struct device_ref table, index, out;
    int64_t rows, dim, table_rows;
    enum dtype dtype;
};

/* y += alpha * x, f32. */
struct device_axpy {
    struct device_ref x, y;
    int64_t elements;
    float alpha;
};

/* Steps of dense layers, one behind the other. The memory of each is where its refs say, not in `dense`. */
struct device_dense_step {
    struct dense dense;
    struct device_ref refs[DENSE_OPERANDS];
};

/* The steps must live until the operation has finished. */
struct device_dense {
    const struct device_dense_step *steps;
    size_t count;
};

/* Both sides must be of the kind of memory the direction says; they do not overlap. */
struct device_copy {
    enum direction direction;
    struct device_ref from, to;
    int64_t bytes;
};

/* Memory of this process that the host device copies to `send` before a collective, and from `recv` behind it, as part of the
   operation; or that it reads and writes where `send` or `recv` has no buffer, if device_comm_takes_own. 0 bytes: nothing.
   Other devices have no use for it: they reach such memory themselves. */
struct device_staging {
    const void *from;
    void *to;
    size_t from_bytes, to_bytes;
};

/* Matches by position among the collectives of its communicator. Members that differ in kind, tag
   (NULL equals NULL), bytes, number, root or iteration there: a mismatch, reported to all of them by the host device. */
struct device_collective {
    struct device_comm *comm;
    enum collective_kind kind;
    const char *tag;
    int root;           /* broadcast: a rank */
    int64_t iteration;  /* of the function that calls it, from 1 on; 0: differs from none */
    enum number number; /* of sums */
    int64_t bytes;
    struct device_ref send, recv; /* unused where the member sends or receives nothing */
    struct device_staging staging;
};

struct device_p2p {
    bool send; /* else receive */
    int peer;  /* a rank of the communicator; itself only against its own part in this group */
    const char *tag;
    int64_t iteration; /* as of a collective */
    int64_t bytes;
    struct device_ref data;
};

/* Finishes as a unit when every part is matched: the n-th send from a to b with the n-th receive at
   b from a on that communicator. Different peers progress independently. Tags, bytes or iterations that differ:
   a mismatch, reported to both. */
struct device_group {
    struct device_comm *comm;
    const struct device_p2p *parts;
    size_t count;
};

/* Runs on a thread of the device in stream order. It may block, and only its author can wake it; on
   cuda the callbacks of other streams may have to wait for it. */
struct device_callback {
    void (*run)(void *arg);
    void *arg;
    /* Host only; NULL: none. When it took effect, which `run` says: the operation's start in its stamp. 0: it did not, and the
       stamp says nothing. */
    const int64_t *acted_ns;
};

/* Host device only: the operation is a step, or part of one, of a run that is forced into an order
   (gpu/device/gate.h). A step of the plan may be several operations: the first of them enters, the last one
   leaves. */
struct device_turn {
    struct gate *gate; /* NULL: it starts and finishes when it can */
    int start, finish; /* the agents whose steps these are */
    bool enters;       /* it waits for the turn to start */
    bool leaves;       /* once it has started that turn is over; it waits for the turn to finish */
};

struct device_op {
    enum device_op_kind kind;
    const char *label; /* for messages and profilers, or NULL */
    int sm;            /* residency slots held from start to end, 0: none */
    int64_t time_ns;   /* SPIN: the duration. Others, host only: at least this long */
    struct device_turn turn;
    union {
        struct device_fill fill;
        struct device_gemm gemm;
        struct device_gather gather;
        struct device_axpy axpy;
        struct device_dense dense;
        struct device_copy copy;
        struct device_collective collective;
        struct device_group group;
        struct device_event *event;
        struct device_callback callback;
    };
};

/* The fate of one operation. `number` counts the pushes of a device from 0 and is set by the push, as is
   when the push took effect, which may be long before its call returns: the host device says it to the
   nanosecond, in the order of all pushes of the process, others say between which moments. (Where a launch of a
   graph pushes, the caller sets both.) The rest is set by the time of a device_collect after the operation has
   finished, or never. An operation starts when it heads its stream, its communicator's previous operation on this rank has
   finished and its slots are free; a wait ends when its event does; a collective or group ends with
   its last peer. The host device sets start_ns and `started` as soon as it has started, so that of an
   operation that never finishes it is known whether it did. */
struct stamp {
    int64_t number;
    int64_t pushed_from_ns, pushed_by_ns;
    int64_t start_ns, end_ns;
    atomic_bool started; /* set after start_ns; host only */
    atomic_bool valid;   /* set after both times: once it is seen, they may be read */
};

/* Push an operation; `stamp` may be NULL. Blocks while the stream's launch queue is full, and for a
   copy with pageable memory until it has finished; an abort ends both. Communicators serialise in
   the order of these calls, whatever the streams. */
enum status device_push(struct device_stream *stream, const struct device_op *op,
                        struct stamp *stamp, struct diag *diag);

/* The two most frequent, spelled out. */
enum status device_record(struct device_stream *stream, struct device_event *event,
                          struct stamp *stamp, struct diag *diag);
enum status device_wait(struct device_stream *stream, struct device_event *event,
                        struct stamp *stamp, struct diag *diag);

/* ---- graphs ---------------------------------------------------------------------------------- */

/* A graph holds the operations pushed to some streams of a device between begin and end; one call pushes
   them all again, any number of times.

   While streams are captured a push to them only keeps the operation. A stamp asks for one at every launch;
   its number is then the place of the operation in the graph, counted from 0. Labels, tags,
   communicators, events and buffers must live as long as the graph. Captured streams cannot be queried or
   waited for, nor can their device; copies of pageable memory and operations with a turn are refused. One
   thread begins, pushes and ends, and no other thread uses these streams meanwhile.

   A launch pushes all captured operations now, in their order. So each launch decides which record a wait
   waits for. A device may add order, and `cuda` does: a launch starts when all earlier operations of the
   graph's streams have finished, later operations start when the launch has finished, and an event that it
   records stands for the whole launch.

   A failure is that of a push: a launch that is refused has done nothing, or its streams have failed. */
enum status device_graph_begin(struct device *device, struct device_stream *const *streams,
                               size_t count, struct diag *diag);
/* *out is set only when everything was captured; the streams are as before in any case. */
enum status device_graph_end(struct device *device, struct device_graph **out, struct diag *diag);
/* Before each launch: the operation at place k will have the number *first + k. Waits for the launch
   before, where the device cannot have two of one graph: no time limit, but an abort ends it. */
enum status device_graph_arm(struct device_graph *graph, int64_t *first, struct diag *diag);
/* One stamp for each push that had one, in their order; `stamps` may be NULL if there was none. The caller has
   set only their numbers, which a log may read already. */
enum status device_graph_launch(struct device_graph *graph, struct stamp *const *stamps,
                                struct diag *diag);
/* Waits for the last launch, as device_stream_close. NULL is allowed. */
void device_graph_close(struct device_graph *graph);
/* Pushes that were captured, and how many of them have a stamp. */
size_t device_graph_pushes(const struct device_graph *graph);
size_t device_graph_stamps(const struct device_graph *graph);

/* ---- the host looks and waits ---------------------------------------------------------------- */

/* Find out whether it has finished. A failure is reported instead. `diag` may be NULL in all functions below. */
enum status device_event_query(struct device_event *event, bool *done, struct diag *diag);

/* Block until what was pushed (recorded) before the call has finished, or the deadline.
   STATUS_LIMIT says what it was waiting for. */
enum status device_stream_sync(struct device_stream *stream, int64_t deadline_ns,
                               struct diag *diag);
enum status device_event_sync(struct device_event *event, int64_t deadline_ns, struct diag *diag);
enum status device_sync(struct device *device, int64_t deadline_ns, struct diag *diag);

/* Make the stamps of all finished operations of this device valid. Never blocks for work. */
enum status device_collect(struct device *device, struct diag *diag);

/* The operation with this number, pushed later, fails with `status` instead of doing its work. */
enum status device_inject(struct device *device, int64_t number, enum status status,
                          struct diag *diag);

#endif
