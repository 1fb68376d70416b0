/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime.c - emulated CUDA: not a GPU. The functions of cuda_runtime_api.h.
 *
 * Each begins with the lock taken and checks (is there a driver, is this process the owner, has the context
 * ended, is this call to fail?), has one effect, and ends.
 */
#include "emulation.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The driver's context that is current on a thread comes before the GPU that cudaSetDevice has chosen. */
static _Thread_local struct {
    int chosen;  /* by cudaSetDevice */
    int context; /* the number of its GPU + 1; 0: none is current */
    bool in_host_function;
    cudaError_t last;
} thread;

int call_gpu(void)
{
    return thread.context > 0 ? thread.context - 1 : thread.chosen;
}

static pthread_mutex_t host_functions = PTHREAD_MUTEX_INITIALIZER;

static int number_from(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text && *text ? atoi(text) : otherwise;
}

/* A real NCCL must not be used here: by default programs take the emulated one from cuda_emulation/, in
   their own folder or the one above. */
__attribute__((constructor)) static void choose_nccl(void)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof "cuda_emulation");
    if (length <= 0)
        return;
    path[length] = '\0';
    for (int above = 0; above < 2; above++) {
        char *name = strrchr(path, '/');
        if (!name)
            return;
        strcpy(name + 1, "cuda_emulation");
        if (access(path, F_OK) == 0) {
            setenv("SWSIM_NCCL", path, 0);
            return;
        }
        *name = '\0';
    }
}

/* As the driver reads the list: up to the first number that is no GPU's. NULL: all. */
static void show_gpus(const char *list)
{
    const int count = emulation.gpu_count;
    for (int gpu = 0; gpu < count; gpu++)
        emulation.of_machine[gpu] = gpu;
    for (emulation.gpu_count = list ? 0 : count; list && emulation.gpu_count < count;) {
        char *end;
        const long number = strtol(list, &end, 10);
        if (end == list || number < 0 || number >= count)
            return;
        emulation.of_machine[emulation.gpu_count++] = (int)number;
        if (*end != ',')
            return;
        list = end + 1;
    }
}

/* At the end of the process, which has used CUDA. */
static void tell_left(void)
{
    int streams = 0, events = 0;
    if (emulation.owner != getpid())
        return;
    emulation_lock();
    for (const struct CUstream_st *at = emulation.streams; at; at = at->next)
        streams += !at->closed && !stream_is_legacy(at);
    for (const struct CUevent_st *at = emulation.events; at; at = at->next)
        events++;
    handle_tell_left();
    emulation_unlock();
    if (streams + events > 0)
        emulation_misuse("%d streams and %d events have not been destroyed", streams, events);
}

/* The first use of CUDA; the lock is held. */
static void start(void)
{
    emulation.owner = getpid();
    emulation.gpu_count = number_from("SWSIM_EMULATED_GPUS", 1);
    if (emulation.gpu_count > EMULATION_MAX_GPUS)
        emulation_misuse("SWSIM_EMULATED_GPUS: at most %d", EMULATION_MAX_GPUS);
    show_gpus(getenv("CUDA_VISIBLE_DEVICES"));
    emulation.driver = number_from("SWSIM_EMULATED_DRIVER", CUDART_VERSION);
    emulation.most_contexts = number_from("SWSIM_EMULATION_CONTEXTS", 0);
    emulation.drift_ppm = number_from("SWSIM_EMULATION_DRIFT", 0);
    emulation.start_ns = emulation_now_ns();
    if (number_from("SWSIM_EMULATION_LEAKS", 0) > 0)
        atexit(tell_left);
    emulation.seed += (uint32_t)number_from("SWSIM_EMULATION_SEED", 1) * 7919;
}

cudaError_t call_end(cudaError_t error)
{
    emulation_unlock();
    if (error != cudaSuccess)
        thread.last = error;
    return error;
}

void call_tell(const char *function)
{
    const struct activity *profiler = atomic_load(&emulation_activity);
    if (profiler)
        profiler->called(function);
}

