/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - the device under the model: memory, copies, products of matrices and the kernels of kernels.h.
 *
 * Two files have these functions, and a program is linked with one of them: device_host.c computes at once, in plain
 * C or by BLAS; device_cuda.cu pushes to a stream, kernels and calls of cuBLAS.
 *
 * A function returns 0, or -1: device_error says why. `stream` is a cudaStream_t, and NULL on the host.
 */
#ifndef DLRM_DEVICE_H
#define DLRM_DEVICE_H

#include <stddef.h>

#include "kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "host", "host, BLAS", "cuda" */
const char *device_name(void);
int device_is_cuda(void);
/* The GPU of a rank becomes the calling thread's, which is made ready to push to it: its number; -1: there is none. Calls
   that would make the whole device stop at a first use are done here. */
int device_choose(int rank);
/* The last error of this thread. */
const char *device_error(void);

/* NULL: there is no more. Memory of the device is not the host's to read, and has any contents at first. That of the
   host is zeroed; it can be copied from and to while the host goes on, and kernels can reach it. */
void *device_alloc(size_t bytes);
void device_free(void *memory);
void *host_alloc(size_t bytes);
void host_free(void *memory);

/* From the host's memory to the device's, and back, in the order of the stream; without one it is done on return. */
int device_write(void *stream, void *device, const void *host, size_t bytes);
int device_read(void *stream, void *host, const void *device, size_t bytes);

/* c = a b, of matrices stored by rows: c [m][n]; a [m][k], or its transpose [k][m]; b
   [k][n], or its transpose [n][k]. */
struct product {
    int m, n, k;
    const float *a, *b;
    float *c;
    int a_transposed, b_transposed;
};
int device_multiply(void *stream, const struct product *product);

/* device_look_up(stream, &arguments, threads), and so on. */
#define DECLARE(name) int device_##name(void *stream, const struct name *arguments, int threads);
KERNELS(DECLARE)
#undef DECLARE

#ifdef __cplusplus
}
#endif

#endif
