/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded_internal.h - the walk over the items of a recording, in the order of their ends, and what it finds.
 *
 * recorded_calls.c walks. It takes the items of CUDA itself; recorded_copies.c takes those about the content of memory,
 * recorded_memory.c those of allocations, recorded_tensors.c those of tensors, recorded_comms.c those of NCCL, recorded_queries.c queries, recorded_values.c values
 * in memory. recorded_order.c says what happens before what, recorded_clock.c when it happened, its part on locks which of them
 * matter, and recorded_form.c makes threads of the operations. All of it lives in the plan's arena; false or NULL: no memory.
 */
#ifndef SWSIM_RECORDED_INTERNAL_H
#define SWSIM_RECORDED_INTERNAL_H

#include "base/ordered.h"
#include "trace/job/job.h"
#include "recorded.h"
#include "tapes.h"

/* An access to an allocation. */
struct recorded_access {
    size_t block;
    uint64_t from, to; /* offsets; to 0: as far as nothing else begins */
    bool write;
    int part; /* of a group; -1: of the operation */
    bool
        goes_on; /* from the access in front, where that goes to the end of its block; it begins nothing */
};

/* A measured operation of a device, on the host's clock. */
struct recorded_span {
    uint64_t push, node; /* the call that pushed it, 0: none; of a graph, 0: none */
    int64_t start_ns, end_ns;
};

/* By `push`, then by `node`. */
struct recorded_times {
    struct recorded_span *items;
    size_t count, unasked; /* those without a call come first */
    uint64_t lost;         /* CUPTI had no room for them */
};

/* When work began and ended on its device; READY: when all before it had ended, of a wait all that it waits for. */
#define RECORDED_UNKNOWN_NS INT64_MAX
struct recorded_device_time {
    bool pushes, known;
    int64_t start_ns, end_ns, ready_ns;
    double sum_ns; /* of a graph: over its launches */
    int64_t count;
    int64_t
        meets_ns; /* with other ranks: the least time over them; 0: it is not done with others */
};

/* An operation of a thread, or of a graph. */
struct recorded_op {
    struct host_op
        op;         /* without accesses; a communicator is that of the job, a peer its rank there */
    uint64_t place; /* items of the thread up to it */
    int device;     /* of the process */
    int event_device; /* WAIT, SYNC */
    size_t event;     /* external RECORD, WAIT: of the process */
    int signal;       /* the flag that is set behind it; -1: none */
    struct recorded_access *accesses;
    size_t access_count, access_cap;
    uint64_t host_call;   /* CALLBACK: its number */
    size_t value;         /* CALLBACK: the number of a use of a value in memory; 0: it is none */
    int64_t after_thread; /* AWAIT: thread and items that it comes after */
    uint64_t after_count;
    bool by_lock;             /* AWAIT: it was the run that decided on the order */
    bool in_time;             /* AWAIT: in another run the call may give up */
    size_t after_place;       /* the operation of that thread */
    int64_t begin_ns, end_ns; /* of the call, on the host's clock */
    struct recorded_device_time device_time;
    uint64_t push;     /* the number of its call, for recorded_times_find; 0: none */
    size_t block;      /* ALLOC, FREE */
    bool begins, ends; /* HOST: the bounds of a host function, which is a callback's body */
    uint64_t lock;     /* LOCK, UNLOCK: its number */
    bool shared;       /* LOCK: others may have it, too */
    bool asked;        /* SYNC, AWAIT: of a query that was answered with yes */
    size_t part_cap;
};

struct recorded_ops {
    struct recorded_op *items;
    size_t count, cap;
};

enum { RECORDED_HELD = 16 };

/* A use of a thing by a thread. */
struct recorded_use {
    size_t thread;
    uint64_t place; /* among its items; 0: none */
    uint64_t lock;  /* that it had; 0: none */
};

