/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statistics.h - what a series of durations says about its mean and its quantiles, and how surely.
 *
 * Intervals are of 95%. Durations in a row depend on each other, means of long batches of them hardly:
 * intervals are made of batch means or of replications. The part before the steady state is cut off
 * where that makes the rest's mean surest (MSER-5). Times are nanoseconds.
 */
#ifndef SWSIM_STATISTICS_H
#define SWSIM_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fewer batches or replications than this say little about their own spread. */
enum { STATISTICS_BATCHES = 20, STATISTICS_LEAST = 100 };

struct interval {
    double low, high; /* NAN: not known */
};

/* Durations in a row, of four bytes each; of eight where one of them needs more than four. */
struct durations {
    void *at;
    bool wide;
};

static inline int64_t durations_get(struct durations durations, size_t i)
{
    return durations.wide ? ((const int64_t *)durations.at)[i]
                          : ((const uint32_t *)durations.at)[i];
}

/* It must fit. */
static inline void durations_set(struct durations durations, size_t i, int64_t ns)
{
    if (durations.wide)
        ((int64_t *)durations.at)[i] = ns;
    else
        ((uint32_t *)durations.at)[i] = (uint32_t)ns;
}

/* Those from the i-th on. */
static inline struct durations durations_from(struct durations durations, size_t i)
{
    return (struct durations){(char *)durations.at +
                                  i * (durations.wide ? sizeof(int64_t) : sizeof(uint32_t)),
                              durations.wide};
}

/* How many values at the beginning are not of the steady state: a multiple of five, at most half of
   them; that half, rounded down, when no steady state shows before. */
size_t statistics_warm_up(struct durations values, size_t count);

/* Means of STATISTICS_BATCHES batches of equal length, the rest being left out at the beginning.
   false: there are not enough values. */
bool statistics_batches(struct durations values, size_t count, double means[STATISTICS_BATCHES]);

/* Of the mean that independent values of one distribution have; NAN below two. */
struct interval statistics_mean(const double *values, int count);

/* Of the mean difference of pairs with the same random numbers, as statistics_mean; *mean is theirs. */
struct interval statistics_difference(const double *a, const double *b, int count, double *mean);

/* True if neighbours among batch means are so alike that the batches are too short (von Neumann's ratio, at one in a
   hundred). */
bool statistics_correlated(const double *means, int count);

/* The ranks, from zero, between which the q-quantile lies with 95% if values were independent: those
   of the binomial distribution, by its normal approximation. false: too few values to say. */
bool statistics_ranks(size_t count, double q, size_t *low, size_t *high);

#endif
