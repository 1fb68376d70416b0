/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.c - small programs of the calls that real programs use: memory in the order of streams, rectangles and boxes,
 * graphs that are given and updated, communicators made of others. `calls CASE` has a mistake and goes well,
 * `calls CASE fixed` has none. A case of calls that nothing models has no mistake.
 */
#include <dlfcn.h>
#include <nccl.h>
#include <string.h>
#include <sys/wait.h>

#include "small.h"

/* ---- memory in the order of streams -------------------------------------------------------------- */

static float *allocate(cudaStream_t stream)
{
    void *memory;
    CHECK(cudaMallocAsync(&memory, BYTES, stream));
    return memory;
}

/* Another stream reads the memory, and the free waits for that, or not. The pool hands it out again to a third stream. */
static void pool_free(void)
{
    float *memory = allocate(one);
    CHECK(kernels_fill_f32(one, memory, COUNT, 1.0F));
    CHECK(cudaEventRecord(event, one));
    CHECK(cudaStreamWaitEvent(two, event, 0));
    CHECK(kernels_axpy(two, memory, y, COUNT, 1.0F));
    CHECK(cudaEventRecord(other, two));
    luck();
    if (fixed)
        CHECK(cudaStreamWaitEvent(one, other, 0));
    CHECK(cudaFreeAsync(memory, one));
    float *again = allocate(three);
    CHECK(kernels_fill_f32(three, again, COUNT, 2.0F));
    CHECK(kernels_axpy(three, again, z, COUNT, 1.0F));
    CHECK(cudaFreeAsync(again, three));
    CHECK(cudaDeviceSynchronize());
}

/* Memory is its stream's: another one comes behind the call that allocated it. */
static void pool_owner(void)
{
    float *memory = allocate(one);
    CHECK(cudaEventRecord(event, one));
    if (fixed)
        CHECK(cudaStreamWaitEvent(two, event, 0));
    CHECK(kernels_fill_f32(two, memory, COUNT, 1.0F));
    CHECK(cudaEventRecord(other, two));
    CHECK(cudaStreamWaitEvent(one, other, 0));
    CHECK(cudaFreeAsync(memory, one));
    CHECK(cudaStreamSynchronize(one));
}

/* cudaFree does not wait for memory of a pool. */
static void pool_freed_now(void)
{
    float *memory = allocate(one);
    CHECK(kernels_fill_f32(one, memory, COUNT, 1.0F));
    if (fixed)
        CHECK(cudaStreamSynchronize(one));
    luck();
    CHECK(cudaFree(memory));
}

/* Memory of cudaMalloc, given back in the order of a stream. */
static void freed_in_stream(void)
{
    void *memory;
    CHECK(cudaMalloc(&memory, BYTES));
    CHECK(kernels_fill_f32(two, memory, COUNT, 1.0F));
    CHECK(cudaEventRecord(event, two));
    if (fixed)
        CHECK(cudaStreamWaitEvent(one, event, 0));
    luck();
    CHECK(cudaFreeAsync(memory, one));
    CHECK(cudaStreamSynchronize(one));
}

/* A pool of the program's own is the device's, as programs set it that want to keep the memory; NULL is the thread's stream. */
cudaError_t cudaMallocAsync_ptsz(void **out, size_t bytes, cudaStream_t stream);
cudaError_t cudaFreeAsync_ptsz(void *address, cudaStream_t stream);
static void pool_of_own(void)
{
    cudaMemPool_t pool;
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned};
    uint64_t most = UINT64_MAX;
    int no = 0;
    void *memory;
    props.location.type = cudaMemLocationTypeDevice;
    CHECK(cudaMemPoolCreate(&pool, &props));
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &most));
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowInternalDependencies, &no));
    CHECK(cudaDeviceSetMemPool(0, pool));
    CHECK(cudaMallocAsync_ptsz(&memory, BYTES, NULL));
    CHECK(kernels_fill_f32(cudaStreamPerThread, memory, COUNT, 1.0F));
    luck();
    CHECK(kernels_axpy(fixed ? cudaStreamPerThread : two, memory, y, COUNT, 1.0F));
    luck();
    CHECK(cudaFreeAsync_ptsz(memory, NULL));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemPoolDestroy(pool));
}