struct recorded_thread {
    struct recorded_ops ops;
    uint64_t place; /* items so far */
    int device;
    uint64_t acted;                    /* the place of the last item that is no query */
    int depth;                         /* of groups */
    const struct recording_item *work; /* what its next operation computes; NULL: not told */
    const char *at;                    /* where its calls come from; NULL: not told */
    uint64_t push;                     /* the number of the next call that pushes; 0: none */
    struct recorded_op group;          /* under way; its parts */
    uint64_t *after; /* its vector clock: by thread the number of items that it comes after */
    uint64_t
        *locked; /* by thread the same by locks that exclude: in another run it may come before */
    struct recorded_followed *orders; /* the places where an entry of that clock grew */
    size_t order_count, order_cap;
    size_t *orders_merged;        /* by thread: how many of its `orders` are in this clock */
    bool in_host_function;        /* the order of its stream is its own */
    bool relays;                  /* it does nothing but tell others what it was told */
    uint64_t held[RECORDED_HELD]; /* locks that it has now */
    int held_count;
    struct recorded_observation *observations;
    size_t observation_count, observation_cap;
    size_t *observations_merged; /* by thread: how many of its observations this thread has */
    uint64_t just_recorded[RECORDED_HELD]; /* events, by its last calls (recorded_tensors.c) */
    size_t just_recorded_count;
    int home;         /* its rank in the plan */
    const char *name; /* in the plan; NULL: it is not in the plan */
};

/* From this place on the thread comes after the first `count` items of another one. */
struct recorded_followed {
    uint64_t place, count;
    size_t thread;
    bool luck, in_time; /* as of an operation: by_lock, in_time */
};

/* What a thread tells by the conditions of a lock, and what another one knows of that. */
struct recorded_signal {
    size_t thread;
    uint64_t times;  /* that it has signalled */
    size_t follower; /* SIZE_MAX: this is the signalling thread's own */
    size_t next;     /* of the same lock, + 1; 0: none */
};

/* The call that pushes a host function. */
struct recorded_host_call {
    uint64_t number;
    struct recorded_use call;
};

/* A thread that queries a stream or an event (recorded_queries.c). */
struct recorded_poller {
    size_t thread;
    uint64_t records; /* of the event, at the query */
    uint64_t place;   /* of the first no among the thread's items */
    bool not_ready;   /* the last answer was no, and nothing has told the thread more since */
};
struct recorded_pollers {
    struct recorded_poller *items;
    size_t count, cap;
};

/* How many of a stream's first pushes the thread has observed to be complete (recorded_order.c). */
struct recorded_observed {
    size_t thread;
    uint64_t pushes, waited; /* by waits and answers; by waits alone */
};

/* The place among a thread's items where it observed that. */
struct recorded_observation {
    uint64_t place, pushes;
    size_t stream;
    bool by_wait;
};

/* How many of the first pushes of each stream are complete: a list by stream, of those that have any (recorded_order.c). */
struct recorded_frontier {
    struct {
        size_t stream;
        uint64_t pushes;
    } * items;
    size_t count, cap;
};

/* Handles of streams that are no addresses; the last is that of a device's copies with other devices, made here. */
enum { RECORDED_LEGACY = 1, RECORDED_PER_THREAD = 2, RECORDED_PEER = 3 };

struct recorded_stream {
    uint64_t handle;
    int name, device; /* plan->streams */
    bool live, blocking;
    int64_t thread;          /* of the default stream of a thread; else -1 */
    int64_t capture;         /* graphs; -1: none */
    uint64_t pushes, synced; /* waits and records too; when a thread last waited: the pushes then */
    int64_t synced_by;
    int64_t ready_ns; /* its work so far has ended */
    uint64_t
        holds; /* devices, as bits, whose later streams come after it: of copies between devices */
    struct recorded_pollers pollers;
    struct recorded_observed *observed;
    size_t observed_count, observed_cap;
    struct recorded_frontier frontier; /* what its next work comes behind */
    struct recorded_use used;          /* by the last push or record */
    struct recorded_use certain;       /* the last query whose answer could only be yes */
    bool unordered; /* some of its pushes and records came in an order that was not seen */
};

