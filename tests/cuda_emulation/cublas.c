/* SPDX-License-Identifier: Apache-2.0 */
/* cublas.c - emulated CUDA: not a GPU. The calls of cuBLAS that the DLRM of the examples makes; products are added up in
   the order of the host's loops. */
#include "emulation.h"

#include <cublas_v2.h>
#include <stdlib.h>

struct cublasContext {
    cudaStream_t stream;
};

struct product {
    int gpu;
    bool a_transposed, b_transposed;
    int m, n, k, lda, ldb, ldc;
    float alpha, beta;
    const float *a, *b;
    float *c;
};

cublasStatus_t cublasCreate_v2(cublasHandle_t *out)
{
    *out = calloc(1, sizeof **out);
    return *out ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS ? "success" : "emulated failure";
}

/* Columns lie `ld` numbers apart. */
static const float *reach(const struct product *p, const float *at, int columns, int ld)
{
    return memory_reach(p->gpu, at, (size_t)columns * (size_t)ld * sizeof *at, "cublasSgemm");
}

static cudaError_t run(struct CUstream_st *stream, void *payload)
{
    (void)stream;
    const struct product *p = payload;
    const float *a = reach(p, p->a, p->a_transposed ? p->m : p->k, p->lda);
    const float *b = reach(p, p->b, p->b_transposed ? p->k : p->n, p->ldb);
    float *c = memory_reach(p->gpu, p->c, (size_t)p->n * (size_t)p->ldc * sizeof *c, "cublasSgemm");
    if (!a || !b || !c)
        return cudaErrorIllegalAddress;
    for (int column = 0; column < p->n; column++)
        for (int row = 0; row < p->m; row++) {
            float sum = 0, *out = &c[column * p->ldc + row];
            for (int i = 0; i < p->k; i++)
                sum += b[p->b_transposed ? i * p->ldb + column : column * p->ldb + i] *
                       a[p->a_transposed ? row * p->lda + i : i * p->lda + row];
            *out = p->alpha * sum + (p->beta == 0 ? 0 : p->beta * *out);
        }
    return cudaSuccess;
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b,
                              int m, int n, int k, const float *alpha, const float *a, int lda,
                              const float *b, int ldb, const float *beta, float *c, int ldc)
{
    struct product product = {.a_transposed = of_a != CUBLAS_OP_N,
                              .b_transposed = of_b != CUBLAS_OP_N,
                              .m = m,
                              .n = n,
                              .k = k,
                              .lda = lda,
                              .ldb = ldb,
                              .ldc = ldc,
                              .alpha = *alpha,
                              .beta = *beta,
                              .a = a,
                              .b = b,
                              .c = c};
    if (m < 0 || n < 0 || k < 0 || lda < (product.a_transposed ? k : m) ||
        ldb < (product.b_transposed ? n : k) || ldc < m)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (call_begin("cublasSgemm") != cudaSuccess)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    struct CUstream_st *stream = any_stream(handle->stream, "cublasSgemm");
    product.gpu = stream ? stream->gpu : 0;
    const cudaError_t error =
        stream ? stream_push_work(stream, run, &product, sizeof product, ACTIVITY_KERNEL)
               : cudaErrorMemoryAllocation;
    return call_end(error) == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}
