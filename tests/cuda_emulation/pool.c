/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c - emulated CUDA: not a GPU. Memory in the order of a stream.
 *
 * Memory is the stream's from the call on, and is given back behind the work that the stream has: it is full of
 * garbage from then on. A pool hands memory of the same size out again: in the stream that gave it back at once; in
 * another one when the free is done, where ReuseAllowOpportunistic is set; before, behind a wait that it pushes,
 * where ReuseAllowInternalDependencies is set. That it may also hand it out behind an event (ReuseFollowEventDependencies)
 * it does not use.
 *
 * Memory that is allocated in a capture is the graph's: it has its address from then on, and is full of garbage where a
 * launch comes to the allocation or to the free.
 */
#include "emulation.h"

#include <stdlib.h>

struct piece {
    struct piece *next;
    void *address;
    size_t bytes;
    bool leaves, is_free; /* its free is pushed; is done */
    bool of_graph;
    uint32_t given_back_in; /* the number of a stream */
    unsigned owners;        /* so far */
};

struct CUmemPoolHandle_st {
    int gpu;
    int reuses[cudaMemPoolReuseAllowInternalDependencies + 1]; /* by attribute */
    uint64_t threshold, used, most_used, reserved;
    struct piece *pieces;
    struct CUmemPoolHandle_st *next;
};

/* All of them; a pool that is destroyed keeps its memory. Guarded by the lock. */
static struct CUmemPoolHandle_st *pools;
static struct {
    struct CUmemPoolHandle_st *own, *current;
} of_gpu[EMULATION_MAX_GPUS];

static struct CUmemPoolHandle_st *new_pool(int gpu)
{
    struct CUmemPoolHandle_st *pool = calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    pool->gpu = gpu;
    for (size_t i = cudaMemPoolReuseFollowEventDependencies;
         i <= cudaMemPoolReuseAllowInternalDependencies; i++)
        pool->reuses[i] = 1;
    pool->next = pools;
    pools = pool;
    return pool;
}

static void use_pool(const struct CUmemPoolHandle_st *pool, const char *caller)
{
    for (int gpu = 0; gpu < EMULATION_MAX_GPUS; gpu++)
        if (pool && pool == of_gpu[gpu].own)
            return;
    handle_use(HANDLE_POOL, pool, caller);
}

/* NULL: no memory. */
static struct CUmemPoolHandle_st *default_pool(int gpu)
{
    if (!of_gpu[gpu].own)
        of_gpu[gpu].own = new_pool(gpu);
    return of_gpu[gpu].own;
}

static struct CUmemPoolHandle_st *current_pool(int gpu)
{
    return of_gpu[gpu].current ? of_gpu[gpu].current : default_pool(gpu);
}

static struct piece *find_piece(const void *address, struct CUmemPoolHandle_st **out)
{
    for (struct CUmemPoolHandle_st *pool = pools; pool; pool = pool->next)
        for (struct piece *at = pool->pieces; at; at = at->next)
            if (at->address == address && !at->is_free) {
                *out = pool;
                return at;
            }
    return NULL;
}

/* ---- pools -------------------------------------------------------------------------------------- */

cudaError_t cudaMemPoolCreate(cudaMemPool_t *out, const struct cudaMemPoolProps *props)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    if (props->allocType != cudaMemAllocationTypePinned ||
        props->location.type != cudaMemLocationTypeDevice || props->location.id < 0 ||
        props->location.id >= emulation.gpu_count)
        return call_end(cudaErrorInvalidValue);
    *out = new_pool(props->location.id);
    if (*out)
        handle_born(HANDLE_POOL, *out);
    return call_end(*out ? cudaSuccess : cudaErrorMemoryAllocation);
}

