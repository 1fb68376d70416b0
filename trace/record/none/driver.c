/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.c - libcuda.so.1 over the device that is not there. See runtime.c.
 *
 * A context is a number of its device, and always there: the primary one.
 */
#include "runtime.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t address;

int runtime_end(int result)
{
    return result;
}

enum { DRIVER_VERSION = 13000 };
static char contexts[64];

static int driver_device_of(const void *context)
{
    return (int)((const char *)context - contexts);
}
static int check_device(int device)
{
    return device < 0 || device >= none_devices() ? NONE_INVALID_DEVICE : NONE_OK;
}

#define ERROR_LIST(X)                                                                              \
    X(0, "CUDA_SUCCESS", "no error")                                                               \
    X(1, "CUDA_ERROR_INVALID_VALUE", "invalid argument")                                           \
    X(2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory")                                              \
    X(3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error")                                     \
    X(101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal")                                  \
    X(200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid")                           \
    X(201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context")                                 \
    X(400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle")                                 \
    X(500, "CUDA_ERROR_NOT_FOUND", "named symbol not found")                                       \
    X(600, "CUDA_ERROR_NOT_READY", "device not ready")                                             \
    X(801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported")                                  \
    X(900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",                                                \
      "operation not permitted when stream is capturing")

static int driver_words(int error, const char **out, bool name)
{
    switch (error) {
#define X(number, words, text)                                                                     \
    case number: *out = name ? words : text; return NONE_OK;
        ERROR_LIST(X)
#undef X
    default: *out = NULL; return NONE_INVALID_VALUE;
    }
}
RESULT(cuGetErrorName, (int error, const char **out), driver_words(error, out, true))
RESULT(cuGetErrorString, (int error, const char **out), driver_words(error, out, false))

/* ---- devices and contexts ------------------------------------------------------------------------------ */

RESULT(cuInit, (unsigned flags), NONE_OK)
/* Words on errors of the driver, which there are none of. */
RESULT(cuLogsRegisterCallback, (void *function, void *arg, void **out), (*out = contexts, NONE_OK))
RESULT(cuLogsUnregisterCallback, (void *handle), NONE_OK)
RESULT(cuDriverGetVersion, (int *out), (*out = DRIVER_VERSION, NONE_OK))
RESULT(cuDeviceGetCount, (int *out), (*out = none_devices(), NONE_OK))
RESULT(cuDeviceGet, (int *out, int number), (*out = number, check_device(number)))
RESULT(cuDeviceGetName, (char *out, int room, int device),
       (snprintf(out, (size_t)room, "%s", none_model()->name), check_device(device)))
static int put_uuid(char *out, int device)
{
    memset(out, 0, 16);
    memcpy(out, "swsim none", 10);
    out[15] = (char)device;
    return check_device(device);
}
RESULT(cuDeviceGetUuid, (char *out, int device), put_uuid(out, device))
RESULT(cuDeviceGetUuid_v2, (char *out, int device), put_uuid(out, device))
RESULT(cuDeviceTotalMem_v2, (size_t * out, int device),
       (*out = none_model()->memory, check_device(device)))
FACE(int, cuDeviceGetAttribute, (int *out, int attribute, int device))
{
    const int result = check_device(device);
    if (result == NONE_OK)
        *out = none_attribute(attribute, device);
    return result;
}
RESULT(cuDeviceComputeCapability, (int *major, int *minor, int device),
       (*major = none_model()->major, *minor = none_model()->minor, check_device(device)))
RESULT(cuDeviceGetPCIBusId, (char *out, int room, int device),
       (snprintf(out, (size_t)room, "0000:%02X:00.0", 1 + device), check_device(device)))
RESULT(cuDeviceCanAccessPeer, (int *out, int device, int peer), (*out = device != peer, NONE_OK))
FACE(int, cuDevicePrimaryCtxRetain, (void **out, int device))
{
    const int result = check_device(device);
    *out = result == NONE_OK ? &contexts[device] : NULL;
    return result;
}
RESULT(cuDevicePrimaryCtxRelease, (int device), check_device(device))
RESULT(cuDevicePrimaryCtxRelease_v2, (int device), check_device(device))
RESULT(cuDevicePrimaryCtxSetFlags_v2, (int device, unsigned flags), check_device(device))
RESULT(cuDevicePrimaryCtxGetState, (int device, unsigned *flags, int *active),
       (*flags = 0, *active = device == none_device(), check_device(device)))
