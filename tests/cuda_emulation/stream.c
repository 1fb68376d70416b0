/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.c - emulated CUDA: not a GPU. Streams: queues, each with a thread.
 *
 * Records of events, waits for streams and the order of the default stream are all made of points. A wait
 * holds the point that was the event's last when it was pushed: the snapshot rule.
 */
#include "emulation.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct emulation emulation = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .gpu_count = -1};

void emulation_lock(void)
{
    pthread_mutex_lock(&emulation.lock);
}

void emulation_unlock(void)
{
    pthread_mutex_unlock(&emulation.lock);
}

int64_t emulation_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t emulation_gpu_ns(void)
{
    int64_t now_ns = emulation_now_ns();
    return now_ns + (now_ns - emulation.start_ns) / 1000000 * emulation.drift_ppm;
}

static void say(const char *format, va_list args)
{
    char text[400];
    vsnprintf(text, sizeof text, format, args);
    fprintf(stderr, "emulated CUDA: %s\n", text);
}

void emulation_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
}

void emulation_misuse(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
    abort();
}

/* ---- points ------------------------------------------------------------------------------------ */

void point_release(struct point *point)
{
    if (point && --point->references == 0)
        free(point);
}

struct operation *operation_new(enum operation_kind kind, const void *payload, size_t bytes)
{
    struct operation *operation = malloc(sizeof *operation + bytes);
    if (!operation)
        return NULL;
    *operation = (struct operation){.kind = kind, .bytes = bytes};
    if (bytes > 0)
        memcpy(operation->payload, payload, bytes);
    return operation;
}

static void operation_free(struct operation *operation)
{
    point_release(operation->point);
    free(operation);
}

const struct activity *_Atomic emulation_activity;

static void append(struct CUstream_st *stream, struct operation *operation)
{
    const struct activity *profiler = atomic_load(&emulation_activity);
    if (profiler && !stream->graph && operation->activity && operation->correlation == 0)
        operation->correlation = profiler->pushed();
    if (stream->graph) {
        graph_add(stream->graph, operation, stream->lane);
        return;
    }
    *stream->tail = operation;
    stream->tail = &operation->next;
    stream->pushed++;
    pthread_cond_signal(&stream->wake);
}

static struct point *mark(struct CUstream_st *stream)
{
    struct point *point = calloc(1, sizeof *point);
    struct operation *operation = point ? operation_new(OPERATION_POINT, NULL, 0) : NULL;
    if (!operation) {
        free(point);
        return NULL;
    }
    point->references = 2;
    if (stream->graph)
        graph_number(stream->graph, point);
    operation->point = point;
    append(stream, operation);
    return point;
}

static cudaError_t wait_for(struct CUstream_st *stream, struct point *point)
{
    struct operation *operation = operation_new(OPERATION_WAIT, NULL, 0);
    if (!operation)
        return cudaErrorMemoryAllocation;
    point->references++;
    operation->point = point;
    append(stream, operation);
    return cudaSuccess;
}

/* ---- the thread of a stream -------------------------------------------------------------------- */

/* Some operations are late, as on a GPU that is busy with other streams. */
static void dawdle(struct CUstream_st *stream)
{
    uint32_t luck = stream->luck;
    luck ^= luck << 13;
    luck ^= luck >> 17;
    luck ^= luck << 5;
    stream->luck = luck;
    if (luck % 4 == 0)
        nanosleep(&(struct timespec){.tv_nsec = (long)(luck / 4 % 60000)}, NULL);
    else if (luck % 4 == 1)
        sched_yield();
}

/* The lock is held, but not while the work is done. */
static void work(struct CUstream_st *stream, struct operation *operation)
{
    emulation_unlock();
    dawdle(stream);
    cudaError_t error = cudaSuccess;
    const int64_t start_ns = emulation_gpu_ns();
    if (operation->counts && fault_work()) {
        emulation_say("an illegal address, as SWSIM_EMULATION_FAULT asks");
        error = cudaErrorIllegalAddress;
    } else {
        error = operation->run(stream, operation->payload);
    }
    if (operation->correlation > 0)
        atomic_load(&emulation_activity)
            ->done(&(struct activity_done){operation->activity, operation->correlation,
                                           stream->number, stream->gpu, start_ns,
                                           emulation_gpu_ns(), operation->node});
    emulation_lock();
    if (error != cudaSuccess)
        gpu_fail(stream->gpu, error);
}

static void perform(struct CUstream_st *stream, struct operation *operation)
{
    const struct gpu *gpu = &emulation.gpus[stream->gpu];
    switch (operation->kind) {
    case OPERATION_WORK:
        if (gpu->error ==
            cudaSuccess) /* in an ended context no operation runs, and no host function */
            work(stream, operation);
        break;
    case OPERATION_POINT:
        operation->point->done = true;
        operation->point->time_ns = emulation_gpu_ns();
        break;
    case OPERATION_WAIT:
        while (!operation->point->done && gpu->error == cudaSuccess)
            pthread_cond_wait(&emulation.changed, &emulation.lock);
        break;
    }
}

static void unlink_stream(struct CUstream_st *stream)
{
    struct CUstream_st **link = &emulation.streams;
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
}

