/* SPDX-License-Identifier: Apache-2.0 */
/*
 * far_clock.h - the broker's time on another machine: a far member's clock follows the broker's during a run.
 *
 * The clocks of two machines differ in rate by some millionths, which is milliseconds in an hour. So a far
 * member keeps asking for the time (Cristian 1989); the fastest answer of a window is the most exact, since
 * its message was delayed least. The correction it asks for is added over the next window:
 *
 *     correction            ,-----o   to
 *         |      ,----o----'      |
 *         |  o--'     |           |   no step, and never steeper than STEEPEST: time goes on, in
 *         '--+--------+-----------+-->   both directions of a correction
 *          window    window      window
 *
 * One thread asks and receives; any thread may read the time. Nanoseconds; CLOCK_MONOTONIC here. Errors: none.
 */
#ifndef SWSIM_FAR_CLOCK_H
#define SWSIM_FAR_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define FAR_CLOCK_WINDOW_NS INT64_C(1000000000)
/* A window changes the correction by so much at most: 500 millionths. */
#define FAR_CLOCK_STEEPEST_NS INT64_C(500000)
/* A replay of a run on several machines allows their clocks to be so far apart: what t_far_clock measures
   over an hour, at 100 millionths and on a busy network, stays below. */
#define FAR_CLOCK_APART_NS INT64_C(500000)

struct far_clock {
    int64_t base_ns; /* time 0 of the broker, as it was known at the beginning */
    /* of the thread that asks */
    int64_t window_ns; /* when this window began; 0: no answer yet */
    int64_t took_ns,
        wanted_ns;      /* of its fastest answer: how long, and the correction it asks for */
    int64_t fastest_ns; /* of all windows; grows a little with each */
    /* the line that is read: under `version`, which is odd while it changes */
    atomic_uint version;
    _Atomic int64_t since_ns, from_ns, to_ns;
};

/* Time 0 of the broker is at base_ns here. */
void far_clock_init(struct far_clock *clock, int64_t base_ns);
/* It was asked and heard then; what was said is nanoseconds since the broker's time 0. */
void far_clock_hear(struct far_clock *clock, int64_t asked_ns, int64_t heard_ns, int64_t said_ns);
/* To be added to `now_ns - base_ns` for the time at the broker. */
int64_t far_clock_correction(const struct far_clock *clock, int64_t now_ns);

#endif
