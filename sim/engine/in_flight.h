/* SPDX-License-Identifier: Apache-2.0 */
/*
 * in_flight.h - what is in flight over time: a step function kept in bounded memory.
 *
 *     points   0: 1 iteration   400: 2   900: 1   1000: 2   ...
 *
 * Every change is a point while there is room. When there is none, neighbours are merged two by two,
 * with the time of the earlier and the most of both, and from then on a point stands for twice as many
 * changes: peaks stay, valleys between them may go.
 */
#ifndef SWSIM_IN_FLIGHT_H
#define SWSIM_IN_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

enum { IN_FLIGHT_POINTS = 200 };

/* From `time_ns` until the next point. */
struct in_flight_point {
    int64_t time_ns;
    int64_t iterations; /* host programs: 0 */
    int64_t bytes;
};

/* Zeroed: nothing is known yet. */
struct in_flight {
    struct in_flight_point points[IN_FLIGHT_POINTS];
    int count;
    int64_t merged; /* changes a full point stands for; 0: 1 */
    int64_t last;   /* changes in the last point */
};

/* From now on so much is in flight; times do not fall. While every
   change is a point, of those at one time the last one counts, and none that is no change after all. */
void in_flight_change(struct in_flight *in_flight, const struct in_flight_point *now);

/* True if one iteration that goes and one that comes at the same time would leave everything as it is. It does while
   every change is a point. */
bool in_flight_exchange_is_free(const struct in_flight *in_flight);

#endif
