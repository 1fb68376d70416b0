/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_random.c - random numbers: the generator's known answers, the means and spreads of the distributions,
 * what they depend on and what it does not, the event queue, and the figures made of iteration
 * times.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/events.h"
#include "sim/engine/iterations.h"
#include "sim/engine/quantile.h"
#include "sim/engine/random.h"
#include "tests/harness.h"
#include "tests/tap.h"

/* ---- Philox ---------------------------------------------------------------------------------- */

/* The vectors that come with Random123 (kat_vectors). */
static void test_known_answers(void)
{
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t got[4];
        random_philox(known[i].counter, known[i].key, got);
        tap_ok(memcmp(got, known[i].want, sizeof got) == 0, "Philox4x32-10, known answer %zu", i);
    }
}

static struct random_subject subject(const char *task, uint32_t iteration)
{
    return (struct random_subject){
        .seed = 7, .task = random_name(task), .iteration = iteration, .part = RANDOM_DEVICE};
}

static uint64_t first_bits(struct random_subject subject)
{
    struct random_stream stream = random_open(&subject);
    return random_bits(&stream);
}

static void test_subjects(void)
{
    struct random_subject base = subject("Forward", 3), other;
    uint64_t bits = first_bits(base);
    tap_ok(first_bits(subject("Forward", 3)) == bits, "the same subject has the same numbers");
    other = base, other.seed++;
    tap_ok(first_bits(other) != bits, "the seed matters");
    other = base, other.task = random_name("Backward");
    tap_ok(first_bits(other) != bits, "the task matters");
    other = base, other.replication++;
    tap_ok(first_bits(other) != bits, "the replication matters");
    other = base, other.iteration++;
    tap_ok(first_bits(other) != bits, "the iteration matters");
    other = base, other.rank++;
    tap_ok(first_bits(other) != bits, "the rank matters");
    other = base, other.part = RANDOM_HOST;
    tap_ok(first_bits(other) != bits, "the part matters");
}

/* Vectors over iterations give the words of the library, one at a time. */
static void test_words(void)
{
    static uint32_t run[RANDOM_RUN];
    int wrong = 0, same = 0;
    for (uint32_t first = 0; first < 10 * RANDOM_RUN; first += RANDOM_RUN) {
        struct random_subject base = subject("words", first + 7);
        base.replication = UINT32_MAX - 3 + first;
        base.rank = 3;
        random_words(&base, 1, run);
        for (uint32_t i = 0; i < RANDOM_RUN; i++) {
            struct random_subject one = base;
            one.iteration = first + i;
            uint32_t word = random_word(&one, 1);
            wrong += word != run[i];
            same += word == random_word(&one, 0);
        }
    }
    tap_is_int(wrong, 0, "words by vectors are those of the library");
    tap_is_int(same, 0, "another use, another word");
}

/* The words of a block of Philox are those of four iterations; no two of a run are of one. */
static void test_blocks(void)
{
    int wrong = 0;
    for (uint32_t i = 0; i < 4 * RANDOM_RUN; i++) {
        const struct random_subject asked = subject("blocks", i);
        const uint64_t key = asked.seed ^ asked.task;
        const uint32_t part = i / 32, within = i % 32;
        const uint32_t counter[] = {8 * part + within % 8, 0, RANDOM_DEVICE,
                                    (UINT32_C(1) << 31) + 2};
        uint32_t block[4];
        random_philox(counter, (const uint32_t[]){(uint32_t)key, (uint32_t)(key >> 32)}, block);
        wrong += random_word(&asked, 2) != block[within / 8];
    }
    tap_is_int(wrong, 0, "a word is the part of a block that the header says");
}

/* ---- distributions --------------------------------------------------------------------------- */

enum { SAMPLES = 200000 };

/* Mean and coefficient of variation of many draws around 1 ms. */
static void measure(const struct dist *dist, double *mean, double *cv)
{
    struct quantile quantile;
    double sum = 0, squares = 0;
    if (!quantile_init(&quantile, dist))
        return;
    for (uint32_t i = 0; i < SAMPLES; i++) {
        struct random_subject asked = subject("measure", i);
        uint32_t word = random_word(&asked, 0);
        int64_t ns;
        quantile_durations(&quantile, 1000000, &word, 1, &ns);
        double value = (double)ns / 1e6;
        sum += value;
        squares += value * value;
    }
    quantile_fini(&quantile);
    *mean = sum / SAMPLES;
    *cv = sqrt(squares / SAMPLES - *mean * *mean) / *mean;
}

