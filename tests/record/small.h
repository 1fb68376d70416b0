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

static inline void produce(cudaStream_t stream)
{
    CHECK(kernels_fill_f32(stream, x, COUNT, 1.0F));
}

static inline void consume(cudaStream_t stream)
{
    CHECK(kernels_axpy(stream, x, y, COUNT, 1.0F));
}

/* Without sleep a run would show the mistake now and then. */
static void luck(void)
{
    usleep(WHILE_US);
}

#endif
