/* SPDX-License-Identifier: Apache-2.0 */
/*
 * texture.c - emulated CUDA: not a GPU. Handles of arrays, textures and surfaces, through which no kernel here reads or writes.
 */
#include "emulation.h"

#include <stdlib.h>

struct cudaArray {
    struct cudaChannelFormatDesc format;
    size_t width, height;
};

cudaError_t cudaMallocArray(cudaArray_t *out, const struct cudaChannelFormatDesc *format,
                            size_t width, size_t height, unsigned flags)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    if (width == 0 || format->x <= 0 || (flags & ~(unsigned)cudaArraySurfaceLoadStore))
        return call_end(cudaErrorInvalidValue);
    *out = malloc(sizeof **out);
    if (*out)
        **out = (struct cudaArray){*format, width, height};
    return call_end(*out ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaFreeArray(cudaArray_t array)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    free(array);
    return call_end(cudaSuccess);
}

/* A handle is the address of what it is made of. */
static uint64_t handle_of(const struct cudaResourceDesc *resource)
{
    if (resource->resType == cudaResourceTypeArray)
        return (uint64_t)(uintptr_t)resource->res.array.array;
    return resource->resType == cudaResourceTypeLinear
               ? (uint64_t)(uintptr_t)resource->res.linear.devPtr
               : 0;
}

cudaError_t cudaCreateTextureObject(cudaTextureObject_t *out,
                                    const struct cudaResourceDesc *resource,
                                    const struct cudaTextureDesc *texture,
                                    const struct cudaResourceViewDesc *view)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    *out = handle_of(resource);
    return call_end(*out && texture && !view ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object)
{
    cudaError_t error = call_begin(__func__);
    return error != cudaSuccess ? error : call_end(object ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *out,
                                    const struct cudaResourceDesc *resource)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    *out = resource->resType == cudaResourceTypeArray ? handle_of(resource) : 0;
    return call_end(*out ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object)
{
    cudaError_t error = call_begin(__func__);
    return error != cudaSuccess ? error : call_end(object ? cudaSuccess : cudaErrorInvalidValue);
}
