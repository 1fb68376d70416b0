/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_dense.c - the arithmetic of dense layers: its functions beside the C library's, its gradients beside differences,
 * and the bits of a few results, which must be the same with every compiler and on every machine.
 */
#include "gpu/device/dense.h"

#include <math.h>

#include "base/hash.h"
#include "tests/tap.h"

static double relative(double found, double expected)
{
    double scale = fabs(expected) > 1e-30 ? fabs(expected) : 1e-30;
    return fabs(found - expected) / scale;
}

static void test_exp(void)
{
    double worst = 0;
    for (float x = -80; x < 85; x += 0.0137F)
        worst = fmax(worst, relative((double)dense_exp(x), exp((double)x)));
    tap_ok(worst < 3e-7, "exp is right to 3e-7, worst %g", worst);
    tap_ok(dense_exp(-1e30F) > 0 && isfinite(dense_exp(1e30F)), "exp is finite and above 0");
    tap_ok(isnan(dense_exp(NAN)) && isnan(dense_log(NAN)), "what is not a number stays so");
}

static void test_log(void)
{
    double worst = 0;
    for (float x = 1.0F; x < 1e30F; x *= 1.00371F)
        worst = fmax(worst, fabs((double)dense_log(x) - log((double)x)) /
                                fmax(1e-3, fabs(log((double)x))));
    tap_ok(worst < 3e-7, "log is right to 3e-7, worst %g", worst);
}

