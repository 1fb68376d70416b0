/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_link.h - emulated NCCL: not a GPU. The meeting of a communicator's ranks, and the transfer of bytes.
 *
 * They meet in a file in shared memory named by the unique id, as processes or threads. Each
 * holds a lock on its own byte of the file as long as it lives: the kernel releases the locks of the dead. For
 * every ordered pair of ranks there is a channel of one chunk: a send ends when its last chunk has been
 * taken, so nothing is eager.
 */
#ifndef SWSIM_NCCL_LINK_H
#define SWSIM_NCCL_LINK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LINK_MAX_RANKS = 16, LINK_CHUNK = 65536, LINK_MAX_NAME = 64 };

struct link {
    int rank, ranks, fd;
    struct shared *shared;
};

/* Lets the caller end a wait. */
struct patience {
    bool (*ended)(void *arg); /* true: give up */
    void *arg;
    int64_t asked_ns; /* when the peers' locks were last checked */
};

enum link_end {
    LINK_DONE,
    LINK_ENDED,     /* by `ended` */
    LINK_DEAD,      /* a peer has died, or left */
    LINK_DUPLICATE, /* two ranks on one GPU of one host */
    LINK_UNUSABLE   /* no shared memory, or a rank that exists already */
};

/* Waits until all ranks have arrived. `host` and `gpu` are the place of this one. */
enum link_end link_open(const char *name, int rank, int ranks, uint64_t host, int gpu,
                        struct patience *patience, struct link *out);
void link_close(struct link *link);

/* Before the first message to or from a peer both hosts must have asked for it; with peer -1: before the first
   collective, all. A call requests all its connections before it waits for the first. */
void link_ask(struct link *link, int peer, bool send);
enum link_end link_connect(struct link *link, int peer, bool send, struct patience *patience);

/* One message of an exchange. `kind` and bytes must be equal on both sides: otherwise it never ends. */
struct transfer {
    bool send, started, done;
    int peer;
    uint64_t kind;
    char *data;
    size_t bytes, moved;
};

/* All of them at once; those of a pair of ranks and a direction in their order. */
enum link_end link_exchange(struct link *link, struct transfer *transfers, size_t count,
                            struct patience *patience);

#endif
