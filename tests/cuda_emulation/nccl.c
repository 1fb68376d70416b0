/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl.c - emulated NCCL: not a GPU. The functions of nccl.h that gpu/ calls, over emulated CUDA.
 *
 * A shared library, found and loaded like NCCL; the streams are those of the program that loaded it. As
 * with NCCL: the operations of a communicator follow each other in the order of the calls, whatever their
 * streams; a mismatch is not noticed, both sides wait for ever; two ranks on one GPU of one host (NCCL_HOSTID)
 * are refused; at the first use of a connection its hosts wait for each other; the death of a rank is
 * an asynchronous error, and running operations continue until ncclCommAbort; abort and destroy wait for the
 * pushed operations, inside a group only at its end, after all communicators of the group were marked.
 * Stricter: in a group a communicator has one stream, and a collective is alone. In a communicator that does not block
 * (ncclConfig_t) the making, each call that connects, and some others go on in a thread of their own: until
 * ncclCommGetAsyncError says that they are through, another call is refused. A communicator that ends while a thread is in
 * that call, or has ended before it, ends the program with a message. A thread of the library's lives on until the process
 * ends: a program that unloads the library crashes.
 */
#include "nccl_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* The group of a thread: its messages, its aborts. */
static _Thread_local struct {
    int depth;
    struct call *calls; /* one a communicator */
    struct ncclComm *aborts;
} group;

_Atomic(const char *) nccl_last_error;

static ncclResult_t wrong(ncclResult_t result, const char *what)
{
    emulation_say("NCCL: %s", what);
    atomic_store(&nccl_last_error, what);
    return result;
}

bool nccl_is_ended(void *arg)
{
    const struct ncclComm *comm = arg;
    return atomic_load(&comm->abort) || gpu_error(comm->gpu) != cudaSuccess;
}

ncclResult_t nccl_result_of(enum link_end end)
{
    switch (end) {
    case LINK_DONE: return ncclSuccess;
    case LINK_ENDED: return ncclInternalError;
    case LINK_DEAD: return ncclRemoteError;
    case LINK_DUPLICATE: return wrong(ncclInvalidUsage, "Duplicate GPU detected");
    case LINK_UNUSABLE: break;
    }
    return wrong(ncclSystemError, "the ranks cannot meet");
}

/* ---- pushing ------------------------------------------------------------------------------------ */

static size_t call_bytes(size_t messages)
{
    return sizeof(struct call) + messages * sizeof(struct transfer);
}

/* The hosts agree on the connections of a call. */
static ncclResult_t connect_call(struct call *call)
{
    struct ncclComm *comm = call->comm;
    struct patience patience = {.ended = nccl_is_ended, .arg = comm};
    enum link_end end = LINK_DONE;
    const char *later = getenv("NCCL_RUNTIME_CONNECT"); /* 0: ncclCommInitRank has connected them */
    if (call->kind != MESSAGES && later && strcmp(later, "0") == 0)
        return ncclSuccess;
    if (call->kind != MESSAGES) {
        link_ask(&comm->link, -1, true);
        return nccl_result_of(link_connect(&comm->link, -1, true, &patience));
    }
    for (size_t i = 0; i < call->count; i++)
        link_ask(&comm->link, call->messages[i].peer, call->messages[i].send);
    for (size_t i = 0; i < call->count && end == LINK_DONE; i++)
        end = link_connect(&comm->link, call->messages[i].peer, call->messages[i].send, &patience);
    return nccl_result_of(end);
}

/* Behind the communicator's previous operation, on any stream. */
static ncclResult_t push_call(struct call *call)
{
    struct ncclComm *comm = call->comm;
    struct operation *operation = operation_new(OPERATION_WORK, call, call_bytes(call->count));
    if (!operation)
        return ncclSystemError;
    operation->run = nccl_run_call;
    operation->activity = ACTIVITY_KERNEL;
    call_tell("cuLaunchKernelEx");
    emulation_lock();
    struct CUstream_st *stream = any_stream(call->stream, "NCCL");
    if (!stream || stream->gpu != comm->gpu) {
        emulation_unlock();
        free(operation);
        return wrong(ncclInvalidUsage, "the stream is another GPU's");
    }
    bool follows =
        comm->last &&
        comm->last->capture == graph_capture(stream); /* a capture has no earlier operations */
    cudaError_t error = follows ? stream_wait_for(stream, comm->last) : cudaSuccess;
    if (error == cudaSuccess)
        error = stream_push(stream, operation);
    else
        free(operation);
    point_release(comm->last);
    comm->last = stream_mark(stream);
    emulation_unlock();
    return error == cudaSuccess && comm->last ? ncclSuccess : ncclSystemError;
}

