/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_cuda.cu - see device.h: a GPU as the device.
 *
 * A handle of cuBLAS belongs to a thread, because the thread groups of a plan push at the same time. Its products have
 * the same bits in each run as long as a stream has a handle of its own; of TF32 it knows nothing unless it is asked.
 * A function that fails leaves its error to device_error.
 */
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <cstdio>

#include "device.h"

namespace
{

enum { THREADS = 128 };

thread_local char error[256];

int told(cudaError_t result, const char *call)
{
    if (result == cudaSuccess)
        return 0;
    std::snprintf(error, sizeof error, "%s: %s", call, cudaGetErrorString(result));
    return -1;
}

int told(cublasStatus_t result, const char *call)
{
    if (result == CUBLAS_STATUS_SUCCESS)
        return 0;
    std::snprintf(error, sizeof error, "%s: %s", call, cublasGetStatusString(result));
    return -1;
}

/* Closed with its thread. */
struct handle {
    cublasHandle_t blas = nullptr;
    ~handle()
    {
        if (blas)
            cublasDestroy(blas);
    }
};
thread_local handle mine;

int make_handle()
{
    return mine.blas ? 0 : told(cublasCreate(&mine.blas), "cublasCreate");
}

cudaStream_t stream_of(void *stream)
{
    return static_cast<cudaStream_t>(stream);
}

template <typename Arguments, void (*one)(const Arguments *, int)>
__global__ void each(Arguments arguments, int threads)
{
    int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < threads)
        one(&arguments, i);
}

/* A grid of no blocks is an error of CUDA. */
template <typename Arguments, void (*one)(const Arguments *, int)>
int launch(void *stream, const Arguments *arguments, int threads, const char *name)
{
    if (threads == 0)
        return 0;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>((threads + THREADS - 1) / THREADS));
    config.blockDim = dim3(THREADS);
    config.stream = stream_of(stream);
    return told(cudaLaunchKernelEx(&config, each<Arguments, one>, *arguments, threads), name);
}

} // namespace

const char *device_name(void)
{
    return "cuda";
}

int device_is_cuda(void)
{
    return 1;
}

/* A kernel is loaded when it is first launched, or asked for. */
static int load_kernels(void)
{
    cudaFuncAttributes attributes;
#define LOAD(name)                                                                                 \
    if (told(cudaFuncGetAttributes(&attributes, each<struct name, name##_one>), #name) != 0)       \
        return -1;
    KERNELS(LOAD)
#undef LOAD
    return 0;
}

int device_choose(int rank)
{
    int count = 0;
    if (told(cudaGetDeviceCount(&count), "cudaGetDeviceCount") != 0 || count == 0)
        return -1;
    if (told(cudaSetDevice(rank % count), "cudaSetDevice") != 0 || load_kernels() != 0 ||
        make_handle() != 0)
        return -1;
    return rank % count;
}

const char *device_error(void)
{
    return error;
}

/* ---- memory ---------------------------------------------------------------------------------- */

void *device_alloc(size_t bytes)
{
    void *memory = nullptr;
    return told(cudaMalloc(&memory, bytes), "cudaMalloc") == 0 ? memory : nullptr;
}

void device_free(void *memory)
{
    cudaFree(memory);
}

void *host_alloc(size_t bytes)
{
    void *memory = nullptr;
    if (told(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault), "cudaHostAlloc") != 0)
        return nullptr;
    for (size_t i = 0; i < bytes; i++)
        static_cast<char *>(memory)[i] = 0;
    return memory;
}

void host_free(void *memory)
{
    cudaFreeHost(memory);
}

static int copy(void *stream, void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    if (bytes == 0)
        return 0;
    if (told(cudaMemcpyAsync(to, from, bytes, kind, stream_of(stream)), "cudaMemcpyAsync") != 0)
        return -1;
    return stream ? 0 : told(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}

int device_write(void *stream, void *device, const void *host, size_t bytes)
{
    return copy(stream, device, host, bytes, cudaMemcpyHostToDevice);
}

int device_read(void *stream, void *host, const void *device, size_t bytes)
{
    return copy(stream, host, device, bytes, cudaMemcpyDeviceToHost);
}

/* ---- products -------------------------------------------------------------------------------- */

/* cuBLAS stores by columns: there c' = b' a' is the same product. */
int device_multiply(void *stream, const struct product *p)
{
    const float one = 1, zero = 0;
    if (make_handle() != 0 ||
        told(cublasSetStream(mine.blas, stream_of(stream)), "cublasSetStream") != 0)
        return -1;
    return told(cublasSgemm(mine.blas, p->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                            p->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, p->n, p->m, p->k, &one,
                            p->b, p->b_transposed ? p->k : p->n, p->a,
                            p->a_transposed ? p->m : p->k, &zero, p->c, p->n),
                "cublasSgemm");
}

/* ---- kernels --------------------------------------------------------------------------------- */

#define LAUNCH(name)                                                                               \
    int device_##name(void *stream, const struct name *arguments, int threads)                     \
    {                                                                                              \
        return launch<struct name, name##_one>(stream, arguments, threads, #name);                 \
    }
KERNELS(LAUNCH)