/* No kernel reaches for another GPU's memory here, so nothing comes of it. */
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *list,
                                 size_t count)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    use_pool(pool, __func__);
    for (size_t i = 0; i < count; i++)
        if (list[i].location.type != cudaMemLocationTypeDevice || list[i].location.id < 0 ||
            list[i].location.id == pool->gpu || list[i].location.id >= emulation.gpu_count)
            return call_end(cudaErrorInvalidDevice);
    return call_end(cudaSuccess);
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    cudaError_t error = call_begin_anyhow(__func__);
    if (error != cudaSuccess)
        return error;
    use_pool(pool, __func__);
    if (pool == of_gpu[pool->gpu].own)
        return call_end(cudaErrorInvalidValue);
    handle_dies(HANDLE_POOL, pool, __func__);
    if (pool == of_gpu[pool->gpu].current)
        of_gpu[pool->gpu].current = NULL;
    return call_end(cudaSuccess);
}

static cudaError_t get_pool(cudaMemPool_t *out, int gpu, const char *function,
                            struct CUmemPoolHandle_st *(*get)(int gpu))
{
    cudaError_t error = call_begin(function);
    if (error != cudaSuccess)
        return error;
    if (gpu < 0 || gpu >= emulation.gpu_count)
        return call_end(cudaErrorInvalidDevice);
    *out = get(gpu);
    return call_end(*out ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *out, int gpu)
{
    return get_pool(out, gpu, __func__, default_pool);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *out, int gpu)
{
    return get_pool(out, gpu, __func__, current_pool);
}

cudaError_t cudaDeviceSetMemPool(int gpu, cudaMemPool_t pool)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    use_pool(pool, __func__);
    if (gpu < 0 || gpu >= emulation.gpu_count || pool->gpu != gpu)
        return call_end(cudaErrorInvalidDevice);
    of_gpu[gpu].current = pool;
    return call_end(cudaSuccess);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    use_pool(pool, __func__);
    if (attribute >= cudaMemPoolReuseFollowEventDependencies &&
        attribute <= cudaMemPoolReuseAllowInternalDependencies)
        pool->reuses[attribute] = *(int *)value;
    else if (attribute == cudaMemPoolAttrReleaseThreshold)
        pool->threshold = *(uint64_t *)value;
    else if (attribute == cudaMemPoolAttrUsedMemHigh && *(uint64_t *)value == 0)
        pool->most_used = pool->used;
    else
        return call_end(cudaErrorInvalidValue);
    return call_end(cudaSuccess);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    use_pool(pool, __func__);
    switch (attribute) {
    case cudaMemPoolReuseFollowEventDependencies:
    case cudaMemPoolReuseAllowOpportunistic:
    case cudaMemPoolReuseAllowInternalDependencies: *(int *)value = pool->reuses[attribute]; break;
    case cudaMemPoolAttrReleaseThreshold: *(uint64_t *)value = pool->threshold; break;
    case cudaMemPoolAttrReservedMemCurrent:
    case cudaMemPoolAttrReservedMemHigh: *(uint64_t *)value = pool->reserved; break;
    case cudaMemPoolAttrUsedMemCurrent: *(uint64_t *)value = pool->used; break;
    case cudaMemPoolAttrUsedMemHigh: *(uint64_t *)value = pool->most_used; break;
    default: return call_end(cudaErrorInvalidValue);
    }
    return call_end(cudaSuccess);
}

/* A free block keeps no memory. */
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    use_pool(pool, __func__);
    pool->reserved = bytes > pool->used ? bytes : pool->used;
    return call_end(cudaSuccess);
}

/* ---- memory ------------------------------------------------------------------------------------- */

static struct CUstream_st *find_stream(uint32_t number)
{
    struct CUstream_st *at = emulation.streams;
    while (at && at->number != number)
        at = at->next;
    return at;
}