/* cudaSuccess with the lock held, or an error without it. */
cudaError_t call_begin_anyhow(const char *function)
{
    if (thread.in_host_function)
        return thread.last = cudaErrorNotPermitted;
    call_tell(function);
    cudaError_t error = fault_call(function);
    if (error != cudaSuccess)
        return thread.last = error;
    emulation_lock();
    if (emulation.owner == 0)
        start();
    if (emulation.owner != getpid())
        return call_end(cudaErrorInitializationError);
    if (emulation.driver / 1000 <
        CUDART_VERSION / 1000) /* within a major version any is accepted */
        return call_end(cudaErrorInsufficientDriver);
    return emulation.gpu_count > 0 ? cudaSuccess : call_end(cudaErrorNoDevice);
}

/* A GPU has a context from now on, which takes memory of it. The lock is held. */
static void need_context(int number, const char *function)
{
    int contexts = 0;
    emulation.gpus[number].has_context = true;
    for (int gpu = 0; gpu < emulation.gpu_count; gpu++)
        contexts += emulation.gpus[gpu].has_context;
    if (emulation.most_contexts > 0 && contexts > emulation.most_contexts)
        emulation_misuse("%s makes a context on GPU %d, one more than SWSIM_EMULATION_CONTEXTS=%d",
                         function, number, emulation.most_contexts);
}

cudaError_t call_begin(const char *function)
{
    cudaError_t error = call_begin_anyhow(function);
    if (error != cudaSuccess)
        return error;
    thread.context = call_gpu() + 1;
    need_context(call_gpu(), function);
    error = emulation.gpus[call_gpu()].error;
    return error == cudaSuccess ? cudaSuccess : call_end(error);
}

/* ---- devices and errors ------------------------------------------------------------------------- */

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 0;
    cudaError_t error = call_begin_anyhow(__func__);
    if (error != cudaSuccess)
        return error;
    *count = emulation.gpu_count;
    return call_end(cudaSuccess);
}

cudaError_t cudaSetDevice(int gpu)
{
    cudaError_t error = call_begin_anyhow(__func__);
    if (error != cudaSuccess)
        return error;
    if (gpu < 0 || gpu >= emulation.gpu_count)
        return call_end(cudaErrorInvalidDevice);
    thread.chosen = gpu;
    thread.context = gpu + 1;
    need_context(gpu, __func__);
    return call_end(emulation.gpus[gpu].error);
}

cudaError_t cudaGetDevice(int *gpu)
{
    cudaError_t error = call_begin_anyhow(__func__);
    if (error != cudaSuccess)
        return error;
    *gpu = call_gpu();
    return call_end(emulation.gpus[call_gpu()].error);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int gpu)
{
    cudaError_t error = call_begin_anyhow(__func__);
    if (error != cudaSuccess)
        return error;
    if (gpu < 0 || gpu >= emulation.gpu_count)
        return call_end(cudaErrorInvalidDevice);
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "%s", EMULATION_NAME);
    out->multiProcessorCount = 1;
    out->pciBusID = emulation.of_machine[gpu] + 1;
    out->uuid.bytes[0] = (char)(emulation.of_machine[gpu] + 1);
    return call_end(cudaSuccess);
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = number_from("SWSIM_EMULATED_DRIVER", CUDART_VERSION);
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

