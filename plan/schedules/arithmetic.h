/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arithmetic.h - `arithmetic:`, the dense layers that a real run of rank programs computes.
 *
 * A stage is some layers y = f(x W + b) of one width; a microbatch has `batch` rows. The last layer of the model is
 * linear, and a loss follows it. gpu/exec/layers.h computes with these numbers. The key changes no verdict;
 * without another size a message carries the bytes of an activation.
 */
#ifndef SWSIM_PLAN_ARITHMETIC_H
#define SWSIM_PLAN_ARITHMETIC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"

struct plan;
struct stage_map;
struct stage_cost;

/* f */
#define LAYER_FUNCTION_LIST(X) X(RELU, "relu") X(GELU, "gelu") X(NONE, "none")
enum layer_function {
#define X(name, key) LAYER_FUNCTION_##name,
    LAYER_FUNCTION_LIST(X)
#undef X
};

/* Of a row: the mean of squares, or the cross entropy of softmax with a class; of a microbatch: the mean over its rows. */
#define LOSS_LIST(X) X(MSE, "mse") X(CROSS_ENTROPY, "cross_entropy")
enum loss_kind {
#define X(name, key) LOSS_##name,
    LOSS_LIST(X)
#undef X
};

enum { ARITHMETIC_WIDTH = 64, ARITHMETIC_BATCH = 8, ARITHMETIC_MOST = 4096 };
/* Multiplications of a forward pass: on one processor it shall take seconds at most. */
#define ARITHMETIC_MOST_WORK (INT64_C(1) << 30)

struct arithmetic {
    bool given;
    struct mark mark;
    int width, batch;
    int layers_per_stage; /* 0: as `layers:` or `model:` are divided, without these 1 */
    enum layer_function activation;
    enum loss_kind loss;
    int64_t seed;
    /* Of a lowered plan: */
    int stages;       /* of all copies of the model */
    int length;       /* of a copy */
    int microbatches; /* 1 + the highest number */
    int *layers;      /* [stages] */
    int replicas;     /* pipelines beside one another, each with microbatches of its own */
    int *rank_of;     /* [replicas][stages] */
    bool *again;      /* [microbatches]: a backward pass computes the forward pass once more */
};

/* The same for lowered lists of so many ranks of a pipeline, in `arena`; an error where a run cannot compute them. */
enum status arithmetic_resolve(const struct plan *plan, const struct stage_map *map, int ranks,
                               const struct stage_cost *costs, struct arena *arena,
                               struct arithmetic *out, struct diag *diag);

/* Of an activation or a gradient: what a message carries. */
int64_t arithmetic_message_bytes(const struct arithmetic *arithmetic);

#endif
