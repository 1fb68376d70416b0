/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dense.h - the arithmetic of dense layers, written once for all devices and for the serial result.
 *
 * Numbers are f32, matrices row-major; w is in x out numbers, and `out` biases behind them. Each number of a result is
 * computed by itself (dense_element), by additions, multiplications, divisions and comparisons in a fixed order, each
 * rounded once: no fused operations, no library. So it has the same bits on every device that rounds as IEEE 754 says,
 * however many threads compute it. A result overlaps no operand, but that ADD adds to it.
 *
 * A number that is not written is not a number, and no operation here loses that.
 *
 * Sources: exp and log after the Cephes library (S. Moshier), gelu by its approximation with tanh (Hendrycks, Gimpel
 * 2016), written as x / (1 + exp(-2u)).
 */
#ifndef SWSIM_DENSE_H
#define SWSIM_DENSE_H

#include <stdint.h>
#include <string.h>

#include "plan/schedules/arithmetic.h"

/* The operands a and b, and the result c. */
enum dense_kind {
    DENSE_FORWARD,             /* x, w, c: x w + bias, d: f of it */
    DENSE_LOSS,                /* y, wanted, c: one number */
    DENSE_LOSS_GRADIENT,       /* y, wanted, c: of y */
    DENSE_ACTIVATION_GRADIENT, /* of y, x w + bias, c: of x w + bias */
    DENSE_INPUT_GRADIENT,      /* of x w + bias, w, c: of x */
    DENSE_WEIGHT_GRADIENT, /* x, of x w + bias, c: of w and bias; added to what is there if `add` */
    DENSE_ADD              /* a, -, c: c + a, `in` numbers */
};

struct dense {
    enum dense_kind kind;
    enum layer_function activation;
    enum loss_kind loss;
    int add;
    int64_t rows, in, out;
    const float *a, *b;
    float *c, *d;
};

#ifdef __CUDACC__
#define DENSE_CODE __host__ __device__ static inline
#else
#define DENSE_CODE static inline
#endif

/* Rounded twice: compiled with -ffp-contract=off, by nvcc with -fmad=false. */
DENSE_CODE float dense_madd(float sum, float a, float b)
{
    return sum + a * b;
}

/* ---- functions of one number ----------------------------------------------------------------- */

