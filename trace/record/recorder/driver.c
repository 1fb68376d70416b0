/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.c - the CUDA driver's functions, as programs find them first. See calls.h.
 *
 * Streams, events and addresses are those of the runtime. What the runtime itself asks of the driver is no call of the
 * program: symbols.c gives these functions to no library of NVIDIA's. Not tried on a GPU.
 */
#include <string.h>

#include <stdio.h>

#include "calls.h"
#include "names.h"
#include "symbols.h"

/* A call that makes another context current may change the thread's device. */
static void note_device(const struct tape_call *call)
{
    static int (*ask)(int *), (*ask_runtime)(int *);
    int device = 0;
    if (!call->outer)
        return;
    if ((real_find(&ask, "cuCtxGetDevice") && ask(&device) == 0) ||
        (real_find(&ask_runtime, "cudaGetDevice") && ask_runtime(&device) == 0))
        tape_put(RECORDING_DEVICE, 1, &(word){(word)device});
}

#define CONTEXT(name, PARAMS, ARGS)                                                                \
    AROUND(name, LEGACY, PARAMS, ARGS, DEVICE, NOTHING, if (result == 0) note_device(&call);       \
           tape_drop(&call))
CONTEXT(cuCtxCreate_v2, (handle * out, unsigned flags, int device), (out, flags, device))
CONTEXT(cuCtxCreate_v3, (handle * out, handle affinity, int count, unsigned flags, int device),
        (out, affinity, count, flags, device))
CONTEXT(cuCtxCreate_v4, (handle * out, handle params, unsigned flags, int device),
        (out, params, flags, device))
CONTEXT(cuCtxSetCurrent, (handle context), (context))
CONTEXT(cuCtxPushCurrent_v2, (handle context), (context))
CONTEXT(cuCtxPopCurrent_v2, (handle * out), (out))
CALL(cuCtxSynchronize, (void), (), SYNC_DEVICE, 0)

static void end_context_sync(const struct tape_call *call, int result, handle context)
{
    static int (*ask)(handle *);
    handle current = NULL;
    if (result == 0 && real_find(&ask, "cuCtxGetCurrent") && ask(&current) == 0 &&
        (!context || context == current))
        calls_end(call, RECORDING_SYNC_DEVICE, 0, &(word){0});
    else
        calls_end_unmodelled(call, result, "cuCtxSynchronize_v2 with another context");
}
AROUND(cuCtxSynchronize_v2, LEGACY, (handle context), (context), SYNC_DEVICE, NOTHING,
       end_context_sync(&call, result, context))

/* ---- streams and events ----------------------------------------------------------------------- */

CALL(cuStreamCreate, (handle * out, unsigned flags), (out, flags), STREAM, WORD_OF(*out), flags)
CALL(cuStreamCreateWithPriority, (handle * out, unsigned flags, int priority),
     (out, flags, priority), STREAM, WORD_OF(*out), flags)
CALL(cuStreamDestroy_v2, (handle stream), (stream), STREAM_END, WORD_OF(stream))
ON_STREAM(cuStreamSynchronize, (handle stream), (stream), SYNC_STREAM, ON(stream))
QUERY_STREAM(cuStreamQuery)
ON_STREAM(cuStreamWaitEvent, (handle stream, handle event, unsigned flags), (stream, event, flags),
          WAIT, ON(stream), WORD_OF(event), flags)
CALL(cuEventCreate, (handle * out, unsigned flags), (out, flags), EVENT, WORD_OF(*out), flags)
CALL(cuEventDestroy_v2, (handle event), (event), EVENT_END, WORD_OF(event))
CALL(cuEventSynchronize, (handle event), (event), SYNC_EVENT, WORD_OF(event))
QUERY_EVENT(cuEventQuery)
ON_STREAM(cuEventRecord, (handle event, handle stream), (event, stream), RECORD, WORD_OF(event),
          ON(stream), 0)
ON_STREAM(cuEventRecordWithFlags, (handle event, handle stream, unsigned flags),
          (event, stream, flags), RECORD, WORD_OF(event), ON(stream), flags)

/* ---- values in memory, by which streams wait for each other ------------------------------------ */

#define VALUES(name, type, KIND)                                                                   \
    ON_STREAM(name, (handle stream, word address, type value, unsigned flags),                     \
              (stream, address, value, flags), KIND, ON(stream), address, sizeof value, value,     \
              flags)
