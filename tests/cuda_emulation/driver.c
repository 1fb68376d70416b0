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

/* A context is the number of its device. */
CUresult cuCtxGetCurrent(CUcontext *out)
{
    int device = 0;
    const cudaError_t error = cudaGetDevice(&device);
    *out = (CUcontext)(intptr_t)device;
    return result_of(error);
}

CUresult cuDriverGetVersion(int *version)
{
    return result_of(cudaDriverGetVersion(version));
}

#undef cuCtxSynchronize
CUresult cuCtxSynchronize(void);
CUresult cuCtxSynchronize(void)
{
    return result_of(cudaDeviceSynchronize());
}

CUresult cuCtxSynchronize_v2(CUcontext context);
CUresult cuCtxSynchronize_v2(CUcontext context)
{
    CUcontext own;
    CUresult result = cuCtxGetCurrent(&own);
    if (result == CUDA_SUCCESS)
        result = cuCtxSetCurrent(context ? context : own);
    if (result == CUDA_SUCCESS)
        result = cuCtxSynchronize();
    (void)cuCtxSetCurrent(own);
    return result;
}

CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
    return result_of(cudaStreamCreateWithFlags(out, flags));
}

CUresult cuStreamSynchronize(CUstream stream)
{
    return result_of(cudaStreamSynchronize(stream));
}

CUresult cuStreamQuery(CUstream stream)
{
    return result_of(cudaStreamQuery(stream));
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

CUresult cuEventSynchronize(CUevent event)
{
    return result_of(cudaEventSynchronize(event));
}

CUresult cuEventQuery(CUevent event)
{
    return result_of(cudaEventQuery(event));
}

#undef cuEventElapsedTime
CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to);
CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
    return result_of(cudaEventElapsedTime(ms, from, to));
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent from, CUevent to);
CUresult cuEventElapsedTime_v2(float *ms, CUevent from, CUevent to)
{
    return cuEventElapsedTime(ms, from, to);
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

/* Arguments that are packed stand behind each other, aligned as their sizes. */
static void **unpack(bool fills, void **extra, void *out[4])
{
    char *at = NULL;
    while (*extra != CU_LAUNCH_PARAM_END) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            at = extra[1];
        extra += 2;
    }
    for (int i = 0; i < 4; i++)
        out[i] = at + 8 * i;
    return at && (fills || out[3]) ? out : NULL;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        CUstream stream, void **args, void **extra)
{
    const bool fills = (uintptr_t)function == (uintptr_t)&kernels[0];
    void *unpacked[4];
    (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z;
    (void)shared;
    if (!args && extra)
        args = unpack(fills, extra, unpacked);
    if (!args)
        return CUDA_ERROR_INVALID_VALUE;
    if (fills)
        return (CUresult)kernels_fill_f32(stream, *(void **)args[0], *(long long *)args[1],
                                          *(float *)args[2]);
    return (CUresult)kernels_axpy(stream, *(void **)args[0], *(void **)args[1],
                                  *(long long *)args[2], *(float *)args[3]);
}

/* As of a program that is compiled for a default stream of each thread. */
CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                             unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                             CUstream stream, void **args, void **extra);
CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                             unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                             CUstream stream, void **args, void **extra)
{
    return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared,
                          stream ? stream : CU_STREAM_PER_THREAD, args, extra);
}

/* Attributes change nothing: no kernel begins before the one in front of it has ended. */
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **args,
                          void **extra)
{
    return cuLaunchKernel(function, config->gridDimX, config->gridDimY, config->gridDimZ,
                          config->blockDimX, config->blockDimY, config->blockDimZ,
                          config->sharedMemBytes, config->hStream, args, extra);
}

/* ---- graphs ----------------------------------------------------------------------------------- */

#undef cuGraphInstantiate
#undef cuGraphExecUpdate
CUresult cuGraphInstantiate(CUgraphExec *out, CUgraph graph, CUgraphNode *node, char *log,
                            size_t bytes);
CUresult cuGraphInstantiate(CUgraphExec *out, CUgraph graph, CUgraphNode *node, char *log,
                            size_t bytes)
{
    (void)node, (void)log, (void)bytes;
    return result_of(cudaGraphInstantiateWithFlags(out, graph, 0));
}

CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph graph, CUgraphNode *node, char *log,
                               size_t bytes);
CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph graph, CUgraphNode *node, char *log,
                               size_t bytes)
{
    return cuGraphInstantiate(out, graph, node, log, bytes);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
    return result_of(cudaGraphInstantiateWithFlags(out, graph, flags));
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode)
{
    return result_of(cudaStreamBeginCapture(stream, (enum cudaStreamCaptureMode)mode));
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *out)
{
    return result_of(cudaStreamIsCapturing(stream, (enum cudaStreamCaptureStatus *)out));
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *out)
{
    return result_of(cudaStreamEndCapture(stream, out));
}

