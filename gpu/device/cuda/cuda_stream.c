/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_stream.c - streams of the CUDA device: pushes, syncs, stamps.
 *
 * A push puts the operation between two timed markers where it is stamped. CUDA's own failures
 * appear at the next call, as CUDA does it; they fail the stream they are met on. A failure that
 * was injected shows at the push, because the GPU cannot be asked for one.
 */
#include "cuda_impl.h"

#include "kernels.h"
#include "gpu/device/nvtx.h"
#include "base/system_words.h"

#include <nvtx3/nvToolsExtCudaRt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { END_NS = 500000000, PAUSE_NS = 100000 };

/* ---- failing --------------------------------------------------------------------------------- */

static void fail_locked(struct cuda_stream *stream, enum status status, const char *text)
{
    if (stream->failure.status)
        return;
    snprintf(stream->failure.text, sizeof stream->failure.text, "%s", text);
    stream->failure.status = status;
    if (!stream->world->failure.status)
        stream->world->failure = stream->failure;
}

void cuda_stream_fail(struct cuda_stream *stream, enum status status, const char *format, ...)
{
    char text[FAILURE_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    pthread_mutex_lock(&stream->world->lock);
    fail_locked(stream, status, text);
    pthread_mutex_unlock(&stream->world->lock);
}

static void fail_with(struct cuda_stream *stream, const struct device_op *op, cudaError_t error)
{
    char text[OP_TEXT];
    cuda_stream_fail(stream, STATUS_SYSTEM, "rank %d, stream %s: %s: %s (%s)%s",
                     stream->device->base.rank, stream->base.name,
                     op ? device_op_text(op, text) : "waiting", cudaGetErrorString(error),
                     cudaGetErrorName(error), cuda_way_out(error));
}

struct failure cuda_stream_failure(struct cuda_stream *stream)
{
    pthread_mutex_lock(&stream->world->lock);
    struct failure failure = stream->failure.status ? stream->failure : stream->world->failure;
    pthread_mutex_unlock(&stream->world->lock);
    return failure;
}

static bool failed(struct cuda_stream *stream)
{
    pthread_mutex_lock(&stream->world->lock);
    bool answer = stream->failure.status != STATUS_OK;
    pthread_mutex_unlock(&stream->world->lock);
    return answer;
}

/* STATUS_OK, or the failure of the stream or the end of the run, reported. */
enum status cuda_stream_check(struct cuda_stream *stream, struct diag *diag)
{
    enum status status = cuda_world_ended(stream->world, diag);
    if (status)
        return status;
    pthread_mutex_lock(&stream->world->lock);
    status = stream->failure.status;
    if (status)
        diag_error(diag, status, "%s", stream->failure.text);
    pthread_mutex_unlock(&stream->world->lock);
    return status;
}

/* ---- behind a launch ------------------------------------------------------------------------- */

cudaError_t cuda_stream_follow(struct cuda_stream *stream)
{
    cudaError_t error = cudaSuccess;
    pthread_mutex_lock(&stream->world->lock);
    struct marker *launch = stream->behind;
    stream->behind = NULL;
    pthread_mutex_unlock(&stream->world->lock);
    if (launch)
        error = cudaStreamWaitEvent(stream->handle, launch->handle, 0);
    marker_release(stream->device, launch);
    return error;
}

void cuda_stream_put_behind(struct cuda_stream *stream, struct marker *launch)
{
    pthread_mutex_lock(&stream->world->lock);
    marker_release_locked(stream->device, stream->behind);
    launch->references++;
    stream->behind = launch;
    pthread_mutex_unlock(&stream->world->lock);
}

/* A marker behind all that a stream has to do. */
static struct marker *mark_end(struct cuda_stream *stream, cudaError_t *error)
{
    *error = cuda_enter(stream->world);
    if (*error == cudaSuccess)
        *error = cuda_stream_follow(stream);
    return *error == cudaSuccess ? marker_record(stream->device, false, stream->handle, error)
                                 : NULL;
}

/* Wait for everything pushed to a stream so far. */
static enum status cuda_stream_drain(struct cuda_stream *stream, int64_t deadline_ns,
                                     struct diag *diag)
{
    char what[OP_TEXT];
    cudaError_t error = cudaSuccess;
    enum status status = cuda_stream_check(stream, diag);
    if (status)
        return status;
    struct marker *marker = mark_end(stream, &error);
    if (!marker) {
        fail_with(stream, NULL, error);
        return cuda_stream_check(stream, diag);
    }
    snprintf(what, sizeof what, "stream %s", stream->base.name);
    status = marker_await(stream->device, marker, deadline_ns, what, diag);
    marker_release(stream->device, marker);
    return status ? status : cuda_stream_check(stream, diag);
}

enum status cuda_stream_sync(struct device_stream *stream, int64_t deadline_ns, struct diag *diag)
{
    return cuda_stream_drain((struct cuda_stream *)stream, deadline_ns, diag);
}

/* The markers of all streams are recorded before the first is waited for: later pushes do not
 * count. */
enum status cuda_device_sync(struct device *base, int64_t deadline_ns, struct diag *diag)
{
    struct cuda_device *device = (struct cuda_device *)base;
    enum status status = STATUS_OK;
    size_t count = 0, used = 0;
    for (struct cuda_stream *at = device->streams; at; at = at->next)
        count++;
    struct marker **markers = calloc(count + 1, sizeof(struct marker *));
    if (!markers)
        return diag_no_memory(diag);
    for (struct cuda_stream *at = device->streams; at && !status; at = at->next) {
        cudaError_t error = cudaSuccess;
        status = cuda_stream_check(at, diag);
        if (status)
            break;
        markers[used] = mark_end(at, &error);
        if (markers[used])
            used++;
        else
            status = cuda_refused(diag, "cannot sync the device", error);
    }
    for (size_t i = 0; i < used; i++) {
        if (!status)
            status = marker_await(device, markers[i], deadline_ns, "a stream", diag);
        marker_release(device, markers[i]);
    }
    free(markers);
    return status;
}

/* ---- push ------------------------------------------------------------------------------------ */

static cudaError_t cuda_stream_push_copy(struct cuda_stream *stream, const struct device_copy *copy)
{
    static const enum cudaMemcpyKind kinds[] = {[DIRECTION_H2D] = cudaMemcpyHostToDevice,
                                                [DIRECTION_D2H] = cudaMemcpyDeviceToHost,
                                                [DIRECTION_D2D] = cudaMemcpyDeviceToDevice};
    if (copy->bytes == 0)
        return cudaSuccess;
    return cudaMemcpyAsync(ref_address(copy->to), ref_address(copy->from), (size_t)copy->bytes,
                           kinds[copy->direction], stream->handle);
}

static cudaError_t push_gemm(struct cuda_stream *stream, const struct device_gemm *gemm)
{
    int (*launch)(void *, const void *, const void *, void *, int64_t, int64_t, int64_t) =
        gemm->dtype == DTYPE_F32 ? kernels_gemm_f32 : kernels_gemm_f64;
    return (cudaError_t)launch(stream->handle, ref_address(gemm->a), ref_address(gemm->b),
                               ref_address(gemm->c), gemm->m, gemm->n, gemm->k);
}

static cudaError_t push_fill(struct cuda_stream *stream, const struct device_fill *fill)
{
    char *out = ref_address(fill->out);
    if (fill->dtype == DTYPE_F32)
        return (cudaError_t)kernels_fill_f32(stream->handle, out, fill->elements,
                                             (float)fill->value);
    return (cudaError_t)kernels_fill_f64(stream->handle, out, fill->elements, fill->value);
}

static cudaError_t push_gather(struct cuda_stream *stream, const struct device_gather *gather)
{
    return (cudaError_t)kernels_gather(stream->handle, ref_address(gather->table),
                                       ref_address(gather->index), ref_address(gather->out),
                                       gather->rows, gather->dim * dtype_bytes(gather->dtype),
                                       gather->table_rows);
}

static cudaError_t push_dense(struct cuda_stream *stream, const struct device_dense *dense)
{
    cudaError_t error = cudaSuccess;
    for (size_t i = 0; i < dense->count && error == cudaSuccess; i++) {
        struct dense step = dense_at(&dense->steps[i]);
        error = (cudaError_t)kernels_dense(stream->handle, &step);
    }
    return error;
}

cudaError_t cuda_issue(struct cuda_stream *stream, const struct device_op *op)
{
    switch (op->kind) {
    case DEVICE_OP_SPIN:
        return (cudaError_t)kernels_spin(stream->handle, op->time_ns,
                                         stream->device->stop_on_device);
    case DEVICE_OP_FILL: return push_fill(stream, &op->fill);
    case DEVICE_OP_GEMM: return push_gemm(stream, &op->gemm);
    case DEVICE_OP_GATHER: return push_gather(stream, &op->gather);
    case DEVICE_OP_AXPY:
        return (cudaError_t)kernels_axpy(stream->handle, ref_address(op->axpy.x),
                                         ref_address(op->axpy.y), op->axpy.elements,
                                         op->axpy.alpha);
    case DEVICE_OP_DENSE: return push_dense(stream, &op->dense);
    case DEVICE_OP_COPY: return cuda_stream_push_copy(stream, &op->copy);
    case DEVICE_OP_COLLECTIVE:
    case DEVICE_OP_GROUP:
        if (((struct cuda_member *)device_op_comm(op))->alone)
            return cuda_alone_push(stream, op);
        cuda_comm_push(stream, op);
        return cudaSuccess;
    case DEVICE_OP_RECORD:
    case DEVICE_OP_WAIT: break; /* cuda_event_push: their numbers are not given before */
    case DEVICE_OP_CALLBACK:
        return cudaLaunchHostFunc(stream->handle, op->callback.run, op->callback.arg);
    }
    return cudaErrorInvalidValue;
}

/* An operation on an event gets its number here, others have it. */
static bool is_of_event(const struct device_op *op)
{
    return op->kind == DEVICE_OP_RECORD || op->kind == DEVICE_OP_WAIT;
}

static cudaError_t cuda_stream_issue(struct cuda_stream *stream, const struct device_op *op,
                                     struct stamp *stamp)
{
    return is_of_event(op) ? cuda_event_push(stream, op, stamp) : cuda_issue(stream, op);
}

/* Issue between two timed markers, and remember them for device_collect. */
static cudaError_t issue_stamped(struct cuda_stream *stream, const struct device_op *op,
                                 struct stamp *stamp)
{
    struct cuda_device *device = stream->device;
    cudaError_t error = cudaSuccess;
    struct cuda_pending *pending = calloc(1, sizeof *pending);
    if (!pending)
        return cudaErrorMemoryAllocation;
    pending->stamp = stamp;
    pending->stream = stream;
    pending->op = *op;
    pending->start = marker_record(device, true, stream->handle, &error);
    if (pending->start)
        error = cuda_stream_issue(stream, op, stamp);
    if (error == cudaSuccess && !failed(stream)) /* NCCL may have refused, and then it never ends */
        pending->end = marker_record(device, true, stream->handle, &error);
    if (!pending->end) {
        marker_release(device, pending->start);
        free(pending);
        return error;
    }
    pthread_mutex_lock(&device->world->lock);
    *device->pendings_end = pending;
    device->pendings_end = &pending->next;
    pthread_mutex_unlock(&device->world->lock);
    return cudaSuccess;
}

bool cuda_count_locked(struct cuda_stream *stream, const struct device_op *op, struct stamp *stamp)
{
    struct cuda_device *device = stream->device;
    char words[OP_TEXT], text[FAILURE_TEXT];
    const int64_t number = device->pushes++;
    const enum status injected = injection_take(&device->injections, number);
    if (stamp)
        stamp->number = number;
    if (!injected)
        return true;
    snprintf(text, sizeof text, "rank %d, stream %s: injected failure of operation %lld, %s",
             device->base.rank, stream->base.name, (long long)number, device_op_text(op, words));
    fail_locked(stream, injected, text);
    return false;
}

static bool cuda_stream_blocks_host(const struct device_op *op)
{
    return op->kind == DEVICE_OP_COPY && op->copy.bytes > 0 &&
           (op->copy.from.buffer->memory == MEMORY_PAGEABLE ||
            op->copy.to.buffer->memory == MEMORY_PAGEABLE);
}

/* Push with the next number. */
static enum status issue_counted(struct cuda_stream *stream, const struct device_op *op,
                                 struct stamp *stamp, struct diag *diag)
{
    if (stamp)
        stamp->pushed_from_ns = stamp->pushed_by_ns = device_now(&stream->world->base);
    if (!is_of_event(op)) {
        pthread_mutex_lock(&stream->world->lock);
        cuda_count_locked(stream, op, stamp);
        pthread_mutex_unlock(&stream->world->lock);
    }
    if (failed(stream)) /* injected: as if the device had failed it later */
        return STATUS_OK;
    cudaError_t error = cuda_enter(stream->world);
    if (error == cudaSuccess)
        error = cuda_stream_follow(stream);
    stream->used = true;
    if (error == cudaSuccess)
        error = stamp ? issue_stamped(stream, op, stamp) : cuda_stream_issue(stream, op, NULL);
    if (stamp)
        stamp->pushed_by_ns = device_now(&stream->world->base);
    if (error != cudaSuccess) {
        fail_with(stream, op, error);
        return cuda_stream_check(stream, diag);
    }
    return STATUS_OK;
}

/* Push to a stream that is well, its lock held. */
static enum status push_locked(struct cuda_stream *stream, const struct device_op *op,
                               struct stamp *stamp, struct diag *diag)
{
    enum status status = STATUS_OK;
    if (cuda_stream_blocks_host(op)) /* inside cudaMemcpyAsync no abort would reach us */
        status = cuda_stream_drain(stream, DEVICE_FOREVER, diag);
    if (status)
        return status;
    struct cuda_member *member = (struct cuda_member *)device_op_comm(op);
    if (member)
        pthread_mutex_lock(&member->order);
    status = issue_counted(stream, op, stamp, diag);
    if (member)
        pthread_mutex_unlock(&member->order);
    if (status || !cuda_stream_blocks_host(op) || failed(stream))
        return status;
    return cuda_stream_drain(stream, DEVICE_FOREVER, diag);
}

enum status cuda_push(struct device_stream *base, const struct device_op *op, struct stamp *stamp,
                      struct diag *diag)
{
    struct cuda_stream *stream = (struct cuda_stream *)base;
    pthread_mutex_lock(&stream->lock);
    enum status status = cuda_stream_check(stream, diag);
    if (base->capture)
        status = status ? status : cuda_graph_push(stream, op, stamp, diag);
    else if (!status)
        status = push_locked(stream, op, stamp, diag);
    else if (op->kind == DEVICE_OP_RECORD)
        cuda_event_refuse((struct cuda_event *)op->event, stream);
    pthread_mutex_unlock(&stream->lock);
    return status;
}

/* ---- stamps ---------------------------------------------------------------------------------- */

static cudaError_t fill_stamp(struct cuda_device *device, const struct cuda_pending *pending)
{
    double start_ns = 0, end_ns = 0;
    cudaError_t error = marker_measure(device, pending->start, &start_ns);
    if (error == cudaSuccess)
        error = marker_measure(device, pending->end, &end_ns);
    if (error == cudaSuccess)
        error = marker_measure_from(device, pending->end);
    if (error != cudaSuccess)
        return error;
    pending->stamp->start_ns = (int64_t)start_ns;
    pending->stamp->end_ns = (int64_t)(end_ns > start_ns ? end_ns : start_ns);
    pending->stamp->valid = true;
    return cudaSuccess;
}

/* Fills the stamp of the operation at `link`, which has finished, and forgets it. *end follows if it was the last. */
static cudaError_t take_finished(struct cuda_device *device, struct cuda_pending **link,
                                 struct cuda_pending ***end)
{
    struct cuda_pending *pending = *link;
    cudaError_t error = fill_stamp(device, pending);
    if (error != cudaSuccess)
        return error;
    pthread_mutex_lock(&device->world->lock);
    *link = pending->next;
    if (device->pendings_end == &pending->next)
        device->pendings_end = link;
    if (*end == &pending->next)
        *end = link;
    marker_release_locked(device, pending->start);
    marker_release_locked(device, pending->end);
    pthread_mutex_unlock(&device->world->lock);
    free(pending);
    return cudaSuccess;
}

/* Fills the stamp at `link` if its operation has finished; else goes past it. A stream behind one that has not is not asked
   again: each query may wait for others in the driver, and its answer is known. */
static cudaError_t collect_stamp(struct cuda_device *device, struct cuda_pending ***link,
                                 struct cuda_pending ***end)
{
    struct cuda_pending *pending = **link;
    cudaError_t error = cudaErrorNotReady;
    if (pending->stream->unfinished != device->collections)
        error = cuda_ask_event(device->world, pending->end->handle);
    if (error == cudaSuccess)
        return take_finished(device, *link, end);
    if (error != cudaErrorNotReady)
        return error;
    pending->stream->unfinished = device->collections;
    *link = &pending->next;
    return cudaSuccess;
}

/* Pushes go on meanwhile: they add behind `end`, and only this takes away. */
static cudaError_t collect_stamps(struct cuda_device *device)
{
    cudaError_t error = cudaSuccess;
    pthread_mutex_lock(&device->world->lock);
    struct cuda_pending **link = &device->pendings, **end = device->pendings_end;
    pthread_mutex_unlock(&device->world->lock);
    device->collections++;
    while (link != end && error == cudaSuccess)
        error = collect_stamp(device, &link, &end);
    return error;
}

enum status cuda_collect(struct device *base, struct diag *diag)
{
    struct cuda_device *device = (struct cuda_device *)base;
    cuda_relax(device->world);
    cudaError_t error = cuda_enter(device->world);
    cuda_clock_follow(device);
    pthread_mutex_lock(&device->collect_lock);
    if (error == cudaSuccess)
        error = collect_stamps(device);
    if (error == cudaSuccess)
        error = cuda_graph_collect(device);
    pthread_mutex_unlock(&device->collect_lock);
    return error == cudaSuccess ? STATUS_OK
                                : cuda_device_fail(device, "reading time stamps", error, diag);
}

/* ---- open and close -------------------------------------------------------------------------- */

/* A stream of the program's: of this GPU, without the order that the default stream imposes, and of one name. A marker can
   be recorded in a stream of the GPU only. */
static enum status cuda_stream_adopt(struct cuda_stream *stream, void *handle, struct diag *diag)
{
    struct cuda_device *device = stream->device;
    const char *name = stream->base.name;
    unsigned flags = 0;
    cudaError_t error = cudaStreamGetFlags(handle, &flags);
    if (error == cudaSuccess && !(flags & cudaStreamNonBlocking))
        return diag_error(
            diag, STATUS_INPUT,
            "stream %s: it was made without cudaStreamNonBlocking, and would wait for "
            "the default stream, which the plan does not say",
            name);
    for (const struct cuda_stream *at = device->streams; at; at = at->next)
        if (at->handle == handle)
            return diag_error(diag, STATUS_INPUT, "streams %s and %s are one stream", name,
                              at->base.name);
    struct marker *marker =
        error == cudaSuccess ? marker_record(device, false, handle, &error) : NULL;
    marker_release(device, marker);
    if (error != cudaSuccess)
        return diag_error(diag, STATUS_INPUT, "stream %s cannot be used on GPU %d: %s", name,
                          stream->world->gpu, cudaGetErrorString(error));
    stream->handle = handle;
    stream->adopted = true;
    return STATUS_OK;
}

static enum status get_handle(struct cuda_stream *stream, struct diag *diag)
{
    const struct device *device = &stream->device->base;
    const struct device_own *own = device->world->config.own;
    cudaError_t error = cuda_enter(stream->world);
    void *handle =
        own && own->stream ? own->stream(own->arg, device->rank, stream->base.name) : NULL;
    if (error == cudaSuccess && handle)
        return cuda_stream_adopt(stream, handle, diag);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&stream->handle, cudaStreamNonBlocking);
    return error == cudaSuccess ? STATUS_OK : cuda_refused(diag, "cannot make a stream", error);
}