static void *serve(void *arg)
{
    struct CUstream_st *stream = arg;
    emulation_lock();
    for (;;) {
        while (!stream->head && !stream->closed)
            pthread_cond_wait(&stream->wake, &emulation.lock);
        struct operation *operation = stream->head;
        if (!operation)
            break;
        perform(stream, operation);
        stream->head = operation->next;
        if (!stream->head)
            stream->tail = &stream->head;
        stream->finished++;
        operation_free(operation);
        pthread_cond_broadcast(&emulation.changed);
    }
    while (stream->watchers > 0)
        pthread_cond_wait(&emulation.changed, &emulation.lock);
    unlink_stream(stream);
    emulation_unlock();
    pthread_cond_destroy(&stream->wake);
    free(stream);
    return NULL;
}

struct CUstream_st *stream_new(int gpu, bool blocking)
{
    pthread_t thread;
    struct CUstream_st *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->gpu = gpu;
    stream->number = ++emulation.stream_numbers;
    stream->blocking = blocking;
    stream->tail = &stream->head;
    stream->luck = ++emulation.seed * 2654435761U | 1;
    pthread_cond_init(&stream->wake, NULL);
    if (pthread_create(&thread, NULL, serve, stream) != 0) {
        pthread_cond_destroy(&stream->wake);
        free(stream);
        return NULL;
    }
    pthread_detach(thread);
    stream->next = emulation.streams;
    emulation.streams = stream;
    struct CUstream_st *held_by = emulation.gpus[gpu].held_by;
    if (held_by && !stream_idle(held_by))
        stream_follow(stream, held_by);
    return stream;
}

/* ---- for the other files ------------------------------------------------------------------------ */

struct CUstream_st *stream_of(cudaStream_t handle, const char *caller)
{
    for (struct CUstream_st *at = emulation.streams; at; at = at->next)
        if (at == handle && !at->closed)
            return at;
    emulation_misuse("%s: %p is no stream, or one that has been destroyed", caller, (void *)handle);
}

/* The handle is gone; pushed work is still executed, and waits for the device include it. */
void stream_close(struct CUstream_st *stream)
{
    stream->closed = true;
    pthread_cond_signal(&stream->wake);
}

bool stream_idle(const struct CUstream_st *stream)
{
    return stream->head == NULL;
}

bool emulation_is_busy(void)
{
    emulation_lock();
    const struct CUstream_st *at = emulation.streams;
    while (at && stream_idle(at))
        at = at->next;
    emulation_unlock();
    return at != NULL;
}

void stream_await(struct CUstream_st *stream)
{
    uint64_t goal = stream->pushed;
    const struct gpu *gpu = &emulation.gpus[stream->gpu];
    stream->watchers++;
    while (stream->finished < goal && gpu->error == cudaSuccess)
        pthread_cond_wait(&emulation.changed, &emulation.lock);
    if (--stream->watchers == 0 && stream->closed)
        pthread_cond_broadcast(&emulation.changed);
}

/* A point in every busy stream, then a wait for each: work pushed meanwhile does not count. */
void gpu_await(int gpu)
{
    size_t count = 0, used = 0;
    for (struct CUstream_st *at = emulation.streams; at; at = at->next)
        count++;
    struct point **points = calloc(count + 1, sizeof(struct point *));
    for (struct CUstream_st *at = emulation.streams; at; at = at->next)
        if (points && at->gpu == gpu && !stream_idle(at)) {
            points[used] = mark(at);
            used += points[used] != NULL;
        }
    for (size_t i = 0; i < used; i++) {
        while (!points[i]->done && emulation.gpus[gpu].error == cudaSuccess)
            pthread_cond_wait(&emulation.changed, &emulation.lock);
        point_release(points[i]);
    }
    free(points);
}

void stream_follow(struct CUstream_st *stream, struct CUstream_st *other)
{
    struct point *point = mark(other);
    if (!point || wait_for(stream, point) != cudaSuccess)
        emulation_misuse("no memory");
    point_release(point);
}

cudaError_t stream_push(struct CUstream_st *stream, struct operation *operation)
{
    const cudaError_t error = stream_keep_legacy_order(stream);
    if (error == cudaSuccess)
        append(stream, operation);
    else
        operation_free(operation);
    return error;
}

cudaError_t stream_push_work(struct CUstream_st *stream,
                             cudaError_t (*run)(struct CUstream_st *, void *), const void *payload,
                             size_t bytes, enum activity_kind activity)
{
    struct operation *operation = operation_new(OPERATION_WORK, payload, bytes);
    if (!operation)
        return cudaErrorMemoryAllocation;
    operation->run = run;
    operation->activity = activity;
    operation->counts = activity != ACTIVITY_NONE;
    return stream_push(stream, operation);
}

struct point *stream_mark(struct CUstream_st *stream)
{
    return stream_keep_legacy_order(stream) == cudaSuccess ? mark(stream) : NULL;
}

cudaError_t stream_wait_for(struct CUstream_st *stream, struct point *point)
{
    const cudaError_t error = stream_keep_legacy_order(stream);
    return error == cudaSuccess ? wait_for(stream, point) : error;
}

/* ---- errors ------------------------------------------------------------------------------------ */

void gpu_fail(int gpu, cudaError_t error)
{
    if (emulation.gpus[gpu].error == cudaSuccess)
        emulation.gpus[gpu].error = error;
    pthread_cond_broadcast(&emulation.changed);
}

cudaError_t gpu_error(int gpu)
{
    emulation_lock();
    cudaError_t error = emulation.gpus[gpu].error;
    emulation_unlock();
    return error;
}
