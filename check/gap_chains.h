/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gap_chains.h - whether a path leads from one task to another, however many tasks are on it.
 *
 * A few long paths of edges without length, the chains, are chosen. Each task knows the first place on each chain that it
 * reaches, and the last one that reaches it, without length and with a length of at most 1; so a question needs no search.
 * Memory is the arena's: 32 numbers a task.
 */
#ifndef SWSIM_GAP_CHAINS_H
#define SWSIM_GAP_CHAINS_H

#include <stdbool.h>

#include "base/arena.h"

struct gap_edge {
    int to, length;
};

enum { GAP_CHAINS = 8, GAP_CHAIN_LENGTHS = 2 };

struct gap_chains {
    struct gap_reach {
        int first[GAP_CHAINS], last[GAP_CHAINS]; /* places on each chain */
    } * of[GAP_CHAIN_LENGTHS]; /* by the length of paths, per task; NULL: not built */
};

/* The edges from a task are edges[first[task] .. first[task + 1]). false: memory is exhausted. */
bool gap_chains_build(struct gap_chains *chains, struct arena *arena, int tasks, const int *first,
                      const struct gap_edge *edges);
/* True if a path of a length that is at most `most` leads by way of a chain. False says nothing. */
bool gap_chains_lead(const struct gap_chains *chains, int from, int to, int most);

#endif
