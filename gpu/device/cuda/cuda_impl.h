/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_impl.h - inside the CUDA device: one rank on one GPU.
 *
 * Several ranks are several processes, which meet through the world's rendezvous: ids of communicators
 * and the news of an abort go that way. Rank r has GPU r modulo their number, and every thread selects it
 * (cuda_enter) before a call that depends on the current device.
 *
 * Streams, copies and kernels are the CUDA runtime's (device_cuda.c, cuda_stream.c), collectives
 * NCCL's (cuda_comm.c). A *marker* is a CUDA event out of a pool, recorded once between leaving the
 * pool and coming back to it; events, syncs and stamps are built on markers. A recorded event holds
 * the marker of its last record, and so does every wait for the event: that is the snapshot rule,
 * independent of when the driver evaluates it.
 *
 * Locks, taken in this order: stream->lock, while an operation is pushed, so that its markers stand
 * directly around it; comm->lock, while NCCL is called for it; world->lock, for all lists, pools
 * and failures, never while CUDA might wait for the device. collect_lock, for the clock and the reading of stamps, is taken
 * before the world's and by no push. Waiting is polling, so that it can end
 * at a deadline or an abort.
 */
#ifndef SWSIM_CUDA_IMPL_H
#define SWSIM_CUDA_IMPL_H

#ifdef HAVE_CUDA

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>

#include "gpu/device/device_impl.h"

/* A communicator that was opened, and how often: its ids have names of their own. */
struct cuda_name {
    struct cuda_name *next;
    int opened;
    char text[];
};

/* Functions of the driver, without their prefix; CUresult as int. NULL: the driver has none. */
struct cuda_driver {
    int (*exchange_mode)(int *mode);
    int (*event_query)(void *event);
    int (*stream_query)(void *stream);
    int (*get_current)(void **context);
    int (*set_current)(void *context);
    int (*device_get)(int *device, int number);
    int (*retain)(void **context, int device);
    bool has_contexts; /* the last four are there */
};

struct cuda_world {
    struct device_world base;
    pthread_mutex_t lock;
    struct failure failure; /* the first, or the abort */
    atomic_bool aborted;
    struct cuda_device *device; /* the one rank that is here, NULL while closed */
    int gpu, gpus;
    void *
        context; /* the driver's, of that GPU, from the first opening of a device on; NULL: cudaSetDevice is used */
    bool shared; /* two ranks of the world have one GPU */
    int number;  /* of this world among those of its rendezvous */
    struct cuda_driver driver;
    struct cuda_name *names;
};

struct marker {
    struct marker *next; /* in the pool */
    cudaEvent_t handle;
    cudaStream_t stream; /* it was recorded in */
    int references;
    bool timed;
};

/* A stamp of a pushed operation that has not yet been seen finished. */
struct cuda_pending {
    struct cuda_pending *next;
    struct stamp *stamp;
    struct cuda_stream *stream;
    struct device_op op; /* for messages; the parts of a group are gone */
    struct marker *start, *end;
};

struct cuda_graph;

/* Device time on the world's clock: cuda_event.c. Guarded by collect_lock. */
struct gpu_clock {
    struct marker *reference; /* times are measured from this one, ... */
    double device_ns;         /* ... which lies so far behind the first tie, ... */
    double world_ns;          /* ... and was then on the world's clock */
    double rate, slew;        /* world time for device time; what is added to make up for a tie */
    double first_ns;          /* world time of the first tie */
    int64_t round_ns;         /* of the shortest round trip so far */
    int64_t next_ns;          /* when the next tie is due */
};

struct cuda_device {
    struct device base;
    struct cuda_world *world;
    struct cuda_stream *streams;
    struct cuda_comm *comms;
    struct cuda_graph *graphs;
    int64_t error_ns;       /* when NCCL's first error was seen; 0: there was none */
    struct nccl *nccl;      /* NULL: not found, or a build without */
    struct marker *pool[2]; /* by `timed` */
    struct cuda_pending *pendings, **pendings_end;
    struct gpu_clock clock;
    struct injection *injections;
    int64_t pushes;
    pthread_mutex_t collect_lock; /* of the clock and of reading stamps; taken before the world's */
    int64_t collections;          /* under it: how many have begun */
    pthread_mutex_t abort_lock;   /* taken first of all locks, by cuda_comm_settle alone */
    pthread_t abort_thread;
    struct cuda_comm *condemned; /* what it aborts */
    bool aborting;               /* the aborting thread exists and is not joined */
    bool stuck;                  /* a thread that ends communicators was left: it uses NCCL */
    bool unfinished;             /* a stream was closed with work that the abort did not end */
    int *stop, *stop_on_device;  /* one mapped number: ends the spin kernels of an aborted run */
    cudaStream_t service;        /* for our own small work */
    cudaMemPool_t
        memory; /* for memory that is wanted in the middle of a run; NULL: there are no pools */
};