RESULT(cuCtxGetCurrent, (void **out), (*out = &contexts[none_device()], NONE_OK))
RESULT(cuCtxSetCurrent, (void *context),
       context ? none_set_device(driver_device_of(context)) : NONE_OK)
RESULT(cuCtxGetDevice, (int *out), (*out = none_device(), NONE_OK))
enum { DEEPEST = 64 };
static __thread struct {
    int devices[DEEPEST], count;
} pushed;
FACE(int, cuCtxPushCurrent_v2, (void *context))
{
    if (!context || pushed.count == DEEPEST)
        return NONE_INVALID_CONTEXT;
    pushed.devices[pushed.count++] = none_device();
    return none_set_device(driver_device_of(context));
}
FACE(int, cuCtxPopCurrent_v2, (void **out))
{
    if (out)
        *out = &contexts[none_device()];
    return pushed.count > 0 ? none_set_device(pushed.devices[--pushed.count])
                            : NONE_INVALID_CONTEXT;
}
RESULT(cuCtxGetApiVersion, (void *context, unsigned *out), (*out = DRIVER_VERSION, NONE_OK))
RESULT(cuCtxGetFlags, (unsigned *out), (*out = 0, NONE_OK))
FACE(int, cuCtxGetStreamPriorityRange, (int *least, int *greatest))
{
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return NONE_OK;
}
RESULT(cuCtxSynchronize, (void), none_device_sync())
RESULT(cuCtxEnablePeerAccess, (void *context, unsigned flags), NONE_OK)

/* ---- memory ---------------------------------------------------------------------------------------------- */

RESULT(cuMemAlloc_v2, (void **out, size_t bytes),
       bytes == 0 ? NONE_INVALID_VALUE : none_alloc(out, bytes, NONE_DEVICE, 0))
RESULT(cuMemAllocManaged, (void **out, size_t bytes, unsigned flags),
       none_alloc(out, bytes, NONE_MANAGED, flags))
RESULT(cuMemAllocHost_v2, (void **out, size_t bytes), none_alloc(out, bytes, NONE_PINNED, 0))
RESULT(cuMemHostAlloc, (void **out, size_t bytes, unsigned flags),
       none_alloc(out, bytes, NONE_PINNED, flags))
RESULT(cuMemFree_v2, (void *at), none_free(at, NONE_DEVICE))
RESULT(cuMemFreeHost, (void *at), none_free(at, NONE_PINNED))
RESULT(cuMemHostRegister_v2, (void *at, size_t bytes, unsigned flags),
       none_register(at, bytes, flags))
RESULT(cuMemHostUnregister, (void *at), none_free(at, NONE_REGISTERED))
RESULT(cuMemHostGetDevicePointer_v2, (void **out, void *at, unsigned flags), (*out = at, NONE_OK))
RESULT(cuMemGetInfo_v2, (size_t * unused, size_t *all), (none_memory_info(unused, all), NONE_OK))
FACE(int, cuMemGetAddressRange_v2, (void **out, size_t *bytes, void *at))
{
    struct none_block block;
    if (!none_find(at, &block))
        return NONE_INVALID_VALUE;
    if (out)
        *out = block.address;
    if (bytes)
        *bytes = block.bytes;
    return NONE_OK;
}
RESULT(cuMemGetAllocationGranularity, (size_t * out, const void *properties, int which),
       (*out = 2 << 20, NONE_OK))
STREAM_FACE(cuMemAllocAsync, (void **out, size_t bytes, void *stream),
            ((void)ON(stream), none_alloc(out, bytes, NONE_DEVICE, 0)))
STREAM_FACE(cuMemFreeAsync, (void *at, void *stream), none_free_async(at, ON(stream)))

