/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.c - small CUDA programs with a known mistake each, and their repaired versions: what `swsim record` is
 * tried on. `program CASE` makes the mistake, `program CASE fixed` does not. Every run that ends goes well: where
 * nothing is waited for, the host sleeps instead.
 */
#include <dlfcn.h>
#include <nccl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "small.h"

/* ---- one process ------------------------------------------------------------------------------ */

static void missing_wait(void)
{
    produce(one);
    CHECK(cudaEventRecord(event, one));
    if (fixed)
        CHECK(cudaStreamWaitEvent(two, event, 0));
    luck();
    consume(two);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool recorded;

static void *produce_in_thread(void *unused)
{
    (void)unused;
    produce(one);
    CHECK(cudaEventRecord(event, one));
    pthread_mutex_lock(&lock);
    recorded = true;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* The wait may be called before the record, and waits for nothing then. */
static void wait_before_record(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, produce_in_thread, NULL));
    luck();
    if (fixed) {
        pthread_mutex_lock(&lock);
        while (!recorded)
            pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
    }
    CHECK(cudaStreamWaitEvent(two, event, 0));
    consume(two);
    CHECK(pthread_join(thread, NULL));
}

/* The event stands for the second stream's work when it is waited for. */
static void event_reused(void)
{
    produce(one);
    CHECK(cudaEventRecord(event, one));
    CHECK(kernels_fill_f32(three, z, COUNT, 2.0F));
    CHECK(cudaEventRecord(fixed ? other : event, three));
    luck();
    CHECK(cudaStreamWaitEvent(two, event, 0));
    consume(two);
}

/* A copy into the program's own memory, which it takes back before the copy is known to be done. */
static void freed_early(void)
{
    float *memory = malloc(BYTES);
    CHECK(cudaHostRegister(memory, BYTES, 0));
    produce(one);
    CHECK(cudaMemcpyAsync(memory, x, BYTES, cudaMemcpyDeviceToHost, one));
    if (fixed)
        CHECK(cudaStreamSynchronize(one));
    luck();
    CHECK(cudaHostUnregister(memory));
    free(memory);
}

/* The host looks at the result of a copy that nobody has waited for. */
static void host_reads(void)
{
    float *memory;
    CHECK(cudaHostAlloc((void **)&memory, BYTES, 0));
    produce(one);
    CHECK(cudaMemcpyAsync(memory, x, BYTES, cudaMemcpyDeviceToHost, one));
    if (fixed)
        CHECK(cudaStreamSynchronize(one));
    luck();
    const volatile float *first = memory;
    if (*first != 1.0F)
        exit(1);
    CHECK(cudaStreamSynchronize(one));
    CHECK(cudaFreeHost(memory));
}

/* A function of the driver, as the runtime gives it out. */
static int (*driver_query(void))(cudaStream_t)
{
    int (*query)(cudaStream_t) = NULL;
    void *found = NULL;
    enum cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
    CHECK(cudaGetDriverEntryPointByVersion("cuStreamQuery", &found, 12000, cudaEnableDefault,
                                           &result));
#elif CUDART_VERSION >= 12000
    CHECK(cudaGetDriverEntryPoint("cuStreamQuery", &found, cudaEnableDefault, &result));
#endif
    memcpy(&query, &found, sizeof query);
    return query;
}

/* A stream reads what another one writes, once the host has asked the driver whether that is done, or never. */
static void driver_asked(void)
{
    int (*query)(cudaStream_t) = driver_query();
    produce(one);
    while (fixed && query(one) != 0)
        usleep(100);
    luck();
    consume(two);
    CHECK(cudaStreamSynchronize(two));
}

