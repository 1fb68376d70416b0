/* SPDX-License-Identifier: Apache-2.0 */
/* device_host.c - see device.h: the host as the device. With DLRM_BLAS products are BLAS's, which adds in an order of
   its own. */
#include "device.h"

#include <stdlib.h>
#include <string.h>

#ifdef DLRM_BLAS
#include <cblas.h>
#endif

const char *device_name(void)
{
#ifdef DLRM_BLAS
    return "host, BLAS";
#else
    return "host";
#endif
}

int device_is_cuda(void)
{
    return 0;
}

int device_choose(int rank)
{
    return rank;
}

const char *device_error(void)
{
    return "";
}

void *device_alloc(size_t bytes)
{
    return calloc(1, bytes);
}

void device_free(void *memory)
{
    free(memory);
}

void *host_alloc(size_t bytes)
{
    return calloc(1, bytes);
}

void host_free(void *memory)
{
    free(memory);
}

int device_write(void *stream, void *device, const void *host, size_t bytes)
{
    (void)stream;
    memcpy(device, host, bytes);
    return 0;
}

int device_read(void *stream, void *host, const void *device, size_t bytes)
{
    (void)stream;
    memcpy(host, device, bytes);
    return 0;
}

int device_multiply(void *stream, const struct product *p)
{
    (void)stream;
#ifdef DLRM_BLAS
    cblas_sgemm(CblasRowMajor, p->a_transposed ? CblasTrans : CblasNoTrans,
                p->b_transposed ? CblasTrans : CblasNoTrans, p->m, p->n, p->k, 1, p->a,
                p->a_transposed ? p->m : p->k, p->b, p->b_transposed ? p->k : p->n, 0, p->c, p->n);
#else
    for (int row = 0; row < p->m; row++)
        for (int column = 0; column < p->n; column++) {
            float sum = 0;
            for (int i = 0; i < p->k; i++)
                sum += p->a[p->a_transposed ? i * p->m + row : row * p->k + i] *
                       p->b[p->b_transposed ? column * p->k + i : i * p->n + column];
            p->c[row * p->n + column] = sum;
        }
#endif
    return 0;
}

#define LOOP(name)                                                                                 \
    int device_##name(void *stream, const struct name *arguments, int threads)                     \
    {                                                                                              \
        (void)stream;                                                                              \
        for (int i = 0; i < threads; i++)                                                          \
            name##_one(arguments, i);                                                              \
        return 0;                                                                                  \
    }
KERNELS(LOOP)