enum status cuda_stream_open(struct device *base, const char *name, struct device_stream **out,
                             struct diag *diag)
{
    struct cuda_device *device = (struct cuda_device *)base;
    struct cuda_stream *stream = calloc(1, sizeof *stream);
    char *copy = strdup(name);
    enum status status = STATUS_SYSTEM;
    int refused;
    if (!stream || !copy) {
        diag_no_memory(diag);
        goto fail_memory;
    }
    stream->base = (struct device_stream){.device = base, .name = copy};
    stream->device = device;
    stream->world = device->world;
    refused = pthread_mutex_init(&stream->lock, NULL);
    if (refused) {
        diag_error(diag, STATUS_SYSTEM, "cannot make a lock: %s", system_words(refused));
        goto fail_memory;
    }
    status = get_handle(stream, diag);
    if (status)
        goto fail_stream;
    nvtx_ready();
    nvtxNameCudaStreamA(stream->handle, name);
    pthread_mutex_lock(&device->world->lock);
    stream->next = device->streams;
    device->streams = stream;
    pthread_mutex_unlock(&device->world->lock);
    *out = &stream->base;
    return STATUS_OK;

fail_stream:
    pthread_mutex_destroy(&stream->lock);
fail_memory:
    free(copy);
    free(stream);
    return status;
}