struct recorded_event {
    uint64_t handle;
    int name, device; /* plan->events */
    int64_t capture;
    int64_t ready_ns; /* the record is done */
    uint64_t records, synced;
    struct recorded_use recorded; /* by the last record ... */
    size_t stream;                /* ... in this stream */
    uint64_t pushes;  /* the record is complete when this many pushes of the stream are */
    uint64_t implied; /* this many are complete when the record is */
    struct recorded_frontier frontier; /* of the record */
    int64_t synced_by;
    struct recorded_pollers pollers;
    struct recorded_use certain; /* as of a stream */
    size_t held; /* 1 + the last tensor whose memory waits for it (recorded_tensors.c) */
};

struct recorded_block {
    uint64_t address, bytes;
    enum recording_memory memory;
    int device;
    bool async, freed, mapped, used;
    bool of_graph;       /* allocated by each launch of one */
    bool unseen, others; /* accesses of the host, or of other threads than the first, may be */
    bool in_parts;       /* operations of devices access different parts of it ... */
    uint64_t part;       /* ... of which this stands for the last ones; 0: none yet */
    bool has_tenants;    /* some of it is the memory of tensors (recorded_tenants.c) ... */
    size_t tenant;       /* ... as this is: 1 + its number; 0: it is none */
    size_t version;      /* of pinned memory: 1 + its last tenant; 0: none yet */
    const char *name;
    bool begins_at_first; /* of accesses: does one begin at the first byte; the last offset */
    uint64_t last_begin;
    uint64_t *begins, *ends; /* of accesses: offsets */
    size_t begin_count, begin_cap, end_count, end_cap;
    int *pieces;    /* recorded_memory: plan->buffers between the cuts; -1: nobody uses it */
    size_t *listed; /* the last of job->lists that has the piece */
    uint64_t *cuts;
    size_t cut_count;
    bool written, written_on; /* the latter by accesses that go on from the block in front */
    struct recorded_access last_write, last_read;
    struct recorded_use writer, reader; /* of these */
};

/* Memory of cuMemCreate. */
struct recorded_physical {
    uint64_t handle, ends; /* how many ends the handle has yet */
    enum recording_memory memory;
    int device;
    struct {
        uint64_t from, to;
    } * mapped; /* so far */
    size_t mapped_count, mapped_cap;
};

/* A stream writes a value to memory, or waits until there is one. */
struct recorded_value {
    bool writes;
    uint64_t address, bytes, value, flags;
    size_t stream;
    int signal; /* plan->flags, for which it waits, or that it sets; -1: none */
};

struct recorded_graph {
    uint64_t graph; /* handle, once it is captured */
    struct recorded_ops ops;
    int device;
    int index; /* plan->graphs; -1: it is not launched */
    bool over;
};

struct recorded_kernel {
    uint64_t number;
    const char *name;
    bool known;
};

struct recorded_comm_handle {
    uint64_t handle;
    size_t comm;
    int rank; /* of this process in it */
    bool live;
};

struct recorded_text {
    uint64_t number;
    const char *text;
    const char *shapes; /* what stands behind a tab; NULL: nothing does */
};

/* The last operation of a communicator on a stream: its pushes so far. */
struct recorded_room {
    int comm;
    size_t stream;
    uint64_t pushes;
};