/* A copy reads a half of an allocation that nothing has written. */
static void half_written(void)
{
    char *memory;
    static char host[BYTES];
    const size_t all = 2 * (size_t)BYTES;
    CHECK(cudaMalloc((void **)&memory, all));
    CHECK(cudaMemsetAsync(memory, 0, fixed ? all : BYTES, one));
    CHECK(cudaMemcpyAsync(host, memory + BYTES, BYTES, cudaMemcpyDeviceToHost, one));
    CHECK(cudaStreamSynchronize(one));
    CHECK(cudaFree(memory));
}

/* The host fills memory again from which a copy may still read. */
static void host_writes(void)
{
    float *memory;
    CHECK(cudaHostAlloc((void **)&memory, BYTES, 0));
    memset(memory, 0, BYTES);
    CHECK(cudaMemcpyAsync(x, memory, BYTES, cudaMemcpyHostToDevice, one));
    if (fixed)
        CHECK(cudaStreamSynchronize(one));
    luck();
    volatile float *first = memory;
    *first = 2.0F;
    CHECK(cudaStreamSynchronize(one));
    CHECK(cudaFreeHost(memory));
}

static void note(void *flag)
{
    *(volatile int *)flag = 1;
}

/* A host function belongs to its stream's order: nothing is wrong here. */
static void host_function(void)
{
    static int called;
    produce(one);
    CHECK(cudaLaunchHostFunc(one, note, &called));
    CHECK(cudaEventRecord(event, one));
    CHECK(cudaStreamWaitEvent(two, event, 0));
    consume(two);
    CHECK(cudaStreamSynchronize(two));
    if (!called)
        exit(1);
}

/* A captured graph; what comes behind its launch on another stream waits for it, or not. */
static void graph(void)
{
    cudaGraph_t captured;
    cudaGraphExec_t executable;
    CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal));
    produce(one);
    CHECK(cudaStreamEndCapture(one, &captured));
    CHECK(cudaGraphInstantiate(&executable, captured, 0));
    CHECK(cudaGraphLaunch(executable, one));
    CHECK(cudaGraphLaunch(executable, one));
    CHECK(cudaEventRecord(event, one));
    if (fixed)
        CHECK(cudaStreamWaitEvent(two, event, 0));
    luck();
    consume(two);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(captured));
}

/* The host waits for a stream that has nothing but a wait in it. */
static void sync_behind_wait(void)
{
    produce(one);
    CHECK(cudaEventRecord(event, one));
    if (fixed)
        CHECK(cudaStreamWaitEvent(two, event, 0));
    luck();
    CHECK(cudaStreamSynchronize(two));
    consume(three);
}

/* The mistake is in the program that the process was before it became another one. */
static void becomes_another(void)
{
    missing_wait();
    CHECK(cudaDeviceSynchronize());
    execl("/proc/self/exe", "program", "missing_wait", "fixed", NULL);
    exit(1);
}

/* cudaFree waits for the device, also of memory that nothing uses. */
static void free_waits(void)
{
    void *unused;
    CHECK(cudaMalloc(&unused, BYTES));
    produce(one);
    luck();
    if (fixed)
        CHECK(cudaFree(unused));
    consume(two);
    if (!fixed)
        CHECK(cudaFree(unused));
}

/* A library that finds CUDA's functions before the recorder's. */
static void deep_library(void)
{
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_DEEPBIND);
    if (!library)
        exit(1);
    produce(one);
    CHECK(cudaStreamSynchronize(one));
    consume(two);
}

/* ---- default streams and several devices ------------------------------------------------------ */

/* The default stream waits for streams that are not cudaStreamNonBlocking, and for no others. */
static void default_stream(void)
{
    cudaStream_t own;
    CHECK(cudaStreamCreateWithFlags(&own, fixed ? cudaStreamDefault : cudaStreamNonBlocking));
    produce(own);
    luck();
    consume(NULL);
    CHECK(cudaStreamSynchronize(own));
}

/* ... and a stream of that kind for the default stream. */
static void behind_default(void)
{
    cudaStream_t own;
    CHECK(cudaStreamCreateWithFlags(&own, fixed ? cudaStreamDefault : cudaStreamNonBlocking));
    produce(NULL);
    luck();
    consume(own);
}

