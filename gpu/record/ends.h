/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ends.h - the times between the ends of iterations, in bounded memory.
 *
 * Up to ENDS_MOST ends are kept; of more, every second, fourth, ...: 16 MiB however long a run is. The mean is then
 * that of the ends kept, exact to an iteration at either end, and the order statistics are those of a
 * sample of the times. One thread at a time. Times are nanoseconds.
 */
#ifndef SWSIM_ENDS_H
#define SWSIM_ENDS_H

#include "result.h"

enum { ENDS_MOST = 1 << 20 };

/* All zero: none yet. */
struct ends {
    struct end {
        int64_t at_ns, dur_ns; /* since the end of the iteration before; 0: none was before */
    } * kept;                  /* of iterations 0, every, 2 * every, ... */
    size_t count, cap;
    int64_t every; /* 0: no end yet */
    int64_t total;
    int64_t first_ns, last_ns;
};

/* The next iteration has ended. False: memory is exhausted. */
bool ends_add(struct ends *ends, int64_t at_ns);
/* The steady state: without the first depth + 10% and the last depth iterations, if that leaves two. *out stays
   where there are fewer than two. False: memory is exhausted. */
bool ends_times(const struct ends *ends, int64_t depth, struct runtime_times *out);
void ends_free(struct ends *ends);

#endif