static ncclResult_t do_call(struct call *call)
{
    ncclResult_t result = connect_call(call);
    return result == ncclSuccess ? push_call(call) : result;
}

static void join(struct ncclComm *comm)
{
    if (comm->has_thread)
        pthread_join(comm->thread, NULL);
    comm->has_thread = false;
}

static void *do_call_later(void *arg)
{
    struct call *call = arg;
    struct ncclComm *comm = call->comm;
    cudaSetDevice(comm->gpu);
    usleep(comm->luck % 300);
    ncclResult_t result = do_call(call), under_way = ncclInProgress;
    free(call);
    atomic_compare_exchange_strong(&comm->state, &under_way, result);
    return NULL;
}

/* Now and then, and always where it waits for other ranks, a call is still under way when it returns. */
static ncclResult_t start_call(struct call *call)
{
    struct ncclComm *comm = call->comm;
    comm->luck = comm->luck * 1103515245U + 12345U;
    if (!comm->free_running || comm->luck >> 16 & 1)
        return do_call(call);
    struct call *copy = malloc(call_bytes(call->count));
    if (!copy)
        return ncclSystemError;
    memcpy(copy, call, call_bytes(call->count));
    join(comm);
    atomic_store(&comm->state, ncclInProgress);
    comm->has_thread = pthread_create(&comm->thread, NULL, do_call_later, copy) == 0;
    if (comm->has_thread)
        return ncclInProgress;
    free(copy);
    atomic_store(&comm->state, ncclSystemError);
    return ncclSystemError;
}

/* ---- groups ------------------------------------------------------------------------------------- */

static ncclResult_t check_usable(const struct ncclComm *comm)
{
    if (!comm)
        return ncclInvalidArgument;
    if (atomic_load(&comm->abort))
        return wrong(ncclInvalidUsage, "the communicator has been aborted");
    if (atomic_load(&comm->state) == ncclInProgress)
        return wrong(ncclInvalidArgument, "the call before is still in progress");
    return gpu_error(comm->gpu) == cudaSuccess ? atomic_load(&comm->state) : ncclUnhandledCudaError;
}

/* A message of the group that is open, at the end of its communicator's. */
static ncclResult_t add_message(struct ncclComm *comm, cudaStream_t stream, struct transfer message)
{
    struct call **link = &group.calls;
    while (*link && (*link)->comm != comm)
        link = &(*link)->next;
    if (*link && (*link)->stream != stream)
        return wrong(ncclInvalidUsage,
                     "a communicator with two streams in a group is not emulated");
    size_t count = *link ? (*link)->count : 0;
    struct call *call = realloc(*link, call_bytes(count + 1));
    if (!call)
        return ncclSystemError;
    if (count == 0)
        *call = (struct call){.comm = comm, .stream = stream, .kind = MESSAGES};
    call->messages[count] = message;
    call->count = count + 1;
    *link = call;
    return ncclSuccess;
}

/* Sends of a rank to itself must all be received in the same group. */
static bool pairs_up(const struct call *call)
{
    size_t balance = 0;
    for (size_t i = 0; i < call->count; i++)
        if (call->messages[i].peer == call->comm->rank)
            balance += call->messages[i].send ? 1 : (size_t)-1;
    return balance == 0;
}

/* Work captured in a graph may still be queued, and looks whether its communicator has ended: that is told as long as
   the process lives. */
static struct ncclComm *ended_comms; /* emulation.lock */

static void end_comm(struct ncclComm *comm)
{
    join(comm);
    emulation_lock();
    const cudaError_t *error = &emulation.gpus[comm->gpu].error;
    while (comm->running > 0 ||
           (comm->last && !comm->last->capture && !comm->last->done && *error == cudaSuccess))
        pthread_cond_wait(&emulation.changed, &emulation.lock);
    point_release(comm->last);
    comm->last = NULL;
    atomic_store(&comm->abort, true);
    comm->next = ended_comms;
    ended_comms = comm;
    emulation_unlock();
    if (comm->is_open)
        link_close(&comm->link);
}