/* Numbers of CUpointer_attribute. */
enum {
    POINTER_CONTEXT = 1,
    POINTER_KIND,
    POINTER_DEVICE,
    POINTER_HOST,
    POINTER_SYNC = 6,
    POINTER_NUMBER,
    POINTER_MANAGED,
    POINTER_ORDINAL,
    POINTER_BASE = 11,
    POINTER_BYTES,
    POINTER_MAPPED
};
static int pointer_attribute(void *out, int attribute, const char *at)
{
    struct none_block block;
    if (!none_find(at, &block))
        return NONE_INVALID_VALUE;
    const bool host = block.kind == NONE_PINNED || block.kind == NONE_REGISTERED;
    switch (attribute) {
    case POINTER_CONTEXT: *(void **)out = &contexts[block.device]; return NONE_OK;
    case POINTER_KIND: *(unsigned *)out = host ? 1 : 2; return NONE_OK;
    case POINTER_DEVICE: *(const void **)out = at; return NONE_OK;
    case POINTER_HOST:
        *(const void **)out = at;
        return block.kind == NONE_DEVICE ? NONE_INVALID_VALUE : NONE_OK;
    case POINTER_SYNC: *(unsigned *)out = 0; return NONE_OK;
    case POINTER_NUMBER: *(uint64_t *)out = block.number; return NONE_OK;
    case POINTER_MANAGED: *(unsigned *)out = block.kind == NONE_MANAGED; return NONE_OK;
    case POINTER_ORDINAL: *(int *)out = block.device; return NONE_OK;
    case POINTER_BASE: *(void **)out = block.address; return NONE_OK;
    case POINTER_BYTES: *(size_t *)out = block.bytes; return NONE_OK;
    case POINTER_MAPPED: *(unsigned *)out = 1; return NONE_OK;
    default: none_missing("cuPointerGetAttribute", "this attribute");
    }
}
RESULT(cuPointerGetAttribute, (void *out, int attribute, const void *at),
       pointer_attribute(out, attribute, at))
FACE(int, cuPointerGetAttributes,
     (unsigned count, const int *attributes, void **out, const void *at))
{
    struct none_block block;
    const bool known = none_find(at, &block);
    for (unsigned i = 0; i < count; i++)
        if (!known || pointer_attribute(out[i], attributes[i], at) != NONE_OK)
            memset(out[i], 0,
                   attributes[i] == POINTER_KIND || attributes[i] == POINTER_ORDINAL ? 4 : 8);
    return NONE_OK;
}
/* The attribute says how copies without a stream wait. */
RESULT(cuPointerSetAttribute, (const void *value, int attribute, void *at), NONE_OK)

static int driver_copy(void *to, const void *from, size_t bytes, const void *stream, bool sync)
{
    const struct none_box box = {.to = to, .from = from, .width = bytes, .height = 1, .depth = 1};
    return bytes == 0 ? NONE_OK : none_copy(&box, stream, sync);
}
#define COPY(name)                                                                                 \
    DEFAULT_FACE(name##_v2, (void *to, const void *from, size_t bytes),                            \
                 driver_copy(to, from, bytes, none, true))                                         \
    STREAM_FACE(name##Async_v2, (void *to, const void *from, size_t bytes, void *stream),          \
                driver_copy(to, from, bytes, ON(stream), false))
COPY(cuMemcpyHtoD)
COPY(cuMemcpyDtoH)
COPY(cuMemcpyDtoD)
DEFAULT_FACE(cuMemcpy, (void *to, const void *from, size_t bytes),
             driver_copy(to, from, bytes, none, true))
STREAM_FACE(cuMemcpyAsync, (void *to, const void *from, size_t bytes, void *stream),
            driver_copy(to, from, bytes, ON(stream), false))

static int driver_fill(void *to, uint32_t value, int unit, size_t count, const void *stream)
{
    const struct none_box box = {.to = to,
                                 .width = count * (size_t)unit,
                                 .height = 1,
                                 .depth = 1,
                                 .value = value,
                                 .unit = unit};
    return count == 0 ? NONE_OK : none_fill(&box, stream);
}
#define FILL(name, type, unit)                                                                     \
    DEFAULT_FACE(cuMemset##name##_v2, (void *to, type value, size_t count),                        \
                 driver_fill(to, value, unit, count, none))                                        \
    STREAM_FACE(cuMemset##name##Async, (void *to, type value, size_t count, void *stream),         \
                driver_fill(to, value, unit, count, ON(stream)))
