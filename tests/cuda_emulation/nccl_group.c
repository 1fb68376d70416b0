/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_group.c - emulated NCCL: not a GPU. Groups of calls, and how a call gets into its streams.
 *
 * A call outside of a group is a group of one. What a group has of a communicator is pushed together: its collectives in
 * the order of the calls, then its messages as one kernel, since ranks may mix the two differently. With several
 * streams it comes behind what all of them have, and all of them go on behind it. A call that is refused ends its group:
 * nothing of it is pushed, and the end of the group has the error.
 */
#include "nccl_impl.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_STREAMS = 16 };

/* The part of a group that one communicator has. */
struct batch {
    struct batch *next;
    struct ncclComm *comm;
    size_t stream_count;
    cudaStream_t streams[MOST_STREAMS]; /* all pushed to the first */
    struct call *calls, **end;          /* the collectives */
    struct call *messages;              /* NULL: none */
};

/* The group of a thread. */
static _Thread_local struct {
    int depth;
    ncclResult_t refused; /* the first error of its calls */
    struct batch *batches, **end;
    struct ncclComm *aborts;
} group;

static size_t call_bytes(size_t messages)
{
    return sizeof(struct call) + messages * sizeof(struct transfer);
}

static void batch_free(struct batch *batch)
{
    while (batch->calls) {
        struct call *call = batch->calls;
        batch->calls = call->next;
        free(call);
    }
    free(batch->messages);
    free(batch);
}

/* ---- connections -------------------------------------------------------------------------------- */

/* The ranks of a collective need none where ncclCommInitRank has connected them. */
static bool needs_connections(void)
{
    const char *later = getenv("NCCL_RUNTIME_CONNECT");
    return !later || strcmp(later, "0") != 0;
}

/* The hosts agree on the connections of a batch; it asks for all before it waits for one. */
static void ask_for(const struct batch *batch)
{
    struct link *link = &batch->comm->link;
    const struct call *messages = batch->messages;
    if (batch->calls && needs_connections())
        link_ask(link, -1, true);
    for (size_t i = 0; messages && i < messages->count; i++)
        link_ask(link, messages->messages[i].peer, messages->messages[i].send);
}

static ncclResult_t connect_batch(const struct batch *batch)
{
    struct ncclComm *comm = batch->comm;
    struct patience patience = {.ended = nccl_is_ended, .arg = comm};
    const struct call *messages = batch->messages;
    enum link_end end = LINK_DONE;
    if (batch->calls && needs_connections())
        end = link_connect(&comm->link, -1, true, &patience);
    for (size_t i = 0; messages && i < messages->count && end == LINK_DONE; i++)
        end = link_connect(&comm->link, messages->messages[i].peer, messages->messages[i].send,
                           &patience);
    return nccl_result_of(end);
}

/* ---- pushing ------------------------------------------------------------------------------------ */

/* The first stream, behind what the others have; NULL: refused. The lock is held. */
static struct CUstream_st *gather_streams(const struct batch *batch)
{
    struct CUstream_st *first = any_stream(batch->streams[0], "NCCL");
    for (size_t i = 0; first && i < batch->stream_count; i++) {
        struct CUstream_st *stream = any_stream(batch->streams[i], "NCCL");
        if (!stream || stream->gpu != batch->comm->gpu) {
            nccl_wrong(ncclInvalidUsage, "the stream is another GPU's");
            return NULL;
        }
        if (i == 0)
            continue;
        struct point *point = stream_mark(stream);
        const bool follows = point && stream_wait_for(first, point) == cudaSuccess;
        point_release(point);
        if (!follows)
            return NULL;
    }
    return first;
}

/* Behind the communicator's previous operation, on any stream. */
static cudaError_t push_call(const struct call *call, struct CUstream_st *stream)
{
    struct ncclComm *comm = call->comm;
    struct operation *operation = operation_new(OPERATION_WORK, call, call_bytes(call->count));
    if (!operation)
        return cudaErrorMemoryAllocation;
    operation->run = nccl_run_call;
    operation->activity = ACTIVITY_KERNEL;
    emulation_unlock();
    call_tell("cuLaunchKernelEx");
    emulation_lock();
    const bool follows =
        comm->last &&
        comm->last->capture == graph_capture(stream); /* a capture has no earlier operations */
    cudaError_t error = follows ? stream_wait_for(stream, comm->last) : cudaSuccess;
    if (error == cudaSuccess)
        error = stream_push(stream, operation);
    else
        free(operation);
    point_release(comm->last);
    comm->last = stream_mark(stream);
    return comm->last ? error : cudaErrorMemoryAllocation;
}

