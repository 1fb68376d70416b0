/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_query.c - is an event or a stream done?
 *
 * The runtime's queries leave "not ready" as the last error of the calling thread, over the one that was there, and its
 * user may ask for that behind a launch of his own. The driver's queries leave nothing: they are asked where the
 * driver gives them out. Anything but "done" and "not ready" is for the
 * runtime to say, on the world's GPU: a failure, or a thread without a context. There the runtime would make one on the
 * GPU that is the thread's, which takes hundreds of MiB of a GPU that may be another rank's.
 */
#include "cuda_impl.h"

#ifdef HAVE_CUDA

enum { DONE = 0, NOT_READY = 600 };

_Static_assert((int)cudaErrorNotReady == NOT_READY, "one number in driver and runtime");

static cudaError_t forget_not_ready(cudaError_t error)
{
    if (error == cudaErrorNotReady)
        (void)cudaGetLastError();
    return error;
}

cudaError_t cuda_ask_event(const struct cuda_world *world, cudaEvent_t event)
{
    const struct cuda_driver *driver = cuda_driver();
    int answer = driver->event_query ? driver->event_query(event) : -1;
    if (answer == DONE || answer == NOT_READY)
        return (cudaError_t)answer;
    cudaError_t error = cuda_enter(world);
    return error == cudaSuccess ? forget_not_ready(cudaEventQuery(event)) : error;
}

cudaError_t cuda_ask_stream(const struct cuda_world *world, cudaStream_t stream)
{
    const struct cuda_driver *driver = cuda_driver();
    int answer = driver->stream_query ? driver->stream_query(stream) : -1;
    if (answer == DONE || answer == NOT_READY)
        return (cudaError_t)answer;
    cudaError_t error = cuda_enter(world);
    return error == cudaSuccess ? forget_not_ready(cudaStreamQuery(stream)) : error;
}

#else

/* ISO C wants a declaration in every file. */
typedef int cuda_query_is_empty_without_cuda;

#endif
