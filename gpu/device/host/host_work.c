/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_work.c - what the host device computes: fill, gemm, gather, axpy, dense layers, copy.
 *
 * gemm stands in host_gemm.inc, once for both types of numbers.
 */
#include "host.h"

#include <string.h>

#include "base/sort.h"

enum {
    BLOCK_K = 256, /* x BLOCK_N x 8 bytes: 256 KiB, in a second-level cache */
    BLOCK_N = 128,
    BLOCK_M = 64, /* rows between two looks at *stop */
    TILE_M = 4,
    TILE_N = 8,
    STOP_BYTES = 1 << 24 /* look at *stop once in so many copied bytes */
};

/* A part of c: rows x columns, from `depth` columns of a and rows of b; strides are row lengths. */
struct host_work_block {
    int64_t rows, columns, depth, a_stride, b_stride, c_stride;
};

/* A kernel reads each number of a matrix hundreds of times, and the thread sanitizer would look at each of these reads. A
   function marked RANGES_TOLD is not looked into. Its caller names the ranges that it reads and writes, so that a race on any of
   their bytes is still seen. Without --enable-tsan these macros do nothing. */
#ifndef __has_feature
#define __has_feature(feature) 0
#endif

#if defined __SANITIZE_THREAD__ || __has_feature(thread_sanitizer)

/* The sanitizer's own functions, which compilers call; no header declares them. */
void __tsan_read_range(void *from, unsigned long bytes);
void __tsan_write_range(void *to, unsigned long bytes);

#define RANGES_TOLD              __attribute__((no_sanitize("thread"), noinline))
#define range_read(from, bytes)  __tsan_read_range((void *)(from), bytes)
#define range_written(to, bytes) __tsan_write_range(to, bytes)

#else

#define RANGES_TOLD
#define range_read(from, bytes)  ((void)(from), (void)(bytes))
#define range_written(to, bytes) ((void)(to), (void)(bytes))

#endif

#define REAL        float
#define NAMED(name) name##_f32
#include "host_gemm.inc"
#undef REAL
#undef NAMED

#define REAL        double
#define NAMED(name) name##_f64
#include "host_gemm.inc"
#undef REAL
#undef NAMED

/* memcpy that can be stopped. */
static void copy_bytes(char *to, const char *from, size_t bytes, const atomic_bool *stop)
{
    for (size_t at = 0; at < bytes && !atomic_load(stop); at += STOP_BYTES)
        memcpy(to + at, from + at, bytes - at < STOP_BYTES ? bytes - at : STOP_BYTES);
}

static void host_work_gather(const struct device_gather *gather, const atomic_bool *stop)
{
    size_t row = (size_t)gather->dim * (size_t)dtype_bytes(gather->dtype);
    const char *table = ref_address(gather->table);
    const uint32_t *index = (const uint32_t *)(void *)ref_address(gather->index);
    char *out = ref_address(gather->out);
    if (row == 0)
        return;
    for (int64_t i = 0; i < gather->rows && !atomic_load(stop); i++)
        memcpy(out + (size_t)i * row, table + (index[i] % (uint32_t)gather->table_rows) * row, row);
}

static void axpy(const struct device_axpy *axpy, const atomic_bool *stop)
{
    const int64_t piece = STOP_BYTES / (int64_t)sizeof(float);
    const float *x = (const float *)(void *)ref_address(axpy->x);
    float *y = (float *)(void *)ref_address(axpy->y);
    for (int64_t at = 0; at < axpy->elements && !atomic_load(stop); at += piece) {
        int64_t end = min_i64(at + piece, axpy->elements);
        for (int64_t i = at; i < end; i++)
            y[i] += axpy->alpha * x[i];
    }
}

static void dense(const struct device_dense *dense, const atomic_bool *stop)
{
    for (size_t i = 0; i < dense->count && !atomic_load(stop); i++) {
        struct dense step = dense_at(&dense->steps[i]);
        dense_compute(&step, stop);
    }
}

static void host_work_fill(const struct device_fill *fill)
{
    float *single = (float *)(void *)ref_address(fill->out);
    double *twice = (double *)(void *)ref_address(fill->out);
    for (int64_t i = 0; i < fill->elements; i++) {
        if (fill->dtype == DTYPE_F32)
            single[i] = (float)fill->value;
        else
            twice[i] = fill->value;
    }
}

void host_add(float *restrict sum, const float *restrict x, size_t count)
{
    enum { BLOCK = 32 }; /* so many at a time are added in vector registers, at -O2 too */
    size_t i = 0;
    for (; i + BLOCK <= count; i += BLOCK)
        for (size_t k = 0; k < BLOCK; k++)
            sum[i + k] += x[i + k];
    for (; i < count; i++)
        sum[i] += x[i];
}

void host_add_two(float *restrict sum, const float *restrict x, const float *restrict y,
                  size_t count)
{
    enum { BLOCK = 32 };
    size_t i = 0;
    for (; i + BLOCK <= count; i += BLOCK)
        for (size_t k = 0; k < BLOCK; k++)
            sum[i + k] = (sum[i + k] + x[i + k]) + y[i + k];
    for (; i < count; i++)
        sum[i] = (sum[i] + x[i]) + y[i];
}

void host_sum_two(float *restrict sum, const float *restrict x, const float *restrict y,
                  size_t count)
{
    enum { BLOCK = 32 };
    size_t i = 0;
    for (; i + BLOCK <= count; i += BLOCK)
        for (size_t k = 0; k < BLOCK; k++)
            sum[i + k] = (0.0F + x[i + k]) + y[i + k];
    for (; i < count; i++)
        sum[i] = (0.0F + x[i]) + y[i];
}

void host_compute(const struct device_op *op, const atomic_bool *stop)
{
    switch (op->kind) {
    case DEVICE_OP_FILL: host_work_fill(&op->fill); break;
    case DEVICE_OP_GEMM:
        if (op->gemm.dtype == DTYPE_F32)
            gemm_f32(&op->gemm, stop);
        else
            gemm_f64(&op->gemm, stop);
        break;
    case DEVICE_OP_GATHER: host_work_gather(&op->gather, stop); break;
    case DEVICE_OP_AXPY: axpy(&op->axpy, stop); break;
    case DEVICE_OP_DENSE: dense(&op->dense, stop); break;
    case DEVICE_OP_COPY:
        copy_bytes(ref_address(op->copy.to), ref_address(op->copy.from), (size_t)op->copy.bytes,
                   stop);
        break;
    default: break;
    }
}