FILL(D8, unsigned char, 1)
FILL(D16, unsigned short, 2)
FILL(D32, unsigned, 4)

/* ---- streams and events ---------------------------------------------------------------------------------- */

static int driver_make_stream(void **out, unsigned flags, int priority)
{
    *out = none_stream_new(!(flags & 1), priority);
    return *out ? NONE_OK : NONE_NO_MEMORY;
}
RESULT(cuStreamCreate, (void **out, unsigned flags), driver_make_stream(out, flags, 0))
RESULT(cuStreamCreateWithPriority, (void **out, unsigned flags, int priority),
       driver_make_stream(out, flags, priority))
RESULT(cuStreamDestroy_v2, (void *stream), (none_stream_close(stream), NONE_OK))
STREAM_FACE(cuStreamSynchronize, (void *stream), none_stream_sync(ON(stream)))
STREAM_FACE(cuStreamQuery, (void *stream), none_stream_query(ON(stream)))
STREAM_FACE(cuStreamWaitEvent, (void *stream, void *event, unsigned flags),
            none_event_wait(ON(stream), event, (flags & 1) != 0))
STREAM_FACE(cuLaunchHostFunc, (void *stream, void (*function)(void *), void *arg),
            none_push_host(ON(stream), function, arg))
static int stream_context(void **out)
{
    *out = &contexts[none_device()];
    return NONE_OK;
}
STREAM_FACE(cuStreamGetCtx, (void *stream, void **out), ((void)ON(stream), stream_context(out)))
RESULT(cuEventCreate, (void **out, unsigned flags),
       (*out = none_event_new(!(flags & 2)), *out ? NONE_OK : NONE_NO_MEMORY))
RESULT(cuEventDestroy_v2, (void *event), (none_event_close(event), NONE_OK))
STREAM_FACE(cuEventRecord, (void *event, void *stream), none_event_record(event, ON(stream), false))
RESULT(cuEventQuery, (void *event), none_event_query(event))
RESULT(cuEventSynchronize, (void *event), none_event_sync(event))
RESULT(cuEventElapsedTime, (float *ms, void *from, void *to), none_event_elapsed(from, to, ms))
RESULT(cuEventElapsedTime_v2, (float *ms, void *from, void *to), none_event_elapsed(from, to, ms))
static int driver_is_capturing(const void *stream, int *out)
{
    uint64_t id;
    struct none_graph *graph;
    void *const *nodes;
    size_t count;
    *out = none_capture_state(stream, &id, &graph, &nodes, &count);
    return NONE_OK;
}
STREAM_FACE(cuStreamIsCapturing, (void *stream, int *out), driver_is_capturing(ON(stream), out))
STREAM_FACE(cuStreamBeginCapture_v2, (void *stream, int mode),
            none_capture_begin(ON(stream), NULL, mode))
STREAM_FACE(cuStreamEndCapture, (void *stream, void **out),
            none_capture_end(ON(stream), (struct none_graph **)out))
RESULT(cuThreadExchangeStreamCaptureMode, (int *mode),
       (*mode = none_exchange_capture_mode(*mode), NONE_OK))
RESULT(cuGraphInstantiateWithFlags, (void **out, void *graph, unsigned long long flags),
       (none_graph_keep(graph), *out = graph, NONE_OK))
STREAM_FACE(cuGraphLaunch, (void *graph, void *stream), none_graph_launch(graph, ON(stream)))
RESULT(cuGraphExecDestroy, (void *graph), (none_graph_release(graph), NONE_OK))
RESULT(cuGraphDestroy, (void *graph), (none_graph_release(graph), NONE_OK))

/* ---- modules and kernels ------------------------------------------------------------------------------------ */

static int load_module(void **out, const void *image)
{
    *out = none_module_load(image);
    return *out ? NONE_OK : NONE_NO_MEMORY;
}
RESULT(cuModuleLoadData, (void **out, const void *image), load_module(out, image))
RESULT(cuModuleLoadDataEx,
       (void **out, const void *image, unsigned count, void *options, void *values),
       load_module(out, image))