ncclResult_t ncclGroupStart(void)
{
    group.depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    ncclResult_t result = ncclSuccess;
    if (group.depth == 0)
        return wrong(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
    if (--group.depth > 0)
        return ncclSuccess;
    while (group.calls) {
        struct call *call = group.calls;
        group.calls = call->next;
        if (result == ncclSuccess)
            result = pairs_up(call)
                         ? start_call(call)
                         : wrong(ncclInvalidUsage, "a message to oneself is not received");
        free(call);
    }
    while (group.aborts) {
        struct ncclComm *comm = group.aborts;
        group.aborts = comm->next;
        end_comm(comm);
    }
    return result;
}

static ncclResult_t message(bool send, void *data, size_t count, ncclDataType_t type, int peer,
                            struct ncclComm *comm, cudaStream_t stream)
{
    ncclResult_t result = check_usable(comm);
    if (result != ncclSuccess)
        return result;
    if (type != ncclChar || peer < 0 || peer >= comm->ranks)
        return wrong(ncclInvalidArgument, "a message of another type than char, or to nobody");
    struct transfer transfer = {
        .send = send, .peer = peer, .kind = MESSAGES, .data = data, .bytes = count};
    ncclGroupStart();
    result = add_message(comm, stream, transfer);
    ncclResult_t ended = ncclGroupEnd();
    return result == ncclSuccess ? ended : result;
}

ncclResult_t ncclSend(const void *data, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    return message(true, (void *)(uintptr_t)data, count, type, peer, comm, stream);
}

ncclResult_t ncclRecv(void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return message(false, data, count, type, peer, comm, stream);
}

/* ---- collectives -------------------------------------------------------------------------------- */

static ncclResult_t collective(struct call *call)
{
    ncclResult_t result = check_usable(call->comm);
    if (result != ncclSuccess)
        return result;
    if (group.depth > 0)
        return wrong(ncclInvalidUsage, "collectives in groups are not emulated");
    if (call->root < 0 || call->root >= call->comm->ranks)
        return wrong(ncclInvalidArgument, "the root is nobody");
    return call->bytes > 0 ? start_call(call) : ncclSuccess;
}

/* The numbers that are added up here; else an error. */
static ncclResult_t sum_of(ncclDataType_t type, ncclRedOp_t op, enum number *out)
{
    static const ncclDataType_t types[] = {[NUMBER_F32] = ncclFloat32,
                                           [NUMBER_F16] = ncclFloat16,
                                           [NUMBER_BF16] = ncclBfloat16,
                                           [NUMBER_I32] = ncclInt32,
                                           [NUMBER_I64] = ncclInt64};
    for (size_t i = 0; i < sizeof types / sizeof *types && op == ncclSum; i++)
        if (types[i] == type) {
            *out = (enum number)i;
            return ncclSuccess;
        }
    return wrong(ncclInvalidArgument, "only sums of f32, f16, bf16, i32 and i64 are emulated");
}

ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    enum number number;
    if (sum_of(type, op, &number) != ncclSuccess)
        return ncclInvalidArgument;
    return collective(&(struct call){.comm = comm,
                                     .stream = stream,
                                     .kind = ALL_REDUCE,
                                     .number = number,
                                     .send = send,
                                     .recv = recv,
                                     .bytes = count * (size_t)number_bytes(number)});
}

ncclResult_t ncclReduceScatter(const void *send, void *recv, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    enum number number;
    if (sum_of(type, op, &number) != ncclSuccess)
        return ncclInvalidArgument;
    return collective(&(struct call){.comm = comm,
                                     .stream = stream,
                                     .kind = REDUCE_SCATTER,
                                     .number = number,
                                     .send = send,
                                     .recv = recv,
                                     .bytes = count * (size_t)number_bytes(number)});
}

ncclResult_t ncclAllGather(const void *send, void *recv, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream)
{
    if (type != ncclChar)
        return wrong(ncclInvalidArgument, "an all-gather of another type than char");
    return collective(&(struct call){.comm = comm,
                                     .stream = stream,
                                     .kind = ALL_GATHER,
                                     .send = send,
                                     .recv = recv,
                                     .bytes = count});
}

ncclResult_t ncclBroadcast(const void *send, void *recv, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream)
{
    if (type != ncclChar)
        return wrong(ncclInvalidArgument, "a broadcast of another type than char");
    return collective(&(struct call){.comm = comm,
                                     .stream = stream,
                                     .kind = BROADCAST,
                                     .root = root,
                                     .send = send,
                                     .recv = recv,
                                     .bytes = count});
}

/* ---- communicators ------------------------------------------------------------------------------ */

ncclResult_t ncclGetVersion(int *version)
{
    const char *text = getenv("SWSIM_EMULATED_NCCL");
    *version = text && *text ? atoi(text) : NCCL_VERSION_CODE;
    return ncclSuccess;
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    const char *last = atomic_load(&nccl_last_error);
    return last ? last : "";
}

