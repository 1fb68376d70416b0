/* SPDX-License-Identifier: Apache-2.0 */
/* far_clock.c - see far_clock.h. */
#include "far_clock.h"

/* An answer that took longer than this beyond the fastest so far says too little. */
#define SLOW_NS INT64_C(200000)

void far_clock_init(struct far_clock *clock, int64_t base_ns)
{
    clock->base_ns = base_ns;
    clock->window_ns = 0;
    clock->took_ns = clock->fastest_ns = INT64_MAX;
    atomic_init(&clock->version, 0);
    atomic_init(&clock->since_ns, INT64_MIN / 2);
    atomic_init(&clock->from_ns, 0);
    atomic_init(&clock->to_ns, 0);
}

/* Halfway along the line, or at its end. */
static int64_t on_line(int64_t since_ns, int64_t from_ns, int64_t to_ns, int64_t now_ns)
{
    int64_t gone_ns = now_ns - since_ns;
    if (gone_ns <= 0)
        return from_ns;
    if (gone_ns >= FAR_CLOCK_WINDOW_NS)
        return to_ns;
    return from_ns + (to_ns - from_ns) * gone_ns / FAR_CLOCK_WINDOW_NS;
}

int64_t far_clock_correction(const struct far_clock *clock, int64_t now_ns)
{
    for (;;) {
        unsigned version = atomic_load(&clock->version);
        int64_t since_ns = atomic_load(&clock->since_ns), from_ns = atomic_load(&clock->from_ns),
                to_ns = atomic_load(&clock->to_ns);
        if (version % 2 == 0 && atomic_load(&clock->version) == version)
            return on_line(since_ns, from_ns, to_ns, now_ns);
    }
}

/* From where the correction is now towards what is wanted. */
static void bend(struct far_clock *clock, int64_t now_ns)
{
    int64_t from_ns = far_clock_correction(clock, now_ns);
    int64_t step_ns = clock->wanted_ns - from_ns;
    if (step_ns > FAR_CLOCK_STEEPEST_NS)
        step_ns = FAR_CLOCK_STEEPEST_NS;
    if (step_ns < -FAR_CLOCK_STEEPEST_NS)
        step_ns = -FAR_CLOCK_STEEPEST_NS;
    atomic_fetch_add(&clock->version, 1);
    atomic_store(&clock->since_ns, now_ns);
    atomic_store(&clock->from_ns, from_ns);
    atomic_store(&clock->to_ns, from_ns + step_ns);
    atomic_fetch_add(&clock->version, 1);
}

void far_clock_hear(struct far_clock *clock, int64_t asked_ns, int64_t heard_ns, int64_t said_ns)
{
    int64_t took_ns = heard_ns - asked_ns;
    if (took_ns < 0 || took_ns > FAR_CLOCK_WINDOW_NS)
        return;
    if (clock->window_ns == 0)
        clock->window_ns = heard_ns;
    if (took_ns < clock->took_ns) {
        clock->took_ns = took_ns;
        clock->wanted_ns = said_ns - (asked_ns + took_ns / 2 - clock->base_ns);
    }
    if (heard_ns - clock->window_ns < FAR_CLOCK_WINDOW_NS)
        return;
    if (clock->took_ns < clock->fastest_ns)
        clock->fastest_ns = clock->took_ns;
    if (clock->took_ns - clock->fastest_ns <= SLOW_NS)
        bend(clock, heard_ns);
    else
        clock->fastest_ns += SLOW_NS / 8; /* the way may have become longer for good */
    clock->window_ns = heard_ns;
    clock->took_ns = INT64_MAX;
}
