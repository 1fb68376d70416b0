/* SPDX-License-Identifier: Apache-2.0 */
/*
 * affinity.h - which parts of a state change together.
 *
 * A step changes little of a state, and most of that belongs to one agent: a thread's cells, its
 * row of knowledge, the queue it fills; a stream's items and their rows. The layout of a state
 * groups objects by kind (all threads, all events). Here the leaves of a state are ordered by rank,
 * and within a rank by agent.
 */
#ifndef SWSIM_AFFINITY_H
#define SWSIM_AFFINITY_H

#include "tree.h"

/* Put the leaves of this program's states into order->leaves, leaves of one agent side by side; the
   caller frees it with affinity_free. */
enum status affinity_order(const struct program *program, struct budget *budget,
                           struct tree_order *order);
void affinity_free(struct tree_order *order, struct budget *budget);

#endif
