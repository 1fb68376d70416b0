/* SPDX-License-Identifier: Apache-2.0 */
/* launches.c - kernels as the functions of CUDA's runtime know them. See runtime.c. */
#include "runtime.h"

#include <dlfcn.h>
#include <string.h>

enum { INVALID_FUNCTION = 98 };

struct runtime_dim3 {
    unsigned x, y, z;
};

/* ---- what nvcc's code calls --------------------------------------------------------------------------- */

VALUE(void **, __cudaRegisterFatBinary, (const void *wrapper),
      (void **)none_module_register(wrapper))
FACE(void, __cudaRegisterFatBinaryEnd, (void **module))
{
}
/* Modules are never forgotten. */
FACE(void, __cudaUnregisterFatBinary, (void **module))
{
}
VALUE(char, __cudaInitModule, (void **module), 1)
FACE(void, __cudaRegisterFunction,
     (void **module, const char *function, char *device, const char *name, int threads,
      void *thread, void *block, void *block_size, void *grid_size, int *warp))
{
    none_function_register((struct none_module *)module, function, name);
}
FACE(void, __cudaRegisterVar,
     (void **module, const char *at, char *device, const char *name, int external, size_t bytes,
      int constant, int global))
{
    none_variable_register((struct none_module *)module, at, name, bytes);
}
/* A managed variable: the program reads its address from `*at`. */
FACE(void, __cudaRegisterManagedVar,
     (void **module, void **at, char *device, const char *name, int external, size_t bytes,
      int constant, int global))
{
    if (none_alloc(at, bytes, NONE_MANAGED, 0) != NONE_OK)
        none_missing(name, "there is no memory for the variable");
}

/* kernel<<<...>>>: what is in the angles, for the call that follows. */
static __thread struct {
    struct runtime_dim3 grid, block;
    size_t shared;
    void *stream;
} angles;
FACE(unsigned, __cudaPushCallConfiguration,
     (struct runtime_dim3 grid, struct runtime_dim3 block, size_t shared, void *stream))
{
    angles.grid = grid;
    angles.block = block;
    angles.shared = shared;
    angles.stream = stream;
    return 0;
}
FACE(int, __cudaPopCallConfiguration,
     (struct runtime_dim3 * grid, struct runtime_dim3 *block, size_t *shared, void *stream))
{
    *grid = angles.grid;
    *block = angles.block;
    *shared = angles.shared;
    memcpy(stream, &angles.stream, sizeof angles.stream);
    return NONE_OK;
}
/* The handle of a kernel is its function. */
static int get_kernel(void **out, const void *function)
{
    *out = (void *)(uintptr_t)function;
    return none_function_find(function) ? NONE_OK : INVALID_FUNCTION;
}
RESULT(__cudaGetKernel, (void **out, const void *function), get_kernel(out, function))
RESULT(cudaGetKernel, (void **out, const void *function), get_kernel(out, function))
RESULT(cudaGetFuncBySymbol, (void **out, const void *function), get_kernel(out, function))

/* ---- launches ------------------------------------------------------------------------------------------ */

static int runtime_launch(const void *kernel, const void *stream)
{
    return none_function_find(kernel) ? none_push_kernel(stream) : INVALID_FUNCTION;
}
#define LAUNCH(name)                                                                               \
    STREAM_FACE(                                                                                   \
        name,                                                                                      \
        (const void *kernel, struct runtime_dim3 grid, struct runtime_dim3 block, void **args,     \
         size_t shared, void *stream),                                                             \
        ((void)grid, (void)block, (void)args, (void)shared, runtime_launch(kernel, ON(stream))))
LAUNCH(cudaLaunchKernel)
LAUNCH(__cudaLaunchKernel)
LAUNCH(cudaLaunchCooperativeKernel)

struct runtime_launch {
    struct runtime_dim3 grid, block;
    size_t shared;
    void *stream;
};
STREAM_FACE(cudaLaunchKernelExC,
            (const struct runtime_launch *config, const void *kernel, void **args),
            ((void)args, runtime_launch(kernel, ON(config->stream))))

/* ---- what a kernel is like ------------------------------------------------------------------------------- */

struct runtime_function {
    size_t shared, constant, local;
    int threads, registers, ptx, binary, cache, dynamic, carveout, cluster, width, height, depth,
        scheduling, non_portable, reserved[16];
};
FACE(int, cudaFuncGetAttributes, (struct runtime_function * out, const void *function))
{
    struct none_function *found = none_function_find(function);
    if (!found)
        return runtime_end(INVALID_FUNCTION);
    const struct none_numbers numbers = none_function_numbers(found);
    const int version = 10 * none_model()->major + none_model()->minor;
    *out = (struct runtime_function){.shared = (size_t)numbers.shared,
                                     .threads = numbers.most_threads,
                                     .registers = numbers.registers,
                                     .ptx = version,
                                     .binary = version,
                                     .dynamic = found->shared ? found->shared : 49152,
                                     .carveout = -1};
    return NONE_OK;
}
enum { MOST_DYNAMIC = 8 };
static int set_attribute(const void *function, int attribute, int value)
{
    struct none_function *found = none_function_find(function);
    if (!found)
        return INVALID_FUNCTION;
    if (attribute == MOST_DYNAMIC && value > none_model()->shared_optin)
        return NONE_INVALID_VALUE;
    if (attribute == MOST_DYNAMIC)
        found->shared = value;
    return NONE_OK;
}
RESULT(cudaFuncSetAttribute, (const void *function, int attribute, int value),
       set_attribute(function, attribute, value))
