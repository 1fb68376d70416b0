/* SPDX-License-Identifier: Apache-2.0 */
/*
 * states.h - the states found so far: exact, by dense numbers, each with its parent and step.
 *
 *     roots (intern)     parents      steps
 *     +------------+     +-------+    +------+      one entry a state, by its number; states are
 *     | 64 bits    |     | 32 b  |    | 16 b |      numbered in the order of insertion, so they
 *     +------------+     +-------+    +------+      are also the queue of a breadth-first search
 *
 * A state is given by its root in a tree (tree.h). With the index of the roots that is 19 to 22
 * bytes a state, the nodes of the tree not counted. Steps that do not fit into 16 bits are kept in
 * another table. One thread at a time may insert; others may read states inserted before.
 */
#ifndef SWSIM_STATES_H
#define SWSIM_STATES_H

#include "intern.h"
#include "machine/machine.h"

enum { STATES_NONE = UINT32_MAX }; /* the parent of the initial state */

struct states {
    struct intern roots;
    struct chunked parents, steps, wide_steps;
    uint32_t agents; /* of the program */
};

enum status states_open(struct states *states, const struct program *program,
                        struct budget *budget);
/* Also after a failed open. */
void states_close(struct states *states);

/* *id: the number of this state; *is_new: it was inserted, reached from `parent` by `by`.
   STATUS_LIMIT, STATUS_SYSTEM: it is new, and there is no room for it. */
enum status states_insert(struct states *states, uint64_t root, uint32_t parent,
                          struct transition by, uint32_t *id, bool *is_new);

static inline void states_prefetch(const struct states *states, uint64_t root)
{
    intern_prefetch(&states->roots, &root, 1);
}

static inline uint32_t states_count(const struct states *states)
{
    return intern_count(&states->roots);
}

static inline uint64_t states_root(const struct states *states, uint32_t id)
{
    return *intern_value(&states->roots, id, 1);
}

uint32_t states_parent(const struct states *states, uint32_t id);
struct transition states_step(const struct states *states, uint32_t id);

#endif
