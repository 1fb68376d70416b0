/* SPDX-License-Identifier: Apache-2.0 */
/*
 * known_order.h - which works of a rank are over when another begins, by streams, by their waits, and by the waits of threads.
 *
 * What a thread learns by waiting holds for what it launches later; what one thread tells another is not known.
 */
#ifndef SWSIM_KNOWN_ORDER_H
#define SWSIM_KNOWN_ORDER_H

#include "evidence.h"

struct known_order {
    const struct job_rank *rank;
    int *place;  /* per work: on its stream, from 0 */
    int *over;   /* per work and stream: so many works of the stream are over when it begins */
    int *passed; /* per touch and stream: so many are over for its thread */
};

/* All memory is in `arena`; false without it. */
bool known_order_find(const struct job_rank *rank, const struct evidence *evidence,
                      struct arena *arena, struct known_order *out);

/* True if `before` is over when `after` begins, or is `after`. */
static inline bool known_order_before(const struct known_order *order, int before, int after)
{
    const size_t at = (size_t)after * order->rank->stream_count;
    return before == after ||
           order->place[before] < order->over[at + (size_t)order->rank->works[before].stream];
}

#endif
