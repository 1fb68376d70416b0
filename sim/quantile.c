/*
 * quantile.c - see quantile.h. The normal quantile is Wichura's AS 241 (1988); that of the gamma
 * distribution is found by Newton's method on the logarithm of its tail, which is concave, the tail
 * by its series or continued fraction (Gil, Segura, Temme 2012), and for large shapes by Wilson and
 * Hilferty's cube (1931).
 */
#include "sim/quantile.h"

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

/* normal(1, cv) given that it is positive. */
struct truncated {
    double cv;
    double positive, below; /* the mass of a normal(1, cv) above zero and below it */
    double mean;            /* 1 + cv phi(1/cv) / Phi(1/cv) */
};

static struct truncated truncate_at_zero(double cv)
{
    double bound = 1 / cv, positive = 0.5 * erfc(-1 / (cv * sqrt(2)));
    return (struct truncated){
        .cv = cv,
        .positive = positive,
        .below = 0.5 * erfc(1 / (cv * sqrt(2))),
        .mean = 1 + cv * exp(-bound * bound / 2) / sqrt(2 * 3.14159265358979323846) / positive,
    };
}

static double truncated_normal(const struct truncated *t, double p, bool from_above)
{
    if (t->cv == 0)
        return 1;
    /* the mass above the value */
    double above = from_above ? p * t->positive : (1 - p) * t->positive;
    double z = above <= 0.5 ? -normal_low(above) : normal_low(t->below + p * t->positive);
    double value = 1 + t->cv * z;
    return value > 0 ? value / t->mean : 0;
}

