/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copies.c - emulated CUDA: not a GPU. Copies and fills.
 *
 * A copy between two GPUs on the legacy default stream comes after all work of both, and all later work of both comes
 * after it ("Peer-to-Peer Memory Copy", CUDA C++ programming guide); on another stream it has that stream's order.
 */
#include "emulation.h"

#include <string.h>

/* Rows of bytes in slices: `pitch` bytes from row to row, `slice` from slice to slice. */
struct rows {
    char *address;
    size_t pitch, slice;
    int gpu; /* -1: memory of the host */
    bool pageable;
};
struct copy {
    struct rows to, from;
    size_t width, height, depth;
};

static char *row_at(const struct rows *rows, size_t y, size_t z)
{
    return rows->address + z * rows->slice + y * rows->pitch;
}

/* A row's bytes for an operation; NULL, with a message: they are not there. */
static char *reach_row(const struct CUstream_st *stream, const struct rows *rows, size_t y,
                       size_t z, size_t bytes, const char *caller)
{
    char *row = row_at(rows, y, z);
    return rows->pageable
               ? row
               : memory_reach(rows->gpu < 0 ? stream->gpu : rows->gpu, row, bytes, caller);
}

static cudaError_t run_copy(struct CUstream_st *stream, void *payload)
{
    const struct copy *copy = payload;
    for (size_t z = 0; z < copy->depth; z++)
        for (size_t y = 0; y < copy->height; y++) {
            char *to = reach_row(stream, &copy->to, y, z, copy->width, "a copy");
            const char *from = reach_row(stream, &copy->from, y, z, copy->width, "a copy");
            if (!to || !from)
                return cudaErrorIllegalAddress;
            memcpy(to, from, copy->width);
        }
    return cudaSuccess;
}

/* Bytes from the first to the last. */
static size_t span_of(const struct rows *rows, size_t width, size_t height, size_t depth)
{
    return rows->slice * (depth - 1) + rows->pitch * (height - 1) + width;
}

static void find_place(struct rows *rows, size_t bytes)
{
    rows->gpu = memory_gpu(rows->address, bytes);
    rows->pageable = rows->gpu < 0 && !memory_is_pinned(rows->address, bytes);
}

static bool is_empty(const struct copy *copy)
{
    return copy->width == 0 || copy->height == 0 || copy->depth == 0;
}

static struct copy box_of(const struct copy *box)
{
    struct copy copy = *box;
    if (!is_empty(box)) {
        find_place(&copy.to, span_of(&copy.to, copy.width, copy.height, copy.depth));
        find_place(&copy.from, span_of(&copy.from, copy.width, copy.height, copy.depth));
    }
    return copy;
}

static struct copy copy_of(void *to, const void *from, size_t bytes)
{
    struct copy copy = {{.address = to}, {.address = (char *)(uintptr_t)from}, bytes, 1, 1};
    find_place(&copy.to, bytes);
    find_place(&copy.from, bytes);
    return copy;
}

/* There are two ends, and they are where the caller says. */
static bool has_direction(const struct copy *copy, enum cudaMemcpyKind kind)
{
    return copy->to.address && copy->from.address &&
           (kind == cudaMemcpyDefault || kind == cudaMemcpyHostToHost ||
            kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToHost ||
            kind == cudaMemcpyDeviceToDevice) &&
           (kind == cudaMemcpyDefault ||
            ((copy->to.gpu >= 0) ==
                 (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) &&
             (copy->from.gpu >= 0) ==
                 (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice)));
}

static cudaError_t push_copy(struct CUstream_st *stream, const struct copy *copy)
{
    const bool between = copy->to.gpu >= 0 && copy->from.gpu >= 0 && copy->to.gpu != copy->from.gpu;
    const enum activity_kind kind = between ? ACTIVITY_PEER_COPY : ACTIVITY_COPY;
    if (!between || !stream_is_legacy(stream))
        return stream_push_work(stream, run_copy, copy, sizeof *copy, kind);
    const unsigned gpus = 1U << stream->gpu | 1U << copy->to.gpu | 1U << copy->from.gpu;
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

/* A copy from or to pageable memory has finished when it returns. The lock is held. */
static cudaError_t copy_async(struct CUstream_st *stream, const struct copy *copy,
                              enum cudaMemcpyKind kind)
{
    if (!stream)
        return cudaErrorMemoryAllocation;
    if (is_empty(copy))
        return cudaSuccess;
    if (!has_direction(copy, kind))
        return cudaErrorInvalidValue;
    const bool pageable = copy->to.pageable || copy->from.pageable;
    if (stream->graph && pageable)
        return graph_forbids(stream);
    const cudaError_t error = push_copy(stream, copy);
    return error == cudaSuccess && pageable ? await_copy(stream) : error;
}

/* The host waits, but not for a copy that stays on the devices. */
static cudaError_t copy_now(struct CUstream_st *stream, const struct copy *copy,
                            enum cudaMemcpyKind kind)
{
    if (!stream)
        return cudaErrorMemoryAllocation;
    if (is_empty(copy))
        return cudaSuccess;
    if (!has_direction(copy, kind))
        return cudaErrorInvalidValue;
    const cudaError_t error = push_copy(stream, copy);
    return error == cudaSuccess && (copy->to.gpu < 0 || copy->from.gpu < 0) ? await_copy(stream)
                                                                            : error;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t handle)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    const struct copy copy = copy_of(to, from, bytes);
    return call_end(copy_async(any_stream(handle, __func__), &copy, kind));
}