/* `cv` < 0: not looked at. */
static void check_dist(struct arena *arena, const char *text, double mean, double cv)
{
    struct dist dist;
    const char *what = "";
    size_t where;
    double got_mean = 0, got_cv = 0;
    if (!dist_parse(text, arena, &dist, &what, &where)) {
        tap_ok(0, "%s is a distribution: %s", text, what);
        return;
    }
    measure(&dist, &got_mean, &got_cv);
    tap_ok(fabs(got_mean - mean) < 0.01 * mean + 0.002 * got_cv, "%s: mean %.4f, wanted %.4f", text,
           got_mean, mean);
    if (cv >= 0)
        tap_ok(fabs(got_cv - cv) < 0.02 * cv + 1e-9, "%s: cv %.4f, wanted %.4f", text, got_cv, cv);
}

static void test_distributions(void)
{
    struct arena arena;
    arena_init(&arena, 0);
    check_dist(&arena, "constant", 1, 0);
    check_dist(&arena, "uniform(half=0.6)", 1, 0.6 / sqrt(3));
    check_dist(&arena, "normal(cv=0.2)", 1, 0.2);
    check_dist(&arena, "normal(cv=2)", 1, -1); /* truncated: the mean stays, the cv cannot */
    check_dist(&arena, "lognormal(cv=0.5)", 1, 0.5);
    check_dist(&arena, "gamma(cv=0.3)", 1, 0.3);
    check_dist(&arena, "gamma(cv=1.5)", 1, 1.5);
    check_dist(&arena, "gamma(cv=0)", 1, 0);
    check_dist(&arena, "exponential", 1, 1);
    check_dist(&arena, "pareto(alpha=4)", 1, -1);
    check_dist(&arena, "empirical(0.5, 1.0, 1.5)", 1, 0.5 * sqrt(2.0 / 3));
    arena_fini(&arena);
}

/* How far the duration of a word is from the quantile it stands for. */
static double off_by(const struct dist *dist, double p, bool from_above, int64_t mean_ns,
                     int64_t ns)
{
    double exact = quantile_exact(dist, p, from_above);
    return fabs((double)ns / (double)mean_ns - exact) / (exact + 1e-3);
}

/* A table against the quantile it stands for, between the points it goes through, and many draws at
   once against one at a time; then as deep in the tails as there are numbers. */
static void check_table(struct arena *arena, const char *text)
{
    static const int64_t mean_ns = 1000 * 1000 * 1000;
    struct dist dist;
    struct quantile quantile;
    const char *what = "";
    size_t where;
    int64_t many[RANDOM_RUN], one;
    uint32_t words[RANDOM_RUN], more[RANDOM_RUN];
    double worst = 0, worst_deep = 0;
    int differing = 0;
    if (!dist_parse(text, arena, &dist, &what, &where) || !quantile_init(&quantile, &dist)) {
        tap_ok(0, "%s is a distribution: %s", text, what);
        return;
    }
    for (uint32_t first = 0; first < 40 * RANDOM_RUN; first += RANDOM_RUN) {
        struct random_subject asked = subject("table", first);
        random_words(&asked, 0, words);
        random_words(&asked, 1, more);
        for (uint32_t i = 0; i < RANDOM_RUN; i++)
            words[i] = (words[i] & ~(UINT32_MAX >> 1)) | (words[i] << 1 >> 1 >> (i % 16));
        quantile_durations(&quantile, mean_ns, words, RANDOM_RUN, many);
        for (uint32_t i = 0; i < RANDOM_RUN; i++) {
            bool upper = words[i] >> 31;
            uint64_t tail = (words[i] & UINT64_C(0x7fffffff)) << 32 | more[i];
            uint64_t deep = (uint64_t)upper << 63 | tail >> (i % 47);
            differing += quantile_durations(&quantile, mean_ns, &words[i], 1, &one) !=
                             quantile_is_deep(words[i]) ||
                         one != many[i];
            double p = ldexp((double)(words[i] << 1 | 1), -33);
            worst = fmax(worst, off_by(&dist, p, upper, mean_ns, one));
            p = ldexp(fmax((double)(tail >> (i % 47)) + 0.5, 0x1p11), -64);
            one = quantile_deep_duration(&quantile, mean_ns, deep);
            worst_deep = fmax(worst_deep, off_by(&dist, p, upper, mean_ns, one));
        }
    }
    quantile_fini(&quantile);
    tap_ok(worst < 1e-6, "%s: off by %.2g of its quantile at most", text, worst);
    tap_ok(worst_deep < 1e-6, "%s: off by %.2g in the tails", text, worst_deep);
    tap_is_int(differing, 0, "%s: many at once are the same", text);
}