/* It is the program that waits before it gives back all that the device has. */
static void reset(void)
{
    produce(one);
    if (fixed)
        CHECK(cudaDeviceSynchronize());
    luck();
    CHECK(cudaDeviceReset());
    begin(0);
}

/* ---- rectangles and boxes ------------------------------------------------------------------------ */

enum { SIDE = 32, ROW = SIDE * sizeof(float), HALF = ROW / 2 };

/* Two streams write the columns of a matrix: each its half, or one of them a column too many. */
static void columns(void)
{
    static float host[COUNT];
    CHECK(cudaHostRegister(host, sizeof host, 0));
    CHECK(cudaMemcpy2DAsync(x, ROW, host, ROW, HALF + (fixed ? 0 : sizeof(float)), SIDE,
                            cudaMemcpyHostToDevice, one));
    luck();
    CHECK(cudaMemset2DAsync((char *)x + HALF, ROW, 1, HALF, SIDE, two));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaHostUnregister(host));
}

/* A copy of columns leaves the others as they were: what nothing has written is read. */
static void unwritten_columns(void)
{
    static float host[COUNT];
    void *memory;
    CHECK(cudaMalloc(&memory, BYTES));
    CHECK(cudaMemcpy2D(memory, ROW, host, ROW, fixed ? ROW : HALF, SIDE, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(host, memory, BYTES, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(memory));
}

/* Columns of more rows than are looked at one by one. */
static void many_rows(void)
{
    enum { ROWS = 128, WIDTH = BYTES / ROWS };
    CHECK(cudaMemset2DAsync(x, WIDTH, 1, WIDTH / 2, ROWS, one));
    CHECK(cudaMemset2DAsync((char *)x + WIDTH / 2, WIDTH, 1, WIDTH / 2, ROWS, one));
    CHECK(cudaStreamSynchronize(one));
}

static struct cudaPitchedPtr cube(void *memory)
{
    enum { EDGE = 16, EDGE_ROW = EDGE * sizeof(float) };
    return (struct cudaPitchedPtr){memory, EDGE_ROW, EDGE_ROW, EDGE};
}

static struct cudaExtent extent_of(size_t width, size_t height, size_t depth)
{
    return (struct cudaExtent){width, height, depth};
}

/* Of a box of 16 rows and 4 slices a stream fills the first rows of all slices, a copy reads the others. */
static void boxes(void)
{
    struct cudaMemcpy3DParms copy = {.kind = cudaMemcpyDeviceToDevice};
    copy.srcPtr = cube(x);
    copy.dstPtr = cube(y);
    copy.srcPos = (struct cudaPos){0, fixed ? 4 : 3, 0};
    copy.extent = extent_of(32, 8, 4);
    CHECK(cudaMemset3DAsync(cube(x), 1, extent_of(32, 4, 4), one));
    luck();
    CHECK(cudaMemcpy3DAsync(&copy, two));
    CHECK(cudaDeviceSynchronize());
}

/* The host waits for a box that it gets, and not for one that stays. */
static void box_to_host(void)
{
    static float host[COUNT];
    struct cudaMemcpy3DParms copy = {.kind =
                                         fixed ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice};
    CHECK(cudaMemset3D(cube(x), 1, extent_of(32, 4, 4)));
    copy.srcPtr = cube(x);
    copy.dstPtr = cube(fixed ? (void *)host : (void *)y);
    copy.extent = extent_of(32, 4, 4);
    CHECK(cudaMemcpy3D(&copy));
    luck();
    CHECK(cudaMemset2DAsync(x, BYTES, 2, BYTES, 1, one)); /* the whole of what was copied */
}

/* From one device to another. */
static void peer_box(void)
{
    void *there;
    cudaStream_t far;
    struct cudaMemcpy3DPeerParms copy = {.srcDevice = 0, .dstDevice = 1};
    CHECK(cudaSetDevice(1));
    CHECK(cudaMalloc(&there, BYTES));
    CHECK(cudaStreamCreateWithFlags(&far, cudaStreamNonBlocking));
    CHECK(cudaSetDevice(0));
    produce(one);
    CHECK(cudaEventRecord(event, one));
    if (fixed)
        CHECK(cudaStreamWaitEvent(far, event, 0));
    luck();
    copy.srcPtr = cube(x);
    copy.dstPtr = cube(there);
    copy.extent = extent_of(32, 4, 4);
    CHECK(cudaMemcpy3DPeerAsync(&copy, far));
    CHECK(cudaStreamSynchronize(far));
}

/* ---- waits ---------------------------------------------------------------------------------------- */

/* A time between two events shows that both are done. */
static void elapsed(void)
{
    cudaEvent_t from, to;
    float ms;
    CHECK(cudaEventCreateWithFlags(&from, 0));
    CHECK(cudaEventCreateWithFlags(&to, 0));
    CHECK(cudaEventRecord(from, one));
    produce(one);
    CHECK(cudaEventRecord(to, one));
    while (fixed && cudaEventElapsedTime(&ms, from, to) == cudaErrorNotReady)
        usleep(100);
    (void)cudaGetLastError();
    luck();
    consume(two);
    CHECK(cudaStreamSynchronize(two));
}

/* ---- graphs --------------------------------------------------------------------------------------- */

#if CUDART_VERSION >= 12030
/* A capture into a graph of the program's; its executable becomes that of another graph. */
static void graphs(void)
{
    cudaGraph_t given, next;
    cudaGraphExec_t executable;
    cudaGraphExecUpdateResultInfo info;
    cudaGraphInstantiateParams params = {.flags = cudaGraphInstantiateFlagUpload,
                                         .uploadStream = one};
    CHECK(cudaGraphCreate(&given, 0));
    CHECK(
        cudaStreamBeginCaptureToGraph(one, given, NULL, NULL, 0, cudaStreamCaptureModeThreadLocal));
    CHECK(kernels_fill_f32(one, z, COUNT, 1.0F));
    CHECK(cudaStreamEndCapture(one, &given));
    CHECK(cudaGraphInstantiateWithParams(&executable, given, &params));
    CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal));
    produce(one);
    CHECK(cudaStreamEndCapture(one, &next));
    CHECK(cudaGraphLaunch(executable, one));
    CHECK(cudaGraphExecUpdate(executable, next, &info));
    CHECK(cudaGraphLaunch(executable, one));
    CHECK(cudaEventRecord(event, one));
    if (fixed)
        CHECK(cudaStreamWaitEvent(two, event, 0));
    luck();
    consume(two);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(given));
    CHECK(cudaGraphDestroy(next));
}
#endif

