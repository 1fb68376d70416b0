/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work.h - the work of a task or an operation in a real run, and its shares of the device.
 */
#ifndef SWSIM_PLAN_WORK_H
#define SWSIM_PLAN_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORK_LIST(X)                                                                               \
    X(NONE, "")                                                                                    \
    X(COPY, "copy")             /* copy: direction, bytes, [pageable] */                           \
    X(COLLECTIVE, "collective") /* collective: kind, comm, bytes, [sm] */                          \
    X(SEND, "send")             /* send: tag, peer, comm, bytes */                                 \
    X(RECV, "recv")                                                                                \
    X(GEMM, "gemm")     /* gemm: {m, n, k, dtype} */                                               \
    X(GATHER, "gather") /* gather: {rows, dim, dtype} */                                           \
    X(AXPY, "axpy")     /* axpy: elements */                                                       \
    X(SPIN, "spin")     /* spin: time on the device */                                             \
    X(HOST, "host")     /* host: time on the CPU only, nothing is pushed */

enum work_kind {
#define X(name, key) WORK_##name,
    WORK_LIST(X)
#undef X
};

#define DIRECTION_LIST(X) X(H2D, "h2d") X(D2H, "d2h") X(D2D, "d2d")
enum direction {
#define X(name, key) DIRECTION_##name,
    DIRECTION_LIST(X)
#undef X
};

#define COLLECTIVE_LIST(X)                                                                         \
    X(ALL_TO_ALL, "all_to_all")                                                                    \
    X(ALL_REDUCE, "all_reduce")                                                                    \
    X(ALL_GATHER, "all_gather")                                                                    \
    X(REDUCE_SCATTER, "reduce_scatter")                                                            \
    X(BROADCAST, "broadcast")                                                                      \
    X(BARRIER, "barrier")
enum collective_kind {
#define X(name, key) COLLECTIVE_##name,
    COLLECTIVE_LIST(X)
#undef X
};

/* True if it has a root, from which all data go. The others give nothing. */
static inline bool collective_has_root(enum collective_kind kind)
{
    return kind == COLLECTIVE_BROADCAST;
}

#define DTYPE_LIST(X) X(F32, "f32", 4) X(F16, "f16", 2) X(BF16, "bf16", 2) X(F64, "f64", 8)
enum dtype {
#define X(name, key, bytes) DTYPE_##name,
    DTYPE_LIST(X)
#undef X
};

/* Types of the elements of messages and collectives: what NCCL and torch.distributed move. */
#define ELEMENT_LIST(X)                                                                            \
    X(NONE, "none", 1)                                                                             \
    X(BOOL, "bool", 1)                                                                             \
    X(I8, "i8", 1)                                                                                 \
    X(U8, "u8", 1)                                                                                 \
    X(I16, "i16", 2) X(I32, "i32", 4) X(U32, "u32", 4) X(I64, "i64", 8) X(U64, "u64", 8)           \
        X(F8E4M3, "f8e4m3", 1) X(F8E5M2, "f8e5m2", 1) X(F16, "f16", 2) X(BF16, "bf16", 2)          \
            X(F32, "f32", 4) X(F64, "f64", 8)
enum element {
#define X(name, key, bytes) ELEMENT_##name,
    ELEMENT_LIST(X)
#undef X
};
const char *element_key(enum element element);
int64_t element_bytes(enum element element);

struct work {
    enum work_kind kind;
    enum direction direction;        /* COPY */
    bool pageable;                   /* COPY: with pageable memory, may block the host */
    enum collective_kind collective; /* COLLECTIVE */
    int root;                        /* COLLECTIVE, one with a root: a rank; -1: the lowest */
    int comm;                        /* COLLECTIVE, SEND, RECV: index into plan->comms, else -1 */
    int peer;                        /* SEND, RECV: rank */
    const char *tag;                 /* SEND, RECV */
    int64_t bytes;                   /* COPY, COLLECTIVE, SEND, RECV */
    int64_t m, n, k;                 /* GEMM */
    int64_t rows, dim;               /* GATHER */
    int64_t elements;     /* AXPY; COLLECTIVE, SEND, RECV: as `count` says, 0: not given */
    enum element element; /* COLLECTIVE, SEND, RECV */
    enum dtype dtype;     /* GEMM, GATHER */
    int64_t time_ns;      /* SPIN, HOST */
};

/* ---- the shares of the device that work takes ------------------------------------------------ */

/* Resources that all work on a device shares, and the cores of its host. A share is a part of the whole, or of one
   core, in millionths. Shares that are not given are those of machine: {shares: ...} for this kind of work, else
   0, of the cores 1. */
enum { SHARE_WHOLE = 1000 * 1000 };
struct share {
    bool given;
    int millionths;
};
struct shares {
    struct share sm, link, core;
};

/*            NAME        key */
#define SHARED_WORK_LIST(X)                                                                        \
    X(KERNEL, "kernel")         /* launches */                                                     \
    X(COPY, "copy")             /* copies, beside their engine */                                  \
    X(COLLECTIVE, "collective") /* collectives */                                                  \
    X(P2P, "p2p")               /* groups of sends and receives */
enum shared_work {
#define X(name, key) SHARED_WORK_##name,
    SHARED_WORK_LIST(X)
#undef X
        SHARED_WORK_COUNT
};

/* A list of indices into one of the plan's tables. */
struct index_list {
    int *items;
    int *
        ranks; /* host programs: 1 + the rank whose buffer each is, 0: that of the operation; NULL: all 0 */
    size_t count;
};

static inline bool index_list_has(const struct index_list *list, int index)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i] == index)
            return true;
    return false;
}

const char *work_key(enum work_kind kind);
const char *direction_key(enum direction direction);
const char *collective_key(enum collective_kind kind);
const char *dtype_key(enum dtype dtype);
int dtype_bytes(enum dtype dtype);

#endif