static cudaError_t copy_on(cudaStream_t handle, void *to, const void *from, size_t bytes,
                           enum cudaMemcpyKind kind)
{
    cudaError_t error = call_begin("cudaMemcpy");
    if (error != cudaSuccess)
        return error;
    const struct copy copy = copy_of(to, from, bytes);
    return call_end(copy_now(any_stream(handle, "cudaMemcpy"), &copy, kind));
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
    if (copy.to.gpu != device || copy.from.gpu != source)
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

/* Each of many copies by itself, the last one first: "copies within a batch are not guaranteed to execute in any specific
   order". */
#if CUDART_VERSION >= 13000
/* "Each entry must be greater than the previous entry and the last entry should be less than count", the first 0. */
static bool are_attributes(const struct cudaMemcpyAttributes *attributes, const size_t *first,
                           size_t attribute_count, size_t count)
{
    if (!attributes || !first || attribute_count == 0 || attribute_count > count || first[0] != 0)
        return false;
    for (size_t i = 0; i < attribute_count; i++)
        if (first[i] >= count || (i > 0 && first[i] <= first[i - 1]) ||
            attributes[i].srcAccessOrder < cudaMemcpySrcAccessOrderStream ||
            attributes[i].srcAccessOrder > cudaMemcpySrcAccessOrderAny)
            return false;
    return true;
}

static bool reads_during_call(const struct cudaMemcpyAttributes *attributes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (attributes[i].srcAccessOrder == cudaMemcpySrcAccessOrderDuringApiCall)
            return true;
    return false;
}

cudaError_t cudaMemcpyBatchAsync(void *const *to, const void *const *from, const size_t *bytes,
                                 size_t count, struct cudaMemcpyAttributes *attributes,
                                 size_t *first, size_t attribute_count, cudaStream_t handle)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    struct CUstream_st *stream = any_stream(handle, __func__);
    if (!to || !from || !bytes || !are_attributes(attributes, first, attribute_count, count) ||
        !stream || stream_is_legacy(stream)) /* "must not be legacy NULL stream" */
        return call_end(cudaErrorInvalidValue);
    for (size_t i = count; i > 0 && error == cudaSuccess; i--) {
        const struct copy copy = copy_of(to[i - 1], from[i - 1], bytes[i - 1]);
        error = copy_async(stream, &copy, cudaMemcpyDefault);
    }
    if (error == cudaSuccess && reads_during_call(attributes, attribute_count))
        stream_await(stream); /* "all accesses must be complete before the API call returns" */
    return call_end(error);
}
#endif

/* ---- rectangles and boxes ------------------------------------------------------------------------ */

static struct copy rectangle_of(void *to, size_t pitch, const void *from, size_t source,
                                size_t width, size_t height)
{
    const struct copy box = {{.address = to, .pitch = pitch},
                             {.address = (char *)(uintptr_t)from, .pitch = source},
                             width,
                             height,
                             1};
    return box_of(&box);
}

cudaError_t cudaMemcpy2D(void *to, size_t pitch, const void *from, size_t source, size_t width,
                         size_t height, enum cudaMemcpyKind kind)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    if (pitch < width || source < width)
        return call_end(cudaErrorInvalidPitchValue);
    const struct copy copy = rectangle_of(to, pitch, from, source, width, height);
    return call_end(copy_now(any_stream(cudaStreamLegacy, __func__), &copy, kind));
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t pitch, const void *from, size_t source, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    if (pitch < width || source < width)
        return call_end(cudaErrorInvalidPitchValue);
    const struct copy copy = rectangle_of(to, pitch, from, source, width, height);
    return call_end(copy_async(any_stream(stream, __func__), &copy, kind));
}

static struct rows rows_of(const struct cudaPitchedPtr *memory, const struct cudaPos *at)
{
    const size_t slice = memory->pitch * memory->ysize;
    return (struct rows){.address =
                             (char *)memory->ptr + at->z * slice + at->y * memory->pitch + at->x,
                         .pitch = memory->pitch,
                         .slice = slice};
}

/* cudaSuccess, or why there is no such copy. Arrays are not emulated. */
static cudaError_t make_box(const struct rows *to, const struct rows *from,
                            const struct cudaExtent *size, bool arrays, struct copy *out)
{
    const struct copy box = {*to, *from, size->width, size->height, size->depth};
    if (arrays)
        return cudaErrorNotSupported;
    if (to->pitch < size->width || from->pitch < size->width)
        return cudaErrorInvalidPitchValue;
    *out = box_of(&box);
    return cudaSuccess;
}

