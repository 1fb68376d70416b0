/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_link.c - emulated NCCL: not a GPU; see nccl_link.h. */
#include "nccl_link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PAUSE_MIN_NS = 2000, PAUSE_MAX_NS = 200000, LOOK_NS = 2000000, ALL = LINK_MAX_RANKS };

/* One chunk in transit. The sender writes it while posted == taken, the receiver reads it otherwise. */
struct channel {
    _Atomic uint32_t posted, taken;
    uint64_t kind, total; /* of the message */
    size_t bytes;         /* in this chunk */
    char data[LINK_CHUNK];
};

struct member {
    atomic_bool arrived;
    uint64_t host;
    int gpu;
    /* By peer; [ALL]: collectives. */
    atomic_bool sends[LINK_MAX_RANKS + 1], receives[LINK_MAX_RANKS + 1];
};

struct shared {
    struct member members[LINK_MAX_RANKS];
    struct channel channels[]; /* from * ranks + to */
};

static size_t shared_bytes(int ranks)
{
    return sizeof(struct shared) + (size_t)(ranks * ranks) * sizeof(struct channel);
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void pause_longer(long *ns)
{
    nanosleep(&(struct timespec){.tv_nsec = *ns}, NULL);
    *ns = 2 * *ns < PAUSE_MAX_NS ? 2 * *ns : PAUSE_MAX_NS;
}

/* Is the byte of that rank locked? A rank cannot see its own lock, and need not. */
static bool is_alive(const struct link *link, int rank)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};
    return rank == link->rank || fcntl(link->fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

/* A reason to stop waiting for `peer` (ALL: for any rank), or LINK_DONE. */
static enum link_end look(const struct link *link, int peer, struct patience *patience)
{
    if (patience->ended(patience->arg))
        return LINK_ENDED;
    int64_t time_ns = now_ns();
    if (time_ns - patience->asked_ns < LOOK_NS)
        return LINK_DONE;
    patience->asked_ns = time_ns;
    for (int rank = 0; rank < link->ranks; rank++)
        if ((peer == ALL || peer == rank) && atomic_load(&link->shared->members[rank].arrived) &&
            !is_alive(link, rank))
            return LINK_DEAD;
    return LINK_DONE;
}

static enum link_end await_flag(const struct link *link, atomic_bool *flag, int peer,
                                struct patience *patience)
{
    enum link_end end = LINK_DONE;
    for (long pause_ns = PAUSE_MIN_NS; !atomic_load(flag) && end == LINK_DONE;) {
        end = look(link, peer, patience);
        pause_longer(&pause_ns);
    }
    return atomic_load(flag) ? LINK_DONE : end;
}

/* ---- meeting ------------------------------------------------------------------------------------ */

static bool attach(const char *name, struct link *link)
{
    struct flock own = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = link->rank, .l_len = 1};
    link->fd = shm_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (link->fd < 0)
        return false;
    size_t bytes = shared_bytes(link->ranks);
    void *at = MAP_FAILED;
    if (fcntl(link->fd, F_OFD_SETLK, &own) == 0 && ftruncate(link->fd, (off_t)bytes) == 0)
        at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, link->fd, 0);
    if (at == MAP_FAILED) {
        close(link->fd);
        return false;
    }
    link->shared = at;
    return true;
}

static bool has_duplicate(const struct link *link)
{
    const struct member *members = link->shared->members;
    for (int a = 0; a < link->ranks; a++)
        for (int b = 0; b < a; b++)
            if (members[a].host == members[b].host && members[a].gpu == members[b].gpu)
                return true;
    return false;
}

enum link_end link_open(const char *name, int rank, int ranks, uint64_t host, int gpu,
                        struct patience *patience, struct link *out)
{
    struct link link = {.rank = rank, .ranks = ranks, .fd = -1};
    if (!attach(name, &link))
        return LINK_UNUSABLE;
    struct member *me = &link.shared->members[rank];
    me->host = host;
    me->gpu = gpu;
    atomic_store(&me->arrived, true);
    enum link_end end = LINK_DONE;
    for (int i = 0; i < ranks && end == LINK_DONE; i++)
        end = await_flag(&link, &link.shared->members[i].arrived, ALL, patience);
    shm_unlink(name); /* all ranks have it open, or it is unusable */
    if (end == LINK_DONE && has_duplicate(&link))
        end = LINK_DUPLICATE;
    if (end == LINK_DONE)
        *out = link;
    else
        link_close(&link);
    return end;
}