VALUES(cuStreamWriteValue32, uint32_t, WRITE_VALUE)
VALUES(cuStreamWriteValue32_v2, uint32_t, WRITE_VALUE)
VALUES(cuStreamWriteValue64, uint64_t, WRITE_VALUE)
VALUES(cuStreamWriteValue64_v2, uint64_t, WRITE_VALUE)
VALUES(cuStreamWaitValue32, uint32_t, WAIT_VALUE)
VALUES(cuStreamWaitValue32_v2, uint32_t, WAIT_VALUE)
VALUES(cuStreamWaitValue64, uint64_t, WAIT_VALUE)
VALUES(cuStreamWaitValue64_v2, uint64_t, WAIT_VALUE)

/* CUstreamBatchMemOpParams */
struct memory_operation {
    unsigned kind;
    word address, value; /* the value may be of 32 bits */
    unsigned flags;
    word alias, pad;
};
enum { WAIT_32 = 1, WRITE_32 = 2, FLUSH = 3, WAIT_64 = 4, WRITE_64 = 5, BARRIER = 6 };

static void note_operation(const struct tape_call *call, word stream,
                           const struct memory_operation *op)
{
    const bool is_short = op->kind == WAIT_32 || op->kind == WRITE_32;
    const word value = is_short ? (uint32_t)op->value : op->value;
    switch (op->kind) {
    case FLUSH:
    case BARRIER: return; /* they order nothing on their stream that it does not order */
    case WAIT_32:
    case WAIT_64:
    case WRITE_32:
    case WRITE_64:
        tape_put(op->kind == WAIT_32 || op->kind == WAIT_64 ? RECORDING_WAIT_VALUE
                                                            : RECORDING_WRITE_VALUE,
                 WORDS(stream, op->address, is_short ? 4 : 8, value, op->flags));
        return;
    default: calls_note_unmodelled(call, "cuStreamBatchMemOp with an operation that is not known");
    }
}

#define OPERATIONS(name)                                                                           \
    AROUND_STREAM(                                                                                 \
        name,                                                                                      \
        (handle stream, unsigned count, const struct memory_operation *list, unsigned flags),      \
        (stream, count, list, flags), WRITE_VALUE, NOTHING,                                        \
        for (unsigned i = 0; result == 0 && call.outer && i < count; i++)                          \
            note_operation(&call, ON(stream), &list[i]);                                           \
        tape_drop(&call))
OPERATIONS(cuStreamBatchMemOp)
OPERATIONS(cuStreamBatchMemOp_v2)

/* ---- memory ----------------------------------------------------------------------------------- */

CALL(cuMemAlloc_v2, (word * out, size_t bytes), (out, bytes), ALLOC, *out, bytes,
     RECORDING_MEMORY_DEVICE)
CALL(cuMemAllocPitch_v2, (word * out, size_t *pitch, size_t width, size_t height, unsigned element),
     (out, pitch, width, height, element), ALLOC, *out, *pitch *height, RECORDING_MEMORY_DEVICE)
CALL(cuMemAllocManaged, (word * out, size_t bytes, unsigned flags), (out, bytes, flags), ALLOC,
     *out, bytes, RECORDING_MEMORY_MANAGED)
CALL(cuMemAllocHost_v2, (handle * out, size_t bytes), (out, bytes), ALLOC, WORD_OF(*out), bytes,
     RECORDING_MEMORY_PINNED)
CALL(cuMemHostAlloc, (handle * out, size_t bytes, unsigned flags), (out, bytes, flags), ALLOC,
     WORD_OF(*out), bytes, RECORDING_MEMORY_PINNED)
CALL(cuMemHostRegister_v2, (handle address, size_t bytes, unsigned flags), (address, bytes, flags),
     ALLOC, WORD_OF(address), bytes, RECORDING_MEMORY_REGISTERED)
ON_STREAM(cuMemAllocAsync, (word * out, size_t bytes, handle stream), (out, bytes, stream),
          ALLOC_ASYNC, *out, bytes, ON(stream))
ON_STREAM(cuMemAllocFromPoolAsync, (word * out, size_t bytes, handle pool, handle stream),
          (out, bytes, pool, stream), ALLOC_ASYNC, *out, bytes, ON(stream))
CALL(cuMemFree_v2, (word address), (address), FREE, address, RECORDING_MEMORY_DEVICE)
CALL(cuMemFreeHost, (handle address), (address), FREE, WORD_OF(address), RECORDING_MEMORY_PINNED)
CALL(cuMemHostUnregister, (handle address), (address), FREE, WORD_OF(address),
     RECORDING_MEMORY_REGISTERED)
