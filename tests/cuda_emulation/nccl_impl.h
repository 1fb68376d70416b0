/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_impl.h - emulated NCCL: not a GPU. A communicator and a call, for nccl.c (the functions of nccl.h), nccl_make.c (communicators are made),
 * nccl_group.c (how they get into
 * their streams) and nccl_kernel.c (their work in a stream).
 */
#ifndef SWSIM_NCCL_IMPL_H
#define SWSIM_NCCL_IMPL_H

#include "emulation.h"
#include "gpu/device/numbers.h"
#include "nccl_link.h"

#include <nccl.h>

enum kind { MESSAGES = 1, ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST };

struct ncclComm {
    int rank, ranks, gpu;
    struct link link;
    struct point *last; /* behind its operations; emulation.lock */
    int running;        /* running operations; emulation.lock */
    atomic_bool abort;
    _Atomic ncclResult_t state;
    atomic_int asking;      /* threads that are in ncclCommGetAsyncError */
    atomic_int calling;     /* calls under way in another function but those that end it, ... */
    _Atomic(void *) caller; /* ... all of this thread; NULL: none */
    void *flag;        /* memory that the GPU sees, as NCCL's abort flag; freed behind all work */
    atomic_bool gone;  /* destroyed or aborted: the handle must not be used */
    bool finalized;    /* it has no work from then on */
    bool free_running; /* it does not block */
    bool is_open;      /* the link */
    bool has_thread;   /* that does a call; its user's thread joins it */
    pthread_t thread;
    uint32_t luck;
    int splits, shrinks;     /* made of it so far */
    struct ncclComm *parent; /* that it divides; NULL */
    char id[sizeof(ncclUniqueId)];
    struct ncclComm *next; /* in the list of those that a group aborts, or that have ended */
};

/* A collective, or the messages of a group: the work of one kernel. */
struct call {
    struct call *next;
    struct ncclComm *comm;
    enum kind kind;
    int root;
    enum number number; /* of sums */
    const void *send;
    void *recv;
    size_t bytes; /* that a rank sends; REDUCE_SCATTER: receives */
    size_t count; /* of the messages */
    struct transfer messages[];
};

extern _Atomic(const char *) nccl_last_error; /* a literal */
/* nccl.c: an error and its words, for ncclGetLastError; the result. */
ncclResult_t nccl_wrong(ncclResult_t result, const char *what);
/* nccl.c: a call of a thread begins and ends: no other thread is in one. */
void nccl_enter(struct ncclComm *comm, const char *function);
void nccl_leave(struct ncclComm *comm);
/* nccl.c: a call that is under way comes to its end; so does the communicator. */
void nccl_join(struct ncclComm *comm);
void nccl_end_comm(struct ncclComm *comm);
/* nccl.c: the wait for other ranks is over: `arg` is the communicator. */
bool nccl_is_ended(void *arg);
ncclResult_t nccl_result_of(enum link_end end);

/* nccl_group.c: a collective, or (call NULL) a message, of the open group, else of one of its own. */
ncclResult_t nccl_group_add(struct ncclComm *comm, cudaStream_t stream, const struct call *call,
                            const struct transfer *message);
/* A call is refused, and with it the group it is in; the result. */
ncclResult_t nccl_refuse(ncclResult_t result);
bool nccl_in_group(void);
ncclResult_t nccl_check_usable(const struct ncclComm *comm);
/* The communicator is aborted at the end of the group. */
void nccl_group_abort(struct ncclComm *comm);

/* nccl_make.c: the communicators that the thread's group makes; `result` is not success: none of them. */
ncclResult_t nccl_make_all(ncclResult_t result);

/* nccl_kernel.c: the work of a struct call. */
cudaError_t nccl_run_call(struct CUstream_st *stream, void *payload);

#endif
