/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blas.c - cuBLAS without a GPU: each product is one operation on its handle's stream, with exactly the operands that its
 * arguments say.
 *
 * All functions here take handles, numbers and addresses, which come as words. A function without an equal ends the run by
 * its name (missing.c).
 */
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

#include "trace/record/recorder/swsim_ops.h"

typedef uint64_t word;

#pragma weak swsim_op
#pragma weak swsim_text
#pragma weak swsim_work

enum { BLAS_INVALID_VALUE = 7, BLAS_NOT_INITIALIZED = 1 };

struct blas_handle {
    void *stream;
    int math, pointers, atomics, reserved_multiprocessors;
};

void blas_work(const void *stream, const char *name, const struct swsim_access *accesses,
               size_t count)
{
    none_push_kernel(stream);
    if (swsim_op)
        swsim_op(stream, swsim_text(name), accesses, count);
}

/* ---- handles ------------------------------------------------------------------------------------------- */

VALUE(int, cublasCreate_v2, (struct blas_handle * *out),
      (*out = calloc(1, sizeof **out), *out ? 0 : BLAS_NOT_INITIALIZED))
VALUE(int, cublasDestroy_v2, (struct blas_handle * handle), (free(handle), 0))
VALUE(int, cublasGetVersion_v2, (struct blas_handle * handle, int *out),
      (*out = runtime_major == 12 ? 120804 : 130000, 0))
VALUE(int, cublasSetStream_v2, (struct blas_handle * handle, void *stream),
      (handle->stream = stream, 0))
VALUE(int, cublasGetStream_v2, (struct blas_handle * handle, void **out),
      (*out = handle->stream, 0))
