/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantile.c - see quantile.h. The normal quantile is Wichura's AS 241 (1988); that of the gamma
 * distribution is found by Newton's method on the logarithm of its tail, which is concave, the tail
 * by its series or continued fraction (Gil, Segura, Temme 2012), and for large shapes by Wilson and
 * Hilferty's cube (1931).
 */
#include "quantile.h"

#if defined __clang__
#pragma STDC FP_CONTRACT OFF
#elif defined __GNUC__
#pragma GCC optimize("O3,fp-contract=off") /* vectors; a fused multiplication rounds otherwise */
#endif

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#if defined __x86_64__
#include <immintrin.h>
#endif

/* ---- normal ---------------------------------------------------------------------------------- */

static double polynomial(const double *coefficients, int degree, double x)
{
    double sum = coefficients[degree];
    for (int i = degree - 1; i >= 0; i--)
        sum = sum * x + coefficients[i];
    return sum;
}

/* The standard normal quantile of p <= 1/2. */
static double normal_low(double p)
{
    static const double a[] = {3.3871328727963666080,   1.3314166789178437745e2,
                               1.9715909503065514427e3, 1.3731693765509461125e4,
                               4.5921953931549871457e4, 6.7265770927008700853e4,
                               3.3430575583588128105e4, 2.5090809287301226727e3};
    static const double b[] = {1.0,
                               4.2313330701600911252e1,
                               6.8718700749205790830e2,
                               5.3941960214247511077e3,
                               2.1213794301586595867e4,
                               3.9307895800092710610e4,
                               2.8729085735721942674e4,
                               5.2264952788528545610e3};
    static const double c[] = {1.42343711074968357734,    4.63033784615654529590,
                               5.76949722146069140550,    3.64784832476320460504,
                               1.27045825245236838258,    2.41780725177450611770e-1,
                               2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static const double d[] = {1.0,
                               2.05319162663775882187,
                               1.67638483018380384940,
                               6.89767334985100004550e-1,
                               1.48103976427480074590e-1,
                               1.51986665636164571966e-2,
                               5.47593808499534494600e-4,
                               1.05075007164441684324e-9};
    static const double e[] = {6.65790464350110377720,    5.46378491116411436990,
                               1.78482653991729133580,    2.96560571828504891230e-1,
                               2.65321895265761230930e-2, 1.24266094738807843860e-3,
                               2.71155556874348757815e-5, 2.01033439929228813265e-7};
    static const double f[] = {1.0,
                               5.99832206555887937690e-1,
                               1.36929880922735805310e-1,
                               1.48753612908506148525e-2,
                               7.86869131145613259100e-4,
                               1.84631831751005468180e-5,
                               1.42151175831644588870e-7,
                               2.04426310338993978564e-15};
    double q = p - 0.5;
    if (q > -0.425) {
        double r = 0.180625 - q * q;
        return q * polynomial(a, 7, r) / polynomial(b, 7, r);
    }
    double r = sqrt(-log(p));
    if (r <= 5)
        return -polynomial(c, 7, r - 1.6) / polynomial(d, 7, r - 1.6);
    return -polynomial(e, 7, r - 5) / polynomial(f, 7, r - 5);
}

static double normal(double p, bool from_above)
{
    return from_above ? -normal_low(p) : normal_low(p);
}

/* The terms without the probability; 0 where the kind has none. */
struct quantile_shape {
    const struct dist *dist;
    double cv;
    double positive, below,
        mean; /* of a normal(1, cv): that it is positive, that it is not, its mean if it is */
    double sigma, mu; /* of a lognormal's logarithm */
};

/* The mean of what is left of a normal is 1 + cv phi(1/cv) / Phi(1/cv). */
static struct quantile_shape shape_of(const struct dist *dist)
{
    double cv = dist->parameter, bound = 1 / cv;
    struct quantile_shape shape = {.dist = dist, .cv = cv};
    if (dist->kind == DIST_NORMAL && cv > 0) {
        shape.positive = 0.5 * erfc(-bound / sqrt(2));
        shape.below = 0.5 * erfc(bound / sqrt(2));
        shape.mean =
            1 + cv * exp(-bound * bound / 2) / sqrt(2 * 3.14159265358979323846) / shape.positive;
    }
    if (dist->kind == DIST_LOGNORMAL) {
        double variance = log1p(cv * cv);
        shape.sigma = sqrt(variance);
        shape.mu = -variance / 2;
    }
    return shape;
}

static double truncated_normal(const struct quantile_shape *shape, double p, bool from_above)
{
    if (shape->cv == 0)
        return 1;
    double above = (from_above ? p : 1 - p) * shape->positive; /* the mass above the value */
    double z = above <= 0.5 ? -normal_low(above) : normal_low(shape->below + p * shape->positive);
    double value = 1 + shape->cv * z;
    return value > 0 ? value / shape->mean : 0;
}

static double lognormal(const struct quantile_shape *shape, double p, bool from_above)
{
    return exp(shape->sigma * normal(p, from_above) + shape->mu);
}

/* ---- gamma ----------------------------------------------------------------------------------- */

static const double LARGE_SHAPE = 1e4;
enum { MAX_TERMS = 100000, MAX_STEPS = 200 };

/* log of the lower tail: x^a e^-x / gamma(a + 1) times a series. y = log x. */
static double log_lower(double a, double y)
{
    double x = exp(y), term = 1, sum = 1;
    for (int n = 1; n < MAX_TERMS && term > sum * 1e-17; n++) {
        term *= x / (a + n);
        sum += term;
    }
    return a * y - x - lgamma(a + 1) + log(sum);
}

/* log of the upper tail by Lentz's continued fraction, for x > a + 1. */
static double log_upper_fraction(double a, double y)
{
    double x = exp(y), b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
    for (int n = 1; n < MAX_TERMS; n++) {
        double an = -n * (n - a);
        b += 2;
        d = 1 / (an * d + b);
        c = b + an / c;
        h *= d * c;
        if (fabs(d * c - 1) < 1e-16)
            break;
    }
    return a * y - x - lgamma(a) + log(h);
}

static double log_tail(double a, double y, bool upper)
{
    if (exp(y) > a + 1) {
        double above = log_upper_fraction(a, y);
        return upper ? above : log1p(-exp(above));
    }
    double below = log_lower(a, y);
    return upper ? log(-expm1(below)) : below;
}

/* d/dy of log_tail, from the density. */
static double tail_slope(double a, double y, bool upper, double tail)
{
    double density = exp(a * y - exp(y) - lgamma(a) - tail);
    return upper ? -density : density;
}

/* log x where the tail is p: Newton inside a bracket that only shrinks. */
static double gamma_log_quantile(double a, double p, bool upper)
{
    double wanted = log(p), low = -800 / (a < 1 ? a : 1), high = log(a + 2000);
    double y = upper || a >= 1 ? log(a) : (wanted + lgamma(a + 1)) / a;
    for (int i = 0; i < MAX_STEPS && high - low > 1e-15 * fabs(high); i++) {
        if (!(y > low && y < high))
            y = (low + high) / 2;
        double tail = log_tail(a, y, upper), off = tail - wanted;
        if ((off > 0) == upper)
            low = y;
        else
            high = y;
        double step = off / tail_slope(a, y, upper, tail);
        if (fabs(step) < 1e-14 * (1 + fabs(y)))
            break;
        y -= step;
    }
    return y;
}

static double gamma_factor(double cv, double p, bool from_above)
{
    if (cv == 0)
        return 1;
    double shape = 1 / (cv * cv);
    if (shape < LARGE_SHAPE)
        return exp(gamma_log_quantile(shape, p, from_above)) / shape;
    double root = 1 - 1 / (9 * shape) + normal(p, from_above) / (3 * sqrt(shape));
    return root * root * root;
}

/* ---- the others ------------------------------------------------------------------------------ */

static double quantile_of(const struct quantile_shape *shape, double p, bool from_above)
{
    double parameter = shape->dist->parameter;
    switch (shape->dist->kind) {
    case DIST_CONSTANT:
    case DIST_EMPIRICAL: break;
    case DIST_UNIFORM: return 1 + parameter * (from_above ? 1 - 2 * p : 2 * p - 1);
    case DIST_NORMAL: return truncated_normal(shape, p, from_above);
    case DIST_LOGNORMAL: return lognormal(shape, p, from_above);
    case DIST_GAMMA: return gamma_factor(parameter, p, from_above);
    case DIST_EXPONENTIAL: return from_above ? -log(p) : -log1p(-p);
    case DIST_PARETO:
        return (parameter - 1) / parameter * exp(-(from_above ? log(p) : log1p(-p)) / parameter);
    }
    assert(0 && "a distribution without a quantile");
    return 1;
}

double quantile_exact(const struct dist *dist, double p, bool from_above)
{
    const struct quantile_shape shape = shape_of(dist);
    return quantile_of(&shape, p, from_above);
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Where the cubic of a place is: a place's exponent and what follows are a number that grows with it, and
   of this as many bits as tell apart what occurs. */
enum { PLACE_BITS = 31, TOP_EXPONENT = 127 + PLACE_BITS, ROWS = 1 << QUANTILE_HALF_BITS };

static float *quantile_row_of(const struct quantile *quantile, int half, int exponent, int sub)
{
    int row = (exponent << QUANTILE_SUB_BITS | sub) & (ROWS - 1);
    return quantile->cubics[half << QUANTILE_HALF_BITS | row];
}

/* The cubic through (X[i], y[i]): Newton's divided differences, then powers of x. What is smaller than
   any time may well be nothing: tiny numbers are slow. */
static const double X[] = {1, 1 + 1 / 3.0, 1 + 2 / 3.0, 2};

static void quantile_fit(const double y[4], float out[4])
{
    static const double nothing = 1e-30;
    double d[4] = {y[0], y[1], y[2], y[3]}, c[4] = {0};
    for (int order = 1; order < 4; order++)
        for (int i = 3; i >= order; i--)
            d[i] = (d[i] - d[i - 1]) / (X[i] - X[i - order]);
    c[0] = d[3];
    for (int i = 2; i >= 0; i--) { /* c = c * (x - X[i]) + d[i] */
        for (int k = 3; k > 0; k--)
            c[k] = c[k - 1] - X[i] * c[k];
        c[0] = d[i] - X[i] * c[0];
    }
    for (int k = 0; k < 4; k++)
        out[k] = fabs(c[k]) > nothing ? (float)c[k] : 0;
}

/* Neighbours share the point between them, so the table has no jumps and hardly ever goes back. */
static void quantile_fill(struct quantile *quantile, const struct quantile_shape *shape, int half,
                          int octave)
{
    double y[4];
    y[3] = quantile_of(shape, ldexp(1, -(octave + 2)), half);
    for (int sub = 0; sub < QUANTILE_SUBS; sub++) {
        y[0] = y[3];
        for (int i = 1; i < 4; i++)
            y[i] =
                quantile_of(shape, ldexp(1 + (sub + i / 3.0) / QUANTILE_SUBS, -(octave + 2)), half);
        quantile_fit(y, quantile_row_of(quantile, half, TOP_EXPONENT - 1 - octave, sub));
    }
}

/* The largest places are rounded to where the tails meet. */
static void fill_top(struct quantile *quantile, const struct quantile_shape *shape, int half)
{
    float *row = quantile_row_of(quantile, half, TOP_EXPONENT, 0);
    row[0] = (float)quantile_of(shape, 0.5, half);
    row[1] = row[2] = row[3] = 0;
}

bool quantile_init(struct quantile *quantile, const struct dist *dist)
{
    *quantile = (struct quantile){.dist = dist};
    if (dist->kind == DIST_CONSTANT || dist->kind == DIST_EMPIRICAL)
        return true;
    quantile->cubics = aligned_alloc(sizeof *quantile->cubics, 2 * ROWS * sizeof *quantile->cubics);
    if (!quantile->cubics)
        return false;
    const struct quantile_shape shape = shape_of(dist);
    for (int half = 0; half < 2; half++) {
        fill_top(quantile, &shape, half);
        for (int octave = 0; octave < QUANTILE_OCTAVES; octave++)
            quantile_fill(quantile, &shape, half, octave);
    }
    return true;
}

void quantile_fini(struct quantile *quantile)
{
    free(quantile->cubics);
    quantile->cubics = NULL;
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* For 0 <= value <= 2^51: adding 2^52 leaves the nearest whole number in the lower bits. */
static const uint64_t WHOLE = (UINT64_C(1) << 52) - 1;

static inline __attribute__((always_inline)) int64_t quantile_nearest(double value)
{
    double longest = (double)QUANTILE_LONGEST_NS;
    double sum = (value < longest ? value : longest) + 0x1p52;
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    return (int64_t)(bits & WHOLE);
}

/* The constants of one operation for drawing many words. */
struct quantile_scale {
    double mean_ns;
    float most; /* factor: no duration is longer than the longest */
};

static struct quantile_scale quantile_scale_of(int64_t mean_ns)
{
    struct quantile_scale scale = {
        (double)mean_ns, mean_ns ? (float)((double)QUANTILE_LONGEST_NS / (double)mean_ns) : 1};
    if (scale.mean_ns * scale.most > (double)QUANTILE_LONGEST_NS)
        scale.most = nextafterf(scale.most, 0);
    return scale;
}

/* Where words find their cubic, counted in coefficients, and where on it they are. */
enum { CHUNK = 256, REST_BITS = 23 - QUANTILE_SUB_BITS };

static inline __attribute__((always_inline)) void quantile_find_place(float place, uint32_t half,
                                                                      uint32_t *row, float *at)
{
    uint32_t bits, x;
    memcpy(&bits, &place, sizeof bits);
    x = (bits << QUANTILE_SUB_BITS & 0x7fffff) | UINT32_C(127) << 23;
    *row = (bits >> (REST_BITS - 2) & (4 * ROWS - 4)) | half << (QUANTILE_HALF_BITS + 2);
    memcpy(at, &x, sizeof *at);
}

/* Returns whether any word is deep. */
static inline __attribute__((always_inline)) bool
quantile_find_places(const uint32_t *words, int count, uint32_t rows[CHUNK], float at[CHUNK])
{
    int32_t least = INT32_MAX;
    for (int i = 0; i < count; i++) {
        int32_t whole = (int32_t)(words[i] & UINT32_MAX >> 1);
        least = whole < least ? whole : least;
        quantile_find_place((float)whole + 0.5f, words[i] >> PLACE_BITS, &rows[i], &at[i]);
    }
    return quantile_is_deep((uint32_t)least);
}

static inline __attribute__((always_inline)) int64_t
quantile_draw_one(const float *c, float x, const struct quantile_scale *scale)
{
    float factor = c[0] + x * (c[1] + x * (c[2] + x * c[3]));
    factor = factor > 0 ? factor : 0;
    return quantile_nearest(scale->mean_ns * (double)(factor < scale->most ? factor : scale->most));
}

static bool look_up_plain(const float *cubics, const struct quantile_scale *scale,
                          const uint32_t *words, int count, int64_t *out)
{
    _Alignas(64) uint32_t rows[CHUNK];
    _Alignas(64) float at[CHUNK];
    bool deep = quantile_find_places(words, count, rows, at);
    for (int i = 0; i < count; i++)
        out[i] = quantile_draw_one(cubics + rows[i], at[i], scale);
    return deep;
}

#if defined __x86_64__
/* Four rows of the table, and four others behind them, become four vectors of equal coefficients:
 *
 *     a0 a1 a2 a3 | e0 e1 e2 e3          a0 b0 c0 d0 | e0 f0 g0 h0
 *     b0 b1 b2 b3 | f0 f1 f2 f3    ->    a1 b1 c1 d1 | e1 f1 g1 h1
 *     c0 c1 c2 c3 | g0 g1 g2 g3          a2 b2 c2 d2 | e2 f2 g2 h2
 *     d0 d1 d2 d3 | h0 h1 h2 h3          a3 b3 c3 d3 | e3 f3 g3 h3
 *
 * That takes less than gathering 32 numbers. */
static inline __attribute__((always_inline, target("avx2"))) void
load_eight(const float *cubics, const uint32_t rows[8], __m256 c[4])
{
    __m256 pair[4];
    for (int k = 0; k < 4; k++)
        pair[k] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_load_ps(cubics + rows[k])),
                                       _mm_load_ps(cubics + rows[k + 4]), 1);
    const __m256d ab = _mm256_castps_pd(_mm256_unpacklo_ps(pair[0], pair[1])),
                  cd = _mm256_castps_pd(_mm256_unpacklo_ps(pair[2], pair[3])),
                  ab2 = _mm256_castps_pd(_mm256_unpackhi_ps(pair[0], pair[1])),
                  cd2 = _mm256_castps_pd(_mm256_unpackhi_ps(pair[2], pair[3]));
    c[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(ab, cd));
    c[1] = _mm256_castpd_ps(_mm256_unpackhi_pd(ab, cd));
    c[2] = _mm256_castpd_ps(_mm256_unpacklo_pd(ab2, cd2));
    c[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(ab2, cd2));
}

static inline __attribute__((always_inline, target("avx2"))) void
store_four(__m128 factors, const struct quantile_scale *scale, int64_t out[4])
{
    const __m256d sum =
        _mm256_set1_pd(scale->mean_ns) * _mm256_cvtps_pd(factors) + _mm256_set1_pd(0x1p52);
    const __m256i whole = _mm256_set1_epi64x((long long)WHOLE);
    _mm256_storeu_si256((__m256i *)(void *)out, _mm256_and_si256(_mm256_castpd_si256(sum), whole));
}

/* draw_one for eight: the same operations. */
static inline __attribute__((always_inline, target("avx2"))) void
draw_eight(const float *cubics, const struct quantile_scale *scale, const uint32_t *rows,
           const float *at, int64_t *out)
{
    __m256 c[4];
    load_eight(cubics, rows, c);
    const __m256 x = _mm256_load_ps(at);
    __m256 factor = c[0] + x * (c[1] + x * (c[2] + x * c[3]));
    factor = _mm256_max_ps(factor, _mm256_setzero_ps());
    factor = _mm256_min_ps(factor, _mm256_set1_ps(scale->most));
    store_four(_mm256_castps256_ps128(factor), scale, out);
    store_four(_mm256_extractf128_ps(factor, 1), scale, out + 4);
}

#define DEFINE_LOOK_UP(NAME, TARGET)                                                               \
    __attribute__((target(TARGET))) static bool NAME(                                              \
        const float *cubics, const struct quantile_scale *scale, const uint32_t *words, int count, \
        int64_t *out)                                                                              \
    {                                                                                              \
        _Alignas(64) uint32_t rows[CHUNK];                                                         \
        _Alignas(64) float at[CHUNK];                                                              \
        int done = 0;                                                                              \
        bool deep = quantile_find_places(words, count, rows, at);                                  \
        for (; done + 8 <= count; done += 8)                                                       \
            draw_eight(cubics, scale, rows + done, at + done, out + done);                         \
        for (; done < count; done++)                                                               \
            out[done] = quantile_draw_one(cubics + rows[done], at[done], scale);                   \
        return deep;                                                                               \
    }

DEFINE_LOOK_UP(look_up_avx2, "avx2")
DEFINE_LOOK_UP(look_up_avx512, "avx2,avx512f,avx512dq,avx512vl,avx512bw")
#endif

typedef bool look_up_words(const float *cubics, const struct quantile_scale *scale,
                           const uint32_t *words, int count, int64_t *out);

static look_up_words *best_look_up(void)
{
#if defined __x86_64__
    if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw"))
        return look_up_avx512;
    if (__builtin_cpu_supports("avx2"))
        return look_up_avx2;
#endif
    return look_up_plain;
}

/* Without a table. */
static int64_t plain_duration(const struct quantile *quantile, int64_t mean_ns, uint32_t word)
{
    const struct dist *dist = quantile->dist;
    size_t place = (size_t)((uint64_t)word * dist->factor_count >> 32);
    return quantile_nearest((double)mean_ns * (dist->factor_count ? dist->factors[place] : 1));
}

bool quantile_durations(const struct quantile *quantile, int64_t mean_ns, const uint32_t *words,
                        int count, int64_t *out_ns)
{
    const struct quantile_scale scale = quantile_scale_of(mean_ns);
    look_up_words *look_up = count >= 8 ? best_look_up() : look_up_plain;
    bool deep = false;
    for (int i = 0; quantile->cubics && i < count; i += CHUNK)
        deep |= look_up((const float *)quantile->cubics, &scale, words + i,
                        count - i < CHUNK ? count - i : CHUNK, out_ns + i);
    for (int i = 0; !quantile->cubics && i < count; i++)
        out_ns[i] = plain_duration(quantile, mean_ns, words[i]);
    return deep;
}

int64_t quantile_deep_duration(const struct quantile *quantile, int64_t mean_ns, uint64_t word)
{
    const struct quantile_scale scale = quantile_scale_of(mean_ns);
    static const float lowest = 0x1p-21f; /* the first place of the last octave */
    float place = ((float)(int64_t)(word & UINT64_MAX >> 1) + 0.5f) * 0x1p-32f, x;
    uint32_t row;
    if (!quantile->cubics)
        return plain_duration(quantile, mean_ns, (uint32_t)(word >> 32));
    quantile_find_place(place > lowest ? place : lowest, (uint32_t)(word >> 63), &row, &x);
    return quantile_draw_one((const float *)quantile->cubics + row, x, &scale);
}
