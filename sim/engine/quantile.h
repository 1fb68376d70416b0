/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantile.h - the inverse of a distribution's cumulative function, as a table of cubics.
 *
 * A duration is drawn by inversion: one random word becomes one factor, whatever the shape. The first bit
 * of a word chooses a tail; the others, as a floating point number, are a place in it. So the octave of
 * the tail's probability (each is half as likely as the one before), one of SUBS equal parts of the octave
 * and what is left are the bits of that number, and a row of the table is found by a shift:
 *
 *     word      | half | place                |      p = place / 2^32, of the lower or of the upper tail
 *     place     | exponent: octave | sub | rest |    x = 1.rest
 *
 * There a cubic in x, 1 <= x < 2, is the quantile to more than six digits. So what is rare costs no more
 * than what is common, and the far tails keep their shape (Cheung, Lee, Luk, Villasenor 2007).
 *
 * 32 bits are enough for words that are not deep in a tail, all but one in 16384; those deeper get 32 more,
 * so that one draw in 2^53 can be as rare as that. Empirical distributions need no table. A quantile owns
 * its table; the distribution must outlive it.
 */
#ifndef SWSIM_QUANTILE_H
#define SWSIM_QUANTILE_H

#include "plan/dist.h"

enum {
    QUANTILE_OCTAVES = 52, /* the last one takes the rest */
    QUANTILE_SUB_BITS = 4,
    QUANTILE_SUBS = 1 << QUANTILE_SUB_BITS,
    QUANTILE_HALF_BITS = 10, /* a half has a place for each of 2^10 cubics; not all are used */
    QUANTILE_DEEP_BITS = 14  /* a word is deep if so many bits behind the first are zero */
};

/* Longest duration that is drawn, about 26 days: heavier tails are cut there. */
#define QUANTILE_LONGEST_NS (INT64_C(1) << 51)

struct quantile {
    const struct dist *dist;
    float (*cubics)[4]; /* by half, octave and sub; NULL: constant or empirical */
};

/* false: memory is exhausted. */
bool quantile_init(struct quantile *quantile, const struct dist *dist);
void quantile_fini(struct quantile *quantile);

/* The quantile itself: of probability p from below, or from above, 0 < p <= 1/2. Slow. */
double quantile_exact(const struct dist *dist, double p, bool from_above);

static inline bool quantile_is_deep(uint32_t word)
{
    return (word & UINT32_MAX >> 1) >> (31 - QUANTILE_DEEP_BITS) == 0;
}

/*
 * The durations `count` words stand for: mean_ns times the factor, rounded to a nanosecond, at most
 * QUANTILE_LONGEST_NS. The same to the bit whatever the count, the compiler and the processor. Returns
 * whether any word is deep: its duration is to be replaced by that of the word and 32 more bits.
 */
bool quantile_durations(const struct quantile *quantile, int64_t mean_ns, const uint32_t *words,
                        int count, int64_t *out_ns);
int64_t quantile_deep_duration(const struct quantile *quantile, int64_t mean_ns, uint64_t word);

#endif