/* A copy without a stream is in the default stream, and the host waits for it. */
static void plain_copy(void)
{
    static float memory[COUNT];
    cudaStream_t own;
    CHECK(cudaStreamCreateWithFlags(&own, fixed ? cudaStreamDefault : cudaStreamNonBlocking));
    produce(own);
    luck();
    CHECK(cudaMemcpy(memory, x, BYTES, cudaMemcpyDeviceToHost));
    if (memory[COUNT - 1] != 1.0F)
        exit(1);
}

/* As a program calls it that nvcc --default-stream per-thread compiled: NULL is the thread's own stream, which the
   legacy one waits for. */
cudaError_t cudaMemsetAsync_ptsz(void *to, int value, size_t bytes, cudaStream_t stream);
static void thread_stream(void)
{
    CHECK(cudaMemsetAsync_ptsz(x, 1, BYTES, NULL));
    luck();
    consume(fixed ? cudaStreamLegacy : two);
}

/* The streams of two threads do not wait for each other. */
static void *fill_in_thread(void *unused)
{
    (void)unused;
    produce(cudaStreamPerThread);
    if (fixed)
        CHECK(cudaStreamSynchronize(cudaStreamPerThread));
    return NULL;
}

static void streams_of_threads(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, fill_in_thread, NULL));
    CHECK(pthread_join(thread, NULL));
    luck();
    consume(cudaStreamPerThread);
}

/* A result of device 0 goes to device 1, on a stream of device 1 that has to wait for it, and is used there. */
static float *there, *result_there;
static cudaStream_t far;
static void begin_there(void)
{
    CHECK(cudaSetDevice(1));
    CHECK(kernels_load());
    CHECK(cudaMalloc((void **)&there, BYTES));
    CHECK(cudaMalloc((void **)&result_there, BYTES));
    CHECK(cudaStreamCreateWithFlags(&far, cudaStreamNonBlocking));
    CHECK(cudaMemsetAsync(result_there, 0, BYTES, far));
    CHECK(cudaStreamSynchronize(far));
    CHECK(cudaSetDevice(0));
}

static void end_there(void)
{
    CHECK(cudaSetDevice(1));
    CHECK(kernels_axpy(far, there, result_there, COUNT, 1.0F));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaSetDevice(0));
}

static void peer_copy(void)
{
    begin_there();
    produce(one);
    CHECK(cudaEventRecord(event, one));
    if (fixed)
        CHECK(cudaStreamWaitEvent(far, event, 0));
    luck();
    CHECK(cudaMemcpyPeerAsync(there, 1, x, 0, BYTES, far));
    end_there();
}

/* Without a stream the copy waits for all work of both devices, and that for it. */
static void peer_copy_alone(void)
{
    begin_there();
    produce(one);
    luck();
    if (fixed)
        CHECK(cudaMemcpyPeer(there, 1, x, 0, BYTES));
    else
        CHECK(cudaMemcpyPeerAsync(there, 1, x, 0, BYTES, two));
    luck();
    end_there();
}

/* ... also that of a stream which is made later. */
static void peer_copy_first(void)
{
    begin_there();
    produce(one);
    CHECK(cudaEventRecord(event, one));
    CHECK(cudaStreamWaitEvent(two, event, 0));
    luck();
    if (fixed)
        CHECK(cudaMemcpyAsync(there, x, BYTES, cudaMemcpyDeviceToDevice, NULL));
    else
        CHECK(cudaMemcpyAsync(there, x, BYTES, cudaMemcpyDeviceToDevice, two));
    CHECK(cudaSetDevice(1));
    CHECK(cudaStreamCreateWithFlags(&far, cudaStreamNonBlocking));
    CHECK(cudaSetDevice(0));
    luck();
    end_there();
}