RESULT(cuModuleLoadFatBinary, (void **out, const void *image), load_module(out, image))
FACE(int, cuModuleLoad, (void **out, const char *path))
{
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    long size = 0;
    int result = NONE_NOT_FOUND;
    if (file && fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) > 0 &&
        fseek(file, 0, SEEK_SET) == 0 && (bytes = malloc((size_t)size)) &&
        fread(bytes, 1, (size_t)size, file) == (size_t)size)
        result = load_module(out, bytes);
    if (file)
        fclose(file);
    free(bytes);
    return result;
}
RESULT(cuModuleUnload, (void *module), NONE_OK)
static int find_function(void **out, void *module, const char *name)
{
    *out = none_module_function(module, name);
    return *out ? NONE_OK : NONE_NOT_FOUND;
}
RESULT(cuModuleGetFunction, (void **out, void *module, const char *name),
       find_function(out, module, name))
FACE(int, cuModuleGetGlobal_v2, (void **out, size_t *bytes, void *module, const char *name))
{
    void *at;
    size_t size;
    if (!none_module_variable(module, name, &at, &size))
        return NONE_NOT_FOUND;
    if (out)
        *out = at;
    if (bytes)
        *bytes = size;
    return NONE_OK;
}
RESULT(cuLibraryLoadData,
       (void **out, const void *code, void *options, void *values, unsigned count, void *more,
        void *more_values, unsigned more_count),
       load_module(out, code))
RESULT(cuLibraryUnload, (void *library), NONE_OK)
RESULT(cuLibraryGetKernel, (void **out, void *library, const char *name),
       find_function(out, library, name))
RESULT(cuLibraryGetModule, (void **out, void *library), (*out = library, NONE_OK))
RESULT(cuKernelGetFunction, (void **out, void *kernel), (*out = kernel, NONE_OK))
FACE(int, cuFuncGetModule, (void **out, void *function))
{
    const struct none_function *found = none_function_find(function);
    *out = found ? found->module : NULL;
    return found ? NONE_OK : NONE_INVALID_HANDLE;
}
FACE(int, cuFuncGetName, (const char **out, void *function))
{
    const struct none_function *found = none_function_find(function);
    *out = found ? found->name : NULL;
    return found ? NONE_OK : NONE_INVALID_HANDLE;
}
FACE(int, cuFuncGetParamInfo, (void *function, size_t index, size_t *offset, size_t *bytes))
{
    struct none_function *found = none_function_find(function);
    return found && none_parameter(found, index, offset, bytes) ? NONE_OK : NONE_INVALID_VALUE;
}
enum { MOST_THREADS_OF_BLOCK, SHARED, CONSTANT, LOCAL, REGISTERS, PTX, BINARY, CACHE, DYNAMIC };
FACE(int, cuFuncGetAttribute, (int *out, int attribute, void *function))
{
    struct none_function *found = none_function_find(function);
    if (!found)
        return NONE_INVALID_HANDLE;
    const struct none_numbers numbers = none_function_numbers(found);
    const int version = 10 * none_model()->major + none_model()->minor;
    switch (attribute) {
    case MOST_THREADS_OF_BLOCK: *out = numbers.most_threads; return NONE_OK;
    case SHARED: *out = numbers.shared; return NONE_OK;
    case CONSTANT: *out = numbers.constant; return NONE_OK;
    case LOCAL: *out = numbers.local; return NONE_OK;
    case REGISTERS: *out = numbers.registers; return NONE_OK;
    case PTX:
    case BINARY: *out = version; return NONE_OK;
    case DYNAMIC: *out = found->shared ? found->shared : 49152; return NONE_OK;
    default: *out = 0; return NONE_OK;
    }
}
FACE(int, cuFuncSetAttribute, (void *function, int attribute, int value))
{
    struct none_function *found = none_function_find(function);
    if (!found)
        return NONE_INVALID_HANDLE;
    if (attribute == DYNAMIC && value > none_model()->shared_optin)
        return NONE_INVALID_VALUE;
    if (attribute == DYNAMIC)
        found->shared = value;
    return NONE_OK;
}
RESULT(cuFuncSetCacheConfig, (void *function, int config),
       none_function_find(function) ? NONE_OK : NONE_INVALID_HANDLE)
