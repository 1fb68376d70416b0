/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.c - emulated CUDA: not a GPU. The kernels of gpu/device/cuda/kernels.cu, computed on the host.
 *
 * nvcc's object registers its kernels here by their mangled names and launches them here. The wrappers
 * in kernels.cu (grids, units, order of arguments) stay as they are; only the device code is replaced.
 */
#include "emulation.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MAX_ARGUMENTS = 8,
    MAX_KERNELS = 64,
    MAX_THREADS = 1024,
    MAX_GRID_YZ = 65535,
    MAX_BLOCK_Z = 64,
    MAX_SHARED = 48 << 10
};

#include "gpu/device/dense.h"

/* An argument as stored in the launch's array. */
union argument {
    const void *pointer;
    void *target;
    long long integer;
    unsigned natural;
    float single;
    double real;
    struct dense dense;
};

struct launch {
    const struct kernel *kernel;
    int gpu;
    union argument args[MAX_ARGUMENTS];
};

struct kernel {
    const char *mangled; /* a part of the name that no other kernel has */
    const char *
        arguments; /* p: pointer, l: long long, u: unsigned, f: float, d: double, s: struct dense */
    cudaError_t (*run)(const struct launch *launch);
};

/* The memory that an argument points to, or NULL, with a message. */
static void *reach(const struct launch *launch, int argument, long long count, size_t size)
{
    return memory_reach(launch->gpu, launch->args[argument].pointer, (size_t)count * size,
                        launch->kernel->mangled);
}

static cudaError_t run_spin(const struct launch *launch)
{
    int64_t end_ns = emulation_now_ns() + launch->args[0].integer;
    const int *stop = reach(launch, 1, 1, sizeof *stop);
    while (stop && emulation_now_ns() < end_ns && !__atomic_load_n(stop, __ATOMIC_SEQ_CST) &&
           gpu_error(launch->gpu) == cudaSuccess) {
        int64_t left_ns = end_ns - emulation_now_ns();
        if (left_ns > 0)
            nanosleep(&(struct timespec){.tv_nsec = left_ns < 200000 ? (long)left_ns : 200000},
                      NULL);
    }
    return stop ? cudaSuccess : cudaErrorIllegalAddress;
}

static cudaError_t run_fill_f32(const struct launch *launch)
{
    long long elements = launch->args[1].integer;
    float *out = reach(launch, 0, elements, sizeof *out);
    for (long long i = 0; out && i < elements; i++)
        out[i] = launch->args[2].single;
    return out ? cudaSuccess : cudaErrorIllegalAddress;
}

static cudaError_t run_fill_f64(const struct launch *launch)
{
    long long elements = launch->args[1].integer;
    double *out = reach(launch, 0, elements, sizeof *out);
    for (long long i = 0; out && i < elements; i++)
        out[i] = launch->args[2].real;
    return out ? cudaSuccess : cudaErrorIllegalAddress;
}

static cudaError_t run_axpy(const struct launch *launch)
{
    long long elements = launch->args[2].integer;
    const float *x = reach(launch, 0, elements, sizeof *x);
    float *y = reach(launch, 1, elements, sizeof *y);
    if (!x || !y)
        return cudaErrorIllegalAddress;
    for (long long i = 0; i < elements; i++)
        y[i] += launch->args[3].single * x[i];
    return cudaSuccess;
}

static cudaError_t gather(const struct launch *launch, size_t unit)
{
    long long rows = launch->args[3].integer, units = launch->args[4].integer;
    unsigned table_rows = launch->args[5].natural;
    size_t row_bytes = (size_t)units * unit;
    const char *table = reach(launch, 0, table_rows, row_bytes);
    const uint32_t *index = reach(launch, 1, rows, sizeof *index);
    char *out = reach(launch, 2, rows, row_bytes);
    if (!table || !index || !out)
        return cudaErrorIllegalAddress;
    if (((uintptr_t)launch->args[0].pointer | (uintptr_t)launch->args[2].pointer) % unit != 0)
        return cudaErrorMisalignedAddress;
    for (long long i = 0; i < rows; i++)
        memcpy(out + (size_t)i * row_bytes, table + index[i] % table_rows * row_bytes, row_bytes);
    return cudaSuccess;
}

static cudaError_t run_gather_16(const struct launch *launch)
{
    return gather(launch, 2);
}

static cudaError_t run_gather_32(const struct launch *launch)
{
    return gather(launch, 4);
}

static cudaError_t run_gather_128(const struct launch *launch)
{
    return gather(launch, 16);
}