CUresult cuGraphExecDestroy(CUgraphExec executable)
{
    return result_of(cudaGraphExecDestroy(executable));
}

CUresult cuGraphDestroy(CUgraph graph)
{
    return result_of(cudaGraphDestroy(graph));
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream)
{
    return result_of(cudaGraphLaunch(executable, stream));
}

/* Functions that only have an address: a program may ask for it. */
#define UNCALLED(name)                                                                             \
    CUresult name(void);                                                                           \
    CUresult name(void)                                                                            \
    {                                                                                              \
        return CUDA_ERROR_NOT_SUPPORTED;                                                           \
    }
UNCALLED(emulated_context)
UNCALLED(emulated_update)

#if CUDA_VERSION >= 13000
#undef cuMemcpyBatchAsync
CUresult cuMemcpyBatchAsync(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
                            CUmemcpyAttributes *attributes, size_t *first, size_t attribute_count,
                            size_t *failed, CUstream stream);
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
                               CUmemcpyAttributes *attributes, size_t *first,
                               size_t attribute_count, CUstream stream);
#endif

/* ---- addresses of functions ------------------------------------------------------------------- */

/* The names and versions of cudaTypedefs.h: the last row that is not newer than what is asked for is meant. */
static const struct {
    const char *name;
    int since;
    bool per_thread;
    void (*function)(void);
} given[] = {
#define ROW(name, since, per_thread, function)                                                     \
    {                                                                                              \
        name, since, per_thread, (void (*)(void))(function)                                        \
    }
    ROW("cuInit", 2000, false, cuInit),
    ROW("cuDriverGetVersion", 2020, false, cuDriverGetVersion),
    ROW("cuCtxSetCurrent", 4000, false, cuCtxSetCurrent),
    ROW("cuCtxCreate", 3020, false, emulated_context),
    ROW("cuCtxSynchronize", 2000, false, cuCtxSynchronize),
    ROW("cuCtxSynchronize", 13000, false, cuCtxSynchronize_v2),
    ROW("cuStreamCreate", 2000, false, cuStreamCreate),
    ROW("cuStreamSynchronize", 2000, false, cuStreamSynchronize),
    ROW("cuStreamWaitEvent", 3020, false, cuStreamWaitEvent),
    ROW("cuEventCreate", 2000, false, cuEventCreate),
    ROW("cuEventRecord", 2000, false, cuEventRecord),
    ROW("cuEventElapsedTime", 2000, false, cuEventElapsedTime),
    ROW("cuEventElapsedTime", 12080, false, cuEventElapsedTime_v2),
    ROW("cuMemAlloc", 3020, false, cuMemAlloc),
    ROW("cuMemFree", 3020, false, cuMemFree),
    ROW("cuMemcpyDtoDAsync", 3020, false, cuMemcpyDtoDAsync),
#if CUDA_VERSION >= 13000
    ROW("cuMemcpyBatchAsync", 12080, false, cuMemcpyBatchAsync),
    ROW("cuMemcpyBatchAsync", 13000, false, cuMemcpyBatchAsync_v2),
#endif
    ROW("cuModuleGetFunction", 2000, false, cuModuleGetFunction),
    ROW("cuLaunchKernel", 4000, false, cuLaunchKernel),
    ROW("cuLaunchKernel", 7000, true, cuLaunchKernel_ptsz),
    ROW("cuGraphInstantiate", 10000, false, cuGraphInstantiate),
    ROW("cuGraphInstantiate", 11000, false, cuGraphInstantiate_v2),
    ROW("cuGraphInstantiate", 12000, false, cuGraphInstantiateWithFlags),
    ROW("cuGraphExecUpdate", 10020, false, emulated_update),
};

/* A driver has none of what is newer than itself. */
#undef cuGetProcAddress
CUresult cuGetProcAddress(const char *name, void **out, int version, cuuint64_t flags);
CUresult cuGetProcAddress(const char *name, void **out, int version, cuuint64_t flags)
{
    const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
    int own = 0;
    void (*found)(void) = NULL;
    (void)cuDriverGetVersion(&own);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (strcmp(name, given[i].name) == 0 && given[i].since <= version &&
            given[i].since <= own && (per_thread || !given[i].per_thread))
            found = given[i].function;
    memcpy(out, &found, sizeof *out);
    return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

#if CUDA_VERSION >= 12000
typedef CUdriverProcAddressQueryResult found_how;
#else
typedef int found_how;
#endif
CUresult cuGetProcAddress_v2(const char *name, void **out, int version, cuuint64_t flags,
                             found_how *how);
CUresult cuGetProcAddress_v2(const char *name, void **out, int version, cuuint64_t flags,
                             found_how *how)
{
    const CUresult result = cuGetProcAddress(name, out, version, flags);
    if (how)
        *how = (found_how)(result == CUDA_SUCCESS ? 0 : 1);
    return result;
}
