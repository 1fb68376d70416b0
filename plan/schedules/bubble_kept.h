/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bubble_kept.h - the orders that were found last in this process, by the problem they solve.
 *
 * A verb makes the lists of its plan several times, and a search takes longer than most proofs. Kept are copies, a
 * few, the oldest replaced; where memory is short nothing is kept, and the search is made again. Any thread may call.
 */
#ifndef SWSIM_BUBBLE_KEPT_H
#define SWSIM_BUBBLE_KEPT_H

#include "bubble.h"

/* The answer of bubble_search for the same problem, the lists copied to `arena`. False: it is not known, or there is no
   memory for the copy. `known`: as for bubble_search, where the problem says what the lists are. */
bool bubble_kept_find(const struct bubble_problem *problem, bool known, struct arena *arena,
                      struct rank_program **ranks, struct bubble_figures *figures);
void bubble_kept_add(const struct bubble_problem *problem, bool known,
                     const struct rank_program *ranks, const struct bubble_figures *figures);

#endif
