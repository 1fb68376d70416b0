/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_kernel.c - emulated NCCL: not a GPU. What its kernels do: transfers between ranks, and sums. */
#include "nccl_impl.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct kernel_memory {
    struct transfer transfers[2 * LINK_MAX_RANKS];
    size_t count;
    char *parts[LINK_MAX_RANKS]; /* the data of the others, to be summed up */
};

static void transfer_with(struct kernel_memory *memory, const struct call *call, bool send,
                          int peer, char *data, size_t bytes)
{
    memory->transfers[memory->count++] =
        (struct transfer){.send = send,
                          .peer = peer,
                          .kind = (uint64_t)call->number << 40 | (uint64_t)call->kind << 32 |
                                  (uint64_t)(unsigned)call->root,
                          .data = data,
                          .bytes = bytes};
}

/* Each rank sends to each: the simplest way, with the same sum on all ranks. */
static bool plan_transfers(const struct call *call, char *send, char *recv,
                           struct kernel_memory *memory)
{
    const struct ncclComm *comm = call->comm;
    size_t bytes = call->bytes;
    for (int peer = 0; peer < comm->ranks; peer++) {
        char *from = send, *to = recv + (size_t)peer * bytes;
        if (peer == comm->rank)
            continue;
        if (call->kind == REDUCE_SCATTER)
            from = send + (size_t)peer * bytes;
        if (call->kind == ALL_REDUCE || call->kind == REDUCE_SCATTER)
            to = memory->parts[peer] = malloc(bytes);
        if (call->kind == BROADCAST)
            to = recv;
        if (!to)
            return false;
        if (call->kind != BROADCAST || comm->rank == call->root)
            transfer_with(memory, call, true, peer, from, bytes);
        if (call->kind != BROADCAST || peer == call->root)
            transfer_with(memory, call, false, peer, to, bytes);
    }
    return true;
}

/* `count` numbers at `at`. NCCL has an order and a precision of its own; here as number_add says. */
static void add_piece(const struct call *call, const char *own, const struct kernel_memory *memory,
                      size_t at, size_t count, char *out)
{
    union number_sums sums;
    memset(&sums, 0, sizeof sums);
    for (int rank = 0; rank < call->comm->ranks; rank++)
        number_add(call->number, &sums, (rank == call->comm->rank ? own : memory->parts[rank]) + at,
                   count);
    number_store(call->number, &sums, out, count);
}

/* Add the received parts in the order of the ranks, the own part in its place. */
static bool finish(const struct call *call, const char *send, char *recv,
                   struct kernel_memory *memory)
{
    int me = call->comm->rank;
    size_t bytes = call->bytes, offset = (size_t)me * bytes;
    if (call->kind == BROADCAST && me == call->root)
        memmove(recv, send, bytes);
    if (call->kind == ALL_GATHER)
        memmove(recv + offset, send, bytes);
    if (call->kind != ALL_REDUCE && call->kind != REDUCE_SCATTER)
        return true;
    const char *own = call->kind == REDUCE_SCATTER ? send + offset : send;
    size_t most = NUMBER_SUMS * (size_t)number_bytes(call->number);
    for (size_t at = 0; at < bytes; at += most) {
        size_t piece = bytes - at < most ? bytes - at : most;
        add_piece(call, own, memory, at, piece / (size_t)number_bytes(call->number), recv + at);
    }
    return true;
}

static cudaError_t run_collective(struct call *call, enum link_end *end, struct patience *patience)
{
    struct ncclComm *comm = call->comm;
    size_t ranks = (size_t)comm->ranks, bytes = call->bytes;
    bool sends = call->kind != BROADCAST || comm->rank == call->root;
    size_t send_bytes = call->kind == REDUCE_SCATTER ? ranks * bytes : bytes;
    size_t recv_bytes = call->kind == ALL_GATHER ? ranks * bytes : bytes;
    char *send = sends ? memory_reach(comm->gpu, call->send, send_bytes, "NCCL") : NULL;
    char *recv = memory_reach(comm->gpu, call->recv, recv_bytes, "NCCL");
    if ((sends && !send) || !recv)
        return cudaErrorIllegalAddress;
    struct kernel_memory memory = {.count = 0};
    bool good = plan_transfers(call, send, recv, &memory);
    if (good)
        *end = link_exchange(&comm->link, memory.transfers, memory.count, patience);
    if (good && *end == LINK_DONE)
        good = finish(call, send, recv, &memory);
    for (int i = 0; i < comm->ranks; i++)
        free(memory.parts[i]);
    return good ? cudaSuccess : cudaErrorLaunchFailure;
}

/* The n-th message of a rank to itself goes to the n-th that it expects of itself. */
static void pass_to_self(struct call *call)
{
    size_t at = 0;
    for (size_t i = 0; i < call->count; i++) {
        struct transfer *send = &call->messages[i];
        if (!send->send || send->peer != call->comm->rank)
            continue;
        while (call->messages[at].send || call->messages[at].peer != call->comm->rank)
            at++;
        struct transfer *receive = &call->messages[at++];
        memcpy(receive->data, send->data, send->bytes);
        send->done = receive->done = true;
    }
}

static cudaError_t run_messages(struct call *call, enum link_end *end, struct patience *patience)
{
    for (size_t i = 0; i < call->count; i++) {
        struct transfer *message = &call->messages[i];
        if (message->bytes == 0)
            continue;
        message->data = memory_reach(call->comm->gpu, message->data, message->bytes, "NCCL");
        if (!message->data)
            return cudaErrorIllegalAddress;
    }
    pass_to_self(call);
    *end = link_exchange(&call->comm->link, call->messages, call->count, patience);
    return cudaSuccess;
}

static void set_running(struct ncclComm *comm, int change)
{
    emulation_lock();
    comm->running += change;
    pthread_cond_broadcast(&emulation.changed);
    emulation_unlock();
}

/* A kernel whose peer has died, or whose communicator met an error, runs until it is aborted. */
cudaError_t nccl_run_call(struct CUstream_st *stream, void *payload)
{
    (void)stream;
    struct call *call = payload;
    struct ncclComm *comm = call->comm;
    struct patience patience = {.ended = nccl_is_ended, .arg = comm};
    enum link_end end = LINK_DONE;
    cudaError_t error = cudaSuccess;
    set_running(comm, 1);
    if (fault_nccl())
        end = LINK_UNUSABLE;
    else if (!nccl_is_ended(comm))
        error = call->kind == MESSAGES ? run_messages(call, &end, &patience)
                                       : run_collective(call, &end, &patience);
    if (end == LINK_DEAD || end == LINK_UNUSABLE) {
        atomic_store(&nccl_last_error,
                     end == LINK_DEAD ? "a peer closed its connection" : "call to connect failed");
        atomic_store(&comm->state, end == LINK_DEAD ? ncclRemoteError : ncclSystemError);
        while (!nccl_is_ended(comm))
            usleep(1000);
    }
    set_running(comm, -1);
    return error;
}
