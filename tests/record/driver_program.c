/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_program.c - a program of the CUDA driver with a missing wait, for `swsim record`: `driver_program [fixed]
 * [asked]`. `asked`: the functions are asked for by name.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { COUNT = 1024, BYTES = COUNT * sizeof(float), WHILE_US = 30000 };

#define FUNCTIONS(X)                                                                               \
    X(cuInit, (unsigned))                                                                          \
    X(cuCtxSetCurrent, (CUcontext))                                                                \
    X(cuCtxSynchronize, (void))                                                                    \
    X(cuStreamCreate, (CUstream *, unsigned))                                                      \
    X(cuStreamSynchronize, (CUstream))                                                             \
    X(cuStreamWaitEvent, (CUstream, CUevent, unsigned))                                            \
    X(cuEventCreate, (CUevent *, unsigned))                                                        \
    X(cuEventRecord, (CUevent, CUstream))                                                          \
    X(cuMemAlloc, (CUdeviceptr *, size_t))                                                         \
    X(cuMemFree, (CUdeviceptr))                                                                    \
    X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                                 \
    X(cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,     \
                       unsigned, CUstream, void **, void **))

/* The names are macros of cuda.h. */
static struct {
#define X(name, PARAMS) CUresult(*call_##name) PARAMS;
    FUNCTIONS(X)
#undef X
} driver = {
#define X(name, PARAMS) .call_##name = name,
    FUNCTIONS(X)
#undef X
};

static void ask(void)
{
    CUresult (*get)(const char *, void **, int, cuuint64_t) = NULL;
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *address = NULL;
    address = library ? dlsym(library, "cuGetProcAddress") : NULL;
    if (!address)
        exit(1);
    memcpy(&get, &address, sizeof get);
#define X(name, PARAMS)                                                                            \
    CHECK(get(#name, &address, 12000, 0));                                                         \
    memcpy(&driver.call_##name, &address, sizeof address);
    FUNCTIONS(X)
#undef X
}

static void launch(CUfunction function, CUstream stream, void **args)
{
    CHECK(
        driver.call_cuLaunchKernel(function, COUNT / 256, 1, 1, 256, 1, 1, 0, stream, args, NULL));
}

static bool has(int argc, char **argv, const char *word)
{
    bool found = false;
    for (int i = 1; i < argc; i++)
        found = found || strcmp(argv[i], word) == 0;
    return found;
}

int main(int argc, char **argv)
{
    CUstream one, two;
    CUevent event;
    CUdeviceptr x, y;
    CUfunction fill, axpy;
    long long count = COUNT;
    float value = 1;
    if (has(argc, argv, "asked"))
        ask();
    CHECK(driver.call_cuInit(0));
    CHECK(driver.call_cuCtxSetCurrent(NULL));
    CHECK(driver.call_cuModuleGetFunction(&fill, NULL, "_Z4fillIfEvPT_xS0_"));
    CHECK(driver.call_cuModuleGetFunction(&axpy, NULL, "_Z4axpyPKfPfxf"));
    CHECK(driver.call_cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    CHECK(driver.call_cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
    CHECK(driver.call_cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CHECK(driver.call_cuMemAlloc(&x, BYTES));
    CHECK(driver.call_cuMemAlloc(&y, BYTES));
    launch(fill, two, (void *[]){&y, &count, &value});
    launch(fill, one, (void *[]){&x, &count, &value});
    CHECK(driver.call_cuEventRecord(event, one));
    if (has(argc, argv, "fixed"))
        CHECK(driver.call_cuStreamWaitEvent(two, event, 0));
    usleep(WHILE_US);
    launch(axpy, two, (void *[]){&x, &y, &count, &value});
    CHECK(driver.call_cuStreamSynchronize(two));
    CHECK(driver.call_cuCtxSynchronize());
    CHECK(driver.call_cuMemFree(x));
    CHECK(driver.call_cuMemFree(y));
    return 0;
}
