/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_driver.c - functions of the driver, which the runtime gives out since CUDA 12; NULL where it does not.
 *
 * Handles and numbers of errors are the same for driver and runtime.
 */
#include "cuda_impl.h"

#ifdef HAVE_CUDA

enum { DRIVER_VERSION = 12000 };

static struct cuda_driver driver;
static pthread_once_t looked = PTHREAD_ONCE_INIT;

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
    find("cuEventQuery", &driver.event_query);
    find("cuStreamQuery", &driver.stream_query);
    find("cuCtxGetCurrent", &driver.get_current);
    find("cuCtxSetCurrent", &driver.set_current);
    find("cuDeviceGet", &driver.device_get);
    find("cuDevicePrimaryCtxRetain", &driver.retain);
    driver.has_contexts =
        driver.get_current && driver.set_current && driver.device_get && driver.retain;
    if (!had_error)
        (void)cudaGetLastError(); /* a refusal */
}

const struct cuda_driver *cuda_driver(void)
{
    pthread_once(&looked, look);
    return &driver;
}

#else

/* ISO C wants a declaration in every file. */
typedef int cuda_driver_is_empty_without_cuda;

#endif
