/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dry.cu - a CUDA program, linked with libcudart as users link theirs, that t_record_none.sh records without a GPU.
 *
 * dry CASE: right, or with the mistake that the case names. Cases of two ranks take RANK and WORLD_SIZE from the
 * environment and meet by the file DRY_ID. Every result is checked that does not come from a kernel.
 */
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        const int result_ = (int)(call);                                                           \
        if (result_ != 0) {                                                                        \
            fprintf(stderr, "dry: %s: %d\n", #call, result_);                                      \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

__global__ void scale(const float *from, float *to, int count)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count)
        to[i] = 2 * from[i];
}
__global__ void add(const float *a, const float *b, float *to, int count)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count)
        to[i] = a[i] + b[i];
}

enum { COUNT = 1 << 16, BYTES = COUNT * 4 };
static bool is_case(const char *own, const char *name)
{
    return strcmp(own, name) == 0;
}

/* A copy in on one stream, work on another, and a copy out. */
static void pipeline(const char *name)
{
    float *host, *a, *b, *out;
    cudaStream_t copies, work;
    cudaEvent_t there, done;
    CHECK(cudaMallocHost(&host, 2 * BYTES));
    CHECK(cudaMalloc(&a, BYTES));
    CHECK(cudaMalloc(&b, BYTES));
    CHECK(cudaMalloc(&out, BYTES));
    CHECK(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&there, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < COUNT; k++)
            host[k] = (float)(k + i);
        CHECK(cudaMemcpyAsync(a, host, BYTES, cudaMemcpyHostToDevice, copies));
        CHECK(cudaEventRecord(there, is_case(name, "wrong_stream") ? work : copies));
        if (!is_case(name, "no_wait"))
            CHECK(cudaStreamWaitEvent(work, there, 0));
        scale<<<COUNT / 256, 256, 0, work>>>(a, b, COUNT);
        CHECK(cudaGetLastError());
        add<<<COUNT / 256, 256, 0, work>>>(a, b, out, COUNT);
        CHECK(cudaMemcpyAsync(host + COUNT, a, BYTES, cudaMemcpyDeviceToHost, work));
        CHECK(cudaEventRecord(done, work));
        /* The answer is no as long as CUDA allows: who takes it for a yes waits all the same. */
        if (is_case(name, "asks") && cudaEventQuery(done) != cudaErrorNotReady)
            exit(2);
        (void)cudaGetLastError(); /* the no */
        if (!is_case(name, "refill"))
            CHECK(cudaEventSynchronize(done));
        if (is_case(name, "asks"))
            CHECK(cudaEventQuery(done));
        if (!is_case(name, "refill") && host[COUNT + 17] != (float)(17 + i))
            exit(3);
    }
    CHECK(cudaDeviceSynchronize());
}

/* A graph of two streams, launched twice. */
static void graph(const char *name)
{
    float *a, *b, *host;
    cudaStream_t one, two;
    cudaEvent_t fork, join;
    cudaGraph_t made;
    cudaGraphExec_t executable;
    CHECK(cudaMalloc(&a, BYTES));
    CHECK(cudaMalloc(&b, BYTES));
    CHECK(cudaMallocHost(&host, BYTES));
    CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    host[5] = 7;
    CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
    CHECK(cudaMemcpyAsync(a, host, BYTES, cudaMemcpyHostToDevice, one));
    CHECK(cudaEventRecord(fork, one));
    CHECK(cudaStreamWaitEvent(two, fork, 0));
    scale<<<COUNT / 256, 256, 0, two>>>(a, b, COUNT);
    CHECK(cudaEventRecord(join, two));
    CHECK(cudaStreamWaitEvent(one, join, 0));
    CHECK(cudaStreamEndCapture(one, &made));
    CHECK(cudaGraphInstantiate(&executable, made, 0));
    for (int i = 0; i < 2; i++)
        CHECK(cudaGraphLaunch(executable, one));
    if (!is_case(name, "graph_unwaited"))
        CHECK(cudaStreamSynchronize(one));
    CHECK(cudaMemcpyAsync(host, a, BYTES, cudaMemcpyDeviceToHost, two));
    CHECK(cudaStreamSynchronize(two));
    if (!is_case(name, "graph_unwaited") && host[5] != 7)
        exit(3);
    CHECK(cudaDeviceSynchronize());
}

