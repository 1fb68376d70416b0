/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statistics.c - see statistics.h. MSER-5 is White's (1997): of all points to cut at, the one where
 * the squared standard error of the mean of the rest is least, over means of five. Batch means are
 * Conway's (1963).
 */
#include "statistics.h"

#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3") /* sums take vectors */
#endif

#include <math.h>

enum { GROUP = 5 };

/* The rest is compiled twice, for both widths, so that loops need not ask. */
#define ALWAYS static inline __attribute__((always_inline))

ALWAYS int64_t sum_of(struct durations values, size_t first, size_t count)
{
    int64_t sum = 0;
    for (size_t i = first; i < first + count; i++)
        sum += durations_get(values, i);
    return sum;
}

/* From the end to the front: sums of the rest and of its squares, about the last group, so that
   little is lost by subtracting. Groups are compared by their sums: where the best cut is does not depend
   on the unit. No more than half of all is cut off. */
struct rest {
    double sum, squares;
};

ALWAYS void statistics_take_group(struct rest *rest, struct durations values, size_t group,
                                  int64_t origin)
{
    double value = (double)(sum_of(values, group * GROUP, GROUP) - origin);
    rest->sum += value;
    rest->squares += value * value;
}

ALWAYS size_t find_warm_up(struct durations values, size_t groups)
{
    size_t best = 0, cut = groups;
    double least = INFINITY;
    struct rest rest = {0, 0};
    const int64_t origin = sum_of(values, (groups - 1) * GROUP, GROUP);
    while (cut > groups / 2 + 1)
        statistics_take_group(&rest, values, --cut, origin);
    while (cut-- > 0) {
        statistics_take_group(&rest, values, cut, origin);
        double share = 1 / (double)(groups - cut);
        double error = (rest.squares - rest.sum * rest.sum * share) * share * share;
        if (error <= least) {
            least = error;
            best = cut;
        }
    }
    return best * GROUP;
}

size_t statistics_warm_up(struct durations values, size_t count)
{
    size_t groups = count / GROUP;
    if (groups < 2)
        return 0;
    return values.wide ? find_warm_up((struct durations){values.at, true}, groups)
                       : find_warm_up((struct durations){values.at, false}, groups);
}

bool statistics_batches(struct durations values, size_t count, double means[STATISTICS_BATCHES])
{
    size_t length = count / STATISTICS_BATCHES, first = count - length * STATISTICS_BATCHES;
    if (length == 0)
        return false;
    for (int b = 0; b < STATISTICS_BATCHES; b++, first += length) {
        int64_t sum = values.wide ? sum_of((struct durations){values.at, true}, first, length)
                                  : sum_of((struct durations){values.at, false}, first, length);
        means[b] = (double)sum / (double)length;
    }
    return true;
}

/* The 97.5% point of Student's t: a table, then the Cornish-Fisher expansion around the normal. */
static double student(int freedom)
{
    static const double table[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                                   2.306,  2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
                                   2.131,  2.120, 2.110, 2.101, 2.093, 2.086};
    enum { TABLE = sizeof table / sizeof *table };
    if (freedom <= TABLE)
        return table[freedom - 1];
    double z = 1.959964, z3 = z * z * z, n = freedom;
    return z + (z3 + z) / (4 * n) + (5 * z3 * z * z + 16 * z3 + 3 * z) / (96 * n * n);
}

static double mean_of(const double *values, int count)
{
    double mean = 0;
    for (int i = 0; i < count; i++)
        mean += values[i] / count;
    return mean;
}

struct interval statistics_mean(const double *values, int count)
{
    if (count < 2)
        return (struct interval){NAN, NAN};
    double mean = mean_of(values, count), squares = 0;
    for (int i = 0; i < count; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    double half = student(count - 1) * sqrt(squares / (count - 1) / count);
    return (struct interval){mean - half, mean + half};
}

struct interval statistics_difference(const double *a, const double *b, int count, double *mean)
{
    double squares = 0, sum = 0;
    for (int i = 0; i < count; i++)
        sum += b[i] - a[i];
    *mean = count ? sum / count : NAN;
    if (count < 2)
        return (struct interval){NAN, NAN};
    for (int i = 0; i < count; i++)
        squares += (b[i] - a[i] - *mean) * (b[i] - a[i] - *mean);
    double half = student(count - 1) * sqrt(squares / (count - 1) / count);
    return (struct interval){*mean - half, *mean + half};
}

bool statistics_correlated(const double *means, int count)
{
    static const double one_percent = 2.326348;
    double mean = mean_of(means, count), squares = 0, steps = 0;
    if (count < 4)
        return false;
    for (int i = 0; i < count; i++) {
        squares += (means[i] - mean) * (means[i] - mean);
        steps += i ? (means[i] - means[i - 1]) * (means[i] - means[i - 1]) : 0;
    }
    if (squares <= 1e-18 * mean * mean * count)
        return false;                          /* they are all the same */
    double n = count, ratio = steps / squares; /* 2 on average, with this variance */
    return ratio < 2 - one_percent * sqrt(4 * (n - 2) / (n * n - 1));
}

bool statistics_ranks(size_t count, double q, size_t *low, size_t *high)
{
    static const double two_sided = 1.959964;
    double n = (double)count, half = two_sided * sqrt(n * q * (1 - q));
    double first = floor(n * q - half), last = floor(n * q + half);
    if (first < 0 || last > n - 1)
        return false;
    *low = (size_t)first;
    *high = (size_t)last;
    return true;
}
