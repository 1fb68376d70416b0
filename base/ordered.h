/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ordered.h - numbers in order, each with a value: the one that is nearest to another number is found in logarithmic time.
 *
 *     const struct ordered_node *found = ordered_last(&blocks, address);
 *     if (found && address - found->key < sizes[found->value]) ...
 *
 * A treap (Aragon and Seidel, Randomized search trees, 1989): a search tree by key, in which no node has a greater rank than the
 * one above it. The rank is a hash of the node's number, so the depth is logarithmic in the mean whatever the keys are. A map of
 * zeros is empty. Nodes are of an arena, always the same one; a node is good until the next ordered_put or ordered_drop.
 */
#ifndef SWSIM_ORDERED_H
#define SWSIM_ORDERED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"

struct ordered_node {
    uint64_t key;
    size_t value;
    size_t below[2]; /* nodes with lesser keys, with greater ones; 0: there are none */
};

struct ordered {
    struct ordered_node *nodes; /* from 1 on */
    size_t count, cap, root;
    size_t unused; /* a list by below[0] */
};

/* The node with this key; with the greatest key up to this; with the least one from this on. NULL: there is none. */
const struct ordered_node *ordered_find(const struct ordered *map, uint64_t key);
const struct ordered_node *ordered_last(const struct ordered *map, uint64_t key);
const struct ordered_node *ordered_first(const struct ordered *map, uint64_t key);

/* The node with the greatest key below this. */
static inline const struct ordered_node *ordered_before(const struct ordered *map, uint64_t key)
{
    return key > 0 ? ordered_last(map, key - 1) : NULL;
}

/* A key that is there gets another value. False: memory is exhausted, and the map is as it was. */
bool ordered_put(struct ordered *map, struct arena *arena, uint64_t key, size_t value);

/* Nothing happens if the key is not there. */
void ordered_drop(struct ordered *map, uint64_t key);

#endif
