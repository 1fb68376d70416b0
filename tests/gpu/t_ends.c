/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_ends.c - the times between ends of iterations: of few all are kept; of many a sample is, and memory is bounded.
 */
#include <math.h>
#include <stdlib.h>

#include "gpu/record/ends.h"
#include "tests/tap.h"

/* Times of 1,000 to 1,099 ns in a repeating order without a period that is a power of two. */
static int64_t dur_ns(int64_t iteration)
{
    return 1000 + iteration * 37 % 101 % 100;
}

static struct runtime_times times_of(int64_t count, struct ends *ends)
{
    struct runtime_times times = {0};
    int64_t at_ns = 5000;
    bool kept = true;
    for (int64_t i = 0; i < count; i++) {
        kept = kept && ends_add(ends, at_ns);
        at_ns += dur_ns(i);
    }
    kept = kept && ends_times(ends, 3, &times);
    tap_ok(kept && ends->total == count, "%lld ends", (long long)count);
    return times;
}

static void test_few(void)
{
    struct ends ends = {0};
    struct runtime_times none = times_of(1, &ends);
    tap_ok(none.mean_ns == 0, "one end has no time between ends");
    ends_free(&ends);
    struct runtime_times two = times_of(2, &ends);
    tap_ok(two.mean_ns == 1000 && two.p50_ns == 1000 && two.p99_ns == 1000, "two have one");
    ends_free(&ends);
    struct runtime_times ten = times_of(10, &ends);
    double sum = 0;
    for (int i = 4; i < 7; i++)
        sum += (double)dur_ns(i);
    tap_ok(fabs(ten.mean_ns - sum / 3) < 1e-9, "of ten, those of the steady state count");
    tap_ok(ends.first_ns == 5000 && ends.every == 1, "all are kept");
    ends_free(&ends);
}

static void test_many(void)
{
    struct ends ends = {0}, all = {0};
    struct runtime_times many = times_of(5 * (int64_t)ENDS_MOST / 2, &ends);
    struct runtime_times few = times_of(101 * 1000, &all);
    tap_ok(ends.every == 4 && ends.count <= ENDS_MOST && ends.cap <= ENDS_MOST,
           "of many every fourth is kept, and no more than so many (%zu)", ends.cap);
    tap_ok(fabs(many.mean_ns - few.mean_ns) < 0.1, "the mean is the same: %g and %g", many.mean_ns,
           few.mean_ns);
    tap_ok(fabs(many.p50_ns - few.p50_ns) <= 1 && fabs(many.p95_ns - few.p95_ns) <= 1 &&
               fabs(many.p99_ns - few.p99_ns) <= 1,
           "and so are the order statistics");
    ends_free(&ends);
    ends_free(&all);
}

int main(void)
{
    test_few();
    test_many();
    return tap_done();
}