static double true_gelu(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

static void test_gelu(void)
{
    double value = 0, slope = 0, step = 1e-6;
    for (float x = -6; x < 6; x += 0.013F) {
        double at = (double)x, found = (double)dense_activate(LAYER_FUNCTION_GELU, x);
        double change = (true_gelu(at + step) - true_gelu(at - step)) / (2 * step);
        value = fmax(value, fabs(found - true_gelu(at)));
        slope = fmax(slope, fabs((double)dense_slope(LAYER_FUNCTION_GELU, x) - change));
    }
    tap_ok(value < 2e-6 && slope < 2e-6, "gelu and its slope, off by %g and %g", value, slope);
    tap_ok(isnan(dense_activate(LAYER_FUNCTION_RELU, NAN)) &&
               isnan(dense_slope(LAYER_FUNCTION_RELU, NAN)),
           "relu of what is not a number");
}

/* ---- a layer and a loss ---------------------------------------------------------------------- */

enum { ROWS = 3, IN = 4, OUT = 5 };

struct layer {
    float x[ROWS * IN], w[(IN + 1) * OUT], wanted[ROWS * OUT];
    float before[ROWS * OUT], y[ROWS * OUT], loss;
    float gy[ROWS * OUT], inner[ROWS * OUT], gx[ROWS * IN], gw[(IN + 1) * OUT];
    enum layer_function activation;
    enum loss_kind kind;
};

static void fill(float *out, int count, uint64_t seed)
{
    for (int i = 0; i < count; i++)
        out[i] = (float)(hash_mix(seed * 1000 + (uint64_t)i) >> 40) / (float)(1 << 23) - 1.0F;
}

static void step(const struct layer *of, enum dense_kind kind, const float *a, const float *b,
                 float *c, float *d)
{
    struct dense dense = {kind, of->activation, of->kind, 0, ROWS, IN, OUT, a, b, c, d};
    dense_compute(&dense, NULL);
}

static void forward(struct layer *of)
{
    step(of, DENSE_FORWARD, of->x, of->w, of->before, of->y);
    step(of, DENSE_LOSS, of->y, of->wanted, &of->loss, NULL);
}

static void backward(struct layer *of)
{
    step(of, DENSE_LOSS_GRADIENT, of->y, of->wanted, of->gy, NULL);
    step(of, DENSE_ACTIVATION_GRADIENT, of->gy, of->before, of->inner, NULL);
    step(of, DENSE_INPUT_GRADIENT, of->inner, of->w, of->gx, NULL);
    step(of, DENSE_WEIGHT_GRADIENT, of->x, of->inner, of->gw, NULL);
}

static struct layer layer_of(enum layer_function activation, enum loss_kind kind)
{
    struct layer of = {.activation = activation, .kind = kind};
    fill(of.x, ROWS * IN, 1);
    fill(of.w, (IN + 1) * OUT, 2);
    fill(of.wanted, ROWS * OUT, 3);
    for (int i = 0; i < ROWS * OUT && kind == LOSS_CROSS_ENTROPY; i++)
        of.wanted[i] = (float)(i % OUT == i / OUT);
    forward(&of);
    backward(&of);
    return of;
}

/* The largest error of a gradient beside the change of the loss. */
static double worst_gradient(struct layer *of, float *number, const float *gradient, int count)
{
    double worst = 0, step_size = 1.0 / 256;
    for (int i = 0; i < count; i++) {
        float was = number[i];
        number[i] = was + (float)step_size;
        forward(of);
        double up = (double)of->loss;
        number[i] = was - (float)step_size;
        forward(of);
        double change = (up - (double)of->loss) / (2 * step_size);
        number[i] = was;
        worst = fmax(worst, fabs((double)gradient[i] - change));
    }
    return worst;
}

static void test_gradients(enum layer_function activation, enum loss_kind kind, const char *what)
{
    struct layer of = layer_of(activation, kind), first = of;
    double weights = worst_gradient(&of, of.w, first.gw, (IN + 1) * OUT);
    double input = worst_gradient(&of, of.x, first.gx, ROWS * IN);
    tap_ok(weights < 2e-4 && input < 2e-4, "gradients of %s, off by %g and %g", what, weights,
           input);
}

static void test_sums(void)
{
    struct layer of = layer_of(LAYER_FUNCTION_GELU, LOSS_CROSS_ENTROPY);
    float twice[(IN + 1) * OUT];
    memcpy(twice, of.gw, sizeof twice);
    struct dense more = {DENSE_WEIGHT_GRADIENT,
                         of.activation,
                         of.kind,
                         1,
                         ROWS,
                         IN,
                         OUT,
                         of.x,
                         of.inner,
                         twice,
                         NULL};
    dense_compute(&more, NULL);
    struct dense add = {.kind = DENSE_ADD, .in = (IN + 1) * OUT, .a = of.gw, .c = of.gw};
    dense_compute(&add, NULL);
    tap_ok(memcmp(twice, of.gw, sizeof twice) == 0, "added while computed, or behind: the same");
}

/* The bits of all numbers of a layer: another order, a fused operation or another library would change them. */
static void test_bits(void)
{
    struct layer of = layer_of(LAYER_FUNCTION_GELU, LOSS_CROSS_ENTROPY);
    uint32_t bits[4];
    memcpy(&bits[0], &of.loss, 4);
    memcpy(&bits[1], &of.y[7], 4);
    memcpy(&bits[2], &of.gx[5], 4);
    memcpy(&bits[3], &of.gw[11], 4);
    tap_ok(bits[0] == 0x3fdce21d && bits[1] == 0xbe1b898e && bits[2] == 0xbe04075a &&
               bits[3] == 0x3d0b0db8,
           "bits: %08x %08x %08x %08x", bits[0], bits[1], bits[2], bits[3]);
}

int main(void)
{
    test_exp();
    test_log();
    test_gelu();
    test_gradients(LAYER_FUNCTION_GELU, LOSS_MSE, "gelu and squares");
    test_gradients(LAYER_FUNCTION_GELU, LOSS_CROSS_ENTROPY, "gelu and cross entropy");
    test_gradients(LAYER_FUNCTION_NONE, LOSS_CROSS_ENTROPY, "a linear layer and cross entropy");
    test_sums();
    test_bits();
    return tap_done();
}