static int driver_blocks(int *out, void *function, int threads, size_t shared)
{
    struct none_function *found = none_function_find(function);
    if (!found || threads <= 0)
        return NONE_INVALID_VALUE;
    *out = none_blocks(found, threads, shared);
    return NONE_OK;
}
RESULT(cuOccupancyMaxActiveBlocksPerMultiprocessor,
       (int *out, void *function, int threads, size_t shared),
       driver_blocks(out, function, threads, shared))
RESULT(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
       (int *out, void *function, int threads, size_t shared, unsigned flags),
       driver_blocks(out, function, threads, shared))
RESULT(cuOccupancyMaxActiveClusters, (int *out, void *function, const void *config),
       (*out = none_model()->multiprocessors / 2,
        none_function_find(function) ? NONE_OK : NONE_INVALID_HANDLE))
static int driver_launch(void *function, const void *stream)
{
    return none_function_find(function) ? none_push_kernel(stream) : NONE_INVALID_HANDLE;
}
#define DIMENSIONS                                                                                 \
    unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared
#define IGNORE_DIMENSIONS (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared
STREAM_FACE(cuLaunchKernel, (void *function, DIMENSIONS, void *stream, void **args, void **packed),
            (IGNORE_DIMENSIONS, (void)args, (void)packed, driver_launch(function, ON(stream))))
STREAM_FACE(cuLaunchCooperativeKernel, (void *function, DIMENSIONS, void *stream, void **args),
            (IGNORE_DIMENSIONS, (void)args, driver_launch(function, ON(stream))))
struct driver_launch {
    unsigned grid[3], block[3], shared;
    void *stream;
};
STREAM_FACE(cuLaunchKernelEx,
            (const struct driver_launch *config, void *function, void **args, void **packed),
            ((void)args, (void)packed, driver_launch(function, ON(config->stream))))
/* What a kernel reads through, by an engine of the device: kernels do not run. */
RESULT(cuTensorMapEncodeTiled, (void *out), (memset(out, 0, 128), NONE_OK))

/* What NVIDIA's own libraries, with a runtime inside, begin with. */
FACE(int, cuGetExportTable, (const void **out, const void *id))
{
    char words[300];
    Dl_info info;
    const char *caller =
        dladdr(__builtin_return_address(0), &info) && info.dli_fname ? info.dli_fname : "a library";
    snprintf(words, sizeof words, "%s does work of its own, which would have to be emulated",
             caller);
    none_missing("cuGetExportTable", words);
}

/* ---- addresses of functions ------------------------------------------------------------------------------- */

/* "cuMemAlloc" means cuMemAlloc_v2. */
static void *driver_find(const char *name, bool per_thread)
{
    static const char *const ends[] = {"_v2_ptsz", "_v2_ptds", "_ptsz", "_ptds", "_v2", ""};
    static void *own;
    Dl_info info;
    char whole[128];
    if (!own && dladdr(contexts, &info))
        own = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    for (size_t i = per_thread ? 0 : 4; own && i < sizeof ends / sizeof *ends; i++) {
        snprintf(whole, sizeof whole, "%s%s", name, ends[i]);
        void *found = dlsym(own, whole);
        if (found)
            return found;
    }
    return NULL;
}
static int get_address(const char *name, void **out, uint64_t flags, int *found)
{
    *out = strcmp(name, "cuGraphInstantiate") == 0
               ? driver_find("cuGraphInstantiateWithFlags", false)
               : driver_find(name, (flags & 2) != 0);
    if (found)
        *found = *out ? 0 : 1;
    return *out ? NONE_OK : NONE_NOT_FOUND;
}
RESULT(cuGetProcAddress, (const char *name, void **out, int version, uint64_t flags),
       get_address(name, out, flags, NULL))
RESULT(cuGetProcAddress_v2, (const char *name, void **out, int version, uint64_t flags, int *found),
       get_address(name, out, flags, found))
