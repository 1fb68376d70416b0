/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random_draw.h - draws for generators of plans: each is a function of a seed and a counter, so that
 * a seed gives the same plan on every machine.
 */
#ifndef SWSIM_RANDOM_DRAW_H
#define SWSIM_RANDOM_DRAW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/hash.h"

struct random {
    uint64_t seed, count;
    FILE *out; /* the plan's text */
};

/* From 0 to limit - 1. */
static inline int below(struct random *random, int limit)
{
    return (int)(hash_mix(random->seed + UINT64_C(0x9e3779b97f4a7c15) * ++random->count) %
                 (uint64_t)limit);
}

/* True once in `n`. */
static inline bool rarely(struct random *random, int n)
{
    return below(random, n) == 0;
}

static inline const char *one_of(struct random *random, const char *const *words, int count)
{
    return words[below(random, count)];
}

#endif