/* The piece is the stream's; what it waits for is pushed. */
static bool take_again(struct CUmemPoolHandle_st *pool, struct piece *piece,
                       struct CUstream_st *stream)
{
    if (piece->is_free)
        return pool->reuses[cudaMemPoolReuseAllowOpportunistic] &&
               memory_revive(piece->address, piece->bytes);
    if (!piece->leaves)
        return false;
    if (piece->given_back_in == stream->number)
        return true;
    struct CUstream_st *other = find_stream(piece->given_back_in);
    if (!other || !pool->reuses[cudaMemPoolReuseAllowInternalDependencies])
        return false;
    stream_follow(stream, other);
    return true;
}

static struct piece *new_piece(struct CUmemPoolHandle_st *pool, size_t bytes)
{
    struct piece *piece = calloc(1, sizeof *piece);
    if (!piece || memory_alloc_device(pool->gpu, bytes, &piece->address) != cudaSuccess) {
        free(piece);
        return NULL;
    }
    piece->bytes = bytes;
    piece->next = pool->pieces;
    pool->pieces = piece;
    pool->reserved += bytes;
    return piece;
}

static cudaError_t give(struct CUmemPoolHandle_st *pool, struct CUstream_st *stream, size_t bytes,
                        void **out)
{
    struct piece *piece = pool->pieces;
    while (piece && (piece->bytes != bytes || !take_again(pool, piece, stream)))
        piece = piece->next;
    piece = piece ? piece : new_piece(pool, bytes);
    if (!piece)
        return cudaErrorMemoryAllocation;
    piece->leaves = piece->is_free = false;
    piece->owners++;
    pool->used += bytes;
    pool->most_used = pool->used > pool->most_used ? pool->used : pool->most_used;
    *out = piece->address;
    return cudaSuccess;
}

static cudaError_t run_spoil(struct CUstream_st *stream, void *payload)
{
    (void)stream;
    memory_spoil(*(void **)payload);
    return cudaSuccess;
}

static cudaError_t give_to_graph(struct CUmemPoolHandle_st *pool, struct CUstream_st *stream,
                                 size_t bytes, void **out)
{
    struct piece *piece = new_piece(pool, bytes);
    if (!piece)
        return cudaErrorMemoryAllocation;
    piece->of_graph = true;
    *out = piece->address;
    return stream_push_work(stream, run_spoil, out, sizeof *out, ACTIVITY_NONE);
}

/* `pool` NULL: that of the stream's GPU. */
static cudaError_t alloc(void **out, size_t bytes, struct CUmemPoolHandle_st *pool,
                         cudaStream_t handle, const char *function)
{
    cudaError_t error = call_begin(function);
    if (error != cudaSuccess)
        return error;
    struct CUstream_st *stream = any_stream(handle, function);
    if (pool)
        use_pool(pool, function);
    pool = stream && !pool ? current_pool(stream->gpu) : pool;
    if (!stream || !pool)
        return call_end(cudaErrorMemoryAllocation);
    if (stream->gpu != pool->gpu || bytes == 0)
        return call_end(cudaErrorInvalidValue);
    if (stream->graph)
        return call_end(give_to_graph(pool, stream, bytes, out));
    error = stream_keep_legacy_order(stream);
    return call_end(error == cudaSuccess ? give(pool, stream, bytes, out) : error);
}

cudaError_t cudaMallocAsync(void **out, size_t bytes, cudaStream_t stream)
{
    return alloc(out, bytes, NULL, stream, __func__);
}

cudaError_t cudaMallocFromPoolAsync(void **out, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream)
{
    return alloc(out, bytes, pool, stream, __func__);
}

struct leaving {
    struct CUmemPoolHandle_st *pool; /* NULL: memory of cudaMalloc, by its address */
    struct piece *piece;
    unsigned owner;
    void *address;
};

static void free_piece(struct piece *piece)
{
    piece->is_free = true;
    piece->leaves = false;
    if (!memory_free(piece->address, true))
        emulation_misuse("memory of a pool: %p is not allocated", piece->address);
}

