/* SPDX-License-Identifier: Apache-2.0 */
/* iterations.c - see iterations.h. */
#include "iterations.h"

#if defined __GNUC__ && !defined __clang__
#pragma GCC optimize("O3") /* passes over all durations take vectors */
#endif

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "base/list_key.h"

enum { FIRST_CAP = 16, WARM_UP_TENTH = 10 };

bool iterations_init(struct iterations *iterations, const int64_t *ends, int ranks, int depth,
                     uint64_t seed)
{
    *iterations = (struct iterations){.ends = ends, .ranks = ranks, .first_over_ns = -1};
    for (int rank = 0; rank < ranks; rank++)
        iterations->total = max_i64(iterations->total, ends[rank]);
    iterations->first = 1;
    iterations->last = iterations->total - depth;
    iterations->parts_first = depth + iterations->total / WARM_UP_TENTH;
    iterations->few = iterations->last - iterations->parts_first < 2;
    if (iterations->few) {
        iterations->last = iterations->total;
        iterations->parts_first = 1;
    }
    int64_t durations = max_i64(0, iterations->last - iterations->first);
    iterations->kept_cap = (size_t)min_i64(durations, ITERATIONS_KEPT);
    iterations->kept.at = malloc((iterations->kept_cap + 1) * sizeof(int64_t));
    iterations->reservoir = random_open(&(struct random_subject){
        .seed = seed, .task = random_name("reservoir"), .part = RANDOM_OTHER});
    return iterations->kept.at != NULL;
}

void iterations_fini(struct iterations *iterations)
{
    free(iterations->pending);
    free(iterations->kept.at);
    iterations->pending = NULL;
    iterations->kept.at = NULL;
}

static struct pending *iterations_pending_at(struct iterations *iterations, size_t k)
{
    return &iterations->pending[(iterations->pending_first + k) & (iterations->pending_cap - 1)];
}

static bool iterations_grow(struct iterations *iterations)
{
    size_t cap = iterations->pending_cap ? 2 * iterations->pending_cap : FIRST_CAP;
    struct pending *pending = malloc(cap * sizeof *pending);
    if (!pending)
        return false;
    for (size_t k = 0; k < iterations->pending_count; k++)
        pending[k] = *iterations_pending_at(iterations, k);
    free(iterations->pending);
    iterations->pending = pending;
    iterations->pending_cap = cap;
    iterations->pending_first = 0;
    return true;
}

static int iterations_ranks_with(const struct iterations *iterations, int64_t number)
{
    int count = 0;
    for (int rank = 0; rank < iterations->ranks; rank++)
        count += number < iterations->ends[rank];
    return count;
}

/* Which part the next duration belongs to, and how far that goes. */
static void iterations_find_part(struct iterations *iterations)
{
    int64_t index = iterations->over - iterations->parts_first;
    int64_t length = iterations->last - iterations->parts_first;
    iterations->part = index < 0 ? -1 : index * STATISTICS_BATCHES / length;
    int64_t next = (iterations->part + 1) * length; /* where the next part begins, in its batches */
    iterations->part_until =
        min_i64(iterations->last,
                iterations->parts_first + (next + STATISTICS_BATCHES - 1) / STATISTICS_BATCHES);
}

/* From the last one on, since each grows into the place of the next. */
static void iterations_widen(struct durations *kept, size_t count)
{
    const struct durations wide = {kept->at, true};
    for (size_t i = count; i-- > 0;)
        durations_set(wide, i, durations_get(*kept, i));
    *kept = wide;
}

static bool is_wide(int64_t duration_ns)
{
    return (uint64_t)duration_ns > UINT32_MAX;
}

static void iterations_keep(struct iterations *iterations, size_t place, int64_t duration_ns)
{
    if (is_wide(duration_ns) && !iterations->kept.wide)
        iterations_widen(&iterations->kept, iterations->kept_count);
    durations_set(iterations->kept, place, duration_ns);
}

