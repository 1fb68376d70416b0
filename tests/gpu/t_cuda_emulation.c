/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_cuda_emulation.c - is emulated CUDA (tests/cuda_emulation) as strict as it says? Each case is a process
 * of its own, because most of what is looked at ends a context or a program.
 */
#include "gpu/device/cuda/kernels.h"
#include "gpu/device/cuda/nccl_load.h"
#include "tests/tap.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The answer of a case: 0 is good, else the line that was not. */
#define NEED(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return __LINE__ % 250 + 1;                                                             \
    } while (0)

static cudaStream_t new_stream(unsigned flags)
{
    cudaStream_t stream = NULL;
    if (cudaStreamCreateWithFlags(&stream, flags) != cudaSuccess)
        abort();
    return stream;
}

static cudaEvent_t new_event(unsigned flags)
{
    cudaEvent_t event = NULL;
    if (cudaEventCreateWithFlags(&event, flags) != cudaSuccess)
        abort();
    return event;
}

/* A host function that lasts 20 ms and then says so. */
static void be_slow(void *done)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    atomic_store((atomic_bool *)done, true);
}

static int events(void)
{
    atomic_bool done = false;
    float ms;
    cudaStream_t stream = new_stream(cudaStreamNonBlocking),
                 other = new_stream(cudaStreamNonBlocking);
    cudaEvent_t never = new_event(cudaEventDefault), first = new_event(cudaEventDefault);
    cudaEvent_t second = new_event(cudaEventDefault), untimed = new_event(cudaEventDisableTiming);
    NEED(cudaEventQuery(never) == cudaSuccess && cudaEventSynchronize(never) == cudaSuccess);
    NEED(cudaStreamWaitEvent(stream, never, 0) == cudaSuccess);
    NEED(cudaEventElapsedTime(&ms, never, never) == cudaErrorInvalidResourceHandle);
    NEED(cudaEventRecord(first, stream) == cudaSuccess);
    NEED(cudaLaunchHostFunc(stream, be_slow, &done) == cudaSuccess);
    NEED(cudaEventRecord(second, stream) == cudaSuccess);
    NEED(cudaEventRecord(untimed, stream) == cudaSuccess);
    NEED(cudaStreamWaitEvent(other, first, 0) == cudaSuccess);
    NEED(cudaStreamSynchronize(other) == cudaSuccess && !atomic_load(&done));
    NEED(cudaEventQuery(second) == cudaErrorNotReady &&
         cudaStreamQuery(stream) == cudaErrorNotReady && cudaGetLastError() == cudaErrorNotReady);
    NEED(cudaEventElapsedTime(&ms, first, second) == cudaErrorNotReady);
    NEED(cudaEventSynchronize(second) == cudaSuccess && atomic_load(&done));
    NEED(cudaEventElapsedTime(&ms, first, second) == cudaSuccess && ms >= 20);
    NEED(cudaStreamSynchronize(stream) == cudaSuccess);
    NEED(cudaEventElapsedTime(&ms, first, untimed) == cudaErrorInvalidResourceHandle);
    NEED(cudaStreamDestroy(stream) == cudaSuccess && cudaEventDestroy(never) == cudaSuccess);
    return 0;
}

/* Blocking streams and the default stream wait for each other, others do not. */
static int default_stream(void)
{
    atomic_bool done = false, later = false;
    cudaStream_t blocking = new_stream(cudaStreamDefault),
                 free_one = new_stream(cudaStreamNonBlocking);
    NEED(cudaLaunchHostFunc(blocking, be_slow, &done) == cudaSuccess);
    NEED(cudaStreamSynchronize(free_one) == cudaSuccess && !atomic_load(&done));
    NEED(cudaLaunchHostFunc(NULL, be_slow, &later) == cudaSuccess);
    cudaEvent_t event = new_event(cudaEventDefault);
    NEED(cudaEventRecord(event, blocking) == cudaSuccess);
    NEED(cudaEventSynchronize(event) == cudaSuccess && atomic_load(&done) && atomic_load(&later));
    return 0;
}

/* A wait in the default stream holds later work of blocking streams; the default stream of a thread is one of these, and a
   capture of one forbids work in the default stream. */
