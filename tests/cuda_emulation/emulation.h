/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emulation.h - emulated CUDA: not a GPU. The inner parts of a test double of the CUDA runtime.
 *
 * The functions of cuda_runtime_api.h that gpu/ calls are defined here over threads (runtime.c checks
 * arguments, stream.c has the queues, memory.c the addresses, kernels.c the arithmetic of kernels), compiled
 * against the real header. A program that links this library instead of libcudart runs the CUDA device's
 * own code, kernels.cu's launches included. It says nothing about speed.
 *
 * It is stricter than most GPUs:
 *   - a stream is a FIFO with a thread of its own, which delays some operations, chosen by a seed;
 *   - the host cannot access device memory (its pages have no access), which starts full of garbage, and
 *     every access of an operation is checked against the live allocations;
 *   - cudaMalloc, cudaFree, cudaHostAlloc, cudaFreeHost and the first launch of a kernel whose attributes
 *     were not queried wait for the whole device;
 *   - the default streams order as in default_stream.c, copies between GPUs as in copies.c; pools hand out memory again as
 *     in pool.c, and cudaFree of such memory waits for nothing;
 *   - host functions of all streams run one at a time, and may not call CUDA;
 *   - a call that is not allowed while a stream is captured ends the capture, also a query by another thread whose mode
 *     is Global as the capture's is; a launched graph has a stream
 *     for each captured one;
 *   - a query of unfinished work leaves cudaErrorNotReady as the thread's last error; the driver's queries do not, and
 *     want a context that a call of the runtime has made current on the thread;
 *   - an invalid or closed handle ends the program with a message; what else each function asks of its caller is in
 *     contracts.txt;
 *   - a process forked from one that has used CUDA gets cudaErrorInitializationError.
 *
 * Environment:
 *   SWSIM_EMULATED_GPUS=N     the number of GPUs (1)
 *   CUDA_VISIBLE_DEVICES=I,J  those that the process is shown, by number, in this order (all)
 *   SWSIM_EMULATED_DRIVER=N   the CUDA version of the driver, as 12040 for 12.4 (that of the headers); 0: no driver
 *   SWSIM_EMULATION_SEED=N    selects the late operations (1)
 *   SWSIM_EMULATION_CONTEXTS=N  a process that makes a context on more GPUs ends with a message (no limit)
 *   SWSIM_EMULATION_LEAKS=1   a process that exits with a handle that has not been destroyed ends with a message
 *   SWSIM_EMULATION_DRIFT=PPM the GPUs' clocks are faster than the host's by so much (0)
 *   SWSIM_EMULATED_CUPTI_ROOM=N  CUPTI has room for so many records, others are lost (no limit)
 *   SWSIM_EMULATION_FAULT=... failures, see fault.c
 *   SWSIM_EMULATION_SLOW=FUNCTION:MS a call of this function takes so much longer, before it has its effect
 *
 * Like CUDA it has one state a process, `emulation`. Its lock guards all data without another guard; it is
 * never held while an operation or a host function runs.
 */
#ifndef SWSIM_EMULATION_H
#define SWSIM_EMULATION_H

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define EMULATION_NAME "emulated CUDA: not a GPU"
enum { EMULATION_MAX_GPUS = 16 };

/* A point in a stream: done when all work pushed before it is; never done in a capture. Guarded by the
   lock. */
struct point {
    int references;
    bool done;
    uint64_t capture; /* the capture of its record; 0: none */
    size_t number;    /* in that capture */
    int64_t time_ns;  /* when it was done, on the clock of the GPUs */
};

/* The kind of record that a profiler has of an operation. */
enum activity_kind {
    ACTIVITY_NONE,
    ACTIVITY_KERNEL,
    ACTIVITY_COPY,
    ACTIVITY_PEER_COPY,
    ACTIVITY_FILL
};

