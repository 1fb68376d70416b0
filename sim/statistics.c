/*
 * statistics.c - see statistics.h. MSER-5 is White's (1997): of all points to cut at, the one where
 * the squared standard error of the mean of the rest is least, over means of five. Batch means are
 * Conway's (1963).
 */
#include "sim/statistics.h"

#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3") /* sums take vectors */
#endif

#include <math.h>

enum { GROUP = 5 };

static int64_t sum_of(const int64_t *values, size_t count)
{
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum;
}

/* From the end to the front: sums of the rest and of its squares, about the last group's mean, so
   that little is lost by subtracting. No more than half of all is cut off. */
size_t statistics_warm_up(const int64_t *values, size_t count)
{
    size_t groups = count / GROUP, best = 0;
    double least = INFINITY, sum = 0, squares = 0;
    if (groups < 2)
        return 0;
    double origin = (double)sum_of(values + (groups - 1) * GROUP, GROUP) / GROUP;
    for (size_t cut = groups; cut-- > 0;) {
        double value = (double)sum_of(values + cut * GROUP, GROUP) / GROUP - origin;
        sum += value;
        squares += value * value;
        if (cut > groups / 2)
            continue;
        double rest = (double)(groups - cut), spread = squares - sum * sum / rest;
        double error = spread / (rest * rest);
        if (error <= least) {
            least = error;
            best = cut;
        }
    }
    return best * GROUP;
}

bool statistics_batches(const int64_t *values, size_t count, double means[STATISTICS_BATCHES])
{
    size_t length = count / STATISTICS_BATCHES;
    if (length == 0)
        return false;
    values += count - length * STATISTICS_BATCHES;
    for (int b = 0; b < STATISTICS_BATCHES; b++, values += length)
        means[b] = (double)sum_of(values, length) / (double)length;
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
