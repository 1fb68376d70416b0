/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime.c - the functions of CUDA's runtime over the device that is not there: devices, streams, events, memory, graphs.
 * launches.c has kernels. Functions without an equal here end the run by their name (missing.c).
 *
 * The same objects are libcudart.so.12 and libcudart.so.13; `runtime_major` tells which.
 */
#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __thread int last_error;

int runtime_end(int result)
{
    if (result != NONE_OK)
        last_error = result;
    return result;
}

/* ---- errors --------------------------------------------------------------------------------------- */

#define ERROR_LIST(X)                                                                              \
    X(0, "cudaSuccess", "no error")                                                                \
    X(1, "cudaErrorInvalidValue", "invalid argument")                                              \
    X(2, "cudaErrorMemoryAllocation", "out of memory")                                             \
    X(3, "cudaErrorInitializationError", "initialization error")                                   \
    X(98, "cudaErrorInvalidDeviceFunction", "invalid device function")                             \
    X(100, "cudaErrorNoDevice", "no CUDA-capable device is detected")                              \
    X(101, "cudaErrorInvalidDevice", "invalid device ordinal")                                     \
    X(200, "cudaErrorInvalidKernelImage", "device kernel image is invalid")                        \
    X(201, "cudaErrorDeviceUninitialized", "invalid device context")                               \
    X(400, "cudaErrorInvalidResourceHandle", "invalid resource handle")                            \
    X(401, "cudaErrorIllegalState", "the operation cannot be performed in the present state")      \
    X(500, "cudaErrorSymbolNotFound", "named symbol not found")                                    \
    X(600, "cudaErrorNotReady", "device not ready")                                                \
    X(704, "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled")                  \
    X(712, "cudaErrorHostMemoryAlreadyRegistered",                                                 \
      "part or all of the requested memory range is already mapped")                               \
    X(713, "cudaErrorHostMemoryNotRegistered",                                                     \
      "pointer does not correspond to a registered memory region")                                 \
    X(801, "cudaErrorNotSupported", "operation not supported")                                     \
    X(900, "cudaErrorStreamCaptureUnsupported",                                                    \
      "operation not permitted when stream is capturing")                                          \
    X(901, "cudaErrorStreamCaptureInvalidated",                                                    \
      "operation failed due to a previous error during capture")                                   \
    X(904, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work")                 \
    X(905, "cudaErrorStreamCaptureIsolation",                                                      \
      "dependency created on uncaptured work in another stream")                                   \
    X(906, "cudaErrorStreamCaptureImplicit",                                                       \
      "operation would make the legacy stream depend on a capturing blocking stream")

const char *runtime_error(int error, bool name)
{
    switch (error) {
#define X(number, words, text)                                                                     \
    case number: return name ? words : text;
        ERROR_LIST(X)
#undef X
    default: return name ? "cudaErrorUnknown" : "unknown error";
    }
}

VALUE(const char *, cudaGetErrorName, (int error), runtime_error(error, true))
VALUE(const char *, cudaGetErrorString, (int error), runtime_error(error, false))
FACE(int, cudaGetLastError, (void))
{
    const int error = last_error;
    last_error = NONE_OK;
    return error;
}
VALUE(int, cudaPeekAtLastError, (void), last_error)

/* ---- devices --------------------------------------------------------------------------------------- */

static int driver_version(void)
{
    return runtime_major == 12 ? 12080 : 13000;
}

RESULT(cudaDriverGetVersion, (int *out), (*out = driver_version(), NONE_OK))
RESULT(cudaRuntimeGetVersion, (int *out), (*out = driver_version(), NONE_OK))
RESULT(cudaGetDeviceCount, (int *out), (*out = none_devices(), NONE_OK))
RESULT(cudaGetDevice, (int *out), (*out = none_device(), NONE_OK))
RESULT(cudaSetDevice, (int device), none_set_device(device))
RESULT(cudaInitDevice, (int device, unsigned device_flags, unsigned flags),
       device < 0 || device >= none_devices() ? NONE_INVALID_DEVICE : NONE_OK)
/* The flags say how a thread waits. */
RESULT(cudaSetDeviceFlags, (unsigned flags), NONE_OK)
/* 8: cudaDeviceMapHost. */
RESULT(cudaGetDeviceFlags, (unsigned *out), (*out = 8, NONE_OK))
FACE(int, cudaDeviceGetAttribute, (int *out, int attribute, int device))
{
    if (device < 0 || device >= none_devices())
        return runtime_end(NONE_INVALID_DEVICE);
    *out = none_attribute(attribute, device);
    return NONE_OK;
}

/* Members of cudaDeviceProp: type, name, elements, value of the first; `m` is the model. OLD: until CUDA 12; NEW: from 13 on. */
#define A(number) none_attribute(number, device)
#define PROPERTY_LIST(X, OLD, NEW)                                                                 \
    X(char, name, 256, 0)                                                                          \
    X(char, uuid, 16, 0)                                                                           \
    X(char, luid, 8, 0)                                                                            \
    X(unsigned, luid_mask, 1, 0)                                                                   \
    X(size_t, memory, 1, m->memory)                                                                \
    X(size_t, shared_of_block, 1, (size_t)A(8))                                                    \
    X(int, registers_of_block, 1, A(12))                                                           \
    X(int, warp, 1, A(10))                                                                         \
    X(size_t, pitch, 1, (size_t)A(11))                                                             \
    X(int, threads_of_block, 1, A(1))                                                              \
    X(int, threads, 3, 0)                                                                          \
    X(int, grid, 3, 0)                                                                             \
    OLD(int, clock, 1, A(13))                                                                      \
    X(size_t, constant, 1, (size_t)A(9))                                                           \
    X(int, major, 1, A(75))                                                                        \
    X(int, minor, 1, A(76))                                                                        \
    X(size_t, texture_alignment, 1, (size_t)A(14))                                                 \
    X(size_t, texture_pitch_alignment, 1, (size_t)A(51))                                           \
    OLD(int, overlap, 1, A(15))                                                                    \
    X(int, multiprocessors, 1, A(16))                                                              \
    OLD(int, timeout, 1, A(17))                                                                    \
    X(int, integrated, 1, A(18))                                                                   \
    X(int, maps_host, 1, A(19))                                                                    \
    OLD(int, compute_mode, 1, A(20))                                                               \
    X(int, textures1, 2, 0)                                                                        \
    OLD(int, textures1_linear, 1, 0)                                                               \
    X(int, textures2, 9, 0)                                                                        \
    X(int, textures3, 6, 0)                                                                        \
    X(int, textures_layered, 8, 0)                                                                 \
    X(int, surfaces, 14, 0)                                                                        \
    X(size_t, surface_alignment, 1, (size_t)A(30))                                                 \
    X(int, concurrent_kernels, 1, A(31))                                                           \
    X(int, ecc, 1, A(32))                                                                          \
    X(int, pci_bus, 1, A(33))                                                                      \
    X(int, pci_device, 1, A(34))                                                                   \
    X(int, pci_domain, 1, A(50))                                                                   \
    X(int, tcc, 1, A(35))                                                                          \
    X(int, engines, 1, A(40))                                                                      \
    X(int, unified_addresses, 1, A(41))                                                            \
    OLD(int, memory_clock, 1, A(36))                                                               \
    X(int, bus, 1, A(37))                                                                          \
    X(int, l2, 1, A(38))                                                                           \
    X(int, persisting_l2, 1, A(108))                                                               \
    X(int, threads_of_multiprocessor, 1, A(39))                                                    \
    X(int, priorities, 1, A(78))                                                                   \
    X(int, global_l1, 1, A(79))                                                                    \
    X(int, local_l1, 1, A(80))                                                                     \
    X(size_t, shared_of_multiprocessor, 1, (size_t)A(81))                                          \
    X(int, registers_of_multiprocessor, 1, A(82))                                                  \
    X(int, managed, 1, A(83))                                                                      \
    X(int, several_on_board, 1, A(84))                                                             \
    X(int, board, 1, A(85))                                                                        \
    X(int, native_atomics, 1, A(86))                                                               \
    OLD(int, single_to_double, 1, A(87))                                                           \
    X(int, pageable, 1, A(88))                                                                     \
    X(int, concurrent_managed, 1, A(89))                                                           \
    X(int, preemption, 1, A(90))                                                                   \
    X(int, registered_pointer, 1, A(91))                                                           \
    X(int, cooperative, 1, A(95))                                                                  \
    OLD(int, cooperative_several, 1, A(96))                                                        \
    X(size_t, shared_optin, 1, (size_t)A(97))                                                      \
    X(int, pageable_tables, 1, A(100))                                                             \
    X(int, direct_managed, 1, A(101))                                                              \
    X(int, blocks_of_multiprocessor, 1, A(106))                                                    \
    X(int, window, 1, A(109))                                                                      \
    X(size_t, reserved_shared, 1, (size_t)A(111))                                                  \
    X(int, registers_host, 1, A(99))                                                               \
    X(int, sparse, 1, A(112))                                                                      \
    X(int, registers_read_only, 1, A(113))                                                         \
    X(int, timeline, 1, A(114))                                                                    \
    X(int, pools, 1, A(115))                                                                       \
    X(int, rdma, 1, A(116))                                                                        \
    X(unsigned, rdma_flush, 1, (unsigned)A(117))                                                   \
    X(int, rdma_order, 1, A(118))                                                                  \
    X(unsigned, pool_handles, 1, (unsigned)A(119))                                                 \
    X(int, deferred, 1, A(121))                                                                    \
    X(int, ipc_event, 1, A(125))                                                                   \
    X(int, clusters, 1, A(120))                                                                    \
    X(int, unified_functions, 1, A(129))                                                           \
    NEW(int, numa_config, 1, A(130))                                                               \
    NEW(int, numa_id, 1, A(131))                                                                   \
    NEW(int, mps, 1, 0)                                                                            \
    NEW(int, host_numa, 1, A(134))                                                                 \
    NEW(unsigned, ids, 2, 0)                                                                       \
    NEW(int, multinode, 1, 0)                                                                      \
    X(int, reserved, 56, 0)                                                                        \
    OLD(int, more_reserved, 7, 0)

#define MEMBER(type, name, count, value) type name[count];
#define SET(type, name, count, value)    out->name[0] = value;
#define LEFT_OUT(type, name, count, value)
struct runtime_properties12 {
    PROPERTY_LIST(MEMBER, MEMBER, LEFT_OUT)
};
struct runtime_properties13 {
    PROPERTY_LIST(MEMBER, LEFT_OUT, MEMBER)
};
#define REST(out)                                                                                  \
    strcpy((out)->name, m->name);                                                                  \
    memcpy((out)->uuid, "swsim none", 10);                                                         \
    (out)->uuid[15] = (char)device;                                                                \
    memcpy((out)->threads, (int[]){A(2), A(3), A(4)}, sizeof(out)->threads);                       \
    memcpy((out)->grid, (int[]){A(5), A(6), A(7)}, sizeof(out)->grid);

FACE(int, cudaGetDeviceProperties_v2, (void *at, int device))
{
    const struct none_model *m = none_model();
    struct runtime_properties12 *out = at;
    if (device < 0 || device >= none_devices())
        return runtime_end(NONE_INVALID_DEVICE);
    memset(out, 0, sizeof *out);
    PROPERTY_LIST(SET, SET, LEFT_OUT)
    REST(out)
    return NONE_OK;
}
/* Of CUDA 13. The one of this name in CUDA 12 is for programs of CUDA 11: its struct is shorter. */
FACE(int, cudaGetDeviceProperties, (void *at, int device))
{
    const struct none_model *m = none_model();
    struct runtime_properties13 *out = at;
    if (runtime_major < 13)
        none_missing("cudaGetDeviceProperties", "a program built with CUDA 12 or newer");
    if (device < 0 || device >= none_devices())
        return runtime_end(NONE_INVALID_DEVICE);
    memset(out, 0, sizeof *out);
    PROPERTY_LIST(SET, LEFT_OUT, SET)
    REST(out)
    return NONE_OK;
}
#undef A

RESULT(cudaDeviceGetPCIBusId, (char *out, int room, int device),
       (snprintf(out, (size_t)room, "0000:%02X:00.0", 1 + device), NONE_OK))
FACE(int, cudaDeviceGetByPCIBusId, (int *out, const char *text))
{
    unsigned bus = 0;
    if (sscanf(text, "%*x:%x", &bus) != 1 || bus < 1 || (int)bus > none_devices())
        return runtime_end(NONE_INVALID_VALUE);
    *out = (int)bus - 1;
    return NONE_OK;
}
FACE(int, cudaDeviceGetStreamPriorityRange, (int *least, int *greatest))
{
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return NONE_OK;
}
RESULT(cudaDeviceCanAccessPeer, (int *out, int device, int peer), (*out = device != peer, NONE_OK))
FACE(int, cudaDeviceEnablePeerAccess, (int peer, unsigned flags))
{
    static __thread uint64_t peers[64];
    if (peer < 0 || peer >= none_devices())
        return runtime_end(NONE_INVALID_DEVICE);
    if (peers[none_device()] >> peer & 1)
        return runtime_end(NONE_PEER_ALREADY);
    peers[none_device()] |= UINT64_C(1) << peer;
    return NONE_OK;
}
/* 1: cudaDevP2PAttrPerformanceRank. */
RESULT(cudaDeviceGetP2PAttribute, (int *out, int attribute, int source, int target),
       (*out = attribute == 1 ? 0 : source != target, NONE_OK))

/* Sizes of stack, heap and the like: kernels do not run. */
static size_t limits[8] = {1024, 7 << 20, 8 << 20, 2, 2048, 128};
FACE(int, cudaDeviceSetLimit, (int limit, size_t value))
{
    if (limit < 0 || limit >= 8)
        return runtime_end(NONE_INVALID_VALUE);
    limits[limit] = value;
    return NONE_OK;
}
FACE(int, cudaDeviceGetLimit, (size_t * out, int limit))
{
    if (limit < 0 || limit >= 8)
        return runtime_end(NONE_INVALID_VALUE);
    *out = limits[limit];
    return NONE_OK;
}
/* The configuration says how fast a kernel is. */
RESULT(cudaDeviceSetCacheConfig, (int config), NONE_OK)
RESULT(cudaCtxResetPersistingL2Cache, (void), NONE_OK)
RESULT(cudaProfilerStart, (void), NONE_OK)
RESULT(cudaProfilerStop, (void), NONE_OK)
RESULT(cudaDeviceSynchronize, (void), none_device_sync())
FACE(int, cudaDeviceReset, (void))
{
    const int result = none_device_sync();
    none_memory_reset();
    return runtime_end(result);
}

/* ---- streams and events ------------------------------------------------------------------------------ */

static int make_stream(void **out, unsigned flags, int priority)
{
    *out = none_stream_new(!(flags & 1), priority);
    return runtime_end(*out ? NONE_OK : NONE_NO_MEMORY);
}
RESULT(cudaStreamCreate, (void **out), make_stream(out, 0, 0))
RESULT(cudaStreamCreateWithFlags, (void **out, unsigned flags), make_stream(out, flags, 0))
RESULT(cudaStreamCreateWithPriority, (void **out, unsigned flags, int priority),
       make_stream(out, flags, priority))
FACE(int, cudaStreamDestroy, (void *stream))
{
    if ((uintptr_t)stream <= 2)
        return runtime_end(NONE_INVALID_HANDLE);
    none_stream_close(stream);
    return NONE_OK;
}

/* What is asked of a stream. */
#define ASK(name, type, expression)                                                                \
    static int ask_##name(const void *stream, type *out)                                           \
    {                                                                                              \
        if (!none_lock())                                                                          \
            return NONE_NOT_INITIALIZED;                                                           \
        const struct none_stream *at = none_stream_of_locked(stream);                              \
        *out = (type)(expression);                                                                 \
        none_unlock();                                                                             \
        return NONE_OK;                                                                            \
    }                                                                                              \
    STREAM_FACE(name, (void *stream, type *out), ask_##name(ON(stream), out))
ASK(cudaStreamGetPriority, int, none_stream_priority(at))
ASK(cudaStreamGetFlags, unsigned, !none_stream_is_blocking(at))
ASK(cudaStreamGetId, unsigned long long, none_stream_number(at))
ASK(cudaStreamGetDevice, int, none_stream_device(at))

STREAM_FACE(cudaStreamSynchronize, (void *stream), none_stream_sync(ON(stream)))
STREAM_FACE(cudaStreamQuery, (void *stream), none_stream_query(ON(stream)))
STREAM_FACE(cudaStreamWaitEvent, (void *stream, void *event, unsigned flags),
            none_event_wait(ON(stream), event, (flags & 1) != 0))
STREAM_FACE(cudaEventRecord, (void *event, void *stream),
            none_event_record(event, ON(stream), false))
STREAM_FACE(cudaEventRecordWithFlags, (void *event, void *stream, unsigned flags),
            none_event_record(event, ON(stream), (flags & 1) != 0))
STREAM_FACE(cudaLaunchHostFunc, (void *stream, void (*function)(void *), void *arg),
            none_push_host(ON(stream), function, arg))

/* A callback is told its stream and the state. */
struct runtime_callback {
    void (*function)(void *stream, int status, void *arg);
    void *stream, *arg;
};
static void call_back(void *at)
{
    const struct runtime_callback callback = *(struct runtime_callback *)at;
    free(at);
    callback.function(callback.stream, NONE_OK, callback.arg);
}
static int push_callback(const void *on, void *stream, void (*function)(void *, int, void *),
                         void *arg)
{
    struct runtime_callback *callback = malloc(sizeof *callback);
    if (!callback)
        return NONE_NO_MEMORY;
    *callback = (struct runtime_callback){function, stream, arg};
    return none_push_host(on, call_back, callback);
}
STREAM_FACE(cudaStreamAddCallback,
            (void *stream, void (*function)(void *, int, void *), void *arg, unsigned flags),
            ((void)flags, push_callback(ON(stream), stream, function, arg)))

static int make_event(void **out, unsigned flags)
{
    *out = none_event_new(!(flags & 2));
    return runtime_end(*out ? NONE_OK : NONE_NO_MEMORY);
}
RESULT(cudaEventCreate, (void **out), make_event(out, 0))
RESULT(cudaEventCreateWithFlags, (void **out, unsigned flags), make_event(out, flags))
FACE(int, cudaEventDestroy, (void *event))
{
    if (!event)
        return runtime_end(NONE_INVALID_HANDLE);
    none_event_close(event);
    return NONE_OK;
}
RESULT(cudaEventSynchronize, (void *event), none_event_sync(event))
RESULT(cudaEventQuery, (void *event), none_event_query(event))
RESULT(cudaEventElapsedTime, (float *ms, void *from, void *to), none_event_elapsed(from, to, ms))
RESULT(cudaEventElapsedTime_v2, (float *ms, void *from, void *to), none_event_elapsed(from, to, ms))

/* ---- memory ------------------------------------------------------------------------------------------ */

RESULT(cudaMalloc, (void **out, size_t bytes), none_alloc(out, bytes, NONE_DEVICE, 0))
RESULT(cudaMallocManaged, (void **out, size_t bytes, unsigned flags),
       none_alloc(out, bytes, NONE_MANAGED, flags))
RESULT(cudaMallocHost, (void **out, size_t bytes), none_alloc(out, bytes, NONE_PINNED, 0))
RESULT(cudaHostAlloc, (void **out, size_t bytes, unsigned flags),
       none_alloc(out, bytes, NONE_PINNED, flags))
enum { PITCH = 512 };
RESULT(cudaMallocPitch, (void **out, size_t *pitch, size_t width, size_t height),
       (*pitch = (width + PITCH - 1) / PITCH * PITCH,
        none_alloc(out, *pitch *height, NONE_DEVICE, 0)))
struct runtime_pitched {
    void *address;
    size_t pitch, width, height;
};
struct runtime_extent {
    size_t width, height, depth;
};
FACE(int, cudaMalloc3D, (struct runtime_pitched * out, struct runtime_extent extent))
{
    out->pitch = (extent.width + PITCH - 1) / PITCH * PITCH;
    out->width = extent.width;
    out->height = extent.height;
    return runtime_end(
        none_alloc(&out->address, out->pitch * extent.height * extent.depth, NONE_DEVICE, 0));
}
RESULT(cudaFree, (void *address), none_free(address, NONE_DEVICE))
RESULT(cudaFreeHost, (void *address), none_free(address, NONE_PINNED))
RESULT(cudaHostRegister, (void *address, size_t bytes, unsigned flags),
       none_register(address, bytes, flags))
RESULT(cudaHostUnregister, (void *address), none_free(address, NONE_REGISTERED))
RESULT(cudaHostGetDevicePointer, (void **out, void *address, unsigned flags),
       (*out = address, NONE_OK))
FACE(int, cudaHostGetFlags, (unsigned *out, void *address))
{
    struct none_block block;
    if (!none_find(address, &block))
        return runtime_end(NONE_INVALID_VALUE);
    *out = block.flags;
    return NONE_OK;
}
RESULT(cudaMemGetInfo, (size_t * unused, size_t *all), (none_memory_info(unused, all), NONE_OK))

STREAM_FACE(cudaMallocAsync, (void **out, size_t bytes, void *stream),
            ((void)ON(stream), none_alloc(out, bytes, NONE_DEVICE, 0)))
STREAM_FACE(cudaMallocFromPoolAsync, (void **out, size_t bytes, void *pool, void *stream),
            ((void)pool, (void)ON(stream), none_alloc(out, bytes, NONE_DEVICE, 0)))
STREAM_FACE(cudaFreeAsync, (void *address, void *stream), none_free_async(address, ON(stream)))

/* Pools keep nothing: what is freed is gone when its stream comes to it. */
static int pools[64];
RESULT(cudaDeviceGetDefaultMemPool, (void **out, int device), (*out = &pools[device & 63], NONE_OK))
RESULT(cudaDeviceGetMemPool, (void **out, int device), (*out = &pools[device & 63], NONE_OK))
FACE(int, cudaMemPoolGetAttribute, (void *pool, int attribute, void *out))
{
    if (attribute <= 3) /* what may be used again, an int */
        *(int *)out = 1;
    else
        *(uint64_t *)out = 0;
    return NONE_OK;
}
RESULT(cudaMemPoolSetAttribute, (void *pool, int attribute, void *value), NONE_OK)
RESULT(cudaMemPoolTrimTo, (void *pool, size_t bytes), NONE_OK)
RESULT(cudaMemPoolSetAccess, (void *pool, const void *list, size_t count), NONE_OK)

/* Advice, and where managed memory lies: this memory is everywhere. */
RESULT(cudaMemAdvise, (const void *at, size_t bytes, int advice, int device), NONE_OK)
struct runtime_location {
    int kind, id;
};
static int prefetch(const void *stream)
{
    return none_push_kernel(stream);
}
/* CUDA 13: at, bytes, location, flags, stream; 12: at, bytes, device, stream. */
RESULT(cudaMemPrefetchAsync, (const void *at, size_t bytes, uint64_t to, void *c, void *d),
       prefetch(runtime_major < 13 ? c : d))
RESULT(cudaMemPrefetchAsync_v2,
       (const void *at, size_t bytes, struct runtime_location to, unsigned flags, void *stream),
       prefetch(stream))

struct runtime_attributes {
    int kind, device; /* 0: none of CUDA's, 1: host, 2: device, 3: managed */
    void *on_device, *on_host;
    long reserved[8];
};
FACE(int, cudaPointerGetAttributes, (struct runtime_attributes * out, const void *address))
{
    struct none_block block;
    if (!none_find(address, &block)) {
        memset(out, 0, offsetof(struct runtime_attributes, reserved)); /* which are CUDA 13's */
        out->device = -2;                                              /* cudaInvalidDeviceId */
        out->on_host = (void *)(uintptr_t)address;
        return NONE_OK;
    }
    out->kind = block.kind == NONE_DEVICE ? 2 : block.kind == NONE_MANAGED ? 3 : 1;
    out->device = block.device;
    out->on_device = (void *)(uintptr_t)address;
    out->on_host = block.kind == NONE_DEVICE ? NULL : (void *)(uintptr_t)address;
    return NONE_OK;
}

/* ---- copies and fills ---------------------------------------------------------------------------------- */

static struct none_box runtime_row(void *to, const void *from, size_t bytes)
{
    return (struct none_box){.to = to, .from = from, .width = bytes, .height = 1, .depth = 1};
}
static int copy_row(void *to, const void *from, size_t bytes, const void *stream, bool sync)
{
    const struct none_box box = runtime_row(to, from, bytes);
    return bytes == 0 ? NONE_OK : none_copy(&box, stream, sync);
}
static int fill_row(void *to, int value, size_t bytes, const void *stream)
{
    struct none_box box = runtime_row(to, NULL, bytes);
    box.unit = 1;
    box.value = (unsigned char)value;
    return bytes == 0 ? NONE_OK : none_fill(&box, stream);
}
DEFAULT_FACE(cudaMemcpy, (void *to, const void *from, size_t bytes, int direction),
             ((void)direction, copy_row(to, from, bytes, none, true)))
STREAM_FACE(cudaMemcpyAsync,
            (void *to, const void *from, size_t bytes, int direction, void *stream),
            ((void)direction, copy_row(to, from, bytes, ON(stream), false)))
RESULT(cudaMemcpyPeer, (void *to, int device, const void *from, int source, size_t bytes),
       copy_row(to, from, bytes, NULL, false))
RESULT(cudaMemcpyPeerAsync,
       (void *to, int device, const void *from, int source, size_t bytes, void *stream),
       copy_row(to, from, bytes, stream, false))
static int copy_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                     size_t height, const void *stream, bool sync)
{
    struct none_box box = runtime_row(to, from, width);
    box.height = height;
    box.to_pitch = to_pitch;
    box.from_pitch = from_pitch;
    return width == 0 || height == 0 ? NONE_OK : none_copy(&box, stream, sync);
}
DEFAULT_FACE(cudaMemcpy2D,
             (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
              size_t height, int direction),
             ((void)direction,
              copy_rows(to, to_pitch, from, from_pitch, width, height, none, true)))
STREAM_FACE(cudaMemcpy2DAsync,
            (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
             size_t height, int direction, void *stream),
            ((void)direction,
             copy_rows(to, to_pitch, from, from_pitch, width, height, ON(stream), false)))
DEFAULT_FACE(cudaMemset, (void *to, int value, size_t bytes), fill_row(to, value, bytes, none))
STREAM_FACE(cudaMemsetAsync, (void *to, int value, size_t bytes, void *stream),
            fill_row(to, value, bytes, ON(stream)))
static int fill_rows(void *to, size_t pitch, int value, size_t width, size_t height,
                     const void *stream)
{
    struct none_box box = runtime_row(to, NULL, width);
    box.height = height;
    box.to_pitch = pitch;
    box.unit = 1;
    box.value = (unsigned char)value;
    return width == 0 || height == 0 ? NONE_OK : none_fill(&box, stream);
}
DEFAULT_FACE(cudaMemset2D, (void *to, size_t pitch, int value, size_t width, size_t height),
             fill_rows(to, pitch, value, width, height, none))
STREAM_FACE(cudaMemset2DAsync,
            (void *to, size_t pitch, int value, size_t width, size_t height, void *stream),
            fill_rows(to, pitch, value, width, height, ON(stream)))

static char *runtime_symbol(const void *symbol, size_t offset)
{
    void *address;
    size_t bytes;
    return none_variable_find(symbol, &address, &bytes) && offset <= bytes
               ? (char *)address + offset
               : NULL;
}
static int to_symbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                     const void *stream, bool sync)
{
    char *to = runtime_symbol(symbol, offset);
    return to ? copy_row(to, from, bytes, stream, sync) : NONE_NOT_FOUND;
}
static int from_symbol(void *to, const void *symbol, size_t bytes, size_t offset,
                       const void *stream, bool sync)
{
    const char *from = runtime_symbol(symbol, offset);
    return from ? copy_row(to, from, bytes, stream, sync) : NONE_NOT_FOUND;
}
DEFAULT_FACE(cudaMemcpyToSymbol,
             (const void *symbol, const void *from, size_t bytes, size_t offset, int direction),
             ((void)direction, to_symbol(symbol, from, bytes, offset, none, true)))
