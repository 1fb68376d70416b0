/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_caller.c - the GPU that is a thread's current one, a caller's state of CUDA, and queries that leave it alone.
 *
 * The runtime works on the driver's context that is current on the calling thread. cudaSetDevice makes the one of a GPU
 * current, and since CUDA 12 makes it if there is none: some hundred MiB on a GPU that may be another rank's, or nobody's.
 * So the thread of a caller could not get its GPU back by a number. Where the driver gives its functions out, a thread
 * enters the world's GPU by that one's context, and leaves it by the context that was current before, or by none. The
 * GPU that the caller has chosen stays chosen, and no other gets a context. Elsewhere cudaSetDevice does both.
 *
 * The context is the primary one, which the runtime has, too; it is retained once for a world and not released, because
 * the runtime keeps it until the process ends.
 *
 * A thread that asks, or allocates, invalidates the capture of another one that is in the mode Global, PyTorch's default, unless
 * its own mode is Relaxed: threads of the library are (cuda_relax), a caller's is within a call.
 *
 * The runtime's queries leave "not ready" as the last error of the calling thread, over the one that was there, and its
 * user may ask for that behind a launch of his own. The driver's queries leave nothing: they are asked where the
 * driver gives them out. Anything but "done" and "not ready" is for the
 * runtime to say, on the world's GPU: a failure, or a thread without a context. There the runtime would make one on the
 * GPU that is the thread's, which takes hundreds of MiB of a GPU that may be another rank's.
 *
 * Functions of the driver are those that the runtime gives out since CUDA 12. Handles and numbers of errors are the same for
 * both.
 */
#include "cuda_impl.h"

#ifdef HAVE_CUDA

/* ---- functions of the driver ------------------------------------------------------------------ */

enum { DRIVER_VERSION = 12000 };

static void cuda_caller_find_function(const char *name, void *out)
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

void cuda_driver_find(struct cuda_driver *out)
{
    *out = (struct cuda_driver){0};
    bool had_error = cudaPeekAtLastError() != cudaSuccess;
    cuda_caller_find_function("cuThreadExchangeStreamCaptureMode", &out->exchange_mode);
    cuda_caller_find_function("cuEventQuery", &out->event_query);
    cuda_caller_find_function("cuStreamQuery", &out->stream_query);
    cuda_caller_find_function("cuCtxGetCurrent", &out->get_current);
    cuda_caller_find_function("cuCtxSetCurrent", &out->set_current);
    cuda_caller_find_function("cuDeviceGet", &out->device_get);
    cuda_caller_find_function("cuDevicePrimaryCtxRetain", &out->retain);
    out->has_contexts = out->get_current && out->set_current && out->device_get && out->retain;
    if (!had_error)
        (void)cudaGetLastError(); /* a refusal */
}

/* ---- the current GPU ------------------------------------------------------------------------- */

cudaError_t cuda_make_context(struct cuda_world *world)
{
    const struct cuda_driver *driver = &world->driver;
    int device = 0;
    if (!driver->has_contexts || world->context)
        return cudaSuccess;
    int error = driver->device_get(&device, world->gpu);
    if (error == 0)
        error = driver->retain(&world->context, device);
    return (cudaError_t)error;
}

cudaError_t cuda_enter(const struct cuda_world *world)
{
    return world->context ? (cudaError_t)world->driver.set_current(world->context)
                          : cudaSetDevice(world->gpu);
}

/* CUstreamCaptureMode, -1: the driver does not say, as before its first use. */
static int exchange_mode(const struct cuda_driver *driver, int mode)
{
    return driver->exchange_mode && driver->exchange_mode(&mode) == 0 ? mode : -1;
}

void cuda_relax(const struct cuda_world *world)
{
    (void)exchange_mode(&world->driver, cudaStreamCaptureModeRelaxed);
}

/* The last error, which a call that succeeds does not change, and a look does not take away. */
void cuda_note_caller(const struct device_world *world, struct device_caller *out)
{
    struct cuda_driver found;
    const struct cuda_driver *driver = world ? &((const struct cuda_world *)world)->driver : &found;
    if (!world)
        cuda_driver_find(&found);
    out->had_error = cudaPeekAtLastError() != cudaSuccess;
    out->context = NULL;
    out->capture_mode = exchange_mode(driver, cudaStreamCaptureModeRelaxed);
    out->exchange_mode = out->capture_mode >= 0 ? driver->exchange_mode : NULL;
    out->set_current = driver->has_contexts ? driver->set_current : NULL;
    /* a driver that nobody has used says so, and there is no context */
    if (out->set_current && driver->get_current(&out->context) != 0)
        out->context = NULL;
    if (cudaGetDevice(&out->gpu) == cudaSuccess)
        return;
    out->gpu = -1;
    if (!out->had_error)
        (void)cudaGetLastError();
}

void cuda_restore_caller(const struct device_caller *caller)
{
    if (caller->set_current)
        (void)caller->set_current(caller->context);
    else if (caller->gpu >= 0)
        (void)cudaSetDevice(caller->gpu);
    int mode = caller->capture_mode;
    if (caller->exchange_mode)
        (void)caller->exchange_mode(&mode);
    if (!caller->had_error)
        (void)cudaGetLastError();
}

/* ---- queries --------------------------------------------------------------------------------- */

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
    int answer = ask_on_gpu(world, world->driver.event_query, event, &entered);
    if (answer >= 0)
        return (cudaError_t)answer;
    return entered == cudaSuccess ? forget_not_ready(cudaEventQuery(event)) : entered;
}

cudaError_t cuda_ask_stream(const struct cuda_world *world, cudaStream_t stream)
{
    cudaError_t entered;
    int answer = ask_on_gpu(world, world->driver.stream_query, stream, &entered);
    if (answer >= 0)
        return (cudaError_t)answer;
    return entered == cudaSuccess ? forget_not_ready(cudaStreamQuery(stream)) : entered;
}

#else

/* ISO C wants a declaration in every file. */
typedef int cuda_caller_is_empty_without_cuda;

#endif