enum { STUCK_TEXT = 200 };
struct cuda_stream {
    struct device_stream base;
    struct cuda_stream *next;
    struct cuda_device *device;
    struct cuda_world *world;
    pthread_mutex_t lock;
    cudaStream_t handle;
    bool adopted; /* the program's own, which stays */
    struct failure failure;
    struct marker
        *behind; /* of the last launch it was part of: to be awaited before the next push; NULL */
    bool used;   /* something was pushed since; under the stream's lock */
    int64_t unfinished; /* the last collection that found work of it so; under the collect lock */
    char stuck[STUCK_TEXT]; /* what was unfinished at an abort, or when that was last asked */
};

/* A communicator: of cuda_alone.c, or of cuda_comm.c. */
struct cuda_member {
    struct device_comm base;
    bool alone;
    pthread_mutex_t
        order; /* taken behind a stream's lock, before the communicator's own: operations have the order
                              of their numbers */
};

struct cuda_event {
    struct device_event base;
    struct marker *last;    /* NULL: never recorded */
    struct failure failure; /* of the stream that refused the last record */
};

enum cuda_origin {
    CUDA_OF_RUNTIME,
    CUDA_OF_POOL,
    CUDA_OF_PROGRAM
}; /* who gave memory of the device */
struct cuda_buffer {
    struct device_buffer base;
    enum cuda_origin origin;
};

/* ---- device_cuda.c --------------------------------------------------------------------------- */

/* True if work may be left that no abort ends, as a kernel of the user's that hangs. Then memory that CUDA frees only
   behind all work stays until the process ends. */
bool cuda_never_ends(const struct cuda_device *device);
/* Advice that follows the words of an error: "" where the process can go on. */
const char *cuda_way_out(cudaError_t error);
/* Describe a CUDA error; STATUS_SYSTEM. */
enum status cuda_refused(struct diag *diag, const char *what, cudaError_t error);
/* Report what ended the run, if anything did: an abort, an error of NCCL. */
enum status cuda_world_ended(struct cuda_world *world, struct diag *diag);

/* ---- cuda_memory.c --------------------------------------------------------------------------- */

void cuda_pool_open(struct cuda_device *device);
enum status cuda_alloc(struct device *device, enum device_memory memory, size_t bytes,
                       struct device_buffer **out, struct diag *diag);
enum status cuda_alloc_beside(struct device *device, size_t bytes, struct device_buffer **out,
                              struct diag *diag);
void cuda_free(struct device_buffer *buffer);

/* ---- cuda_stream.c --------------------------------------------------------------------------- */

void *cuda_stream_handle(struct device_stream *stream);
enum status cuda_stream_open(struct device *device, const char *name, struct device_stream **out,
                             struct diag *diag);
void cuda_stream_close(struct device_stream *stream);
enum status cuda_push(struct device_stream *stream, const struct device_op *op, struct stamp *stamp,
                      struct diag *diag);
enum status cuda_stream_sync(struct device_stream *stream, int64_t deadline_ns, struct diag *diag);
enum status cuda_device_sync(struct device *device, int64_t deadline_ns, struct diag *diag);
enum status cuda_collect(struct device *device, struct diag *diag);

