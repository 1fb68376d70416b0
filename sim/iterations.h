/*
 * iterations.h - when iterations retire, and what that says about their duration.
 *
 * An iteration is over when the last rank that has it retires it; its duration is the time since
 * the one before was over. Statistics are about the steady state: the first depth + 10% and the
 * last depth iterations are left out; where that leaves less than two durations, all are taken and
 * `steady` is false. Up to ITERATIONS_KEPT durations are kept for the quantiles, of more than that
 * a uniform sample (reservoir); mean and confidence interval always use all. Memory does not grow
 * beyond that, except with the number of iterations by which one rank runs ahead of another.
 */
#ifndef SWSIM_ITERATIONS_H
#define SWSIM_ITERATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/random.h"

enum { ITERATIONS_KEPT = 10 * 1000 * 1000, ITERATIONS_BATCHES = 20 };

/* Nanoseconds; NAN where there is nothing to say. */
struct iteration_figures {
    double mean, p50, p95, p99;
    double ci_low, ci_high; /* 95%, of the mean */
    int64_t count;          /* durations they are about */
    bool steady;
};

struct iterations {
    const int64_t *ends; /* iterations each rank has */
    int ranks;
    int64_t total;       /* of the rank that has most */
    int64_t first, last; /* durations first .. last - 1 count */
    bool steady;
    /* iterations some rank has retired and another has not: a ring */
    struct pending {
        int64_t time_ns;
        int left;
    } * pending;
    size_t pending_first, pending_count, pending_cap;
    int64_t over;                        /* iterations that are over */
    int64_t last_over_ns, first_over_ns; /* first: -1 until there is one */
    int64_t *kept;
    size_t kept_count, kept_cap;
    struct random_stream luck; /* of the reservoir */
    double batch_ns[ITERATIONS_BATCHES];
    int64_t batch_count[ITERATIONS_BATCHES];
};

/* `ends` must outlive it. false: memory is exhausted (nothing to free). */
bool iterations_init(struct iterations *iterations, const int64_t *ends, int ranks, int depth,
                     uint64_t seed);
void iterations_fini(struct iterations *iterations);

/* A rank has retired iteration `number`, in order. false: memory is exhausted. */
bool iterations_retired(struct iterations *iterations, int rank, int64_t number, int64_t time_ns);

/* The next `count` iterations are over, on all ranks, at these times. */
void iterations_over(struct iterations *iterations, const int64_t *times_ns, int count);

/* Puts what was kept in another order. */
void iterations_figures(struct iterations *iterations, struct iteration_figures *out);

/* Half the width of the 95% confidence interval of the mean of `count` values; NAN below two. */
double iterations_half_width(const double *values, int count);

#endif