#define ERROR_LIST(X)                                                                              \
    X(cudaSuccess, "no error")                                                                     \
    X(cudaErrorInvalidValue, "invalid argument")                                                   \
    X(cudaErrorMemoryAllocation, "out of memory")                                                  \
    X(cudaErrorInitializationError, "initialization error")                                        \
    X(cudaErrorInvalidConfiguration, "invalid configuration argument")                             \
    X(cudaErrorInvalidDeviceFunction, "invalid device function")                                   \
    X(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version") \
    X(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device") \
    X(cudaErrorNoDevice, "no CUDA-capable device is detected")                                     \
    X(cudaErrorInvalidDevice, "invalid device ordinal")                                            \
    X(cudaErrorInvalidResourceHandle, "invalid resource handle")                                   \
    X(cudaErrorNotReady, "device not ready")                                                       \
    X(cudaErrorIllegalAddress, "an illegal memory access was encountered")                         \
    X(cudaErrorMisalignedAddress, "misaligned address")                                            \
    X(cudaErrorLaunchFailure, "unspecified launch failure")                                        \
    X(cudaErrorIllegalState, "the operation cannot be performed in the present state")             \
    X(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing")       \
    X(cudaErrorStreamCaptureInvalidated,                                                           \
      "operation failed due to a previous error during capture")                                   \
    X(cudaErrorStreamCaptureUnmatched, "the capture was not initiated in this stream")             \
    X(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work")                        \
    X(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream")  \
    X(cudaErrorStreamCaptureImplicit, "the default stream would depend on a capture")              \
    X(cudaErrorStreamCaptureWrongThread, "the capture was begun in another thread")                \
    X(cudaErrorCapturedEvent,                                                                      \
      "operation not permitted on an event last recorded in a capturing stream")                   \
    X(cudaErrorNotPermitted, "operation not permitted")                                            \
    X(cudaErrorUnknown, "unknown error")

const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
#define X(name, text)                                                                              \
    case name: return #name;
        ERROR_LIST(X)
#undef X
    default: return "unrecognized error code";
    }
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
#define X(name, text)                                                                              \
    case name: return text;
        ERROR_LIST(X)
#undef X
    default: return "unrecognized error code";
    }
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = thread.last;
    thread.last = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return thread.last;
}

cudaError_t cudaDeviceSynchronize(void)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    error = graph_forbids_all();
    if (error != cudaSuccess)
        return call_end(error);
    gpu_await(call_gpu());
    return call_end(emulation.gpus[call_gpu()].error);
}

/* Whether it waits is not said: a program must have waited itself. */
cudaError_t cudaDeviceReset(void)
{
    cudaError_t error = call_begin_anyhow(__func__);
    if (error != cudaSuccess)
        return error;
    const int gpu = call_gpu();
    for (const struct CUstream_st *at = emulation.streams; at; at = at->next)
        if (at->gpu == gpu && !stream_idle(at))
            emulation_misuse("cudaDeviceReset: GPU %d has work", gpu);
    pool_reset(gpu);
    memory_reset(gpu);
    emulation.gpus[gpu].has_context = false;
    emulation.gpus[gpu].error = cudaSuccess;
    return call_end(cudaSuccess);
}

/* ---- memory ------------------------------------------------------------------------------------- */

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    error = graph_forbids_all();
    if (error != cudaSuccess)
        return call_end(error);
    gpu_await(call_gpu());
    *out = NULL;
    return call_end(bytes > 0 ? memory_alloc_device(call_gpu(), bytes, out) : cudaSuccess);
}

cudaError_t cudaFree(void *address)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    if (!address) /* the usual way to create the context */
        return call_end(cudaSuccess);
    if (pool_free_now(address)) /* it waits for nothing */
        return call_end(cudaSuccess);
    error = graph_forbids_all();
    if (error != cudaSuccess)
        return call_end(error);
    gpu_await(call_gpu());
    if (!memory_free(address, true))
        emulation_misuse("cudaFree: %p is not from cudaMalloc, or has been freed", address);
    return call_end(cudaSuccess);
}

/* ---- queries of devices -------------------------------------------------------------------------- */

cudaError_t cudaDeviceGetAttribute(int *out, enum cudaDeviceAttr attribute, int gpu)
{
    cudaError_t error = call_begin_anyhow(__func__);
    if (error != cudaSuccess)
        return error;
    if (gpu < 0 || gpu >= emulation.gpu_count || attribute != cudaDevAttrMemoryPoolsSupported)
        return call_end(cudaErrorInvalidValue);
    *out = 1;
    return call_end(cudaSuccess);
}

cudaError_t cudaDeviceCanAccessPeer(int *out, int gpu, int other)
{
    cudaError_t error = call_begin_anyhow(__func__);
    if (error != cudaSuccess)
        return error;
    if (gpu < 0 || gpu >= emulation.gpu_count || other < 0 || other >= emulation.gpu_count)
        return call_end(cudaErrorInvalidDevice);
    *out = gpu != other;
    return call_end(cudaSuccess);
}