STREAM_FACE(cudaMemcpyToSymbolAsync,
            (const void *symbol, const void *from, size_t bytes, size_t offset, int direction,
             void *stream),
            ((void)direction, to_symbol(symbol, from, bytes, offset, ON(stream), false)))
DEFAULT_FACE(cudaMemcpyFromSymbol,
             (void *to, const void *symbol, size_t bytes, size_t offset, int direction),
             ((void)direction, from_symbol(to, symbol, bytes, offset, none, true)))
STREAM_FACE(cudaMemcpyFromSymbolAsync,
            (void *to, const void *symbol, size_t bytes, size_t offset, int direction,
             void *stream),
            ((void)direction, from_symbol(to, symbol, bytes, offset, ON(stream), false)))
RESULT(cudaGetSymbolAddress, (void **out, const void *symbol),
       (*out = runtime_symbol(symbol, 0), *out ? NONE_OK : NONE_NOT_FOUND))
FACE(int, cudaGetSymbolSize, (size_t * out, const void *symbol))
{
    void *address;
    return runtime_end(none_variable_find(symbol, &address, out) ? NONE_OK : NONE_NOT_FOUND);
}

/* ---- graphs -------------------------------------------------------------------------------------------- */

STREAM_FACE(cudaStreamBeginCapture, (void *stream, int mode),
            none_capture_begin(ON(stream), NULL, mode))