static void count_duration(struct iterations *iterations, int64_t duration_ns)
{
    int64_t index = iterations->over - iterations->first;
    if (iterations->over < iterations->first || iterations->over >= iterations->last)
        return;
    if (iterations->over >= iterations->parts_first) {
        if (iterations->over >= iterations->part_until) /* divisions take as long as all the rest */
            iterations_find_part(iterations);
        iterations->part_ns[iterations->part] += duration_ns;
        iterations->part_count[iterations->part]++;
    }
    if (iterations->kept_count < iterations->kept_cap) {
        iterations_keep(iterations, iterations->kept_count, duration_ns);
        iterations->kept_count++;
        iterations->kept_ns += duration_ns;
        return;
    }
    uint64_t place = random_bits(&iterations->reservoir) % (uint64_t)(index + 1);
    if (place < iterations->kept_cap)
        iterations_keep(iterations, place, duration_ns);
}

static void iterations_note_over(struct iterations *iterations, int64_t time_ns)
{
    if (iterations->over == 0)
        iterations->first_over_ns = time_ns;
    else
        count_duration(iterations, time_ns - iterations->last_over_ns);
    iterations->last_over_ns = time_ns;
    iterations->over++;
}

/* The oldest pending iteration is over everywhere. */
static void iterations_is_over(struct iterations *iterations)
{
    assert(iterations->pending_count > 0 && iterations->waiting_count == 0);
    int64_t time_ns = iterations_pending_at(iterations, 0)->time_ns;
    if (time_ns < iterations->last_over_ns) /* a rank that has fewer may have been the last one */
        time_ns = iterations->last_over_ns;
    iterations_note_over(iterations, time_ns);
    iterations->pending_first = (iterations->pending_first + 1) & (iterations->pending_cap - 1);
    iterations->pending_count--;
}

/* Durations until the next `count` times, kept. */
static inline __attribute__((always_inline)) uint64_t
iterations_keep_times(struct durations kept, int64_t before_ns, const int64_t *times_ns, int count)
{
    uint64_t bits = 0; /* that any of them has */
    for (int i = 0; i < count; i++) {
        int64_t time_ns = times_ns[i], duration_ns = time_ns - before_ns;
        durations_set(kept, (size_t)i, duration_ns);
        bits |= (uint64_t)duration_ns;
        before_ns = time_ns;
    }
    return bits;
}

/* The next `count` durations are kept and belong to one part, or to none. */
static void count_durations(struct iterations *iterations, const int64_t *times_ns, int count)
{
    struct durations *kept = &iterations->kept;
    assert(iterations->kept_count + (size_t)count <= iterations->kept_cap);
    size_t place = iterations->kept_count;
    int64_t before_ns = iterations->last_over_ns, over_ns = times_ns[count - 1];
    if (!kept->wide) {
        const struct durations narrow = {durations_from(*kept, place).at, false};
        if (is_wide((int64_t)iterations_keep_times(narrow, before_ns, times_ns, count)))
            iterations_widen(kept, place);
    }
    if (kept->wide) {
        const struct durations wide = {durations_from(*kept, place).at, true};
        iterations_keep_times(wide, before_ns, times_ns, count);
    }
    if (iterations->part >= 0) {
        iterations->part_ns[iterations->part] += over_ns - before_ns;
        iterations->part_count[iterations->part] += count;
    }
    iterations->kept_count += (size_t)count;
    iterations->kept_ns += over_ns - before_ns;
    iterations->last_over_ns = over_ns;
    iterations->over += count;
}

/* How many of the next `count` durations can be counted in one go; 0: the next one is special. */
static int alike(struct iterations *iterations, int count)
{
    int64_t over = iterations->over;
    size_t room = iterations->kept_cap - iterations->kept_count;
    if (over == 0 || over < iterations->first || over >= iterations->last)
        return 0;
    if (over >= iterations->part_until)
        iterations_find_part(iterations);
    count = iterations->part_until - over < count ? (int)(iterations->part_until - over) : count;
    return room < (size_t)count ? (int)room : count;
}