/* ---- memory of the host ------------------------------------------------------------------------- */

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    if (flags &
        ~(unsigned)(cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined))
        return call_end(cudaErrorInvalidValue);
    error = graph_forbids_all();
    if (error != cudaSuccess)
        return call_end(error);
    gpu_await(call_gpu());
    *out = NULL;
    return call_end(bytes > 0 ? memory_alloc_pinned(bytes, out) : cudaSuccess);
}

cudaError_t cudaFreeHost(void *address)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    if (!address)
        return call_end(cudaSuccess);
    error = graph_forbids_all();
    if (error != cudaSuccess)
        return call_end(error);
    gpu_await(call_gpu());
    if (!memory_free(address, false))
        emulation_misuse("cudaFreeHost: %p is not from cudaHostAlloc, or has been freed", address);
    return call_end(cudaSuccess);
}

/* The program's own memory becomes pinned where it is. */
cudaError_t cudaHostRegister(void *address, size_t bytes, unsigned flags)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    if (!address || bytes == 0 ||
        flags & ~(unsigned)(cudaHostRegisterPortable | cudaHostRegisterMapped))
        return call_end(cudaErrorInvalidValue);
    if (memory_is_pinned(address, 1) || memory_is_pinned((char *)address + bytes - 1, 1))
        return call_end(cudaErrorHostMemoryAlreadyRegistered);
    return call_end(memory_register(address, bytes));
}

cudaError_t cudaHostUnregister(void *address)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    return call_end(memory_unregister(address) ? cudaSuccess : cudaErrorHostMemoryNotRegistered);
}

/* One address space: the device has pinned memory where the host has it. */
cudaError_t cudaHostGetDevicePointer(void **out, void *address, unsigned flags)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    if (flags != 0 || !memory_is_pinned(address, 1))
        return call_end(cudaErrorInvalidValue);
    *out = address;
    return call_end(cudaSuccess);
}

/* ---- streams ------------------------------------------------------------------------------------ */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    if (flags & ~(unsigned)cudaStreamNonBlocking)
        return call_end(cudaErrorInvalidValue);
    *out = stream_new(call_gpu(), !(flags & cudaStreamNonBlocking));
    return call_end(*out ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaStreamCreate(cudaStream_t *out)
{
    return cudaStreamCreateWithFlags(out, cudaStreamDefault);
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned *flags)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    struct CUstream_st *stream = any_stream(handle, __func__);
    if (!stream)
        return call_end(cudaErrorMemoryAllocation);
    *flags = stream->blocking ? cudaStreamDefault : cudaStreamNonBlocking;
    return call_end(cudaSuccess);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle)
{
    cudaError_t error = call_begin_anyhow(__func__);
    if (error != cudaSuccess)
        return error;
    struct CUstream_st *stream = stream_of(handle, __func__);
    int gpu = stream->gpu;
    if (stream->graph)
        emulation_misuse("cudaStreamDestroy: the stream is being captured");
    stream_close(stream);
    return call_end(emulation.gpus[gpu].error);
}

