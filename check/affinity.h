/*
 * affinity.h - which parts of a state change together.
 *
 * A step changes little of a state, and most of it belongs to one agent: a thread's cells, its row
 * of knowledge, the queue it fills; a stream's items and their rows. Memory keeps like with like
 * (all threads, all events), since that is how the machine finds it. Here a state's pieces are put
 * into the order in which they belong together: by rank, within a rank by agent.
 */
#ifndef SWSIM_AFFINITY_H
#define SWSIM_AFFINITY_H

#include "core/machine.h"

/* Put the numbers of the `count` pieces of `piece_bytes` that a state of this program has into
   `order`, those that belong together side by side. False: memory is exhausted. */
bool affinity_order(const struct program *program, size_t piece_bytes, uint32_t *order,
                    size_t count);

#endif