static void test_tables(void)
{
    struct arena arena;
    arena_init(&arena, 0);
    check_table(&arena, "uniform(half=0.6)");
    check_table(&arena, "normal(cv=0.2)");
    check_table(&arena, "normal(cv=2)");
    check_table(&arena, "lognormal(cv=0.8)");
    check_table(&arena, "gamma(cv=0.3)");
    check_table(&arena, "gamma(cv=1.5)");
    check_table(&arena, "exponential");
    check_table(&arena, "pareto(alpha=4)");
    arena_fini(&arena);
}

/* ---- the event queue ------------------------------------------------------------------------- */

static void test_events(void)
{
    enum { EVENTS = 5000 };
    struct events events;
    struct event last = {.time_ns = -1}, event;
    struct random_subject asked = subject("events", 0);
    struct random_stream rng = random_open(&asked);
    bool pushed = true, ordered = true;
    int popped = 0;
    pushed &= events_init(&events, EVENTS);
    for (int i = 0; i < EVENTS; i++)
        pushed &= events_push(&events, (int64_t)(random_bits(&rng) % 100),
                              (int)(random_bits(&rng) % 3), i);
    tap_ok(pushed && events_check(&events), "all games are played");
    for (; events_pop(&events, &event); last = event, popped++) {
        if (event.time_ns != last.time_ns)
            ordered &= event.time_ns > last.time_ns;
        else if (event.priority != last.priority)
            ordered &= event.priority > last.priority;
        else
            ordered &= event.sequence > last.sequence;
        if (popped % 100 == 0)
            ordered &= events_check(&events);
    }
    tap_is_int(popped, EVENTS, "all events come out");
    tap_ok(ordered, "by time, then priority, then the order they were pushed in");
    tap_ok(!events_next(&events, &event), "then there is none");
    events_fini(&events);
}

/* Events that are put elsewhere, each agent having one, come when they were put, and among those of
   one time and priority in the order in which they were pushed. */
static void test_retiming(void)
{
    enum { AGENTS = 60, CHANGES = 500 };
    struct events events;
    struct event event, last = {.time_ns = -1};
    struct random_stream rng = random_open(&(struct random_subject){.seed = 5});
    int64_t times_ns[AGENTS];
    int wrong = 0, popped = 0;
    wrong += !events_init(&events, AGENTS);
    for (int i = 0; i < AGENTS; i++)
        if (!events_push(&events, times_ns[i] = (int64_t)(random_bits(&rng) % 20), i % 2, i))
            wrong++;
    for (int i = 0; i < CHANGES; i++) {
        int agent = (int)(random_bits(&rng) % AGENTS);
        times_ns[agent] = (int64_t)(random_bits(&rng) % 20);
        events_retime(&events, agent, times_ns[agent]);
        wrong += !events_check(&events);
    }
    for (; events_pop(&events, &event); last = event, popped++)
        wrong += event.time_ns != times_ns[event.agent] || event.time_ns < last.time_ns ||
                 (event.time_ns == last.time_ns && event.priority < last.priority) ||
                 (event.time_ns == last.time_ns && event.priority == last.priority &&
                  event.agent < last.agent);
    tap_ok(wrong == 0 && popped == AGENTS, "events that are put elsewhere come when they should");
    events_fini(&events);
}

/* ---- figures of iterations ------------------------------------------------------------------- */

