/*
 * divide.h - which leaves of a state go into which half of its tree, learned from states.
 *
 * The number of values that a half takes is what the tree costs beyond the roots. It cannot be
 * known before, but it can be estimated: if two states drawn at random agree in a half with
 * probability c, the half takes about 1/c values, as far as they are equally frequent. So of a
 * sample, the pairs are counted that agree in each half; and leaves are moved from one half to the
 * other as long as that makes the sum of the two estimates smaller.
 */
#ifndef SWSIM_DIVIDE_H
#define SWSIM_DIVIDE_H

#include "states.h"
#include "tree.h"

/* Divide `order` anew, after the `states` of `tree` so far, and rank the leaves of each half by how
   often a step changes them. On failure the order is what it was. */
enum status divide_leaves(struct tree *tree, const struct states *states, struct tree_order *order);

#endif
