/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl.c - NCCL's functions, as programs find them first. See cuda.c.
 *
 * A communicator is known to all ranks by the id that it was made with, of which a part is kept; one that is made by
 * dividing another has an id made of that one's, of how often it was divided before, and of the color.
 */
#include <stdatomic.h>
#include <string.h>

#include "calls.h"
#include "doubt.h"

#undef CALL
#undef ON
enum { MAX_COMMS = 4096, MAX_PENDING = 256 };

struct unique_id {
    char bytes[128];
};

struct identity {
    word low, high;
};

/* Of the live communicators; a place whose handle is NULL is free. */
static struct nccl_place {
    _Atomic(handle) comm;
    struct identity id;
    atomic_uint splits, shrinks;
} places[MAX_COMMS];

static struct nccl_place *nccl_find_place(handle comm)
{
    for (size_t i = 0; i < MAX_COMMS; i++)
        if (atomic_load_explicit(&places[i].comm, memory_order_acquire) == comm)
            return &places[i];
    return NULL;
}

static word nccl_mix(word hash, word value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
    return hash ^ hash >> 29;
}

static struct identity identity_of(const struct unique_id *id)
{
    struct identity out = {1, 2};
    for (size_t i = 0; i < sizeof id->bytes; i += 8) {
        word part;
        memcpy(&part, id->bytes + i, sizeof part);
        out.low = nccl_mix(out.low, part);
        out.high = nccl_mix(out.high + i, part);
    }
    return out;
}

static void nccl_keep(handle comm, struct identity id)
{
    for (size_t i = 0; i < MAX_COMMS; i++) {
        handle none = NULL;
        if (!atomic_compare_exchange_strong(&places[i].comm, &none, comm))
            continue;
        places[i].id = id;
        atomic_store(&places[i].splits, 0);
        atomic_store(&places[i].shrinks, 0);
        return;
    }
}

/* ---- communicators ---------------------------------------------------------------------------- */

static void end_comm(const struct tape_call *call, int result, handle comm, struct identity id,
                     int rank, int size)
{
    if (result != 0 && result != 7) { /* ncclInProgress: the call is not blocking */
        tape_drop(call);
        return;
    }
    doubt_know_all();
    if (call->outer)
        nccl_keep(comm, id);
    tape_end(call, RECORDING_COMM, WORDS(WORD_OF(comm), id.low, id.high, (word)rank, (word)size));
}

#define COMM_INIT(name, PARAMS, ARGS, id)                                                          \
    AROUND(name, LEGACY, PARAMS, ARGS, COMM, NOTHING, end_comm(&call, result, *out, id, rank, size))
COMM_INIT(ncclCommInitRank, (handle * out, int size, struct unique_id id, int rank),
          (out, size, id, rank), identity_of(&id))
COMM_INIT(ncclCommInitRankConfig,
          (handle * out, int size, struct unique_id id, int rank, void *config),
          (out, size, id, rank, config), identity_of(&id))
/* Several ids, the same ones in all ranks. */
COMM_INIT(ncclCommInitRankScalable,
          (handle * out, int size, int rank, int count, struct unique_id *ids, void *config),
          (out, size, rank, count, ids, config),
          count > 0 ? identity_of(&ids[0]) : (struct identity){0})

/* All ranks of one process. */
int ncclCommInitAll(handle *out, int count, const int *devices);
int ncclCommInitAll(handle *out, int count, const int *devices)
{
    REAL(ncclCommInitAll, (handle *, int, const int *))
    const struct tape_call call = tape_begin(RECORDING_COMM);
    const int result = real(out, count, devices);
    if (result == 0 && call.outer) {
        const struct identity id = {tape_number(), WORD_OF(out) ^ (word)call.at_ns};
        for (int i = 0; i < count; i++) {
            tape_put(RECORDING_DEVICE, 1, &(word){(word)(devices ? devices[i] : i)});
            tape_put(RECORDING_COMM, WORDS(WORD_OF(out[i]), id.low, id.high, (word)i, (word)count));
            nccl_keep(out[i], id);
        }
    }
    int device = 0;
    static int (*get)(int *);
    tape_drop(&call);
    if (call.outer && real_find(&get, "cudaGetDevice") && get(&device) == 0)
        tape_put(RECORDING_DEVICE, 1, &(word){(word)device});
    return result;
}