static double lognormal(double cv, double p, bool from_above)
{
    double variance = log1p(cv * cv);
    return exp(sqrt(variance) * normal(p, from_above) - variance / 2);
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

static double quantile_of(const struct dist *dist, const struct truncated *cut, double p,
                          bool from_above)
{
    double parameter = dist->parameter;
    switch (dist->kind) {
    case DIST_CONSTANT:
    case DIST_EMPIRICAL: break;
    case DIST_UNIFORM: return 1 + parameter * (from_above ? 1 - 2 * p : 2 * p - 1);
    case DIST_NORMAL: return truncated_normal(cut, p, from_above);
    case DIST_LOGNORMAL: return lognormal(parameter, p, from_above);
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
    const struct truncated cut = truncate_at_zero(dist->parameter);
    return quantile_of(dist, &cut, p, from_above);
}

/* ---- the table ------------------------------------------------------------------------------- */

/* The cubic through (x[i], y[i]): Newton's divided differences, then powers of x. */
static void fit(const double x[4], const double y[4], double c[4])
{
    double d[4] = {y[0], y[1], y[2], y[3]};
    for (int order = 1; order < 4; order++)
        for (int i = 3; i >= order; i--)
            d[i] = (d[i] - d[i - 1]) / (x[i] - x[i - order]);
    c[0] = d[3];
    c[1] = c[2] = c[3] = 0;
    for (int i = 2; i >= 0; i--) { /* c = c * (X - x[i]) + d[i] */
        for (int k = 3; k > 0; k--)
            c[k] = c[k - 1] - x[i] * c[k];
        c[0] = d[i] - x[i] * c[0];
    }
}

/* Neighbours share the point between them, so the table has no jumps and hardly ever goes back. */
static void fill(struct quantile *quantile, const struct truncated *cut, int half, int octave)
{
    double(*cubics)[4] =
        &quantile->cubics[half << QUANTILE_HALF_BITS | (octave + 1) << QUANTILE_SUB_BITS];
    double x[4], y[4];
    y[3] = quantile_of(quantile->dist, cut, ldexp(1, -(octave + 2)), half);
    for (int sub = 0; sub < QUANTILE_SUBS; sub++) {
        y[0] = y[3];
        for (int i = 0; i < 4; i++) {
            x[i] = 1 + (sub + i / 3.0) / QUANTILE_SUBS;
            if (i > 0)
                y[i] = quantile_of(quantile->dist, cut, ldexp(x[i], -(octave + 2)), half);
        }
        fit(x, y, cubics[sub]);
    }
}

bool quantile_init(struct quantile *quantile, const struct dist *dist)
{
    *quantile = (struct quantile){.dist = dist};
    if (dist->kind == DIST_CONSTANT || dist->kind == DIST_EMPIRICAL)
        return true;
    size_t segments = (size_t)2 << QUANTILE_HALF_BITS;
    quantile->cubics = aligned_alloc(sizeof *quantile->cubics, segments * sizeof *quantile->cubics);
    if (!quantile->cubics)
        return false;
    const struct truncated cut = truncate_at_zero(dist->parameter);
    for (int half = 0; half < 2; half++)
        for (int octave = 0; octave < QUANTILE_OCTAVES; octave++)
            fill(quantile, &cut, half, octave);
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

static inline __attribute__((always_inline)) int64_t nearest(double value)
{
    double longest = (double)QUANTILE_LONGEST_NS;
    double sum = (value < longest ? value : longest) + 0x1p52;
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    return (int64_t)(bits & WHOLE);
}

enum { CHUNK = 128 };

/* Zeros in front of a tail, which has one of its first 52 bits set: the exponent of a floating point
   number says it. For vectors that cannot count zeros. */
static inline __attribute__((always_inline)) uint64_t zeros_in_front(uint64_t tail)
{
    uint64_t bits = tail >> 12 | UINT64_C(0x433) << 52; /* 2^52 and the tail */
    double number;
    memcpy(&number, &bits, sizeof number);
    number -= 0x1p52;
    memcpy(&bits, &number, sizeof bits);
    return 1023 + 51 - (bits >> 52);
}

/* Where words find their cubic, counted in coefficients, and where on it they are. Behind its zeros a
   tail is 1 sub rest, and the 1 makes the octave the next one and the exponent that of 1. */
static inline __attribute__((always_inline)) void
find_places(const uint64_t *words, int count, uint64_t places[CHUNK], double at[CHUNK])
{
    for (int i = 0; i < count; i++) {
        uint64_t tail = words[i] << 1 | UINT64_C(1) << 12; /* the last octave takes the rest */
        uint64_t octave = zeros_in_front(tail);
        tail <<= octave;
        const uint64_t bits = (tail >> 11) + (UINT64_C(0x3fe) << 52);
        uint64_t place = (octave << QUANTILE_SUB_BITS) + (tail >> (63 - QUANTILE_SUB_BITS));
        places[i] = 4 * (place | (words[i] >> 63 << QUANTILE_HALF_BITS));
        memcpy(&at[i], &bits, sizeof bits);
    }
}

static inline __attribute__((always_inline)) int64_t draw_one(const double *c, double x,
                                                              double mean_ns)
{
    double factor = c[0] + x * (c[1] + x * (c[2] + x * c[3]));
    return nearest(mean_ns * (factor > 0 ? factor : 0));
}

static void look_up_plain(const double *cubics, double mean_ns, const uint64_t *words, int count,
                          int64_t *out)
{
    _Alignas(64) uint64_t places[CHUNK];
    _Alignas(64) double at[CHUNK];
    find_places(words, count, places, at);
    for (int i = 0; i < count; i++)
        out[i] = draw_one(cubics + places[i], at[i], mean_ns);
}

#if defined __x86_64__
/* The same operations on four times `groups`, side by side, since each waits for the one before it. A
   row of the table is loaded as it is and four rows are transposed: that takes less than gathering
   sixteen numbers. */
enum { MOST_GROUPS = 4 };

static inline __attribute__((always_inline, target("avx2"))) void
draw_fours(int groups, const double *cubics, double mean_ns, const uint64_t *places,
           const double *at, int64_t *out)
{
    __m256d c0[MOST_GROUPS], c1[MOST_GROUPS], c2[MOST_GROUPS], ns[MOST_GROUPS], x[MOST_GROUPS];
    const __m256i whole = _mm256_set1_epi64x((long long)WHOLE);
    for (int g = 0; g < groups; g++) {
        const uint64_t *p = places + 4 * g;
        const __m256d a = _mm256_load_pd(cubics + p[0]), b = _mm256_load_pd(cubics + p[1]);
        const __m256d c = _mm256_load_pd(cubics + p[2]), d = _mm256_load_pd(cubics + p[3]);
        const __m256d even = _mm256_unpacklo_pd(a, b), odd = _mm256_unpackhi_pd(a, b);
        const __m256d even2 = _mm256_unpacklo_pd(c, d), odd2 = _mm256_unpackhi_pd(c, d);
        c0[g] = _mm256_permute2f128_pd(even, even2, 0x20);
        c1[g] = _mm256_permute2f128_pd(odd, odd2, 0x20);
        c2[g] = _mm256_permute2f128_pd(even, even2, 0x31);
        ns[g] = _mm256_permute2f128_pd(odd, odd2, 0x31);
        x[g] = _mm256_loadu_pd(at + 4 * g);
    }
    for (int g = 0; g < groups; g++)
        ns[g] = c2[g] + x[g] * ns[g];
    for (int g = 0; g < groups; g++)
        ns[g] = c1[g] + x[g] * ns[g];
    for (int g = 0; g < groups; g++)
        ns[g] = c0[g] + x[g] * ns[g];
    for (int g = 0; g < groups; g++)
        ns[g] = _mm256_set1_pd(mean_ns) * _mm256_max_pd(ns[g], _mm256_setzero_pd());
    for (int g = 0; g < groups; g++)
        ns[g] = _mm256_min_pd(ns[g], _mm256_set1_pd((double)QUANTILE_LONGEST_NS)) +
                _mm256_set1_pd(0x1p52);
    for (int g = 0; g < groups; g++)
        _mm256_storeu_si256((__m256i *)(void *)(out + 4 * g),
                            _mm256_and_si256(_mm256_castpd_si256(ns[g]), whole));
}

__attribute__((target("avx2"))) static void
look_up_avx2(const double *cubics, double mean_ns, const uint64_t *words, int count, int64_t *out)
{
    _Alignas(64) uint64_t places[CHUNK];
    _Alignas(64) double at[CHUNK];
    int done = 0;
    find_places(words, count, places, at);
    for (; done + 8 <= count; done += 8)
        draw_fours(2, cubics, mean_ns, places + done, at + done, out + done);
    for (; done < count; done++)
        out[done] = draw_one(cubics + places[done], at[done], mean_ns);
}

#define AVX512 "avx2,avx512f,avx512cd,avx512dq,avx512vl,avx512bw"

/* find_places for eight. */
static inline __attribute__((always_inline, target(AVX512))) void
find_eight(const uint64_t words[8], uint64_t places[8], double at[8])
{
    const __m512i word = _mm512_loadu_si512(words), last = _mm512_set1_epi64(1 << 12);
    const __m512i shifted = _mm512_or_si512(_mm512_slli_epi64(word, 1), last);
    const __m512i octave = _mm512_lzcnt_epi64(shifted), tail = _mm512_sllv_epi64(shifted, octave);
    const __m512i sub = _mm512_and_si512(_mm512_srli_epi64(tail, 61 - QUANTILE_SUB_BITS),
                                         _mm512_set1_epi64(8 * QUANTILE_SUBS - 4));
    const __m512i half = _mm512_and_si512(_mm512_srli_epi64(word, 61 - QUANTILE_HALF_BITS),
                                          _mm512_set1_epi64(4 << QUANTILE_HALF_BITS));
    const __m512i place = _mm512_slli_epi64(octave, QUANTILE_SUB_BITS + 2) + sub;
    _mm512_storeu_si512(places, _mm512_or_si512(place, half));
    _mm512_storeu_si512(at, _mm512_srli_epi64(tail, 11) + _mm512_set1_epi64(0x3feLL << 52));
}

__attribute__((target(AVX512))) static void
look_up_avx512(const double *cubics, double mean_ns, const uint64_t *words, int count, int64_t *out)
{
    _Alignas(64) uint64_t places[CHUNK];
    _Alignas(64) double at[CHUNK];
    int done = 0;
    for (; done + 8 <= count; done += 8)
        find_eight(words + done, places + done, at + done);
    find_places(words + done, count - done, places + done, at + done);
    for (done = 0; done + 16 <= count; done += 16)
        draw_fours(4, cubics, mean_ns, places + done, at + done, out + done);
    for (; done < count; done++)
        out[done] = draw_one(cubics + places[done], at[done], mean_ns);
}
#endif

typedef void look_up_words(const double *cubics, double mean_ns, const uint64_t *words, int count,
                           int64_t *out);

static look_up_words *best_look_up(void)
{
#if defined __x86_64__
    if (__builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
        return look_up_avx512;
    if (__builtin_cpu_supports("avx2"))
        return look_up_avx2;
#endif
    return look_up_plain;
}

void quantile_durations(const struct quantile *quantile, int64_t mean_ns, const uint64_t *words,
                        int count, int64_t *out_ns)
{
    const struct dist *dist = quantile->dist;
    if (quantile->cubics) {
        look_up_words *look_up = count >= 4 ? best_look_up() : look_up_plain;
        for (int i = 0; i < count; i += CHUNK)
            look_up(quantile->cubics[0], (double)mean_ns, words + i,
                    count - i < CHUNK ? count - i : CHUNK, out_ns + i);
        return;
    }
    for (int i = 0; i < count; i++) {
        size_t place = (size_t)((words[i] >> 32) * dist->factor_count >> 32);
        out_ns[i] = nearest((double)mean_ns * (dist->factor_count ? dist->factors[place] : 1));
    }
}
