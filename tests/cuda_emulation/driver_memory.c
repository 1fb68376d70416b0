/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_memory.c - emulated CUDA: not a GPU. Functions of cuda.h about memory, for the tests of `swsim record`: memory that
 * is mapped to reserved addresses here, the rest each by that of the runtime.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emulation.h"

static void *at(CUdeviceptr address)
{
    return (void *)(uintptr_t)address;
}

CUresult cuMemAlloc(CUdeviceptr *out, size_t bytes)
{
    void *address = NULL;
    const cudaError_t error = cudaMalloc(&address, bytes);
    *out = (CUdeviceptr)(uintptr_t)address;
    return (CUresult)error;
}

CUresult cuMemFree(CUdeviceptr address)
{
    return (CUresult)cudaFree((void *)(uintptr_t)address);
}

/* ---- mapped memory ---------------------------------------------------------------------------- */

struct physical {
    struct physical *next; /* of those that are released, whose handles are given out again */
    int file, gpu, references;
    size_t bytes;
};
static struct physical *released;

static struct physical *take_released(void)
{
    emulation_lock();
    struct physical *found = released;
    released = found ? found->next : NULL;
    emulation_unlock();
    return found ? found : malloc(sizeof *found);
}

/* What is mapped stays mapped. */
static bool end_one(struct physical *physical)
{
    emulation_lock();
    const bool good = physical->references > 0;
    if (good && --physical->references == 0) {
        close(physical->file);
        physical->next = released;
        released = physical;
    }
    emulation_unlock();
    return good;
}

static CUresult valid(bool good)
{
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags option)
{
    (void)prop, (void)option;
    *out = MEMORY_GRANULE;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *out, size_t bytes, size_t alignment, CUdeviceptr wanted,
                             unsigned long long flags)
{
    void *address = NULL;
    (void)alignment, (void)wanted, (void)flags;
    if (bytes == 0 || bytes % MEMORY_GRANULE != 0 || !memory_reserve(bytes, &address))
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUdeviceptr)(uintptr_t)address;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
    return valid(memory_unreserve(at(address), bytes));
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes,
                     const CUmemAllocationProp *prop, unsigned long long flags)
{
    (void)flags;
    if (bytes == 0 || bytes % MEMORY_GRANULE != 0 ||
        prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    struct physical *physical = take_released();
    if (!physical)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *physical = (struct physical){.file = memfd_create("physical", MFD_CLOEXEC),
                                  .gpu = prop->location.id,
                                  .references = 1,
                                  .bytes = bytes};
    if (physical->file < 0 || ftruncate(physical->file, (off_t)bytes) != 0)
        emulation_misuse("no memory for cuMemCreate");
    *out = (CUmemGenericAllocationHandle)(uintptr_t)physical;
    return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    return valid(end_one(at(handle)));
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *address)
{
    struct physical *physical = memory_physical(address);
    if (!physical || physical->references == 0)
        return CUDA_ERROR_INVALID_VALUE;
    physical->references++;
    *out = (CUmemGenericAllocationHandle)(uintptr_t)physical;
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    struct physical *physical = at(handle);
    return valid(flags == 0 && offset == 0 && physical->references > 0 &&
                 bytes <= physical->bytes &&
                 memory_map(at(address), bytes, physical->gpu, physical->file, physical));
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    return valid(memory_unmap(at(address), bytes));
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *desc,
                        size_t count)
{
    (void)desc;
    return valid(count > 0 && memory_grant(at(address), bytes));
}

/* ---- copies and fills ------------------------------------------------------------------------- */

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
    return (CUresult)cudaMemsetAsync(at(to), value, count, stream);
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return (CUresult)cudaMemcpyAsync(at(to), at(from), bytes, cudaMemcpyDeviceToDevice, stream);
}

static void *host_or_device(CUmemorytype type, const void *host, CUdeviceptr device)
{
    return type == CU_MEMORYTYPE_HOST ? (void *)(uintptr_t)host : at(device);
}

CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *copy, CUstream stream)
{
    const char *from = host_or_device(copy->srcMemoryType, copy->srcHost, copy->srcDevice);
    char *to = host_or_device(copy->dstMemoryType, copy->dstHost, copy->dstDevice);
    if (copy->srcMemoryType == CU_MEMORYTYPE_ARRAY || copy->dstMemoryType == CU_MEMORYTYPE_ARRAY)
        return CUDA_ERROR_NOT_SUPPORTED;
    return (CUresult)cudaMemcpy2DAsync(
        to + copy->dstY * copy->dstPitch + copy->dstXInBytes, copy->dstPitch,
        from + copy->srcY * copy->srcPitch + copy->srcXInBytes, copy->srcPitch, copy->WidthInBytes,
        copy->Height, cudaMemcpyDefault, stream);
}

CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D *copy, CUstream stream)
{
    const struct cudaMemcpy3DParms same = {
        .srcPos = {copy->srcXInBytes, copy->srcY, copy->srcZ},
        .srcPtr = {host_or_device(copy->srcMemoryType, copy->srcHost, copy->srcDevice),
                   copy->srcPitch, copy->srcPitch, copy->srcHeight},
        .dstPos = {copy->dstXInBytes, copy->dstY, copy->dstZ},
        .dstPtr = {host_or_device(copy->dstMemoryType, copy->dstHost, copy->dstDevice),
                   copy->dstPitch, copy->dstPitch, copy->dstHeight},
        .extent = {copy->WidthInBytes, copy->Height, copy->Depth},
        .kind = cudaMemcpyDefault};
    if (copy->srcMemoryType == CU_MEMORYTYPE_ARRAY || copy->dstMemoryType == CU_MEMORYTYPE_ARRAY)
        return CUDA_ERROR_NOT_SUPPORTED;
    return (CUresult)cudaMemcpy3DAsync(&same, stream);
}