/* ---- communicators made of others --------------------------------------------------------------- */

static int nccl_ask(handle comm, const char *name)
{
    int (*real)(handle, int *) = NULL, out = 0;
    return real_find(&real, name) && real(comm, &out) == 0 ? out : 0;
}

/* NCCL writes the handle when the communicator is made: at the end of a group, or when the one that it is made of is no
   longer in progress. */
static struct nccl_pending {
    _Atomic(handle *) out; /* where; NULL: a free place */
    handle parent;
    uint64_t thread;
    struct identity id;
} pending[MAX_PENDING];

static bool nccl_remember(handle *out, handle parent, struct identity id)
{
    for (size_t i = 0; i < MAX_PENDING; i++) {
        handle *none = NULL;
        if (!atomic_compare_exchange_strong(&pending[i].out, &none, out))
            continue;
        pending[i].parent = parent;
        pending[i].thread = tape_here().thread;
        pending[i].id = id;
        return true;
    }
    return false;
}

static void nccl_put_comm(handle comm, struct identity id)
{
    nccl_keep(comm, id);
    tape_put(RECORDING_COMM, WORDS(WORD_OF(comm), id.low, id.high,
                                   (word)(unsigned)nccl_ask(comm, "ncclCommUserRank"),
                                   (word)(unsigned)nccl_ask(comm, "ncclCommCount")));
}

static __thread int groups __attribute__((tls_model("initial-exec"))); /* that are open */

/* `parent` NULL: those of this thread. */
static void nccl_settle(handle parent)
{
    for (size_t i = 0; i < MAX_PENDING; i++) {
        handle *out = atomic_load(&pending[i].out);
        if (!out ||
            (parent ? pending[i].parent != parent : pending[i].thread != tape_here().thread))
            continue;
        if (*out)
            nccl_put_comm(*out, pending[i].id);
        atomic_store(&pending[i].out, NULL);
    }
}

/* A rank that gets none, as with NCCL_SPLIT_NOCOLOR, has NULL then. */
static void end_made_of(const struct tape_call *call, int result, handle parent, handle *out,
                        struct identity id, bool is_known, const char *name)
{
    if ((result != 0 && result != 7) || !call->outer) {
        tape_drop(call);
        return;
    }
    if (!is_known)
        calls_note_unmodelled(call, name);
    else if (*out && result == 0)
        nccl_put_comm(*out, id);
    else if (!nccl_remember(out, parent, id))
        calls_note_unmodelled(call, name);
    tape_drop(call);
}

int ncclCommSplit(handle comm, int color, int key, handle *out, void *config);
int ncclCommSplit(handle comm, int color, int key, handle *out, void *config)
{
    REAL(ncclCommSplit, (handle, int, int, handle *, void *))
    const struct tape_call call = tape_begin(RECORDING_COMM);
    struct nccl_place *place = comm ? nccl_find_place(comm) : NULL;
    struct identity id = place ? place->id : (struct identity){0};
    id.low = nccl_mix(id.low, place ? atomic_fetch_add(&place->splits, 1) + 1 : 0);
    id.high = nccl_mix(id.high, (word)(unsigned)color);
    const int result = real(comm, color, key, out, config);
    if (color < 0) /* NCCL_SPLIT_NOCOLOR */
        tape_drop(&call);
    else
        end_made_of(&call, result, comm, out, id, place != NULL,
                    "ncclCommSplit of a communicator that was not seen");
    return result;
}

/* Only the ranks that remain call it, with the same list. */
int ncclCommShrink(handle comm, int *excluded, int count, handle *out, void *config, int flags);
int ncclCommShrink(handle comm, int *excluded, int count, handle *out, void *config, int flags)
{
    enum { SHRINK_ABORT = 1 };
    REAL(ncclCommShrink, (handle, int *, int, handle *, void *, int))
    const struct tape_call call = tape_begin(RECORDING_COMM);
    struct nccl_place *place = comm ? nccl_find_place(comm) : NULL;
    struct identity id = place ? place->id : (struct identity){0};
    id.low = nccl_mix(id.low, place ? ~(word)atomic_fetch_add(&place->shrinks, 1) : 0);
    for (int i = 0; i < count; i++)
        id.high = nccl_mix(id.high, (word)(unsigned)excluded[i]);
    const int result = real(comm, excluded, count, out, config, flags);
    if (result == 0 && (flags & SHRINK_ABORT))
        calls_note_unmodelled(&call, "ncclCommShrink that ends operations");
    end_made_of(&call, result, comm, out, id, place != NULL,
                "ncclCommShrink of a communicator that was not seen");
    return result;
}