static int capture_into(const void *stream, void *graph, size_t count, int mode)
{
    if (count > 0)
        none_missing("cudaStreamBeginCaptureToGraph", "nodes in front of what is captured");
    return none_capture_begin(stream, graph, mode);
}
STREAM_FACE(cudaStreamBeginCaptureToGraph,
            (void *stream, void *graph, const void *nodes, const void *edges, size_t count,
             int mode),
            ((void)nodes, (void)edges, capture_into(ON(stream), graph, count, mode)))
STREAM_FACE(cudaStreamEndCapture, (void *stream, void **out),
            none_capture_end(ON(stream), (struct none_graph **)out))
static int is_capturing(const void *stream, int *out)
{
    uint64_t id;
    struct none_graph *graph;
    void *const *nodes;
    size_t count;
    *out = none_capture_state(stream, &id, &graph, &nodes, &count);
    return NONE_OK;
}
STREAM_FACE(cudaStreamIsCapturing, (void *stream, int *out), is_capturing(ON(stream), out))
static int capture_info(const void *stream, int *state, unsigned long long *id_out,
                        void **graph_out, void *const **nodes_out, size_t *count_out)
{
    uint64_t id;
    struct none_graph *graph;
    void *const *nodes;
    size_t count;
    *state = none_capture_state(stream, &id, &graph, &nodes, &count);
    if (id_out)
        *id_out = id;
    if (graph_out)
        *graph_out = graph;
    if (nodes_out)
        *nodes_out = nodes;
    if (count_out)
        *count_out = count;
    return NONE_OK;
}
STREAM_FACE(cudaStreamGetCaptureInfo_v2,
            (void *stream, int *state, unsigned long long *id, void **graph, void *const **nodes,
             size_t *count),
            capture_info(ON(stream), state, id, graph, nodes, count))
