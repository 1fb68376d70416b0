/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_load.h - NCCL, found when it is needed: the program does not link against it.
 *
 * Searched, in this order: the file or folder named by the environment variable SWSIM_NCCL (and
 * then nowhere else), the loader's own path, where it was at build time (NCCL_LIBRARY_DIR),
 * CUDA_HOME and /usr/local/cuda, and the nvidia-nccl packages of Python installations (VIRTUAL_ENV,
 * CONDA_PREFIX, HOME/.local, those of the python3 in PATH, /usr/local, /usr). One that is too old, 2.7 is
 * needed, is passed over; graphs need 2.9. Nothing here exists in a build without NCCL's header.
 */
#ifndef SWSIM_NCCL_LOAD_H
#define SWSIM_NCCL_LOAD_H

#ifdef HAVE_NCCL

#include <nccl.h>

#include "base/diag.h"

/* The functions called, each a member of `struct nccl` named without the prefix. */
#define NCCL_FUNCTION_LIST(X)                                                                      \
    X(GetVersion)                                                                                  \
    X(GetUniqueId)                                                                                 \
    X(GetErrorString)                                                                              \
    X(CommInitRank)                                                                                \
    X(CommDestroy)                                                                                 \
    X(CommAbort)                                                                                   \
    X(CommGetAsyncError)                                                                           \
    X(AllReduce)                                                                                   \
    X(AllGather)                                                                                   \
    X(ReduceScatter)                                                                               \
    X(Broadcast)                                                                                   \
    X(Send)                                                                                        \
    X(Recv)                                                                                        \
    X(GroupStart)                                                                                  \
    X(GroupEnd)                                                                                    \
    X(CommCount)                                                                                   \
    X(CommUserRank)                                                                                \
    X(CommCuDevice)

/* Those of later versions, NULL where the library or the header has them not. */
#if NCCL_VERSION_CODE >= 21300
#define NCCL_OPTIONAL_LIST(X) X(GetLastError)
#else
#define NCCL_OPTIONAL_LIST(X)
#endif

/* The first version whose operations can be captured into graphs. */
enum { NCCL_WITH_GRAPHS = 20900 };
/* The first version in which a group of aborts is one call: in others each waits for the communicator's own work. */
enum { NCCL_ABORTS_TOGETHER = 22200 };

struct nccl {
    void *library; /* NULL: not loaded */
    int version;   /* 22809 is 2.28.9 */
#define X(name) __typeof__(nccl##name) *name;
    NCCL_FUNCTION_LIST(X)
    NCCL_OPTIONAL_LIST(X)
#undef X
};

/* Fill `nccl`; STATUS_SYSTEM when no library is found or it lacks a function. */
enum status nccl_load(struct nccl *nccl, struct diag *diag);
void nccl_unload(struct nccl *nccl);
/* As people write it: 22809 is 2.28.9. */
void nccl_show_version(int version, char *out, size_t size);
/* An error in words, with NCCL's sentence about the last one, if it has any; returns `out`. */
const char *nccl_describe(const struct nccl *nccl, ncclResult_t error, char *out, size_t size);

#endif
#endif