static cudaError_t box_of_params(const struct cudaMemcpy3DParms *params, struct copy *out)
{
    const struct rows to = rows_of(&params->dstPtr, &params->dstPos),
                      from = rows_of(&params->srcPtr, &params->srcPos);
    return make_box(&to, &from, &params->extent, params->srcArray || params->dstArray, out);
}

cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *params)
{
    struct copy copy;
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    error = box_of_params(params, &copy);
    return call_end(error == cudaSuccess
                        ? copy_now(any_stream(cudaStreamLegacy, __func__), &copy, params->kind)
                        : error);
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *params, cudaStream_t stream)
{
    struct copy copy;
    cudaError_t error = call_begin(__func__);
    if (error != cudaSuccess)
        return error;
    error = box_of_params(params, &copy);
    return call_end(error == cudaSuccess
                        ? copy_async(any_stream(stream, __func__), &copy, params->kind)
                        : error);
}

/* The host waits for neither. */
static cudaError_t copy_peer_box(const struct cudaMemcpy3DPeerParms *params, cudaStream_t handle,
                                 const char *function)
{
    struct copy copy;
    cudaError_t error = call_begin(function);
    if (error != cudaSuccess)
        return error;
    const struct rows to = rows_of(&params->dstPtr, &params->dstPos),
                      from = rows_of(&params->srcPtr, &params->srcPos);
    struct CUstream_st *stream = any_stream(handle, function);
    error = make_box(&to, &from, &params->extent, params->srcArray || params->dstArray, &copy);
    if (error == cudaSuccess && !is_empty(&copy) &&
        (copy.to.gpu != params->dstDevice || copy.from.gpu != params->srcDevice))
        error = cudaErrorInvalidValue;
    return call_end(error != cudaSuccess ? error
                    : stream             ? copy_async(stream, &copy, cudaMemcpyDeviceToDevice)
                                         : cudaErrorMemoryAllocation);
}

cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *params)
{
    return copy_peer_box(params, cudaStreamLegacy, __func__);
}

cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *params, cudaStream_t stream)
{
    return copy_peer_box(params, stream, __func__);
}

/* ---- fills --------------------------------------------------------------------------------------- */

struct fill {
    struct rows to;
    size_t width, height, depth;
    int value;
};

static cudaError_t run_fill(struct CUstream_st *stream, void *payload)
{
    const struct fill *fill = payload;
    for (size_t z = 0; z < fill->depth; z++)
        for (size_t y = 0; y < fill->height; y++) {
            char *to = reach_row(stream, &fill->to, y, z, fill->width, "a fill");
            if (!to)
                return cudaErrorIllegalAddress;
            memset(to, fill->value, fill->width);
        }
    return cudaSuccess;
}

/* Fills of device memory do not keep the host waiting. */
static cudaError_t push_fill(const struct fill *fill, cudaStream_t handle, const char *function)
{
    cudaError_t error = call_begin(function);
    if (error != cudaSuccess)
        return error;
    struct CUstream_st *stream = any_stream(handle, function);
    if (!stream)
        return call_end(cudaErrorMemoryAllocation);
    if (fill->width == 0 || fill->height == 0 || fill->depth == 0)
        return call_end(cudaSuccess);
    if ((fill->height > 1 && fill->to.pitch < fill->width) ||
        !memory_is_device(stream->gpu, fill->to.address,
                          span_of(&fill->to, fill->width, fill->height, fill->depth)))
        return call_end(cudaErrorInvalidValue);
    struct fill own = *fill;
    own.to.gpu = stream->gpu;
    return call_end(stream_push_work(stream, run_fill, &own, sizeof own, ACTIVITY_FILL));
}

static struct fill fill_of(void *to, size_t pitch, int value, size_t width, size_t height)
{
    return (struct fill){{.address = to, .pitch = pitch}, width, height, 1, value};
}

cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    const struct fill fill = fill_of(to, bytes, value, bytes, 1);
    return push_fill(&fill, cudaStreamLegacy, __func__);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    const struct fill fill = fill_of(to, bytes, value, bytes, 1);
    return push_fill(&fill, stream, __func__);
}

cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height)
{
    const struct fill fill = fill_of(to, pitch, value, width, height);
    return push_fill(&fill, cudaStreamLegacy, __func__);
}

cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream)
{
    const struct fill fill = fill_of(to, pitch, value, width, height);
    return push_fill(&fill, stream, __func__);
}

static struct fill fill_of_box(const struct cudaPitchedPtr *to, int value,
                               const struct cudaExtent *size)
{
    const struct cudaPos first = {0, 0, 0};
    return (struct fill){rows_of(to, &first), size->width, size->height, size->depth, value};
}

cudaError_t cudaMemset3D(struct cudaPitchedPtr to, int value, struct cudaExtent size)
{
    const struct fill fill = fill_of_box(&to, value, &size);
    return push_fill(&fill, cudaStreamLegacy, __func__);
}

cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr to, int value, struct cudaExtent size,
                              cudaStream_t stream)
{
    const struct fill fill = fill_of_box(&to, value, &size);
    return push_fill(&fill, stream, __func__);
}