/* ---- two ranks ------------------------------------------------------------------------------------- */

struct id {
    char bytes[128];
};
typedef void *comm;
static int (*get_id)(struct id *), (*init)(comm *, int, struct id, int), (*group_start)(void), (*group_end)(void),
    (*destroy)(comm), (*all_reduce)(const void *, void *, size_t, int, int, comm, cudaStream_t),
    (*all_gather)(const void *, void *, size_t, int, comm, cudaStream_t),
    (*send)(const void *, size_t, int, int, comm, cudaStream_t),
    (*receive)(void *, size_t, int, int, comm, cudaStream_t), (*split)(comm, int, int, comm *, void *);
enum { FLOAT = 7, SUM = 0 };

static void *nccl(const char *name)
{
    static void *library;
    if (!library)
        library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_GLOBAL);
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        fprintf(stderr, "dry: no %s\n", name);
        exit(1);
    }
    return found;
}
#define GET(function, name) *(void **)&(function) = nccl(name)

static struct id meet(int rank)
{
    struct id id;
    char other[4096];
    snprintf(other, sizeof other, "%s.new", getenv("DRY_ID"));
    if (rank == 0) {
        FILE *file = fopen(other, "w");
        CHECK(get_id(&id));
        if (!file || fwrite(&id, sizeof id, 1, file) != 1 || fclose(file) || rename(other, getenv("DRY_ID")))
            exit(1);
        return id;
    }
    FILE *file;
    while (!(file = fopen(getenv("DRY_ID"), "r")))
        usleep(1000);
    if (fread(&id, sizeof id, 1, file) != 1)
        exit(1);
    fclose(file);
    return id;
}

