/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h - inside the host device: as many threads as streams, one lock a world.
 *
 *     device_push --> [entry] -> [entry] -> ... --> a thread of the device: admit, perform, finish
 *
 * One mutex protects everything here, except what an operation computes: sections under it are
 * short, an abort can reach every thread, and there is no lock order to get wrong. What is waited for:
 *
 *     server->work      a stream of the device is ready, or the device closes (an idle thread waits)
 *     stream->waiters   `finished` has come so far, or the stream failed (any thread waits)
 *     comm->waiters     the turn of an operation of this rank on the communicator has come
 *     channel->changed  a collective of the communicator made progress, any rank
 *     slots->waiters    so many residency slots are free
 *
 * Threads that wait for a count are woken one by one, each when its own count has come: N threads that wait on one
 * stream are N wakes, not N * N. Failing a stream wakes the thread that serves it, wherever that sleeps, and all that
 * wait for the stream; an abort fails all streams.
 *
 * A thread that is woken costs more than most operations here. So a stream wakes others only when it has come as far as
 * one of them needs. Any thread of the device serves any of its streams that is ready: not empty, its head no wait for a
 * stream of the device that has not come so far, and served by no other thread.
 *
 *     push --> ready? --> does a thread look? yes: it will find it
 *                                             no:  call one ------.
 *                                                                 v
 *     finish an entry --> look: the same stream, then any other one that is ready
 *                           |-- found:   more are ready, and no thread looks? call one; serve it
 *                           `-- nothing: give way (cores.h), go on looking for SPIN_NS, then sleep until called
 *
 * So work that takes no time stays on one thread, which hands events from stream to stream and is not woken for each
 * push, and work that does is spread over as many as there are streams: a ready stream never lacks a thread. A wait with
 * nothing behind it wakes no thread before the next push, query or sync. What takes no time in a stream that is idle is done
 * by the thread that pushes it; a record and a wait for nothing are no entries where no stamp is asked for.
 * A small collective needs no thread, either: it arrives as soon as it is the head of its stream, and the last one to arrive
 * moves the data and takes all of them out of their streams (host_collective.c).
 * Except where stated otherwise the functions of this header are called with the lock held.
 */
#ifndef SWSIM_HOST_H
#define SWSIM_HOST_H

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>

#include "gpu/device/cores.h"
#include "gpu/device/device_impl.h"

enum { WAIT_TEXT = 320 };

/* A condition whose waiting threads are to be woken as soon as the lock is free. */
struct host_ring {
    pthread_cond_t *condition;
    struct host_ring *next; /* in world->rings, if it is `rung` */
    bool rung;
};

/* Threads that wait until something has come to a count of their own, the least count first. */
struct host_waiters {
    struct host_waiter *first, *last;
};

/* One of them, and its condition. The world keeps it for the next wait: a thread may still signal it. */
struct host_waiter {
    struct host_waiter *next, *before;
    struct host_waiters *list; /* NULL: it has been called */
    uint64_t count;
    pthread_cond_t condition;
    struct host_ring ring; /* of `condition` */
};

struct host_link;
struct host_comm_channel;
struct meeting;

struct host_world {
    struct device_world base;
    struct host_link *link; /* to the other processes of the world; NULL: there are none */
    pthread_mutex_t lock;
    struct host_ring *rings;   /* conditions to be signalled */
    struct host_server *calls; /* threads to be woken */
    struct host_waiter *spare; /* waiters to be used again */
    atomic_int waking;         /* threads that wake others, without the lock */
    bool spins;                /* a thread is in world_spin though no core is free for it */
    pthread_condattr_t clock;  /* CLOCK_MONOTONIC, for all conditions */
    struct failure failure;    /* the first of any rank, or the abort */
    bool aborted;
    struct host_device **devices; /* [ranks], NULL where closed */
    struct host_slots *slots;     /* [ranks]: at the first rank of each device */
    struct host_comm_channel *channels;
    struct host_stream *met; /* whose head, a collective that no thread serves, has its data */
    bool settles;            /* a thread takes these heads out */
    int settled;             /* so many of them while it has had the lock */
};

/* The residency slots of one device, which several ranks may share. */
struct host_slots {
    int free;
    struct host_waiters waiters; /* by the number they need */
};

struct host_device {
    struct device base;
    struct host_world *world;
    struct host_stream *streams; /* open ones, and closed ones that have failed */
    struct host_stream *closed;  /* to be opened again: events may name them */
    struct host_comm *comms;
    struct injection *injections;
    int64_t pushes;
    struct host_slots *slots;
    struct host_server *servers; /* at least as many as streams are open */
    int server_count, stream_count;
    int looking;        /* threads that look for a stream that is ready, or are called to */
    atomic_uint wanted; /* there has been one since: 0 or 1 */
    struct spin spin;
    struct way way; /* of its threads, to those that push */
    bool closing;
};

/* A thread that serves streams. */
struct host_server {
    struct host_server *next;
    struct host_device *device;
    pthread_t thread;
    pthread_cond_t work;
    bool asleep;                   /* and not called */
    struct host_server *next_call; /* in world->calls */
};

struct host_stream {
    struct device_stream base;
    struct host_stream *next; /* stays when it closes: a thread may be going through the list */
    struct host_stream *next_closed;
    struct host_stream *next_met; /* in world->met */
    struct host_device *device;
    struct host_world *world;
    struct entry *head, *tail; /* the head is the one at work; it leaves when it has finished */
    uint64_t pushed; /* a count since it was opened for the first time; so are the two below */
    _Atomic uint64_t finished; /* read without the lock, too: event_is_over */
    uint64_t earlier; /* of those pushed, and finished, before it was opened for the last time */
    uint64_t goal; /* the least count that a thread or a stream waits for; UINT64_MAX: none does */
    bool served;   /* a thread has its head at work */
    struct host_waiter
        *sleeper; /* that thread, while it sleeps until something else has come so far; or NULL */
    struct entry *spare; /* entries to be used again */
    size_t spare_count;
    struct failure failure;
    atomic_bool stop; /* failure, for kernels that compute without the lock */
    char *last_words; /* what it waited for when the world was aborted; NULL: for nothing */
    bool closing;
    struct host_waiters waiters; /* for `finished` */
};

/* "The first `count` operations of `stream`"; stream NULL: nothing. */
struct place {
    struct host_stream *stream;
    uint64_t count;
};

/* The place of its last record. Written with the lock held; who reads it without finds the version as it was, and even. */
struct host_event {
    struct device_event base;
    atomic_uint version;
    struct host_stream *_Atomic stream;
    _Atomic uint64_t count;
};

struct host_buffer {
    struct device_buffer base;
    int64_t offset; /* where other processes find it; -1: nowhere */
};

/* A rank's handle of a communicator. */
struct host_comm {
    struct device_comm base;
    struct host_comm *next;
    struct host_comm_channel *channel;
    uint64_t issued, done;       /* turns: operations pushed, finished */
    uint64_t gone;               /* operations that have left their FIFO, finished or dropped */
    bool broken;                 /* an operation failed: no later one can have its turn */
    struct host_waiters waiters; /* for `done` */
};

/* The state of an entry, for device_world_explain. */
enum phase { PHASE_QUEUED, PHASE_TURN, PHASE_SLOTS, PHASE_EVENT, PHASE_PEERS, PHASE_RUNNING };

/* One send or receive of a group that has started. */
struct host_part {
    struct host_part *next;    /* in channel->unmatched */
    struct host_part *partner; /* once matched, until the data has moved */
    struct entry *entry;       /* NULL: of another process */
    const struct device_p2p *what;
    int from, to; /* ranks */
    uint64_t id;  /* a send to or from another process: its number there; 0: both are here */
};

/* A member's arrival at a meeting. */
struct presence {
    struct entry *entry; /* NULL: of another process */
    const struct device_op *op;
    int rank;
};

/* The contribution of another process's rank to a communicator: its arrival at a meeting, or a send. It
   looks like one of ours, with buffers that are mapped here. */
struct guest {
    struct presence presence;
    struct host_part part;
    struct device_op op;
    struct device_p2p what;
    struct device_buffer send, recv;
    char *tag, *label;
    bool staged; /* what it gets goes to memory of its user's own */
    bool kept;   /* and its block for itself is there already */
    bool sits;   /* it is not freed, but used again: host_desk.c */
};

/* One pushed operation. */
struct entry {
    struct entry *next;
    struct host_stream *stream;
    struct device_op op;
    struct stamp *stamp;
    int64_t number;    /* -1: the device's next, when it goes into the FIFO */
    int64_t pushed_ns; /* 0: nothing depends on it */
    int64_t begun_ns;  /* a wait: its start; 0: it has not begun, or its start says when */
    enum phase phase;
    enum status injected;
    struct place awaited;    /* WAIT: the snapshot */
    uint64_t turn;           /* COLLECTIVE, GROUP */
    struct meeting *meeting; /* COLLECTIVE */
    struct presence presence;
    bool meets;              /* COLLECTIVE: it has arrived, and no thread serves it */
    size_t unfinished;       /* GROUP: parts whose data has not moved */
    size_t moving;           /* GROUP: parts whose data is moving right now */
    struct host_part *parts; /* GROUP */
    struct device_p2p *copies;
};

/* ---- device_host.c --------------------------------------------------------------------------- */

/* Fail all streams of all ranks that are here. With the lock held. */
void world_fail_all(struct host_world *world, const char *why);

/* ---- host_wait.c ----------------------------------------------------------------------------- */

/* Give the lock back, and wake those that are called and rung for: woken while it is held they would wait again. */
void world_unlock_and_wake(struct host_world *world);
static inline void world_unlock(struct host_world *world)
{
    if (world->rings || world->calls)
        world_unlock_and_wake(world);
    else
        pthread_mutex_unlock(&world->lock);
}
/* Wake all that wait on its condition, when the lock is given back. */
void world_ring(struct host_world *world, struct host_ring *ring);
/* Until no thread uses a condition outside the lock: before one is destroyed that is rung for. With or without the lock. */
void world_settle(struct host_world *world);

/* Wait on a condition, in a loop that looks again. */
void world_wait(struct host_world *world, pthread_cond_t *condition);
/* Wait until `list` has come to `count`, in a loop that looks again; false: the deadline is over. Meanwhile *me, if not NULL, is
   the waiter, whose ring wakes it early. */
bool world_await(struct host_world *world, struct host_waiters *list, uint64_t count,
                 int64_t deadline_ns, struct host_waiter **me);
/* Wake those whose count has come. UINT64_MAX: all. */
void world_reach(struct host_world *world, struct host_waiters *list, uint64_t reached);
/* Wake those that can each have what they wait for out of `amount`, who need least first. */
void world_offer(struct host_world *world, struct host_waiters *list, uint64_t amount);
/* Free the waiters of a world that closes. */
void world_free_waiters(struct host_world *world);
/* Look at `word` without the lock, until it is not `seen` any more, before a sleep: a wake takes longer. Where no core is free
   for it, one thread at a time, and for SPIN_NS. */
void world_spin(struct host_world *world, struct spin *spin, const atomic_uint *word,
                unsigned seen);
enum status world_init_condition(struct host_world *world, pthread_cond_t *condition,
                                 struct diag *diag);

/* ---- host_stream.c --------------------------------------------------------------------------- */

enum status host_stream_open(struct device *device, const char *name, struct device_stream **out,
                             struct diag *diag);      /* without the lock */
void host_stream_close(struct device_stream *stream); /* without the lock */
void host_stream_free(struct host_stream *stream);    /* a closed one */
enum status host_push(struct device_stream *stream, const struct device_op *op, struct stamp *stamp,
                      struct diag *diag); /* without the lock */

/* An operation on its way: made with or without the lock (NULL: no memory), put into the FIFO with it. Until that
   has succeeded it is the caller's to free. */
struct entry *entry_new(struct host_stream *stream, const struct device_op *op,
                        struct stamp *stamp);
enum status entry_push(struct entry *entry, struct diag *diag);
void entry_free(struct entry *entry); /* NULL is allowed */

/* Wait until the stream has finished `count` operations or fails; false at the deadline. The caller looks again: it may
   be woken before. */
bool stream_wait(struct host_stream *stream, uint64_t count, int64_t deadline_ns);
/* Called by the thread that serves the stream: world_await, ended early by stream_rouse or a failure of the stream. */
void stream_sleep(struct host_stream *stream, struct host_waiters *list, uint64_t count,
                  int64_t deadline_ns);
void stream_rouse(struct host_stream *stream);
/* Take out the heads that have met, and those behind them that meet then. */
void stream_settle(struct host_world *world);
/* Do what its head says, and take it out. The caller, a thread of the device that has set `served`, then looks. */
void stream_serve(struct host_stream *stream);

static inline struct place event_place(const struct host_event *event)
{
    return (struct place){atomic_load_explicit(&event->stream, memory_order_acquire),
                          atomic_load_explicit(&event->count, memory_order_acquire)};
}
static inline void event_set_place(struct host_event *event, struct host_stream *stream,
                                   uint64_t count)
{
    const unsigned version = atomic_load_explicit(&event->version, memory_order_relaxed);
    atomic_store_explicit(&event->version, version + 1, memory_order_relaxed);
    atomic_store_explicit(&event->stream, stream, memory_order_release);
    atomic_store_explicit(&event->count, count, memory_order_release);
    atomic_store_explicit(&event->version, version + 2, memory_order_release);
}
static inline bool place_is_reached(struct place place)
{
    return !place.stream ||
           atomic_load_explicit(&place.stream->finished, memory_order_acquire) >= place.count;
}
/* True if its place is known to be reached: a look without the lock. False says nothing. */
static inline bool event_is_over(const struct host_event *event)
{
    const unsigned version = atomic_load_explicit(&event->version, memory_order_acquire);
    const struct place place = event_place(event);
    return version % 2 == 0 &&
           atomic_load_explicit(&event->version, memory_order_relaxed) == version &&
           place_is_reached(place);
}

/* Wait until the place is reached. */
enum status host_await(struct place place, int64_t deadline_ns, struct diag *diag);
enum status stream_report(const struct host_stream *stream, struct diag *diag);

/* Fail a stream, unless it has failed already. */
void stream_fail(struct host_stream *stream, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline bool stream_failed(const struct host_stream *stream)
{
    return stream->failure.status != STATUS_OK;
}

/* An operation has visibly started: its turn to start is over. */
void entry_started(struct entry *entry);

/* Before somebody looks how far the stream is: it is as far as it is without a thread. */
void stream_look(struct host_stream *stream);
/* The work or wait of the stream, in words; false when it is idle. */
bool stream_explain(const struct host_stream *stream, char out[WAIT_TEXT]);

/* ---- host_server.c ---------------------------------------------------------------------------- */

/* The entries of its FIFO are to be done now. */
void stream_kick(struct host_stream *stream);
/* True if it is a wait, for another stream of the device, that has nothing to do yet. */
bool entry_waits(const struct entry *entry);
/* One thread more for the streams of a device. */
enum status host_server_start(struct host_device *device, struct diag *diag);
/* The threads of a device all of whose streams are closed end. Without the lock. */
void host_servers_join(struct host_device *device);
void host_servers_free(struct host_device *device);

/* ---- host_graph.c: without the lock ---------------------------------------------------------- */

enum status host_graph_begin(struct device *device, struct device_stream *const *streams,
                             size_t count, struct diag *diag);
enum status host_graph_end(struct device *device, struct device_graph **out, struct diag *diag);
enum status host_graph_arm(struct device_graph *graph, struct diag *diag);
enum status host_graph_launch(struct device_graph *graph, struct stamp *const *stamps,
                              struct diag *diag);
void host_graph_close(struct device_graph *graph);
/* Keep what is pushed to a stream that is captured. */
enum status host_graph_keep(struct host_stream *stream, const struct device_op *op,
                            struct stamp *stamp, struct diag *diag);

/* ---- host_comm.c ----------------------------------------------------------------------------- */

enum status host_comm_open(struct device *device, const char *name, const int *members, int count,
                           struct device_comm **out, struct diag *diag); /* without the lock */
void host_comm_close(struct device_comm *comm);                          /* without the lock */
bool host_comm_takes_own(const struct device_comm *comm, size_t bytes);

/* Give a collective or group its turn and its position; may fail for memory, then nothing happened.
 */
enum status comm_issue(struct entry *entry, struct diag *diag);
/* Do the work of a collective or group that has its turn; returns when it has finished or failed.
 */
void comm_perform_collective(struct entry *entry);
/* Look whether another member has come to the collective at the head of a stream. */
void comm_hear(const struct entry *entry);
/* True if the head of a stream, a small collective, can meet without a thread of its own. */
bool comm_meets_at_once(const struct entry *entry);
/* It arrives. Of one whose members are all there the data moves, and stream_settle has something to do. */
void comm_meet(struct entry *entry);
/* It leaves: its data is there, or its stream has failed. */
void comm_part(struct entry *entry);
void comm_perform_group(struct entry *entry);
/* True if it is so large that each member takes what it gets, if it can, as soon as it has heard that all are there. */
bool comm_may_take(const struct host_comm_channel *channel, const struct device_collective *what);
/* True if the member moves its block for itself, so that the others leave it alone. */
bool comm_keeps_block(const struct device_collective *what);
/* An operation has left its FIFO. Finished: the next one of this rank has its turn; else none ever.
 */
void comm_retire(struct host_comm *comm, bool finished);
/* The ranks a started operation waits for: "rank 1, 2". */
void comm_explain(const struct entry *entry, char *out, size_t size);
/* Wake all threads that wait for a communicator of this device. */
void comm_wake_all(struct host_device *device);

/* Messages of the other processes about a communicator; `name` is that of a channel in the link. Each process
   keeps its own copy of the shared facts: arrivals at each meeting, waiting sends. */
void comm_forget_channels(struct host_world *world); /* at the end of the world */
uint64_t comm_channel_name(const struct host_comm_channel *channel);
const int *comm_channel_members(const struct host_comm_channel *channel, int *count);
/* The claim of a channel: a number in common memory, which tells the last position whose data a process has undertaken to
   move (host_collective.c); 0: the process that has it is about to end. Where it is for all; 0: nowhere. */
int64_t comm_claim(const struct host_comm_channel *channel);
bool comm_has_claim(const struct host_comm_channel *channel);
void comm_set_claim(struct host_comm_channel *channel, _Atomic uint64_t *claim, int64_t at);
/* Its members are in several processes. */
void comm_set_near(struct host_comm_channel *channel);
/* The place of a rank among the members, or -1. */
int comm_place_of(const struct host_comm_channel *channel, int rank);
struct host_comm_channel *comm_channel_find(struct host_world *world, uint64_t name);
/* A member of another process has its data for small collectives there from now on. False: it has told so before, or there
   is no memory. */
bool desk_introduce(struct host_comm_channel *channel, int rank, void *desk);
/* A member came to a position; takes the guest, which is freed by guest_free. */
void comm_guest_arrives(struct host_comm_channel *channel, uint64_t position, struct guest *guest);
void comm_guest_leaves(struct host_comm_channel *channel, uint64_t position, int rank,
                       const struct failure *failure);
/* A member has what it gets, where each takes its own. */
void comm_guest_took(struct host_comm_channel *channel, uint64_t position, int rank);
/* The data of a position has moved. */
void comm_delivered(struct host_comm_channel *channel, uint64_t position);
/* A send of another process starts (takes the guest), or is taken back. */
void comm_guest_sends(struct host_comm_channel *channel, struct guest *guest);
void comm_guest_withdraws(struct host_comm_channel *channel, int rank, uint64_t id);
/* A send to another process was received, or did not fit (`failure`, else NULL). */
void comm_sent(struct host_comm_channel *channel, uint64_t id, const struct failure *failure);

/* ---- host_link.c ----------------------------------------------------------------------------- */

/* Between the processes of a world, through its rendezvous. Open and close without the lock. */
enum status link_open(struct host_world *world, struct diag *diag);
void link_close(struct host_link *link);
/* See whether all members of a channel share memory, and give it its claim if they do and its first member is here. */
void link_settle_channel(struct host_link *link, struct host_comm_channel *channel);
/* A channel has been made: what was said of it before is heard now. */
void link_introduce(struct host_link *link, struct host_comm_channel *channel);
uint64_t link_next_id(struct host_link *link);
/* Memory of this process that the others can map. */
enum status link_alloc(struct host_link *link, struct host_buffer *buffer, struct diag *diag);
void link_free(struct host_link *link, struct host_buffer *buffer);
/* Send to the other processes; a failed send fails the stream of the entry, or the run is over anyway. */
void link_arrive(struct host_link *link, const struct host_comm_channel *channel, uint64_t position,
                 const struct entry *entry);
void link_leave(struct host_link *link, const struct host_comm_channel *channel, uint64_t position,
                int rank, const struct failure *failure);
void link_delivered(struct host_link *link, const struct host_comm_channel *channel,
                    uint64_t position);
void link_took(struct host_link *link, const struct host_comm_channel *channel, uint64_t position,
               int rank);
void link_send(struct host_link *link, const struct host_comm_channel *channel,
               const struct host_part *part);
void link_withdraw(struct host_link *link, const struct host_comm_channel *channel,
                   const struct host_part *part);
void link_received(struct host_link *link, const struct host_comm_channel *channel,
                   const struct host_part *part, const struct failure *failure);
void link_abort(struct host_link *link, const char *why);
/* The world fails here, and those of all other processes. */
void link_fail(struct host_link *link, const char *why);
/* Wait for a message of another process, for link_ring, or until `word`, unless it is NULL, is not `value` any more; hear the
   messages that are there. All give the lock back meanwhile. */
void link_wait(struct host_link *link, struct spin *spin, const atomic_uint *word, unsigned value);
void link_look(struct host_link *link);
/* Its threads in link_wait look again. */
void link_ring(struct host_link *link);
/* Memory for what a member gives to small collectives, which the other members are told of; NULL: the world has failed.
   Closed, the others may still look at it. */
struct desk *link_open_desk(struct host_link *link, const struct host_comm_channel *channel,
                            int rank, int64_t *offset);
void link_close_desk(struct host_link *link, struct desk *desk, int64_t offset);
/* A word that other processes wait for in link_wait has changed. */
void link_rouse(struct host_link *link, const struct host_comm_channel *channel);
/* True if the rank is one of this process. */
bool link_is_here(const struct host_link *link, int rank);
/* True if its buffers have so many bytes to send, and room for so many to receive: it is another process that says where
   they are. */
bool guest_has_bytes(const struct guest *guest, size_t send_bytes, size_t recv_bytes);
void guest_free(struct guest *guest);

/* ---- host_work.c ----------------------------------------------------------------------------- */

/* Compute FILL, GEMM, GATHER, AXPY, DENSE or COPY, on the calling thread, without the lock. Returns early,
   the result then undefined, when *stop becomes true. */
void host_compute(const struct device_op *op, const atomic_bool *stop);
/* sum[i] += x[i] */
void host_add(float *restrict sum, const float *restrict x, size_t count);
/* sum[i] = (0 + x[i]) + y[i] */
void host_sum_two(float *restrict sum, const float *restrict x, const float *restrict y,
                  size_t count);
/* sum[i] = (sum[i] + x[i]) + y[i] */
void host_add_two(float *restrict sum, const float *restrict x, const float *restrict y,
                  size_t count);

#endif
