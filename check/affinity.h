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

#include "tree.h"

/* Put the leaves of this program's states into order->leaves, those that belong together side by
   side; the caller gives it back with affinity_free. */
enum status affinity_order(const struct program *program, struct budget *budget,
                           struct tree_order *order);
void affinity_free(struct tree_order *order, struct budget *budget);

#endif
