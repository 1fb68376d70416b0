/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cycle.h - whether a graph of states has an infinite run.
 *
 *     firsts (one a node)       targets (one an edge)
 *     +---+---+---+             +----------------------+
 *     | o | o | o | ----------> | numbers of nodes     |
 *     +---+---+---+             +----------------------+
 *
 * Edges are added node by node, in the order of the nodes. Four bytes a node and four an edge,
 * counted in the budget.
 */
#ifndef SWSIM_CYCLE_H
#define SWSIM_CYCLE_H

#include "chunked.h"

struct edges {
    struct chunked firsts, targets;
    bool turns_back; /* an edge leads to its own node or an earlier one */
};

void edges_open(struct edges *edges, struct budget *budget);
void edges_close(struct edges *edges);

/* The edges added from now on are those of the next node. */
enum status edges_begin(struct edges *edges);
enum status edges_add(struct edges *edges, uint32_t to);

/* Find out whether there is a cycle among `nodes` nodes. */
enum status edges_have_cycle(const struct edges *edges, uint32_t nodes, bool *out);

#endif
