/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shorten.h - a shorter counterexample, within a budget that all properties of a plan share.
 *
 * The reduced search lets the host run ahead, which makes long stories. A breadth-first search without
 * reduction looks for a shortest one; then the shorter of the two loses what it does not need
 * (minimise.h). The budget counts machine steps, so that the story does not depend on the machine; the
 * clock is the last guard.
 */
#ifndef SWSIM_SHORTEN_H
#define SWSIM_SHORTEN_H

#include "search.h"

struct shorten_budget {
    uint64_t search_steps; /* left for searches */
    int64_t replay_steps;  /* left for trials of parts of a path */
    int64_t until_ns;      /* 0: the clock does not run yet */
};

void shorten_begin(struct shorten_budget *budget);

/* Replace `path`, which ends in a violation of `property`, by another such path that is not longer.
   `search` says what the caller's searches have in common: properties, limits, how to be interrupted
   and whom to tell of a delay. */
enum status shorten_path(const struct program *program, const struct search_options *search,
                         enum property property, struct shorten_budget *budget,
                         struct search_path *path, struct diag *diag);

#endif
