/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl.c - emulated NCCL: not a GPU. The functions of nccl.h that gpu/ calls, over emulated CUDA.
 *
 * A shared library, found and loaded like NCCL; the streams are those of the program that loaded it. As
 * with NCCL: the operations of a communicator follow each other in the order of the calls, whatever their
 * streams; a mismatch is not noticed, both sides wait for ever; two ranks on one GPU of one host (NCCL_HOSTID)
 * are refused; at the first use of a connection its hosts wait for each other; the death of a rank is
 * an asynchronous error, and running operations continue until ncclCommAbort; abort and destroy wait for the
 * pushed operations, from NCCL 2.22 on inside a group only at its end, after all communicators of the group were marked.
 * A communicator that divides another gets its handle when it is made: at the end of a group, or later.
 * Its end frees pinned memory, which waits for all work of the GPU, as NCCL's does.
 * Stricter: a call on a communicator beside another thread's, ncclCommGetAsyncError too and only ncclCommAbort not, and one
 * behind its end, end the program with a message; in a communicator that does not block (ncclConfig_t) the making, each call that connects, and some others
 * go on in a thread of their own: until ncclCommGetAsyncError says that they are through, another call is refused. A communicator that ends while a thread is in
 * that call, or has ended before it, ends the program with a message. A thread of the library's lives on until the process
 * ends: a program that unloads the library crashes.
 */
#include "nccl_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { ABORTS_IN_GROUPS = 22200 };

_Atomic(const char *) nccl_last_error;

ncclResult_t nccl_wrong(ncclResult_t result, const char *what)
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
    case LINK_DUPLICATE: return nccl_wrong(ncclInvalidUsage, "Duplicate GPU detected");
    case LINK_UNUSABLE: break;
    }
    return nccl_wrong(ncclSystemError, "the ranks cannot meet");
}

/* ---- operations --------------------------------------------------------------------------------- */

static size_t bytes_of(ncclDataType_t type)
{
    switch (type) {
    case ncclInt8:
    case ncclUint8: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32: return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64: return 8;
    default: return 0;
    }
}

static ncclResult_t message(bool send, void *data, size_t count, ncclDataType_t type, int peer,
                            struct ncclComm *comm, cudaStream_t stream)
{
    if (bytes_of(type) == 0 || (comm && (peer < 0 || peer >= comm->ranks)))
        return nccl_refuse(
            nccl_wrong(ncclInvalidArgument, "a message of a type that there is not, or to nobody"));
    return nccl_group_add(comm, stream, NULL,
                          &(struct transfer){.send = send,
                                             .peer = peer,
                                             .kind = MESSAGES,
                                             .data = data,
                                             .bytes = count * bytes_of(type)});
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

/* Apart, or in place as nccl.h says. */
static bool may_overlap(const struct call *call)
{
    const struct ncclComm *comm = call->comm;
    const size_t all = call->bytes * (size_t)comm->ranks, own = call->bytes * (size_t)comm->rank;
    const size_t sent = call->kind == REDUCE_SCATTER ? all : call->bytes;
    const size_t got = call->kind == ALL_GATHER ? all : call->bytes;
    const uintptr_t send = (uintptr_t)call->send, recv = (uintptr_t)call->recv;
    if (send + sent <= recv || recv + got <= send ||
        (call->kind == BROADCAST && comm->rank != call->root))
        return true;
    return call->kind == ALL_GATHER       ? send == recv + own
           : call->kind == REDUCE_SCATTER ? recv == send + own
                                          : send == recv;
}

static ncclResult_t collective(const struct call *call, cudaStream_t stream)
{
    if (call->comm && (call->root < 0 || call->root >= call->comm->ranks))
        return nccl_refuse(nccl_wrong(ncclInvalidArgument, "the root is nobody"));
    if (call->comm && !may_overlap(call))
        emulation_misuse("a collective: its buffers overlap, and it is not in place");
    return nccl_group_add(call->comm, stream, call, NULL);
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
    return nccl_refuse(
        nccl_wrong(ncclInvalidArgument, "only sums of f32, f16, bf16, i32 and i64 are emulated"));
}

static ncclResult_t sum(enum kind kind, const void *send, void *recv, size_t count,
                        ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    enum number number = NUMBER_F32;
    const ncclResult_t result = sum_of(type, op, &number);
    if (result != ncclSuccess)
        return result;
    return collective(&(struct call){.comm = comm,
                                     .kind = kind,
                                     .number = number,
                                     .send = send,
                                     .recv = recv,
                                     .bytes = count * bytes_of(type)},
                      stream);
}

ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return sum(ALL_REDUCE, send, recv, count, type, op, comm, stream);
}

