/* SPDX-License-Identifier: Apache-2.0 */
/* blas_lt.c - cuBLASLt without a GPU: a product of matrices whose layouts and epilogue are objects. See blas.c. */
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

#include "trace/record/recorder/swsim_ops.h"

typedef uint64_t word;

#pragma weak swsim_op
#pragma weak swsim_text
#pragma weak swsim_work

enum { LT_INVALID_VALUE = 7, LT_NO_MEMORY = 3 };

/* Layouts, descriptions of a product and preferences are 64 bytes that the program may have itself (Init). */
struct lt_layout {
    int kind, order;
    word rows, columns, leading, stride;
    int batch;
};
struct lt_product {
    int transa, transb, epilogue, bias_kind, compute;
    const void *bias, *auxiliary;
};

#define CREATE(function, type, PARAMS, ...)                                                        \
    FACE(int, function##Create, PARAMS)                                                            \
    {                                                                                              \
        *out = calloc(1, 64);                                                                      \
        if (!*out)                                                                                 \
            return LT_NO_MEMORY;                                                                   \
        **out = (type)__VA_ARGS__;                                                                 \
        return 0;                                                                                  \
    }                                                                                              \
    FACE(int, function##Destroy, (type * at))                                                      \
    {                                                                                              \
        free(at);                                                                                  \
        return 0;                                                                                  \
    }
typedef struct lt_layout lt_layout;
typedef struct lt_product lt_product;
CREATE(cublasLtMatrixLayout, lt_layout,
       (lt_layout * *out, int kind, uint64_t rows, uint64_t columns, int64_t leading),
       {kind, 0, rows, columns, (word)leading, 0, 1})
CREATE(cublasLtMatmulDesc, lt_product, (lt_product * *out, int compute, int scale),
       {.bias_kind = scale, .compute = compute})
typedef struct lt_preference {
    int unused;
} lt_preference;
CREATE(cublasLtMatmulPreference, lt_preference, (lt_preference * *out), {0})

FACE(int, cublasLtMatrixLayoutInit_internal,
     (lt_layout * out, size_t room, int kind, uint64_t rows, uint64_t columns, int64_t leading))
{
    if (room < sizeof *out)
        return LT_INVALID_VALUE;
    *out = (lt_layout){kind, 0, rows, columns, (word)leading, 0, 1};
    return 0;
}
FACE(int, cublasLtMatmulDescInit_internal, (lt_product * out, size_t room, int compute, int scale))
{
    if (room < sizeof *out)
        return LT_INVALID_VALUE;
    *out = (lt_product){.bias_kind = scale, .compute = compute};
    return 0;
}
VALUE(int, cublasLtMatmulPreferenceInit_internal, (lt_preference * out, size_t room),
      (memset(out, 0, room), 0))

/* The attributes that say what is accessed; others say how fast, or with which rounding. */
enum {
    LAYOUT_KIND,
    LAYOUT_ORDER,
    LAYOUT_ROWS,
    LAYOUT_COLUMNS,
    LAYOUT_LEADING,
    LAYOUT_BATCH,
    LAYOUT_STRIDE
};
FACE(int, cublasLtMatrixLayoutSetAttribute,
     (lt_layout * layout, int attribute, const void *value, size_t bytes))
{
    int64_t wide = 0;
    memcpy(&wide, value, bytes < sizeof wide ? bytes : sizeof wide);
    switch (attribute) {
    case LAYOUT_KIND: layout->kind = (int)wide; break;
    case LAYOUT_ORDER: layout->order = (int)wide; break;
    case LAYOUT_ROWS: layout->rows = (word)wide; break;
    case LAYOUT_COLUMNS: layout->columns = (word)wide; break;
    case LAYOUT_LEADING: layout->leading = (word)wide; break;
    case LAYOUT_BATCH: layout->batch = (int)wide; break;
    case LAYOUT_STRIDE: layout->stride = (word)wide; break;
    default: break;
    }
    return 0;
}
enum {
    PRODUCT_TRANSA = 3,
    PRODUCT_TRANSB = 4,
    PRODUCT_EPILOGUE = 7,
    PRODUCT_BIAS = 8,
    PRODUCT_AUXILIARY = 11,
    PRODUCT_BIAS_KIND = 26
};
FACE(int, cublasLtMatmulDescSetAttribute,
     (lt_product * product, int attribute, const void *value, size_t bytes))
{
    int64_t wide = 0;
    memcpy(&wide, value, bytes < sizeof wide ? bytes : sizeof wide);
    switch (attribute) {
    case PRODUCT_TRANSA: product->transa = (int)wide; break;
    case PRODUCT_TRANSB: product->transb = (int)wide; break;
    case PRODUCT_EPILOGUE: product->epilogue = (int)wide; break;
    case PRODUCT_BIAS: product->bias = (const void *)(uintptr_t)wide; break;
    case PRODUCT_AUXILIARY: product->auxiliary = (const void *)(uintptr_t)wide; break;
    case PRODUCT_BIAS_KIND: product->bias_kind = (int)wide; break;
    default: break;
    }
    return 0;
}
VALUE(int, cublasLtMatmulPreferenceSetAttribute,
      (lt_preference * preference, int attribute, const void *value, size_t bytes), 0)

VALUE(int, cublasLtCreate, (void **out), (*out = calloc(1, 64), *out ? 0 : LT_NO_MEMORY))
VALUE(int, cublasLtDestroy, (void *handle), (free(handle), 0))
VALUE(size_t, cublasLtGetVersion, (void), runtime_major == 12 ? 120804 : 130000)
VALUE(size_t, cublasLtGetCudartVersion, (void), runtime_major == 12 ? 12080 : 13000)

/* One algorithm, without a workspace. */
struct lt_found {
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};
FACE(int, cublasLtMatmulAlgoGetHeuristic,
     (void *handle, lt_product *product, lt_layout *a, lt_layout *b, lt_layout *c, lt_layout *d,
      lt_preference *preference, int room, struct lt_found *out, int *count))
{
    *count = room > 0;
    if (room > 0)
        *out = (struct lt_found){.waves = 1};
    return 0;
}

static size_t lt_kind_bytes(int kind)
{
    switch (kind) {
    case 5: return 16; /* CUDA_C_64F */
    case 1:
    case 4: return 8; /* R_64F, C_32F */
    case 0:
    case 10:
    case 12: return 4; /* R_32F, R_32I, R_32U */
    case 2:
    case 14: return 2; /* R_16F, R_16BF */
    default: return 1;
    }
}
static struct swsim_access lt_matrix(const void *at, const lt_layout *layout, bool written)
{
    enum { BY_ROWS = 1 };
    const word rows = layout->order == BY_ROWS ? layout->columns : layout->rows,
               columns = layout->order == BY_ROWS ? layout->rows : layout->columns;
    const word own = rows == 0 || columns == 0 ? 0 : (columns - 1) * layout->leading + rows;
    const word all = own == 0 ? 0 : (word)(layout->batch - 1) * layout->stride + own;
    return (struct swsim_access){(word)(uintptr_t)at, all * lt_kind_bytes(layout->kind) |
                                                          (written ? SWSIM_OPS_WRITE : 0)};
}
/* The bias has an element for each row of the result; the epilogue may write another matrix of the result's size. */
FACE(int, cublasLtMatmul,
     (void *handle, lt_product *product, const void *alpha, const void *a, lt_layout *alayout,
      const void *b, lt_layout *blayout, const void *beta, const void *c, lt_layout *clayout,
      void *d, lt_layout *dlayout, const void *algorithm, void *workspace, size_t workspace_bytes,
      void *stream))
{
    struct swsim_access accesses[6];
    size_t count = 0;
    accesses[count++] = lt_matrix(a, alayout, false);
    accesses[count++] = lt_matrix(b, blayout, false);
    if (c && c != d)
        accesses[count++] = lt_matrix(c, clayout, false);
    accesses[count++] = lt_matrix(d, dlayout, true);
    if (product->bias)
        accesses[count++] = (struct swsim_access){(word)(uintptr_t)product->bias,
                                                  dlayout->rows * lt_kind_bytes(dlayout->kind)};
    if (product->auxiliary)
        accesses[count++] =
            (struct swsim_access){(word)(uintptr_t)product->auxiliary,
                                  (dlayout->rows * dlayout->columns) | SWSIM_OPS_WRITE};
    enum { COMPUTE_32F_FAST_TF32 = 77 };
    if (swsim_work)
        swsim_work(
            2 * dlayout->rows * dlayout->columns *
                (product->transa ? alayout->rows : alayout->columns) * (word)dlayout->batch,
            blas_rate(lt_kind_bytes(alayout->kind), product->compute == COMPUTE_32F_FAST_TF32));
    none_push_kernel(stream);
    if (swsim_op)
        swsim_op(stream, swsim_text("cublasLtMatmul"), accesses, count);
    return 0;
}