ON_STREAM(cuMemFreeAsync, (word address, handle stream), (address, stream), FREE_ASYNC, address,
          ON(stream))

/* CUmemAllocationProp */
struct physical {
    int type, handles, location, id;
};
enum { OF_DEVICE = 1 };

CALL(cuMemCreate, (word * out, size_t bytes, const struct physical *of, word flags),
     (out, bytes, of, flags), PHYSICAL, *out, bytes,
     of->location == OF_DEVICE ? RECORDING_MEMORY_DEVICE : RECORDING_MEMORY_MANAGED,
     of->location == OF_DEVICE ? (word)of->id : 0)
CALL(cuMemRetainAllocationHandle, (word * out, handle address), (out, address), PHYSICAL_KEPT, *out)
CALL(cuMemRelease, (word physical), (physical), PHYSICAL_END, physical)
CALL(cuMemMap, (word address, size_t bytes, size_t offset, word physical, word flags),
     (address, bytes, offset, physical, flags), MAP, address, bytes, physical, offset)
CALL(cuMemUnmap, (word address, size_t bytes), (address, bytes), UNMAP, address, bytes)

enum { TO_DEVICE = 1, TO_HOST = 2, ON_DEVICE = 3, BY_ADDRESS = 4 };

ON_DEFAULT(cuMemcpy, (word to, word from, size_t bytes), (to, from, bytes), COPY, none, to, from,
           bytes, BY_ADDRESS, 1)
ON_STREAM(cuMemcpyAsync, (word to, word from, size_t bytes, handle stream),
          (to, from, bytes, stream), COPY, ON(stream), to, from, bytes, BY_ADDRESS, 0)
ON_DEFAULT(cuMemcpyHtoD_v2, (word to, const void *from, size_t bytes), (to, from, bytes), COPY,
           none, to, WORD_OF(from), bytes, TO_DEVICE, 1)
ON_STREAM(cuMemcpyHtoDAsync_v2, (word to, const void *from, size_t bytes, handle stream),
          (to, from, bytes, stream), COPY, ON(stream), to, WORD_OF(from), bytes, TO_DEVICE, 0)
ON_DEFAULT(cuMemcpyDtoH_v2, (handle to, word from, size_t bytes), (to, from, bytes), COPY, none,
           WORD_OF(to), from, bytes, TO_HOST, 1)
ON_STREAM(cuMemcpyDtoHAsync_v2, (handle to, word from, size_t bytes, handle stream),
          (to, from, bytes, stream), COPY, ON(stream), WORD_OF(to), from, bytes, TO_HOST, 0)
ON_DEFAULT(cuMemcpyDtoD_v2, (word to, word from, size_t bytes), (to, from, bytes), COPY, none, to,
           from, bytes, ON_DEVICE, 0)
ON_STREAM(cuMemcpyDtoDAsync_v2, (word to, word from, size_t bytes, handle stream),
          (to, from, bytes, stream), COPY, ON(stream), to, from, bytes, ON_DEVICE, 0)

ON_DEFAULT(cuMemcpyPeer, (word to, handle to_context, word from, handle from_context, size_t bytes),
           (to, to_context, from, from_context, bytes), COPY, none, to, from, bytes, ON_DEVICE, 0)
ON_STREAM(cuMemcpyPeerAsync,
          (word to, handle to_context, word from, handle from_context, size_t bytes, handle stream),
          (to, to_context, from, from_context, bytes, stream), COPY, ON(stream), to, from, bytes,
          ON_DEVICE, 0)

/* `count` values of so many bytes */
#define FILLS(name, type, size)                                                                    \
    ON_DEFAULT(cuMemset##name##_v2, (word to, type value, size_t count), (to, value, count), FILL, \
               none, to, 0, count *size, 1)
#define FILLS_ASYNC(name, type, size)                                                              \
    ON_STREAM(cuMemset##name##Async, (word to, type value, size_t count, handle stream),           \
              (to, value, count, stream), FILL, ON(stream), to, 0, count *size, 1)
FILLS(D8, unsigned char, 1)
FILLS(D16, unsigned short, 2)
FILLS(D32, unsigned, 4)
FILLS_ASYNC(D8, unsigned char, 1)
FILLS_ASYNC(D16, unsigned short, 2)
FILLS_ASYNC(D32, unsigned, 4)

/* ---- kernels ---------------------------------------------------------------------------------- */

#define NAMED(name, PARAMS, ARGS, note) AFTER(name, PARAMS, ARGS, if (tape_on()) note)
NAMED(cuModuleGetFunction, (handle * out, handle module, const char *name), (out, module, name),
      names_register(*out, name))
