/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_memory.c - buffers of the CUDA device.
 *
 * cudaMalloc and cudaFree may wait for all work of the GPU. In the middle of a run a collective may be among it, whose peers
 * wait for the very thread that allocates. Memory that is wanted then (device_alloc_beside) comes from a pool of the
 * device, by cudaMallocFromPoolAsync, where the GPU has pools.
 */
#include "cuda_impl.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

/* ---- the pool ---------------------------------------------------------------------------------- */

/* As memory of cudaMalloc it is to be reached by the GPUs that can: NCCL may let another GPU read what it sends. */
static cudaError_t let_peers_in(cudaMemPool_t pool, const struct cuda_world *world)
{
    cudaError_t error = cudaSuccess;
    for (int gpu = 0; gpu < world->gpus && error == cudaSuccess; gpu++) {
        const struct cudaMemAccessDesc access = {
            .location = {.type = cudaMemLocationTypeDevice, .id = gpu},
            .flags = cudaMemAccessFlagsProtReadWrite};
        int can = 0;
        if (gpu != world->gpu)
            error = cudaDeviceCanAccessPeer(&can, gpu, world->gpu);
        if (error == cudaSuccess && can)
            error = cudaMemPoolSetAccess(pool, &access, 1);
    }
    return error;
}

void cuda_pool_open(struct cuda_device *device)
{
    const struct cuda_world *world = device->world;
    const struct cudaMemPoolProps wanted = {
        .allocType = cudaMemAllocationTypePinned,
        .location = {.type = cudaMemLocationTypeDevice, .id = world->gpu}};
    cudaMemPool_t pool = NULL;
    int has_pools = 0;
    cudaError_t error =
        cudaDeviceGetAttribute(&has_pools, cudaDevAttrMemoryPoolsSupported, world->gpu);
    if (error == cudaSuccess && has_pools)
        error = cudaMemPoolCreate(&pool, &wanted);
    if (error == cudaSuccess && pool)
        error = let_peers_in(pool, world);
    if (error == cudaSuccess) {
        device->memory = pool;
        return;
    }
    if (pool)
        cudaMemPoolDestroy(pool);
    (void)cudaGetLastError(); /* it goes without */
}

/* ---- memory of the device ---------------------------------------------------------------------- */

/* Of the program's allocator, where it has one. `beside`: without a wait for work of the GPU, if that can be. */
static cudaError_t cuda_memory_take_memory(struct cuda_device *device, size_t bytes, bool beside,
                                           void **out, enum cuda_origin *origin)
{
    const struct device_own *own = device->base.world->config.own;
    *origin = own && own->alloc          ? CUDA_OF_PROGRAM
              : beside && device->memory ? CUDA_OF_POOL
                                         : CUDA_OF_RUNTIME;
    switch (*origin) {
    case CUDA_OF_RUNTIME: return cudaMalloc(out, bytes);
    case CUDA_OF_POOL: return cudaMallocFromPoolAsync(out, bytes, device->memory, device->service);
    case CUDA_OF_PROGRAM: break;
    }
    *out = own->alloc(own->arg, device->base.rank, bytes);
    if (*out && (uintptr_t)*out % DEVICE_OWN_ALIGN == 0)
        return cudaSuccess;
    if (*out && own->release)
        own->release(own->arg, device->base.rank, *out, bytes);
    return *out ? cudaErrorMisalignedAddress : cudaErrorMemoryAllocation;
}

static void give_memory(struct cuda_device *device, void *address, size_t bytes,
                        enum cuda_origin origin)
{
    const struct device_own *own = device->base.world->config.own;
    switch (origin) {
    case CUDA_OF_RUNTIME: cudaFree(address); break;
    case CUDA_OF_POOL:
        if (address)
            cudaFreeAsync(address, device->service);
        break;
    case CUDA_OF_PROGRAM:
        if (own->release && address)
            own->release(own->arg, device->base.rank, address, bytes);
        break;
    }
}

static cudaError_t alloc_device(struct cuda_device *device, size_t bytes, bool beside, char **out,
                                enum cuda_origin *origin)
{
    void *address = NULL;
    cudaError_t error = cuda_memory_take_memory(device, bytes, beside, &address, origin);
    if (error != cudaSuccess)
        return error;
    error = cudaMemsetAsync(address, 0, bytes, device->service);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(device->service);
    if (error == cudaSuccess)
        *out = address;
    else
        give_memory(device, address, bytes, *origin);
    return error;
}

/* ---- buffers ----------------------------------------------------------------------------------- */

static cudaError_t alloc_host(enum device_memory memory, size_t bytes, char **out)
{
    void *address = NULL;
    if (memory == MEMORY_PINNED) {
        cudaError_t error = cudaHostAlloc(&address, bytes, cudaHostAllocDefault);
        if (error != cudaSuccess)
            return error;
    } else if (posix_memalign(&address, ALIGNMENT, bytes) != 0) {
        return cudaErrorMemoryAllocation;
    }
    memset(address, 0, bytes);
    *out = address;
    return cudaSuccess;
}

static enum status cuda_memory_alloc_buffer(struct device *base, enum device_memory memory,
                                            size_t bytes, bool beside, struct device_buffer **out,
                                            struct diag *diag)
{
    struct cuda_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer)
        return diag_no_memory(diag);
    buffer->base = (struct device_buffer){.device = base, .memory = memory, .bytes = bytes};
    cudaError_t error = cuda_enter(((struct cuda_device *)base)->world);
    if (error == cudaSuccess && bytes > 0 && memory == MEMORY_DEVICE)
        error = alloc_device((struct cuda_device *)base, bytes, beside, &buffer->base.address,
                             &buffer->origin);
    else if (error == cudaSuccess && bytes > 0)
        error = alloc_host(memory, bytes, &buffer->base.address);
    if (error != cudaSuccess) {
        free(buffer);
        return diag_error(diag, STATUS_SYSTEM, "rank %d: no memory for a buffer of %zu bytes: %s",
                          base->rank, bytes, cudaGetErrorString(error));
    }
    *out = &buffer->base;
    return STATUS_OK;
}

enum status cuda_alloc(struct device *device, enum device_memory memory, size_t bytes,
                       struct device_buffer **out, struct diag *diag)
{
    return cuda_memory_alloc_buffer(device, memory, bytes, false, out, diag);
}

enum status cuda_alloc_beside(struct device *device, size_t bytes, struct device_buffer **out,
                              struct diag *diag)
{
    return cuda_memory_alloc_buffer(device, MEMORY_DEVICE, bytes, true, out, diag);
}

/* A failure of the device shows up in the next push or sync; freeing goes on. */
void cuda_free(struct device_buffer *buffer)
{
    struct diag ignored;
    diag_init(&ignored);
    device_enter(buffer->device);
    cuda_device_sync(buffer->device, DEVICE_FOREVER, &ignored);
    diag_fini(&ignored);
    if (buffer->memory != MEMORY_PAGEABLE &&
        cuda_never_ends((const struct cuda_device *)buffer->device)) {
        atomic_fetch_add(&buffer->device->kept_bytes, (long long)buffer->bytes);
        free(buffer);
        return;
    }
    switch (buffer->memory) {
    case MEMORY_DEVICE:
        give_memory((struct cuda_device *)buffer->device, buffer->address, buffer->bytes,
                    ((struct cuda_buffer *)buffer)->origin);
        break;
    case MEMORY_PINNED: cudaFreeHost(buffer->address); break;
    case MEMORY_PAGEABLE: free(buffer->address); break;
    }
    free(buffer);
}