static cudaGraphExec_t end_graph(cudaStream_t stream)
{
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiateWithFlags(&executable, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    return executable;
}

/* Each launch of a graph records the event in its midst: what comes behind that is not done for those who wait for it. */
static void external_record(void)
{
    CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal));
    if (fixed)
        produce(one);
    CHECK(cudaEventRecordWithFlags(event, one, cudaEventRecordExternal));
    if (!fixed)
        produce(one);
    CHECK(kernels_fill_f32(one, z, COUNT, 2.0F));
    const cudaGraphExec_t executable = end_graph(one);
    CHECK(cudaGraphLaunch(executable, one));
    CHECK(cudaStreamWaitEvent(two, event, 0));
    luck();
    consume(two);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaGraphExecDestroy(executable));
}

/* Each launch waits for what the event means then: the first for nothing, if it comes too early. */
static void external_wait(void)
{
    CHECK(cudaStreamBeginCapture(two, cudaStreamCaptureModeThreadLocal));
    CHECK(cudaStreamWaitEvent(two, event, cudaEventWaitExternal));
    consume(two);
    const cudaGraphExec_t executable = end_graph(two);
    if (!fixed) {
        CHECK(cudaGraphLaunch(executable, two));
        luck();
    }
    produce(one);
    CHECK(cudaEventRecord(event, one));
    CHECK(cudaGraphLaunch(executable, two));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaGraphExecDestroy(executable));
}

/* Memory that a graph allocates and frees: a branch of it uses the memory, and the free waits for that, or not. */
static void graph_memory(void)
{
    CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal));
    float *memory = allocate(one);
    CHECK(kernels_fill_f32(one, memory, COUNT, 1.0F));
    CHECK(cudaEventRecord(event, one));
    CHECK(cudaStreamWaitEvent(two, event, 0));
    CHECK(kernels_axpy(two, memory, y, COUNT, 1.0F));
    CHECK(cudaEventRecord(other, two));
    if (fixed)
        CHECK(cudaStreamWaitEvent(one, other, 0));
    CHECK(cudaFreeAsync(memory, one));
    if (!fixed)
        CHECK(cudaStreamWaitEvent(one, other, 0));
    const cudaGraphExec_t executable = end_graph(one);
    for (int i = 0; i < 2; i++)
        CHECK(cudaGraphLaunch(executable, one));
    CHECK(cudaStreamSynchronize(one));
    CHECK(cudaGraphExecDestroy(executable));
}