/* The workspace is used in the order of the stream. */
VALUE(int, cublasSetWorkspace_v2, (struct blas_handle * handle, void *at, size_t bytes), 0)
#define SETTING(name, member)                                                                      \
    FACE(int, cublasSet##name, (struct blas_handle * handle, int value))                           \
    {                                                                                              \
        handle->member = value;                                                                    \
        return 0;                                                                                  \
    }                                                                                              \
    FACE(int, cublasGet##name, (struct blas_handle * handle, int *out))                            \
    {                                                                                              \
        *out = handle->member;                                                                     \
        return 0;                                                                                  \
    }
SETTING(MathMode, math)
SETTING(PointerMode_v2, pointers)
SETTING(AtomicsMode, atomics)
SETTING(SmCountTarget, reserved_multiprocessors)
VALUE(const char *, cublasGetStatusString, (int status),
      status == 0 ? "success" : "an error of cuBLAS")
VALUE(const char *, cublasGetStatusName, (int status),
      status == 0 ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_INVALID_VALUE")

/* ---- matrices ---------------------------------------------------------------------------------------------- */

enum { KIND_R_32F, KIND_R_64F, KIND_R_16F, KIND_R_8I, KIND_C_32F, KIND_C_64F };
size_t blas_kind_bytes(int kind)
{
    switch (kind) {
    case 1: return 8; /* CUDA_R_64F */
    case 4:
    case 24:
    case 25: return 8; /* C_32F, R_64I, R_64U */
    case 5:
    case 26:
    case 27: return 16; /* C_64F, C_64I, C_64U */
    case 0:
    case 6:
    case 10:
    case 11:
    case 12: return 4; /* R_32F, C_16F, R_32I, ... */
    case 2:
    case 14:
    case 20:
    case 22: return 2; /* R_16F, R_16BF, 16 bits */
    case 13:
    case 15: return 4; /* complex of 16 bits */
    default: return 1;
    }
}

/* A matrix as BLAS has it: columns of `leading` elements, of which the last may be shorter; `batch` of them. */
struct swsim_access blas_matrix(const void *at, word rows, word columns, word leading, word stride,
                                word batch, size_t bytes, bool written)
{
    const word own = columns == 0 || rows == 0 ? 0 : (columns - 1) * leading + rows;
    const word all = batch == 0 || own == 0 ? 0 : (batch - 1) * stride + own;
    return (struct swsim_access){(word)(uintptr_t)at,
                                 all * bytes | (written ? SWSIM_OPS_WRITE : 0)};
}

struct blas_product {
    word transa, transb, m, n, k;
    const void *a, *b, *c;
    word lda, ldb, ldc, stridea, strideb, stridec, batch;
    size_t bytesa, bytesb, bytesc;
};
static int multiply(const struct blas_handle *handle, const char *name,
                    const struct blas_product *p)
{
    const struct swsim_access accesses[] = {
        blas_matrix(p->a, p->transa ? p->k : p->m, p->transa ? p->m : p->k, p->lda, p->stridea,
                    p->batch, p->bytesa, false),
        blas_matrix(p->b, p->transb ? p->n : p->k, p->transb ? p->k : p->n, p->ldb, p->strideb,
                    p->batch, p->bytesb, false),
        blas_matrix(p->c, p->m, p->n, p->ldc, p->stridec, p->batch, p->bytesc, true)};
    enum { TF32_TENSOR_OP_MATH = 3 };
    if (swsim_work)
        swsim_work(2 * p->m * p->n * p->k * p->batch,
                   blas_rate(p->bytesa, handle->math == TF32_TENSOR_OP_MATH));
    blas_work(handle->stream, name, accesses, 3);
    return 0;
}

/*    LETTER, bytes of an element */
#define PLAIN_LIST(X) X(S, 4) X(D, 8) X(C, 8) X(Z, 16)
#define GEMM(letter, bytes)                                                                        \
    FACE(int, cublas##letter##gemm_v2,                                                             \
         (struct blas_handle * handle, int ta, int tb, int m, int n, int k, const void *alpha,     \
          const void *a, int lda, const void *b, int ldb, const void *beta, void *c, int ldc))     \
    {                                                                                              \
        (void)alpha, (void)beta;                                                                   \
        return multiply(handle, "cublas" #letter "gemm",                                           \
                        &(struct blas_product){(word)ta, (word)tb, (word)m, (word)n, (word)k, a,   \
                                               b, c, (word)lda, (word)ldb, (word)ldc, 0, 0, 0, 1,  \
                                               bytes, bytes, bytes});                              \
    }                                                                                              \
    FACE(int, cublas##letter##gemmStridedBatched,                                                  \
         (struct blas_handle * handle, int ta, int tb, int m, int n, int k, const void *alpha,     \
          const void *a, int lda, long long sa, const void *b, int ldb, long long sb,              \
          const void *beta, void *c, int ldc, long long sc, int batch))                            \
    {                                                                                              \
        (void)alpha, (void)beta;                                                                   \
        return multiply(handle, "cublas" #letter "gemmStridedBatched",                             \
                        &(struct blas_product){(word)ta, (word)tb, (word)m, (word)n, (word)k, a,   \
                                               b, c, (word)lda, (word)ldb, (word)ldc, (word)sa,    \
                                               (word)sb, (word)sc, (word)batch, bytes, bytes,      \
                                               bytes});                                            \
    }                                                                                              \
    FACE(int, cublas##letter##gemv_v2,                                                             \
         (struct blas_handle * handle, int t, int m, int n, const void *alpha, const void *a,      \
          int lda, const void *x, int incx, const void *beta, void *y, int incy))                  \
    {                                                                                              \
        (void)alpha, (void)beta;                                                                   \
        const struct swsim_access accesses[] = {                                                   \
            blas_matrix(a, (word)m, (word)n, (word)lda, 0, 1, bytes, false),                       \
            blas_matrix(x, 1, (word)(t ? m : n), (word)abs(incx), 0, 1, bytes, false),             \
            blas_matrix(y, 1, (word)(t ? n : m), (word)abs(incy), 0, 1, bytes, true)};             \
        blas_work(handle->stream, "cublas" #letter "gemv", accesses, 3);                           \
        return 0;                                                                                  \
    }                                                                                              \
    FACE(int, cublas##letter##axpy_v2,                                                             \
         (struct blas_handle * handle, int n, const void *alpha, const void *x, int incx, void *y, \
          int incy))                                                                               \
    {                                                                                              \
        (void)alpha;                                                                               \
        const struct swsim_access accesses[] = {                                                   \
            blas_matrix(x, 1, (word)n, (word)abs(incx), 0, 1, bytes, false),                       \
            blas_matrix(y, 1, (word)n, (word)abs(incy), 0, 1, bytes, true)};                       \
        blas_work(handle->stream, "cublas" #letter "axpy", accesses, 2);                           \
        return 0;                                                                                  \
    }                                                                                              \
    FACE(int, cublas##letter##scal_v2,                                                             \
         (struct blas_handle * handle, int n, const void *alpha, void *x, int incx))               \
    {                                                                                              \
        (void)alpha;                                                                               \
        const struct swsim_access access =                                                         \
            blas_matrix(x, 1, (word)n, (word)abs(incx), 0, 1, bytes, true);                        \
        blas_work(handle->stream, "cublas" #letter "scal", &access, 1);                            \
        return 0;                                                                                  \
    }                                                                                              \
    FACE(int, cublas##letter##trsm_v2,                                                             \
         (struct blas_handle * handle, int side, int uplo, int t, int diagonal, int m, int n,      \
          const void *alpha, const void *a, int lda, void *b, int ldb))                            \
    {                                                                                              \
        (void)uplo, (void)t, (void)diagonal, (void)alpha;                                          \
        const word own = (word)(side == 0 ? m : n);                                                \
        const struct swsim_access accesses[] = {                                                   \
            blas_matrix(a, own, own, (word)lda, 0, 1, bytes, false),                               \
            blas_matrix(b, (word)m, (word)n, (word)ldb, 0, 1, bytes, true)};                       \
        blas_work(handle->stream, "cublas" #letter "trsm", accesses, 2);                           \
        return 0;                                                                                  \
    }
PLAIN_LIST(GEMM)

/* A result that is a number of the host's has waited for the stream. */
static int dot(const struct blas_handle *handle, const char *name, word n, const void *x, word incx,
               const void *y, word incy, void *out, size_t bytes)
{
    const struct swsim_access accesses[] = {blas_matrix(x, 1, n, incx, 0, 1, bytes, false),
                                            blas_matrix(y, 1, n, incy, 0, 1, bytes, false),
                                            blas_matrix(out, 1, 1, 1, 0, 1, bytes, true)};
    blas_work(handle->stream, name, accesses, handle->pointers ? 3 : 2);
    if (!handle->pointers)
        none_missing(name, "a result in memory of the host; set CUBLAS_POINTER_MODE_DEVICE");
    return 0;
}
#define DOT(name, bytes)                                                                           \
    FACE(int, cublas##name##_v2,                                                                   \
         (struct blas_handle * handle, int n, const void *x, int incx, const void *y, int incy,    \
          void *out))                                                                              \
    {                                                                                              \
        return dot(handle, "cublas" #name, (word)n, x, (word)abs(incx), y, (word)abs(incy), out,   \
                   bytes);                                                                         \
    }
DOT(Sdot, 4)
DOT(Ddot, 8)
DOT(Cdotu, 8)
DOT(Cdotc, 8)
DOT(Zdotu, 16)
DOT(Zdotc, 16)
VALUE(int, cublasDotEx,
      (struct blas_handle * handle, int n, const void *x, int xkind, int incx, const void *y,
       int ykind, int incy, void *out, int kind, int compute),
      dot(handle, "cublasDotEx", (word)n, x, (word)abs(incx), y, (word)abs(incy), out,
          blas_kind_bytes(xkind)))

FACE(int, cublasGemmEx,
     (struct blas_handle * handle, int ta, int tb, int m, int n, int k, const void *alpha,
      const void *a, int akind, int lda, const void *b, int bkind, int ldb, const void *beta,
      void *c, int ckind, int ldc, int compute, int algorithm))
{
    return multiply(handle, "cublasGemmEx",
                    &(struct blas_product){(word)ta, (word)tb, (word)m, (word)n, (word)k, a, b, c,
                                           (word)lda, (word)ldb, (word)ldc, 0, 0, 0, 1,
                                           blas_kind_bytes(akind), blas_kind_bytes(bkind),
                                           blas_kind_bytes(ckind)});
}
VALUE(int, cublasSgemmEx,
      (struct blas_handle * handle, int ta, int tb, int m, int n, int k, const void *alpha,
       const void *a, int akind, int lda, const void *b, int bkind, int ldb, const void *beta,
       void *c, int ckind, int ldc),
      cublasGemmEx(handle, ta, tb, m, n, k, alpha, a, akind, lda, b, bkind, ldb, beta, c, ckind,
                   ldc, 0, 0))
FACE(int, cublasGemmStridedBatchedEx,
     (struct blas_handle * handle, int ta, int tb, int m, int n, int k, const void *alpha,
      const void *a, int akind, int lda, long long sa, const void *b, int bkind, int ldb,
      long long sb, const void *beta, void *c, int ckind, int ldc, long long sc, int batch,
      int compute, int algorithm))
{
    return multiply(handle, "cublasGemmStridedBatchedEx",
                    &(struct blas_product){(word)ta, (word)tb, (word)m, (word)n, (word)k, a, b, c,
                                           (word)lda, (word)ldb, (word)ldc, (word)sa, (word)sb,
                                           (word)sc, (word)batch, blas_kind_bytes(akind),
                                           blas_kind_bytes(bkind), blas_kind_bytes(ckind)});
}