/* A piece that has its next owner already is garbage to that one. */
static cudaError_t run_free(struct CUstream_st *stream, void *payload)
{
    const struct leaving *leaving = payload;
    (void)stream;
    emulation_lock();
    if (!leaving->pool && !memory_free(leaving->address, true))
        emulation_misuse("cudaFreeAsync: %p is not allocated", leaving->address);
    if (leaving->pool && leaving->piece->owners == leaving->owner)
        free_piece(leaving->piece);
    else if (leaving->pool)
        memory_spoil(leaving->address);
    emulation_unlock();
    return cudaSuccess;
}

cudaError_t cudaFreeAsync(void *address, cudaStream_t handle)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    struct CUstream_st *stream = any_stream(handle, __func__);
    if (!stream || !address)
        return call_end(cudaErrorInvalidValue);
    struct leaving leaving = {.address = address};
    leaving.piece = find_piece(address, &leaving.pool);
    if (stream->graph)
        return call_end(
            leaving.piece && leaving.piece->of_graph
                ? stream_push_work(stream, run_spoil, &address, sizeof address, ACTIVITY_NONE)
                : cudaErrorInvalidValue);
    if (leaving.piece && leaving.piece->leaves)
        emulation_misuse("cudaFreeAsync: %p has been freed", address);
    if (leaving.piece) {
        leaving.owner = leaving.piece->owners;
        leaving.piece->leaves = true;
        leaving.piece->given_back_in = stream->number;
        leaving.pool->used -= leaving.piece->bytes;
    }
    return call_end(stream_push_work(stream, run_free, &leaving, sizeof leaving, ACTIVITY_NONE));
}

/* ---- nodes of graphs ----------------------------------------------------------------------------- */

/* A node stands behind all that the graph has, whatever its dependences are. Its handle is good for these only. */
cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *out, cudaGraph_t graph,
                                     const cudaGraphNode_t *nodes, size_t count,
                                     struct cudaMemAllocNodeParams *params)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    handle_use(HANDLE_GRAPH, graph, __func__);
    const int gpu = params->poolProps.location.id;
    if ((count > 0 && !nodes) || params->bytesize == 0 || gpu < 0 || gpu >= emulation.gpu_count ||
        params->poolProps.location.type != cudaMemLocationTypeDevice)
        return call_end(cudaErrorInvalidValue);
    struct CUmemPoolHandle_st *pool = current_pool(gpu);
    struct piece *piece = pool ? new_piece(pool, params->bytesize) : NULL;
    if (!piece)
        return call_end(cudaErrorMemoryAllocation);
    piece->of_graph = true;
    params->dptr = piece->address;
    *out = (cudaGraphNode_t)piece;
    return call_end(graph_add_work(graph, gpu, run_spoil, &params->dptr, sizeof params->dptr));
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *out, cudaGraph_t graph,
                                    const cudaGraphNode_t *nodes, size_t count, void *address)
{
    struct CUmemPoolHandle_st *pool;
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    handle_use(HANDLE_GRAPH, graph, __func__);
    struct piece *piece = find_piece(address, &pool);
    if ((count > 0 && !nodes) || !piece || !piece->of_graph)
        return call_end(cudaErrorInvalidValue);
    *out = (cudaGraphNode_t)piece;
    return call_end(graph_add_work(graph, pool->gpu, run_spoil, &address, sizeof address));
}

bool pool_free_now(void *address)
{
    struct CUmemPoolHandle_st *pool;
    struct piece *piece = find_piece(address, &pool);
    if (!piece)
        return false;
    if (piece->leaves)
        emulation_misuse("cudaFree: %p has been freed", address);
    pool->used -= piece->bytes;
    piece->owners++;
    free_piece(piece);
    return true;
}

void pool_reset(int gpu)
{
    for (struct CUmemPoolHandle_st *pool = pools; pool; pool = pool->next)
        for (struct piece *at = pool->pieces; at && pool->gpu == gpu; at = at->next) {
            at->bytes = 0; /* never handed out again */
            at->leaves = at->is_free = true;
        }
}