/* A branch uses the memory before the other one has allocated it. */
static void graph_memory_owner(void)
{
    CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal));
    CHECK(cudaEventRecord(event, one));
    CHECK(cudaStreamWaitEvent(two, event, 0));
    float *memory = allocate(one);
    if (fixed) {
        CHECK(cudaEventRecord(event, one));
        CHECK(cudaStreamWaitEvent(two, event, 0));
    }
    CHECK(kernels_fill_f32(two, memory, COUNT, 1.0F));
    CHECK(cudaEventRecord(other, two));
    CHECK(cudaStreamWaitEvent(one, other, 0));
    CHECK(cudaFreeAsync(memory, one));
    const cudaGraphExec_t executable = end_graph(one);
    CHECK(cudaGraphLaunch(executable, one));
    CHECK(cudaStreamSynchronize(one));
    CHECK(cudaGraphExecDestroy(executable));
}

/* The graph leaves it to others, who read it and give it back. */
static void graph_memory_outside(void)
{
    CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal));
    float *memory = allocate(one);
    CHECK(kernels_fill_f32(one, memory, COUNT, 1.0F));
    const cudaGraphExec_t executable = end_graph(one);
    CHECK(cudaGraphLaunch(executable, one));
    CHECK(cudaEventRecord(event, one));
    if (fixed)
        CHECK(cudaStreamWaitEvent(two, event, 0));
    luck();
    CHECK(kernels_axpy(two, memory, y, COUNT, 1.0F));
    CHECK(cudaFreeAsync(memory, two));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaGraphExecDestroy(executable));
}

/* ---- launches with attributes -------------------------------------------------------------------- */

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int thread_limit, uint3 *thread, uint3 *block, dim3 *block_size,
                            dim3 *grid_size, int *warp_size);

static void fill_with(const void *kernel, cudaLaunchAttribute *attribute)
{
    const cudaLaunchConfig_t config = {.gridDim = {COUNT / 256, 1, 1},
                                       .blockDim = {256, 1, 1},
                                       .stream = one,
                                       .attrs = attribute,
                                       .numAttrs = 1};
    long long count = COUNT;
    float value = 1;
    CHECK(cudaLaunchKernelExC(&config, kernel, (void *[]){&x, &count, &value}));
}

/* A launch that may begin before the one in front of it ends, one that records an event, one that may not, and one with
   a priority. */
static void attributes(void)
{
    static const char fill[] = "a kernel";
    static char name[] = "_Z4fillIfEvPT_xS0_";
    cudaLaunchAttribute attribute = {.id = cudaLaunchAttributeProgrammaticStreamSerialization};
    __cudaRegisterFunction(NULL, fill, name, name, -1, NULL, NULL, NULL, NULL, NULL);
    fill_with(fill, &attribute);
    attribute.val.programmaticStreamSerializationAllowed = 1;
    fill_with(fill, &attribute);
    attribute = (cudaLaunchAttribute){.id = cudaLaunchAttributePriority, .val = {.priority = 1}};
    fill_with(fill, &attribute);
    attribute = (cudaLaunchAttribute){.id = cudaLaunchAttributeProgrammaticEvent};
    attribute.val.programmaticEvent.event = event;
    fill_with(fill, &attribute);
}

/* ---- calls that nothing models -------------------------------------------------------------------- */

#if CUDART_VERSION >= 13000
static void copy_two(void *first_to, const void *first_from, void *second_to,
                     const void *second_from, enum cudaMemcpySrcAccessOrder order)
{
    void *to[] = {first_to, second_to};
    const void *from[] = {first_from, second_from};
    const size_t bytes[] = {BYTES, BYTES};
    size_t first = 0;
    struct cudaMemcpyAttributes attributes = {.srcAccessOrder = order};
    CHECK(cudaMemcpyBatchAsync(to, from, bytes, 2, &attributes, &first, 1, one));
}

