/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.cu - the kernels of the CUDA device; see kernels.h.
 *
 * They are plain on purpose: they stand for a model's kernels in time and in data flow, not in tuning.
 * What holds for all of them:
 *
 *   - Each loops with a stride of the whole grid, so that a grid of limited size covers any problem:
 *     4096 blocks at most in x, of 2^31-1 allowed, and 1024 in y, of 65535.
 *   - Sizes and indexes are long long. blockIdx, blockDim and threadIdx are 32 bits wide and unsigned, so
 *     one factor of every product is widened before it is multiplied. i + step cannot overflow: i is less
 *     than the elements of a buffer, at most 2^63 / 4, and step at most 2^20.
 *   - No kernel is launched for nothing to do: a grid of 0 blocks is an error of CUDA.
 *   - A launch that is refused says so in its return value, which goes up to cuda_push. What goes wrong
 *     later shows at the next call that looks at the stream, as CUDA does it.
 *   - Addresses are aligned to what is read through them. Buffers begin on 256 bytes (cudaMalloc), offsets
 *     fall on elements (gpu/device/device.c, check_matrix), indexes of a gather on 4 bytes like f32; the units of
 *     a gather's rows are chosen by `divides`.
 *
 * The program is C: with -Xcompiler -fno-exceptions,-fno-threadsafe-statics this file needs no C++
 * library. (The statics are in the stubs nvcc writes for <<<>>>, which we do not use: launches go
 * through cudaLaunchKernelEx, which returns its error instead of leaving it in a variable.)
 */
#include "kernels.h"

#include <cuda_runtime.h>

namespace
{

enum { TILE = 32, THREADS = 256, MAX_BLOCKS = 4096, MAX_GRID_Y = 1024 };

/* Nanoseconds of a clock that all of the GPU shares. It goes on at its own pace whatever the clock of the
   cores does, as clock64 does not; its steps depend on the GPU and are a microsecond at worst. 64 bits last
   for centuries. `volatile`: read anew each time. */
__device__ unsigned long long global_ns()
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

enum { LOOK_EVERY_NS = 20000, LOOK_TAKES_NS = 4000 };

/* One thread. To look at *stop is to read the host's memory, a microsecond or two, which must not fall on the
   end of the time that was asked for; so it is looked at now and then, and not at the very end. __nanosleep
   (sm_70) takes 0 to twice its argument: the end is at most 200 ns late. */
__global__ void spin(long long time_ns, const volatile int *stop)
{
    unsigned long long now = global_ns(), look = now;
    const unsigned long long end = now + static_cast<unsigned long long>(time_ns); /* time_ns >= 0 */
    while (now < end) {
        if (now >= look && end - now > LOOK_TAKES_NS) {
            if (*stop != 0)
                return;
            look = now + LOOK_EVERY_NS;
        }
        __nanosleep(100);
        now = global_ns();
    }
}

template <typename Real> __global__ void fill(Real *out, long long elements, Real value)
{
    long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < elements;
         i += step)
        out[i] = value;
}

__global__ void axpy(const float *x, float *y, long long elements, float alpha)
{
    long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < elements;
         i += step)
        y[i] += alpha * x[i];
}

/* One block copies one row at a time, in units of Unit. An index is any number of 32 bits, so it is
   taken modulo the rows of the table (1 to 2^32-1, checked by gpu/device/device.c) before it is widened. */
template <typename Unit>
__global__ void gather(const Unit *table, const unsigned *index, Unit *out, long long rows,
                       long long units, unsigned table_rows)
{
    for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
        const Unit *from = table + static_cast<long long>(index[row] % table_rows) * units;
        for (long long i = threadIdx.x; i < units; i += blockDim.x)
            out[row * units + i] = from[i];
    }
}

/* One tile of c: TILE x TILE threads, each one number; a and b come through shared memory. Threads beyond the
   edge of a matrix load zeros and take part all the same: all of a block reach every __syncthreads. A float's
   part_b has rows of 33 numbers against bank conflicts; 16.25 KiB of shared memory at most, for doubles.
   -Xptxas -v for sm_90: 40 registers a thread, no spills, so 1024 threads fit (65536 registers). */
template <typename Real>
__device__ void gemm_tile(const Real *a, const Real *b, Real *c, long long m, long long n,
                          long long k, long long first_row, long long first_column)
{
    __shared__ Real part_a[TILE][TILE];
    __shared__ Real part_b[TILE][TILE + 1];
    long long row = first_row + threadIdx.y, column = first_column + threadIdx.x;
    Real sum = 0;
    for (long long p = 0; p < k; p += TILE) {
        long long a_column = p + threadIdx.x, b_row = p + threadIdx.y;
        part_a[threadIdx.y][threadIdx.x] = row < m && a_column < k ? a[row * k + a_column] : 0;
        part_b[threadIdx.y][threadIdx.x] = b_row < k && column < n ? b[b_row * n + column] : 0;
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            sum += part_a[threadIdx.y][i] * part_b[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && column < n)
        c[row * n + column] = sum;
}

/* The bounds of both loops are the same for all threads of a block, and the __syncthreads that ends a tile's
   last part is passed before the next tile overwrites it. */
template <typename Real>
__global__ void gemm(const Real *a, const Real *b, Real *c, long long m, long long n, long long k)
{
    for (long long row = static_cast<long long>(blockIdx.y) * TILE; row < m;
         row += static_cast<long long>(gridDim.y) * TILE)
        for (long long column = static_cast<long long>(blockIdx.x) * TILE; column < n;
             column += static_cast<long long>(gridDim.x) * TILE)
            gemm_tile(a, b, c, m, n, k, row, column);
}

/* At least 1 and at most `most`, so the cast loses nothing. */
unsigned blocks(long long items, long long per_block, long long most)
{
    long long count = (items + per_block - 1) / per_block;
    return static_cast<unsigned>(count < 1 ? 1 : count < most ? count : most);
}

/* cudaLaunchKernelEx copies the arguments by the kernel's own parameter types: every one is converted to
   its type here. No dynamic shared memory, no attributes. */
template <typename... Params, typename... Args>
int launch(void (*kernel)(Params...), dim3 grid, dim3 block, void *stream, Args... args)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.stream = static_cast<cudaStream_t>(stream);
    return cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...);
}

