/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stopwatch.h - the time since the start of a search, on the monotonic clock. For reports and limits
 * of time only: no verdict depends on it.
 */
#ifndef SWSIM_STOPWATCH_H
#define SWSIM_STOPWATCH_H

#include <stdint.h>
#include <time.h>

static inline struct timespec stopwatch_start(void)
{
    struct timespec start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    return start;
}

static inline double stopwatch_seconds(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) * 1e-9;
}

/* The time itself, for points of time that several searches share. */
static inline int64_t stopwatch_now_ns(void)
{
    struct timespec now = stopwatch_start();
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The point of time so long from now; 0: none, for no limit and for one that no process lives to see. */
static inline int64_t stopwatch_until(int64_t limit_ns)
{
    return limit_ns == 0 || limit_ns > INT64_MAX / 2 ? 0 : stopwatch_now_ns() + limit_ns;
}

/* The earlier of two points of time; 0 is none. */
static inline int64_t stopwatch_earlier(int64_t a_ns, int64_t b_ns)
{
    return a_ns && (!b_ns || a_ns < b_ns) ? a_ns : b_ns;
}

#endif
