/* SPDX-License-Identifier: Apache-2.0 */
/*
 * none.h - a device that is not there: streams, events, graphs and memory for the programs that `swsim record --device=none`
 * runs, behind the faces of CUDA's runtime, its driver, NVML, cuBLAS and NCCL.
 *
 * It does what orders work and what moves bytes: queues, events, captures, copies, fills, messages between processes.
 * Kernels compute nothing, and nothing takes time. A stream is a queue of entries that any call of the host moves on. One
 * thread, the clerk, exists where a process has a communicator or has pushed a function of the host: it moves the
 * queues on where the host makes no calls, and it alone executes those functions.
 *
 * The device is as lazy as CUDA allows: a query is answered with no until a wait of the host implies the yes, or the
 * program has nothing else to do (none_event_query), because a yes would be order that another run need not have.
 *
 * It is built without CUDA's headers; results are cudaError_t, whose values those of the driver share. All data is
 * guarded by one lock. Functions that end in _locked want it held.
 */
#ifndef SWSIM_NONE_H
#define SWSIM_NONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "models.h"

enum none_result {
    NONE_OK = 0,
    NONE_INVALID_VALUE = 1,
    NONE_NO_MEMORY = 2,
    NONE_NOT_INITIALIZED = 3,
    NONE_INVALID_DEVICE = 101,
    NONE_INVALID_IMAGE = 200,
    NONE_INVALID_CONTEXT = 201,
    NONE_INVALID_HANDLE = 400,
    NONE_ILLEGAL_STATE = 401,
    NONE_NOT_FOUND = 500,
    NONE_NOT_READY = 600,
    NONE_PEER_ALREADY = 704,
    NONE_NOT_REGISTERED = 713,
    NONE_NOT_SUPPORTED = 801,
    NONE_CAPTURE_INVALIDATED = 901,
    NONE_CAPTURE_FORBIDS = 900,
    NONE_CAPTURE_UNJOINED = 904,
    NONE_CAPTURE_ISOLATION = 905,
    NONE_CAPTURE_IMPLICIT = 906
};

/* A function that may fail returns one of these. */

/* The program needs what the device has not: says so on stderr and ends the process. */
_Noreturn void none_missing(const char *function, const char *what);
/* A line on stderr, from this process. */
void none_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- models.c: which GPUs there are --------------------------------------------------------------- */

struct none_model {
    const char *key, *name; /* of --device=none=KEY; of the properties */
    int major, minor, multiprocessors;
    size_t memory, l2;
    int clock_khz, memory_clock_khz, bus_bits;
    int shared_of_multiprocessor, shared_optin, persisting_l2;
};
const struct none_model *none_model(void);
int none_devices(void);
/* A cudaDeviceAttr or CUdevice_attribute, which have the same numbers; one that is not known ends the run. */
int none_attribute(int attribute, int device);

/* ---- engine.c -------------------------------------------------------------------------------------- */

struct none_graph;
struct none_stream;
struct none_event;

/* False: the process was forked from one that has used the device, and may not use it. */
bool none_lock(void);
void none_unlock(void);
/* For what is no use of the device: a process may do it and leave the use to its children. */
void none_lock_anyhow(void);
/* Lets others go on, and returns with the lock held; for loops that wait. */
void none_pause_locked(void);

int none_device(void); /* the calling thread's */
int none_set_device(int device);

/* The stream of a handle: 0 and 1 are the legacy default stream of the thread's device, 2 that of the thread. */
struct none_stream *none_stream_of_locked(const void *handle);
struct none_stream *none_stream_new(bool blocking, int priority); /* NULL: no memory */
void none_stream_close(struct none_stream *stream);
int none_stream_priority(const struct none_stream *stream);
bool none_stream_is_blocking(const struct none_stream *stream);
int none_stream_device(const struct none_stream *stream);
uint64_t none_stream_number(const struct none_stream *stream);
struct none_graph *
none_stream_capture(const struct none_stream *stream); /* NULL: it is not captured */

int none_stream_sync(const void *handle);
int none_stream_query(const void *handle);
int none_device_sync(void);

struct none_event *none_event_new(bool timed);
void none_event_close(struct none_event *event);
int none_event_record(struct none_event *event, const void *stream, bool external);
int none_event_wait(const void *stream, struct none_event *event, bool external);
int none_event_sync(struct none_event *event);
/* A no while no wait of the host implies a yes: for NONE_LAZY_NS behind the moment when it is done, or until the thread
   has asked NONE_PATIENCE times with no other call. */
enum { NONE_PATIENCE = 10000 };
#define NONE_LAZY_NS INT64_C(3000000000)
int none_event_query(struct none_event *event);
int none_event_elapsed(struct none_event *from, struct none_event *to, float *ms);