template <typename Real>
int launch_gemm(void *stream, const void *a, const void *b, void *c, long long m, long long n,
                long long k)
{
    if (m == 0 || n == 0)
        return cudaSuccess;
    return launch(gemm<Real>, dim3(blocks(n, TILE, MAX_BLOCKS), blocks(m, TILE, MAX_GRID_Y)),
                  dim3(TILE, TILE), stream, static_cast<const Real *>(a),
                  static_cast<const Real *>(b), static_cast<Real *>(c), m, n, k);
}

template <typename Real> int launch_fill(void *stream, void *out, long long elements, Real value)
{
    if (elements == 0)
        return cudaSuccess;
    return launch(fill<Real>, blocks(elements, THREADS, MAX_BLOCKS), THREADS, stream,
                  static_cast<Real *>(out), elements, value);
}

template <typename Unit>
int launch_gather(void *stream, const void *table, const void *index, void *out, long long rows,
                  long long row_bytes, long long table_rows)
{
    return launch(gather<Unit>, blocks(rows, 1, MAX_BLOCKS), THREADS, stream,
                  static_cast<const Unit *>(table), static_cast<const unsigned *>(index),
                  static_cast<Unit *>(out), rows, row_bytes / static_cast<long long>(sizeof(Unit)),
                  table_rows);
}

/* A row and both its ends fall on units of `size` bytes. */
bool divides(size_t size, const void *table, const void *out, long long row_bytes)
{
    return (reinterpret_cast<uintptr_t>(table) | reinterpret_cast<uintptr_t>(out) |
            static_cast<uintptr_t>(row_bytes)) %
               size ==
           0;
}

} // namespace

int kernels_load(void)
{
    const void *const all[] = {
        reinterpret_cast<const void *>(spin),
        reinterpret_cast<const void *>(fill<float>),
        reinterpret_cast<const void *>(fill<double>),
        reinterpret_cast<const void *>(axpy),
        reinterpret_cast<const void *>(gather<uint16_t>),
        reinterpret_cast<const void *>(gather<uint32_t>),
        reinterpret_cast<const void *>(gather<uint4>),
        reinterpret_cast<const void *>(gemm<float>),
        reinterpret_cast<const void *>(gemm<double>),
    };
    for (const void *kernel : all) {
        cudaFuncAttributes attributes;
        cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);
        if (error != cudaSuccess)
            return error;
    }
    return kernels_load_dense();
}

int kernels_spin(void *stream, int64_t time_ns, const int *stop)
{
    return launch(spin, 1, 1, stream, static_cast<long long>(time_ns), stop);
}

int kernels_fill_f32(void *stream, void *out, int64_t elements, float value)
{
    return launch_fill<float>(stream, out, elements, value);
}

int kernels_fill_f64(void *stream, void *out, int64_t elements, double value)
{
    return launch_fill<double>(stream, out, elements, value);
}

int kernels_axpy(void *stream, const void *x, void *y, int64_t elements, float alpha)
{
    if (elements == 0)
        return cudaSuccess;
    return launch(axpy, blocks(elements, THREADS, MAX_BLOCKS), THREADS, stream,
                  static_cast<const float *>(x), static_cast<float *>(y), elements, alpha);
}

int kernels_gather(void *stream, const void *table, const void *index, void *out, int64_t rows,
                   int64_t row_bytes, int64_t table_rows)
{
    if (rows == 0 || row_bytes == 0)
        return cudaSuccess;
    if (divides(sizeof(uint4), table, out, row_bytes))
        return launch_gather<uint4>(stream, table, index, out, rows, row_bytes, table_rows);
    if (divides(sizeof(uint32_t), table, out, row_bytes))
        return launch_gather<uint32_t>(stream, table, index, out, rows, row_bytes, table_rows);
    return launch_gather<uint16_t>(stream, table, index, out, rows, row_bytes, table_rows);
}

int kernels_gemm_f32(void *stream, const void *a, const void *b, void *c, int64_t m, int64_t n,
                     int64_t k)
{
    return launch_gemm<float>(stream, a, b, c, m, n, k);
}

int kernels_gemm_f64(void *stream, const void *a, const void *b, void *c, int64_t m, int64_t n,
                     int64_t k)
{
    return launch_gemm<double>(stream, a, b, c, m, n, k);
}