/* Iterations that are over on the only rank are counted many at a time. */
static void count_waiting(struct iterations *iterations)
{
    const int count = iterations->waiting_count;
    assert(count == 0 || iterations->pending_count == 0);
    iterations->waiting_count = 0;
    for (int i = 0, taken; i < count; i += taken) {
        const int64_t *next_ns = &iterations->waiting_ns[i];
        taken = alike(iterations, count - i);
        if (taken)
            count_durations(iterations, next_ns, taken);
        else
            iterations_note_over(iterations, *next_ns), taken = 1;
    }
}

bool iterations_finished(struct iterations *iterations, int rank, int64_t number, int64_t time_ns)
{
    assert(number >= iterations->over + iterations->waiting_count &&
           number < iterations->ends[rank]);
    (void)rank;
    if (iterations->ranks == 1) {
        assert(iterations->waiting_count < ITERATIONS_TOGETHER);
        iterations->waiting_ns[iterations->waiting_count++] = time_ns;
        if (iterations->waiting_count == ITERATIONS_TOGETHER)
            count_waiting(iterations);
        return true;
    }
    size_t k = (size_t)(number - iterations->over);
    while (iterations->pending_count <= k) {
        if (iterations->pending_count == iterations->pending_cap && !iterations_grow(iterations))
            return false;
        int64_t next = iterations->over + (int64_t)iterations->pending_count++;
        *iterations_pending_at(iterations, iterations->pending_count - 1) =
            (struct pending){0, iterations_ranks_with(iterations, next)};
    }
    struct pending *pending = iterations_pending_at(iterations, k);
    assert(pending->left > 0);
    pending->time_ns = max_i64(pending->time_ns, time_ns);
    pending->left--;
    while (iterations->pending_count > 0 && iterations_pending_at(iterations, 0)->left == 0)
        iterations_is_over(iterations);
    return true;
}

/* ---- quantiles without sorting --------------------------------------------------------------- */

enum { BIN_BITS = 12, BINS = 1 << BIN_BITS, FEW = 256, QUANTILES = 3, WANTED = 4 * QUANTILES };