static void test_figures(void)
{
    const int64_t ends[] = {1000};
    struct iterations iterations;
    struct iteration_figures figures;
    int64_t now = 0;
    tap_ok(iterations_init(&iterations, ends, 1, 2, 1), "one rank, 1000 iterations, depth 2");
    for (int64_t i = 0; i < 1000; i++) {
        bool odd = i < 102 || i >= 998; /* what must not count */
        now += odd ? 1000000 : 100 + i % 2 * 20;
        iterations_finished(&iterations, 0, i, now);
    }
    iterations_figures(&iterations, &figures);
    iterations_fini(&iterations);
    tap_is_int(figures.doubt, DOUBT_NONE, "there is a steady state");
    tap_is_int(figures.warm_up, 105, "the warm-up is left out, in fives");
    tap_is_int(figures.count, 892, "so are the last depth iterations");
    tap_ok(figures.mean == 110, "mean %g", figures.mean);
    tap_ok(figures.p50 >= 100 && figures.p50 <= 120 && figures.p99 == 120, "p50 %g, p99 %g",
           figures.p50, figures.p99);
    tap_ok(figures.mean_in.low <= 110 && figures.mean_in.high >= 110, "95%%: %g .. %g",
           figures.mean_in.low, figures.mean_in.high);
}

/* A duration that needs more than 32 bits, first, late or never: one at a time, as with two ranks, and many at
   once, as with one. */
static void test_long_durations(void)
{
    enum { COUNT = 1003 };
    static const int64_t long_ns = 5 * INT64_C(1000000000), ends[] = {COUNT, COUNT};
    for (int at = 1; at < COUNT; at += 333) {
        struct iterations one, many;
        struct iteration_figures a, b;
        int64_t now = 0;
        if (!iterations_init(&one, ends, 2, 1, 1) || !iterations_init(&many, ends, 1, 1, 1))
            break;
        for (int i = 0; i < COUNT; i++) {
            now += i == at ? long_ns : 1000 + i % 7;
            iterations_finished(&one, 0, i, now);
            iterations_finished(&one, 1, i, now);
            iterations_finished(&many, 0, i, now);
        }
        iterations_figures(&one, &a);
        iterations_figures(&many, &b);
        bool wide = one.kept.wide && many.kept.wide;
        tap_ok(wide == (at < COUNT - 1) && a.p50 == 1003 && a.p99 == 1006 && b.p50 == a.p50 &&
                   b.p99 == a.p99 && b.mean == a.mean && b.warm_up == a.warm_up,
               "five seconds in iteration %d: mean %g, then %g", at, a.mean, b.mean);
        iterations_fini(&one);
        iterations_fini(&many);
    }
}

static void test_ranks(void)
{
    const int64_t ends[] = {3, 5};
    struct iterations iterations;
    struct iteration_figures figures;
    iterations_init(&iterations, ends, 2, 1, 1);
    for (int64_t i = 0; i < 5; i++)
        iterations_finished(&iterations, 1, i, 10 * (i + 1)); /* far ahead of the other */
    tap_is_int(iterations.over, 0, "an iteration is over when every rank has retired it");
    for (int64_t i = 0; i < 3; i++)
        iterations_finished(&iterations, 0, i, 100 * (i + 1));
    tap_is_int(iterations.over, 5, "a rank without an iteration need not retire it");
    tap_is_int(iterations.first_over_ns, 100, "the first is over with the slower rank");
    iterations_figures(&iterations, &figures);
    tap_is_int(figures.count, 3, "five iterations, the first and the last left out");
    iterations_fini(&iterations);
}

/* The 95% interval holds the true mean, and those of the quantiles the true quantiles, about as often
   as it says: independent durations, and a moving average of them, which are not. */
static void check_coverage(int runs, bool smooth, double least, double most)
{
    enum { LENGTH = 4000, SMOOTH = 3 };
    const int64_t ends[] = {LENGTH};
    const struct dist dist = {.kind = DIST_EXPONENTIAL};
    struct quantile quantile;
    int mean = 0, median = 0, p99 = 0;
    static int64_t ns[LENGTH + RANDOM_RUN];
    if (!quantile_init(&quantile, &dist))
        return;
    for (uint32_t run = 0; run < (uint32_t)runs; run++) {
        struct iterations iterations;
        struct iteration_figures figures;
        int64_t now = 0;
        uint32_t words[RANDOM_RUN];
        for (uint32_t i = 0; i < LENGTH; i += RANDOM_RUN) {
            struct random_subject asked = subject("coverage", i);
            asked.replication = run;
            random_words(&asked, 0, words);
            quantile_durations(&quantile, 1000000, words, RANDOM_RUN, ns + i);
        }
        if (!iterations_init(&iterations, ends, 1, 1, 1))
            break;
        for (int i = 0; i < LENGTH; i++) {
            now += smooth && i >= SMOOTH ? (ns[i] + ns[i - 1] + ns[i - 2]) / SMOOTH : ns[i];
            iterations_finished(&iterations, 0, i, now);
        }
        iterations_figures(&iterations, &figures);
        mean += figures.mean_in.low <= 1e6 && 1e6 <= figures.mean_in.high;
        median += figures.p50_in.low <= log(2) * 1e6 && log(2) * 1e6 <= figures.p50_in.high;
        p99 += figures.p99_in.low <= log(100) * 1e6 && log(100) * 1e6 <= figures.p99_in.high;
        iterations_fini(&iterations);
    }
    quantile_fini(&quantile);
    tap_ok(mean >= least * runs && mean <= most * runs, "%s: 95%% holds the mean in %.2f%% of %d",
           smooth ? "smoothed" : "independent", 100.0 * mean / runs, runs);
    if (smooth)
        return; /* the quantiles' intervals are for independent durations */
    tap_ok(median >= least * runs && median <= most * runs, "and the median in %.2f%%",
           100.0 * median / runs);
    tap_ok(p99 >= least * runs && p99 <= most * runs, "and the 99th percentile in %.2f%%",
           100.0 * p99 / runs);
}