static cudaError_t stream_query(cudaStream_t handle, const char *function)
{
    cudaError_t error = call_begin(function);
    if (error != cudaSuccess)
        return error;
    struct CUstream_st *stream = any_stream(handle, function);
    if (!stream)
        return call_end(cudaErrorMemoryAllocation);
    error = stream->graph ? graph_forbids(stream) : graph_forbids_all();
    if (error != cudaSuccess)
        return call_end(error);
    if (emulation.gpus[stream->gpu].error != cudaSuccess)
        return call_end(emulation.gpus[stream->gpu].error);
    return call_end(stream_idle(stream) ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaStreamQuery(cudaStream_t handle)
{
    return stream_query(handle, __func__);
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    struct CUstream_st *stream = any_stream(handle, __func__);
    if (!stream)
        return call_end(cudaErrorMemoryAllocation);
    error = stream->graph ? graph_forbids(stream) : graph_forbids_all();
    if (error != cudaSuccess)
        return call_end(error);
    int gpu = stream->gpu;
    stream_await(stream);
    return call_end(emulation.gpus[gpu].error);
}

struct host_function {
    cudaHostFn_t function;
    void *arg;
};

static cudaError_t run_host_function(struct CUstream_st *stream, void *payload)
{
    (void)stream;
    struct host_function call = *(struct host_function *)payload;
    pthread_mutex_lock(&host_functions);
    thread.in_host_function = true;
    call.function(call.arg);
    thread.in_host_function = false;
    pthread_mutex_unlock(&host_functions);
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void *arg)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    struct CUstream_st *stream = any_stream(handle, __func__);
    if (!stream)
        return call_end(cudaErrorMemoryAllocation);
    if (!function)
        return call_end(cudaErrorInvalidValue);
    struct host_function call = {.function = function, .arg = arg};
    return call_end(stream_push_work(stream, run_host_function, &call, sizeof call, ACTIVITY_NONE));
}

/* ---- events ------------------------------------------------------------------------------------- */

struct CUevent_st *event_of(cudaEvent_t handle, const char *caller)
{
    for (struct CUevent_st *at = emulation.events; at; at = at->next)
        if (at == handle)
            return at;
    emulation_misuse("%s: %p is no event, or one that has been destroyed", caller, (void *)handle);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    if (flags & ~(unsigned)(cudaEventBlockingSync | cudaEventDisableTiming))
        return call_end(cudaErrorInvalidValue);
    struct CUevent_st *event = calloc(1, sizeof *event);
    if (!event)
        return call_end(cudaErrorMemoryAllocation);
    event->gpu = call_gpu();
    event->timed = !(flags & cudaEventDisableTiming);
    event->next = emulation.events;
    emulation.events = event;
    *out = event;
    return call_end(cudaSuccess);
}

cudaError_t cudaEventDestroy(cudaEvent_t handle)
{
    cudaError_t error = call_begin_anyhow(__func__);
    if (error != cudaSuccess)
        return error;
    struct CUevent_st *event = event_of(handle, __func__), **link = &emulation.events;
    while (*link != event)
        link = &(*link)->next;
    *link = event->next;
    error = emulation.gpus[event->gpu].error;
    point_release(event->last);
    free(event);
    return call_end(error);
}

/* Event and stream must be of one GPU. */
cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    struct CUevent_st *event = event_of(handle, __func__);
    struct CUstream_st *stream = any_stream(stream_handle, __func__);
    if (!stream || stream->gpu != event->gpu)
        return call_end(cudaErrorInvalidResourceHandle);
    error = stream_keep_legacy_order(stream);
    struct point *point = error == cudaSuccess ? stream_mark(stream) : NULL;
    if (!point)
        return call_end(error != cudaSuccess ? error : cudaErrorMemoryAllocation);
    point_release(event->last);
    event->last = point;
    return call_end(cudaSuccess);
}

/* External, in a captured stream: a node that records the event at every launch. */
cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t stream_handle, unsigned flags)
{
    if (flags == cudaEventRecordDefault)
        return cudaEventRecord(handle, stream_handle);
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    struct CUevent_st *event = event_of(handle, __func__);
    struct CUstream_st *stream = any_stream(stream_handle, __func__);
    if (!stream || stream->gpu != event->gpu)
        return call_end(cudaErrorInvalidResourceHandle);
    if (flags != cudaEventRecordExternal || !stream->graph)
        return call_end(cudaErrorInvalidValue);
    return call_end(graph_add_record(stream, event) ? cudaSuccess : cudaErrorMemoryAllocation);
}