DENSE_CODE float dense_exp(float x)
{
    const float least = -87.0F, most = 88.0F;
    if (!(x == x))
        return x;
    x = x < least ? least : x > most ? most : x;
    float scaled = x * 1.44269504088896341F;
    int32_t n = (int32_t)(scaled < 0 ? scaled - 0.5F : scaled + 0.5F);
    float r = dense_madd(dense_madd(x, (float)n, -0.693359375F), (float)n, 2.12194440e-4F);
    float y = 1.9875691500E-4F;
    y = dense_madd(1.3981999507E-3F, y, r);
    y = dense_madd(8.3334519073E-3F, y, r);
    y = dense_madd(4.1665795894E-2F, y, r);
    y = dense_madd(1.6666665459E-1F, y, r);
    y = dense_madd(5.0000001201E-1F, y, r);
    y = dense_madd(r, y, r * r) + 1.0F;
    uint32_t bits = (uint32_t)(n + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return y * power;
}

/* Of a normal number above 0. */
DENSE_CODE float dense_log(float x)
{
    if (!(x == x))
        return x;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    int32_t n = (int32_t)(bits >> 23) - 126;
    bits = (bits & 0x7fffffU) | 0x3f000000U; /* from 0.5 to 1 */
    memcpy(&x, &bits, sizeof x);
    if (x < 0.707106781186547524F) {
        n--;
        x = x + x;
    }
    x = x - 1.0F;
    float z = x * x, y = 7.0376836292E-2F;
    y = dense_madd(-1.1514610310E-1F, y, x);
    y = dense_madd(1.1676998740E-1F, y, x);
    y = dense_madd(-1.2420140846E-1F, y, x);
    y = dense_madd(1.4249322787E-1F, y, x);
    y = dense_madd(-1.6668057665E-1F, y, x);
    y = dense_madd(2.0000714765E-1F, y, x);
    y = dense_madd(-2.4999993993E-1F, y, x);
    y = dense_madd(3.3333331174E-1F, y, x);
    y = y * x * z;
    y = dense_madd(y, (float)n, -2.12194440e-4F);
    y = dense_madd(y, -0.5F, z);
    return dense_madd(x + y, (float)n, 0.693359375F);
}

/* 1 / (1 + exp(-2u)) with u = sqrt(2 / pi) (x + 0.044715 x^3) */
DENSE_CODE float dense_gate(float x)
{
    float u = 0.7978845608F * dense_madd(x, 0.044715F * x, x * x);
    return 1.0F / (1.0F + dense_exp(-2.0F * u));
}

DENSE_CODE float dense_activate(enum layer_function activation, float x)
{
    if (activation == LAYER_FUNCTION_RELU)
        return x < 0 ? 0 : x;
    return activation == LAYER_FUNCTION_GELU ? x * dense_gate(x) : x;
}

DENSE_CODE float dense_slope(enum layer_function activation, float x)
{
    if (activation == LAYER_FUNCTION_RELU)
        return x > 0 ? 1.0F : x <= 0 ? 0.0F : x;
    if (activation == LAYER_FUNCTION_NONE)
        return 1.0F;
    float gate = dense_gate(x);
    float inner = 1.5957691216F * dense_madd(1.0F, 0.134145F * x, x); /* of 2u */
    return dense_madd(gate, x * gate * (1.0F - gate), inner);
}

/* ---- one number of a result ------------------------------------------------------------------ */

DENSE_CODE void dense_forward(const struct dense *of, int64_t row, int64_t column, int64_t at)
{
    float sum = of->b[of->in * of->out + column];
    for (int64_t k = 0; k < of->in; k++)
        sum = dense_madd(sum, of->a[row * of->in + k], of->b[k * of->out + column]);
    of->c[at] = sum;
    of->d[at] = dense_activate(of->activation, sum);
}

/* Of the softmax of a row: the largest number, and the sum of exp(number - largest). */
DENSE_CODE float dense_softmax(const struct dense *of, int64_t row, float *largest)
{
    const float *y = of->a + row * of->out;
    float most = y[0], sum = 0;
    for (int64_t j = 1; j < of->out; j++)
        most = y[j] > most ? y[j] : most;
    for (int64_t j = 0; j < of->out; j++)
        sum = sum + dense_exp(y[j] - most);
    *largest = most;
    return sum;
}

DENSE_CODE float dense_row_loss(const struct dense *of, int64_t row)
{
    const float *y = of->a + row * of->out, *wanted = of->b + row * of->out;
    float sum = 0, most = 0;
    if (of->loss == LOSS_MSE) {
        for (int64_t j = 0; j < of->out; j++)
            sum = dense_madd(sum, y[j] - wanted[j], y[j] - wanted[j]);
        return sum / (float)of->out;
    }
    float log_sum = dense_log(dense_softmax(of, row, &most));
    for (int64_t j = 0; j < of->out; j++)
        sum = dense_madd(sum, wanted[j], log_sum - (y[j] - most));
    return sum;
}

DENSE_CODE void dense_loss(const struct dense *of)
{
    float sum = 0;
    for (int64_t row = 0; row < of->rows; row++)
        sum = sum + dense_row_loss(of, row);
    of->c[0] = sum / (float)of->rows;
}

DENSE_CODE void dense_loss_gradient(const struct dense *of, int64_t row, int64_t at)
{
    float most = 0;
    if (of->loss == LOSS_MSE) {
        of->c[at] = 2.0F * (of->a[at] - of->b[at]) / (float)(of->rows * of->out);
        return;
    }
    float sum = dense_softmax(of, row, &most);
    of->c[at] = (dense_exp(of->a[at] - most) / sum - of->b[at]) / (float)of->rows;
}

DENSE_CODE void dense_input_gradient(const struct dense *of, int64_t row, int64_t column,
                                     int64_t at)
{
    float sum = 0;
    for (int64_t j = 0; j < of->out; j++)
        sum = dense_madd(sum, of->a[row * of->out + j], of->b[column * of->out + j]);
    of->c[at] = sum;
}

/* The biases stand behind the weights, as if the input had a further number, 1. */
DENSE_CODE void dense_weight_gradient(const struct dense *of, int64_t row, int64_t column,
                                      int64_t at)
{
    float sum = 0;
    for (int64_t r = 0; r < of->rows; r++)
        sum = dense_madd(sum, row < of->in ? of->a[r * of->in + row] : 1.0F,
                         of->b[r * of->out + column]);
    of->c[at] = of->add ? of->c[at] + sum : sum;
}

/* The columns of the result, and how many numbers it has. */
DENSE_CODE int64_t dense_columns(const struct dense *of)
{
    return of->kind == DENSE_INPUT_GRADIENT ? of->in : of->kind == DENSE_ADD ? 1 : of->out;
}

DENSE_CODE int64_t dense_numbers(const struct dense *of)
{
    switch (of->kind) {
    case DENSE_LOSS: return 1;
    case DENSE_INPUT_GRADIENT: return of->rows * of->in;
    case DENSE_WEIGHT_GRADIENT: return (of->in + 1) * of->out;
    case DENSE_ADD: return of->in;
    case DENSE_FORWARD:
    case DENSE_LOSS_GRADIENT:
    case DENSE_ACTIVATION_GRADIENT: break;
    }
    return of->rows * of->out;
}

/* The numbers of each operand: of a, b, c, d. */
enum { DENSE_OPERANDS = 4 };
DENSE_CODE void dense_sizes(const struct dense *of, int64_t sizes[DENSE_OPERANDS])
{
    int64_t weights = of->in * of->out, x = of->rows * of->in, y = of->rows * of->out;
    sizes[0] = of->kind == DENSE_ADD                                            ? of->in
               : of->kind == DENSE_FORWARD || of->kind == DENSE_WEIGHT_GRADIENT ? x
                                                                                : y;
    sizes[1] = of->kind == DENSE_ADD              ? 0
               : of->kind == DENSE_FORWARD        ? weights + of->out
               : of->kind == DENSE_INPUT_GRADIENT ? weights
                                                  : y;
    sizes[2] = dense_numbers(of);
    sizes[3] = of->kind == DENSE_FORWARD ? y : 0;
}

/* The number at `at` of the result. */
DENSE_CODE void dense_element(const struct dense *of, int64_t at)
{
    int64_t row = at / dense_columns(of), column = at - row * dense_columns(of);
    switch (of->kind) {
    case DENSE_FORWARD: dense_forward(of, row, column, at); break;
    case DENSE_LOSS: dense_loss(of); break;
    case DENSE_LOSS_GRADIENT: dense_loss_gradient(of, row, at); break;
    case DENSE_ACTIVATION_GRADIENT:
        of->c[at] = of->a[at] * dense_slope(of->activation, of->b[at]);
        break;
    case DENSE_INPUT_GRADIENT: dense_input_gradient(of, row, column, at); break;
    case DENSE_WEIGHT_GRADIENT: dense_weight_gradient(of, row, column, at); break;
    case DENSE_ADD: of->c[at] = of->c[at] + of->a[at]; break;
    }
}

#ifndef __CUDACC__
#include <stdatomic.h>

/* All numbers, on this thread. Returns early, the result then undefined, when *stop becomes true; NULL: it never does. */
static inline void dense_compute(const struct dense *of, const atomic_bool *stop)
{
    const int64_t numbers = dense_numbers(of), piece = 256; /* between two looks at *stop */
    for (int64_t at = 0; at < numbers && !(stop && atomic_load(stop)); at += piece)
        for (int64_t i = at; i < numbers && i < at + piece; i++)
            dense_element(of, i);
}
#endif

#endif