/* Another stream reads what the second copy writes. */
static void batch(void)
{
    static float host[COUNT];
    copy_two(y, x, z, host, cudaMemcpySrcAccessOrderStream);
    CHECK(cudaEventRecord(event, one));
    if (fixed)
        CHECK(cudaStreamWaitEvent(two, event, 0));
    CHECK(kernels_axpy(two, z, x, COUNT, 1.0F));
    luck();
}

/* Another one writes what the first copy reads. */
static void batch_reads(void)
{
    static float host[COUNT];
    copy_two(y, x, z, host, cudaMemcpySrcAccessOrderStream);
    CHECK(cudaEventRecord(event, one));
    if (fixed)
        CHECK(cudaStreamWaitEvent(two, event, 0));
    luck();
    produce(two);
}

/* The host reads what the first copy writes, behind a wait or too early. */
static void batch_to_host(void)
{
    float *pinned;
    CHECK(cudaHostAlloc((void **)&pinned, BYTES, 0));
    copy_two(pinned, x, z, y, cudaMemcpySrcAccessOrderStream);
    if (fixed)
        CHECK(cudaStreamSynchronize(one));
    luck();
    const float first = *(volatile float *)pinned;
    CHECK(cudaStreamSynchronize(one));
    CHECK(cudaFreeHost(pinned));
    if (first != 0)
        fprintf(stderr, "%g\n", (double)first);
}

static void batch_depends(void)
{
    copy_two(y, x, z, y, cudaMemcpySrcAccessOrderStream);
    CHECK(cudaStreamSynchronize(one));
}

static void batch_in_call(void)
{
    static float host[COUNT];
    for (int i = 0; i < 3; i++)
        copy_two(y, host, z, host, cudaMemcpySrcAccessOrderDuringApiCall);
    CHECK(cudaStreamSynchronize(one));
}

static void batch_of_many(void)
{
    enum { MANY = 171 };
    void *to[MANY];
    const void *from[MANY];
    size_t bytes[MANY], first = 0;
    struct cudaMemcpyAttributes attributes = {.srcAccessOrder = cudaMemcpySrcAccessOrderStream};
    for (int i = 0; i < MANY; i++) {
        to[i] = y + i;
        from[i] = x + i;
        bytes[i] = sizeof *x;
    }
    CHECK(cudaMemcpyBatchAsync(to, from, bytes, MANY, &attributes, &first, 1, one));
    CHECK(cudaMemcpyBatchAsync(to, from, bytes, MANY - 1, &attributes, &first, 1, one));
    CHECK(cudaStreamSynchronize(one));
}
#endif

/* A graph of nodes that no stream was captured for: one allocates memory, one frees it. */
static void graph_nodes(void)
{
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaGraphNode_t allocates, frees;
    struct cudaMemAllocNodeParams memory = {.bytesize = BYTES};
    memory.poolProps.allocType = cudaMemAllocationTypePinned;
    memory.poolProps.location.type = cudaMemLocationTypeDevice;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphAddMemAllocNode(&allocates, graph, NULL, 0, &memory));
    CHECK(cudaGraphAddMemFreeNode(&frees, graph, &allocates, 1, memory.dptr));
    CHECK(cudaGraphInstantiateWithFlags(&executable, graph, 0));
    CHECK(cudaGraphLaunch(executable, one));
    CHECK(cudaStreamSynchronize(one));
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
}

/* Memory that kernels read and write through handles. */
static void textures(void)
{
    const struct cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindFloat};
    struct cudaResourceDesc linear = {.resType = cudaResourceTypeLinear},
                            image = {.resType = cudaResourceTypeArray};
    const struct cudaTextureDesc how = {.readMode = cudaReadModeElementType};
    cudaTextureObject_t texture;
    cudaSurfaceObject_t surface;
    cudaArray_t array;
    linear.res.linear.devPtr = x;
    linear.res.linear.desc = format;
    linear.res.linear.sizeInBytes = BYTES;
    CHECK(cudaCreateTextureObject(&texture, &linear, &how, NULL));
    CHECK(cudaMallocArray(&array, &format, SIDE, SIDE, cudaArraySurfaceLoadStore));
    image.res.array.array = array;
    CHECK(cudaCreateSurfaceObject(&surface, &image));
    CHECK(cudaDestroySurfaceObject(surface));
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaFreeArray(array));
}

