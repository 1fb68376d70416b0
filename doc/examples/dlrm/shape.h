/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape.h - the numbers of the model, for the host's compiler and for nvcc.
 *
 * Everything is small and fixed, so that an array has its size in its declaration.
 */
#ifndef DLRM_SHAPE_H
#define DLRM_SHAPE_H

#ifndef DLRM_BATCH
#define DLRM_BATCH 64
#endif

enum {
    MOST_RANKS = 8,
    GLOBAL_BATCH = DLRM_BATCH, /* samples of an iteration, of all ranks together */
    TABLES = 6,
    ROWS = 1000, /* of a table */
    DIM = 8,
    DENSE = 13,
    CATEGORIES = 26, /* of a line of Criteo's: category c belongs to table c mod TABLES */
    HIDDEN = 16,
    MOST_IDS = (CATEGORIES + TABLES - 1) / TABLES, /* of a sample in a table */
    VECTORS = TABLES + 1, /* that interact: the dense one, and the tables' */
    PAIRS = VECTORS * (VECTORS - 1) / 2,
    TOP_IN = DIM + PAIRS,
    /* dense weights, layer by layer; the loss is summed with their gradients */
    W1 = DENSE * HIDDEN,
    W2 = HIDDEN * DIM,
    W3 = TOP_IN * HIDDEN,
    W4 = HIDDEN,
    WEIGHTS = W1 + W2 + W3 + W4,
    /* a bag holds the ids of a sample in a table; a rank sends so many at most, and receives so many */
    MOST_BAGS = TABLES * GLOBAL_BATCH,
    MOST_ASKED = MOST_BAGS * MOST_IDS,
    /* rows of a table that a cache holds: those of the batch that trains, and of the one that is prefetched */
    SLOTS = 2 * GLOBAL_BATCH * MOST_IDS
};

/* A row of a table, with Adagrad's one number for it. */
struct row {
    float values[DIM], squares;
};

#endif