AROUND(ncclCommGetAsyncError, LEGACY, (handle comm, int *out), (comm, out), COMM, NOTHING,
       if (result == 0 && *out == 0 && call.outer && comm) nccl_settle(comm);
       tape_drop(&call))

#define COMM_END(name)                                                                             \
    int name(handle comm);                                                                         \
    int name(handle comm)                                                                          \
    {                                                                                              \
        REAL(name, (handle))                                                                       \
        const struct tape_call call = tape_begin(RECORDING_COMM_END);                              \
        struct nccl_place *place = call.outer && comm ? nccl_find_place(comm) : NULL;              \
        if (place)                                                                                 \
            atomic_store(&place->comm, NULL);                                                      \
        const int result = real(comm);                                                             \
        doubt_know_all();                                                                          \
        if (result == 0)                                                                           \
            tape_end(&call, RECORDING_COMM_END, WORDS(WORD_OF(comm)));                             \
        else                                                                                       \
            tape_drop(&call);                                                                      \
        return result;                                                                             \
    }
COMM_END(ncclCommDestroy)
COMM_END(ncclCommAbort)

/* ---- memory ----------------------------------------------------------------------------------- */

#define MEMORY(name, PARAMS, ARGS, KIND, ...)                                                      \
    AROUND(name, LEGACY, PARAMS, ARGS, KIND, NOTHING,                                              \
           if (result == 0) tape_end(&call, RECORDING_##KIND, WORDS(__VA_ARGS__));                 \
           else tape_drop(&call))
MEMORY(ncclMemAlloc, (handle * out, size_t bytes), (out, bytes), ALLOC, WORD_OF(*out), bytes,
       RECORDING_MEMORY_DEVICE)
MEMORY(ncclMemFree, (handle address), (address), FREE, WORD_OF(address), RECORDING_MEMORY_DEVICE)

/* ---- operations ------------------------------------------------------------------------------- */

/* ncclInvalidArgument, ncclInvalidUsage. After another error, as that another rank is gone, the operation may stand on
   its stream: the program did call it. */
static bool was_refused(int result)
{
    return result == 4 || result == 5;
}

#define CALL(name, PARAMS, ARGS, KIND, ...)                                                        \
    int name PARAMS;                                                                               \
    int name PARAMS                                                                                \
    {                                                                                              \
        REAL(name, PARAMS)                                                                         \
        const struct tape_call call = tape_begin(RECORDING_##KIND);                                \
        struct recording_item *item = tape_open(&call, RECORDING_##KIND, WORDS(__VA_ARGS__));      \
        const int result = real ARGS;                                                              \
        tape_close(&call, item, !was_refused(result));                                             \
        return result;                                                                             \
    }
#define ON(stream) ((stream) ? WORD_OF(stream) : 1)
#define COLLECTIVE(kind, from, to, count, type, operation, root)                                   \
    WORD_OF(comm), ON(stream), RECORDING_##kind, WORD_OF(from), WORD_OF(to), count, (word)(type),  \
        (word)(operation), (word)(root)

CALL(ncclAllReduce,
     (const void *from, void *to, size_t count, int type, int op, handle comm, handle stream),
     (from, to, count, type, op, comm, stream), COLLECTIVE,
     COLLECTIVE(ALL_REDUCE, from, to, count, type, op, 0))
CALL(ncclReduceScatter,
     (const void *from, void *to, size_t count, int type, int op, handle comm, handle stream),
     (from, to, count, type, op, comm, stream), COLLECTIVE,
     COLLECTIVE(REDUCE_SCATTER, from, to, count, type, op, 0))
CALL(ncclReduce,
     (const void *from, void *to, size_t count, int type, int op, int root, handle comm,
      handle stream),
     (from, to, count, type, op, root, comm, stream), COLLECTIVE,
     COLLECTIVE(REDUCE, from, to, count, type, op, root))
CALL(ncclAllGather,
     (const void *from, void *to, size_t count, int type, handle comm, handle stream),
     (from, to, count, type, comm, stream), COLLECTIVE,
     COLLECTIVE(ALL_GATHER, from, to, count, type, 0, 0))
CALL(ncclBroadcast,
     (const void *from, void *to, size_t count, int type, int root, handle comm, handle stream),
     (from, to, count, type, root, comm, stream), COLLECTIVE,
     COLLECTIVE(BROADCAST, from, to, count, type, 0, root))
CALL(ncclBcast, (void *at, size_t count, int type, int root, handle comm, handle stream),
     (at, count, type, root, comm, stream), COLLECTIVE,
     COLLECTIVE(BROADCAST, at, at, count, type, 0, root))
CALL(ncclAlltoAll, (const void *from, void *to, size_t count, int type, handle comm, handle stream),
     (from, to, count, type, comm, stream), COLLECTIVE,
     COLLECTIVE(ALL_TO_ALL, from, to, count, type, 0, 0))
CALL(ncclGather,
     (const void *from, void *to, size_t count, int type, int root, handle comm, handle stream),
     (from, to, count, type, root, comm, stream), COLLECTIVE,
     COLLECTIVE(GATHER, from, to, count, type, 0, root))
CALL(ncclScatter,
     (const void *from, void *to, size_t count, int type, int root, handle comm, handle stream),
     (from, to, count, type, root, comm, stream), COLLECTIVE,
     COLLECTIVE(SCATTER, from, to, count, type, 0, root))
CALL(ncclSend, (const void *from, size_t count, int type, int peer, handle comm, handle stream),
     (from, count, type, peer, comm, stream), MESSAGE, WORD_OF(comm), ON(stream), 1, WORD_OF(from),
     count, (word)type, (word)peer)
CALL(ncclRecv, (void *to, size_t count, int type, int peer, handle comm, handle stream),
     (to, count, type, peer, comm, stream), MESSAGE, WORD_OF(comm), ON(stream), 0, WORD_OF(to),
     count, (word)type, (word)peer)
int ncclGroupStart(void);
int ncclGroupStart(void)
{
    REAL(ncclGroupStart, (void))
    const struct tape_call call = tape_begin(RECORDING_GROUP);
    struct recording_item *item = tape_open(&call, RECORDING_GROUP, 0, &(word){0});
    const int result = real();
    groups += call.outer && result == 0;
    tape_close(&call, item, !was_refused(result));
    return result;
}

static void nccl_end_group(const struct tape_call *call, struct recording_item *item, int result)
{
    groups -= call->outer && groups > 0;
    if (result == 0 && call->outer && groups == 0)
        nccl_settle(NULL);
    tape_close(call, item, !was_refused(result));
}

int ncclGroupEnd(void);
int ncclGroupEnd(void)
{
    REAL(ncclGroupEnd, (void))
    const struct tape_call call = tape_begin(RECORDING_GROUP_END);
    struct recording_item *item = tape_open(&call, RECORDING_GROUP_END, 0, &(word){0});
    const int result = real();
    nccl_end_group(&call, item, result);
    return result;
}

int ncclGroupSimulateEnd(void *info);
int ncclGroupSimulateEnd(void *info)
{
    REAL(ncclGroupSimulateEnd, (void *))
    const struct tape_call call = tape_begin(RECORDING_GROUP_END);
    struct recording_item *item = tape_open(&call, RECORDING_GROUP_END, WORDS(true));
    const int result = real(info);
    nccl_end_group(&call, item, result);
    return result;
}

/* ---- operations of a reduction ------------------------------------------------------------------- */

/* A scalar on the device is read when a collective runs. */
enum { SCALAR_DEVICE = 0 };
AROUND(ncclRedOpCreatePreMulSum, LEGACY,
       (int *out, void *scalar, int type, int residence, handle comm),
       (out, scalar, type, residence, comm), UNMODELLED, NOTHING,
       if (residence == SCALAR_DEVICE)
           calls_end_unmodelled(&call, result,
                                "ncclRedOpCreatePreMulSum with a scalar of the device");
       else tape_drop(&call))