/* An operation of a stream. It is a value: a copy of it can be executed again. */
enum operation_kind { OPERATION_WORK, OPERATION_POINT, OPERATION_WAIT };
struct operation {
    struct operation *next;
    enum operation_kind kind;
    struct point *point; /* POINT: reached by it; WAIT: awaited. Held. */
    /* WORK. `run` is called without the lock; a result other than cudaSuccess ends the context. */
    cudaError_t (*run)(struct CUstream_st *stream, void *payload);
    bool counts; /* a kernel or a copy: counted by SWSIM_EMULATION_FAULT */
    enum activity_kind activity;
    uint32_t
        correlation; /* of the call that pushed it; 0: there is no profiler, or it is captured */
    uint64_t node;   /* of its graph, from 1 on; 0: none */
    struct CUevent_st *event; /* POINT in a graph: every launch records it; NULL: none */
    int lane;                 /* in a graph: the number of its stream */
    size_t bytes;
    _Alignas(max_align_t) unsigned char payload[];
};

struct CUstream_st {
    struct CUstream_st *next; /* in the list of streams with a handle or work */
    int gpu;
    uint32_t number;          /* of all streams, from 1 on */
    bool blocking;            /* synchronises with the legacy default stream */
    bool closed;              /* by cudaStreamDestroy: ends when it is empty */
    int watchers;             /* threads that use it: it is not freed */
    struct CUgraph_st *graph; /* being captured: pushed operations go there, into lane `lane` */
    int lane;
    uint64_t pushed, finished;
    uint32_t luck;
    struct operation *head, **tail;
    pthread_cond_t wake; /* the queue has got an operation */
};

struct CUevent_st {
    struct CUevent_st *next;
    int gpu;
    bool timed;
    struct point *last; /* record; NULL: never */
};

struct gpu {
    cudaError_t error; /* sticky; cudaSuccess: none */
    bool has_context;
    struct CUstream_st *legacy;  /* the default stream, made when first used */
    struct CUstream_st *held_by; /* new streams come after what it has: a copy between GPUs; NULL */
};

struct emulation {
    pthread_mutex_t lock;
    pthread_cond_t changed;             /* some operation has finished, or a context has ended */
    pid_t owner;                        /* the process that used CUDA first; 0: none yet */
    int gpu_count;                      /* that the process is shown; -1: not yet known */
    int of_machine[EMULATION_MAX_GPUS]; /* their numbers on the machine */
    int driver;                         /* its CUDA version */
    uint32_t seed;
    int most_contexts; /* of all GPUs; 0: no limit */
    int drift_ppm;
    int64_t start_ns;  /* when GPUs and host had one time */
    uint64_t captures; /* so far */
    uint32_t stream_numbers;
    struct gpu gpus[EMULATION_MAX_GPUS];
    struct CUstream_st *streams;
    struct CUevent_st *events;
};
extern struct emulation emulation;

void emulation_lock(void);
void emulation_unlock(void);
int64_t emulation_now_ns(void);
int64_t emulation_gpu_ns(void); /* on the clock of the GPUs */
/* A misuse of CUDA: describes it on stderr and aborts. */
_Noreturn void emulation_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
void emulation_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- stream.c: all but three with the lock held ----------------------- */

struct CUstream_st *stream_new(int gpu, bool blocking); /* NULL: no thread, no memory */
/* The stream behind a handle of cudaStreamCreate; misuse if there is none. */
struct CUstream_st *stream_of(cudaStream_t handle, const char *caller);
void stream_close(struct CUstream_st *stream);
bool stream_idle(const struct CUstream_st *stream);
bool emulation_is_busy(void); /* has any stream work? Without the lock */
/* Wait until all work pushed so far has finished, or the context has ended. */
void stream_await(struct CUstream_st *stream);
void gpu_await(int gpu); /* all streams of it */

struct operation *operation_new(enum operation_kind kind, const void *payload, size_t bytes);
/* These three keep the order that the default stream imposes. The operation is the stream's, whatever the answer. */
cudaError_t stream_push(struct CUstream_st *stream, struct operation *operation);
cudaError_t stream_push_work(struct CUstream_st *stream,
                             cudaError_t (*run)(struct CUstream_st *, void *), const void *payload,
                             size_t bytes, enum activity_kind activity);
