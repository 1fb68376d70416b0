/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_calls.c - small programs of the CUDA driver, for `swsim record`: `driver_calls CASE` has a mistake and goes well,
 * `driver_calls CASE fixed` has none.
 */
#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1024, BYTES = COUNT * sizeof(float) };

static bool fixed;
static CUstream one, two;
static CUevent event, other;
static CUfunction fill_kernel, axpy_kernel;
static CUdeviceptr x, y;

#define CHECK(call)                                                                                \
    do {                                                                                           \
        const int result_ = (int)(call);                                                           \
        if (result_ != 0) {                                                                        \
            fprintf(stderr, "%s: %d\n", #call, result_);                                           \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void begin(void)
{
    CHECK(cuInit(0));
    CHECK(cuCtxSetCurrent(NULL));
    CHECK(cuModuleGetFunction(&fill_kernel, NULL, "_Z4fillIfEvPT_xS0_"));
    CHECK(cuModuleGetFunction(&axpy_kernel, NULL, "_Z4axpyPKfPfxf"));
    CHECK(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CHECK(cuEventCreate(&other, CU_EVENT_DISABLE_TIMING));
    CHECK(cuMemAlloc(&x, BYTES));
    CHECK(cuMemAlloc(&y, BYTES));
}

static void end(void)
{
    CHECK(cuCtxSynchronize());
    CHECK(cuMemFree(x));
    CHECK(cuMemFree(y));
}

static atomic_bool over;

static void tell_end(void *unused)
{
    (void)unused;
    atomic_store(&over, true);
}

/* So it happens that the stream has done its work, though no call says so. */
static void luck(CUstream stream)
{
    atomic_store(&over, false);
    CHECK(cuLaunchHostFunc(stream, tell_end, NULL));
    while (!atomic_load(&over))
        usleep(100);
}

static void launch(CUfunction function, CUstream stream, void **args)
{
    CHECK(cuLaunchKernel(function, COUNT / 256, 1, 1, 256, 1, 1, 0, stream, args, NULL));
}

static void fill(CUstream stream, CUdeviceptr at)
{
    long long count = COUNT;
    float value = 1;
    launch(fill_kernel, stream, (void *[]){&at, &count, &value});
}

/* to += from */
static void axpy(CUstream stream, CUdeviceptr from, CUdeviceptr to)
{
    long long count = COUNT;
    float value = 1;
    launch(axpy_kernel, stream, (void *[]){&from, &to, &count, &value});
}

/* What `before` has done so far is done before what comes to `stream`, if the program is right. */
static void order(CUstream stream, CUstream before, CUevent by)
{
    CHECK(cuEventRecord(by, before));
    if (fixed)
        CHECK(cuStreamWaitEvent(stream, by, 0));
    luck(before);
}

/* ---- memory that is mapped ------------------------------------------------------------------------ */

static CUmemAllocationProp on_device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
static size_t granule;

static CUdeviceptr reserve(size_t granules)
{
    CUdeviceptr address;
    CHECK(cuMemGetAllocationGranularity(&granule, &on_device, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CHECK(cuMemAddressReserve(&address, granules * granule, 0, 0, 0));
    return address;
}

static CUmemGenericAllocationHandle map_at(CUdeviceptr address, CUmemGenericAllocationHandle given)
{
    const CUmemAccessDesc both = {.location = on_device.location,
                                  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle = given;
    if (!given)
        CHECK(cuMemCreate(&handle, granule, &on_device, 0));
    CHECK(cuMemMap(address, granule, 0, handle, 0));
    CHECK(cuMemSetAccess(address, granule, &both, 1));
    return handle;
}

/* As PyTorch's segments that grow: a handle for each part, which is released when the part is unmapped. */
static void mapped(void)
{
    const CUdeviceptr at = reserve(2);
    const CUmemGenericAllocationHandle first = map_at(at, 0), second = map_at(at + granule, 0);
    fill(two, y);
    fill(one, at);
    order(two, one, event);
    axpy(two, at, y);
    fill(two, at + granule);
    CHECK(cuStreamSynchronize(two));
    CHECK(cuMemUnmap(at, 2 * granule));
    CHECK(cuMemRelease(first));
    CHECK(cuMemRelease(second));
    CHECK(cuMemAddressFree(at, 2 * granule));
}

/* An array over the border of two mappings. */
static void over_border(void)
{
    const CUdeviceptr at = reserve(3), array = at + granule - BYTES / 2;
    CHECK(cuMemRelease(map_at(at, 0)));
    CHECK(cuMemRelease(map_at(at + granule, 0)));
    CHECK(cuMemRelease(map_at(at + 2 * granule, 0)));
    fill(two, y);
    CHECK(cuMemsetD8Async(array, 0, BYTES, one));
    CHECK(cuMemsetD8Async(at + 2 * granule, 0, BYTES, one));
    order(two, one, event);
    fill(two, at + granule); /* its second half */
    CHECK(cuStreamSynchronize(one));
    CHECK(cuStreamSynchronize(two));
    CHECK(cuMemUnmap(at, 3 * granule));
}

/* A kernel writes an array over the border, and a copy reads all of it. */
static void kernel_over_border(void)
{
    const CUdeviceptr at = reserve(2), array = at + granule - BYTES / 2;
    CHECK(cuMemRelease(map_at(at, 0)));
    CHECK(cuMemRelease(map_at(at + granule, 0)));
    CHECK(cuMemsetD8Async(at + granule + BYTES, 0, BYTES, one)); /* not so much of it as the copy */
    if (fixed)
        fill(one, array);
    CHECK(cuMemcpyDtoDAsync(y, array, BYTES, one));
    CHECK(cuStreamSynchronize(one));
    CHECK(cuMemUnmap(at, 2 * granule));
}

/* Nothing waits for the kernel. */
static void unmapped_early(void)
{
    const CUdeviceptr at = reserve(1);
    const CUmemGenericAllocationHandle handle = map_at(at, 0);
    fill(one, at);
    if (fixed)
        CHECK(cuStreamSynchronize(one));
    luck(one);
    CHECK(cuMemUnmap(at, granule));
    CHECK(cuMemRelease(handle));
}

/* Other memory at the same addresses is another buffer, even if its handle has the old one's number. */
static void mapped_anew(void)
{
    const CUdeviceptr at = reserve(1);
    for (int i = 0; i < 3; i++) {
        const CUmemGenericAllocationHandle handle = map_at(at, 0);
        CHECK(cuMemRelease(handle));
        if (i < 2 || fixed)
            fill(one, at);
        CHECK(cuMemcpyDtoDAsync(y, at, BYTES, one));
        CHECK(cuMemsetD8Async(at + BYTES, 0, BYTES, one));
        CHECK(cuStreamSynchronize(one));
        CHECK(cuMemUnmap(at, granule));
    }
}

/* One memory has two addresses. */
static void mapped_twice(void)
{
    const CUdeviceptr at = reserve(2);
    const CUmemGenericAllocationHandle handle = map_at(at, 0);
    map_at(at + granule, handle);
    fill(one, at);
    fill(two, at + granule);
}

/* The handle of a mapping comes back, and is one memory with it. */
static void handle_kept(void)
{
    const CUdeviceptr at = reserve(2);
    CUmemGenericAllocationHandle handle;
    CHECK(cuMemRelease(map_at(at, 0)));
    map_at(at + granule, 0);
    CHECK(cuMemRetainAllocationHandle(&handle, (void *)(at + granule + 5)));
    CHECK(cuMemRelease(handle));
    CHECK(cuMemUnmap(at, granule));
    map_at(at, handle);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"mapped", mapped},
    {"over_border", over_border},
    {"kernel_over_border", kernel_over_border},
    {"unmapped_early", unmapped_early},
    {"mapped_anew", mapped_anew},
    {"mapped_twice", mapped_twice},
    {"handle_kept", handle_kept},
};

int main(int argc, char **argv)
{
    fixed = argc > 2 && strcmp(argv[2], "fixed") == 0;
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, argv[1]) != 0)
            continue;
        begin();
        cases[i].run();
        end();
        return 0;
    }
    fprintf(stderr, "no such case\n");
    return 2;
}