static int compare_narrow(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Values whose ranks are wanted: ranks are those among the first `count`. */
struct selection {
    struct durations values;
    size_t count;
    size_t ranks[WANTED];
};

/* Bins of equal width for values from low on. */
struct bins {
    int64_t low;
    int shift;
    uint32_t counts[BINS];
    bool kept[BINS]; /* it holds a wanted rank */
};

/* The rest is compiled twice, for both widths, so that loops need not ask. */
#define ALWAYS static inline __attribute__((always_inline))

struct duration_range {
    int64_t low, high;
};

#define DEFINE_RANGE(NAME, TYPE)                                                                   \
    static struct duration_range NAME(const TYPE *values, size_t count) {                          \
        TYPE low = values[0], high = low;                                                          \
        for (size_t i = 0; i < count; i++) {                                                       \
            low = values[i] < low ? values[i] : low;                                               \
            high = values[i] > high ? values[i] : high;                                            \
        }                                                                                          \
        return (struct duration_range){low, high};                                                 \
    }

DEFINE_RANGE(range_wide, int64_t)
DEFINE_RANGE(range_narrow, uint32_t)

ALWAYS size_t bin_of(const struct bins *bins, struct durations values, size_t i)
{
    return (uint64_t)(durations_get(values, i) - bins->low) >> bins->shift;
}

ALWAYS void fill_bins(struct bins *bins, struct durations values, size_t count)
{
    const struct duration_range range =
        values.wide ? range_wide(values.at, count) : range_narrow(values.at, count);
    uint64_t width = (uint64_t)(range.high - range.low);
    int bits = width ? 64 - __builtin_clzll(width) : 0;
    const struct bins empty = {.low = range.low, .shift = bits > BIN_BITS ? bits - BIN_BITS : 0};
    *bins = empty;
    for (size_t i = 0; i < count; i++)
        bins->counts[bin_of(&empty, values, i)]++;
}

/* Those of the bins that hold a wanted rank come to the front; what was there takes their places. Few do,
   so TOGETHER are asked at once. Returns how many they are. */
ALWAYS size_t keep_chosen(const struct bins *bins, struct durations values, size_t count)
{
    enum { TOGETHER = 8 };
    size_t kept = 0;
    for (size_t from = 0; from < count; from += TOGETHER) {
        size_t end = from + TOGETHER < count ? from + TOGETHER : count;
        bool any = end < from + TOGETHER;
        for (size_t i = from; end == from + TOGETHER && i < from + TOGETHER; i++)
            any |= bins->kept[bin_of(bins, values, i)];
        for (size_t i = from; any && i < end; i++) {
            if (!bins->kept[bin_of(bins, values, i)])
                continue;
            int64_t value = durations_get(values, i);
            durations_set(values, i, durations_get(values, kept));
            durations_set(values, kept++, value);
        }
    }
    return kept;
}

/* The lowest wanted rank that is not below this one. */
static size_t next_wanted(const size_t wanted[WANTED], size_t rank)
{
    size_t next = SIZE_MAX;
    for (int w = 0; w < WANTED; w++)
        next = wanted[w] >= rank && wanted[w] < next ? wanted[w] : next;
    return next;
}

/* Which bins hold a wanted rank, and the rank among what is in those. Returns how many values are in
   none of them. */
static size_t choose_bins(struct bins *bins, const size_t wanted[WANTED], size_t ranks[WANTED])
{
    size_t below = 0, dropped = 0, next = next_wanted(wanted, 0);
    for (int bin = 0; bin < BINS; bin++) {
        size_t end = below + bins->counts[bin];
        if (next >= end) {
            dropped += end - below;
            below = end;
            continue;
        }
        bins->kept[bin] = true;
        for (int w = 0; w < WANTED; w++)
            if (wanted[w] >= below && wanted[w] < end)
                ranks[w] = wanted[w] - dropped;
        below = end;
        next = next_wanted(wanted, end);
    }
    return dropped;
}

/* Count the values in bins of equal width and keep, in front, those of the bins that hold a wanted
   rank. false: they cannot be told apart that way any more. */
static bool narrow(struct selection *selection)
{
    struct bins bins;
    size_t ranks[WANTED];
    const struct durations wide = {selection->values.at, true},
                           slim = {selection->values.at, false};
    if (selection->values.wide)
        fill_bins(&bins, wide, selection->count);
    else
        fill_bins(&bins, slim, selection->count);
    if (choose_bins(&bins, selection->ranks, ranks) == 0)
        return false;
    selection->count = selection->values.wide ? keep_chosen(&bins, wide, selection->count)
                                              : keep_chosen(&bins, slim, selection->count);
    memcpy(selection->ranks, ranks, sizeof ranks);
    return true;
}

static double value_at(struct durations values, size_t rank)
{
    return (double)durations_get(values, rank);
}

/* Quantiles, each between the two nearest ranks, linearly, with their intervals. */
static void quantiles(struct durations values, size_t count, const double q[QUANTILES],
                      double out[QUANTILES], struct interval in[QUANTILES])
{
    struct selection selection = {.values = values, .count = count};
    bool known[QUANTILES] = {false};
    for (int i = 0; i < QUANTILES; i++) {
        size_t *ranks = &selection.ranks[4 * i];
        out[i] = in[i].low = in[i].high = NAN;
        ranks[0] = count ? (size_t)(q[i] * (double)(count - 1)) : 0;
        ranks[1] = ranks[0] + 1 < count ? ranks[0] + 1 : ranks[0];
        known[i] = statistics_ranks(count, q[i], &ranks[2], &ranks[3]);
        if (!known[i])
            ranks[2] = ranks[3] = ranks[0];
    }
    if (count == 0)
        return;
    while (selection.count > FEW && narrow(&selection))
        ;
    qsort(values.at, selection.count, values.wide ? sizeof(int64_t) : sizeof(uint32_t),
          values.wide ? compare_items_i64 : compare_narrow);
    for (int i = 0; i < QUANTILES; i++) {
        const size_t *ranks = &selection.ranks[4 * i];
        double at = q[i] * (double)(count - 1), low = value_at(values, ranks[0]);
        out[i] = low + (at - floor(at)) * (value_at(values, ranks[1]) - low);
        if (known[i])
            in[i] = (struct interval){value_at(values, ranks[2]), value_at(values, ranks[3])};
    }
}

/* ---- figures --------------------------------------------------------------------------------- */

const char *doubt_words(enum doubt doubt)
{
    static const char *const words[] = {DOUBT_LIST(LIST_KEY)};
    return words[doubt];
}

/* All durations have been kept: cut the warm-up off and take batches of the rest. Returns how many
   are left. */
static size_t cut_warm_up(const struct iterations *iterations, struct iteration_figures *out)
{
    double means[STATISTICS_BATCHES];
    int64_t sum = iterations->kept_ns;
    size_t all = iterations->kept_count;
    size_t cut = iterations->few ? 0 : statistics_warm_up(iterations->kept, all);
    const struct durations rest = durations_from(iterations->kept, cut);
    size_t count = all - cut;
    bool batches = statistics_batches(rest, count, means);
    for (size_t i = 0; i < cut; i++)
        sum -= durations_get(iterations->kept, i);
    out->mean = count ? (double)sum / (double)count : NAN;
    out->count = (int64_t)count;
    out->warm_up = (int64_t)cut;
    if (batches)
        out->mean_in = statistics_mean(means, STATISTICS_BATCHES);
    out->doubt = iterations->few                                    ? DOUBT_FEW
                 : !batches || count < STATISTICS_LEAST             ? DOUBT_SHORT
                 : cut + 5 > all / 2                                ? DOUBT_WARM_UP
                 : statistics_correlated(means, STATISTICS_BATCHES) ? DOUBT_CORRELATED
                                                                    : DOUBT_NONE;
    return count;
}

/* Not all have been kept: the parts are the batches. */
static void use_parts(const struct iterations *iterations, struct iteration_figures *out)
{
    double sum = 0;
    for (int i = 0; i < STATISTICS_BATCHES; i++) {
        sum += (double)iterations->part_ns[i];
        out->count += iterations->part_count[i];
    }
    out->mean = sum / (double)out->count;
    out->mean_in = statistics_mean(out->parts, out->part_count);
    out->warm_up = iterations->parts_first - iterations->first;
    if (statistics_correlated(out->parts, out->part_count))
        out->doubt = DOUBT_CORRELATED;
}

void iterations_figures(struct iterations *iterations, struct iteration_figures *out)
{
    static const double wanted[QUANTILES] = {0.50, 0.95, 0.99};
    double found[QUANTILES];
    struct interval in[QUANTILES];
    count_waiting(iterations);
    size_t all = iterations->kept_count, count = all;
    *out = (struct iteration_figures){.mean = NAN, .mean_in = {NAN, NAN}};
    for (int i = 0; i < STATISTICS_BATCHES; i++)
        if (iterations->part_count[i])
            out->parts[out->part_count++] =
                (double)iterations->part_ns[i] / (double)iterations->part_count[i];
    if (iterations->last - iterations->first <= ITERATIONS_KEPT)
        count = cut_warm_up(iterations, out);
    else
        use_parts(iterations, out);
    quantiles(durations_from(iterations->kept, all - count), count, wanted, found, in);
    out->p50 = found[0];
    out->p95 = found[1];
    out->p99 = found[2];
    out->p50_in = in[0];
    out->p95_in = in[1];
    out->p99_in = in[2];
}
