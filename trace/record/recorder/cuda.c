/* SPDX-License-Identifier: Apache-2.0 */
/* cuda.c - the CUDA runtime's functions, as programs find them first. See calls.h. */
#include "calls.h"
#include "names.h"

struct dim3 {
    unsigned x, y, z;
};

/* ---- devices, streams, events ----------------------------------------------------------------- */

CALL(cudaSetDevice, (int device), (device), DEVICE, (word)device)
CALL(cudaDeviceSynchronize, (void), (), SYNC_DEVICE, 0)
CALL(cudaThreadSynchronize, (void), (), SYNC_DEVICE, 0)
CALL(cudaDeviceReset, (void), (), RESET, 0)
CALL(cudaThreadExit, (void), (), RESET, 0)

CALL(cudaStreamCreate, (handle * out), (out), STREAM, WORD_OF(*out), 0)
CALL(cudaStreamCreateWithFlags, (handle * out, unsigned flags), (out, flags), STREAM, WORD_OF(*out),
     flags)
CALL(cudaStreamCreateWithPriority, (handle * out, unsigned flags, int priority),
     (out, flags, priority), STREAM, WORD_OF(*out), flags)
CALL(cudaStreamDestroy, (handle stream), (stream), STREAM_END, WORD_OF(stream))
ON_STREAM(cudaStreamSynchronize, (handle stream), (stream), SYNC_STREAM, ON(stream))
QUERY_STREAM(cudaStreamQuery)
ON_STREAM(cudaStreamWaitEvent, (handle stream, handle event, unsigned flags),
          (stream, event, flags), WAIT, ON(stream), WORD_OF(event), flags)

CALL(cudaEventCreate, (handle * out), (out), EVENT, WORD_OF(*out), 0)
CALL(cudaEventCreateWithFlags, (handle * out, unsigned flags), (out, flags), EVENT, WORD_OF(*out),
     flags)
CALL(cudaEventDestroy, (handle event), (event), EVENT_END, WORD_OF(event))
CALL(cudaEventSynchronize, (handle event), (event), SYNC_EVENT, WORD_OF(event))
QUERY_EVENT(cudaEventQuery)
ON_STREAM(cudaEventRecord, (handle event, handle stream), (event, stream), RECORD, WORD_OF(event),
          ON(stream), 0)
ON_STREAM(cudaEventRecordWithFlags, (handle event, handle stream, unsigned flags),
          (event, stream, flags), RECORD, WORD_OF(event), ON(stream), flags)

/* A time between two events is there when both are done: a query of them. */
#define ELAPSED(name)                                                                              \
    QUERY(name, 0, (float *out, handle from, handle to), (out, from, to), QUERY_EVENT,             \
          WORD_OF(to), WORD_OF(from))
ELAPSED(cudaEventElapsedTime)
ELAPSED(cudaEventElapsedTime_v2)
ELAPSED(cuEventElapsedTime)
ELAPSED(cuEventElapsedTime_v2)

/* ---- memory ----------------------------------------------------------------------------------- */

struct cuda_pitched {
    void *address;
    size_t pitch, width, height;
};
struct cuda_extent {
    size_t width, height, depth;
};

CALL(cudaMalloc, (handle * out, size_t bytes), (out, bytes), ALLOC, WORD_OF(*out), bytes,
     RECORDING_MEMORY_DEVICE)
CALL(cudaMallocPitch, (handle * out, size_t *pitch, size_t width, size_t height),
     (out, pitch, width, height), ALLOC, WORD_OF(*out), *pitch *height, RECORDING_MEMORY_DEVICE)
CALL(cudaMalloc3D, (struct cuda_pitched * out, struct cuda_extent extent), (out, extent), ALLOC,
     WORD_OF(out->address), out->pitch *extent.height *extent.depth, RECORDING_MEMORY_DEVICE)
CALL(cudaMallocManaged, (handle * out, size_t bytes, unsigned flags), (out, bytes, flags), ALLOC,
     WORD_OF(*out), bytes, RECORDING_MEMORY_MANAGED)
CALL(cudaMallocHost, (handle * out, size_t bytes), (out, bytes), ALLOC, WORD_OF(*out), bytes,
     RECORDING_MEMORY_PINNED)
