/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leaves.h - the order of a state's leaves in its tree: by agent at first, then improved by a sample of states.
 *
 * A step changes little of a state, and most of that belongs to one agent: a thread's cells, its
 * row of knowledge, the queue it fills; a stream's items and their rows. The layout of a state
 * groups objects by kind (all threads, all events). Here the leaves of a state are ordered by rank,
 * and within a rank by agent.
 *
 * The cost of a tree beyond its roots is the number of values of its halves. It is not known before
 * the search, but it can be estimated: if two states drawn at random agree in a half with probability
 * c, the half takes about 1/c values, as far as they are equally frequent. So the pairs of a sample
 * that agree in each half are counted, and leaves are moved between the halves as long as the sum of
 * the two estimates decreases.
 */
#ifndef SWSIM_LEAVES_H
#define SWSIM_LEAVES_H

#include "states.h"
#include "tree.h"

/* Put the leaves of this program's states into order->leaves, leaves of one agent side by side; the
   caller frees it with leaves_free. */
enum status leaves_by_agent(const struct program *program, struct budget *budget,
                            struct tree_order *order);
void leaves_free(struct tree_order *order, struct budget *budget);

/* Divide `order` anew, after the `states` of `tree` so far, and rank the leaves of each half by how
   often a step changes them. A failure leaves the order as it was. */
enum status leaves_divide(struct tree *tree, const struct states *states, struct tree_order *order);

#endif
