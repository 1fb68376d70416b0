/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_comm.c - communicators as shared memory: how ranks meet, and how bytes go from one to another. See nccl.h. */
#include "nccl.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const char *const kind_words[] = {
#define X(name, words) words,
    NCCL_KIND_LIST(X)
#undef X
};

const char *nccl_kind_words(unsigned kind)
{
    return kind < sizeof kind_words / sizeof *kind_words ? kind_words[kind] : "something else";
}

struct nccl_box *nccl_box_of(const struct nccl_comm *comm, int from, int to)
{
    char *boxes = (char *)&comm->shared->boards[comm->ranks];
    return (struct nccl_box *)(void *)boxes + (size_t)from * (size_t)comm->ranks + (size_t)to;
}

struct nccl_comm *nccl_join(const char *name, int ranks, int rank)
{
    struct nccl_comm *comm = calloc(1, sizeof *comm);
    if (!comm || ranks < 1 || ranks > NCCL_MOST_RANKS || rank < 0 || rank >= ranks)
        return NULL;
    comm->rank = rank;
    comm->ranks = ranks;
    comm->device = none_device();
    snprintf(comm->name, sizeof comm->name, "%s", name);
    comm->out = calloc((size_t)ranks, sizeof(struct nccl_outgoing *));
    comm->in = calloc((size_t)ranks, sizeof(struct nccl_incoming *));
    comm->shared_bytes = sizeof *comm->shared + (size_t)ranks * sizeof(struct nccl_board) +
                         (size_t)ranks * (size_t)ranks * sizeof(struct nccl_box);
    const int file = shm_open(comm->name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file >= 0 && comm->out && comm->in && ftruncate(file, (off_t)comm->shared_bytes) == 0)
        comm->shared = mmap(NULL, comm->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    if (!comm->shared || comm->shared == MAP_FAILED) {
        none_say("NCCL cannot share memory in /dev/shm: %s", strerror(errno));
        return NULL;
    }
    for (int i = 0; i < ranks; i++) {
        comm->out_end[i] = &comm->out[i];
        comm->in_end[i] = &comm->in[i];
    }
    atomic_store(&comm->shared->boards[rank].process, (int32_t)getpid());
    if (atomic_fetch_add(&comm->shared->joined, 1) + 1 == ranks)
        shm_unlink(comm->name); /* all have it open */
    return comm;
}

bool nccl_is_joined(const struct nccl_comm *comm)
{
    return atomic_load(&comm->shared->joined) >= comm->ranks;
}

static int64_t nccl_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

bool nccl_has_noticed(const struct nccl_comm *comm, int rank)
{
    const struct nccl_notice *last =
        &comm->shared->boards[rank].notices[comm->collectives % NCCL_BOARD];
    return atomic_load_explicit(&last->number, memory_order_acquire) >= comm->collectives;
}

/* Looked for twice a second, among those that this rank waits for: others may end before it. */
bool nccl_lost_peer_locked(struct nccl_comm *comm)
{
    const int64_t now = nccl_now_ns();
    if (comm->error || now - comm->looked_ns < 500000000)
        return comm->error != 0;
    comm->looked_ns = now;
    for (int i = 0; i < comm->ranks; i++) {
        const int32_t process = atomic_load(&comm->shared->boards[i].process);
        const bool awaited = comm->in[i] || comm->out[i] || !nccl_has_noticed(comm, i);
        if (awaited && process > 0 && kill((pid_t)process, 0) != 0 && errno == ESRCH) {
            none_say("NCCL: rank %d of %d waits for rank %d, whose process has ended", comm->rank,
                     comm->ranks, i);
            comm->error = NCCL_REMOTE_ERROR;
        }
    }
    return comm->error != 0;
}

/* ---- what is under way --------------------------------------------------------------------------------- */

void nccl_send_locked(struct nccl_comm *comm, int peer, enum nccl_kind kind, const char *from,
                      size_t bytes, size_t *left)
{
    struct nccl_outgoing *out = calloc(1, sizeof *out);
    if (!out)
        none_missing("NCCL", "there is no memory");
    *out = (struct nccl_outgoing){
        .from = from, .bytes = bytes, .kind = kind, .zero = none_is_untouched_locked(from, bytes)};
    if (!out->zero && bytes <= NCCL_EAGER)
        out->own = malloc(bytes ? bytes : 1);
    if (out->own)
        out->from = memcpy(out->own, from, bytes);
    else if (!out->zero) {
        out->left = left;
        ++*left;
    }
    *comm->out_end[peer] = out;
    comm->out_end[peer] = &out->next;
}

struct nccl_incoming *nccl_receive_locked(struct nccl_comm *comm, int peer, enum nccl_kind kind,
                                          char *to, size_t bytes, size_t *left)
{
    struct nccl_incoming *in = calloc(1, sizeof *in);
    if (!in)
        none_missing("NCCL", "there is no memory");
    *in =
        (struct nccl_incoming){.to = to, .bytes = bytes, .kind = kind, .zero = true, .left = left};
    ++*left;
    *comm->in_end[peer] = in;
    comm->in_end[peer] = &in->next;
    return in;
}

static bool nccl_put_part(struct nccl_comm *comm, int peer)
{
    struct nccl_outgoing *out = comm->out[peer];
    struct nccl_box *box = nccl_box_of(comm, comm->rank, peer);
    const uint64_t put = atomic_load_explicit(&box->put, memory_order_relaxed);
    if (!out || put - atomic_load_explicit(&box->taken, memory_order_acquire) == NCCL_SLOTS)
        return false;
    struct nccl_slot *slot = &box->slots[put % NCCL_SLOTS];
    const size_t left = out->bytes - out->moved;
    slot->total = out->bytes;
    slot->at = out->moved;
    slot->kind = out->kind;
    slot->zero = out->zero;
    slot->bytes = out->zero || left < NCCL_SLOT ? left : NCCL_SLOT;
    if (!out->zero)
        memcpy(slot->data, out->from + out->moved, (size_t)slot->bytes);
    out->moved += (size_t)slot->bytes;
    atomic_store_explicit(&box->put, put + 1, memory_order_release);
    if (out->moved < out->bytes)
        return true;
    comm->out[peer] = out->next;
    if (!out->next)
        comm->out_end[peer] = &comm->out[peer];
    if (out->left)
        --*out->left;
    free(out->own);
    free(out);
    return true;
}

static void nccl_check_part(const struct nccl_comm *comm, int peer, const struct nccl_incoming *in,
                            const struct nccl_slot *slot)
{
    if (slot->at == 0 && (slot->total != in->bytes || slot->kind != in->kind))
        none_say(
            "NCCL: rank %d receives %s of %zu bytes from rank %d, which sends %s of %zu bytes; "
            "on a GPU that hangs or spoils memory, here the run goes on",
            comm->rank, nccl_kind_words(in->kind), in->bytes, peer, nccl_kind_words(slot->kind),
            (size_t)slot->total);
}

static void take_bytes(struct nccl_incoming *in, const struct nccl_slot *slot)
{
    const size_t room = in->moved < in->bytes ? in->bytes - in->moved : 0;
    const size_t kept = slot->bytes < room ? (size_t)slot->bytes : room;
    if (slot->zero)
        none_clear_locked(in->to + in->moved, in->kind == NCCL_MESSAGE ? kept : 0);
    else
        memcpy(in->to + in->moved, slot->data, kept);
    in->zero = in->zero && slot->zero;
    in->moved += kept;
}

static bool nccl_take_part(struct nccl_comm *comm, int peer)
{
    struct nccl_incoming *in = comm->in[peer];
    struct nccl_box *box = nccl_box_of(comm, peer, comm->rank);
    const uint64_t taken = atomic_load_explicit(&box->taken, memory_order_relaxed);
    if (!in || atomic_load_explicit(&box->put, memory_order_acquire) == taken)
        return false;
    const struct nccl_slot *slot = &box->slots[taken % NCCL_SLOTS];
    nccl_check_part(comm, peer, in, slot);
    take_bytes(in, slot);
    const bool done = slot->at + slot->bytes == slot->total;
    atomic_store_explicit(&box->taken, taken + 1, memory_order_release);
    if (!done)
        return true;
    comm->in[peer] = in->next;
    if (!in->next)
        comm->in_end[peer] = &comm->in[peer];
    --*in->left;
    if (in->kind == NCCL_MESSAGE)
        free(in);
    return true;
}

void nccl_move_locked(struct nccl_comm *comm)
{
    for (int peer = 0; peer < comm->ranks; peer++) {
        while (nccl_put_part(comm, peer))
            ;
        while (nccl_take_part(comm, peer))
            ;
    }
}

void nccl_drop_locked(struct nccl_comm *comm)
{
    comm->ended = true;
    for (int peer = 0; peer < comm->ranks; peer++) {
        for (struct nccl_outgoing *at = comm->out[peer], *next; at; at = next) {
            next = at->next;
            free(at->own);
            free(at);
        }
        comm->out[peer] = NULL;
        comm->out_end[peer] = &comm->out[peer];
        comm->in[peer] = NULL; /* of calls, which free them */
        comm->in_end[peer] = &comm->in[peer];
    }
}
