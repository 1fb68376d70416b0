/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.h - whether long work has been told to end, by its time limit or by an interrupt.
 *
 * Every thread of a search asks between nodes, and now and then within a long chain of steps; so does
 * other work that can last. The first thread that sees the end tells all others. Header only.
 */
#ifndef SWSIM_WATCH_H
#define SWSIM_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "stopwatch.h"

struct search_watch {
    struct timespec start;          /* for reports */
    int64_t until_ns;               /* stopwatch_now_ns; 0: no limit */
    const atomic_bool *interrupted; /* NULL: never */
    atomic_bool over;
};

static inline bool watch_interrupted(const struct search_watch *watch)
{
    return watch->interrupted && atomic_load_explicit(watch->interrupted, memory_order_relaxed);
}

/* Cheap: does not read the clock. */
static inline bool watch_over(const struct search_watch *watch)
{
    return atomic_load_explicit(&watch->over, memory_order_relaxed);
}

/* Reads the clock and asks for the interrupt. */
static inline bool watch_own_watch_look(struct search_watch *watch)
{
    if (watch_interrupted(watch) || (watch->until_ns && stopwatch_now_ns() > watch->until_ns))
        atomic_store_explicit(&watch->over, true, memory_order_relaxed);
    return watch_over(watch);
}

#endif