static void test_coverage(void)
{
    bool longer = env_is_long();
    int runs = longer ? 20000 : 2000;
    double band = longer ? 0.01 : 0.02;
    check_coverage(runs, false, 0.95 - band, 0.95 + band);
    check_coverage(runs, true, 0.95 - band, 0.95 + band);
}

/* ---- statistics ------------------------------------------------------------------------------ */

/* A slow start is cut off; nothing is where there is none, nor more than half of what only grows. */
static void test_warm_up(void)
{
    enum { LENGTH = 1000 };
    int64_t values[LENGTH];
    struct random_subject asked = subject("warm-up", 0);
    struct random_stream rng = random_open(&asked);
    for (int i = 0; i < LENGTH; i++)
        values[i] = 1000 + (int64_t)(random_bits(&rng) % 100) + (i < 200 ? 5 * (200 - i) : 0);
    size_t cut = statistics_warm_up((struct durations){values, true}, LENGTH);
    tap_ok(cut >= 150 && cut <= 260, "a start of 200 is cut off at %zu", cut);
    for (int i = 0; i < LENGTH; i++)
        values[i] = 1000 + (int64_t)(random_bits(&rng) % 100);
    cut = statistics_warm_up((struct durations){values, true}, LENGTH);
    tap_ok(cut < LENGTH / 2 - 5, "without a start %zu are", cut);
    for (int i = 0; i < LENGTH; i++)
        values[i] = 1000 * i;
    cut = statistics_warm_up((struct durations){values, true}, LENGTH);
    tap_is_int((long long)cut, LENGTH / 2, "what only grows loses half");
}

static void test_correlation(void)
{
    double means[STATISTICS_BATCHES], other[STATISTICS_BATCHES], mean;
    struct random_subject asked = subject("correlation", 0);
    struct random_stream rng = random_open(&asked);
    int found = 0;
    for (int run = 0; run < 2000; run++) {
        for (int i = 0; i < STATISTICS_BATCHES; i++)
            means[i] = random_normal(&rng);
        found += statistics_correlated(means, STATISTICS_BATCHES);
    }
    tap_ok(found > 5 && found < 45, "independent batches are suspected in %d of 2000", found);
    for (int i = 0; i < STATISTICS_BATCHES; i++)
        means[i] = i + 1000.0;
    tap_ok(statistics_correlated(means, STATISTICS_BATCHES), "a slope is");
    for (int i = 0; i < STATISTICS_BATCHES; i++) {
        means[i] = 1000 * random_normal(&rng);
        other[i] = means[i] + 5 + 0.01 * random_normal(&rng);
    }
    struct interval in = statistics_difference(means, other, STATISTICS_BATCHES, &mean);
    tap_ok(in.low < 5 && in.high > 5 && in.high - in.low < 0.02,
           "a small difference shows under the same random numbers: %.4f .. %.4f", in.low, in.high);
}

int main(void)
{
    test_known_answers();
    test_subjects();
    test_words();
    test_blocks();
    test_distributions();
    test_tables();
    test_events();
    test_retiming();
    test_figures();
    test_long_durations();
    test_ranks();
    test_coverage();
    test_warm_up();
    test_correlation();
    return tap_done();
}
