/*
 * minimise.h - a shorter and straighter way to the same violation.
 *
 * The reduced search lets the host run far ahead, so its counterexamples hold much that has
 * nothing to do with the violation. Steps are left out by delta debugging (Zeller, Hildebrandt,
 * "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 28(2), 2002): first the last steps
 * of an agent, then stretches of the path, half of it, a quarter, and so on down to one step.
 * Every attempt is replayed through the machine, where a step that is no longer possible is left
 * out as well; it counts if the violation still ends it. Then steps of one agent are drawn
 * together where they commute, so that the story changes its subject as seldom as it can.
 */
#ifndef SWSIM_MINIMISE_H
#define SWSIM_MINIMISE_H

#include "search.h"

/* Replace `path`, which ends in a violation of `property`, by one that does too and is not longer.
   The effort is bounded in machine steps: a very long path may come out less than minimal. */
enum status minimise_path(const struct program *program, enum property property,
                          struct search_path *path, struct diag *diag);

/* Does replaying `path` end in a violation of `property`, at its last step or in its last state?
   For tests. STATUS_SYSTEM: memory. */
enum status minimise_check(const struct program *program, enum property property,
                           const struct search_path *path, bool *out, struct diag *diag);

#endif