/* A stream does not wait for an event that was never recorded. External, in a captured stream: a node that waits at every
   launch for what the event means then. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t handle, unsigned flags)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    struct CUevent_st *event = event_of(handle, __func__);
    struct CUstream_st *stream = any_stream(stream_handle, __func__);
    if (!stream)
        return call_end(cudaErrorMemoryAllocation);
    if (flags == cudaEventWaitExternal && stream->graph)
        return call_end(graph_add_wait(stream, event) ? cudaSuccess : cudaErrorMemoryAllocation);
    if (flags != 0)
        return call_end(cudaErrorInvalidValue);
    error = event->last ? graph_join(stream, event->last) : cudaSuccess;
    if (error != cudaSuccess || !event->last)
        return call_end(error);
    return call_end(stream_wait_for(stream, event->last));
}

static cudaError_t event_query(cudaEvent_t handle, const char *function)
{
    cudaError_t error = call_begin(function);
    if (error != cudaSuccess)
        return error;
    const struct CUevent_st *event = event_of(handle, function);
    if (emulation.gpus[event->gpu].error != cudaSuccess)
        return call_end(emulation.gpus[event->gpu].error);
    if (event->last && event->last->capture)
        return call_end(cudaErrorCapturedEvent);
    error = graph_forbids_all();
    if (error != cudaSuccess)
        return call_end(error);
    return call_end(!event->last || event->last->done ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaEventQuery(cudaEvent_t handle)
{
    return event_query(handle, __func__);
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    const struct CUevent_st *event = event_of(handle, __func__);
    const struct gpu *gpu = &emulation.gpus[event->gpu];
    struct point *point = event->last;
    if (!point)
        return call_end(cudaSuccess);
    if (point->capture)
        return call_end(cudaErrorCapturedEvent);
    error = graph_forbids_all();
    if (error != cudaSuccess)
        return call_end(error);
    point->references++;
    while (!point->done && gpu->error == cudaSuccess)
        pthread_cond_wait(&emulation.changed, &emulation.lock);
    point_release(point);
    return call_end(gpu->error);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from_handle, cudaEvent_t to_handle)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    const struct CUevent_st *from = event_of(from_handle, __func__);
    const struct CUevent_st *to = event_of(to_handle, __func__);
    if (!from->last || !to->last || !from->timed || !to->timed || from->gpu != to->gpu)
        return call_end(cudaErrorInvalidResourceHandle);
    if (from->last->capture || to->last->capture)
        return call_end(cudaErrorCapturedEvent);
    if (!from->last->done || !to->last->done)
        return call_end(cudaErrorNotReady);
    *ms = (float)((double)(to->last->time_ns - from->last->time_ns) / 1e6);
    return call_end(cudaSuccess);
}

/* ---- queries of the driver ---------------------------------------------------------------------- */

/* The driver's queries leave the runtime's last error alone, and make no context. */
static cudaError_t as_driver(cudaError_t (*query)(void *handle), void *handle)
{
    if (thread.context == 0)
        return cudaErrorDeviceUninitialized; /* CUDA_ERROR_INVALID_CONTEXT */
    cudaError_t last = thread.last, answer = query(handle);
    thread.last = last;
    return answer;
}

static cudaError_t query_event(void *handle)
{
    return event_query(handle, "cudaEventQuery");
}

static cudaError_t query_stream(void *handle)
{
    return stream_query(handle, "cudaStreamQuery");
}

static int driver_event_query(cudaEvent_t event)
{
    return (int)as_driver(query_event, event);
}

static int driver_stream_query(cudaStream_t stream)
{
    return (int)as_driver(query_stream, stream);
}

static int driver_exchange_mode(enum cudaStreamCaptureMode *mode)
{
    emulation_lock();
    const bool unused = emulation.owner == 0;
    emulation_unlock();
    return unused ? cudaErrorInitializationError : (int)cudaThreadExchangeStreamCaptureMode(mode);
}

/* A context is a number of no other use; those of the driver's functions that this file has make nothing else of it. */
static int driver_get_current(void **out)
{
    emulation_lock();
    const bool unused = emulation.owner == 0;
    emulation_unlock();
    *out = thread.context > 0 ? (void *)&emulation.gpus[thread.context - 1] : NULL;
    return unused ? cudaErrorInitializationError : cudaSuccess;
}

