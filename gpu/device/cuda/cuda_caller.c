/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_caller.c - the GPU that is a thread's current one, and a caller's state of CUDA.
 *
 * The runtime works on the driver's context that is current on the calling thread. cudaSetDevice makes the one of a GPU
 * current, and since CUDA 12 makes it if there is none: some hundred MiB on a GPU that may be another rank's, or nobody's.
 * So the thread of a caller could not get its GPU back by a number. Where the driver gives its functions out, a thread
 * enters the world's GPU by that one's context, and leaves it by the context that was current before, or by none. The
 * GPU that the caller has chosen stays chosen, and no other gets a context. Elsewhere cudaSetDevice does both.
 *
 * The context is the primary one, which the runtime has, too; it is retained once for a world and not released, because
 * the runtime keeps it until the process ends.
 */
#include "cuda_impl.h"

#ifdef HAVE_CUDA

cudaError_t cuda_make_context(struct cuda_world *world)
{
    const struct cuda_driver *driver = cuda_driver();
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
    return world->context ? (cudaError_t)cuda_driver()->set_current(world->context)
                          : cudaSetDevice(world->gpu);
}

/* The last error, which a call that succeeds does not change, and a look does not take away. */
void cuda_note_caller(struct device_caller *out)
{
    const struct cuda_driver *driver = cuda_driver();
    out->had_error = cudaPeekAtLastError() != cudaSuccess;
    out->context = NULL;
    out->by_context = driver->has_contexts;
    /* a driver that nobody has used says so, and there is no context */
    if (out->by_context && driver->get_current(&out->context) != 0)
        out->context = NULL;
    if (cudaGetDevice(&out->gpu) == cudaSuccess)
        return;
    out->gpu = -1;
    if (!out->had_error)
        (void)cudaGetLastError();
}

void cuda_restore_caller(const struct device_caller *caller)
{
    if (caller->by_context)
        (void)cuda_driver()->set_current(caller->context);
    else if (caller->gpu >= 0)
        (void)cudaSetDevice(caller->gpu);
    if (!caller->had_error)
        (void)cudaGetLastError();
}

#else

/* ISO C wants a declaration in every file. */
typedef int cuda_caller_is_empty_without_cuda;

#endif