cudaError_t stream_wait_for(struct CUstream_st *stream, struct point *point);
/* A point behind all work pushed so far, held for the caller, in that order too; NULL: no memory, or a capture forbids
   it. */
struct point *stream_mark(struct CUstream_st *stream);
/* Later work of `stream` comes after all that `other` has, whatever the default stream is. */
void stream_follow(struct CUstream_st *stream, struct CUstream_st *other);
void point_release(struct point *point); /* NULL is allowed */

/* The context ends: all running and waiting work of this GPU ends, every call returns `error`. */
void gpu_fail(int gpu, cudaError_t error);
cudaError_t gpu_error(int gpu); /* without the lock; polled by long operations */

/* ---- cupti.c: a library of its own, told of what is done once it is opened ------------------------ */

struct activity_done {
    enum activity_kind kind;
    uint32_t correlation, stream;
    int gpu;
    int64_t start_ns, end_ns; /* on the clock of the GPUs */
    uint64_t node;
};
struct activity {
    void (*called)(const char *function); /* a call of this thread's begins */
    uint32_t (*pushed)(void);             /* ... and pushes work: its correlation */
    void (*done)(const struct activity_done *done);
};
extern const struct activity *_Atomic emulation_activity; /* NULL: it is not open */

/* ---- default_stream.c: with the lock held -------------------------------------------------------- */

/* The stream of a handle, of a default stream's too; NULL: no memory. Misuse if there is none. */
struct CUstream_st *any_stream(cudaStream_t handle, const char *caller);
bool stream_is_legacy(const struct CUstream_st *stream);
/* Before a push: the waits that the legacy default stream means. An error: a stream of these is being captured. */
cudaError_t stream_keep_legacy_order(struct CUstream_st *stream);
/* All work of these GPUs (bits), before and after the next push to the stream. */
void stream_wait_for_gpus(struct CUstream_st *stream, unsigned gpus);
void stream_hold_gpus(struct CUstream_st *stream, unsigned gpus);

/* ---- graph.c: with the lock held ---------------------------------------------------------------- */

/* An operation pushed to a stream that is being captured. */
void graph_add(struct CUgraph_st *graph, struct operation *operation, int lane);
/* A node of its own, behind those that the graph has. */
cudaError_t graph_add_work(struct CUgraph_st *graph, int gpu,
                           cudaError_t (*run)(struct CUstream_st *, void *), const void *payload,
                           size_t bytes);
/* A stream that waits for a captured point joins the capture; a captured stream waits for no other point. */
cudaError_t graph_join(struct CUstream_st *stream, const struct point *point);
/* A node that records an event at every launch; NULL: no memory. */
struct operation *graph_add_record(struct CUstream_st *stream, struct CUevent_st *event);
/* A node that waits for an event at every launch. */
struct operation *graph_add_wait(struct CUstream_st *stream, struct CUevent_st *event);
void graph_number(struct CUgraph_st *graph, struct point *point);
uint64_t graph_capture(const struct CUstream_st *stream); /* as in a point */
/* A call that a capture does not allow: it ends the capture. cudaSuccess: no capture forbids it. */
cudaError_t graph_forbids(struct CUstream_st *stream); /* that queries the stream */
cudaError_t graph_forbids_all(void);                   /* that waits for a device */

/* ---- runtime.c ---------------------------------------------------------------------------------- */

/* Misuse if it has been destroyed. With the lock held. */
struct CUevent_st *event_of(cudaEvent_t handle, const char *caller);

/* ---- handles.c: with the lock held --------------------------------------------------------------- */

enum handle_kind {
    HANDLE_GRAPH,
    HANDLE_EXEC,
    HANDLE_POOL,
    HANDLE_ARRAY,
    HANDLE_VIEW,
    HANDLE_KINDS
};
void handle_born(enum handle_kind kind, const void *handle);
/* Both: misuse if it is not alive. */
void handle_use(enum handle_kind kind, const void *handle, const char *caller);
void handle_dies(enum handle_kind kind, const void *handle, const char *caller);
/* At the end of the process: misuse if one is alive. */
void handle_tell_left(void);

