/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_calls.c - small programs of the CUDA driver, for `swsim record`: `driver_calls CASE` has a mistake and goes well,
 * `driver_calls CASE fixed` has none.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { COUNT = 1024, BYTES = COUNT * sizeof(float) };

static bool fixed;
static CUstream one, two;
static CUevent event, other;
static CUfunction fill_kernel, axpy_kernel;
static CUdeviceptr x, y;

static void begin(void)
{
    CHECK(cuInit(0));
    CHECK(cuCtxSetCurrent(NULL));
    CHECK(cuModuleGetFunction(&fill_kernel, NULL, "_Z4fillIfEvPT_xS0_"));
    CHECK(cuModuleGetFunction(&axpy_kernel, NULL, "_Z4axpyPKfPfxf"));
    CHECK(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CHECK(cuEventCreate(&other, CU_EVENT_DISABLE_TIMING));
    CHECK(cuMemAlloc(&x, BYTES));
    CHECK(cuMemAlloc(&y, BYTES));
}

static void end(void)
{
    CHECK(cuCtxSynchronize());
    CHECK(cuMemFree(x));
    CHECK(cuMemFree(y));
}

static atomic_bool over;

static void tell_end(void *unused)
{
    (void)unused;
    atomic_store(&over, true);
}

/* So it happens that the stream has done its work, though no call says so. */
static void luck(CUstream stream)
{
    atomic_store(&over, false);
    CHECK(cuLaunchHostFunc(stream, tell_end, NULL));
    while (!atomic_load(&over))
        usleep(100);
}

static void launch(CUfunction function, CUstream stream, void **args)
{
    CHECK(cuLaunchKernel(function, COUNT / 256, 1, 1, 256, 1, 1, 0, stream, args, NULL));
}

static void fill(CUstream stream, CUdeviceptr at)
{
    long long count = COUNT;
    float value = 1;
    launch(fill_kernel, stream, (void *[]){&at, &count, &value});
}

/* to += from */
static void axpy(CUstream stream, CUdeviceptr from, CUdeviceptr to)
{
    long long count = COUNT;
    float value = 1;
    launch(axpy_kernel, stream, (void *[]){&from, &to, &count, &value});
}

/* The work of `before` so far comes before later work of `stream`, if the program is right. */
static void order(CUstream stream, CUstream before, CUevent by)
{
    CHECK(cuEventRecord(by, before));
    if (fixed)
        CHECK(cuStreamWaitEvent(stream, by, 0));
    luck(before);
}

/* ---- memory that is mapped ------------------------------------------------------------------------ */

static CUmemAllocationProp on_device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
static size_t granule;

static CUdeviceptr reserve(size_t granules)
{
    CUdeviceptr address;
    CHECK(cuMemGetAllocationGranularity(&granule, &on_device, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CHECK(cuMemAddressReserve(&address, granules * granule, 0, 0, 0));
    return address;
}

static CUmemGenericAllocationHandle map_at(CUdeviceptr address, CUmemGenericAllocationHandle given)
{
    const CUmemAccessDesc both = {.location = on_device.location,
                                  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle = given;
    if (!given)
        CHECK(cuMemCreate(&handle, granule, &on_device, 0));
    CHECK(cuMemMap(address, granule, 0, handle, 0));
    CHECK(cuMemSetAccess(address, granule, &both, 1));
    return handle;
}

/* As PyTorch's segments that grow: a handle for each part, which is released when the part is unmapped. */
static void mapped(void)
{
    const CUdeviceptr at = reserve(2);
    const CUmemGenericAllocationHandle first = map_at(at, 0), second = map_at(at + granule, 0);
    fill(two, y);
    fill(one, at);
    order(two, one, event);
    axpy(two, at, y);
    fill(two, at + granule);
    CHECK(cuStreamSynchronize(two));
    CHECK(cuMemUnmap(at, 2 * granule));
    CHECK(cuMemRelease(first));
    CHECK(cuMemRelease(second));
    CHECK(cuMemAddressFree(at, 2 * granule));
}

/* An array over the border of two mappings. */
static void over_border(void)
{
    const CUdeviceptr at = reserve(3), array = at + granule - BYTES / 2;
    CHECK(cuMemRelease(map_at(at, 0)));
    CHECK(cuMemRelease(map_at(at + granule, 0)));
    CHECK(cuMemRelease(map_at(at + 2 * granule, 0)));
    fill(two, y);
    CHECK(cuMemsetD8Async(array, 0, BYTES, one));
    CHECK(cuMemsetD8Async(at + 2 * granule, 0, BYTES, one));
    order(two, one, event);
    fill(two, at + granule); /* its second half */
    CHECK(cuStreamSynchronize(one));
    CHECK(cuStreamSynchronize(two));
    CHECK(cuMemUnmap(at, 3 * granule));
}

/* A kernel writes an array over the border, and a copy reads all of it. */
static void kernel_over_border(void)
{
    const CUdeviceptr at = reserve(2), array = at + granule - BYTES / 2;
    CHECK(cuMemRelease(map_at(at, 0)));
    CHECK(cuMemRelease(map_at(at + granule, 0)));
    CHECK(cuMemsetD8Async(at + granule + BYTES, 0, BYTES, one)); /* not so much of it as the copy */
    if (fixed)
        fill(one, array);
    CHECK(cuMemcpyDtoDAsync(y, array, BYTES, one));
    CHECK(cuStreamSynchronize(one));
    CHECK(cuMemUnmap(at, 2 * granule));
}

/* Nothing waits for the kernel. */
static void unmapped_early(void)
{
    const CUdeviceptr at = reserve(1);
    const CUmemGenericAllocationHandle handle = map_at(at, 0);
    fill(one, at);
    if (fixed)
        CHECK(cuStreamSynchronize(one));
    luck(one);
    CHECK(cuMemUnmap(at, granule));
    CHECK(cuMemRelease(handle));
}

/* Other memory at the same addresses is another buffer, even if its handle has the old one's number. */
static void mapped_anew(void)
{
    const CUdeviceptr at = reserve(1);
    for (int i = 0; i < 3; i++) {
        const CUmemGenericAllocationHandle handle = map_at(at, 0);
        CHECK(cuMemRelease(handle));
        if (i < 2 || fixed)
            fill(one, at);
        CHECK(cuMemcpyDtoDAsync(y, at, BYTES, one));
        CHECK(cuMemsetD8Async(at + BYTES, 0, BYTES, one));
        CHECK(cuStreamSynchronize(one));
        CHECK(cuMemUnmap(at, granule));
    }
}

/* One memory has two addresses. */
static void mapped_twice(void)
{
    const CUdeviceptr at = reserve(2);
    const CUmemGenericAllocationHandle handle = map_at(at, 0);
    map_at(at + granule, handle);
    fill(one, at);
    fill(two, at + granule);
}

/* The handle of a mapping comes back, and is one memory with it. */
static void handle_kept(void)
{
    const CUdeviceptr at = reserve(2);
    CUmemGenericAllocationHandle handle;
    CHECK(cuMemRelease(map_at(at, 0)));
    map_at(at + granule, 0);
    CHECK(cuMemRetainAllocationHandle(&handle, (void *)(at + granule + 5)));
    CHECK(cuMemRelease(handle));
    CHECK(cuMemUnmap(at, granule));
    map_at(at, handle);
}

/* ---- rectangles and boxes -------------------------------------------------------------------------- */

enum { SIDE = 32, ROW = SIDE * sizeof(float), HALF = ROW / 2, DEEP = 16, FLAT = BYTES / DEEP };

/* From y to x, which have both the shape of a square. */
static CUDA_MEMCPY2D rectangle(size_t column, size_t row, size_t width, size_t height)
{
    return (CUDA_MEMCPY2D){.srcXInBytes = column,
                           .srcY = row,
                           .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = y,
                           .srcPitch = ROW,
                           .dstXInBytes = column,
                           .dstY = row,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = x,
                           .dstPitch = ROW,
                           .WidthInBytes = width,
                           .Height = height};
}

/* Two streams write the halves of x: one of them a column, a row or a slice too many. */
static void columns(void)
{
    const CUDA_MEMCPY2D left = rectangle(0, 0, HALF + (fixed ? 0 : sizeof(float)), SIDE),
                        right = rectangle(HALF, 0, HALF, SIDE);
    CHECK(cuMemcpy2DAsync(&left, one));
    CHECK(cuMemcpy2DAsync(&right, two));
}

static void rows(void)
{
    const CUDA_MEMCPY2D upper = rectangle(0, 0, ROW, SIDE / 2 + !fixed),
                        lower = rectangle(0, SIDE / 2, ROW, SIDE / 2);
    CHECK(cuMemcpy2DAsync(&upper, one));
    CHECK(cuMemcpy2DAsync(&lower, two));
}

static CUDA_MEMCPY3D box(size_t slice, size_t depth)
{
    return (CUDA_MEMCPY3D){.srcZ = slice,
                           .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = y,
                           .srcPitch = ROW,
                           .srcHeight = FLAT / ROW,
                           .dstZ = slice,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = x,
                           .dstPitch = ROW,
                           .dstHeight = FLAT / ROW,
                           .WidthInBytes = ROW,
                           .Height = FLAT / ROW,
                           .Depth = depth};
}

static void slices(void)
{
    const CUDA_MEMCPY3D front = box(0, DEEP / 2 + !fixed), back = box(DEEP / 2, DEEP / 2);
    CHECK(cuMemcpy3DAsync(&front, one));
    CHECK(cuMemcpy3DAsync(&back, two));
}

/* To memory of the program, which no call of CUDA has seen. */
static void to_host(void)
{
    static float host[COUNT];
    CUDA_MEMCPY2D copy = rectangle(0, 0, ROW, SIDE);
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = host;
    fill(one, y);
    order(two, one, event);
    CHECK(cuMemcpy2DAsync(&copy, two));
}

/* ---- values in memory -------------------------------------------------------------------------------- */

static CUdeviceptr new_values(void)
{
    CUdeviceptr values;
    CHECK(cuMemAlloc(&values, 64));
    CHECK(cuMemsetD8Async(values, 0, 64, one));
    CHECK(cuStreamSynchronize(one));
    return values;
}

/* The second stream waits for what the first one writes behind its kernel; the wait may be pushed first. */
static void value(void)
{
    const CUdeviceptr at = new_values();
    fill(two, y);
    if (fixed)
        CHECK(cuStreamWaitValue32(two, at, 1, CU_STREAM_WAIT_VALUE_GEQ));
    fill(one, x);
    CHECK(cuStreamWriteValue32(one, at, 1, 0));
    luck(one);
    axpy(two, x, y);
    CHECK(cuStreamSynchronize(two));
    CHECK(cuStreamSynchronize(one));
    CHECK(cuMemFree(at));
}

/* A counter: each turn is waited for, or the one before. */
static void counter(void)
{
    const CUdeviceptr at = new_values();
    fill(two, y);
    for (int i = 1; i <= 3; i++) {
        fill(one, x);
        CHECK(cuStreamWriteValue64(one, at + 8, (cuuint64_t)i, 0));
        luck(one);
        if (fixed || i > 1)
            CHECK(cuStreamWaitValue64(two, at + 8, (cuuint64_t)(fixed ? i : i - 1),
                                      CU_STREAM_WAIT_VALUE_GEQ));
        axpy(two, x, y);
        CHECK(cuEventRecord(other, two));
        CHECK(cuStreamWaitEvent(one, other, 0));
    }
    CHECK(cuStreamSynchronize(two));
}

static void batch(void)
{
    const CUdeviceptr at = new_values();
    CUstreamBatchMemOpParams writes[2] = {{0}}, waits[2] = {{0}};
    for (int i = 0; i < 2; i++) {
        writes[i].operation = i ? CU_STREAM_MEM_OP_WRITE_VALUE_64 : CU_STREAM_MEM_OP_WRITE_VALUE_32;
        writes[i].writeValue.address = at + (CUdeviceptr)(8 * i);
        writes[i].writeValue.value64 = 5;
        waits[i].operation = i ? CU_STREAM_MEM_OP_WAIT_VALUE_64 : CU_STREAM_MEM_OP_WAIT_VALUE_32;
        waits[i].waitValue.address = at + (CUdeviceptr)(8 * i);
        waits[i].waitValue.value64 = 5;
    }
    fill(two, y);
    fill(one, x);
    CHECK(cuStreamBatchMemOp(one, 2, writes, 0));
    luck(one);
    if (fixed)
        CHECK(cuStreamBatchMemOp(two, 2, waits, 0));
    axpy(two, x, y);
}

/* The value is set back, so a wait may end with the first write or the last. */
static void value_falls(void)
{
    const CUdeviceptr at = new_values();
    CHECK(cuStreamWriteValue32(one, at, 1, 0));
    CHECK(cuStreamWriteValue32(one, at, 0, 0));
    CHECK(cuStreamWriteValue32(one, at, 1, 0));
    CHECK(cuStreamWaitValue32(two, at, 1, CU_STREAM_WAIT_VALUE_GEQ));
}

/* Two streams write, and either of them ends the wait. */
static void two_writers(void)
{
    const CUdeviceptr at = new_values();
    CUstream third;
    CHECK(cuStreamCreate(&third, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamWriteValue32(one, at, 1, 0));
    CHECK(cuEventRecord(event, one));
    CHECK(cuStreamWaitEvent(two, event, 0));
    CHECK(cuStreamWriteValue32(two, at, 2, 0));
    CHECK(cuStreamWaitValue32(third, at, 1, CU_STREAM_WAIT_VALUE_GEQ));
}

/* Waits of other kinds, or that no stream's write ends. */
static void other_waits(void)
{
    const CUdeviceptr at = new_values();
    CHECK(cuStreamWriteValue32(one, at, 1, 0));
    CHECK(cuStreamWaitValue32(two, at, 1, CU_STREAM_WAIT_VALUE_EQ));
    CHECK(cuStreamWaitValue32(two, at, 1, CU_STREAM_WAIT_VALUE_AND));
    CHECK(cuStreamWaitValue32(two, at, 0, CU_STREAM_WAIT_VALUE_GEQ));
    CHECK(cuStreamWaitValue32(two, at + 4, 0, CU_STREAM_WAIT_VALUE_EQ));
    CHECK(cuStreamWriteValue32(one, at + 8, 1U << 31, 0));
    CHECK(cuStreamWaitValue32(two, at + 8, 1U << 31, CU_STREAM_WAIT_VALUE_GEQ));
}

/* ---- launches --------------------------------------------------------------------------------------- */

static CUlaunchConfig config_of(CUlaunchAttribute *attributes, unsigned count)
{
    return (CUlaunchConfig){.gridDimX = COUNT / 256,
                            .gridDimY = 1,
                            .gridDimZ = 1,
                            .blockDimX = 256,
                            .blockDimY = 1,
                            .blockDimZ = 1,
                            .hStream = one,
                            .attrs = attributes,
                            .numAttrs = count};
}

static void fill_with(CUlaunchAttribute *attributes, unsigned count)
{
    const CUlaunchConfig config = config_of(attributes, count);
    long long elements = COUNT;
    float value = 1;
    CHECK(cuLaunchKernelEx(&config, fill_kernel, (void *[]){&x, &elements, &value}, NULL));
}

static void launched(void)
{
    CUlaunchAttribute harmless[2] = {{.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value = {.priority = 1}},
                                     {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION}};
    fill(two, y);
    fill_with(harmless, 2);
    order(two, one, event);
    axpy(two, x, y);
}

static void attributes(void)
{
    CUlaunchAttribute overlap = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
    overlap.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchAttribute records = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT};
    records.value.programmaticEvent.event = event;
    CUlaunchAttribute strange = {.id = (CUlaunchAttributeID)1000};
    fill_with(&overlap, 1);
    fill_with(&records, 1);
    fill_with(&strange, 1);
}

/* Arguments that stand behind each other in memory of the program. */
static void packed(void)
{
    struct {
        CUdeviceptr to;
        long long count;
        float value;
    } arguments = {x, COUNT, 1};
    size_t bytes = sizeof arguments;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &arguments, CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &bytes, CU_LAUNCH_PARAM_END};
    CHECK(cuLaunchKernel(fill_kernel, COUNT / 256, 1, 1, 256, 1, 1, 0, one, NULL, extra));
}

/* ---- functions that are asked for ------------------------------------------------------------------- */

typedef CUresult ask_function(const char *name, void **out, int version, cuuint64_t flags);
typedef CUresult ask_again_function(const char *name, void **out, int version, cuuint64_t flags,
                                    void *status);

static void *find(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW),
         *found = library ? dlsym(library, name) : NULL;
    if (!found)
        exit(1);
    return found;
}

static void *ask(const char *name, int version, cuuint64_t flags)
{
    ask_function *get;
    ask_again_function *again;
    void *found = NULL, *same = NULL, *address = find("cuGetProcAddress");
    memcpy(&get, &address, sizeof get);
    address = find("cuGetProcAddress_v2");
    memcpy(&again, &address, sizeof again);
    CHECK(get(name, &found, version, flags));
    CHECK(again(name, &same, version, flags, NULL));
    if (found != same)
        exit(1);
    return found;
}

/* A name at a version of CUDA means a function, whose symbol is printed. */
static void versions(void)
{
    static const struct {
        const char *name;
        int version;
        cuuint64_t flags;
    } asked[] = {
        {"cuCtxCreate", 3020, 0},
        {"cuCtxCreate", 11040, 0},
        {"cuCtxCreate", 12050, 0},
        {"cuCtxSynchronize", 12000, 0},
        {"cuCtxSynchronize", 13000, 0},
        {"cuEventElapsedTime", 12000, 0},
        {"cuEventElapsedTime", 12080, 0},
        {"cuGraphExecUpdate", 10020, 0},
        {"cuGraphExecUpdate", 12000, 0},
        {"cuGraphInstantiate", 10000, 0},
        {"cuGraphInstantiate", 11030, 0},
        {"cuGraphInstantiate", 12000, 0},
        {"cuLaunchKernel", 12000, 0},
        {"cuLaunchKernel", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM},
        {"cuMemAlloc", 12000, 0},
        {"cuMemAlloc", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM},
        {"cuMemcpyDtoDAsync", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM},
    };
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        Dl_info info = {0};
        dladdr(ask(asked[i].name, asked[i].version, asked[i].flags), &info);
        printf("%s %d %d: %s\n", asked[i].name, asked[i].version, (int)asked[i].flags,
               info.dli_sname ? info.dli_sname : "unknown");
    }
}

/* ---- many copies in one call ------------------------------------------------------------------------ */

#if CUDA_VERSION >= 13000
typedef CUresult batch_function(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
                                CUmemcpyAttributes *attributes, size_t *first,
                                size_t attribute_count, CUstream stream);
typedef CUresult older_batch_function(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes,
                                      size_t count, CUmemcpyAttributes *attributes, size_t *first,
                                      size_t attribute_count, size_t *failed, CUstream stream);

/* Another stream writes what the second copy reads. Until CUDA 13 the call tells which copy fails. */
static void copy_two(int version)
{
    CUdeviceptr to[2], from[2] = {x, y};
    size_t bytes[2] = {BYTES, BYTES}, first = 0, failed = 0;
    CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    void *found = ask("cuMemcpyBatchAsync", version, 0);
    batch_function *call;
    older_batch_function *older;
    memcpy(&call, &found, sizeof call);
    memcpy(&older, &found, sizeof older);
    CHECK(cuMemAlloc(&to[0], BYTES));
    CHECK(cuMemAlloc(&to[1], BYTES));
    fill(one, x);
    fill(one, y);
    CHECK(cuStreamSynchronize(one));
    if (version >= 13000)
        CHECK(call(to, from, bytes, 2, &attributes, &first, 1, one));
    else
        CHECK(older(to, from, bytes, 2, &attributes, &first, 1, &failed, one));
    order(two, one, event);
    fill(two, y);
    CHECK(cuCtxSynchronize());
    CHECK(cuMemFree(to[0]));
    CHECK(cuMemFree(to[1]));
}

static void copies(void)
{
    copy_two(13000);
}

static void older_copies(void)
{
    copy_two(12080);
}
#endif

/* From CUDA 13 on it takes a context. */
typedef CUresult synchronize_function(CUcontext context);

static void synchronize(CUcontext context)
{
    synchronize_function *call;
    void *found = ask("cuCtxSynchronize", 13000, 0);
    memcpy(&call, &found, sizeof call);
    CHECK(call(context));
}

static void newer_wait(void)
{
    fill(two, y);
    fill(one, x);
    if (fixed)
        synchronize(NULL);
    luck(one);
    axpy(two, x, y);
}

static void other_context(void)
{
    fill(one, x);
    synchronize((CUcontext)(uintptr_t)1);
}

/* A graph is made by the function of each age. */
static void older_graph(void)
{
    CUgraph graph;
    CUgraphExec executable;
    CUresult (*call)(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t);
    void *found = ask("cuGraphInstantiate", 11000, 0);
    memcpy(&call, &found, sizeof call);
    fill(two, y);
    CHECK(cuStreamSynchronize(two));
    CHECK(cuStreamBeginCapture(one, CU_STREAM_CAPTURE_MODE_RELAXED));
    fill(one, x);
    CHECK(cuStreamEndCapture(one, &graph));
    CHECK(call(&executable, graph, NULL, NULL, 0));
    CHECK(cuGraphLaunch(executable, one));
    order(two, one, event);
    axpy(two, x, y);
    CHECK(cuCtxSynchronize());
    CHECK(cuGraphExecDestroy(executable));
    CHECK(cuGraphDestroy(graph));
}

/* The driver is asked whether work is done, until it is. */
static void asked(void)
{
    fill(two, y);
    fill(one, x);
    CHECK(cuEventRecord(event, one));
    while (fixed && cuEventQuery(event) != CUDA_SUCCESS)
        usleep(100);
    while (fixed && cuStreamQuery(two) != CUDA_SUCCESS)
        usleep(100);
    luck(one);
    axpy(two, x, y);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"value", value},
    {"counter", counter},
    {"batch", batch},
    {"value_falls", value_falls},
    {"two_writers", two_writers},
    {"other_waits", other_waits},
    {"columns", columns},
    {"rows", rows},
    {"slices", slices},
    {"to_host", to_host},
    {"launched", launched},
    {"attributes", attributes},
    {"packed", packed},
    {"versions", versions},
#if CUDA_VERSION >= 13000
    {"copies", copies},
    {"older_copies", older_copies},
#endif
    {"newer_wait", newer_wait},
    {"other_context", other_context},
    {"older_graph", older_graph},
    {"asked", asked},
    {"mapped", mapped},
    {"over_border", over_border},
    {"kernel_over_border", kernel_over_border},
    {"unmapped_early", unmapped_early},
    {"mapped_anew", mapped_anew},
    {"mapped_twice", mapped_twice},
    {"handle_kept", handle_kept},
};

int main(int argc, char **argv)
{
    fixed = argc > 2 && strcmp(argv[2], "fixed") == 0;
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, argv[1]) != 0)
            continue;
        if (cases[i].run == versions) { /* of any driver */
            versions();
            return 0;
        }
        begin();
        cases[i].run();
        end();
        return 0;
    }
    fprintf(stderr, "no such case\n");
    return 2;
}