/* The cost of the recorder: a call that does next to nothing, a lock, and a launch, in ns. */
static double time_of(void (*call)(void), int times)
{
    struct timespec begin_time, end_time;
    clock_gettime(CLOCK_MONOTONIC, &begin_time);
    for (int i = 0; i < times; i++)
        call();
    clock_gettime(CLOCK_MONOTONIC, &end_time);
    return ((double)(end_time.tv_sec - begin_time.tv_sec) * 1e9 +
            (double)(end_time.tv_nsec - begin_time.tv_nsec)) /
           times;
}

static void query(void)
{
    CHECK(cudaEventQuery(event));
}

static void lock_alone(void)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

static void launch(void)
{
    CHECK(kernels_axpy(one, x, y, 1, 1.0F));
}

static void overhead(void)
{
    printf("query %.0f\n", time_of(query, 1000000));
    printf("lock %.0f\n", time_of(lock_alone, 1000000));
    printf("launch %.0f\n", time_of(launch, 10000));
}

/* ---- two ranks -------------------------------------------------------------------------------- */

static ncclComm_t comm, second;

static void reduce(ncclComm_t on, cudaStream_t stream, size_t count)
{
    float *out = on == comm ? y : z;
    CHECK(ncclAllReduce(x, out, count, ncclFloat, ncclSum, on, stream));
}

/* Two communicators, in another order on rank 1: they need each other's room on the devices. */
static void other_order(int rank)
{
    const bool first = fixed || rank == 0;
    reduce(first ? comm : second, first ? one : two, 16);
    reduce(first ? second : comm, first ? two : one, 16);
}

/* Rank 1 reduces fewer numbers; the run hangs, or ends with wrong ones. */
static void mismatch(int rank)
{
    reduce(comm, one, fixed || rank == 0 ? 64 : 32);
}

/* Both send and then receive: only a group makes one call of it. */
static void missing_group(int rank)
{
    if (fixed)
        CHECK(ncclGroupStart());
    CHECK(ncclSend(x, BYTES, ncclChar, 1 - rank, comm, one));
    CHECK(ncclRecv(y, BYTES, ncclChar, 1 - rank, comm, one));
    if (fixed)
        CHECK(ncclGroupEnd());
}

/* One message that no group holds. */
static void message(int rank)
{
    if (rank == 0)
        CHECK(ncclSend(x, BYTES, ncclChar, 1, comm, one));
    else
        CHECK(ncclRecv(y, BYTES, ncclChar, 0, comm, one));
}

/* NCCL says that the other rank is gone, or waits for it. */
static void no_receiver(int rank)
{
    if (rank == 0)
        CHECK(ncclSend(x, BYTES, ncclChar, 1, comm, one));
    else if (fixed)
        CHECK(ncclRecv(y, BYTES, ncclChar, 0, comm, one));
}

/* NCCL refuses a call, and the program goes on without it. */
static void refused(int rank)
{
    (void)rank;
    if (ncclAllReduce(x, y, 16, ncclNumTypes, ncclSum, comm, one) == ncclSuccess)
        exit(1);
}

/* A result of another rank is used on a stream that does not wait for it. */
static void unawaited(int rank)
{
    (void)rank;
    reduce(comm, one, COUNT);
    CHECK(cudaEventRecord(event, one));
    if (fixed)
        CHECK(cudaStreamWaitEvent(two, event, 0));
    luck();
    luck();
    CHECK(kernels_axpy(two, y, z, COUNT, 1.0F));
}

/* ---- times ------------------------------------------------------------------------------------ */

/* Long enough for the clocks to be tied again; its own time comes before its last work. */
static void measured(void)
{
    enum { TIMES = 60, SPIN_NS = 20000000 };
    struct timespec from, to;
    int *stop;
    CHECK(cudaHostAlloc((void **)&stop, sizeof *stop, cudaHostAllocMapped));
    *stop = 0;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < TIMES; i++) {
        CHECK(kernels_spin(one, SPIN_NS, stop));
        CHECK(cudaStreamSynchronize(one));
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    printf("%.3f ms\n",
           (double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) / 1e6);
    CHECK(cudaFreeHost(stop));
}

