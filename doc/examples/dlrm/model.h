/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - a small DLRM (Naumov et al. 2019) whose embedding tables are sharded over ranks: the arithmetic, without
 * pipelines and communication.
 *
 *     ids -> owners of rows -> pooled sums -> back to the samples --.
 *     dense features -> bottom MLP --------------------------------- interaction -> top MLP -> BCE
 *
 * Tables are owned whole, table t by rank t mod ranks, but for the last, which is owned by row, row r by rank r
 * mod ranks. A rank has GLOBAL_BATCH / ranks samples of an iteration. The gradients of dense weights are
 * summed over ranks and applied by SGD; those of rows go to their owner, which adds them in the order of the samples
 * and applies row-wise Adagrad. So with the same numbers of ranks every order of execution that the plan allows
 * gives the same bits; another number of ranks adds up in another order.
 */
#ifndef DLRM_MODEL_H
#define DLRM_MODEL_H

#include <stddef.h>
#include <stdint.h>

enum {
    GLOBAL_BATCH = 64,
    TABLES = 6,
    ROWS = 500,
    DIM = 8,
    DENSE = 13,
    HIDDEN = 16,
    MOST_IDS = 3, /* of a sample in a table */
    VECTORS = TABLES + 1,
    PAIRS = VECTORS * (VECTORS - 1) / 2,
    TOP_IN = DIM + PAIRS,
    /* dense weights, layer by layer; then the loss, which is summed with their gradients */
    W1 = DENSE * HIDDEN,
    W2 = HIDDEN * DIM,
    W3 = TOP_IN * HIDDEN,
    W4 = HIDDEN,
    WEIGHTS = W1 + W2 + W3 + W4,
    MOST_BAGS = TABLES * GLOBAL_BATCH
};

/* Samples of one rank: jagged ids by table, then sample. */
struct batch {
    int count; /* samples */
    float dense[GLOBAL_BATCH][DENSE], labels[GLOBAL_BATCH];
    int lengths[MOST_BAGS]; /* [TABLES][count] */
    int64_t ids[MOST_BAGS * MOST_IDS];
};

/* One rank's part of the model. */
struct model {
    int rank, ranks;
    float weights[WEIGHTS];
    float (*rows)[ROWS][DIM]; /* [TABLES]; only the rows it owns are used */
    float (*adagrad)[ROWS];   /* [TABLES] */
};

/* An iteration on one rank, from its batch to its update. */
struct work {
    struct model *model;
    const struct batch *batch;
    /* its requests to the ranks, and theirs to it: [ranks][TABLES][count] lengths, then ids */
    int32_t ask_lengths[MOST_BAGS], asked_lengths[MOST_BAGS];
    size_t ask_counts[8], asked_counts[8];
    int64_t *ask_ids, *asked_ids;
    float *answers,
        *answered; /* pooled sums: [ranks][TABLES][count][DIM], for and from the ranks */
    float *turned, *grads_of_rows; /* their gradients: to and from the ranks, likewise */
    float pooled[MOST_BAGS * DIM]; /* [TABLES][count] */
    float bottom1[GLOBAL_BATCH][HIDDEN], bottom2[GLOBAL_BATCH][DIM];
    float top_in[GLOBAL_BATCH][TOP_IN], top1[GLOBAL_BATCH][HIDDEN], scores[GLOBAL_BATCH];
    float gradients[WEIGHTS + 1]; /* of this rank's samples, then the loss */
    float summed[WEIGHTS + 1];    /* of all */
};

/* 0, or -1: no memory. The same weights and rows on all ranks. */
int model_open(struct model *model, int rank, int ranks);
void model_close(struct model *model);

/* NULL: no memory. */
struct work *work_open(struct model *model, const struct batch *batch);
void work_close(void *work);

/* Sort the ids by owner. */
void model_ask(struct work *work);
/* The number of ids that each rank asks for, from asked_lengths; 0, or -1: no memory for them. */
int model_count_asked(struct work *work);
/* Pool the asked rows. */
void model_look_up(struct work *work);
void model_forward(struct work *work);
void model_backward(struct work *work);
/* Dense weights by `summed`, own rows by grads_of_rows. */
void model_update(struct work *work);

/* Samples first, first + 1, ... of iteration `number`, out of the air; `file`, or out of lines as Criteo's. */
struct data;
struct data *data_open(const char *file); /* NULL: it cannot be read */
void data_close(struct data *data);
void data_fill(const struct data *data, int64_t number, int first, int count, struct batch *out);

#endif