static void exchange(const char *name)
{
    const int rank = atoi(getenv("RANK")), other = 1 - rank;
    comm all, part;
    cudaStream_t stream;
    float *a, *b, host[8];
    GET(get_id, "ncclGetUniqueId");
    GET(init, "ncclCommInitRank");
    GET(group_start, "ncclGroupStart");
    GET(group_end, "ncclGroupEnd");
    GET(destroy, "ncclCommDestroy");
    GET(all_reduce, "ncclAllReduce");
    GET(all_gather, "ncclAllGather");
    GET(send, "ncclSend");
    GET(receive, "ncclRecv");
    GET(split, "ncclCommSplit");
    CHECK(cudaSetDevice(rank));
    CHECK(init(&all, 2, meet(rank), rank));
    CHECK(split(all, 0, -rank, &part, NULL)); /* the other way round */
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&a, BYTES));
    CHECK(cudaMalloc(&b, 2 * BYTES));
    CHECK(cudaMemsetAsync(a, 0, BYTES, stream));
    host[0] = (float)(rank + 1);
    CHECK(cudaMemcpyAsync(a, host, 4, cudaMemcpyHostToDevice, stream));
    if (is_case(name, "ranks_count"))
        CHECK(all_reduce(a, b, rank ? COUNT / 2 : COUNT, FLOAT, SUM, all, stream));
    else if (is_case(name, "ranks_kind") && rank == 1)
        CHECK(all_gather(a, b, COUNT, FLOAT, all, stream));
    else
        CHECK(all_reduce(a, b, COUNT, FLOAT, SUM, all, stream));
    CHECK(cudaMemcpyAsync(host + 1, b, 4, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    if (is_case(name, "ranks") && host[1] != 3)
        exit(3);
    if (is_case(name, "ranks_ended")) { /* rank 0 has ended when rank 1 takes what it sent */
        if (rank == 0)
            CHECK(send(a, 1, FLOAT, other, all, stream));
        else {
            usleep(1000000);
            CHECK(receive(b, 1, FLOAT, other, all, stream));
            CHECK(cudaMemcpyAsync(host + 2, b, 4, cudaMemcpyDeviceToHost, stream));
        }
        CHECK(cudaStreamSynchronize(stream));
        if (rank == 1 && host[2] != 1)
            exit(3);
        return;
    }
    if (is_case(name, "ranks_both_send")) {
        CHECK(send(a, COUNT, FLOAT, other, all, stream));
        CHECK(receive(b, COUNT, FLOAT, other, all, stream));
    } else {
        CHECK(group_start());
        CHECK(send(a, COUNT, FLOAT, other, all, stream));
        CHECK(receive(b, COUNT, FLOAT, other, all, stream));
        CHECK(group_end());
    }
    CHECK(cudaMemcpyAsync(host + 2, b, 4, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    if (is_case(name, "ranks") && host[2] != (float)(other + 1))
        exit(3);
    CHECK(all_gather(a, b, 1, FLOAT, part, stream));
    CHECK(cudaMemcpyAsync(host + 3, b, 8, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    if (is_case(name, "ranks") && (host[3] != 2 || host[4] != 1)) /* rank 1 is first */
        exit(3);
    CHECK(destroy(part));
    CHECK(destroy(all));
}

/* What a program reads of a device lies where the toolkit's header has it. */
static void look_at_device(void)
{
    cudaDeviceProp properties;
    cudaPointerAttributes attributes;
    cudaFuncAttributes function;
    void *pinned, *device;
    int blocks;
    CHECK(cudaGetDeviceProperties(&properties, 1));
    CHECK(cudaFuncGetAttributes(&function, add));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 256, 0));
    printf("%s %d.%d, %d multiprocessors, bus %d, %d blocks, %zu shared, pools %d, clusters %d, %d threads, %d resident\n",
           properties.name, properties.major, properties.minor, properties.multiProcessorCount, properties.pciBusID,
           properties.maxBlocksPerMultiProcessor, properties.sharedMemPerBlockOptin, properties.memoryPoolsSupported,
           properties.clusterLaunch, function.maxThreadsPerBlock, blocks);
    CHECK(cudaMallocHost(&pinned, 8));
    CHECK(cudaMalloc(&device, 8));
    CHECK(cudaPointerGetAttributes(&attributes, pinned));
    if (attributes.type != cudaMemoryTypeHost || attributes.hostPointer != pinned)
        exit(4);
    CHECK(cudaPointerGetAttributes(&attributes, (char *)device + 4));
    if (attributes.type != cudaMemoryTypeDevice || attributes.device != 0)
        exit(4);
    CHECK(cudaPointerGetAttributes(&attributes, &properties));
    if (attributes.type != cudaMemoryTypeUnregistered)
        exit(4);
    CHECK(cudaFree(device));
    CHECK(cudaFreeHost(pinned));
    if (cudaMalloc(&device, (size_t)1 << 40) != cudaErrorMemoryAllocation || cudaGetLastError() != cudaErrorMemoryAllocation ||
        cudaGetLastError() != cudaSuccess)
        exit(4);
}

/* Threads that wait for their streams under a lock: a plan of some 30,000 states, with answers of queries or without. */
enum { THREADS = 4, TURNS = 6 };
static pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER;
static void *take_turns(void *memory)
{
    cudaStream_t own;
    CHECK(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
    for (int i = 0; i < TURNS; i++) {
        pthread_mutex_lock(&turn_lock);
        CHECK(cudaMemsetAsync(memory, i, 16, own));
        CHECK(cudaStreamSynchronize(own));
        pthread_mutex_unlock(&turn_lock);
    }
    return NULL;
}

static void turns(void)
{
    pthread_t threads[THREADS];
    char *memory;
    CHECK(cudaMalloc(&memory, THREADS * 16));
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, take_turns, memory + 16 * i));
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL));
}

int main(int count, char **names)
{
    const char *name = count > 1 ? names[1] : "right";
    int devices;
    CHECK(cudaGetDeviceCount(&devices));
    if (is_case(name, "device"))
        look_at_device();
    else if (is_case(name, "array")) {
        cudaArray_t array;
        const cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindFloat};
        CHECK(cudaMallocArray(&array, &format, 16, 16, 0));
    } else if (strncmp(name, "ranks", 5) == 0)
        exchange(name);
    else if (strncmp(name, "graph", 5) == 0)
        graph(name);
    else if (is_case(name, "turns"))
        turns();
    else
        pipeline(name);
    printf("%d devices\n", devices);
    return 0;
}