/* Fail a stream, unless it has failed already. Takes the world's lock. */
void cuda_stream_fail(struct cuda_stream *stream, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

enum status cuda_stream_check(struct cuda_stream *stream, struct diag *diag);
/* Its own failure, else the world's; STATUS_OK: there is none. Takes the world's lock. */
struct failure cuda_stream_failure(struct cuda_stream *stream);
/* The push gets its number. False: it is the one that shall fail, and the stream has failed. With the world's lock. */
bool cuda_count_locked(struct cuda_stream *stream, const struct device_op *op, struct stamp *stamp);
/* Put an operation into a stream, as it is; not one on an event. */
cudaError_t cuda_issue(struct cuda_stream *stream, const struct device_op *op);
/* Later pushes come after the launch this stream was part of. */
cudaError_t cuda_stream_follow(struct cuda_stream *stream);
void cuda_stream_put_behind(struct cuda_stream *stream, struct marker *launch);

/* ---- cuda_event.c ---------------------------------------------------------------------------- */

enum status cuda_event_open(struct device *device, struct device_event **out, struct diag *diag);
void cuda_event_close(struct device_event *event);
enum status cuda_event_query(struct device_event *event, bool *done, struct diag *diag);
enum status cuda_event_sync(struct device_event *event, int64_t deadline_ns, struct diag *diag);
/* A RECORD or WAIT, which gets its number. */
cudaError_t cuda_event_push(struct cuda_stream *stream, const struct device_op *op,
                            struct stamp *stamp);
/* The event means this marker, which is held for it; means work that never finishes. */
void cuda_event_mean(struct cuda_event *event, struct marker *marker);
void cuda_event_refuse(struct cuda_event *event, struct cuda_stream *stream);
/* The stream waits for the event's last record. */
cudaError_t cuda_event_follow(struct cuda_event *event, struct cuda_stream *stream);

/* ---- cuda_marker.c --------------------------------------------------------------------------- */

/* The device has failed at something that was pushed before: the world's first failure, if it is. */
enum status cuda_device_fail(struct cuda_device *device, const char *what, cudaError_t error,
                             struct diag *diag);
/* A recorded marker, held once; NULL and *error when CUDA refuses. */
struct marker *marker_record(struct cuda_device *device, bool timed, cudaStream_t stream,
                             cudaError_t *error);
/* Likewise; `node`: in a captured stream, and recorded by every launch. */
struct marker *marker_record_in(struct cuda_device *device, bool timed, cudaStream_t stream,
                                bool node, cudaError_t *error);
/* Wait until the marker's work has finished. */
enum status marker_await(struct cuda_device *device, const struct marker *marker,
                         int64_t deadline_ns, const char *what, struct diag *diag);
void marker_release(struct cuda_device *device, struct marker *marker); /* NULL is allowed */
void marker_release_locked(struct cuda_device *device, struct marker *marker);
/* Destroy what the pools and the unfinished stamps hold. */
void markers_free(struct cuda_device *device);

/* ---- cuda_event.c: the clock ---------------------------------------------------------------------------- */

/* Tie the clocks for the first time; again when that is due. */
cudaError_t cuda_clock_open(struct cuda_device *device);
void cuda_clock_follow(struct cuda_device *device);
void cuda_clock_close(struct cuda_device *device);
/* The time at which a marker was reached, on the world's clock. The second lets later ones be measured from this marker, when the one
   they are measured from has become too distant. With collect_lock. */
cudaError_t marker_measure(struct cuda_device *device, const struct marker *marker, double *out_ns);
cudaError_t marker_measure_from(struct cuda_device *device, struct marker *marker);

/* ---- device_cuda.c: callers --------------------------------------------------------------------------- */

/* Make the world's GPU the calling thread's. */
cudaError_t cuda_enter(const struct cuda_world *world);
/* What this thread asks or allocates ends no capture of the program's, which may be one that forbids it to all threads. A thread
   of the library's stays so. */
void cuda_relax(const struct cuda_world *world);

/* Find out whether all is done. The calling thread's last error stays as it was, unless the answer is an error other
   than cudaErrorNotReady. */
cudaError_t cuda_ask_event(const struct cuda_world *world, cudaEvent_t event);
cudaError_t cuda_ask_stream(const struct cuda_world *world, cudaStream_t stream);

/* ---- cuda_graph.c ---------------------------------------------------------------------------- */

enum status cuda_graph_begin(struct device *device, struct device_stream *const *streams,
                             size_t count, struct diag *diag);
enum status cuda_graph_end(struct device *device, struct device_graph **out, struct diag *diag);
enum status cuda_graph_arm(struct device_graph *graph, struct diag *diag);
enum status cuda_graph_launch(struct device_graph *graph, struct stamp *const *stamps,
                              struct diag *diag);
void cuda_graph_close(struct device_graph *graph);
/* A push to a stream that is captured. */
enum status cuda_graph_push(struct cuda_stream *stream, const struct device_op *op,
                            struct stamp *stamp, struct diag *diag);
/* Read the stamps of launches that have finished. With collect_lock. */
cudaError_t cuda_graph_collect(struct cuda_device *device);

/* ---- cuda_alone.c: communicators of either kind ---------------------------------------------- */

enum status cuda_member_open(struct device *device, const char *name, const int *members, int count,
                             struct device_comm **out, struct diag *diag);
void cuda_member_close(struct device_comm *comm);
void *cuda_member_handle(struct device_comm *comm);
/* Push a COLLECTIVE or GROUP of one member. */
cudaError_t cuda_alone_push(struct cuda_stream *stream, const struct device_op *op);

/* ---- cuda_comm.c: of several members, or made by the program ---------------------------------- */

enum status cuda_comm_open(struct device *device, const char *name, const int *members, int count,
                           struct device_comm **out, struct diag *diag);
void cuda_comm_close(struct device_comm *comm);
void *cuda_comm_handle(struct device_comm *comm);
/* Push a COLLECTIVE or GROUP; on an error the stream has failed. */
void cuda_comm_push(struct cuda_stream *stream, const struct device_op *op);
/* An error NCCL met on its own since the last call fails the world. */
void cuda_comm_check(struct cuda_device *device);
/* Start to abort all communicators; the world's lock is held. False: there is no thread for it, and
   cuda_comm_abort_here, without the lock, must do it. */
bool cuda_comm_abort(struct cuda_device *device);
void cuda_comm_abort_here(struct cuda_device *device);
/* Wait until an abort that has been started is through. False: it waits for work that does not end, and was left alone. */
bool cuda_comm_settle(struct cuda_device *device);
/* Look for NCCL, and name it ("NCCL 2.28.9", or why there is none) at the end of a description. */
void cuda_nccl_open(struct cuda_device *device, char *description, size_t size);
void cuda_nccl_close(struct cuda_device *device);
/* Check that graphs can hold what is pushed to the device's communicators. STATUS_SYSTEM: NCCL is too old. */
enum status cuda_nccl_captures(const struct cuda_device *device, struct diag *diag);
void cuda_comm_forget(struct cuda_world *world); /* at the end of the world */

#endif
#endif
