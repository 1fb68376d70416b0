/* SPDX-License-Identifier: Apache-2.0 */
/*
 * divide.h - which leaves of a state go into which half of its tree, learned from states.
 *
 * The cost of a tree beyond its roots is the number of values of its halves. It is not known before
 * the search, but it can be estimated: if two states drawn at random agree in a half with probability
 * c, the half takes about 1/c values, as far as they are equally frequent. So the pairs of a sample
 * that agree in each half are counted, and leaves are moved between the halves as long as the sum of
 * the two estimates decreases.
 */
#ifndef SWSIM_DIVIDE_H
#define SWSIM_DIVIDE_H

#include "states.h"
#include "tree.h"

/* Divide `order` anew, after the `states` of `tree` so far, and rank the leaves of each half by how
   often a step changes them. A failure leaves the order as it was. */
enum status divide_leaves(struct tree *tree, const struct states *states, struct tree_order *order);

#endif
