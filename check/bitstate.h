/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bitstate.h - a search that remembers states by a few bits: it finds violations, it proves nothing.
 *
 * Holzmann's supertrace (An Analysis of Bitstate Hashing, 1998): the visited states are a Bloom
 * filter of fixed size; a new state whose bits are all set by chance is mistaken for an old one and
 * not followed. Depth first, with the path to the current state on a stack, so that each violation
 * comes with its steps. The tree (tree.h) holds no roots here, only the nodes that states share;
 * the filter and the stack alone grow with the number of states.
 *
 * The coverage is an estimate: from the fill of the filter at each insertion follows the probability
 * that the new state would have been missed. States behind a missed one are not counted, so the
 * estimate is an upper bound, which is close while it is near 1.
 */
#ifndef SWSIM_BITSTATE_H
#define SWSIM_BITSTATE_H

#include "budget.h"
#include "search.h"
#include "base/watch.h"

/* Fills in *out as search_run does; never complete. All memory is charged to `budget`. */
enum status bitstate_run(const struct program *program, const struct search_options *options,
                         struct budget *budget, struct search_watch *watch,
                         struct search_result *out);

#endif