CALL(cudaHostAlloc, (handle * out, size_t bytes, unsigned flags), (out, bytes, flags), ALLOC,
     WORD_OF(*out), bytes, RECORDING_MEMORY_PINNED)
CALL(cudaHostRegister, (handle address, size_t bytes, unsigned flags), (address, bytes, flags),
     ALLOC, WORD_OF(address), bytes, RECORDING_MEMORY_REGISTERED)
ON_STREAM(cudaMallocAsync, (handle * out, size_t bytes, handle stream), (out, bytes, stream),
          ALLOC_ASYNC, WORD_OF(*out), bytes, ON(stream))
ON_STREAM(cudaMallocFromPoolAsync, (handle * out, size_t bytes, handle pool, handle stream),
          (out, bytes, pool, stream), ALLOC_ASYNC, WORD_OF(*out), bytes, ON(stream))
CALL(cudaFree, (handle address), (address), FREE, WORD_OF(address), RECORDING_MEMORY_DEVICE)
CALL(cudaFreeHost, (handle address), (address), FREE, WORD_OF(address), RECORDING_MEMORY_PINNED)
/* Such memory has its own address on the device, but for registered one of some devices. */
#define DEVICE_POINTER(name)                                                                       \
    AROUND(name, LEGACY, (handle * out, handle address, unsigned flags), (out, address, flags),    \
           UNMODELLED, NOTHING,                                                                    \
           if (result == 0 && *out != address)                                                     \
               calls_end_unmodelled(&call, result, #name " with another address");                 \
           else tape_drop(&call))
DEVICE_POINTER(cudaHostGetDevicePointer)
DEVICE_POINTER(cuMemHostGetDevicePointer_v2)
CALL(cudaHostUnregister, (handle address), (address), FREE, WORD_OF(address),
     RECORDING_MEMORY_REGISTERED)
ON_STREAM(cudaFreeAsync, (handle address, handle stream), (address, stream), FREE_ASYNC,
          WORD_OF(address), ON(stream))

enum { DEFAULT_DIRECTION = 4 }; /* cudaMemcpyDefault */

ON_DEFAULT(cudaMemcpy, (handle to, const void *from, size_t bytes, int direction),
           (to, from, bytes, direction), COPY, none, WORD_OF(to), WORD_OF(from), bytes,
           (word)direction, 1)
ON_STREAM(cudaMemcpyAsync,
          (handle to, const void *from, size_t bytes, int direction, handle stream),
          (to, from, bytes, direction, stream), COPY, ON(stream), WORD_OF(to), WORD_OF(from), bytes,
          (word)direction, 0)
CALL(cudaMemcpyPeer, (handle to, int device, const void *from, int source, size_t bytes),
     (to, device, from, source, bytes), COPY, LEGACY, WORD_OF(to), WORD_OF(from), bytes,
     DEFAULT_DIRECTION, 0)
CALL(cudaMemcpyPeerAsync,
     (handle to, int device, const void *from, int source, size_t bytes, handle stream),
     (to, device, from, source, bytes, stream), COPY, stream ? WORD_OF(stream) : LEGACY,
     WORD_OF(to), WORD_OF(from), bytes, DEFAULT_DIRECTION, 0)
ON_DEFAULT(cudaMemcpyToSymbol,
           (const void *symbol, const void *from, size_t bytes, size_t offset, int direction),
           (symbol, from, bytes, offset, direction), COPY, none, WORD_OF(symbol) + offset,
           WORD_OF(from), bytes, (word)direction, 1)
ON_STREAM(cudaMemcpyToSymbolAsync,
          (const void *symbol, const void *from, size_t bytes, size_t offset, int direction,
           handle stream),
          (symbol, from, bytes, offset, direction, stream), COPY, ON(stream),
          WORD_OF(symbol) + offset, WORD_OF(from), bytes, (word)direction, 0)
ON_DEFAULT(cudaMemcpyFromSymbol,
           (handle to, const void *symbol, size_t bytes, size_t offset, int direction),
           (to, symbol, bytes, offset, direction), COPY, none, WORD_OF(to),
           WORD_OF(symbol) + offset, bytes, (word)direction, 1)
ON_STREAM(cudaMemcpyFromSymbolAsync,
          (handle to, const void *symbol, size_t bytes, size_t offset, int direction,
           handle stream),
          (to, symbol, bytes, offset, direction, stream), COPY, ON(stream), WORD_OF(to),
          WORD_OF(symbol) + offset, bytes, (word)direction, 0)
ON_DEFAULT(cudaMemset, (handle to, int value, size_t bytes), (to, value, bytes), FILL, none,
           WORD_OF(to), 0, bytes, 1)
ON_STREAM(cudaMemsetAsync, (handle to, int value, size_t bytes, handle stream),
          (to, value, bytes, stream), FILL, ON(stream), WORD_OF(to), 0, bytes, 1)

/* ---- kernels ---------------------------------------------------------------------------------- */

struct cuda_launch_config {
    struct dim3 grid, block;
    size_t shared;
    handle stream;
    const struct launch_attribute *attributes;
    unsigned count;
};

#define LAUNCH(name)                                                                               \
    AROUND_STREAM(name,                                                                            \
                  (const void *kernel, struct dim3 grid, struct dim3 block, void **args,           \
                   size_t shared, handle stream),                                                  \
                  (kernel, grid, block, args, shared, stream), LAUNCH, NOTHING,                    \
                  calls_end_launch(&call, result, ON(stream), kernel, args, false))
LAUNCH(cudaLaunchKernel)
LAUNCH(cudaLaunchCooperativeKernel)
LAUNCH(__cudaLaunchKernel)

AROUND_STREAM(cudaLaunchKernelExC,
              (const struct cuda_launch_config *config, const void *kernel, void **args),
              (config, kernel, args), LAUNCH, NOTHING,
              calls_end_launch(&call, result, ON(config->stream), kernel, args, false);
              calls_note_attributes(&call, result, "cudaLaunchKernelExC", config->attributes,
                                    config->count))

#define ALIAS(name)                                                                                \
    AFTER(name, (handle * out, const void *function), (out, function), names_alias(*out, function))
ALIAS(__cudaGetKernel)
ALIAS(cudaGetKernel)
ALIAS(cudaGetFuncBySymbol)

/* Called by what nvcc puts into every program, before main. */
void __cudaRegisterFunction(handle *binary, const char *function, char *device, const char *name,
                            int threads, void *thread, void *block, void *block_size,
                            void *grid_size, int *warp);
void __cudaRegisterFunction(handle *binary, const char *function, char *device, const char *name,
                            int threads, void *thread, void *block, void *block_size,
                            void *grid_size, int *warp)
{
    static void (*real)(handle *, const char *, char *, const char *, int, void *, void *, void *,
                        void *, int *);
    if (!real_find(&real, "__cudaRegisterFunction"))
        return;
    real(binary, function, device, name, threads, thread, block, block_size, grid_size, warp);
    names_register(function, name);
}

/* ---- host functions --------------------------------------------------------------------------- */

HOST_CALL(cudaLaunchHostFunc, LEGACY, cudaStreamIsCapturing)
HOST_CALL(cudaLaunchHostFunc_ptsz, PER_THREAD, cudaStreamIsCapturing)

CALLBACK(cudaStreamAddCallback, LEGACY)
CALLBACK(cudaStreamAddCallback_ptsz, PER_THREAD)

/* ---- graphs ----------------------------------------------------------------------------------- */

CAPTURE(cudaStreamBeginCapture)

CAPTURE_TO_GRAPH(cudaStreamBeginCaptureToGraph)

CAPTURE_END(cudaStreamEndCapture)

/* Its arguments behind the graph differ between versions. */
CALL(cudaGraphInstantiate, (handle * out, handle graph, word a, word b, word c),
     (out, graph, a, b, c), GRAPH, WORD_OF(*out), WORD_OF(graph))
CALL(cudaGraphInstantiateWithFlags, (handle * out, handle graph, word flags), (out, graph, flags),
     GRAPH, WORD_OF(*out), WORD_OF(graph))
ON_STREAM(cudaGraphInstantiateWithParams, (handle * out, handle graph, handle params),
          (out, graph, params), GRAPH, WORD_OF(*out), WORD_OF(graph))
CALL(cudaGraphExecUpdate, (handle executable, handle graph, word a, word b),
     (executable, graph, a, b), GRAPH, WORD_OF(executable), WORD_OF(graph))
ON_STREAM(cudaGraphLaunch, (handle graph, handle stream), (graph, stream), GRAPH_LAUNCH,
          WORD_OF(graph), ON(stream))
