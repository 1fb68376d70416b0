/* dist_sample.c - see dist_sample.h. */
#include "sim/dist_sample.h"

#include <assert.h>
#include <math.h>

/* The mean of a normal(1, cv) given that it is positive: 1 + cv phi(1/cv) / Phi(1/cv). */
static double truncated_mean(double cv)
{
    double bound = 1 / cv;
    double density = exp(-bound * bound / 2) / sqrt(2 * 3.14159265358979323846);
    return 1 + cv * density / (0.5 * erfc(-bound / sqrt(2)));
}

static double truncated_normal(double cv, struct random_stream *luck)
{
    if (cv == 0)
        return 1;
    double value;
    do
        value = 1 + cv * random_normal(luck);
    while (value <= 0);
    return value / truncated_mean(cv);
}

static double lognormal(double cv, struct random_stream *luck)
{
    double variance = log1p(cv * cv);
    return exp(sqrt(variance) * random_normal(luck) - variance / 2);
}

/* Marsaglia and Tsang (2000), for shape >= 1. */
static double standard_gamma(double shape, struct random_stream *luck)
{
    double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double normal = random_normal(luck), v = 1 + c * normal;
        if (v <= 0)
            continue;
        v = v * v * v;
        if (log(random_uniform(luck)) < normal * normal / 2 + d - d * v + d * log(v))
            return d * v;
    }
}

/* Below shape 1 by way of shape + 1, as in the same paper. */
static double gamma_factor(double cv, struct random_stream *luck)
{
    if (cv == 0)
        return 1;
    double shape = 1 / (cv * cv);
    if (shape >= 1)
        return standard_gamma(shape, luck) / shape;
    double boost = pow(random_uniform(luck), 1 / shape);
    return standard_gamma(shape + 1, luck) * boost / shape;
}

static double pareto(double alpha, struct random_stream *luck)
{
    return (alpha - 1) / alpha * pow(random_uniform(luck), -1 / alpha);
}

static double empirical(const struct dist *dist, struct random_stream *luck)
{
    assert(dist->factor_count > 0);
    size_t index = (size_t)(random_uniform(luck) * (double)dist->factor_count);
    return dist->factors[index];
}

double dist_factor(const struct dist *dist, struct random_stream *luck)
{
    switch (dist->kind) {
    case DIST_CONSTANT: return 1;
    case DIST_UNIFORM: return 1 + dist->parameter * (2 * random_uniform(luck) - 1);
    case DIST_NORMAL: return truncated_normal(dist->parameter, luck);
    case DIST_LOGNORMAL: return lognormal(dist->parameter, luck);
    case DIST_GAMMA: return gamma_factor(dist->parameter, luck);
    case DIST_EXPONENTIAL: return -log(random_uniform(luck));
    case DIST_PARETO: return pareto(dist->parameter, luck);
    case DIST_EMPIRICAL: return empirical(dist, luck);
    }
    assert(0 && "a distribution without a sampler");
    return 1;
}

int64_t dist_sample(const struct dist *dist, int64_t mean_ns, struct random_stream *luck)
{
    double value = (double)mean_ns;
    if (dist->kind != DIST_CONSTANT)
        value *= dist_factor(dist, luck);
    if (dist->spike_probability > 0 && random_uniform(luck) < dist->spike_probability)
        value += (double)dist->spike_add_ns;
    return value < (double)DIST_LONGEST_NS ? llround(value) : DIST_LONGEST_NS;
}

bool dist_is_constant(const struct dist *dist)
{
    return dist->kind == DIST_CONSTANT && dist->spike_probability == 0;
}