void link_close(struct link *link)
{
    if (link->shared)
        munmap(link->shared, shared_bytes(link->ranks));
    if (link->fd >= 0)
        close(link->fd);
    *link = (struct link){.fd = -1};
}

void link_ask(struct link *link, int peer, bool send)
{
    struct member *me = &link->shared->members[link->rank];
    int slot = peer < 0 ? ALL : peer;
    atomic_store(send ? &me->sends[slot] : &me->receives[slot], true);
}

enum link_end link_connect(struct link *link, int peer, bool send, struct patience *patience)
{
    struct member *members = link->shared->members;
    if (peer >= 0)
        return await_flag(
            link, send ? &members[peer].receives[link->rank] : &members[peer].sends[link->rank],
            peer, patience);
    enum link_end end = LINK_DONE;
    for (int rank = 0; rank < link->ranks && end == LINK_DONE; rank++)
        end = await_flag(link, &members[rank].sends[ALL], rank, patience);
    return end;
}

/* ---- messages ----------------------------------------------------------------------------------- */

static bool step_send(struct channel *channel, struct transfer *transfer)
{
    if (atomic_load(&channel->posted) != atomic_load(&channel->taken))
        return false;
    if (transfer->started && transfer->moved == transfer->bytes)
        return transfer->done = true;
    size_t left = transfer->bytes - transfer->moved;
    channel->kind = transfer->kind;
    channel->total = transfer->bytes;
    channel->bytes = left < LINK_CHUNK ? left : LINK_CHUNK;
    if (left > 0)
        memcpy(channel->data, transfer->data + transfer->moved, channel->bytes);
    transfer->moved += channel->bytes;
    transfer->started = true;
    atomic_fetch_add(&channel->posted, 1);
    return true;
}

/* A chunk that does not fit is never taken. */
static bool step_receive(struct channel *channel, struct transfer *transfer)
{
    if (atomic_load(&channel->posted) == atomic_load(&channel->taken) ||
        channel->kind != transfer->kind || channel->total != transfer->bytes)
        return false;
    if (channel->bytes > 0)
        memcpy(transfer->data + transfer->moved, channel->data, channel->bytes);
    transfer->moved += channel->bytes;
    transfer->done = transfer->moved == transfer->bytes;
    atomic_fetch_add(&channel->taken, 1);
    return true;
}

/* One round over all transfers: true if one of them moved. */
static bool step_all(struct link *link, struct transfer *transfers, size_t count, size_t *left)
{
    bool busy[2][LINK_MAX_RANKS] = {{false}}, moved = false;
    *left = 0;
    for (size_t i = 0; i < count; i++) {
        struct transfer *at = &transfers[i];
        if (at->done || busy[at->send][at->peer]) {
            *left += !at->done;
            continue;
        }
        busy[at->send][at->peer] = true;
        int from = at->send ? link->rank : at->peer, to = at->send ? at->peer : link->rank;
        struct channel *channel = &link->shared->channels[from * link->ranks + to];
        moved = (at->send ? step_send(channel, at) : step_receive(channel, at)) || moved;
        *left += !at->done;
    }
    return moved;
}

enum link_end link_exchange(struct link *link, struct transfer *transfers, size_t count,
                            struct patience *patience)
{
    size_t left = count;
    long pause_ns = PAUSE_MIN_NS;
    while (left > 0) {
        if (step_all(link, transfers, count, &left)) {
            pause_ns = PAUSE_MIN_NS;
            continue;
        }
        enum link_end end = LINK_DONE;
        for (size_t i = 0; i < count && end == LINK_DONE; i++)
            if (!transfers[i].done)
                end = look(link, transfers[i].peer, patience);
        /* the last that a peer did before it left may be there by now */
        if (end != LINK_DONE && !(end == LINK_DEAD && step_all(link, transfers, count, &left)))
            return end;
        pause_longer(&pause_ns);
    }
    return LINK_DONE;
}