static int capture_info_edges(const void *stream, int *state, unsigned long long *id, void **graph,
                              void *const **nodes, const void **edges, size_t *count)
{
    if (edges)
        *edges = NULL;
    return capture_info(stream, state, id, graph, nodes, count);
}
STREAM_FACE(cudaStreamGetCaptureInfo_v3,
            (void *stream, int *state, unsigned long long *id, void **graph, void *const **nodes,
             const void **edges, size_t *count),
            capture_info_edges(ON(stream), state, id, graph, nodes, edges, count))
/* CUDA 13: as _v3. */
STREAM_FACE(cudaStreamGetCaptureInfo,
            (void *stream, int *state, unsigned long long *id, void **graph, void *const **nodes,
             const void **edges, size_t *count),
            runtime_major < 13
                ? capture_info(ON(stream), state, id, NULL, NULL, NULL)
                : capture_info_edges(ON(stream), state, id, graph, nodes, edges, count))
RESULT(cudaThreadExchangeStreamCaptureMode, (int *mode),
       (*mode = none_exchange_capture_mode(*mode), NONE_OK))
RESULT(cudaGraphCreate, (void **out, unsigned flags),
       (*out = none_graph_new(), *out ? NONE_OK : NONE_NO_MEMORY))
RESULT(cudaGraphDestroy, (void *graph), (none_graph_release(graph), NONE_OK))
/* An executable graph is the graph: what is captured does not change. */
static int runtime_instantiate(void **out, void *graph)
{
    if (!graph)
        return NONE_INVALID_VALUE;
    none_graph_keep(graph);
    *out = graph;
    return NONE_OK;
}
RESULT(cudaGraphInstantiate, (void **out, void *graph, unsigned long long flags),
       runtime_instantiate(out, graph))
