/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bubble_search.h - schedules with split backwards, found from costs and a memory limit.
 *
 * Candidates of three kinds are tried: leads (one stage a rank: how many forwards a rank is ahead), repeated blocks (two
 * stages a rank in V shape) and an order that the caller knows. The best is then changed step by step while that
 * helps. The same problem gives the same order on every machine: the amount of work is limited, not the time.
 * Sources: Qi et al. 2023 (zero bubble) and 2024 (controllable memory: V-Min, V-Half, V-ZB are repeated blocks).
 */
#ifndef SWSIM_BUBBLE_SEARCH_H
#define SWSIM_BUBBLE_SEARCH_H

#include "bubble.h"

/* Per rank the passes, W included, in `arena`. `known`: lists to begin with, whose W are left out; NULL: none.
   STATUS_OK with *ranks NULL: no candidate keeps within the memory. STATUS_SYSTEM: out of memory, not described. */
enum status bubble_search(const struct bubble_problem *problem, const struct rank_program *known,
                          struct arena *arena, struct rank_program **ranks,
                          struct bubble_figures *figures);

#endif