struct recorded_process {
    struct tapes tapes;
    struct recorded_thread *threads;
    struct recorded_stream *streams;
    struct recorded_event *events;
    struct recorded_block *blocks;
    struct ordered by_address; /* live blocks */
    struct ordered event_of;   /* live events, by handle */
    struct ordered
        stream_of[2]; /* live streams: by handle; default ones and those of copies, by stream_key */
    size_t stream_named[2]; /* streams with handles that are addresses: non-blocking, blocking */
    struct ordered physical_of; /* memory of cuMemCreate whose handle has not ended, by handle */
    size_t named[4];            /* blocks, by enum recording_memory */
    struct recorded_physical *physicals;
    struct recorded_value *values;         /* in the order of their pushes */
    struct recorded_host_call *host_calls; /* by number */
    struct recorded_graph *graphs;
    struct recorded_kernel *kernels;
    struct recorded_comm_handle *comms;
    struct recorded_room *rooms;
    struct recorded_text *texts;
    struct {
        uint64_t executable;
        size_t graph;
    } * executables;
    size_t stream_count, stream_cap, event_count, event_cap, block_count, block_cap, graph_count,
        graph_cap, kernel_count, kernel_cap, comm_count, comm_cap, text_count, text_cap,
        executable_count, executable_cap, physical_count, physical_cap, value_count, value_cap,
        host_call_count, host_call_cap, several_count, several_cap, signal_count, signal_cap,
        room_count, room_cap;
    uint64_t *several; /* objects of threads, that several let others go on by; sorted */
    struct recorded_signal *signals;
    size_t *signals_of; /* per lock the first of these, + 1; 0: none */
    bool *is_signalled; /* per lock: a condition belongs to it */
    int devices[64];    /* that it uses, in the order of their numbers */
    int device_count;
    int first_rank; /* of the plan; one for each device */
    bool ended;     /* by itself; else it may have had more to call */
    bool is_rank;   /* it is in the plan */
    uint64_t held;  /* devices, as bits, that some stream `holds` */
    struct recorded_times times;
    struct recorded_tensors *tensors; /* recorded_tensors.c */
    struct recorded_tenants *tenants; /* recorded_tenants.c */
};

struct recorded_comm {
    uint64_t low, high;
    int64_t size;
    struct {
        size_t process;
        int device;
        bool known;
    } * members; /* by rank */
    size_t known;
};

struct recorded_job {
    struct job *out;
    struct plan *plan;   /* that of `out`, until host_form takes it */
    struct arena *arena; /* the plan's */
    struct diag *diag;
    const struct recorded_options *options;
    bool by_tensors; /* tensors may have buffers of their own (recorded_tenants.c) */
    bool folded;     /* some steps are written once */
    struct recorded_process *processes;
    size_t process_count;
    struct recorded_comm *comms;
    size_t comm_count, comm_cap;
    bool assumes_extents; /* of kernels' memory */
    size_t opaque_launches, strange_accesses, struct_launches;
    size_t failed_calls;   /* of NCCL */
    size_t lock_orders;    /* of threads, that another run may have the other way round */
    size_t waiting_locks;  /* under which a thread waits for the device, or another thread */
    size_t orders_in_time; /* of threads, by calls that may give up in another run */
    size_t unordered_uses; /* by two threads, without an order that was seen */
    size_t awaited_values; /* places in memory where streams wait for a value */
    size_t ready_answers,
        not_ready_answers; /* of queries: yes and no, where another run may have the other */
    size_t loops;          /* of queries that end with a yes */
    bool unseen; /* libraries or calls that the recorder does not see, or does not model */
    struct {
        const char *name;
        size_t calls;
    } * unmodelled; /* of which a recording says no more than that they were called */
    size_t unmodelled_count, unmodelled_cap;
    bool shares_room;     /* operations of several communicators may be on a device at once */
    size_t graph_blocks;  /* allocations of graphs */
    size_t coarse_copies; /* of which the gaps between rows count as memory that they access */
    int64_t begin_ns;     /* the first call, by the time of day */
    bool timed;           /* some operation of a device has a measured time */
    size_t pushes, untimed_pushes; /* operations of devices; those without a time */
    size_t untimed_graphs;         /* launches whose nodes are not those of the capture */
    int64_t contradiction_ns;      /* by which times of devices and calls disagree at most */
    int64_t *latencies;            /* from the end of a push to the begin of its work */
    size_t latency_count, latency_cap;
    struct names buffers; /* plan->buffers by name */
    size_t lists;         /* of pieces that operations access, so far */
    size_t buffer_cap, spec_cap, graph_cap;
};

/* ---- recorded_calls.c ------------------------------------------------------------------------- */

enum status recorded_walk(struct recorded_job *job, struct recorded_process *process);