/* Behind an abort the device's own kernels end soon; one of the user's may never. */
static void let_end(struct cuda_stream *stream)
{
    const int64_t begin_ns = device_clock_ns();
    if (!atomic_load(&stream->world->aborted))
        return;
    while (!stream->device->unfinished &&
           cuda_ask_stream(stream->world, stream->handle) == cudaErrorNotReady) {
        stream->device->unfinished = device_clock_ns() - begin_ns > END_NS;
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
}

void cuda_stream_close(struct device_stream *base)
{
    struct cuda_stream *stream = (struct cuda_stream *)base;
    struct diag ignored; /* a sync has reported the failure */
    diag_init(&ignored);
    device_enter(stream->base.device);
    cuda_stream_drain(stream, DEVICE_FOREVER, &ignored);
    diag_fini(&ignored);
    let_end(stream);
    pthread_mutex_lock(&stream->world->lock);
    struct cuda_stream **link = &stream->device->streams;
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
    pthread_mutex_unlock(&stream->world->lock);
    marker_release(stream->device, stream->behind);
    if (!stream->adopted)
        cudaStreamDestroy(stream->handle);
    pthread_mutex_destroy(&stream->lock);
    free(stream->base.name);
    free(stream);
}

/* The asking thread is the pushing one. A refused launch is reported by the next push. */
void *cuda_stream_handle(struct device_stream *base)
{
    struct cuda_stream *stream = (struct cuda_stream *)base;
    if (!base->capture) {
        pthread_mutex_lock(&stream->lock);
        cudaError_t error = cuda_enter(stream->world); /* the caller launches on this GPU */
        if (error == cudaSuccess)
            error = cuda_stream_follow(stream);
        stream->used = true;
        pthread_mutex_unlock(&stream->lock);
        if (error != cudaSuccess)
            fail_with(stream, NULL, error);
    }
    return stream->handle;
}
