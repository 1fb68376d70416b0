/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shorten.h - a shorter counterexample, within a budget that all properties of a plan share.
 *
 * The reduced search lets the host run far ahead, so its counterexamples contain many steps that
 * the violation does not need. They are left out by delta debugging (Zeller, Hildebrandt,
 * "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 28(2), 2002): first the last steps
 * of an agent, then stretches of the path, half of it, a quarter, and so on down to one step.
 * Every attempt is replayed through the machine, and steps that are no longer enabled are left out
 * as well; the attempt succeeds if it still ends in the violation. Then steps of one agent are drawn
 * together where they commute, so that the story changes its subject as seldom as possible.
 *
 * A breadth-first search without reduction looks for a shortest path first; then the shorter of the two loses what it does
 * not need. The budget counts machine steps, so that the story does not depend on the machine; the clock is the last guard.
 */
#ifndef SWSIM_SHORTEN_H
#define SWSIM_SHORTEN_H

#include "search.h"
#include "base/watch.h"

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

/* Replace `path`, which ends in a violation of `property`, by another such path that is not longer.
   It takes at most *effort machine steps, counted down, and ends when `watch` says so; so a very
   long path may not become minimal. */
enum status minimise_path(const struct program *program, enum property property, int64_t *effort,
                          struct search_watch *watch, struct search_path *path, struct diag *diag);

/* *out: a replay of `path` ends in a violation of `property`, at its last step or in its last state.
   For tests. STATUS_SYSTEM: memory. */
enum status minimise_check(const struct program *program, enum property property,
                           const struct search_path *path, bool *out, struct diag *diag);

#endif
