/* SPDX-License-Identifier: Apache-2.0 */
/*
 * default_stream.c - emulated CUDA: not a GPU. The default streams: the legacy one of a GPU, and that of each thread.
 *
 * Work of the legacy stream comes after that of all blocking streams of its GPU, and theirs after it; the default stream of a
 * thread is a blocking stream like others, made when it is first used and closed with its thread. A program compiled for
 * these (nvcc --default-stream per-thread) calls the functions that end in _ptsz.
 */
#include "emulation.h"

#include <stdlib.h>

struct streams_of_thread {
    struct CUstream_st *streams[EMULATION_MAX_GPUS];
};

static pthread_key_t key;
static pthread_once_t key_made = PTHREAD_ONCE_INIT;

static void end_thread(void *arg)
{
    struct streams_of_thread *mine = arg;
    emulation_lock();
    for (int i = 0; i < EMULATION_MAX_GPUS; i++)
        if (mine->streams[i])
            stream_close(mine->streams[i]);
    emulation_unlock();
    free(mine);
}

static void make_key(void)
{
    if (pthread_key_create(&key, end_thread) != 0)
        emulation_misuse("no memory");
}

static struct CUstream_st *stream_of_thread(int gpu)
{
    pthread_once(&key_made, make_key);
    struct streams_of_thread *mine = pthread_getspecific(key);
    if (!mine) {
        mine = calloc(1, sizeof *mine);
        if (!mine || pthread_setspecific(key, mine) != 0) {
            free(mine);
            return NULL;
        }
    }
    if (!mine->streams[gpu])
        mine->streams[gpu] = stream_new(gpu, true);
    return mine->streams[gpu];
}

struct CUstream_st *any_stream(cudaStream_t handle, const char *caller)
{
    if (handle == cudaStreamPerThread)
        return stream_of_thread(call_gpu());
    if (handle && handle != cudaStreamLegacy)
        return stream_of(handle, caller);
    struct gpu *gpu = &emulation.gpus[call_gpu()];
    if (!gpu->legacy)
        gpu->legacy = stream_new(call_gpu(), true);
    return gpu->legacy;
}

bool stream_is_legacy(const struct CUstream_st *stream)
{
    return stream == emulation.gpus[stream->gpu].legacy;
}

/* The default stream waits for all blocking streams, and these for it. */
cudaError_t stream_keep_legacy_order(struct CUstream_st *stream)
{
    struct CUstream_st *legacy = emulation.gpus[stream->gpu].legacy;
    if (!legacy || !stream->blocking || stream->graph)
        return cudaSuccess;
    for (struct CUstream_st *at = emulation.streams; at; at = at->next) {
        bool orders = stream == legacy ? at != legacy && at->blocking : at == legacy;
        if (!orders || at->gpu != stream->gpu)
            continue;
        if (at->graph) {
            (void)graph_forbids(at);
            return cudaErrorStreamCaptureImplicit;
        }
        if (!stream_idle(at))
            stream_follow(stream, at);
    }
    return cudaSuccess;
}

void stream_wait_for_gpus(struct CUstream_st *stream, unsigned gpus)
{
    for (struct CUstream_st *at = emulation.streams; at; at = at->next)
        if (at != stream && (gpus >> at->gpu & 1) && !at->graph && !stream_idle(at))
            stream_follow(stream, at);
}

void stream_hold_gpus(struct CUstream_st *stream, unsigned gpus)
{
    for (struct CUstream_st *at = emulation.streams; at; at = at->next)
        if (at != stream && (gpus >> at->gpu & 1) && !at->graph && !at->closed)
            stream_follow(at, stream);
    for (int gpu = 0; gpu < EMULATION_MAX_GPUS; gpu++)
        if (gpus >> gpu & 1)
            emulation.gpus[gpu].held_by = stream;
}

/* ---- for programs whose default stream is that of each thread ----------------------------------- */

#define PER_THREAD(name, PARAMS, ARGS)                                                             \
    cudaError_t name##_ptsz PARAMS;                                                                \
    cudaError_t name##_ptsz PARAMS                                                                 \
    {                                                                                              \
        stream = stream ? stream : cudaStreamPerThread;                                            \
        return name ARGS;                                                                          \
    }
PER_THREAD(cudaMemcpyAsync,
           (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
            cudaStream_t stream),
           (to, from, bytes, kind, stream))
PER_THREAD(cudaMemsetAsync, (void *to, int value, size_t bytes, cudaStream_t stream),
           (to, value, bytes, stream))
PER_THREAD(cudaStreamSynchronize, (cudaStream_t stream), (stream))
PER_THREAD(cudaStreamQuery, (cudaStream_t stream), (stream))
PER_THREAD(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
           (stream, event, flags))
PER_THREAD(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), (event, stream))
PER_THREAD(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void *arg),
           (stream, function, arg))
PER_THREAD(cudaMallocAsync, (void **out, size_t bytes, cudaStream_t stream), (out, bytes, stream))
PER_THREAD(cudaFreeAsync, (void *address, cudaStream_t stream), (address, stream))
