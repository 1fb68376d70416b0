/* SPDX-License-Identifier: Apache-2.0 */
/*
 * iterations.h - when iterations are over, and what that says about their duration.
 *
 * An iteration is over when its work is finished on the last rank that has it, on CPU and device; its
 * duration is the time since the one before was over. Figures are about the steady state: the last depth iterations, which are
 * the drain, and the warm-up (statistics_warm_up) are left out. Up to ITERATIONS_KEPT durations are
 * kept; of more than that a uniform sample (reservoir) for the quantiles, while mean and interval are
 * of all but the first tenth. Memory does not grow beyond that, except with the number of iterations
 * by which one rank runs ahead of another.
 */
#ifndef SWSIM_ITERATIONS_H
#define SWSIM_ITERATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "random.h"
#include "statistics.h"

enum { ITERATIONS_KEPT = 10 * 1000 * 1000 };

/*            NAME          in words */
#define DOUBT_LIST(X)                                                                              \
    X(NONE, "")                                                                                    \
    X(FEW, "too few iterations for a steady state: all are counted")                               \
    X(SHORT, "too few iterations for an interval to hold what it says")                            \
    X(WARM_UP, "no steady state shows in the first half of the run: make it longer")               \
    X(CORRELATED, "batches of iterations depend on each other: make the run longer")               \
    X(REPLICATIONS, "fewer than 20 replications say little about their spread")

/* Why the interval should not be trusted. */
enum doubt {
#define X(name, words) DOUBT_##name,
    DOUBT_LIST(X)
#undef X
};
const char *doubt_words(enum doubt doubt);

/* Nanoseconds; NAN where there is nothing to say. */
struct iteration_figures {
    double mean, p50, p95, p99;
    struct interval mean_in, p50_in, p95_in, p99_in;
    int64_t count;   /* durations they are about */
    int64_t warm_up; /* durations left out at the beginning */
    enum doubt doubt;
    /* means of equal parts of the run, whatever its warm-up: to be compared with those of another */
    double parts[STATISTICS_BATCHES];
    int part_count;
};

enum { ITERATIONS_TOGETHER = 64 };

struct iterations {
    const int64_t *ends; /* iterations each rank has */
    int ranks;
    int64_t total;       /* of the rank that has most */
    int64_t first, last; /* durations first .. last - 1 are kept */
    int64_t parts_first; /* those of the parts begin here */
    bool few;
    /* iterations some rank has finished and another has not: a ring; cap is a power of two */
    struct pending {
        int64_t time_ns;
        int left;
    } * pending;
    size_t pending_first, pending_count, pending_cap;
    int64_t
        waiting_ns[ITERATIONS_TOGETHER]; /* one rank: when iterations were over, not counted yet */
    int waiting_count;
    int64_t over;                        /* iterations that are over */
    int64_t last_over_ns, first_over_ns; /* first: -1 until there is one */
    struct durations kept; /* with room for wide ones, of which nothing is touched without need */
    size_t kept_count, kept_cap;
    int64_t kept_ns;                /* of all, as long as none has taken the place of another */
    struct random_stream reservoir; /* which durations it keeps */
    int64_t part, part_until; /* of durations up to there: the part they belong to; -1: none */
    int64_t part_ns[STATISTICS_BATCHES];
    int64_t part_count[STATISTICS_BATCHES];
};

/* `ends` must outlive it. false: memory is exhausted (nothing to free). */
bool iterations_init(struct iterations *iterations, const int64_t *ends, int ranks, int depth,
                     uint64_t seed);
void iterations_fini(struct iterations *iterations);

/* A rank has finished iteration `number`, in order. false: memory is exhausted. */
bool iterations_finished(struct iterations *iterations, int rank, int64_t number, int64_t time_ns);

/* Puts what was kept in another order. */
void iterations_figures(struct iterations *iterations, struct iteration_figures *out);

#endif
