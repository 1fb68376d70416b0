/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl.h - NCCL between the processes of a machine, and within one: communicators, and what is under way in them.
 *
 * The ranks of a communicator share a file of memory that the unique id names, with a box for each ordered pair of ranks
 * and a notice board for each rank. Its operations come in the order of their launches, whatever their streams. Each
 * collective begins with a notice of what the rank calls: where the notices differ, this is told on stderr, no byte is
 * moved, and the run goes on, so that the recording has what came behind. A message that differs in bytes is told, too,
 * and cut off. A message of up to NCCL_EAGER bytes is complete when it has been put aside, so programs that
 * would hang on GPUs come to their end here, too; verify sees the hang in the recording.
 */
#ifndef SWSIM_NONE_NCCL_H
#define SWSIM_NONE_NCCL_H

#include "runtime.h"

#include <stdatomic.h>

enum { NCCL_SLOT = 126976, NCCL_SLOTS = 2, NCCL_BOARD = 4, NCCL_MOST_RANKS = 256 };
#define NCCL_EAGER ((size_t)64 << 20)

enum nccl_result {
    NCCL_OK,
    NCCL_CUDA_ERROR,
    NCCL_SYSTEM_ERROR,
    NCCL_INTERNAL_ERROR,
    NCCL_INVALID_ARGUMENT,
    NCCL_INVALID_USAGE,
    NCCL_REMOTE_ERROR,
    NCCL_IN_PROGRESS
};

/*    NAME, in words */
#define NCCL_KIND_LIST(X)                                                                          \
    X(MESSAGE, "a message")                                                                        \
    X(ALL_REDUCE, "ncclAllReduce")                                                                 \
    X(BROADCAST, "ncclBroadcast")                                                                  \
    X(REDUCE, "ncclReduce")                                                                        \
    X(ALL_GATHER, "ncclAllGather")                                                                 \
    X(REDUCE_SCATTER, "ncclReduceScatter")                                                         \
    X(ALL_TO_ALL, "ncclAlltoAll")                                                                  \
    X(GATHER, "ncclGather")                                                                        \
    X(SCATTER, "ncclScatter")
enum nccl_kind {
#define X(name, words) NCCL_##name,
    NCCL_KIND_LIST(X)
#undef X
};

/* A part of a message. */
struct nccl_slot {
    uint64_t total, at, bytes; /* of the message; of this part */
    uint32_t kind, zero;       /* zero: the part's bytes are 0, and not here */
    char data[NCCL_SLOT];
};
struct nccl_box {
    _Atomic uint64_t put, taken; /* slots so far */
    char pad[112];
    struct nccl_slot slots[NCCL_SLOTS];
};

/* What a rank calls as its n-th collective. */
struct nccl_notice {
    _Atomic uint64_t number; /* n */
    uint64_t count;
    int32_t kind, type, operation, root;
};
struct nccl_board {
    struct nccl_notice notices[NCCL_BOARD];
    _Atomic uint64_t
        round; /* of divisions: 2 * n - 1: its color is there; 2 * n: it has read the others' */
    int32_t color, key;
    _Atomic int32_t process;
    char pad[64];
};
struct nccl_shared {
    _Atomic int32_t joined;
    char pad[124];
    struct nccl_board boards[]; /* then the boxes: of rank i to rank j at i * ranks + j */
};

/* What is to be put into a box. */
struct nccl_outgoing {
    struct nccl_outgoing *next;
    const char *from;
    char *own; /* put aside; NULL: it is the program's memory */
    size_t bytes, moved;
    uint32_t kind;
    bool zero; /* all of it is 0, and not in `from` */
    size_t
        *left; /* of the operation: how many of its transfers are not done; NULL: it is put aside */
};

struct nccl_incoming {
    struct nccl_incoming *next;
    char *to;
    size_t bytes, moved;
    uint32_t kind;
    bool zero; /* what came so far is 0, and has not been written */
    size_t *left;
};

struct nccl_comm {
    struct nccl_comm *next; /* in the list of all */
    int rank, ranks, device;
    char name[64];
    struct nccl_shared *shared;
    size_t shared_bytes;
    struct nccl_outgoing **out, **out_end[NCCL_MOST_RANKS];
    struct nccl_incoming **in, **in_end[NCCL_MOST_RANKS];
    uint64_t launched, done; /* calls */
    uint64_t collectives;    /* notices put */
    uint64_t divisions, shrinks;
    int64_t looked_ns; /* for peers that have ended */
    bool ended;        /* aborted, or destroyed */
    int error;
};

/* nccl_comm.c */
/* NULL: no memory. It does not wait for the other ranks. */
struct nccl_comm *nccl_join(const char *name, int ranks, int rank);
bool nccl_is_joined(const struct nccl_comm *comm);
struct nccl_box *nccl_box_of(const struct nccl_comm *comm, int from, int to);
void nccl_send_locked(struct nccl_comm *comm, int peer, enum nccl_kind kind, const char *from,
                      size_t bytes, size_t *left);
struct nccl_incoming *nccl_receive_locked(struct nccl_comm *comm, int peer, enum nccl_kind kind,
                                          char *to, size_t bytes, size_t *left);
/* Moves what can be moved. */
void nccl_move_locked(struct nccl_comm *comm);
/* Nothing more is expected of the communicator. */
void nccl_drop_locked(struct nccl_comm *comm);
bool nccl_lost_peer_locked(struct nccl_comm *comm);
/* True if that rank has called as many collectives as this one. */
bool nccl_has_noticed(const struct nccl_comm *comm, int rank);
const char *nccl_kind_words(unsigned kind);

/* nccl_sums.c: out[i] = the operation over parts[rank][i]; a part that is NULL is 0. */
size_t nccl_type_bytes(int type);
const char *nccl_type_name(int type);
enum { NCCL_SUM, NCCL_PRODUCT, NCCL_MAX, NCCL_MIN, NCCL_AVERAGE, NCCL_FIRST_OWN };
float nccl_half(uint16_t bits); /* float16 */
void nccl_combine(char *out, const char *const *parts, int ranks, size_t count, int type,
                  int operation, const double *factors);

#endif
