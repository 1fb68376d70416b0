/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_comm_impl.h - a communicator of NCCL, for cuda_comm.c (made and closed), cuda_comm_push.c and cuda_comm_abort.c.
 */
#ifndef SWSIM_CUDA_COMM_IMPL_H
#define SWSIM_CUDA_COMM_IMPL_H

#if defined HAVE_CUDA && defined HAVE_NCCL

#include "cuda_impl.h"
#include "nccl_load.h"

enum {
    ABORT_WAIT_S = 1,
    NCCL_TEXT = 300,
    WARM_UP_PAUSE_NS = 20000,
    NEWS_NS =
        300000000 /* that which made an error of NCCL comes by the rendezvous within this time */
};

struct cuda_comm {
    union {
        struct device_comm base;
        struct cuda_member member;
    };
    struct cuda_comm *next;
    struct cuda_comm *next_aborted; /* among those the abort has taken */
    struct nccl *nccl;
    pthread_mutex_t lock; /* NCCL wants one caller at a time */
    ncclComm_t handle;
    bool adopted;        /* the program's own, which stays but for an abort */
    atomic_bool aborted; /* the handle is gone; set under the world's lock */
    bool locked;         /* by the abort */
    bool aborting;       /* by a thread of its own */
    pthread_t abort_thread;
    char *scratch; /* a number for each member; a barrier sums the first */
};

/* A call within a group may be under way, too. */
static inline bool cuda_comm_passes(ncclResult_t result)
{
    return result == ncclSuccess || result == ncclInProgress;
}

/* The end of a call that may still be under way; with comm->lock, or, with `diag`, while the communicator is made. */
ncclResult_t cuda_comm_await(struct cuda_comm *comm, ncclResult_t result, struct diag *diag);
/* The end of a group whose calls gave `result`. */
ncclResult_t cuda_comm_end_group(struct cuda_comm *comm, ncclResult_t result, struct diag *diag);

#endif
#endif
