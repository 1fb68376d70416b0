/*
 * quantile.h - the inverse of a distribution's cumulative function, as a table of cubics.
 *
 * A duration is drawn by inversion: one random word becomes one factor, whatever the shape. The word
 * chooses a tail (its first bit), an octave of the tail's probability (the zeros that follow: each
 * octave is half as likely as the one before) and one of SUBS equal parts of the octave; there a
 * cubic in the position x, 1 <= x < 2, is the quantile to about seven digits:
 *
 *     word      | half |  0 0 0 1 | sub | rest |      x = 1.sub rest
 *     p         x * 2^-(octave + 2), of the lower or of the upper tail
 *
 * So what is rare costs no more than what is common, and the far tails keep their shape (Cheung, Lee,
 * Luk, Villasenor 2007). Empirical distributions need no table. A quantile owns its table; the
 * distribution must outlive it.
 */
#ifndef SWSIM_QUANTILE_H
#define SWSIM_QUANTILE_H

#include "core/dist.h"

enum {
    QUANTILE_OCTAVES = 52,
    QUANTILE_SUB_BITS = 4,
    QUANTILE_SUBS = 1 << QUANTILE_SUB_BITS,
    QUANTILE_HALF_BITS = 10, /* a half has a place for each of 2^10 cubics; not all are used */
};

/* Longest duration that is drawn, about 26 days: heavier tails are cut there. */
#define QUANTILE_LONGEST_NS (INT64_C(1) << 51)

struct quantile {
    const struct dist *dist;
    double (*cubics)[4]; /* by half, octave and sub; NULL: constant or empirical */
};

/* false: memory is exhausted. */
bool quantile_init(struct quantile *quantile, const struct dist *dist);
void quantile_fini(struct quantile *quantile);

/* The quantile itself: of probability p from below, or from above, 0 < p <= 1/2. Slow. */
double quantile_exact(const struct dist *dist, double p, bool from_above);

/*
 * The durations `count` words stand for: mean_ns times the factor, rounded to a nanosecond, at most
 * QUANTILE_LONGEST_NS. The same to the bit whatever the count, the compiler and the processor.
 */
void quantile_durations(const struct quantile *quantile, int64_t mean_ns, const uint64_t *words,
                        int count, int64_t *out_ns);

#endif
