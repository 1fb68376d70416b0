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
        handle_born(HANDLE_ARRAY, *out);
    if (*out)
        **out = (struct cudaArray){*format, width, height};
    return call_end(*out ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaFreeArray(cudaArray_t array)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    handle_dies(HANDLE_ARRAY, array, __func__);
    free(array);
    return call_end(cudaSuccess);
}

/* A handle is the address of what it is made of; 0: of nothing. */
static uint64_t view_of(const struct cudaResourceDesc *resource, bool linear, const char *caller)
{
    const void *of = resource->resType == cudaResourceTypeArray ? resource->res.array.array
                     : linear && resource->resType == cudaResourceTypeLinear
                         ? resource->res.linear.devPtr
                         : NULL;
    if (of && resource->resType == cudaResourceTypeArray)
        handle_use(HANDLE_ARRAY, of, caller);
    if (of)
        handle_born(HANDLE_VIEW, of);
    return (uint64_t)(uintptr_t)of;
}

static cudaError_t destroy_view(uint64_t object, const char *caller)
{
    cudaError_t error = call_begin(caller);
    if (error != cudaSuccess)
        return error;
    handle_dies(HANDLE_VIEW, (const void *)(uintptr_t)object, caller);
    return call_end(cudaSuccess);
}

cudaError_t cudaCreateTextureObject(cudaTextureObject_t *out,
                                    const struct cudaResourceDesc *resource,
                                    const struct cudaTextureDesc *texture,
                                    const struct cudaResourceViewDesc *view)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    *out = texture && !view ? view_of(resource, true, __func__) : 0;
    return call_end(*out ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object)
{
    return destroy_view(object, __func__);
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *out,
                                    const struct cudaResourceDesc *resource)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    *out = view_of(resource, false, __func__);
    return call_end(*out ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object)
{
    return destroy_view(object, __func__);
}
