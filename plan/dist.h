/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dist.h - how a duration varies: the text form of a distribution.
 *
 * A distribution is relative to a mean duration: its shape has mean 1 (a spike adds on top). Text:
 *
 *     dist  := shape [ "+" spike ] | spike
 *     shape := constant | uniform(half=0.2) | normal(cv=0.3) | lognormal(cv=0.3) | gamma(cv=0.3)
 *            | exponential | pareto(alpha=2.5) | empirical(0.9, 1.0, 1.3, ...)
 *     spike := spike(p=0.01, add=5ms)          p also as 1%
 *
 * `normal` is truncated at zero. `empirical` lists factors of the mean, each equally likely.
 * Sampling lives in sim/: this file only parses and prints. A struct dist owns nothing: the
 * empirical factors live in the arena given to dist_parse.
 */
#ifndef SWSIM_DIST_H
#define SWSIM_DIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/*            NAME          key           parameter (NULL: none) */
#define DIST_LIST(X)                                                                               \
    X(CONSTANT, "constant", NULL)                                                                  \
    X(UNIFORM, "uniform", "half")                                                                  \
    X(NORMAL, "normal", "cv")                                                                      \
    X(LOGNORMAL, "lognormal", "cv")                                                                \
    X(GAMMA, "gamma", "cv")                                                                        \
    X(EXPONENTIAL, "exponential", NULL)                                                            \
    X(PARETO, "pareto", "alpha")                                                                   \
    X(EMPIRICAL, "empirical", NULL)

enum dist_kind {
#define X(name, key, parameter) DIST_##name,
    DIST_LIST(X)
#undef X
};

enum { DIST_MAX_FACTORS = 65536 };

struct dist {
    enum dist_kind kind;
    double parameter;
    double spike_probability; /* 0: no spikes */
    int64_t spike_add_ns;
    const double *factors; /* EMPIRICAL */
    size_t factor_count;
};

/* Parse `text`. On failure returns NULL-free English in `*what` ("found X, expected Y", in the arena)
   and the byte offset in `*where`, and returns false. */
bool dist_parse(const char *text, struct arena *arena, struct dist *out, const char **what,
                size_t *where);

/* The canonical text; parses back to the same distribution. NULL when memory is exhausted. */
const char *dist_print(const struct dist *dist, struct arena *arena);

#endif