RESULT(cudaKernelSetAttributeForDevice, (const void *kernel, int attribute, int value, int device),
       set_attribute(kernel, attribute, value))
RESULT(cudaFuncSetCacheConfig, (const void *function, int config),
       none_function_find(function) ? NONE_OK : INVALID_FUNCTION)
FACE(int, cudaFuncGetName, (const char **out, const void *function))
{
    const struct none_function *found = none_function_find(function);
    if (!found)
        return runtime_end(INVALID_FUNCTION);
    *out = found->name;
    return NONE_OK;
}
FACE(int, cudaFuncGetParamInfo, (const void *function, size_t index, size_t *offset, size_t *bytes))
{
    struct none_function *found = none_function_find(function);
    return runtime_end(!found                                        ? INVALID_FUNCTION
                       : none_parameter(found, index, offset, bytes) ? NONE_OK
                                                                     : NONE_INVALID_VALUE);
}
static int blocks_of_multiprocessor(int *out, const void *function, int threads, size_t shared)
{
    struct none_function *found = none_function_find(function);
    if (!found || threads <= 0)
        return found ? NONE_INVALID_VALUE : INVALID_FUNCTION;
    *out = none_blocks(found, threads, shared);
    return NONE_OK;
}
RESULT(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
       (int *out, const void *function, int threads, size_t shared),
       blocks_of_multiprocessor(out, function, threads, shared))
RESULT(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
       (int *out, const void *function, int threads, size_t shared, unsigned flags),
       blocks_of_multiprocessor(out, function, threads, shared))

/* ---- libraries of kernels that are loaded ------------------------------------------------------------------ */

RESULT(cudaLibraryLoadData,
       (void **out, const void *code, void *options, void *values, unsigned count, void *more,
        void *more_values, unsigned more_count),
       (*out = none_module_load(code), *out ? NONE_OK : NONE_NO_MEMORY))
RESULT(cudaLibraryUnload, (void *library), NONE_OK)
RESULT(cudaLibraryGetKernel, (void **out, void *library, const char *name),
       (*out = none_module_function(library, name), *out ? NONE_OK : NONE_NOT_FOUND))
RESULT(cudaLibraryGetKernelCount, (unsigned *out, void *library),
       (*out = (unsigned)none_module_functions(library, NULL, 0), NONE_OK))
RESULT(cudaLibraryEnumerateKernels, (void **out, unsigned room, void *library),
       (none_module_functions(library, (struct none_function **)out, room), NONE_OK))
RESULT(cudaLibraryGetGlobal, (void **out, size_t *bytes, void *library, const char *name),
       none_module_variable(library, name, out, bytes) ? NONE_OK : NONE_NOT_FOUND)

/* ---- functions of the driver ------------------------------------------------------------------------------- */

typedef int ask_function(const char *name, void **out, int version, uint64_t flags, int *found);

static int driver_entry(const char *name, void **out, unsigned version, uint64_t flags, int *state)
{
    static ask_function *ask;
    if (!ask) {
        void *driver = dlopen("libcuda.so.1", RTLD_NOW);
        void *found = driver ? dlsym(driver, "cuGetProcAddress_v2") : NULL;
        memcpy(&ask, &found, sizeof ask);
    }
    int how = 1;
    *out = NULL;
    if (ask)
        ask(name, out, (int)version, flags, &how);
    if (state)
        *state = how;
    return NONE_OK;
}
static unsigned version_of_own(void)
{
    return runtime_major == 12 ? 12080 : 13000;
}
#define ENTRY(end)                                                                                 \
    FACE(int, cudaGetDriverEntryPoint##end,                                                        \
         (const char *name, void **out, unsigned long long flags, int *state))                     \
    {                                                                                              \
        return runtime_end(driver_entry(name, out, version_of_own(), flags, state));               \
    }                                                                                              \
    FACE(int, cudaGetDriverEntryPointByVersion##end,                                               \
         (const char *name, void **out, unsigned version, unsigned long long flags, int *state))   \
    {                                                                                              \
        return runtime_end(driver_entry(name, out, version, flags, state));                        \
    }
ENTRY()
ENTRY(_ptsz)
