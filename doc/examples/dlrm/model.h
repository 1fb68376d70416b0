/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - a small DLRM (Naumov et al. 2019) whose embedding tables are sharded over ranks: what a rank computes,
 * without pipelines and communication.
 *
 *     ids -> owners of rows -> pooled sums -> back to the samples --.
 *     dense features -> bottom MLP --------------------------------- interaction -> top MLP -> BCE
 *
 * A rank has GLOBAL_BATCH / ranks samples of an iteration. Gradients of dense weights are summed over ranks and applied
 * by SGD; those of rows go to the row's owner, which adds them in the order of the samples and applies row-wise Adagrad.
 * So every order of execution that keeps reads and writes apart gives the same bits; another number of ranks, or
 * another sharding, adds up in another order.
 *
 * Steps are functions of an iteration's work. On the host each computes at once; on CUDA each pushes to the stream
 * and returns. A step returns 0, or -1 with the reason in device_error. Which step needs which other one is what a
 * plan says: see sparse_dist.yaml.
 */
#ifndef DLRM_MODEL_H
#define DLRM_MODEL_H

#include <pthread.h>

#include "device.h"

/* Samples of one rank: jagged ids by table, then sample. */
struct batch {
    int count; /* samples */
    float dense[GLOBAL_BATCH][DENSE], labels[GLOBAL_BATCH];
    int32_t lengths[MOST_BAGS]; /* [TABLES][count] */
    int64_t ids[MOST_ASKED];
};

/* The owner of a row: of a table, rank table mod ranks; of a row, rank row mod ranks. */
enum sharding {
    SHARD_MIXED /* the last table by row, the others whole */,
    SHARD_BY_TABLE,
    SHARD_BY_ROW
};

/* The rows of each table that are on the device, with those of the batch in training and of the next one among them.
   The host decides which. */
struct cache {
    struct row *tables;             /* in the host's memory, [TABLES][ROWS] */
    int32_t slot_of[TABLES][ROWS];  /* -1: not on the device */
    int32_t row_in[TABLES][SLOTS];  /* -1: empty */
    int64_t used_by[TABLES][SLOTS]; /* the last iteration that asked for it */
};

/* One rank's part of the model. */
struct model {
    int rank, ranks;
    enum sharding sharding;
    float *weights;   /* on the device, [WEIGHTS] */
    struct row *rows; /* on the device, [TABLES][stride]: the tables, or what is cached of them */
    int stride;       /* ROWS or SLOTS */
    struct cache *cache;  /* NULL: tables are on the device */
    struct work *idle;    /* work that waits for an iteration */
    pthread_mutex_t lock; /* of `idle` */
};

/* An iteration on one rank. The host has what it makes and what it has to know; the device the rest. */
struct on_host {
    float dense[GLOBAL_BATCH * DENSE], labels[GLOBAL_BATCH];
    int32_t ask_lengths[MOST_BAGS], asked_lengths[MOST_BAGS];
    int64_t ask_ids[MOST_ASKED], asked_ids[MOST_ASKED];
    int32_t offsets[MOST_BAGS + 1], bag_of[MOST_ASKED];
    int64_t slots[MOST_ASKED];
    struct move moves[MOST_ASKED];
    float loss; /* of all ranks' samples */
};
struct on_device {
    float dense[GLOBAL_BATCH * DENSE], labels[GLOBAL_BATCH];
    /* requests to the ranks and from them: [ranks][TABLES][count] lengths, then ids */
    int32_t ask_lengths[MOST_BAGS], asked_lengths[MOST_BAGS];
    int64_t ask_ids[MOST_ASKED], asked_ids[MOST_ASKED];
    int32_t offsets[MOST_BAGS + 1], bag_of[MOST_ASKED];
    int64_t slots[MOST_ASKED]; /* where the asked rows are; without a cache asked_ids say it */
    struct move moves[MOST_ASKED];
    /* pooled sums for the ranks and from them, [ranks][TABLES][count][DIM]; their gradients, the other way */
    float answers[MOST_BAGS * DIM], answered[MOST_BAGS * DIM];
    float turned[MOST_BAGS * DIM], row_gradients[MOST_BAGS * DIM];
    float pooled[MOST_BAGS * DIM]; /* [TABLES][count] */
    float bottom1[GLOBAL_BATCH * HIDDEN], bottom2[GLOBAL_BATCH * DIM];
    float top_in[GLOBAL_BATCH * TOP_IN], top1[GLOBAL_BATCH * HIDDEN], scores[GLOBAL_BATCH];
    float losses[GLOBAL_BATCH], score_gradient[GLOBAL_BATCH];
    float top1_gradient[GLOBAL_BATCH * HIDDEN], top_in_gradient[GLOBAL_BATCH * TOP_IN];
    float bottom1_gradient[GLOBAL_BATCH * HIDDEN], bottom2_gradient[GLOBAL_BATCH * DIM];
    float gradients[WEIGHTS + 1],
        summed[WEIGHTS + 1]; /* of this rank's samples, of all; then the loss */
};
struct work {
    struct work *next; /* idle */
    struct model *model;
    const struct batch *batch;
    int asked; /* ids */
    int moves;
    size_t ask_counts[MOST_RANKS], asked_counts[MOST_RANKS]; /* ids to each rank, and from it */
    struct on_host *host;
    struct on_device *device;
};

/* The same weights and rows on all ranks. 0, or -1: no memory. */
int model_open(struct model *model, int rank, int ranks, enum sharding sharding, int cached);
void model_close(struct model *model);

/* NULL: no memory. */
struct work *work_open(struct model *model, const struct batch *batch);
void work_close(void *work); /* keeps the memory for another iteration */

/* ---- the steps ------------------------------------------------------------------------------- */

typedef int model_step(struct work *work, void *stream);

/* On the host: sort the ids by owner. Then to the device with what the iteration needs. */
void model_ask(struct work *work);
model_step model_load;
/* The host learns how many ids come: asked_counts are those of their exchange. */
model_step model_fetch_lengths;
void model_count_asked(struct work *work);
/* With a cache: the host learns the ids and gives each row a slot that neither this iteration nor the one before it
   uses; the rows are moved. Iterations come in order. */
model_step model_fetch_ids;
void model_choose_slots(struct work *work, int64_t iteration);
model_step model_prefetch;
model_step model_look_up; /* pool the asked rows */
model_step model_forward;
model_step model_backward;
model_step model_update; /* dense weights by `summed`, own rows by `row_gradients` */

/* ---- data ------------------------------------------------------------------------------------ */

/* Samples out of the air, by a rule that can be learned; `file`: out of lines as Criteo's, from the beginning again when
   they end. */
struct data;
/* 0; -1: `why` says what is wrong with the file. */
int data_open(const char *file, struct data **out, char why[512]);
void data_close(struct data *data);
/* Samples first, first + 1, ... of an iteration. */
void data_fill(const struct data *data, int64_t iteration, int first, int count, struct batch *out);

#endif
