/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks.h - host programs as equal groups of ranks, of which there could be more.
 *
 * A rank, a tensor-parallel group or a pipeline is a block if it meets the others in communicators only, and in these all blocks
 * have the same places. Which ranks are a block follows from the communicators: the smallest ones are taken.
 */
#ifndef SWSIM_BLOCKS_H
#define SWSIM_BLOCKS_H

#include "plan.h"

struct blocks {
    int size, count;    /* ranks of a block; blocks */
    bool strided;       /* a block has every count-th rank, else neighbours */
    unsigned char *met; /* [ranks of the plan], zeros: blocks_exchange */
};

static inline int blocks_of(const struct blocks *blocks, int rank)
{
    return blocks->strided ? rank % blocks->count : rank / blocks->size;
}
static inline int blocks_place(const struct blocks *blocks, int rank)
{
    return blocks->strided ? rank / blocks->count : rank % blocks->size;
}
/* The rank at a place of a block. */
static inline int blocks_rank(const struct blocks *blocks, int block, int place)
{
    return blocks->strided ? place * blocks->count + block : block * blocks->size + place;
}

/* True if a communicator has the same places of all blocks. Else it is within one. */
bool blocks_share(const struct blocks *blocks, const struct comm *comm);
/* True if an operation is a group of messages with every member of a communicator that blocks share, itself included: an
   all-to-all. */
bool blocks_exchange(const struct blocks *blocks, const struct plan *plan,
                     const struct host_op *op);
/* What is found has to be freed with blocks_fini, and only that. STATUS_INPUT, and why, where the ranks of a host program cannot stand for `ranks`; STATUS_USAGE for fewer than it has. */
enum status blocks_find(const struct plan *plan, int ranks, struct blocks *out, struct diag *diag);
void blocks_fini(struct blocks *blocks);

#endif