/* The host asks until the work is done, as a program with an event loop of its own does. */
static void polled(void)
{
    int *stop, device, queries = 0;
    CHECK(cudaHostAlloc((void **)&stop, sizeof *stop, cudaHostAllocMapped));
    *stop = 0;
    for (int i = 0; i < 2; i++) {
        CHECK(kernels_spin(one, INT64_C(30000000000), stop));
        CHECK(cudaEventRecord(event, one));
        for (int k = 0; k < 4000; k++, queries += 2)
            if (cudaEventQuery(event) != cudaErrorNotReady ||
                cudaStreamQuery(one) != cudaErrorNotReady || cudaGetDevice(&device) != cudaSuccess)
                exit(1);
        *stop = 1;
        CHECK(cudaStreamSynchronize(one));
        *stop = 0;
    }
    printf("%d queries\n", queries);
    CHECK(cudaFreeHost(stop));
}

/* ---- all of them ------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    void (*alone)(void);
    void (*ranks)(int rank);
} cases[] = {
    {"missing_wait", missing_wait, NULL},
    {"wait_before_record", wait_before_record, NULL},
    {"event_reused", event_reused, NULL},
    {"freed_early", freed_early, NULL},
    {"host_reads", host_reads, NULL},
    {"host_writes", host_writes, NULL},
    {"half_written", half_written, NULL},
    {"driver_asked", driver_asked, NULL},
    {"overhead", overhead, NULL},
    {"host_function", host_function, NULL},
    {"graph", graph, NULL},
    {"sync_behind_wait", sync_behind_wait, NULL},
    {"free_waits", free_waits, NULL},
    {"deep_library", deep_library, NULL},
    {"becomes_another", becomes_another, NULL},
    {"default_stream", default_stream, NULL},
    {"behind_default", behind_default, NULL},
    {"plain_copy", plain_copy, NULL},
    {"thread_stream", thread_stream, NULL},
    {"streams_of_threads", streams_of_threads, NULL},
    {"peer_copy", peer_copy, NULL},
    {"peer_copy_alone", peer_copy_alone, NULL},
    {"peer_copy_first", peer_copy_first, NULL},
    {"measured", measured, NULL},
    {"polled", polled, NULL},
    {"other_order", NULL, other_order},
    {"mismatch", NULL, mismatch},
    {"missing_group", NULL, missing_group},
    {"message", NULL, message},
    {"no_receiver", NULL, no_receiver},
    {"refused", NULL, refused},
    {"unawaited", NULL, unawaited},
};

static void run_rank(int rank, const ncclUniqueId ids[2], void (*run)(int))
{
    begin(rank);
    CHECK(ncclCommInitRank(&comm, 2, ids[0], rank));
    CHECK(ncclCommInitRank(&second, 2, ids[1], rank));
    reduce(comm, one, 16); /* connects the ranks, which waits */
    reduce(second, one, 16);
    CHECK(cudaStreamSynchronize(one));
    run(rank);
    end();
    CHECK(ncclCommDestroy(second));
    CHECK(ncclCommDestroy(comm));
}

static int run_ranks(void (*run)(int))
{
    ncclUniqueId ids[2];
    int failed = 0;
    CHECK(ncclGetUniqueId(&ids[0]));
    CHECK(ncclGetUniqueId(&ids[1]));
    for (int rank = 0; rank < 2; rank++)
        if (fork() == 0) {
            alarm(5); /* a run that hangs */
            run_rank(rank, ids, run);
            exit(0);
        }
    for (int how, i = 0; i < 2; i++)
        failed |= wait(&how) < 0 || how != 0;
    return failed;
}

int main(int argc, char **argv)
{
    fixed = argc > 2 && strcmp(argv[2], "fixed") == 0;
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, argv[1]) != 0)
            continue;
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
