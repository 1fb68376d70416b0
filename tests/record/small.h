/* SPDX-License-Identifier: Apache-2.0 */
/*
 * small.h - parts of the small programs that `swsim record` is tried on: three arrays, three streams, two events, a kernel
 * that writes the first array and one that reads it.
 */
#ifndef SWSIM_SMALL_H
#define SWSIM_SMALL_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/device/cuda/kernels.h"
#include "check.h"

enum { COUNT = 1024, BYTES = COUNT * sizeof(float), WHILE_US = 30000 };

static bool fixed; /* there is no mistake */
static float *x, *y, *z;
static cudaStream_t one, two, three;
static cudaEvent_t event, other;

static void begin(int device)
{
    CHECK(cudaSetDevice(device));
    CHECK(kernels_load());
    CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&three, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&other, cudaEventDisableTiming));
    float **all[] = {&x, &y, &z};
    for (int i = 0; i < 3; i++) {
        CHECK(cudaMalloc((void **)all[i], BYTES));
        CHECK(cudaMemsetAsync(*all[i], 0, BYTES, one));
    }
    CHECK(cudaStreamSynchronize(one));
}

static void end(void)
{
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(x));
    CHECK(cudaFree(y));
    CHECK(cudaFree(z));
}

static inline void fill(cudaStream_t stream, float *to)
{
    CHECK(kernels_fill_f32(stream, to, COUNT, 1.0F));
}

static inline void add_to(cudaStream_t stream, const float *from, float *to)
{
    CHECK(kernels_axpy(stream, from, to, COUNT, 1.0F));
}

static inline void order(cudaStream_t before, cudaEvent_t by, cudaStream_t behind)
{
    CHECK(cudaEventRecord(by, before));
    CHECK(cudaStreamWaitEvent(behind, by, 0));
}

static inline void produce(cudaStream_t stream)
{
    fill(stream, x);
}

static inline void consume(cudaStream_t stream)
{
    add_to(stream, x, y);
}

struct small_case {
    const char *name;
    void (*run)(void);
};

/* The case of this name, on device 0: the exit code. */
static inline int run_case(const struct small_case *cases, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(cases[i].name, name) == 0) {
            begin(0);
            cases[i].run();
            end();
            return 0;
        }
    fprintf(stderr, "no such case\n");
    return 2;
}

/* Without sleep a run would show the mistake now and then. */
static void luck(void)
{
    usleep(WHILE_US);
}

#endif
