/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copies.c - emulated CUDA: not a GPU. Copies and fills.
 *
 * A copy between two GPUs on the legacy default stream comes after all work of both, and all later work of both comes
 * after it ("Peer-to-Peer Memory Copy", CUDA C++ programming guide); on another stream it has that stream's order.
 */
#include "emulation.h"

#include <string.h>

struct copy {
    void *to;
    const void *from;
    size_t bytes;
    int to_gpu, from_gpu; /* -1: memory of the host */
    bool to_pageable, from_pageable;
};

static cudaError_t run_copy(struct CUstream_st *stream, void *payload)
{
    const struct copy *copy = payload;
    const int to_gpu = copy->to_gpu < 0 ? stream->gpu : copy->to_gpu;
    const int from_gpu = copy->from_gpu < 0 ? stream->gpu : copy->from_gpu;
    void *to = copy->to_pageable ? copy->to : memory_reach(to_gpu, copy->to, copy->bytes, "a copy");
    const void *from = copy->from_pageable
                           ? copy->from
                           : memory_reach(from_gpu, copy->from, copy->bytes, "a copy");
    if (!to || !from)
        return cudaErrorIllegalAddress;
    memcpy(to, from, copy->bytes);
    return cudaSuccess;
}

static struct copy copy_of(void *to, const void *from, size_t bytes)
{
    struct copy copy = {.to = to, .from = from, .bytes = bytes};
    copy.to_gpu = memory_gpu(to, bytes);
    copy.from_gpu = memory_gpu(from, bytes);
    copy.to_pageable = copy.to_gpu < 0 && !memory_is_pinned(to, bytes);
    copy.from_pageable = copy.from_gpu < 0 && !memory_is_pinned(from, bytes);
    return copy;
}

/* The ends are where the caller says. */
static bool has_direction(const struct copy *copy, enum cudaMemcpyKind kind)
{
    return kind == cudaMemcpyDefault ||
           ((copy->to_gpu >= 0) ==
                (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) &&
            (copy->from_gpu >= 0) ==
                (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice));
}

static cudaError_t push_copy(struct CUstream_st *stream, const struct copy *copy)
{
    const bool between = copy->to_gpu >= 0 && copy->from_gpu >= 0 && copy->to_gpu != copy->from_gpu;
    const enum activity_kind kind = between ? ACTIVITY_PEER_COPY : ACTIVITY_COPY;
    if (!between || !stream_is_legacy(stream))
        return stream_push_work(stream, run_copy, copy, sizeof *copy, kind);
    const unsigned gpus = 1U << stream->gpu | 1U << copy->to_gpu | 1U << copy->from_gpu;
    stream_wait_for_gpus(stream, gpus);
    const cudaError_t error = stream_push_work(stream, run_copy, copy, sizeof *copy, kind);
    stream_hold_gpus(stream, gpus);
    return error;
}

/* Where the host waits: for pageable memory, and in calls that say so. */
static cudaError_t await_copy(struct CUstream_st *stream)
{
    const int gpu = stream->gpu;
    stream_await(stream);
    return emulation.gpus[gpu].error;
}

/* A copy from or to pageable memory has finished when it returns. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t handle)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    struct CUstream_st *stream = any_stream(handle, __func__);
    if (!stream)
        return call_end(cudaErrorMemoryAllocation);
    const struct copy copy = copy_of(to, from, bytes);
    if (!has_direction(&copy, kind))
        return call_end(cudaErrorInvalidValue);
    if (stream->graph && (copy.to_pageable || copy.from_pageable))
        return call_end(graph_forbids(stream));
    error = push_copy(stream, &copy);
    if (error == cudaSuccess && (copy.to_pageable || copy.from_pageable))
        error = await_copy(stream);
    return call_end(error);
}

/* On a default stream. The host waits, but not for a copy that stays on the devices. */
static cudaError_t copy_on(cudaStream_t handle, void *to, const void *from, size_t bytes,
                           enum cudaMemcpyKind kind)
{
    cudaError_t error = call_begin("cudaMemcpy");
    if (error != cudaSuccess)
        return error;
    struct CUstream_st *stream = any_stream(handle, "cudaMemcpy");
    if (!stream)
        return call_end(cudaErrorMemoryAllocation);
    const struct copy copy = copy_of(to, from, bytes);
    if (!has_direction(&copy, kind))
        return call_end(cudaErrorInvalidValue);
    error = push_copy(stream, &copy);
    if (error == cudaSuccess && (copy.to_gpu < 0 || copy.from_gpu < 0))
        error = await_copy(stream);
    return call_end(error);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    return copy_on(cudaStreamLegacy, to, from, bytes, kind);
}

cudaError_t cudaMemcpy_ptds(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy_ptds(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    return copy_on(cudaStreamPerThread, to, from, bytes, kind);
}

/* Both ends are device memory of the GPUs named. */
static cudaError_t copy_peer(void *to, int device, const void *from, int source, size_t bytes,
                             cudaStream_t handle, const char *caller)
{
    cudaError_t error = call_begin(caller);
    if (error != cudaSuccess)
        return error;
    if (device < 0 || device >= emulation.gpu_count || source < 0 || source >= emulation.gpu_count)
        return call_end(cudaErrorInvalidDevice);
    struct CUstream_st *stream = any_stream(handle, caller);
    if (!stream)
        return call_end(cudaErrorMemoryAllocation);
    const struct copy copy = copy_of(to, from, bytes);
    if (copy.to_gpu != device || copy.from_gpu != source)
        return call_end(cudaErrorInvalidValue);
    return call_end(push_copy(stream, &copy));
}

cudaError_t cudaMemcpyPeer(void *to, int device, const void *from, int source, size_t bytes)
{
    return copy_peer(to, device, from, source, bytes, cudaStreamLegacy, __func__);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int device, const void *from, int source, size_t bytes,
                                cudaStream_t handle)
{
    return copy_peer(to, device, from, source, bytes, handle, __func__);
}

struct fill {
    void *to;
    int value;
    size_t bytes;
};

static cudaError_t run_fill(struct CUstream_st *stream, void *payload)
{
    const struct fill *fill = payload;
    void *to = memory_reach(stream->gpu, fill->to, fill->bytes, "cudaMemsetAsync");
    if (!to)
        return cudaErrorIllegalAddress;
    memset(to, fill->value, fill->bytes);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t handle)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    struct CUstream_st *stream = any_stream(handle, __func__);
    if (!stream)
        return call_end(cudaErrorMemoryAllocation);
    if (!memory_is_device(stream->gpu, to, bytes))
        return call_end(cudaErrorInvalidValue);
    struct fill fill = {.to = to, .value = value, .bytes = bytes};
    return call_end(stream_push_work(stream, run_fill, &fill, sizeof fill, ACTIVITY_FILL));
}