/* Rows of `width` bytes in slices of `height`; pitches and strides of slices, in bytes. */
struct none_box {
    char *to;
    const char *from; /* NULL: a fill with the `unit` bytes of value */
    size_t width, height, depth;
    size_t to_pitch, from_pitch, to_slice, from_slice;
    uint32_t value;
    int unit;
};
int none_copy(const struct none_box *box, const void *stream, bool sync);
int none_fill(const struct none_box *box, const void *stream);

/* Work of a stream. Each time that it is to be done `start` makes an instance of `arg`, in the order of pushes, and `step`
   is called until it says that the instance is done and gone; both with the lock held. A graph keeps `arg`. */
struct none_work {
    void *(*start)(void *arg);
    bool (*step)(void *instance);
};
int none_push(const void *stream, const struct none_work *work, void *arg);
/* A kernel: it is there for the order only. */
int none_push_kernel(const void *stream);
/* The clerk calls it, without the lock. */
int none_push_host(const void *stream, void (*function)(void *), void *arg);
void none_start_clerk_locked(void);
/* Is called whenever the queues are moved on; true: it has more to do. */
void none_set_pump_locked(bool (*pump)(void));

/* ---- engine.c: graphs ---------------------------------------------------------------------------------------- */

struct none_entry;
struct none_graph *none_graph_new(void);
void none_graph_release(struct none_graph *graph);
void none_graph_keep(struct none_graph *graph);
int none_capture_begin(const void *stream, struct none_graph *into, int mode);
int none_capture_end(const void *stream, struct none_graph **out);
/* 0: not captured, 1: captured. The nodes that the stream's next one comes behind. */
int none_capture_state(const void *stream, uint64_t *id, struct none_graph **graph,
                       void *const **nodes, size_t *count);
int none_graph_launch(struct none_graph *graph, const void *stream);
size_t none_graph_nodes(const struct none_graph *graph, void **out, size_t room);
int none_exchange_capture_mode(int mode);

/* ---- memory.c ---------------------------------------------------------------------------------------- */

enum none_kind { NONE_DEVICE = 1, NONE_PINNED, NONE_MANAGED, NONE_REGISTERED };
struct none_block {
    char *address;
    size_t bytes;
    enum none_kind kind;
    int device;
    uint64_t number;
    unsigned flags;
};
int none_alloc(void **out, size_t bytes, enum none_kind kind, unsigned flags);
int none_register(void *address, size_t bytes, unsigned flags);
int none_free(void *address, enum none_kind kind);
int none_free_async(void *address, const void *stream);
/* The allocation that an address lies in; false: it is none of the device's. */
bool none_find(const void *address, struct none_block *out);
bool none_find_locked(const void *address, struct none_block *out);
void none_memory_info(size_t *unused, size_t *all);
void none_memory_reset(void);
/* Moves bytes, or fills: pages of the device that nobody has written stay so. With the lock held. */
void none_move_locked(char *to, const char *from, size_t bytes);
void none_clear_locked(char *to, size_t bytes);
/* True if these bytes are pages of the device that nobody has written: they are 0. */
bool none_is_untouched_locked(const char *address, size_t bytes);

/* ---- kernels.c ------------------------------------------------------------------------------------- */

/* A module of a program: a fat binary of nvcc's wrapper, or an image that was loaded. */
struct none_module;
struct none_function {
    struct none_function *next;
    const void *handle;
    struct none_module *module;
    const char *name;
    int shared; /* dynamic, the most that has been asked for; 0: not asked */
};
struct none_module *none_module_register(const void *wrapper);
struct none_module *none_module_load(const void *image);
void none_function_register(struct none_module *module, const void *handle, const char *name);
struct none_function *none_function_find(const void *handle);
/* Loaded by name: one handle for one name of a module; NULL: it has no such function. */
struct none_function *none_module_function(struct none_module *module, const char *name);
size_t none_module_functions(struct none_module *module, struct none_function **out, size_t room);
/* A variable of the program's, which has memory of the device. */
void none_variable_register(struct none_module *module, const void *handle, const char *name,
                            size_t bytes);
bool none_variable_find(const void *handle, void **address, size_t *bytes);
bool none_module_variable(struct none_module *module, const char *name, void **address,
                          size_t *bytes);
/* Place and size of a parameter; false: there are not so many, or nothing is known. */
bool none_parameter(struct none_function *function, size_t index, size_t *offset, size_t *bytes);
struct none_numbers {
    int registers, shared, constant, local, most_threads;
};
struct none_numbers none_function_numbers(struct none_function *function);
/* How many blocks of so many threads a multiprocessor has at a time. */
int none_blocks(struct none_function *function, int threads, size_t shared);

#endif
