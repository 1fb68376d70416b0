/*
 * bitstate.h - a search that remembers states by a few bits: it may find, it cannot prove.
 *
 * Holzmann's supertrace (An Analysis of Bitstate Hashing, 1998): the states seen are a Bloom filter
 * of fixed size; a new state all of whose bits happen to be set is taken for seen, and is not
 * followed. Depth first, with the way to the current state on a stack, so that whatever is found
 * comes with its steps. The tree (tree.h) holds no roots here, only the nodes that states share;
 * the filter and the stack are all that grows with states.
 *
 * The coverage is estimated: each state that came in did so against the chance that it would have
 * been taken for seen, by how full the filter then was. What is behind a state that was left out is
 * not counted, so it is an upper bound, and a good one while it is near 1.
 */
#ifndef SWSIM_BITSTATE_H
#define SWSIM_BITSTATE_H

#include "budget.h"
#include "search.h"
#include "watch.h"

/* Fills in *out as search_run does; never complete. The budget is that of all it allocates. */
enum status bitstate_run(const struct program *program, const struct search_options *options,
                         struct budget *budget, struct search_watch *watch,
                         struct search_result *out);

#endif