/* A function of a library of the test's, which no version of the recorder knows: linked, or asked for. */
int cudaOfTomorrow(void) __attribute__((weak));
static void tomorrow(void)
{
    produce(one);
    CHECK(cudaStreamSynchronize(one));
    if (!fixed && cudaOfTomorrow)
        CHECK(cudaOfTomorrow());
}

static void asks_for_tomorrow(void)
{
    produce(one);
    CHECK(cudaStreamSynchronize(one));
    void *library = dlopen("libcudart.so.tomorrow", RTLD_NOW);
    if (!library || !dlsym(library, "cudaOfTomorrow"))
        exit(1);
}

/* It leaves without exit's handlers. */
static void leaves(void)
{
    produce(one);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(x));
    _exit(0);
}

/* ---- communicators -------------------------------------------------------------------------------- */

static ncclComm_t comm;
static int ranks;

static void sum(ncclComm_t on, float *out, cudaStream_t stream, size_t count)
{
    CHECK(ncclAllReduce(x, out, count, ncclFloat, ncclSum, on, stream));
}

/* Halves of four ranks, in which the ranks have the other order: 0 and 2, 1 and 3. */
static ncclComm_t half(int rank, bool in_group)
{
    ncclComm_t out = NULL;
    int place;
    if (in_group)
        CHECK(ncclGroupStart());
    CHECK(ncclCommSplit(comm, rank % 2, -rank, &out, NULL));
    if (in_group)
        CHECK(ncclGroupEnd());
    CHECK(ncclCommUserRank(out, &place));
    if (place != (rank < 2))
        exit(1);
    return out;
}

static void send_in_half(ncclComm_t mine, int rank, size_t count)
{
    if (rank < 2) /* rank 1 of its half */
        CHECK(ncclSend(x, count, ncclFloat, 0, mine, one));
    else
        CHECK(ncclRecv(y, count, ncclFloat, 1, mine, one));
    CHECK(cudaStreamSynchronize(one));
}

/* One half sums another number of elements than the other: right; one of its ranks alone does: a hang. */
static void split(int rank)
{
    ncclComm_t mine = half(rank, false);
    send_in_half(mine, rank, COUNT);
    sum(mine, y, one, !fixed && rank == 3 ? 16 : 32 + (size_t)(rank % 2));
    CHECK(cudaStreamSynchronize(one));
    CHECK(ncclCommDestroy(mine));
}

/* The handle comes at the end of the group; the same communicator is divided twice. */
static void split_in_group(int rank)
{
    ncclComm_t first = half(rank, true), again = half(rank, true);
    sum(first, y, one, COUNT);
    CHECK(cudaEventRecord(event, one));
    if (fixed)
        CHECK(cudaStreamWaitEvent(two, event, 0));
    luck();
    sum(again, y, two, COUNT);
    CHECK(cudaStreamSynchronize(two));
    CHECK(ncclCommFinalize(first));
    CHECK(ncclCommDestroy(first));
    CHECK(ncclCommDestroy(again));
}

/* A communicator that does not block: its handle comes later. One rank takes no part. */
static void split_later(int rank)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t mine = NULL;
    ncclResult_t state = ncclInProgress;
    config.blocking = 0;
    const int result = ncclCommSplit(comm, rank == 2 ? NCCL_SPLIT_NOCOLOR : 7, 0, &mine, &config);
    if (result != ncclInProgress && result != ncclSuccess)
        exit(1);
    for (; state == ncclInProgress; usleep(100))
        CHECK(ncclCommGetAsyncError(comm, &state));
    if (state != ncclSuccess || (rank == 2) != (mine == NULL))
        exit(1);
    if (!mine)
        return;
    int begun = ncclAllReduce(x, y, COUNT, ncclFloat, ncclSum, mine, one);
    for (state = ncclInProgress; state == ncclInProgress; usleep(100))
        CHECK(ncclCommGetAsyncError(mine, &state));
    if ((begun != ncclSuccess && begun != ncclInProgress) || state != ncclSuccess)
        exit(1);
    CHECK(cudaEventRecord(event, one));
    if (fixed)
        CHECK(cudaStreamWaitEvent(two, event, 0));
    luck();
    CHECK(kernels_axpy(two, y, z, COUNT, 1.0F));
    CHECK(cudaDeviceSynchronize());
    CHECK(ncclCommDestroy(mine));
}