static ncclResult_t push_batch(const struct batch *batch)
{
    cudaError_t error = cudaSuccess;
    emulation_lock();
    struct CUstream_st *first = gather_streams(batch);
    for (struct call *call = batch->calls; first && call && error == cudaSuccess; call = call->next)
        error = push_call(call, first);
    if (first && batch->messages && error == cudaSuccess)
        error = push_call(batch->messages, first);
    for (size_t i = 1; first && i < batch->stream_count && error == cudaSuccess; i++)
        error = stream_wait_for(any_stream(batch->streams[i], "NCCL"), batch->comm->last);
    emulation_unlock();
    return !first ? ncclInvalidUsage : error == cudaSuccess ? ncclSuccess : ncclSystemError;
}

static ncclResult_t do_batch(struct batch *batch)
{
    const ncclResult_t result = connect_batch(batch);
    return result == ncclSuccess ? push_batch(batch) : result;
}

static void *do_batch_later(void *arg)
{
    struct batch *batch = arg;
    struct ncclComm *comm = batch->comm;
    cudaSetDevice(comm->gpu);
    usleep(comm->luck % 300);
    ncclResult_t result = do_batch(batch), under_way = ncclInProgress;
    batch_free(batch);
    atomic_compare_exchange_strong(&comm->state, &under_way, result);
    return NULL;
}

/* Now and then, and always where it waits for other ranks, a call of a communicator that does not block is still under way
   when it returns. Takes the batch. */
static ncclResult_t start_batch(struct batch *batch)
{
    struct ncclComm *comm = batch->comm;
    comm->luck = comm->luck * 1103515245U + 12345U;
    if (!comm->free_running || comm->luck >> 16 & 1) {
        const ncclResult_t result = do_batch(batch);
        batch_free(batch);
        return result;
    }
    nccl_join(comm);
    atomic_store(&comm->state, ncclInProgress);
    comm->has_thread = pthread_create(&comm->thread, NULL, do_batch_later, batch) == 0;
    if (comm->has_thread)
        return ncclInProgress;
    batch_free(batch);
    atomic_store(&comm->state, ncclSystemError);
    return ncclSystemError;
}

/* ---- what a group has --------------------------------------------------------------------------- */

ncclResult_t nccl_check_usable(const struct ncclComm *comm)
{
    if (!comm)
        return ncclInvalidArgument;
    if (atomic_load(&comm->abort))
        return nccl_wrong(ncclInvalidUsage, "the communicator has been aborted");
    if (atomic_load(&comm->state) == ncclInProgress)
        return nccl_wrong(ncclInvalidArgument, "the call before is still in progress");
    return gpu_error(comm->gpu) == cudaSuccess ? atomic_load(&comm->state) : ncclUnhandledCudaError;
}

static struct batch *batch_of(struct ncclComm *comm)
{
    struct batch *batch = group.batches;
    while (batch && batch->comm != comm)
        batch = batch->next;
    if (batch)
        return batch;
    batch = calloc(1, sizeof *batch);
    if (!batch)
        return NULL;
    batch->comm = comm;
    batch->end = &batch->calls;
    if (!group.batches)
        group.end = &group.batches;
    *group.end = batch;
    group.end = &batch->next;
    return batch;
}

static bool use_stream(struct batch *batch, cudaStream_t stream)
{
    for (size_t i = 0; i < batch->stream_count; i++)
        if (batch->streams[i] == stream)
            return true;
    if (batch->stream_count == MOST_STREAMS)
        return false;
    batch->streams[batch->stream_count++] = stream;
    return true;
}

static ncclResult_t add_collective(struct batch *batch, const struct call *call)
{
    struct call *copy = malloc(sizeof *copy);
    if (!copy)
        return ncclSystemError;
    *copy = *call;
    *batch->end = copy;
    batch->end = &copy->next;
    return ncclSuccess;
}

static ncclResult_t add_message(struct batch *batch, const struct transfer *message)
{
    const size_t count = batch->messages ? batch->messages->count : 0;
    struct call *call = realloc(batch->messages, call_bytes(count + 1));
    if (!call)
        return ncclSystemError;
    if (count == 0)
        *call = (struct call){.comm = batch->comm, .kind = MESSAGES};
    call->messages[count] = *message;
    call->count = count + 1;
    batch->messages = call;
    return ncclSuccess;
}