cudaError_t cudaLaunchHostFunc_ptsz(cudaStream_t stream, cudaHostFn_t function, void *arg);
static int default_streams_of_threads(void)
{
    atomic_bool done = false, later = false, last = false;
    cudaGraph_t graph;
    cudaStream_t blocking = new_stream(cudaStreamDefault),
                 free_one = new_stream(cudaStreamNonBlocking);
    cudaEvent_t event = new_event(cudaEventDefault);
    NEED(cudaLaunchHostFunc(free_one, be_slow, &done) == cudaSuccess);
    NEED(cudaEventRecord(event, free_one) == cudaSuccess);
    NEED(cudaStreamWaitEvent(cudaStreamLegacy, event, 0) == cudaSuccess);
    NEED(cudaEventRecord(event, blocking) == cudaSuccess);
    NEED(cudaEventSynchronize(event) == cudaSuccess && atomic_load(&done));
    NEED(cudaLaunchHostFunc_ptsz(NULL, be_slow, &later) == cudaSuccess);
    NEED(cudaStreamSynchronize(blocking) == cudaSuccess && !atomic_load(&later));
    NEED(cudaStreamQuery(cudaStreamPerThread) == cudaErrorNotReady);
    NEED(cudaLaunchHostFunc(NULL, be_slow, &last) == cudaSuccess);
    NEED(cudaStreamSynchronize(NULL) == cudaSuccess && atomic_load(&later) && atomic_load(&last));
    NEED(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeRelaxed) ==
         cudaErrorStreamCaptureUnsupported);
    NEED(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed) == cudaSuccess);
    NEED(cudaLaunchHostFunc(NULL, be_slow, &last) == cudaErrorStreamCaptureImplicit);
    NEED(cudaStreamEndCapture(blocking, &graph) == cudaErrorStreamCaptureInvalidated);
    return 0;
}