RESULT(cudaGraphInstantiateWithFlags, (void **out, void *graph, unsigned long long flags),
       runtime_instantiate(out, graph))
RESULT(cudaGraphExecDestroy, (void *graph), (none_graph_release(graph), NONE_OK))
STREAM_FACE(cudaGraphUpload, (void *graph, void *stream),
            ((void)graph, none_push_kernel(ON(stream))))
STREAM_FACE(cudaGraphLaunch, (void *graph, void *stream), none_graph_launch(graph, ON(stream)))
RESULT(cudaGraphGetNodes, (void *graph, void **out, size_t *count),
       (*count = none_graph_nodes(graph, out, out ? *count : 0), NONE_OK))

/* Who frees what a graph uses: nobody has to. */
RESULT(cudaUserObjectCreate,
       (void **out, void *at, void (*destroy)(void *), unsigned count, unsigned flags),
       (*out = at, NONE_OK))
RESULT(cudaUserObjectRelease, (void *object, unsigned count), NONE_OK)
RESULT(cudaUserObjectRetain, (void *object, unsigned count), NONE_OK)
RESULT(cudaGraphRetainUserObject, (void *graph, void *object, unsigned count, unsigned flags),
       NONE_OK)
RESULT(cudaGraphReleaseUserObject, (void *graph, void *object, unsigned count), NONE_OK)
FACE(int, cudaDeviceGetGraphMemAttribute, (int device, int attribute, void *out))
{
    *(uint64_t *)out = 0;
    return NONE_OK;
}
RESULT(cudaDeviceSetGraphMemAttribute, (int device, int attribute, void *value), NONE_OK)
RESULT(cudaDeviceGraphMemTrim, (int device), NONE_OK)
