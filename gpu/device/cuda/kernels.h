/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.h - the kernels of the CUDA device, as functions that C can call.
 *
 * Each launches on `stream` (a cudaStream_t) and returns at once; the result is a cudaError_t as
 * int. Sizes and addresses have been checked by the caller. Semantics: the operations in device.h.
 */
#ifndef SWSIM_KERNELS_H
#define SWSIM_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "gpu/device/dense.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Load all kernels now: a first launch would otherwise wait for the device to be idle. */
int kernels_load(void);
int kernels_load_dense(void); /* called by the above */

/* Keep one thread busy for `time_ns` of the device's clock, or until *stop is not 0. `stop` is
   mapped host memory, seen from the device. */
int kernels_spin(void *stream, int64_t time_ns, const int *stop);

int kernels_fill_f32(void *stream, void *out, int64_t elements, float value);
int kernels_fill_f64(void *stream, void *out, int64_t elements, double value);
int kernels_axpy(void *stream, const void *x, void *y, int64_t elements, float alpha);
int kernels_gather(void *stream, const void *table, const void *index, void *out, int64_t rows,
                   int64_t row_bytes, int64_t table_rows);
int kernels_gemm_f32(void *stream, const void *a, const void *b, void *c, int64_t m, int64_t n,
                     int64_t k);
int kernels_gemm_f64(void *stream, const void *a, const void *b, void *c, int64_t m, int64_t n,
                     int64_t k);
/* One step of dense layers. */
int kernels_dense(void *stream, const struct dense *dense);

#ifdef __cplusplus
}
#endif
#endif