static ncclResult_t add(struct ncclComm *comm, cudaStream_t stream, const struct call *call,
                        const struct transfer *message)
{
    const ncclResult_t result = nccl_check_usable(comm);
    if (result != ncclSuccess)
        return result;
    if (comm->finalized)
        emulation_misuse("a collective or message: the communicator has been finalized");
    if (call && call->bytes == 0)
        return ncclSuccess;
    struct batch *batch = batch_of(comm);
    if (!batch)
        return ncclSystemError;
    if (!use_stream(batch, stream))
        return nccl_wrong(ncclInvalidUsage, "so many streams in a group are not emulated");
    return call ? add_collective(batch, call) : add_message(batch, message);
}

ncclResult_t nccl_refuse(ncclResult_t result)
{
    if (group.depth > 0 && group.refused == ncclSuccess)
        group.refused = result;
    return result;
}

ncclResult_t nccl_group_add(struct ncclComm *comm, cudaStream_t stream, const struct call *call,
                            const struct transfer *message)
{
    if (comm)
        nccl_enter(comm, "a collective or message");
    ncclGroupStart();
    const ncclResult_t result = nccl_refuse(add(comm, stream, call, message));
    const ncclResult_t ended = ncclGroupEnd();
    if (comm)
        nccl_leave(comm);
    return result == ncclSuccess ? ended : result;
}

/* ---- begin and end ------------------------------------------------------------------------------ */

/* Sends of a rank to itself must all be received in the same group. */
static bool pairs_up(const struct batch *batch)
{
    const struct call *call = batch->messages;
    size_t balance = 0;
    for (size_t i = 0; call && i < call->count; i++)
        if (call->messages[i].peer == call->comm->rank)
            balance += call->messages[i].send ? 1 : (size_t)-1;
    return balance == 0;
}

ncclResult_t ncclGroupStart(void)
{
    group.depth++;
    return ncclSuccess;
}

bool nccl_in_group(void)
{
    return group.depth > 0;
}

static ncclResult_t start_all(ncclResult_t result)
{
    ncclResult_t under_way = ncclSuccess;
    for (const struct batch *batch = group.batches; batch; batch = batch->next)
        if (result == ncclSuccess && batch->comm->free_running != group.batches->comm->free_running)
            result = nccl_wrong(ncclInvalidArgument,
                                "communicators that block and that do not are in one group");
    for (const struct batch *batch = group.batches; batch; batch = batch->next)
        if (result == ncclSuccess && !pairs_up(batch))
            result = nccl_wrong(ncclInvalidUsage, "a message to oneself is not received");
    for (const struct batch *batch = group.batches; batch && result == ncclSuccess;
         batch = batch->next)
        ask_for(batch);
    while (group.batches) {
        struct batch *batch = group.batches;
        group.batches = batch->next;
        if (result != ncclSuccess) {
            batch_free(batch);
            continue;
        }
        struct ncclComm *comm = batch->comm;
        nccl_enter(comm, "ncclGroupEnd");
        result = start_batch(batch);
        nccl_leave(comm);
        if (result == ncclInProgress) {
            under_way = result;
            result = ncclSuccess;
        }
    }
    return result == ncclSuccess ? under_way : result;
}

ncclResult_t ncclGroupEnd(void)
{
    if (group.depth == 0)
        return nccl_wrong(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
    if (--group.depth > 0)
        return ncclSuccess;
    const ncclResult_t refused = group.refused;
    group.refused = ncclSuccess;
    const ncclResult_t made = nccl_make_all(refused);
    const ncclResult_t started = start_all(made == ncclInProgress ? ncclSuccess : made);
    const ncclResult_t result = started == ncclSuccess ? made : started;
    while (group.aborts) {
        struct ncclComm *comm = group.aborts;
        group.aborts = comm->next;
        nccl_end_comm(comm);
    }
    return result;
}

/* Nothing of the group is done. */
#ifdef NCCL_SIM_INFO_INITIALIZER
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *info)
{
    if (group.depth == 0)
        return nccl_wrong(ncclInvalidUsage, "ncclGroupSimulateEnd without ncclGroupStart");
    if (--group.depth > 0)
        return ncclSuccess;
    group.refused = ncclSuccess;
    (void)nccl_make_all(ncclInvalidUsage);
    (void)start_all(ncclInvalidUsage);
    if (info)
        info->estimatedTime = 1;
    return ncclSuccess;
}
#endif

void nccl_group_abort(struct ncclComm *comm)
{
    ncclGroupStart();
    comm->next = group.aborts;
    group.aborts = comm;
    ncclGroupEnd();
}
