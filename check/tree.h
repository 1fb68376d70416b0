/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.h - a state as a pair of numbers: recursive compression of states.
 *
 *     root            a pair of 32-bit numbers, one 64-bit word
 *                      |                 |
 *     nodes           [8 numbers]       [8 numbers]        each interned: equal nodes, one number
 *                      |   |  ...
 *     nodes           [8 numbers] ...
 *                      |
 *     leaves          [64 bytes of the state]              interned too
 *
 * Equal states have equal roots, and different states different ones: the tree is exact. A step
 * changes few of the leaves, so a successor is stored by looking up those and the nodes above
 * them, and two states that differ little share almost everything. A state costs little more than
 * its root. (Laarman, van de Pol, Weber: Parallel Recursive State Compression for Free,
 * SPIN 2011; Laarman: Optimal Compression of Combinatorial State Vectors, 2019. They use binary
 * trees and keep roots and nodes in one table; wide nodes are fewer to look up, and a table of
 * roots of their own gives states dense numbers.)
 *
 * A tree is good when each half takes few values, far fewer than there are states: then states are
 * many because the halves combine. The caller chooses the order and the halves of the leaves
 * (leaves.h). Number 0 is a leaf of zeros and a node of zeros.
 *
 * The tree is shared by all threads of a search; each has a cursor of its own. Memory comes from
 * the budget; a failure leaves tree and cursor usable.
 */
#ifndef SWSIM_TREE_H
#define SWSIM_TREE_H

#include "intern.h"
#include "machine/machine.h"

enum { TREE_LEAF_WORDS = 8, TREE_FANOUT = 8, TREE_NODE_WORDS = TREE_FANOUT / 2 };
enum { TREE_LEAF_BYTES = TREE_LEAF_WORDS * 8 };

/* The leaves of a state in the order in which they hang, and how many of them in the first half.
   `ranked`: in each half the leaves that change most often come first, and hang highest. */
struct tree_order {
    uint32_t *leaves;
    size_t count, first_half;
    bool ranked;
};

struct tree {
    const struct program *program;
    struct budget *budget;
    size_t leaf_count, node_count;
    /* Nodes 0 and 1 are the halves; every other has a larger number than the one above it. Number
       k of node n is slot FANOUT n + k. */
    uint32_t *leaf_slot; /* of each leaf, by its place in a state: the slot of its number */
    uint32_t *node_slot; /* of each node but 0 and 1 */
    int32_t *below;      /* of each slot: a leaf, or -n: node n; TREE_NOTHING */
    struct intern leaves, nodes;
};
enum { TREE_NOTHING = INT32_MAX };

static inline size_t tree_leaves(const struct program *program)
{
    return (program->at.bytes + TREE_LEAF_BYTES - 1) / TREE_LEAF_BYTES;
}

/* `order` is not kept. `shared`: several threads use the tree. */
enum status tree_open(struct tree *tree, const struct program *program,
                      const struct tree_order *order, bool shared, struct budget *budget);
/* Also after a failed open. */
void tree_close(struct tree *tree);

/* A position in the tree: its state, and a second state to work on. */
struct cursor {
    struct tree *tree;
    struct state node, work;
    uint32_t *numbers; /* one a slot: the nodes of `node` */
    uint32_t half[2];
    uint64_t *differs;         /* a bit a leaf */
    uint64_t *dirty;           /* a bit a node */
    struct cursor_change *log; /* changes to be undone */
    size_t log_count;
};

enum status cursor_open(struct cursor *cursor, struct tree *tree);
void cursor_close(struct cursor *cursor);

/* Make `node` and `work` the state with this root. Fast if it is similar to the last one. */
void cursor_load(struct cursor *cursor, uint64_t root);

/* The root of `work`; afterwards, also on failure, `work` is equal to `node` again. */
enum status cursor_store(struct cursor *cursor, uint64_t *root);
/* Make `work` equal to `node`. */
void cursor_restore(struct cursor *cursor);

#endif
