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

/* A mapping stays. */
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

/* Many copies in one call: of CUDA 13, and the one before with a place for the number of a copy that fails. */
#if CUDA_VERSION >= 13000
_Static_assert(sizeof(CUmemcpyAttributes) == sizeof(struct cudaMemcpyAttributes), "one layout");

#undef cuMemcpyBatchAsync
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
                               CUmemcpyAttributes *attributes, size_t *first,
                               size_t attribute_count, CUstream stream)
{
    return (CUresult)cudaMemcpyBatchAsync((void *const *)to, (const void *const *)from, bytes,
                                          count, (struct cudaMemcpyAttributes *)attributes, first,
                                          attribute_count, stream);
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
                            CUmemcpyAttributes *attributes, size_t *first, size_t attribute_count,
                            size_t *failed, CUstream stream);
CUresult cuMemcpyBatchAsync(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
                            CUmemcpyAttributes *attributes, size_t *first, size_t attribute_count,
                            size_t *failed, CUstream stream)
{
    const CUresult result =
        cuMemcpyBatchAsync_v2(to, from, bytes, count, attributes, first, attribute_count, stream);
    if (result != CUDA_SUCCESS)
        *failed = SIZE_MAX; /* "not associated with any specific copy" */
    return result;
}
#endif

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

/* ---- values in memory ------------------------------------------------------------------------- */

struct value {
    bool writes;
    void *address;
    size_t bytes;
    uint64_t value;
    unsigned flags;
};

static uint64_t load(const void *at, size_t bytes)
{
    return bytes == 4 ? __atomic_load_n((const uint32_t *)at, __ATOMIC_SEQ_CST)
                      : __atomic_load_n((const uint64_t *)at, __ATOMIC_SEQ_CST);
}

static bool is_there(const struct value *value, uint64_t found)
{
    const uint64_t difference = found - value->value;
    switch (value->flags & 7) {
    case CU_STREAM_WAIT_VALUE_GEQ:
        return value->bytes == 4 ? (int32_t)(uint32_t)difference >= 0 : (int64_t)difference >= 0;
    case CU_STREAM_WAIT_VALUE_EQ: return found == value->value;
    case CU_STREAM_WAIT_VALUE_AND: return (found & value->value) != 0;
    default: emulation_misuse("a stream waits for a value in a way that is not emulated");
    }
}

static cudaError_t run_value(struct CUstream_st *stream, void *payload)
{
    const struct value *value = payload;
    void *at = memory_reach(stream->gpu, value->address, value->bytes, "a value in memory");
    if (!at)
        return cudaErrorIllegalAddress;
    if (value->writes && value->bytes == 4)
        __atomic_store_n((uint32_t *)at, (uint32_t)value->value, __ATOMIC_SEQ_CST);
    else if (value->writes)
        __atomic_store_n((uint64_t *)at, value->value, __ATOMIC_SEQ_CST);
    while (!value->writes && !is_there(value, load(at, value->bytes)) &&
           gpu_error(stream->gpu) == cudaSuccess)
        usleep(100);
    return cudaSuccess;
}

static CUresult push_value(CUstream handle, struct value value)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return (CUresult)error;
    struct CUstream_st *stream = any_stream(handle, __func__);
    if (!stream)
        return (CUresult)call_end(cudaErrorMemoryAllocation);
    return (CUresult)call_end(
        stream_push_work(stream, run_value, &value, sizeof value, ACTIVITY_NONE));
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr to, cuuint32_t value, unsigned flags)
{
    return push_value(stream, (struct value){true, at(to), 4, value, flags});
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr to, cuuint64_t value, unsigned flags)
{
    return push_value(stream, (struct value){true, at(to), 8, value, flags});
}

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr from, cuuint32_t value, unsigned flags)
{
    return push_value(stream, (struct value){false, at(from), 4, value, flags});
}

CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr from, cuuint64_t value, unsigned flags)
{
    return push_value(stream, (struct value){false, at(from), 8, value, flags});
}

static CUresult push_operation(CUstream stream, const CUstreamBatchMemOpParams *op)
{
    switch (op->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        return cuStreamWaitValue32(stream, op->waitValue.address, op->waitValue.value,
                                   op->waitValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        return cuStreamWriteValue32(stream, op->writeValue.address, op->writeValue.value,
                                    op->writeValue.flags);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        return cuStreamWaitValue64(stream, op->waitValue.address, op->waitValue.value64,
                                   op->waitValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        return cuStreamWriteValue64(stream, op->writeValue.address, op->writeValue.value64,
                                    op->writeValue.flags);
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned count, CUstreamBatchMemOpParams *list,
                            unsigned flags)
{
    CUresult result = flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = push_operation(stream, &list[i]);
    return result;
}
