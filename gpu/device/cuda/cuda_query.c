/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_query.c - is an event or a stream done?
 *
 * The runtime's queries leave "not ready" as the last error of the calling thread, over the one that was there, and its
 * user may ask for that behind a launch of his own. The driver's queries leave nothing: they are asked where the
 * driver gives them out. Handles and numbers are the same for both. Anything but "done" and "not ready" is for the
 * runtime to say, on the world's GPU: a failure, or a thread without a context. There the runtime would make one on the
 * GPU that is the thread's, which takes hundreds of MiB of a GPU that may be another rank's.
 */
#include "cuda_impl.h"

#ifdef HAVE_CUDA

enum { DONE = 0, NOT_READY = 600, DRIVER_VERSION = 12000 };

/* CUresult cuEventQuery(CUevent), cuStreamQuery(CUstream); NULL: the driver has none. */
struct queries {
    int (*event)(cudaEvent_t event);
    int (*stream)(cudaStream_t stream);
};
static struct queries queries;
static pthread_once_t looked = PTHREAD_ONCE_INIT;

_Static_assert((int)cudaErrorNotReady == NOT_READY, "one number in driver and runtime");

static void find(const char *name, void *out)
{
    void *found = NULL;
    enum cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
    cudaError_t error =
        cudaGetDriverEntryPointByVersion(name, &found, DRIVER_VERSION, cudaEnableDefault, &result);
#elif CUDART_VERSION >= 12000
    cudaError_t error = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result);
#else
    cudaError_t error = cudaErrorNotSupported;
    (void)name;
    result = cudaDriverEntryPointSymbolNotFound;
#endif
    if (error == cudaSuccess && result == cudaDriverEntryPointSuccess)
        *(void **)out = found;
}

static void look(void)
{
    bool had_error = cudaPeekAtLastError() != cudaSuccess;
    find("cuEventQuery", &queries.event);
    find("cuStreamQuery", &queries.stream);
    if (!had_error)
        (void)cudaGetLastError(); /* a refusal */
}

static cudaError_t forget_not_ready(cudaError_t error)
{
    if (error == cudaErrorNotReady)
        (void)cudaGetLastError();
    return error;
}

cudaError_t cuda_ask_event(const struct cuda_world *world, cudaEvent_t event)
{
    pthread_once(&looked, look);
    int answer = queries.event ? queries.event(event) : -1;
    if (answer == DONE || answer == NOT_READY)
        return (cudaError_t)answer;
    cudaError_t error = cuda_enter(world);
    return error == cudaSuccess ? forget_not_ready(cudaEventQuery(event)) : error;
}

cudaError_t cuda_ask_stream(const struct cuda_world *world, cudaStream_t stream)
{
    pthread_once(&looked, look);
    int answer = queries.stream ? queries.stream(stream) : -1;
    if (answer == DONE || answer == NOT_READY)
        return (cudaError_t)answer;
    cudaError_t error = cuda_enter(world);
    return error == cudaSuccess ? forget_not_ready(cudaStreamQuery(stream)) : error;
}

#else

/* ISO C wants a declaration in every file. */
typedef int cuda_query_is_empty_without_cuda;

#endif
