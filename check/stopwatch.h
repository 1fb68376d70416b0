/*
 * stopwatch.h - the time since the start of a search, on the monotonic clock. For reports and limits
 * of time only: no verdict depends on it.
 */
#ifndef SWSIM_STOPWATCH_H
#define SWSIM_STOPWATCH_H

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

#endif