NAMED(cuLibraryGetKernel, (handle * out, handle library, const char *name), (out, library, name),
      names_register(*out, name))
NAMED(cuKernelGetFunction, (handle * out, handle kernel), (out, kernel), names_alias(*out, kernel))

/* A variable of the program's is memory of the device. */
CALL(cuModuleGetGlobal_v2, (word * out, size_t *bytes, handle module, const char *name),
     (out, bytes, module, name), ALLOC, out ? *out : 0, bytes ? *bytes : 0, RECORDING_MEMORY_DEVICE)

/* Arguments that are packed are not looked into. */
static void end_launch(const struct tape_call *call, int result, word stream, handle function,
                       void **args, void **packed)
{
    if (result == 0 && packed && !args)
        calls_note_unmodelled(call, "cuLaunchKernel with packed arguments");
    calls_end_launch(call, result, stream, function, args, true);
}

typedef unsigned dimension;
#define DIMENSIONS                                                                                 \
    dimension gx, dimension gy, dimension gz, dimension bx, dimension by, dimension bz,            \
        unsigned shared
AROUND_STREAM(cuLaunchKernel,
              (handle function, DIMENSIONS, handle stream, void **args, void **packed),
              (function, gx, gy, gz, bx, by, bz, shared, stream, args, packed), LAUNCH, NOTHING,
              end_launch(&call, result, ON(stream), function, args, packed))
AROUND_STREAM(cuLaunchCooperativeKernel, (handle function, DIMENSIONS, handle stream, void **args),
              (function, gx, gy, gz, bx, by, bz, shared, stream, args), LAUNCH, NOTHING,
              calls_end_launch(&call, result, ON(stream), function, args, true))

struct driver_launch_config {
    dimension grid[3], block[3];
    unsigned shared;
    handle stream;
    const struct launch_attribute *attributes;
    unsigned count;
};

AROUND_STREAM(cuLaunchKernelEx,
              (const struct driver_launch_config *config, handle function, void **args,
               void **packed),
              (config, function, args, packed), LAUNCH, NOTHING,
              end_launch(&call, result, ON(config->stream), function, args, packed);
              calls_note_attributes(&call, result, "cuLaunchKernelEx", config->attributes,
                                    config->count))

HOST_CALL(cuLaunchHostFunc, LEGACY, cuStreamIsCapturing)
HOST_CALL(cuLaunchHostFunc_ptsz, PER_THREAD, cuStreamIsCapturing)
CALLBACK(cuStreamAddCallback, LEGACY)
CALLBACK(cuStreamAddCallback_ptsz, PER_THREAD)

/* ---- graphs ----------------------------------------------------------------------------------- */

CAPTURE(cuStreamBeginCapture_v2)
CAPTURE_END(cuStreamEndCapture)
CAPTURE_TO_GRAPH(cuStreamBeginCaptureToGraph)
CALL(cuGraphInstantiate, (handle * out, handle graph, word a, word b, word c),
     (out, graph, a, b, c), GRAPH, WORD_OF(*out), WORD_OF(graph))
CALL(cuGraphInstantiate_v2, (handle * out, handle graph, word a, word b, word c),
     (out, graph, a, b, c), GRAPH, WORD_OF(*out), WORD_OF(graph))
CALL(cuGraphExecUpdate, (handle executable, handle graph, word a, word b),
     (executable, graph, a, b), GRAPH, WORD_OF(executable), WORD_OF(graph))
CALL(cuGraphExecUpdate_v2, (handle executable, handle graph, word a), (executable, graph, a), GRAPH,
     WORD_OF(executable), WORD_OF(graph))
CALL(cuGraphInstantiateWithFlags, (handle * out, handle graph, word flags), (out, graph, flags),
     GRAPH, WORD_OF(*out), WORD_OF(graph))
ON_STREAM(cuGraphInstantiateWithParams, (handle * out, handle graph, handle params),
          (out, graph, params), GRAPH, WORD_OF(*out), WORD_OF(graph))
ON_STREAM(cuGraphLaunch, (handle graph, handle stream), (graph, stream), GRAPH_LAUNCH,
          WORD_OF(graph), ON(stream))

/* ---- addresses of functions ------------------------------------------------------------------- */