#define GEMM(name, real)                                                                           \
    static cudaError_t name(const struct launch *launch)                                           \
    {                                                                                              \
        long long m = launch->args[3].integer, n = launch->args[4].integer,                        \
                  k = launch->args[5].integer;                                                     \
        const real *a = reach(launch, 0, m * k, sizeof(real));                                     \
        const real *b = reach(launch, 1, k * n, sizeof(real));                                     \
        real *c = reach(launch, 2, m * n, sizeof(real));                                           \
        if (!a || !b || !c)                                                                        \
            return cudaErrorIllegalAddress;                                                        \
        memset(c, 0, (size_t)(m * n) * sizeof(real));                                              \
        for (long long row = 0; row < m; row++)                                                    \
            for (long long p = 0; p < k; p++)                                                      \
                for (long long column = 0; column < n; column++)                                   \
                    c[row * n + column] += a[row * k + p] * b[p * n + column];                     \
        return cudaSuccess;                                                                        \
    }
GEMM(run_gemm_f32, float)
GEMM(run_gemm_f64, double)

/* The memory of an operand, NULL if it has none; `good` becomes false where it cannot be reached. */
static void *reach_operand(const struct launch *launch, const void *at, int64_t numbers, bool *good)
{
    void *reached = numbers ? memory_reach(launch->gpu, at, (size_t)numbers * sizeof(float),
                                           launch->kernel->mangled)
                            : NULL;
    *good = *good && (reached || numbers == 0);
    return reached;
}

static cudaError_t run_dense(const struct launch *launch)
{
    struct dense dense = launch->args[0].dense;
    int64_t sizes[DENSE_OPERANDS];
    bool good = true;
    dense_sizes(&dense, sizes);
    dense.a = reach_operand(launch, dense.a, sizes[0], &good);
    dense.b = reach_operand(launch, dense.b, sizes[1], &good);
    dense.c = reach_operand(launch, dense.c, sizes[2], &good);
    dense.d = reach_operand(launch, dense.d, sizes[3], &good);
    if (!good)
        return cudaErrorIllegalAddress;
    for (int64_t i = 0; i < dense_numbers(&dense); i++)
        dense_element(&dense, i);
    return cudaSuccess;
}

static const struct kernel kernels[] = {
    {"4spinE", "lp", run_spin},
    {"4fillIfE", "plf", run_fill_f32},
    {"4fillIdE", "pld", run_fill_f64},
    {"4axpyE", "pplf", run_axpy},
    {"6gatherItE", "pppllu", run_gather_16},
    {"6gatherIjE", "pppllu", run_gather_32},
    {"6gatherI5uint4E", "pppllu", run_gather_128},
    {"4gemmIfE", "ppplll", run_gemm_f32},
    {"4gemmIdE", "ppplll", run_gemm_f64},
    {"16dense_numbers_of", "s", run_dense},
};

/* ---- called by nvcc's object ------------------------------------------------------------------- */

/* Filled before main, by the object's constructors. */
static struct {
    const void *function;        /* the host function that represents the kernel */
    const struct kernel *kernel; /* one of the two */
    const struct kernel_of_program *own;
    bool loaded;
} registered[MAX_KERNELS];
static int registered_count;

void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int thread_limit, uint3 *thread, uint3 *block, dim3 *block_size,
                            dim3 *grid_size, int *warp_size);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
                               size_t shared, cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);

void **__cudaRegisterFatBinary(void *binary)
{
    static void *handle[1];
    handle[0] = binary;
    return handle;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int thread_limit, uint3 *thread, uint3 *block, dim3 *block_size,
                            dim3 *grid_size, int *warp_size)
{
    (void)handle, (void)device, (void)thread_limit, (void)thread, (void)block, (void)block_size;
    (void)grid_size, (void)warp_size;
    const struct kernel *found = NULL;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels && !found; i++)
        if (strstr(name, kernels[i].mangled))
            found = &kernels[i];
    const struct kernel_of_program *own = kernels_of_program;
    while (own && own->mangled && !strstr(name, own->mangled))
        own++;
    if (!(found || (own && own->mangled)) || registered_count == MAX_KERNELS)
        emulation_misuse("kernel %s: tests/cuda_emulation/kernels.c has no host version of it",
                         name);
    registered[registered_count].function = host;
    registered[registered_count].own = own;
    registered[registered_count++].kernel = found;
}

