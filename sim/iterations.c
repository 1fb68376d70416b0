/*
 * iterations.c - see iterations.h. The confidence interval is that of batch means (Conway 1963):
 * durations are correlated, means of long batches of them hardly, so Student's t holds for those.
 */
#include "sim/iterations.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- quantiles without sorting --------------------------------------------------------------- */

enum { BIN_BITS = 12, BINS = 1 << BIN_BITS, FEW = 256, WANTED = 6 };

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Values whose ranks are wanted: ranks are those among the first `count`. */
struct selection {
    int64_t *values;
    size_t count;
    size_t ranks[WANTED];
};

/* Count the values in bins of equal width and keep, in front, those of the bins that hold a wanted
   rank. false: they cannot be told apart that way any more. */
static bool narrow(struct selection *selection)
{
    uint32_t counts[BINS] = {0};
    bool kept[BINS] = {false};
    int64_t *values = selection->values, low = values[0], high = low;
    for (size_t i = 0; i < selection->count; i++) {
        low = values[i] < low ? values[i] : low;
        high = values[i] > high ? values[i] : high;
    }
    int bits = high > low ? 64 - __builtin_clzll((uint64_t)(high - low)) : 0;
    int shift = bits > BIN_BITS ? bits - BIN_BITS : 0;
    for (size_t i = 0; i < selection->count; i++)
        counts[(values[i] - low) >> shift]++;
    size_t below = 0, dropped = 0;
    size_t ranks[WANTED];
    for (int bin = 0; bin < BINS; below += counts[bin++]) {
        for (int w = 0; w < WANTED; w++)
            if (selection->ranks[w] >= below && selection->ranks[w] < below + counts[bin]) {
                kept[bin] = true;
                ranks[w] = selection->ranks[w] - dropped;
            }
        dropped += kept[bin] ? 0 : counts[bin];
    }
    if (dropped == 0)
        return false;
    size_t count = 0;
    for (size_t i = 0; i < selection->count; i++) {
        int64_t value = values[i];
        if (!kept[(value - low) >> shift])
            continue;
        values[i] = values[count]; /* nothing is lost: they only change places */
        values[count++] = value;
    }
    selection->count = count;
    memcpy(selection->ranks, ranks, sizeof ranks);
    return true;
}

/* Three quantiles, each between the two nearest ranks, linearly. */
static void quantiles(int64_t *values, size_t count, const double q[WANTED / 2],
                      double out[WANTED / 2])
{
    struct selection selection = {.values = values, .count = count};
    for (int i = 0; i < WANTED / 2; i++) {
        out[i] = NAN;
        size_t rank = count ? (size_t)(q[i] * (double)(count - 1)) : 0;
        selection.ranks[2 * i] = rank;
        selection.ranks[2 * i + 1] = rank + 1 < count ? rank + 1 : rank;
    }
    if (count == 0)
        return;
    while (selection.count > FEW && narrow(&selection))
        ;
    qsort(values, selection.count, sizeof *values, compare);
    for (int i = 0; i < WANTED / 2; i++) {
        double at = q[i] * (double)(count - 1), low = (double)values[selection.ranks[2 * i]];
        out[i] = low + (at - floor(at)) * ((double)values[selection.ranks[2 * i + 1]] - low);
    }
}

void iterations_figures(struct iterations *iterations, struct iteration_figures *out)
{
    static const double wanted[] = {0.50, 0.95, 0.99};
    double means[ITERATIONS_BATCHES], sum = 0, found[WANTED / 2];
    int batches = 0;
    int64_t count = 0;
    for (int i = 0; i < ITERATIONS_BATCHES; i++) {
        if (iterations->batch_count[i] == 0)
            continue;
        means[batches++] = iterations->batch_ns[i] / (double)iterations->batch_count[i];
        sum += iterations->batch_ns[i];
        count += iterations->batch_count[i];
    }
    quantiles(iterations->kept, iterations->kept_count, wanted, found);
    double mean = count ? sum / (double)count : NAN;
    double half = iterations_half_width(means, batches);
    *out = (struct iteration_figures){
        .mean = mean,
        .p50 = found[0],
        .p95 = found[1],
        .p99 = found[2],
        .ci_low = mean - half,
        .ci_high = mean + half,
        .count = count,
        .steady = iterations->steady,
    };
}