#ifdef NCCL_SHRINK_DEFAULT
/* Rank 1 is left out; the others' messages go by their new numbers. */
static void shrunk(int rank)
{
    int excluded = 1;
    ncclComm_t rest = NULL;
    if (rank == excluded)
        return;
    CHECK(ncclCommShrink(comm, &excluded, 1, &rest, NULL, NCCL_SHRINK_DEFAULT));
    sum(rest, y, one, COUNT);
    CHECK(cudaStreamSynchronize(one));
    if (rank == 0)
        CHECK(ncclSend(x, 16, ncclFloat, 1, rest, one));
    else if (rank == 2 && fixed)
        CHECK(ncclRecv(y, 16, ncclFloat, 0, rest, one));
    CHECK(cudaStreamSynchronize(one));
    CHECK(ncclCommDestroy(rest));
}
#endif

#ifdef NCCL_SIM_INFO_INITIALIZER
/* A group that is only simulated does nothing, whatever the other rank does. */
static void simulated(int rank)
{
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    CHECK(ncclGroupStart());
    sum(comm, y, one, rank == 0 ? 16 : 32);
    CHECK(ncclGroupSimulateEnd(&info));
    sum(comm, y, one, fixed || rank == 0 ? 16 : 32);
    CHECK(cudaStreamSynchronize(one));
}
#endif

/* ---- all GPUs of one process ----------------------------------------------------------------------- */

enum { GPUS = 2 };
static struct {
    float *from, *to, *sum;
    cudaStream_t own, other;
    cudaEvent_t event;
} gpus[GPUS];

static void begin_gpus(void)
{
    for (int i = 0; i < GPUS; i++) {
        CHECK(cudaSetDevice(i));
        CHECK(kernels_load());
        CHECK(cudaMalloc((void **)&gpus[i].from, BYTES));
        CHECK(cudaMalloc((void **)&gpus[i].to, BYTES));
        CHECK(cudaMalloc((void **)&gpus[i].sum, BYTES));
        CHECK(cudaStreamCreateWithFlags(&gpus[i].own, cudaStreamNonBlocking));
        CHECK(cudaStreamCreateWithFlags(&gpus[i].other, cudaStreamNonBlocking));
        CHECK(cudaEventCreateWithFlags(&gpus[i].event, cudaEventDisableTiming));
        CHECK(kernels_fill_f32(gpus[i].own, gpus[i].from, COUNT, 1.0F));
        CHECK(cudaMemset(gpus[i].sum, 0, BYTES));
        CHECK(cudaDeviceSynchronize());
    }
    CHECK(cudaSetDevice(0));
}

/* The sum over all of them, used on another stream of each. */
static void use_sum(ncclComm_t comms[GPUS])
{
    CHECK(ncclGroupStart());
    for (int i = 0; i < GPUS; i++)
        CHECK(ncclAllReduce(gpus[i].from, gpus[i].to, COUNT, ncclFloat, ncclSum, comms[i],
                            gpus[i].own));
    CHECK(ncclGroupEnd());
    for (int i = 0; i < GPUS; i++) {
        CHECK(cudaSetDevice(i));
        CHECK(cudaEventRecord(gpus[i].event, gpus[i].own));
        if (fixed || i == 0)
            CHECK(cudaStreamWaitEvent(gpus[i].other, gpus[i].event, 0));
    }
    luck();
    for (int i = 0; i < GPUS; i++) {
        CHECK(cudaSetDevice(i));
        CHECK(kernels_axpy(gpus[i].other, gpus[i].to, gpus[i].sum, COUNT, 1.0F));
    }
    for (int i = 0; i < GPUS; i++) {
        CHECK(cudaSetDevice(i));
        CHECK(cudaDeviceSynchronize());
        CHECK(ncclCommDestroy(comms[i]));
    }
    CHECK(cudaSetDevice(0));
}

static void all_gpus(void)
{
    ncclComm_t comms[GPUS];
    begin_gpus();
    CHECK(ncclCommInitAll(comms, GPUS, NULL));
    use_sum(comms);
}

/* As NVIDIA's tests of NCCL make them. */
static void gpus_in_group(void)
{
    ncclComm_t comms[GPUS];
    ncclUniqueId id;
    begin_gpus();
    CHECK(ncclGetUniqueId(&id));
    CHECK(ncclGroupStart());
    for (int i = 0; i < GPUS; i++) {
        CHECK(cudaSetDevice(i));
        CHECK(ncclCommInitRank(&comms[i], GPUS, id, i));
    }
    CHECK(ncclGroupEnd());
    use_sum(comms);
}