/* The times that the devices measured. */
bool recorded_times_read(struct recorded_job *job, struct recorded_process *process);
/* All that a call had a device do. */
size_t recorded_times_find(const struct recorded_process *process, uint64_t push,
                           const struct recorded_span **out);

/* ---- recorded_clock.c: the walk follows the devices, and the plan's threads the host ---------- */

/* True if the work of a stream so far ends before later work of another one of its device begins: by the order of the
   default stream, or because they are one. */
bool recorded_comes_before(const struct recorded_stream *other,
                           const struct recorded_stream *stream);

/* The device's work of a push of the walk; the stream's work so far has ended then. */
bool recorded_clock_push(struct recorded_job *job, const struct recorded_process *process,
                         uint64_t push, struct recorded_stream *stream, struct recorded_op *op);
/* Measured times are wrong by so much, at least; <= 0: this is right. */
void recorded_clock_contradict(struct recorded_job *job, int64_t by_ns);
/* A wait for what is ready then. */
void recorded_clock_sync(struct recorded_job *job, struct recorded_op *op, int64_t ready_ns);
/* When all work of a device's streams so far has ended; `stream`: that of this one, and what its order implies. */
int64_t recorded_clock_ready(const struct recorded_process *process, int device,
                             const struct recorded_stream *stream);
/* A launch of a graph gives its operations their times. */
void recorded_clock_graph(struct recorded_job *job, const struct recorded_process *process,
                          uint64_t push, struct recorded_graph *graph);
/* The time of an operation as the plan has it. */
int64_t recorded_clock_time(const struct recorded_op *op);
/* CPU time of a call before its push takes effect. */
int64_t recorded_clock_host_time(const struct recorded_op *op);
int64_t recorded_clock_latency(struct recorded_job *job);
/* Operations of several ranks get the least time over them. */
bool recorded_clock_meet(struct recorded_job *job);
/* Warns of times that are missing or contradict the calls. */
void recorded_clock_warn(const struct recorded_job *job);

/* ---- recorded_memory.c ------------------------------------------------------------------------ */

bool recorded_memory_begin(struct recorded_job *job, struct recorded_process *process,
                           uint64_t address, uint64_t bytes, enum recording_memory memory,
                           int device, size_t *out);
/* Bytes of a call as a plan counts them: no memory is larger. */
int64_t recorded_bytes(uint64_t bytes);
/* The live allocation that an address lies in; SIZE_MAX: none. */
size_t recorded_memory_find(const struct recorded_process *process, uint64_t address);
void recorded_memory_end(struct recorded_process *process, size_t block);
/* Counts an access to memory of the device that no call was seen to allocate; other accesses are not counted. */
void recorded_memory_strange(struct recorded_job *job, const struct recorded_process *process,
                             uint64_t address);
/* `bytes` 0: to where something else begins. Memory that is no allocation is left out. */
bool recorded_memory_access(struct recorded_job *job, struct recorded_process *process,
                            struct recorded_op *op, uint64_t address, uint64_t bytes, bool write,
                            int part);
/* All of a block, which ends. */
bool recorded_memory_overwrite(struct recorded_job *job, struct recorded_process *process,
                               struct recorded_op *op, size_t block);
/* An access to the block that an operation has already. */
bool recorded_memory_note(struct recorded_job *job, struct recorded_block *block,
                          const struct recorded_access *access);
bool recorded_memory_cut(struct recorded_job *job, struct recorded_process *process);
/* The pieces of all accesses of this part and kind. */
bool recorded_memory_list(struct recorded_job *job, const struct recorded_process *process,
                          const struct recorded_op *op, int rank, bool write, int part,
                          struct index_list *out);
/* The buffer that a piece of a block is; -1: no memory. */
int recorded_memory_piece(struct recorded_job *job, struct recorded_block *block, size_t piece);
/* The rank of a process that stands for a device. */
int recorded_rank(const struct recorded_process *process, int device);

/* ---- recorded_comms.c ------------------------------------------------------------------------- */

bool recorded_comm_add(struct recorded_job *job, size_t process, int device,
                       const struct recording_item *item);