/* A copy between GPUs: alone on both in the default stream, in its stream's order elsewhere. */
static int peer_copies(void)
{
    void *here, *there;
    char *pinned;
    atomic_bool done = false, other = false, between = false;
    setenv("SWSIM_EMULATED_GPUS", "2", 1);
    NEED(cudaMalloc(&here, 64) == cudaSuccess && cudaHostAlloc((void **)&pinned, 64, 0) == 0);
    cudaStream_t stream = new_stream(cudaStreamNonBlocking),
                 busy = new_stream(cudaStreamNonBlocking);
    NEED(cudaSetDevice(1) == cudaSuccess && cudaMalloc(&there, 64) == cudaSuccess);
    cudaStream_t far = new_stream(cudaStreamNonBlocking);
    NEED(cudaMemsetAsync(there, 7, 64, far) == cudaSuccess && cudaSetDevice(0) == cudaSuccess);
    NEED(cudaStreamSynchronize(far) == cudaSuccess);
    NEED(cudaMemcpyPeerAsync(here, 1, there, 1, 64, stream) == cudaErrorInvalidValue);
    NEED(cudaLaunchHostFunc(busy, be_slow, &done) == cudaSuccess);
    NEED(cudaMemcpyPeerAsync(here, 0, there, 1, 64, stream) == cudaSuccess);
    NEED(cudaMemcpyAsync(pinned, here, 64, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
    NEED(cudaStreamSynchronize(stream) == cudaSuccess && !atomic_load(&done) && pinned[63] == 7);
    NEED(cudaLaunchHostFunc(far, be_slow, &other) == cudaSuccess);
    NEED(cudaMemcpyPeer(there, 1, here, 0, 64) == cudaSuccess && !atomic_load(&other));
    cudaStream_t young = new_stream(cudaStreamNonBlocking);
    NEED(cudaStreamSynchronize(young) == cudaSuccess && atomic_load(&done) && atomic_load(&other));
    NEED(cudaLaunchHostFunc(NULL, be_slow, &between) == cudaSuccess);
    NEED(cudaMemcpyPeer(there, 1, here, 0, 64) == cudaSuccess);
    NEED(cudaStreamSynchronize(far) == cudaSuccess && atomic_load(&between));
    return 0;
}

/* Calls that make or free memory wait for the device, and so does a kernel that is not loaded yet. */
static int stalls(void)
{
    void *device, *pinned;
    cudaStream_t busy = new_stream(cudaStreamNonBlocking),
                 stream = new_stream(cudaStreamNonBlocking);
    for (int i = 0; i < 5; i++) {
        atomic_bool done = false;
        NEED(cudaLaunchHostFunc(busy, be_slow, &done) == cudaSuccess);
        switch (i) {
        case 0: NEED(cudaMalloc(&device, 64) == cudaSuccess); break;
        case 1: NEED(cudaHostAlloc(&pinned, 64, cudaHostAllocDefault) == cudaSuccess); break;
        case 2: NEED(kernels_fill_f32(stream, device, 4, 1.0F) == 0); break;
        case 3:
            NEED(cudaStreamSynchronize(stream) == cudaSuccess && cudaFree(device) == cudaSuccess);
            break;
        case 4: NEED(cudaFreeHost(pinned) == cudaSuccess); break;
        }
        NEED(atomic_load(&done));
    }
    NEED(kernels_load() == 0);

    atomic_bool done = false; /* the work of a stream outlives its handle */
    NEED(cudaHostAlloc(&pinned, 64, cudaHostAllocDefault) == cudaSuccess);
    NEED(cudaLaunchHostFunc(busy, be_slow, &done) == cudaSuccess);
    NEED(cudaStreamDestroy(busy) == cudaSuccess && cudaFreeHost(pinned) == cudaSuccess);
    NEED(atomic_load(&done));
    return 0;
}

static int copies(void)
{
    char pageable[64] = "abc";
    void *device, *pinned;
    atomic_bool done = false;
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    NEED(cudaMalloc(&device, 64) == cudaSuccess && cudaHostAlloc(&pinned, 64, 0) == cudaSuccess);
    NEED(cudaMemcpyAsync(device, pinned, 65, cudaMemcpyHostToDevice, stream) ==
         cudaErrorInvalidValue);
    NEED(cudaMemcpyAsync(device, pinned, 64, cudaMemcpyDeviceToHost, stream) ==
         cudaErrorInvalidValue);
    NEED(cudaLaunchHostFunc(stream, be_slow, &done) == cudaSuccess);
    NEED(cudaMemcpyAsync(device, pinned, 64, cudaMemcpyHostToDevice, stream) == cudaSuccess);
    NEED(!atomic_load(&done)); /* from pinned memory it does not wait */
    NEED(cudaMemcpyAsync(device, pageable, 64, cudaMemcpyHostToDevice, stream) == cudaSuccess);
    NEED(atomic_load(&done) && cudaStreamQuery(stream) == cudaSuccess); /* from pageable it has */
    NEED(cudaMemcpyAsync(pageable + 32, device, 4, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
    NEED(strcmp(pageable + 32, "abc") == 0);
    return 0;
}

/* An illegal address ends the context, for all and for good. */
static int sticky(void)
{
    void *device, *again;
    cudaStream_t stream = new_stream(cudaStreamNonBlocking),
                 other = new_stream(cudaStreamNonBlocking);
    cudaEvent_t event = new_event(cudaEventDefault);
    atomic_bool done = false;
    NEED(cudaMalloc(&device, 64) == cudaSuccess && kernels_load() == 0);
    NEED(kernels_fill_f32(stream, device, 17, 1.0F) == 0);
    NEED(cudaStreamSynchronize(stream) == cudaErrorIllegalAddress);
    NEED(cudaStreamQuery(other) == cudaErrorIllegalAddress);
    NEED(cudaEventQuery(event) == cudaErrorIllegalAddress);
    NEED(cudaLaunchHostFunc(other, be_slow, &done) == cudaErrorIllegalAddress);
    NEED(cudaMalloc(&again, 64) == cudaErrorIllegalAddress &&
         cudaFree(device) == cudaErrorIllegalAddress);
    return 0;
}

static int freed_memory(void)
{
    void *device;
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    NEED(cudaMalloc(&device, 64) == cudaSuccess && cudaFree(device) == cudaSuccess);
    NEED(kernels_load() == 0 && kernels_fill_f32(stream, device, 4, 1.0F) == 0);
    NEED(cudaStreamSynchronize(stream) == cudaErrorIllegalAddress);
    return 0;
}

static void call_cuda(void *answer)
{
    int gpu;
    atomic_store((atomic_int *)answer, (int)cudaGetDevice(&gpu));
}

static int host_functions(void)
{
    atomic_int answer = -1;
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    NEED(cudaLaunchHostFunc(stream, call_cuda, &answer) == cudaSuccess);
    NEED(cudaStreamSynchronize(stream) == cudaSuccess);
    NEED(atomic_load(&answer) == cudaErrorNotPermitted);
    return 0;
}

static int forked(void)
{
    int count, status;
    NEED(cudaGetDeviceCount(&count) == cudaSuccess && count == 1);
    pid_t pid = fork();
    if (pid == 0)
        _exit(cudaGetDeviceCount(&count) == cudaErrorInitializationError ? 0 : 1);
    NEED(waitpid(pid, &status, 0) == pid && status == 0);
    return 0;
}

static int two_gpus(void)
{
    void *device;
    setenv("SWSIM_EMULATED_GPUS", "2", 1);
    cudaEvent_t event = new_event(cudaEventDefault);
    NEED(kernels_load() == 0 && cudaMalloc(&device, 64) == cudaSuccess);
    NEED(cudaSetDevice(1) == cudaSuccess && cudaSetDevice(2) == cudaErrorInvalidDevice);
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    NEED(cudaEventRecord(event, stream) == cudaErrorInvalidResourceHandle);
    NEED(cudaStreamWaitEvent(stream, event, 0) == cudaSuccess);
    NEED(cudaSetDevice(0) == cudaSuccess);
    NEED(kernels_fill_f32(stream, device, 4, 1.0F) == cudaErrorInvalidResourceHandle);
    NEED(cudaSetDevice(1) == cudaSuccess && kernels_fill_f32(stream, device, 4, 1.0F) == 0);
    NEED(cudaStreamSynchronize(stream) == cudaErrorIllegalAddress); /* another GPU's memory */
    NEED(cudaSetDevice(0) == cudaSuccess && cudaEventQuery(event) == cudaSuccess);
    return 0;
}

static int injected(void)
{
    void *device;
    setenv("SWSIM_EMULATION_FAULT", "cudaMalloc=2:2,work=2", 1);
    NEED(cudaMalloc(&device, 64) == cudaSuccess);
    NEED(cudaMalloc(&device, 64) == cudaErrorMemoryAllocation);
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    NEED(cudaMemsetAsync(device, 0, 64, stream) == cudaSuccess);
    NEED(cudaStreamSynchronize(stream) == cudaSuccess);
    NEED(cudaMemsetAsync(device, 0, 64, stream) == cudaSuccess);
    NEED(cudaStreamSynchronize(stream) == cudaErrorIllegalAddress);
    return 0;
}

static void count_call(void *count)
{
    atomic_fetch_add((atomic_int *)count, 1);
}

/* Two streams captured, launched twice; what a capture does not allow. */
static int graphs(void)
{
    atomic_int count = 0;
    atomic_bool done = false;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStream_t stream = new_stream(cudaStreamNonBlocking),
                 side = new_stream(cudaStreamNonBlocking);
    cudaEvent_t fork_event = new_event(cudaEventDisableTiming);
    cudaEvent_t join = new_event(cudaEventDisableTiming);
    NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaErrorIllegalState);
    NEED(cudaEventRecord(fork_event, stream) == cudaSuccess);
    NEED(cudaStreamWaitEvent(side, fork_event, 0) == cudaSuccess);
    NEED(cudaEventQuery(fork_event) == cudaErrorCapturedEvent);
    NEED(cudaLaunchHostFunc(side, be_slow, &done) == cudaSuccess);
    NEED(cudaEventRecord(join, side) == cudaSuccess);
    NEED(cudaStreamWaitEvent(stream, join, 0) == cudaSuccess);
    NEED(cudaLaunchHostFunc(stream, count_call, &count) == cudaSuccess);
    NEED(cudaStreamEndCapture(side, &graph) == cudaErrorStreamCaptureUnmatched);
    NEED(cudaStreamEndCapture(stream, &graph) == cudaSuccess && !atomic_load(&done));
    NEED(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
    NEED(cudaGraphDestroy(graph) == cudaSuccess);
    NEED(cudaGraphLaunch(exec, stream) == cudaSuccess &&
         cudaGraphLaunch(exec, stream) == cudaSuccess);
    NEED(cudaStreamSynchronize(stream) == cudaSuccess);
    NEED(atomic_load(&done) && atomic_load(&count) == 2);
    NEED(cudaGraphExecDestroy(exec) == cudaSuccess);

    void *memory;
    NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    NEED(cudaMalloc(&memory, 64) == cudaErrorStreamCaptureUnsupported);
    NEED(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
    NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    NEED(cudaEventRecord(fork_event, stream) == cudaSuccess);
    NEED(cudaStreamWaitEvent(side, fork_event, 0) == cudaSuccess);
    NEED(cudaLaunchHostFunc(side, count_call, &count) == cudaSuccess);
    NEED(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureUnjoined);
    NEED(cudaEventRecord(join, side) == cudaSuccess && cudaEventSynchronize(join) == cudaSuccess);
    NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    NEED(cudaStreamWaitEvent(stream, join, 0) == cudaErrorStreamCaptureIsolation);
    NEED(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
    return 0;
}

/* Rank `rank` of two on one GPU, who is on a host of its own or not. */
static int join_nccl(ncclUniqueId id, int rank, bool own_host)
{
    struct nccl nccl;
    struct diag diag;
    ncclComm_t comm;
    int count;
    diag_init(&diag);
    if (own_host)
        setenv("NCCL_HOSTID", rank ? "one" : "two", 1);
    NEED(cudaGetDeviceCount(&count) == cudaSuccess && nccl_load(&nccl, &diag) == STATUS_OK);
    ncclResult_t result = nccl.CommInitRank(&comm, 2, id, rank);
    if (result == ncclSuccess)
        NEED(nccl.CommDestroy(comm) == ncclSuccess);
    return result == (own_host ? ncclSuccess : ncclInvalidUsage) ? 0 : 1;
}

static int two_ranks(int (*join)(ncclUniqueId id, int rank))
{
    struct nccl nccl;
    struct diag diag;
    ncclUniqueId id;
    int status;
    diag_init(&diag);
    NEED(nccl_load(&nccl, &diag) == STATUS_OK && nccl.GetUniqueId(&id) == ncclSuccess);
    pid_t pid = fork();
    if (pid == 0)
        _exit(join(id, 1));
    const int answer = join(id, 0);
    if (answer != 0)
        return answer;
    NEED(waitpid(pid, &status, 0) == pid && status == 0);
    return 0;
}

static int join_with_own_host(ncclUniqueId id, int rank)
{
    return join_nccl(id, rank, true);
}

static int join_with_one_host(ncclUniqueId id, int rank)
{
    return join_nccl(id, rank, false);
}

static int nccl_own_hosts(void)
{
    return two_ranks(join_with_own_host);
}

static int nccl_duplicate(void)
{
    return two_ranks(join_with_one_host);
}

/* ---- groups: memory of a rank, PART bytes each, in pinned memory and on the device ---------------- */

enum { PART = 64, SENT = 0, GOT, SUMMED, GATHERED, PARTS = GATHERED + 2, MORE = PART * PARTS };

struct member {
    struct nccl nccl;
    ncclComm_t comm;
    cudaStream_t streams[2];
    char *host, *device;
};

static int member_open(struct member *member, ncclUniqueId id, int rank)
{
    struct diag diag;
    int count;
    diag_init(&diag);
    setenv("NCCL_HOSTID", rank ? "one" : "two", 1);
    NEED(cudaGetDeviceCount(&count) == cudaSuccess && nccl_load(&member->nccl, &diag) == 0);
    for (int i = 0; i < 2; i++)
        member->streams[i] = new_stream(cudaStreamNonBlocking);
    NEED(cudaHostAlloc((void **)&member->host, MORE, 0) == cudaSuccess);
    NEED(cudaMalloc((void **)&member->device, MORE) == cudaSuccess);
    return member->nccl.CommInitRank(&member->comm, 2, id, rank) == ncclSuccess ? 0 : 1;
}

static char *on_device(const struct member *member, int part)
{
    return member->device + (size_t)part * PART;
}

/* Both ranks in one group, mixed differently: a message of doubles each way, of integers, a sum, a gathering; on two streams,
   of which either has the result behind the group. */
static int push_group(struct member *member, int rank)
{
    struct nccl *nccl = &member->nccl;
    cudaStream_t a = member->streams[0], b = member->streams[1];
    NEED(nccl->GroupStart() == ncclSuccess);
    if (rank == 0)
        NEED(nccl->Send(on_device(member, SENT), 3, ncclFloat64, 1, member->comm, b) == 0);
    NEED(nccl->AllReduce(on_device(member, SENT), on_device(member, SUMMED), PART / 4, ncclInt32,
                         ncclSum, member->comm, a) == ncclSuccess);
    NEED(nccl->AllGather(on_device(member, SENT), on_device(member, GATHERED), PART / 8, ncclInt64,
                         member->comm, b) == ncclSuccess);
    if (rank == 0)
        NEED(nccl->Recv(on_device(member, GOT), 5, ncclInt32, 1, member->comm, a) == 0);
    else
        NEED(nccl->Send(on_device(member, SENT), 5, ncclInt32, 0, member->comm, a) == 0 &&
             nccl->Recv(on_device(member, GOT), 3, ncclFloat64, 0, member->comm, b) == 0);
    NEED(nccl->GroupEnd() == ncclSuccess);
    return 0;
}

static int join_groups(ncclUniqueId id, int rank)
{
    struct member member;
    atomic_bool done = false;
    NEED(member_open(&member, id, rank) == 0);
    struct nccl *nccl = &member.nccl;
    for (int i = 0; i < MORE / 4; i++)
        ((int *)member.host)[i] = 1000 * (rank + 1) + i;
    for (int i = 0; i < 2; i++) { /* the group comes behind what either stream has */
        NEED(cudaLaunchHostFunc(member.streams[i], be_slow, &done) == cudaSuccess);
        NEED(cudaMemcpyAsync(member.device + i * MORE / 2, member.host + i * MORE / 2, MORE / 2,
                             cudaMemcpyHostToDevice, member.streams[i]) == cudaSuccess);
    }
    const int answer = push_group(&member, rank);
    if (answer != 0)
        return answer;
    NEED(cudaMemcpyAsync(member.host, member.device, MORE, cudaMemcpyDeviceToHost,
                         member.streams[1]) == cudaSuccess);
    NEED(cudaStreamSynchronize(member.streams[1]) == cudaSuccess && atomic_load(&done));
    const int *got = (const int *)member.host + GOT * PART / 4;
    const int *sum = (const int *)member.host + SUMMED * PART / 4;
    const int *all = (const int *)member.host + GATHERED * PART / 4;
    const int other = 1000 * (2 - rank), own = 1000 * (rank + 1), count = rank ? 6 : 5;
    NEED(got[0] == other && got[count - 1] == other + count - 1);
    NEED(got[count] == own + GOT * PART / 4 + count); /* and nothing behind it */
    NEED(sum[0] == 3000 && sum[PART / 4 - 1] == 3000 + 2 * (PART / 4 - 1));
    NEED(all[0] == 1000 && all[PART / 4] == 2000 && all[PART / 2 - 1] == 2000 + PART / 4 - 1);
    /* One call that is refused: nothing of the group is done, and its end says so. */
    NEED(nccl->GroupStart() == ncclSuccess);
    NEED(nccl->AllReduce(member.device, member.device, 1, ncclInt32, ncclSum, member.comm,
                         member.streams[0]) == ncclSuccess);
    NEED(nccl->Send(member.device, 1, ncclChar, 2, member.comm, member.streams[0]) ==
         ncclInvalidArgument);
    NEED(nccl->GroupEnd() == ncclInvalidArgument);
    NEED(cudaStreamSynchronize(member.streams[0]) == cudaSuccess);
    NEED(nccl->CommDestroy(member.comm) == ncclSuccess);
    return 0;
}

static int nccl_groups(void)
{
    return two_ranks(join_groups);
}

/* A communicator that does not block: its making is under way until the other rank comes, forbids other calls meanwhile, and
   an abort ends it. */
static int nccl_without_blocking(void)
{
    struct nccl nccl;
    struct diag diag;
    ncclUniqueId id;
    ncclComm_t comm = NULL;
    ncclResult_t state;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    int count;
    config.blocking = 0;
    diag_init(&diag);
    NEED(cudaGetDeviceCount(&count) == cudaSuccess && nccl_load(&nccl, &diag) == STATUS_OK);
    NEED(nccl.GetUniqueId(&id) == ncclSuccess);
    __typeof__(&ncclCommInitRankConfig) make;
    *(void **)&make = dlsym(nccl.library, "ncclCommInitRankConfig");
    NEED(make && make(&comm, 2, id, 0, &config) == ncclInProgress && comm);
    NEED(nccl.CommGetAsyncError(comm, &state) == ncclSuccess && state == ncclInProgress);
    NEED(nccl.AllReduce(NULL, NULL, 1, ncclFloat, ncclSum, comm, NULL) == ncclInvalidArgument);
    NEED(nccl.CommAbort(comm) == ncclSuccess);
    return 0;
}

/* ---- what ends the program ---------------------------------------------------------------------- */

enum { STILL_THERE = 252 }; /* an answer of its own */

static int touch_device_memory(void)
{
    void *device;
    NEED(cudaMalloc(&device, 64) == cudaSuccess);
    *(volatile char *)device = 1;
    return STILL_THERE;
}

static int use_destroyed_stream(void)
{
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    cudaStreamDestroy(stream);
    cudaStreamQuery(stream);
    return STILL_THERE;
}

static int use_destroyed_event(void)
{
    cudaEvent_t event = new_event(cudaEventDefault);
    cudaEventDestroy(event);
    cudaEventQuery(event);
    return STILL_THERE;
}

static int free_twice(void)
{
    void *device;
    NEED(cudaMalloc(&device, 64) == cudaSuccess && cudaFree(device) == cudaSuccess);
    cudaFree(device);
    return STILL_THERE;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int thread_limit, uint3 *thread, uint3 *block, dim3 *block_size,
                            dim3 *grid_size, int *warp_size);

struct asked {
    struct nccl nccl;
    ncclComm_t comm;
};

static void *ask(void *arg)
{
    struct asked *asked = arg;
    ncclResult_t state;
    asked->nccl.CommGetAsyncError(asked->comm, &state);
    return NULL;
}

/* A communicator of one rank. */
static int make_alone(struct asked *asked, void **device)
{
    struct diag diag;
    ncclUniqueId id;
    int count;
    diag_init(&diag);
    NEED(cudaGetDeviceCount(&count) == cudaSuccess && nccl_load(&asked->nccl, &diag) == STATUS_OK);
    NEED(asked->nccl.GetUniqueId(&id) == ncclSuccess && cudaMalloc(device, 64) == cudaSuccess);
    NEED(asked->nccl.CommInitRank(&asked->comm, 1, id, 0) == ncclSuccess);
    return 0;
}

/* Of one host function. */
static cudaGraph_t capture_one(cudaStream_t stream, void *count)
{
    cudaGraph_t graph = NULL;
    if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess ||
        cudaLaunchHostFunc(stream, count_call, count) != cudaSuccess ||
        cudaStreamEndCapture(stream, &graph) != cudaSuccess)
        abort();
    return graph;
}

static int use_destroyed_graph(void)
{
    atomic_int count = 0;
    cudaGraphExec_t exec;
    cudaGraph_t graph = capture_one(new_stream(cudaStreamNonBlocking), &count);
    NEED(cudaGraphDestroy(graph) == cudaSuccess);
    cudaGraphInstantiate(&exec, graph, 0);
    return STILL_THERE;
}

static int launch_destroyed_graph(void)
{
    atomic_int count = 0;
    cudaGraphExec_t exec;
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    NEED(cudaGraphInstantiate(&exec, capture_one(stream, &count), 0) == cudaSuccess);
    NEED(cudaGraphExecDestroy(exec) == cudaSuccess);
    cudaGraphLaunch(exec, stream);
    return STILL_THERE;
}

static int use_destroyed_pool(void)
{
    cudaMemPool_t pool;
    void *memory;
    const struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                           .location = {.type = cudaMemLocationTypeDevice}};
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    NEED(cudaMemPoolCreate(&pool, &props) == cudaSuccess);
    NEED(cudaMallocFromPoolAsync(&memory, 64, pool, stream) == cudaSuccess);
    NEED(cudaMemPoolDestroy(pool) == cudaSuccess && cudaFreeAsync(memory, stream) == cudaSuccess);
    cudaMallocFromPoolAsync(&memory, 64, pool, stream);
    return STILL_THERE;
}

static int use_freed_array(void)
{
    cudaArray_t array;
    cudaTextureObject_t texture;
    const struct cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindFloat};
    const struct cudaTextureDesc how = {.readMode = cudaReadModeElementType};
    struct cudaResourceDesc of = {.resType = cudaResourceTypeArray};
    NEED(cudaMallocArray(&array, &format, 8, 8, 0) == cudaSuccess);
    of.res.array.array = array;
    NEED(cudaCreateTextureObject(&texture, &of, &how, NULL) == cudaSuccess);
    NEED(cudaDestroyTextureObject(texture) == cudaSuccess && cudaFreeArray(array) == cudaSuccess);
    cudaCreateTextureObject(&texture, &of, &how, NULL);
    return STILL_THERE;
}

static int leave_graph(void)
{
    atomic_int count = 0;
    setenv("SWSIM_EMULATION_LEAKS", "1", 1);
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    capture_one(stream, &count);
    NEED(cudaStreamDestroy(stream) == cudaSuccess);
    exit(STILL_THERE);
}

/* The address of a kernel: registered as nvcc's object does. */
static const void *a_kernel(void)
{
    static const char stub[1];
    __cudaRegisterFunction(NULL, stub, NULL, "4axpyE", -1, NULL, NULL, NULL, NULL, NULL);
    return stub;
}

/* Arguments that the documents forbid. */
static int refusals(void)
{
    const void *kernel = a_kernel();
    void *device, *args[1] = {NULL};
    char *pinned, host[64];
    cudaStream_t stream = new_stream(cudaStreamNonBlocking);
    enum cudaStreamCaptureMode mode = (enum cudaStreamCaptureMode)7;
    cudaLaunchConfig_t config = {.gridDim = {1, 1, 1}, .blockDim = {1, 1, 65}, .stream = stream};
    NEED(cudaMalloc(&device, 64) == cudaSuccess &&
         cudaHostAlloc((void **)&pinned, 64, 0) == cudaSuccess && kernels_load() == 0);
    NEED(cudaMemcpyAsync(device, NULL, 4, cudaMemcpyDefault, stream) == cudaErrorInvalidValue);
    NEED(cudaMemcpyAsync(host, pinned, 4, (enum cudaMemcpyKind)9, stream) == cudaErrorInvalidValue);
    NEED(cudaHostRegister(pinned - 32, 64, 0) == cudaErrorHostMemoryAlreadyRegistered);
    NEED(cudaLaunchHostFunc(stream, NULL, NULL) == cudaErrorInvalidValue);
    NEED(cudaThreadExchangeStreamCaptureMode(&mode) == cudaErrorInvalidValue);
    NEED(cudaStreamBeginCapture(stream, mode) == cudaErrorInvalidValue);
    NEED(cudaLaunchKernelExC(&config, kernel, args) == cudaErrorInvalidConfiguration);
    config.blockDim.z = 1;
    config.dynamicSmemBytes = 49153;
    NEED(cudaLaunchKernelExC(&config, kernel, args) == cudaErrorInvalidValue);
    cudaEvent_t event = new_event(cudaEventDefault);
    NEED(cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault) == cudaSuccess);
    NEED(cudaStreamSynchronize(stream) == cudaSuccess && cudaEventQuery(event) == cudaSuccess);
    return 0;
}

/* The calls of NCCL that are refused; the buffers of collectives are apart or in place. */
static int nccl_refusals(void)
{
    struct asked asked;
    ncclComm_t other;
    ncclUniqueId id;
    void *device;
    int twice[] = {1, 1};
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    NEED(make_alone(&asked, &device) == 0 && asked.nccl.GetUniqueId(&id) == ncclSuccess);
    __typeof__(&ncclCommInitRankConfig) make;
    __typeof__(&ncclCommInitAll) make_all;
    __typeof__(&ncclCommFinalize) finalize;
    *(void **)&make = dlsym(asked.nccl.library, "ncclCommInitRankConfig");
    *(void **)&make_all = dlsym(asked.nccl.library, "ncclCommInitAll");
    *(void **)&finalize = dlsym(asked.nccl.library, "ncclCommFinalize");
    config.blocking = 2;
    NEED(make(&other, 1, id, 0, &config) == ncclInvalidArgument);
    config.blocking = 1;
    config.minCTAs = 4, config.maxCTAs = 2;
    NEED(make(&other, 1, id, 0, &config) == ncclInvalidArgument);
    NEED(make_all(&other, 0, NULL) == ncclInvalidArgument);
#ifdef NCCL_SHRINK_DEFAULT
    __typeof__(&ncclCommShrink) shrink;
    *(void **)&shrink = dlsym(asked.nccl.library, "ncclCommShrink");
    NEED(shrink(asked.comm, twice, 2, &other, NULL, NCCL_SHRINK_DEFAULT) == ncclInvalidArgument);
#endif
    (void)twice;
    NEED(asked.nccl.AllReduce(device, device, 16, ncclFloat, ncclSum, asked.comm, NULL) == 0);
    NEED(cudaStreamSynchronize(NULL) == cudaSuccess && finalize(asked.comm) == ncclSuccess);
    NEED(finalize(asked.comm) == ncclInvalidArgument);
    NEED(asked.nccl.CommDestroy(asked.comm) == ncclSuccess);
    return 0;
}

static int overlap_buffers(void)
{
    struct asked asked;
    void *device;
    NEED(make_alone(&asked, &device) == 0);
    asked.nccl.AllReduce(device, (char *)device + 4, 2, ncclFloat, ncclSum, asked.comm, NULL);
    return STILL_THERE;
}

static int use_finalized_comm(void)
{
    struct asked asked;
    void *device;
    __typeof__(&ncclCommFinalize) finalize;
    NEED(make_alone(&asked, &device) == 0);
    *(void **)&finalize = dlsym(asked.nccl.library, "ncclCommFinalize");
    NEED(finalize(asked.comm) == ncclSuccess);
    asked.nccl.AllReduce(device, device, 1, ncclFloat, ncclSum, asked.comm, NULL);
    return STILL_THERE;
}

static int ask_destroyed_comm(void)
{
    struct asked asked;
    void *device;
    int count;
    __typeof__(&ncclCommCount) tell;
    NEED(make_alone(&asked, &device) == 0 && asked.nccl.CommDestroy(asked.comm) == ncclSuccess);
    *(void **)&tell = dlsym(asked.nccl.library, "ncclCommCount");
    tell(asked.comm, &count);
    return STILL_THERE;
}

static int ask_beside_a_call(void)
{
    struct asked asked;
    pthread_t thread;
    void *device;
    setenv("SWSIM_EMULATION_SLOW", "ncclCommGetAsyncError:2000", 1);
    NEED(make_alone(&asked, &device) == 0);
    NEED(pthread_create(&thread, NULL, ask, &asked) == 0);
    usleep(200000);
    asked.nccl.AllReduce(device, device, 1, ncclFloat, ncclSum, asked.comm, NULL);
    return STILL_THERE;
}

static int use_destroyed_comm(void)
{
    struct asked asked;
    void *device;
    NEED(make_alone(&asked, &device) == 0 && asked.nccl.CommDestroy(asked.comm) == ncclSuccess);
    asked.nccl.AllReduce(device, device, 1, ncclFloat, ncclSum, asked.comm, NULL);
    return STILL_THERE;
}

static int abort_destroyed_comm(void)
{
    struct asked asked;
    void *device;
    NEED(make_alone(&asked, &device) == 0 && asked.nccl.CommDestroy(asked.comm) == ncclSuccess);
    asked.nccl.CommAbort(asked.comm);
    return STILL_THERE;
}

/* ---- all of them -------------------------------------------------------------------------------- */

/* The exit code of a case in a process, negative if it was killed. */
static int run(int (*what)(void))
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        alarm(60);
        _exit(what());
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int main(void)
{
    tap_is_int(run(events), 0, "events: never recorded, snapshots, times");
    tap_is_int(run(default_stream), 0, "the default stream");
    tap_is_int(run(default_streams_of_threads), 0,
               "the default streams of threads, waits and captures");
    tap_is_int(run(peer_copies), 0, "copies between GPUs");
    tap_is_int(run(stalls), 0, "what waits for the whole device");
    tap_is_int(run(copies), 0, "copies, pinned and pageable");
    tap_is_int(run(sticky), 0, "an illegal address ends the context");
    tap_is_int(run(freed_memory), 0, "so does freed memory");
    tap_is_int(run(host_functions), 0, "host functions may not call CUDA");
    tap_is_int(run(forked), 0, "a fork of who has used CUDA may not");
    tap_is_int(run(two_gpus), 0, "streams, events and memory are of one GPU");
    tap_is_int(run(injected), 0, "faults on request");
    tap_is_int(run(graphs), 0, "captures and graphs");
    tap_is_int(run(nccl_own_hosts), 0, "two ranks on one GPU, as of two hosts");
    tap_is_int(run(nccl_without_blocking), 0, "a communicator that does not block");
    tap_is_int(run(nccl_duplicate), 0, "but not of one");
    tap_is_int(run(nccl_groups), 0,
               "groups of messages and collectives of all types, on two streams");
    tap_ok(run(touch_device_memory) != STILL_THERE, "the host does not touch device memory");
    tap_ok(run(use_destroyed_stream) != STILL_THERE, "nobody uses a destroyed stream");
    tap_ok(run(use_destroyed_event) != STILL_THERE, "nor event");
    tap_ok(run(free_twice) != STILL_THERE, "nor frees twice");
    tap_ok(run(use_destroyed_comm) == -SIGABRT && run(abort_destroyed_comm) == -SIGABRT,
           "nor uses a destroyed communicator");
    tap_ok(run(use_destroyed_graph) == -SIGABRT && run(launch_destroyed_graph) == -SIGABRT,
           "nor a destroyed graph, executable or not");
    tap_ok(run(use_destroyed_pool) == -SIGABRT && run(use_freed_array) == -SIGABRT,
           "nor a destroyed pool or array");
    tap_ok(run(leave_graph) == -SIGABRT, "nor leaves a graph where that is asked");
    tap_is_int(run(refusals), 0, "arguments that the documents of CUDA forbid are refused");
    tap_is_int(run(nccl_refusals), 0, "and of NCCL");
    tap_ok(run(overlap_buffers) == -SIGABRT, "buffers that overlap are in place");
    tap_ok(run(use_finalized_comm) == -SIGABRT && run(ask_destroyed_comm) == -SIGABRT,
           "nobody uses a finalized communicator, nor asks a destroyed one");
    tap_ok(run(ask_beside_a_call) == -SIGABRT, "nor asks for errors beside a call of NCCL");
    return tap_done();
}
