/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_comm_push.c - collectives and groups of messages as calls of NCCL. */
#include "cuda_impl.h"

#if defined HAVE_CUDA && defined HAVE_NCCL

#include "cuda_comm_impl.h"

#include <time.h>

/* Block j of what is sent goes to member j, block i of what is received comes from member i. */
static ncclResult_t all_to_all(struct cuda_comm *comm, const struct device_collective *what,
                               cudaStream_t stream)
{
    const struct nccl *nccl = comm->nccl;
    size_t block = (size_t)what->bytes / (size_t)comm->base.count;
    ncclResult_t result = nccl->GroupStart();
    for (int i = 0; i < comm->base.count && cuda_comm_passes(result); i++) {
        size_t offset = (size_t)i * block;
        result =
            nccl->Send(ref_address(what->send) + offset, block, ncclChar, i, comm->handle, stream);
        if (cuda_comm_passes(result))
            result = nccl->Recv(ref_address(what->recv) + offset, block, ncclChar, i, comm->handle,
                                stream);
    }
    return cuda_comm_end_group(comm, result, NULL);
}

static ncclDataType_t type_of(enum number number)
{
    switch (number) {
    case NUMBER_F32: break;
    case NUMBER_F16: return ncclFloat16;
    case NUMBER_BF16: return ncclBfloat16;
    case NUMBER_I32: return ncclInt32;
    case NUMBER_I64: return ncclInt64;
    }
    return ncclFloat32;
}

static ncclResult_t push_collective(struct cuda_comm *comm, const struct device_collective *what,
                                    cudaStream_t stream)
{
    const struct nccl *nccl = comm->nccl;
    size_t bytes = (size_t)what->bytes, block = bytes / (size_t)comm->base.count;
    const void *send = ref_address(what->send);
    void *recv = ref_address(what->recv);
    size_t size = (size_t)number_bytes(what->number);
    ncclDataType_t type = type_of(what->number);
    if (bytes == 0 && what->kind != COLLECTIVE_BARRIER)
        return ncclSuccess; /* nothing to move, and no NCCL kernel either */
    switch (what->kind) {
    case COLLECTIVE_ALL_TO_ALL: return all_to_all(comm, what, stream);
    case COLLECTIVE_ALL_REDUCE:
        return nccl->AllReduce(send, recv, bytes / size, type, ncclSum, comm->handle, stream);
    case COLLECTIVE_ALL_GATHER:
        return nccl->AllGather(send, recv, block, ncclChar, comm->handle, stream);
    case COLLECTIVE_REDUCE_SCATTER:
        return nccl->ReduceScatter(send, recv, block / size, type, ncclSum, comm->handle, stream);
    case COLLECTIVE_BROADCAST:
        return nccl->Broadcast(send, recv, bytes, ncclChar,
                               device_comm_place(&comm->base, what->root), comm->handle, stream);
    case COLLECTIVE_BARRIER:
        return nccl->AllReduce(comm->scratch, comm->scratch, 1, ncclFloat, ncclSum, comm->handle,
                               stream);
    }
    return ncclInvalidArgument;
}

static ncclResult_t push_group(struct cuda_comm *comm, const struct device_group *group,
                               cudaStream_t stream)
{
    const struct nccl *nccl = comm->nccl;
    ncclResult_t result = nccl->GroupStart();
    for (size_t i = 0; i < group->count && cuda_comm_passes(result); i++) {
        const struct device_p2p *part = &group->parts[i];
        int peer = device_comm_place(&comm->base, part->peer);
        char *data = ref_address(part->data);
        result = part->send
                     ? nccl->Send(data, (size_t)part->bytes, ncclChar, peer, comm->handle, stream)
                     : nccl->Recv(data, (size_t)part->bytes, ncclChar, peer, comm->handle, stream);
    }
    return cuda_comm_end_group(comm, result, NULL);
}

/* A push that is refused behind the death of a peer: the abort, which says who it was, may come in a moment. */
static void await_news(struct cuda_world *world, ncclResult_t result)
{
    const int64_t since_ns = device_now(&world->base);
    if (result == ncclSuccess || result == ncclInvalidArgument || result == ncclInvalidUsage)
        return;
    while (world->base.config.rendezvous && !atomic_load(&world->aborted) &&
           device_now(&world->base) - since_ns < NEWS_NS)
        nanosleep(&(struct timespec){.tv_nsec = WARM_UP_PAUSE_NS}, NULL);
}

void cuda_comm_push(struct cuda_stream *stream, const struct device_op *op)
{
    struct cuda_comm *comm = (struct cuda_comm *)device_op_comm(op);
    ncclResult_t result = ncclInvalidUsage; /* what an aborted communicator gives */
    char text[OP_TEXT], words[NCCL_TEXT];
    pthread_mutex_lock(&comm->lock);
    if (!atomic_load(&comm->aborted))
        result = op->kind == DEVICE_OP_GROUP
                     ? push_group(comm, &op->group, stream->handle)
                     : push_collective(comm, &op->collective, stream->handle);
    result = cuda_comm_await(comm, result, NULL);
    pthread_mutex_unlock(&comm->lock);
    await_news(stream->device->world, result);
    if (result != ncclSuccess)
        cuda_stream_fail(stream, STATUS_SYSTEM, "rank %d, stream %s: %s on communicator %s: %s",
                         stream->device->base.rank, stream->base.name, device_op_text(op, text),
                         comm->base.name, nccl_describe(comm->nccl, result, words, sizeof words));
}

#else

/* ISO C wants a declaration in every file. */
typedef int cuda_comm_push_is_empty_without_nccl;

#endif