const struct recorded_comm_handle *recorded_comm_find(const struct recorded_process *process,
                                                      uint64_t handle);
bool recorded_comm_write(struct recorded_job *job);
/* The rank of the plan that a member is; -1: it was not recorded. */
int recorded_comm_rank(const struct recorded_job *job, int comm, int member);
/* An operation of an item COLLECTIVE or MESSAGE, with its accesses. */
bool recorded_comm_op(struct recorded_job *job, struct recorded_process *process,
                      const struct recording_item *item, struct recorded_op *out);

/* ---- recorded_order.c ------------------------------------------------------------------------- */

/* The plan says that something which was not seen may order threads. */
bool recorded_order_say(struct recorded_job *job);

/* ---- recorded_order.c: locks ------------------------------------------------------------------- */

/* The locks of a process that the plan needs get their names in it; `homes`: per thread its rank, -1: it is not in the plan. */
bool recorded_locks_name(struct recorded_job *job, struct recorded_process *process,
                         const int *homes);
bool recorded_locks_say(struct recorded_job *job);

/* ---- recorded_values.c ------------------------------------------------------------------------ */

/* Pairs each wait of a process for a value with the write that ends it. */
bool recorded_values_pair(struct recorded_job *job, struct recorded_process *process);
bool recorded_values_say(struct recorded_job *job);

/* ---- recorded_fold.c ------------------------------------------------------------------------------ */

/* Steps that do the same become a repeat, and `about` says which. What has no effect is left out where there are such steps, or
   `always`. *folds: there are such steps. */
bool recorded_fold(struct plan *plan, bool always, bool *folds);

/* ---- recorded_queries.c ----------------------------------------------------------------------- */

/* The process asks nothing more. */
void recorded_queries_end(struct recorded_job *job, const struct recorded_process *process);
/* The plan says how many queries could have been answered otherwise. */
bool recorded_queries_say(struct recorded_job *job);

/* ---- recorded_form.c -------------------------------------------------------------------------- */

bool recorded_write(struct recorded_job *job);

/* ---- the walk ----------------------------------------------------------------------------------- */

struct walk {
    struct recorded_job *job;
    struct recorded_process *process;
    struct recorded_thread *thread;
    size_t number; /* of the thread */
    const struct recording_item *item;
};

/* ---- recorded_calls.c ------------------------------------------------------------------------- */

/* When the item's call was over. */
int64_t walk_end_ns(const struct walk *walk);
/* An operation of the thread, on its device. */
struct recorded_op walk_op(const struct walk *walk, enum op_kind kind);
/* To the thread; a push to a stream that is captured goes to the graph. `stream` NULL: no push. */
bool walk_add(const struct walk *walk, const struct recorded_stream *stream,
              const struct recorded_op *op);
/* The stream of a handle, which was made before the recording began if it is not known; the default streams are
   those of the thread and its device. Good until the next stream is made. */
struct recorded_stream *walk_stream(const struct walk *walk, uint64_t handle);
/* Later pushes to `stream` come after all that was pushed to `before`. */
bool walk_join(const struct walk *walk, struct recorded_stream *stream,
               struct recorded_stream *before);
bool walk_use_device(struct recorded_process *process, int device);
/* A text by its number; never NULL. */
const struct recorded_text *recorded_calls_find(const struct recorded_process *process,
                                                uint64_t number);
static inline const char *recorded_calls_find_text(const struct recorded_process *process,
                                                   uint64_t number)
{
    return recorded_calls_find(process, number)->text;
}

/* A push to a stream, on its device. */
bool walk_push(const struct walk *walk, struct recorded_stream *stream, struct recorded_op *op);
/* The event of a handle, as of streams. */
struct recorded_event *walk_event(const struct walk *walk, uint64_t handle);
/* Its handle is of no event, or of another one. */
void recorded_event_end(struct recorded_process *process, size_t event);
/* Add a wait of the thread to the plan: for all work that the stream or event has so far. walk_await_event and
   walk_await_stream add none if the thread has waited for the same work before. */