/* ---- memory.c: each takes a lock of its own ----------------------------------------------------- */

cudaError_t memory_alloc_device(int gpu, size_t bytes, void **out);
cudaError_t memory_alloc_pinned(size_t bytes, void **out);
/* Memory of the program: it keeps what is in it. */
cudaError_t memory_register(void *address, size_t bytes);
bool memory_unregister(void *address);
/* False: there is no allocation of this kind at the address. */
bool memory_free(void *address, bool device);
bool memory_is_pinned(const void *address, size_t bytes);
bool memory_is_device(int gpu, const void *address, size_t bytes);
int memory_gpu(const void *address, size_t bytes); /* -1: it is no device's memory */
/* The bytes for an operation of this GPU: in its device memory or in pinned memory. NULL, with a message,
   if they are not all in one live allocation. */
void *memory_reach(int gpu, const void *address, size_t bytes, const char *caller);

/* A device's block that has been freed has memory again, at its address; false: no memory. */
bool memory_revive(void *address, size_t bytes);
void memory_spoil(void *address); /* it is full of garbage */
/* All that a GPU has is freed. */
void memory_reset(int gpu);

/* Ranges of addresses, in granules, to which a file is mapped that is the memory. False: something is wrong with the range. */
enum { MEMORY_GRANULE = 2 << 20 };
bool memory_reserve(size_t bytes, void **out);
bool memory_unreserve(void *address, size_t bytes);
bool memory_map(void *address, size_t bytes, int gpu, int file, void *physical);
bool memory_unmap(void *address, size_t bytes);
bool memory_grant(void *address, size_t bytes);
void *memory_physical(const void *address); /* NULL: nothing is mapped there */

/* ---- pool.c: with the lock held ------------------------------------------------------------------ */

/* cudaFree of memory of a pool; false: it is none. */
bool pool_free_now(void *address);
void pool_reset(int gpu);

/* ---- runtime.c: begin and end of each function of CUDA ------------------------------------------ */

/* cudaSuccess with the lock held, or the error to return without it. */
cudaError_t call_begin(const char *function);
cudaError_t call_begin_anyhow(const char *function); /* the context may have ended */
cudaError_t call_end(cudaError_t error);             /* releases the lock */
int call_gpu(void);                                  /* the calling thread's */
void call_tell(const char *function);                /* the profiler, if there is one */

/* ---- kernels.c ---------------------------------------------------------------------------------- */

bool kernel_known(const void *function);
bool kernel_loaded(const void *function); /* and marks it as loaded */
/* The size of an argument of a known kernel; false: it has not so many. */
bool kernel_argument(const void *function, size_t index, size_t *bytes);
cudaError_t kernel_launch(struct CUstream_st *stream, const cudaLaunchConfig_t *config,
                          const void *function, void **args);

/* Kernels of a program's own, computed on the host: what takes a struct and the number of threads, `kernel(struct ...,
   int)`. A program that has some defines the list, which ends with a NULL. */
enum { KERNEL_OF_PROGRAM_BYTES = 128 };
struct kernel_of_program {
    const char *mangled; /* a part of the name that no other kernel has */
    size_t bytes;        /* of the struct */
    cudaError_t (*run)(int gpu, const void *arguments, int threads);
};
extern const struct kernel_of_program kernels_of_program[]
    __attribute__((weak, visibility("default")));

/* ---- fault.c ------------------------------------------------------------------------------------ */

/* The error with which this call of `function` is to fail; cudaSuccess: none. */
cudaError_t fault_call(const char *function);
/* Is the kernel or copy that starts now to fail? */
bool fault_work(void);
/* Is the NCCL operation that starts now to meet an error? */
bool fault_nccl(void);
/* Is the record of the operation that ends now to be lost? */
bool fault_activity(void);

#endif