ncclResult_t ncclReduceScatter(const void *send, void *recv, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return sum(REDUCE_SCATTER, send, recv, count, type, op, comm, stream);
}

/* Bytes that are passed on; of which type does not matter. */
static ncclResult_t pass(enum kind kind, const void *send, void *recv, size_t count,
                         ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)
{
    if (bytes_of(type) == 0)
        return nccl_refuse(nccl_wrong(ncclInvalidArgument, "numbers of a type that there is not"));
    return collective(&(struct call){.comm = comm,
                                     .kind = kind,
                                     .root = root,
                                     .send = send,
                                     .recv = recv,
                                     .bytes = count * bytes_of(type)},
                      stream);
}

ncclResult_t ncclAllGather(const void *send, void *recv, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream)
{
    return pass(ALL_GATHER, send, recv, count, type, 0, comm, stream);
}

ncclResult_t ncclBroadcast(const void *send, void *recv, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream)
{
    return pass(BROADCAST, send, recv, count, type, root, comm, stream);
}

/* ---- the end of a communicator ------------------------------------------------------------------ */

void nccl_join(struct ncclComm *comm)
{
    if (comm->has_thread)
        pthread_join(comm->thread, NULL);
    comm->has_thread = false;
}

/* Work captured in a graph may still be queued, and looks whether its communicator has ended: that is told as long as
   the process lives. */
static struct ncclComm *ended_comms; /* emulation.lock */

void nccl_enter(struct ncclComm *comm, const char *function)
{
    static _Thread_local char self;
    void *other = NULL;
    if (atomic_load(&comm->gone))
        emulation_misuse("%s: the communicator has been destroyed or aborted", function);
    if (!atomic_compare_exchange_strong(&comm->caller, &other, &self) && other != &self)
        emulation_misuse("%s: another thread is in a call on the communicator", function);
    atomic_fetch_add(&comm->calling, 1);
    if (atomic_load(&comm->asking) > 0)
        emulation_misuse("%s: another thread is in ncclCommGetAsyncError", function);
}

void nccl_leave(struct ncclComm *comm)
{
    if (atomic_fetch_sub(&comm->calling, 1) == 1)
        atomic_store(&comm->caller, NULL);
}

void nccl_end_comm(struct ncclComm *comm)
{
    nccl_join(comm);
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
    if (comm->flag)
        cudaFreeHost(comm->flag);
    comm->flag = NULL;
    atomic_store(&comm->gone, true);
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

/* Work that was pushed may go on. */
ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    nccl_enter(comm, __func__);
    ncclResult_t result = nccl_check_usable(comm);
    if (result == ncclSuccess && comm->finalized)
        result = nccl_wrong(ncclInvalidArgument, "the communicator has been finalized");
    comm->finalized = comm->finalized || result == ncclSuccess;
    nccl_leave(comm);
    return result;
}

static ncclResult_t tell(ncclComm_t comm, int what, int *out, const char *function)
{
    nccl_enter(comm, function);
    *out = what;
    const ncclResult_t result = nccl_check_usable(comm);
    nccl_leave(comm);
    return result;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *out)
{
    return tell(comm, comm->ranks, out, __func__);
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *out)
{
    return tell(comm, comm->rank, out, __func__);
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *out)
{
    return tell(comm, comm->gpu, out, __func__);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *out)
{
    if (atomic_load(&comm->abort))
        emulation_misuse("ncclCommGetAsyncError: the communicator has ended");
    if (atomic_fetch_add(&comm->asking, 1) > 0 || atomic_load(&comm->calling) > 0)
        emulation_misuse("ncclCommGetAsyncError: another thread is in a call on the communicator");
    const cudaError_t fault = fault_call(__func__);
    *out = atomic_load(&comm->state);
    atomic_fetch_sub(&comm->asking, 1);
    return fault == cudaSuccess ? ncclSuccess : ncclInternalError;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    nccl_enter(comm, __func__); /* and never leaves */
    nccl_end_comm(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    if (atomic_load(&comm->gone))
        emulation_misuse("%s: the communicator has been destroyed or aborted", __func__);
    if (atomic_load(&comm->asking) > 0)
        emulation_misuse("ncclCommAbort: another thread is in ncclCommGetAsyncError");
    atomic_store(&comm->abort, true);
    int version = 0;
    ncclGetVersion(&version);
    if (version >= ABORTS_IN_GROUPS)
        nccl_group_abort(comm);
    else
        nccl_end_comm(comm);
    return ncclSuccess;
}