bool walk_sync_stream(const struct walk *walk, struct recorded_stream *stream);
bool walk_await_event(const struct walk *walk, struct recorded_event *event);
bool walk_await_stream(const struct walk *walk, struct recorded_stream *stream);
bool walk_sync_device(const struct walk *walk, int device);
bool walk_is_legacy(const struct recorded_stream *stream);
/* The stream of a device that has its copies with other devices which wait for all work of both. Good until the next
   stream is made. */
struct recorded_stream *walk_peer_stream(const struct walk *walk, int device);

/* The walk's item is a call that a plan has no words for, `name` of the arena or for good. */
bool walk_unmodelled(const struct walk *walk, const char *name);

/* ---- recorded_order.c: what happens before what --------------------------------------------------- */

bool walk_order_begin(struct recorded_job *job, struct recorded_process *process);
/* The thread goes on after the first `count` items of another one; it has observed what that one had observed by then. Of a
   thread that relays, `add` gets all that this thread learns by it of the others. */
typedef bool walk_add_after(const struct walk *walk, const struct recorded_followed *order);
bool walk_order_follow(const struct walk *walk, const struct recorded_followed *order,
                       walk_add_after *add);
bool walk_order_merge(const struct walk *walk, size_t other, uint64_t count);
/* True if several threads let others go on by this object, so that they may do so in another order than in the run. */
bool walk_order_has_several(const struct walk *walk, uint64_t object);
/* True if the lock excludes, and its order is that of luck: no condition belongs to it. */
bool walk_order_excludes(const struct walk *walk, uint64_t lock);
/* The thread signals a condition of the lock. */
bool walk_order_signal(const struct walk *walk, uint64_t lock);
/* The item says that the thread takes a lock of conditions behind another one: *out is false if it would have waited for that
   one, had it come earlier. */
bool walk_order_find_luck(const struct walk *walk, bool *out);
/* The item begins a host function, which comes behind the call that pushed it. */
bool walk_order_host(const struct walk *walk);
/* The thread uses an object whose last use is `before`: counts uses that nothing orders, and that no lock keeps apart. */
void walk_order_use(const struct walk *walk, const struct recorded_use *before);
/* The item takes a lock that excludes, or gives it back. */
void walk_order_lock(const struct walk *walk, uint64_t lock, bool takes);
/* A use by the item. */
struct recorded_use walk_order_here(const struct walk *walk);
void walk_order_accesses(const struct walk *walk, const struct recorded_op *op);
/* The item, a query with the answer yes, asks for what this use recorded: where a lock let the thread come behind that, it does so
   in every run with this answer, and awaits it. */
bool walk_order_follow_record(const struct walk *walk, const struct recorded_use *record);
/* True if the thread is seen to come after that use. */
bool walk_order_is_behind(const struct walk *walk, const struct recorded_use *use);

/* A push or a record: the stream's frontier gets what the legacy stream's order puts in front of it. */
bool walk_frontier_push(const struct walk *walk, struct recorded_stream *stream);
/* The event is recorded in the stream; the stream waits for the event. */
bool walk_frontier_record(const struct walk *walk, struct recorded_event *event,
                          struct recorded_stream *stream);
bool walk_frontier_wait(const struct walk *walk, struct recorded_stream *stream,
                        const struct recorded_event *event);
/* True if all later work of the stream comes behind the first pushes of another one. */
bool walk_frontier_includes(const struct recorded_stream *stream, size_t other, uint64_t pushes);

/* The thread has observed that all work of the stream, or the record, is complete. */
bool walk_order_observe_stream(const struct walk *walk, struct recorded_stream *stream,
                               bool by_wait);
bool walk_order_observe_event(const struct walk *walk, struct recorded_event *event, bool by_wait);
/* True if the thread has observed that the first pushes of the stream, or the event's last record, are complete; `by_wait`:
   by waits alone. */
bool walk_has_observed(const struct walk *walk, const struct recorded_stream *stream,
                       uint64_t pushes, bool by_wait);
bool walk_has_observed_record(const struct walk *walk, const struct recorded_event *event,
                              bool by_wait);