/* The function that a name means from a version of CUDA on: the last row that fits. Others are as in suffixes. */
static const struct {
    const char *name;
    int since;
    const char *whole;
} versions[] = {
    {"cuCtxCreate", 3020, "cuCtxCreate_v2"},
    {"cuCtxCreate", 11040, "cuCtxCreate_v3"},
    {"cuCtxCreate", 12050, "cuCtxCreate_v4"},
    {"cuCtxSynchronize", 2000, "cuCtxSynchronize"},
    {"cuCtxSynchronize", 13000, "cuCtxSynchronize_v2"},
    {"cuEventElapsedTime", 2000, "cuEventElapsedTime"},
    {"cuEventElapsedTime", 12080, "cuEventElapsedTime_v2"},
    {"cuGraphExecUpdate", 10020, "cuGraphExecUpdate"},
    {"cuGraphExecUpdate", 12000, "cuGraphExecUpdate_v2"},
    {"cuGraphInstantiate", 10000, "cuGraphInstantiate"},
    {"cuGraphInstantiate", 11000, "cuGraphInstantiate_v2"},
    {"cuGraphInstantiate", 12000, "cuGraphInstantiateWithFlags"},
    {"cuMemcpyBatchAsync", 12080, "cuMemcpyBatchAsync"},
    {"cuMemcpyBatchAsync", 13000, "cuMemcpyBatchAsync_v2"},
};

/* A driver that is older than what is asked for gives its own newest. */
static int version_of_driver(int asked)
{
    static int (*ask)(int *);
    int own = asked;
    return real_find(&ask, "cuDriverGetVersion") && ask(&own) == 0 && own < asked ? own : asked;
}

static const char *find_version(const char *name, int version)
{
    const char *whole = NULL;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        if (strcmp(versions[i].name, name) == 0 && versions[i].since <= version_of_driver(version))
            whole = versions[i].whole;
    return whole;
}

static bool driver_give(const char *whole, void **out, const void *caller)
{
    *out = symbols_ours(whole, *out, caller);
    return symbols_is_ours(*out);
}

static bool give_known(const char *known, void **out, const void *caller, bool per_thread)
{
    char whole[128];
    snprintf(whole, sizeof whole, "%s_ptsz", known);
    return (per_thread && driver_give(whole, out, caller)) || driver_give(known, out, caller);
}

/* The driver is asked for "cuMemAlloc" and gives cuMemAlloc_v2. */
static void give_ours(const char *name, void **out, const void *caller, int version, word flags)
{
    static const char *const suffixes[] = {"_v2_ptsz", "_v2_ptds", "_ptsz", "_ptds", "_v2", ""};
    const bool per_thread = (flags & 2) != 0;
    const char *known = find_version(name, version);
    char whole[128];
    if (!*out || symbols_is_ours(*out) || (known && give_known(known, out, caller, per_thread)))
        return;
    for (size_t i = per_thread ? 0 : 4; i < sizeof suffixes / sizeof *suffixes; i++) {
        if (strlen(name) + strlen(suffixes[i]) >= sizeof whole)
            return;
        strcat(strcpy(whole, name), suffixes[i]);
        if (driver_give(whole, out, caller))
            return;
    }
    symbols_note_unknown(name, *out, caller);
}

AFTER(cuGetProcAddress, (const char *name, void **out, int version, word flags),
      (name, out, version, flags),
      give_ours(name, out, __builtin_return_address(0), version, flags))
AFTER(cuGetProcAddress_v2, (const char *name, void **out, int version, word flags, int *found),
      (name, out, version, flags, found),
      give_ours(name, out, __builtin_return_address(0), version, flags))

/* The runtime gives out functions of the driver, too: those of its own version, or of another. */
static int version_of_runtime(void)
{
    static int (*ask)(int *);
    int version = 0;
    return real_find(&ask, "cudaRuntimeGetVersion") && ask(&version) == 0 ? version : 0;
}

#define ENTRY_POINT(end, none_is)                                                                  \
    AFTER(cudaGetDriverEntryPoint##end, (const char *name, void **out, word flags, int *found),    \
          (name, out, flags, found),                                                               \
          give_ours(name, out, __builtin_return_address(0), version_of_runtime(),                  \
                    flags ? flags : none_is))                                                      \
    AFTER(                                                                                         \
        cudaGetDriverEntryPointByVersion##end,                                                     \
        (const char *name, void **out, unsigned version, word flags, int *found),                  \
        (name, out, version, flags, found),                                                        \
        give_ours(name, out, __builtin_return_address(0), (int)version, flags ? flags : none_is))
ENTRY_POINT(, LEGACY)
ENTRY_POINT(_ptsz, PER_THREAD)