const char *ncclGetErrorString(ncclResult_t result)
{
    switch (result) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError:
        return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError: return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
        return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument: return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInProgress: return "NCCL operation in progress";
    default: return "unknown result code";
    }
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    uint64_t luck[2];
    if (getrandom(luck, sizeof luck, 0) != (ssize_t)sizeof luck)
        return ncclSystemError;
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "/swsim-emulated-nccl-%016llx%016llx",
             (unsigned long long)luck[0], (unsigned long long)luck[1]);
    return ncclSuccess;
}

/* The name of the machine, or the value of NCCL_HOSTID. */
static uint64_t host_hash(void)
{
    char name[256] = "";
    const char *text = getenv("NCCL_HOSTID");
    uint64_t hash = 14695981039346656037U;
    if (!text && gethostname(name, sizeof name - 1) == 0)
        text = name;
    for (; text && *text; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211U;
    return hash;
}

static ncclResult_t meet(struct ncclComm *comm)
{
    struct patience patience = {.ended = nccl_is_ended, .arg = comm};
    ncclResult_t result = nccl_result_of(link_open(comm->id, comm->rank, comm->ranks, host_hash(),
                                                   comm->gpu, &patience, &comm->link));
    comm->is_open = result == ncclSuccess;
    return result;
}

static void *meet_later(void *arg)
{
    struct ncclComm *comm = arg;
    ncclResult_t result = meet(comm), under_way = ncclInProgress;
    atomic_compare_exchange_strong(&comm->state, &under_way, result);
    return NULL;
}

static void *serve(void *unused)
{
    for (;;)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    return unused;
}

static void start_service(void)
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, serve, NULL) == 0)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static ncclResult_t init(ncclComm_t *out, int ranks, const ncclUniqueId *id, int rank, bool blocks)
{
    static pthread_once_t service = PTHREAD_ONCE_INIT;
    int gpu;
    if (ranks < 1 || ranks > LINK_MAX_RANKS || rank < 0 || rank >= ranks)
        return wrong(ncclInvalidArgument, "ncclCommInitRank: no such rank");
    if (group.depth > 0)
        return wrong(ncclInvalidUsage, "communicators made in groups are not emulated");
    if (cudaGetDevice(&gpu) != cudaSuccess)
        return ncclUnhandledCudaError;
    pthread_once(&service, start_service);
    struct ncclComm *comm = calloc(1, sizeof *comm);
    if (!comm)
        return ncclSystemError;
    comm->rank = rank;
    comm->ranks = ranks;
    comm->gpu = gpu;
    memcpy(comm->id, id->internal, sizeof comm->id - 1);
    comm->free_running = !blocks;
    comm->luck = (uint32_t)rank + 1;
    ncclResult_t result = ncclInProgress;
    if (blocks) {
        result = meet(comm);
    } else {
        atomic_store(&comm->state, ncclInProgress);
        comm->has_thread = pthread_create(&comm->thread, NULL, meet_later, comm) == 0;
        result = comm->has_thread ? ncclInProgress : ncclSystemError;
    }
    if (result != ncclSuccess && result != ncclInProgress) {
        free(comm);
        return result;
    }
    *out = comm;
    return result;
}

ncclResult_t ncclCommInitRank(ncclComm_t *out, int ranks, ncclUniqueId id, int rank)
{
    return init(out, ranks, &id, rank, true);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    if (fault_call(__func__) != cudaSuccess)
        _exit(9);
    if (config && config->magic != (unsigned)0xcafebeef)
        return wrong(ncclInvalidArgument, "a configuration without NCCL_CONFIG_INITIALIZER");
    return init(out, ranks, &id, rank, !config || config->blocking != 0);
}

/* Work that was pushed may go on. */
ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    return check_usable(comm);
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *out)
{
    *out = comm->ranks;
    return check_usable(comm);
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *out)
{
    *out = comm->rank;
    return check_usable(comm);
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *out)
{
    *out = comm->gpu;
    return check_usable(comm);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *out)
{
    if (atomic_load(&comm->abort))
        emulation_misuse("ncclCommGetAsyncError: the communicator has ended");
    atomic_fetch_add(&comm->asking, 1);
    const cudaError_t fault = fault_call(__func__);
    *out = atomic_load(&comm->state);
    atomic_fetch_sub(&comm->asking, 1);
    return fault == cudaSuccess ? ncclSuccess : ncclInternalError;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    end_comm(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    if (atomic_load(&comm->asking) > 0)
        emulation_misuse("ncclCommAbort: another thread is in ncclCommGetAsyncError");
    atomic_store(&comm->abort, true);
    ncclGroupStart();
    comm->next = group.aborts;
    group.aborts = comm;
    return ncclGroupEnd();
}
