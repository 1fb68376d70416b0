/*
 * watch.h - has a search been asked to end: by its time limit, or by a person?
 *
 * Every thread asks between two pieces of work, and now and then within a long one. The first to see
 * that it is over says so to all. Header only.
 */
#ifndef SWSIM_WATCH_H
#define SWSIM_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "stopwatch.h"

struct search_watch {
    struct timespec start;
    int64_t time_ns;                /* 0: no limit */
    const atomic_bool *interrupted; /* NULL: nobody can */
    atomic_bool over;
};

static inline bool watch_interrupted(const struct search_watch *watch)
{
    return watch->interrupted && atomic_load_explicit(watch->interrupted, memory_order_relaxed);
}

/* Cheap: what is known already. */
static inline bool watch_over(const struct search_watch *watch)
{
    return atomic_load_explicit(&watch->over, memory_order_relaxed);
}

/* Looks at the clock. */
static inline bool watch_look(struct search_watch *watch)
{
    if (watch_interrupted(watch) ||
        (watch->time_ns && stopwatch_seconds(&watch->start) * 1e9 > (double)watch->time_ns))
        atomic_store_explicit(&watch->over, true, memory_order_relaxed);
    return watch_over(watch);
}

#endif
