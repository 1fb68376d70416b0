/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_event.c - events of the CUDA device: an event means the marker of its last record.
 *
 * Two threads may record an event and let a stream wait for it at once. The wait is behind the record that it finds: so
 * both get their numbers where the event is set and looked at, under the world's lock, and the log has them in that order.
 */
#include "cuda_impl.h"

#ifdef HAVE_CUDA

#include <stdlib.h>

enum status cuda_event_open(struct device *device, struct device_event **out, struct diag *diag)
{
    struct cuda_event *event = calloc(1, sizeof *event);
    if (!event)
        return diag_no_memory(diag);
    event->base.device = device;
    *out = &event->base;
    return STATUS_OK;
}

void cuda_event_close(struct device_event *base)
{
    struct cuda_event *event = (struct cuda_event *)base;
    marker_release((struct cuda_device *)base->device, event->last);
    free(event);
}

/* The marker of the last record, held for the caller; NULL: never recorded. */
static struct marker *event_look_locked(struct cuda_event *event, struct failure *failure)
{
    if (event->last)
        event->last->references++;
    *failure = event->failure;
    return event->last;
}

static struct marker *event_look(struct cuda_event *event, struct failure *failure)
{
    struct cuda_device *device = (struct cuda_device *)event->base.device;
    pthread_mutex_lock(&device->world->lock);
    struct marker *marker = event_look_locked(event, failure);
    pthread_mutex_unlock(&device->world->lock);
    return marker;
}

/* The event means `marker` from now on and takes over its hold, unless `failure` says that the record was
   refused. */
static void event_set_locked(struct cuda_event *event, struct marker *marker,
                             struct failure failure)
{
    marker_release_locked((struct cuda_device *)event->base.device, event->last);
    event->last = marker;
    event->failure = failure;
}

static void event_set(struct cuda_event *event, struct marker *marker, struct failure failure)
{
    struct cuda_device *device = (struct cuda_device *)event->base.device;
    pthread_mutex_lock(&device->world->lock);
    event_set_locked(event, marker, failure);
    pthread_mutex_unlock(&device->world->lock);
}

/* A failed stream refuses a record: the event stands for work that never finishes. */
void cuda_event_refuse(struct cuda_event *event, struct cuda_stream *stream)
{
    event_set(event, NULL, cuda_stream_failure(stream));
}

void cuda_event_mean(struct cuda_event *event, struct marker *marker)
{
    struct cuda_device *device = (struct cuda_device *)event->base.device;
    pthread_mutex_lock(&device->world->lock);
    marker->references++;
    pthread_mutex_unlock(&device->world->lock);
    event_set(event, marker, (struct failure){.status = STATUS_OK});
}

enum status cuda_event_query(struct device_event *base, bool *done, struct diag *diag)
{
    struct cuda_device *device = (struct cuda_device *)base->device;
    struct failure failure;
    struct marker *marker = event_look((struct cuda_event *)base, &failure);
    cudaError_t error = marker ? cuda_ask_event(device->world, marker->handle) : cudaSuccess;
    marker_release(device, marker);
    if (failure.status)
        return diag_error(diag, failure.status, "%s", failure.text);
    if (error != cudaSuccess && error != cudaErrorNotReady)
        return cuda_device_fail(device, "the event", error, diag);
    *done = error == cudaSuccess;
    return *done ? STATUS_OK : cuda_world_ended(device->world, diag);
}

enum status cuda_event_sync(struct device_event *base, int64_t deadline_ns, struct diag *diag)
{
    struct cuda_device *device = (struct cuda_device *)base->device;
    struct failure failure;
    enum status status = STATUS_OK;
    struct marker *marker = event_look((struct cuda_event *)base, &failure);
    if (failure.status)
        status = diag_error(diag, failure.status, "%s", failure.text);
    else if (marker)
        status = marker_await(device, marker, deadline_ns, "the event", diag);
    marker_release(device, marker);
    return status;
}

/* ---- pushes ---------------------------------------------------------------------------------- */

/* The record is in the stream when the event is set. */
static cudaError_t push_record(struct cuda_stream *stream, const struct device_op *op,
                               struct stamp *stamp)
{
    struct cuda_event *event = (struct cuda_event *)op->event;
    cudaError_t error = cudaSuccess;
    struct marker *marker = marker_record(stream->device, false, stream->handle, &error);
    pthread_mutex_lock(&stream->world->lock);
    const bool good = cuda_count_locked(stream, op, stamp);
    if (!good)
        event_set_locked(event, NULL, stream->failure);
    else if (marker)
        event_set_locked(event, marker, (struct failure){.status = STATUS_OK});
    if (!good)
        marker_release_locked(stream->device, marker);
    pthread_mutex_unlock(&stream->world->lock);
    return good ? error : cudaSuccess;
}

/* Behind this marker, which is held; NULL: behind nothing. */
static cudaError_t follow(struct cuda_stream *stream, struct marker *marker,
                          const struct failure *failure)
{
    cudaError_t error = cudaSuccess;
    if (failure->status)
        cuda_stream_fail(stream, failure->status, "%s", failure->text);
    else if (marker && marker->stream != stream->handle) /* else it is behind it anyway */
        error = cudaStreamWaitEvent(stream->handle, marker->handle, 0);
    marker_release(stream->device, marker);
    return error;
}

cudaError_t cuda_event_follow(struct cuda_event *event, struct cuda_stream *stream)
{
    struct failure failure;
    struct marker *marker = event_look(event, &failure);
    return follow(stream, marker, &failure);
}

static cudaError_t push_wait(struct cuda_stream *stream, const struct device_op *op,
                             struct stamp *stamp)
{
    struct failure failure = {.status = STATUS_OK};
    struct marker *marker = NULL;
    pthread_mutex_lock(&stream->world->lock);
    if (cuda_count_locked(stream, op, stamp))
        marker = event_look_locked((struct cuda_event *)op->event, &failure);
    pthread_mutex_unlock(&stream->world->lock);
    return follow(stream, marker, &failure);
}

cudaError_t cuda_event_push(struct cuda_stream *stream, const struct device_op *op,
                            struct stamp *stamp)
{
    return op->kind == DEVICE_OP_RECORD ? push_record(stream, op, stamp)
                                        : push_wait(stream, op, stamp);
}

#else

/* ISO C wants a declaration in every file. */
typedef int cuda_event_is_empty_without_cuda;

#endif