/* ---- recorded_queries.c ------------------------------------------------------------------------- */

/* The thread has pushed to the stream; it has recorded the event there. */
bool walk_count_push(const struct walk *walk, struct recorded_stream *stream);
bool walk_note_record(const struct walk *walk, struct recorded_event *event,
                      struct recorded_stream *stream);
/* As walk_order_observe_stream and _event; a wait also ends a loop of queries. Of a device: of all its streams, by a wait. */
bool walk_observe_stream(const struct walk *walk, struct recorded_stream *stream, bool by_wait);
bool walk_observe_event(const struct walk *walk, struct recorded_event *event, bool by_wait);
bool walk_observe_device(const struct walk *walk, int device);
bool walk_take_query_stream(const struct walk *walk);
bool walk_take_query_event(const struct walk *walk);

/* ---- recorded_copies.c: the walk's item, of each of these kinds -------------------------------- */

bool walk_take_reset(const struct walk *walk);
bool walk_take_alloc(const struct walk *walk);
bool walk_take_alloc_async(const struct walk *walk);
bool walk_take_free(const struct walk *walk);
bool walk_take_free_async(const struct walk *walk);
bool walk_take_copy(const struct walk *walk);
bool walk_take_copy_2d(const struct walk *walk);
bool walk_take_copy_batch(const struct walk *walk);
bool walk_take_fill(const struct walk *walk);
bool walk_take_touch(const struct walk *walk);

/* Its memory is given back: what was done to it without an order is a race. `waits`: for the device, first. */
bool walk_free_block(const struct walk *walk, size_t block, bool waits);

/* ---- recorded_memory.c: the walk's item, of each of these kinds --------------------------------- */

bool walk_take_physical(const struct walk *walk);
bool walk_take_physical_kept(const struct walk *walk);
bool walk_take_physical_end(const struct walk *walk);
bool walk_take_map(const struct walk *walk);
bool walk_take_unmap(const struct walk *walk);

/* ---- recorded_tenants.c ----------------------------------------------------------------------- */

/* *out: the block of the new tensor; SIZE_MAX: it has none of its own. */
bool walk_tenant_begin(const struct walk *walk, uint64_t address, uint64_t bytes, size_t *out);
/* The tensor is gone; then, maybe later, its memory is free for others. SIZE_MAX: nothing happens. */
bool walk_tenant_end(const struct walk *walk, size_t block);
void recorded_tenant_free(struct recorded_process *process, size_t block);
/* An access to memory that tensors have, but not through the one that has it now. */
bool recorded_tenant_loose(struct recorded_job *job, struct recorded_process *process,
                           uint64_t from, uint64_t to);
/* `stream` NULL: no stream does it. */
bool walk_tenant_accesses(const struct walk *walk, const struct recorded_stream *stream,
                          const struct recorded_op *op);
/* Accesses to tensors that have no buffer of their own become those of the block around. */
bool recorded_tenants_settle(struct recorded_job *job, struct recorded_process *process);

/* ---- recorded_tensors.c ----------------------------------------------------------------------- */

/* The walk's item, of any kind, before what else it means. */
bool walk_take_tensors(const struct walk *walk);
/* The block of the live tensor that has all these bytes; SIZE_MAX: none has one. */
size_t recorded_tensors_find(const struct recorded_process *process, uint64_t address,
                             uint64_t bytes);
/* What a rank's memory is for when it is most: plan->memory. */
bool recorded_tensors_write(struct recorded_job *job, const struct recorded_process *process);

/* ---- recorded_values.c: the walk's item, of this kind ------------------------------------------- */

bool walk_take_value(const struct walk *walk, bool writes);

/* ---- recorded_comms.c: the walk's item, of each of these kinds -------------------------------- */

bool walk_take_comm(const struct walk *walk);
bool walk_take_comm_end(const struct walk *walk);
bool walk_take_exchange(const struct walk *walk);
bool walk_take_group(const struct walk *walk);
bool walk_take_group_end(const struct walk *walk);

#endif
