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

/* The driver's answer; -1: it has none. */
typedef int driver_query(void *handle);
static int ask_driver(driver_query *query, void *handle)
{
    int answer = query ? query(handle) : -1;
    return answer == DONE || answer == NOT_READY ? answer : -1;
}

/* A thread of the program's, which takes the steps of workers, may be on another GPU or on none: it asks again on the world's. */
static int ask_on_gpu(const struct cuda_world *world, driver_query *query, void *handle,
                      cudaError_t *entered)
{
    int answer = ask_driver(query, handle);
    *entered = answer < 0 ? cuda_enter(world) : cudaSuccess;
    return answer < 0 && *entered == cudaSuccess ? ask_driver(query, handle) : answer;
}

cudaError_t cuda_ask_event(const struct cuda_world *world, cudaEvent_t event)
{
    cudaError_t entered;
    int answer = ask_on_gpu(world, cuda_driver()->event_query, event, &entered);
    if (answer >= 0)
        return (cudaError_t)answer;
    return entered == cudaSuccess ? forget_not_ready(cudaEventQuery(event)) : entered;
}

cudaError_t cuda_ask_stream(const struct cuda_world *world, cudaStream_t stream)
{
    cudaError_t entered;
    int answer = ask_on_gpu(world, cuda_driver()->stream_query, stream, &entered);
    if (answer >= 0)
        return (cudaError_t)answer;
    return entered == cudaSuccess ? forget_not_ready(cudaStreamQuery(stream)) : entered;
}

#else

/* ISO C wants a declaration in every file. */
typedef int cuda_query_is_empty_without_cuda;

#endif
