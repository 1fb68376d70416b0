/*
 * iterations.c - see iterations.h. The confidence interval is that of batch means (Conway 1963):
 * durations are correlated, means of long batches of them hardly, so Student's t holds for those.
 */
#include "sim/iterations.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

enum { FIRST_CAP = 16, WARM_UP_TENTH = 10 };

bool iterations_init(struct iterations *iterations, const int64_t *ends, int ranks, int depth,
                     uint64_t seed)
{
    *iterations = (struct iterations){.ends = ends, .ranks = ranks, .first_over_ns = -1};
    for (int rank = 0; rank < ranks; rank++)
        if (ends[rank] > iterations->total)
            iterations->total = ends[rank];
    iterations->first = depth + iterations->total / WARM_UP_TENTH;
    iterations->last = iterations->total - depth;
    iterations->steady = iterations->last - iterations->first >= 2;
    if (!iterations->steady) {
        iterations->first = 1;
        iterations->last = iterations->total;
    }
    int64_t durations = iterations->last - iterations->first;
    iterations->kept_cap = durations < 0                 ? 0
                           : durations < ITERATIONS_KEPT ? (size_t)durations
                                                         : ITERATIONS_KEPT;
    iterations->kept = malloc((iterations->kept_cap + 1) * sizeof *iterations->kept);
    iterations->luck = random_open(&(struct random_subject){
        .seed = seed, .task = random_name("reservoir"), .part = RANDOM_OTHER});
    return iterations->kept != NULL;
}

void iterations_fini(struct iterations *iterations)
{
    free(iterations->pending);
    free(iterations->kept);
    iterations->pending = NULL;
    iterations->kept = NULL;
}

static struct pending *pending_at(struct iterations *iterations, size_t k)
{
    return &iterations->pending[(iterations->pending_first + k) % iterations->pending_cap];
}

static bool grow(struct iterations *iterations)
{
    size_t cap = iterations->pending_cap ? 2 * iterations->pending_cap : FIRST_CAP;
    struct pending *pending = malloc(cap * sizeof *pending);
    if (!pending)
        return false;
    for (size_t k = 0; k < iterations->pending_count; k++)
        pending[k] = *pending_at(iterations, k);
    free(iterations->pending);
    iterations->pending = pending;
    iterations->pending_cap = cap;
    iterations->pending_first = 0;
    return true;
}

static int ranks_with(const struct iterations *iterations, int64_t number)
{
    int count = 0;
    for (int rank = 0; rank < iterations->ranks; rank++)
        count += number < iterations->ends[rank];
    return count;
}

static void count_duration(struct iterations *iterations, int64_t duration_ns)
{
    int64_t index = iterations->over - iterations->first;
    int64_t durations = iterations->last - iterations->first;
    if (iterations->over < iterations->first || iterations->over >= iterations->last)
        return;
    int64_t batch = index * ITERATIONS_BATCHES / durations;
    iterations->batch_ns[batch] += (double)duration_ns;
    iterations->batch_count[batch]++;
    if (iterations->kept_count < iterations->kept_cap) {
        iterations->kept[iterations->kept_count++] = duration_ns;
        return;
    }
    uint64_t place = random_bits(&iterations->luck) % (uint64_t)(index + 1);
    if (place < iterations->kept_cap)
        iterations->kept[place] = duration_ns;
}

static void note_over(struct iterations *iterations, int64_t time_ns)
{
    if (iterations->over == 0)
        iterations->first_over_ns = time_ns;
    else
        count_duration(iterations, time_ns - iterations->last_over_ns);
    iterations->last_over_ns = time_ns;
    iterations->over++;
}

/* The oldest pending iteration has been retired everywhere. */
static void is_over(struct iterations *iterations)
{
    int64_t time_ns = pending_at(iterations, 0)->time_ns;
    if (time_ns < iterations->last_over_ns) /* a rank that has fewer may have been the last one */
        time_ns = iterations->last_over_ns;
    note_over(iterations, time_ns);
    iterations->pending_first = (iterations->pending_first + 1) % iterations->pending_cap;
    iterations->pending_count--;
}

bool iterations_retired(struct iterations *iterations, int rank, int64_t number, int64_t time_ns)
{
    assert(number >= iterations->over && number < iterations->ends[rank]);
    (void)rank;
    size_t k = (size_t)(number - iterations->over);
    while (iterations->pending_count <= k) {
        if (iterations->pending_count == iterations->pending_cap && !grow(iterations))
            return false;
        int64_t next = iterations->over + (int64_t)iterations->pending_count++;
        *pending_at(iterations, iterations->pending_count - 1) =
            (struct pending){0, ranks_with(iterations, next)};
    }
    struct pending *pending = pending_at(iterations, k);
    pending->time_ns = time_ns;
    pending->left--;
    while (iterations->pending_count > 0 && pending_at(iterations, 0)->left == 0)
        is_over(iterations);
    return true;
}

void iterations_over(struct iterations *iterations, const int64_t *times_ns, int count)
{
    assert(iterations->pending_count == 0);
    for (int i = 0; i < count; i++)
        note_over(iterations, times_ns[i]);
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

double iterations_half_width(const double *values, int count)
{
    if (count < 2)
        return NAN;
    double mean = 0, squares = 0;
    for (int i = 0; i < count; i++)
        mean += values[i] / count;
    for (int i = 0; i < count; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    return student(count - 1) * sqrt(squares / (count - 1) / count);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Between the two nearest ranks, linearly. */
static double quantile(const int64_t *sorted, size_t count, double q)
{
    if (count == 0)
        return NAN;
    double at = q * (double)(count - 1), below = floor(at);
    size_t i = (size_t)below, next = i + 1 < count ? i + 1 : i;
    return (double)sorted[i] + (at - below) * (double)(sorted[next] - sorted[i]);
}

void iterations_figures(struct iterations *iterations, struct iteration_figures *out)
{
    double means[ITERATIONS_BATCHES], sum = 0;
    int batches = 0;
    int64_t count = 0;
    for (int i = 0; i < ITERATIONS_BATCHES; i++) {
        if (iterations->batch_count[i] == 0)
            continue;
        means[batches++] = iterations->batch_ns[i] / (double)iterations->batch_count[i];
        sum += iterations->batch_ns[i];
        count += iterations->batch_count[i];
    }
    qsort(iterations->kept, iterations->kept_count, sizeof *iterations->kept, compare);
    double mean = count ? sum / (double)count : NAN;
    double half = iterations_half_width(means, batches);
    *out = (struct iteration_figures){
        .mean = mean,
        .p50 = quantile(iterations->kept, iterations->kept_count, 0.50),
        .p95 = quantile(iterations->kept, iterations->kept_count, 0.95),
        .p99 = quantile(iterations->kept, iterations->kept_count, 0.99),
        .ci_low = mean - half,
        .ci_high = mean + half,
        .count = count,
        .steady = iterations->steady,
    };
}
