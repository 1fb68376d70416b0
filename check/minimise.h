/* SPDX-License-Identifier: Apache-2.0 */
/*
 * minimise.h - a shorter and straighter path to the same violation.
 *
 * The reduced search lets the host run far ahead, so its counterexamples contain many steps that
 * the violation does not need. They are left out by delta debugging (Zeller, Hildebrandt,
 * "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 28(2), 2002): first the last steps
 * of an agent, then stretches of the path, half of it, a quarter, and so on down to one step.
 * Every attempt is replayed through the machine, and steps that are no longer enabled are left out
 * as well; the attempt succeeds if it still ends in the violation. Then steps of one agent are drawn
 * together where they commute, so that the story changes its subject as seldom as possible.
 */
#ifndef SWSIM_MINIMISE_H
#define SWSIM_MINIMISE_H

#include "search.h"
#include "watch.h"

/* Replace `path`, which ends in a violation of `property`, by another such path that is not longer.
   It takes at most *effort machine steps, counted down, and ends when `watch` says so; so a very
   long path may not become minimal. */
enum status minimise_path(const struct program *program, enum property property, int64_t *effort,
                          struct search_watch *watch, struct search_path *path, struct diag *diag);

/* Does replaying `path` end in a violation of `property`, at its last step or in its last state?
   For tests. STATUS_SYSTEM: memory. */
enum status minimise_check(const struct program *program, enum property property,
                           const struct search_path *path, bool *out, struct diag *diag);

#endif
