/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.c - emulated CUDA: not a GPU. Functions of cuda.h, each by that of the runtime, for the tests of `swsim record`.
 *
 * A module has two kernels, those of gpu/device/cuda/kernels.h, which the program that opens this library exports.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/device/cuda/kernels.h"

static CUresult result_of(cudaError_t error)
{
    return (CUresult)error;
}

CUresult cuInit(unsigned flags)
{
    (void)flags;
    return result_of((cudaError_t)kernels_load());
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    return result_of(cudaGetDevice(device));
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    return result_of(cudaSetDevice((int)(intptr_t)context));
}

CUresult cuCtxSynchronize(void)
{
    return result_of(cudaDeviceSynchronize());
}

CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
    return result_of(cudaStreamCreateWithFlags(out, flags));
}

CUresult cuStreamSynchronize(CUstream stream)
{
    return result_of(cudaStreamSynchronize(stream));
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    return result_of(cudaStreamWaitEvent(stream, event, flags));
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *arg)
{
    return result_of(cudaLaunchHostFunc(stream, function, arg));
}

CUresult cuEventCreate(CUevent *out, unsigned flags)
{
    return result_of(cudaEventCreateWithFlags(out, flags));
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    return result_of(cudaEventRecord(event, stream));
}

/* ---- kernels ---------------------------------------------------------------------------------- */

static const char *const kernels[] = {"_Z4fillIfEvPT_xS0_", "_Z4axpyPKfPfxf"};

CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name)
{
    (void)module;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (strcmp(name, kernels[i]) == 0) {
            *out = (CUfunction)(uintptr_t)&kernels[i];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        CUstream stream, void **args, void **extra)
{
    (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z;
    (void)shared, (void)extra;
    if ((uintptr_t)function == (uintptr_t)&kernels[0])
        return (CUresult)kernels_fill_f32(stream, *(void **)args[0], *(long long *)args[1],
                                          *(float *)args[2]);
    return (CUresult)kernels_axpy(stream, *(void **)args[0], *(void **)args[1],
                                  *(long long *)args[2], *(float *)args[3]);
}

/* ---- addresses of functions ------------------------------------------------------------------- */

#define GIVEN(X)                                                                                   \
    X(cuInit)                                                                                      \
    X(cuCtxSetCurrent)                                                                             \
    X(cuCtxSynchronize)                                                                            \
    X(cuStreamCreate)                                                                              \
    X(cuStreamSynchronize)                                                                         \
    X(cuStreamWaitEvent)                                                                           \
    X(cuEventCreate)                                                                               \
    X(cuEventRecord)                                                                               \
    X(cuMemAlloc)                                                                                  \
    X(cuMemFree)                                                                                   \
    X(cuModuleGetFunction)                                                                         \
    X(cuLaunchKernel)

static const struct {
    const char *name;
    void (*function)(void);
} given[] = {
#define X(name) {#name, (void (*)(void))name},
    GIVEN(X)
#undef X
};

/* Names are those of cuda.h: "cuMemAlloc" is its newest version, cuMemAlloc_v2. */
#undef cuGetProcAddress
CUresult cuGetProcAddress(const char *name, void **out, int version, cuuint64_t flags);
CUresult cuGetProcAddress(const char *name, void **out, int version, cuuint64_t flags)
{
    (void)version, (void)flags;
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        const char *own = given[i].name;
        const size_t length = strcspn(own, "_");
        if (strlen(name) == length && strncmp(own, name, length) == 0) {
            memcpy(out, &given[i].function, sizeof *out);
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_NOT_FOUND;
}
