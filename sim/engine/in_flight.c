/* SPDX-License-Identifier: Apache-2.0 */
/* in_flight.c - see in_flight.h. */
#include "in_flight.h"

#include <assert.h>

#include "base/sort.h"

static void raise_to(struct in_flight_point *point, const struct in_flight_point *other)
{
    point->iterations = max_i64(point->iterations, other->iterations);
    point->bytes = max_i64(point->bytes, other->bytes);
}

/* Two by two; their number is even. */
static void merge(struct in_flight *in_flight)
{
    struct in_flight_point *points = in_flight->points;
    for (int i = 0; i < in_flight->count / 2; i++) {
        points[i] = points[2 * i];
        raise_to(&points[i], &points[2 * i + 1]);
        assert(i == 0 || points[i - 1].time_ns <= points[i].time_ns);
    }
    in_flight->count /= 2;
    in_flight->merged *= 2;
    in_flight->last = in_flight->merged;
}

void in_flight_change(struct in_flight *in_flight, const struct in_flight_point *now)
{
    struct in_flight_point *last = &in_flight->points[in_flight->count ? in_flight->count - 1 : 0];
    if (in_flight->merged == 0)
        in_flight->merged = 1;
    assert(in_flight->count == 0 || now->time_ns >= last->time_ns);
    if (in_flight->count && in_flight->merged == 1 && last->time_ns == now->time_ns) {
        *last = *now;
        if (in_flight->count > 1 && last[-1].iterations == now->iterations &&
            last[-1].bytes == now->bytes)
            in_flight->count--; /* one has gone and another has come */
        return;
    }
    if (in_flight->count && in_flight->last < in_flight->merged) {
        raise_to(last, now);
        in_flight->last++;
        return;
    }
    if (in_flight->count == IN_FLIGHT_POINTS)
        merge(in_flight);
    in_flight->points[in_flight->count++] = *now;
    in_flight->last = 1;
}

bool in_flight_exchange_is_free(const struct in_flight *in_flight)
{
    return in_flight->merged == 1 && in_flight->count < IN_FLIGHT_POINTS;
}
