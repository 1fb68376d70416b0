/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dense.cu - the arithmetic of dense layers on the CUDA device: the functions of gpu/device/dense.h, a thread for each
 * number of the result. Compiled with -fmad=false; nvcc divides and rounds as IEEE 754 says unless told otherwise. So
 * the bits are those of the host device.
 *
 * What kernels.cu says about grids, sizes and launches holds here, too.
 */
#include "kernels.h"

#include <cuda_runtime.h>

namespace
{

enum { THREADS = 128, MAX_BLOCKS = 4096 };

__global__ void dense_numbers_of(struct dense dense)
{
    long long numbers = dense_numbers(&dense);
    long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < numbers;
         i += step)
        dense_element(&dense, i);
}

} // namespace

int kernels_load_dense(void)
{
    cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void *>(dense_numbers_of));
}

int kernels_dense(void *stream, const struct dense *dense)
{
    long long numbers = dense_numbers(dense), wanted = (numbers + THREADS - 1) / THREADS;
    if (numbers == 0)
        return cudaSuccess;
    cudaLaunchConfig_t config = {};
    config.gridDim = static_cast<unsigned>(wanted < MAX_BLOCKS ? wanted : static_cast<long long>(MAX_BLOCKS));
    config.blockDim = THREADS;
    config.stream = static_cast<cudaStream_t>(stream);
    return cudaLaunchKernelEx(&config, dense_numbers_of, *dense);
}