static int driver_set_current(void *context)
{
    const struct gpu *gpu = context;
    emulation_lock();
    if (gpu &&
        (gpu < emulation.gpus || gpu >= emulation.gpus + emulation.gpu_count || !gpu->has_context))
        emulation_misuse("cuCtxSetCurrent: %p is no context", context);
    emulation_unlock();
    thread.context = gpu ? (int)(gpu - emulation.gpus) + 1 : 0;
    return cudaSuccess;
}

static int driver_retain(void **out, int gpu)
{
    const cudaError_t error = fault_call("cuDevicePrimaryCtxRetain");
    if (error != cudaSuccess)
        return (int)error;
    emulation_lock();
    const bool exists = gpu >= 0 && gpu < emulation.gpu_count;
    if (exists)
        need_context(gpu, "cuDevicePrimaryCtxRetain");
    emulation_unlock();
    *out = exists ? &emulation.gpus[gpu] : NULL;
    return exists ? cudaSuccess : cudaErrorInvalidDevice;
}

static int driver_device(int *out, int number)
{
    *out = number;
    return number < emulation.gpu_count ? cudaSuccess : cudaErrorInvalidDevice;
}

/* The functions of the driver that are given out. */
static const struct {
    const char *name;
    void (*function)(void);
} given[] = {
    {"cuThreadExchangeStreamCaptureMode", (void (*)(void))driver_exchange_mode},
    {"cuEventQuery", (void (*)(void))driver_event_query},
    {"cuStreamQuery", (void (*)(void))driver_stream_query},
    {"cuCtxGetCurrent", (void (*)(void))driver_get_current},
    {"cuCtxSetCurrent", (void (*)(void))driver_set_current},
    {"cuDeviceGet", (void (*)(void))driver_device},
    {"cuDevicePrimaryCtxRetain", (void (*)(void))driver_retain},
};

static cudaError_t entry_point(const char *function, const char *symbol, void **out,
                               enum cudaDriverEntryPointQueryResult *result)
{
    cudaError_t error = call_begin_anyhow(function);
    if (error != cudaSuccess)
        return error;
    *result = cudaDriverEntryPointSymbolNotFound;
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (strcmp(symbol, given[i].name) == 0) {
            memcpy(out, &given[i].function, sizeof *out);
            *result = cudaDriverEntryPointSuccess;
        }
    return call_end(cudaSuccess);
}

#if CUDART_VERSION >= 12050
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **out, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *result)
{
    (void)version;
    (void)flags;
    return entry_point(__func__, symbol, out, result);
}
#else
cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **out, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *result)
{
    (void)flags;
    return entry_point(__func__, symbol, out, result);
}
#endif

/* ---- kernels ------------------------------------------------------------------------------------ */

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *out, const void *function)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    if (!kernel_known(function))
        return call_end(cudaErrorInvalidDeviceFunction);
    memset(out, 0, sizeof *out);
    kernel_loaded(function);
    return call_end(cudaSuccess);
}

/* Arguments stand behind each other, aligned as their sizes. */
cudaError_t cudaFuncGetParamInfo(const void *function, size_t index, size_t *offset, size_t *bytes)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    if (!kernel_known(function))
        return call_end(cudaErrorInvalidDeviceFunction);
    *offset = 0;
    for (size_t i = 0; i <= index; i++) {
        *offset += i > 0 ? *bytes : 0;
        if (!kernel_argument(function, i, bytes))
            return call_end(cudaErrorInvalidValue);
        const size_t unit = *bytes < 8 ? *bytes : 8;
        *offset = (*offset + unit - 1) / unit * unit;
    }
    return call_end(cudaSuccess);
}

/* Code is loaded at its first use, and then the device must be idle. */
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **args)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    struct CUstream_st *stream = any_stream(config->stream, __func__);
    if (!kernel_known(function))
        return call_end(cudaErrorInvalidDeviceFunction);
    if (!stream || stream->gpu != call_gpu()) /* copies may go anywhere, kernels may not */
        return call_end(cudaErrorInvalidResourceHandle);
    if (!kernel_loaded(function)) {
        error = graph_forbids_all();
        if (error != cudaSuccess)
            return call_end(error);
        gpu_await(stream->gpu);
    }
    return call_end(kernel_launch(stream, config, function, args));
}