/* The stubs for <<<>>> refer to these three; kernels.cu does not launch that way. */
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function)
{
    (void)kernel, (void)function;
    emulation_misuse("a launch by <<<>>> is not emulated");
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
                               size_t shared, cudaStream_t stream)
{
    (void)kernel, (void)grid, (void)block, (void)args, (void)shared, (void)stream;
    emulation_misuse("a launch by <<<>>> is not emulated");
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    (void)grid, (void)block, (void)shared, (void)stream;
    emulation_misuse("a launch by <<<>>> is not emulated");
}

/* ---- launching --------------------------------------------------------------------------------- */

static int find(const void *function)
{
    int i = 0;
    while (i < registered_count && registered[i].function != function)
        i++;
    return i;
}

bool kernel_known(const void *function)
{
    return find(function) < registered_count;
}

static size_t argument_bytes(char type)
{
    return type == 's' ? sizeof(struct dense) : type == 'u' || type == 'f' ? 4 : 8;
}

bool kernel_argument(const void *function, size_t index, size_t *bytes)
{
    const int i = find(function);
    const struct kernel *kernel = registered[i].kernel;
    if (index >= (kernel ? strlen(kernel->arguments) : 2))
        return false;
    *bytes = kernel       ? argument_bytes(kernel->arguments[index])
             : index == 0 ? registered[i].own->bytes
                          : sizeof(int);
    return true;
}

bool kernel_loaded(const void *function)
{
    int i = find(function);
    bool before = registered[i].loaded;
    registered[i].loaded = true;
    return before;
}

static cudaError_t run(struct CUstream_st *stream, void *payload)
{
    (void)stream;
    const struct launch *launch = payload;
    return launch->kernel->run(launch);
}

/* Copy one argument out of the caller's frame. */
static union argument take(char type, const void *from)
{
    union argument argument = {.integer = 0};
    memcpy(&argument, from, argument_bytes(type));
    return argument;
}

static bool fits(dim3 grid, dim3 block)
{
    return grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.x <= INT32_MAX && grid.y <= MAX_GRID_YZ &&
           grid.z <= MAX_GRID_YZ && block.x > 0 && block.y > 0 && block.z > 0 &&
           block.z <= MAX_BLOCK_Z && (uint64_t)block.x * block.y * block.z <= MAX_THREADS;
}

/* The launch of a program's own kernel. */
struct own_launch {
    const struct kernel_of_program *kernel;
    int gpu, threads;
    _Alignas(max_align_t) unsigned char arguments[KERNEL_OF_PROGRAM_BYTES];
};

static cudaError_t run_own(struct CUstream_st *stream, void *payload)
{
    (void)stream;
    const struct own_launch *launch = payload;
    return launch->kernel->run(launch->gpu, launch->arguments, launch->threads);
}

static struct operation *own_operation(int gpu, const cudaLaunchConfig_t *config,
                                       const struct kernel_of_program *kernel, void **args)
{
    struct own_launch launch = {.kernel = kernel, .gpu = gpu};
    memcpy(launch.arguments, args[0], kernel->bytes);
    memcpy(&launch.threads, args[1], sizeof launch.threads);
    if ((uint64_t)config->gridDim.x * config->blockDim.x < (uint64_t)launch.threads)
        emulation_misuse("kernel %s: a grid of less than its threads", kernel->mangled);
    struct operation *operation = operation_new(OPERATION_WORK, &launch, sizeof launch);
    if (operation)
        operation->run = run_own;
    return operation;
}

static struct operation *new_operation(int gpu, const struct kernel *kernel, void **args)
{
    struct launch launch = {.kernel = kernel, .gpu = gpu};
    for (int i = 0; kernel->arguments[i]; i++)
        launch.args[i] = take(kernel->arguments[i], args[i]);
    struct operation *operation = operation_new(OPERATION_WORK, &launch, sizeof launch);
    if (operation)
        operation->run = run;
    return operation;
}

cudaError_t kernel_launch(struct CUstream_st *stream, const cudaLaunchConfig_t *config,
                          const void *function, void **args)
{
    int i = find(function);
    if (!fits(config->gridDim, config->blockDim))
        return cudaErrorInvalidConfiguration;
    if (config->dynamicSmemBytes > MAX_SHARED || (config->numAttrs > 0 && !config->attrs))
        return cudaErrorInvalidValue;
    struct operation *operation = registered[i].kernel
                                      ? new_operation(stream->gpu, registered[i].kernel, args)
                                      : own_operation(stream->gpu, config, registered[i].own, args);
    if (!operation)
        return cudaErrorMemoryAllocation;
    operation->counts = true;
    operation->activity = ACTIVITY_KERNEL;
    return stream_push(stream, operation);
}
