/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cycle_ratio.h - the maximum cycle ratio of a graph, exactly.
 *
 * Edges carry a weight (nanoseconds) and a height (iterations). The ratio of a cycle is the sum of
 * its weights over the sum of its heights; the largest of all ratios is the time one iteration takes
 * in the steady state of the system x(to, k) = max over edges of x(from, k - height) + weight.
 * Heights may be negative as long as every cycle's sum is positive; a cycle whose sum is not waits
 * for itself: a deadlock.
 *
 * Howard's policy iteration (Cochet-Terrasson, Cohen, Gaubert, McGettrick, Quadrat 1998; Dasdan,
 * Irani, Gupta 1999) in 128-bit integers: no tolerance, the result is a cycle of the graph.
 */
#ifndef SWSIM_CYCLE_RATIO_H
#define SWSIM_CYCLE_RATIO_H

#include <stdint.h>

#include "base/diag.h"

struct ratio_edge {
    int from, to; /* 0 .. nodes - 1 */
    int height;
    int64_t weight_ns;
};

struct ratio_graph {
    int nodes, edge_count;
    const struct ratio_edge *edges;
};

struct cycle_ratio {
    enum ratio_kind {
        RATIO_NONE,    /* the graph has no cycle */
        RATIO_FOUND,   /* `cycle` is one of the largest ratio */
        RATIO_DEADLOCK /* `cycle` is one whose height is not positive */
    } kind;
    int64_t weight_ns, height; /* sums over the cycle */
    int *cycle;                /* edges in order; freed with cycle_ratio_fini */
    int length;
    int rounds; /* of policy iteration it took */
};

/* Sums of the absolute weights and of the absolute heights must stay below 2^62, else STATUS_LIMIT;
   STATUS_SYSTEM when memory runs out. *out is set on success only. */
enum status cycle_ratio_find(const struct ratio_graph *graph, struct cycle_ratio *out,
                             struct diag *diag);
void cycle_ratio_fini(struct cycle_ratio *ratio);

#endif