/* ---- all of them ----------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*alone)(void);
    void (*ranks)(int rank);
    int count;
} cases[] = {
    {"pool_free", pool_free, NULL, 0},
    {"pool_owner", pool_owner, NULL, 0},
    {"pool_freed_now", pool_freed_now, NULL, 0},
    {"freed_in_stream", freed_in_stream, NULL, 0},
    {"pool_of_own", pool_of_own, NULL, 0},
    {"reset", reset, NULL, 0},
    {"columns", columns, NULL, 0},
    {"unwritten_columns", unwritten_columns, NULL, 0},
    {"many_rows", many_rows, NULL, 0},
    {"boxes", boxes, NULL, 0},
    {"box_to_host", box_to_host, NULL, 0},
    {"peer_box", peer_box, NULL, 0},
    {"elapsed", elapsed, NULL, 0},
#if CUDART_VERSION >= 12030
    {"graphs", graphs, NULL, 0},
#endif
    {"graph_memory", graph_memory, NULL, 0},
    {"graph_nodes", graph_nodes, NULL, 0},
    {"textures", textures, NULL, 0},
    {"graph_memory_owner", graph_memory_owner, NULL, 0},
    {"graph_memory_outside", graph_memory_outside, NULL, 0},
    {"external_record", external_record, NULL, 0},
    {"external_wait", external_wait, NULL, 0},
    {"attributes", attributes, NULL, 0},
#if CUDART_VERSION >= 13000
    {"batch", batch, NULL, 0},
    {"batch_reads", batch_reads, NULL, 0},
    {"batch_to_host", batch_to_host, NULL, 0},
    {"batch_depends", batch_depends, NULL, 0},
    {"batch_in_call", batch_in_call, NULL, 0},
    {"batch_of_many", batch_of_many, NULL, 0},
#endif
    {"tomorrow", tomorrow, NULL, 0},
    {"asks_for_tomorrow", asks_for_tomorrow, NULL, 0},
    {"leaves", leaves, NULL, 0},
    {"split", NULL, split, 4},
    {"split_in_group", NULL, split_in_group, 4},
    {"split_later", NULL, split_later, 3},
#ifdef NCCL_SHRINK_DEFAULT
    {"shrunk", NULL, shrunk, 3},
#endif
#ifdef NCCL_SIM_INFO_INITIALIZER
    {"simulated", NULL, simulated, 2},
#endif
    {"all_gpus", all_gpus, NULL, 0},
    {"gpus_in_group", gpus_in_group, NULL, 0},
};

/* Two ids for one communicator: NCCL takes as many as there are. */
static void run_rank(int rank, ncclUniqueId ids[2], void (*run)(int))
{
    begin(rank);
#if NCCL_VERSION_CODE >= 22300
    CHECK(ncclCommInitRankScalable(&comm, ranks, rank, 2, ids, NULL));
#else
    CHECK(ncclCommInitRank(&comm, ranks, ids[0], rank));
#endif
    sum(comm, y, one, 16); /* connects the ranks, which waits */
    CHECK(cudaStreamSynchronize(one));
    run(rank);
    end();
    CHECK(ncclCommDestroy(comm));
}

static int run_ranks(void (*run)(int))
{
    ncclUniqueId ids[2];
    int failed = 0;
    CHECK(ncclGetUniqueId(&ids[0]));
    CHECK(ncclGetUniqueId(&ids[1]));
    for (int rank = 0; rank < ranks; rank++)
        if (fork() == 0) {
            alarm(5); /* a run that hangs */
            run_rank(rank, ids, run);
            exit(0);
        }
    for (int how, i = 0; i < ranks; i++)
        failed |= wait(&how) < 0 || how != 0;
    return failed;
}

int main(int argc, char **argv)
{
    fixed = argc > 2 && strcmp(argv[2], "fixed") == 0;
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, argv[1]) != 0)
            continue;
        ranks = cases[i].count;
        if (cases[i].ranks)
            return run_ranks(cases[i].ranks);
        begin(0);
        cases[i].alone();
        end();
        return 0;
    }
    fprintf(stderr, "no such case\n");
    return 2;
}
