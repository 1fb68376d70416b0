/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.h - the kernels: what one thread computes, for the loops of device_host.c and the grids of device_cuda.cu.
 *
 * A kernel NAME has its arguments in a struct NAME and is the function NAME_one, called for the threads 0, 1, 2, ...
 * No thread writes what another one reads or writes, and sums have one order: so a kernel gives the same bits in every
 * run, and on the host those of a plain loop.
 *
 * Arrays: [ranks][TABLES][count] of bags, in which `count` is the samples of a rank; a bag's ids, slots or rows follow
 * each other from offsets[bag] to offsets[bag + 1].
 */
#ifndef DLRM_KERNELS_H
#define DLRM_KERNELS_H

#include <math.h>
#include <stdint.h>

#include "shape.h"

#ifdef __CUDACC__
#define KERNEL __host__ __device__ static inline
#else
#define KERNEL static inline
#endif

#define KERNELS(X)                                                                                 \
    X(move_row)                                                                                    \
    X(look_up)                                                                                     \
    X(pool) X(relu) X(relu_back) X(interact) X(interact_back) X(bce) X(total) X(sgd) X(adagrad)

/* ---- tables ---------------------------------------------------------------------------------- */

/* A row that leaves a cache for its table (-1: none), and the one that takes its slot. */
struct move {
    int32_t table, slot, out, in;
};

/* A thread a move. */
struct move_row {
    const struct move *moves;
    struct row *cache;  /* [TABLES][SLOTS] */
    struct row *tables; /* [TABLES][ROWS] */
};
KERNEL void move_row_one(const struct move_row *k, int i)
{
    const struct move *move = &k->moves[i];
    struct row *slot = &k->cache[move->table * SLOTS + move->slot];
    struct row *table = &k->tables[move->table * ROWS];
    if (move->out >= 0)
        table[move->out] = *slot;
    *slot = table[move->in];
}

/* The sums of the rows of each bag: a thread a number. */
struct look_up {
    const struct row *rows; /* [TABLES][stride] */
    int stride, count;
    const int32_t *offsets;
    const int64_t *slots;
    float *answers; /* [bags][DIM] */
};
KERNEL void look_up_one(const struct look_up *k, int i)
{
    int bag = i / DIM, d = i % DIM;
    const struct row *table = k->rows + bag / k->count % TABLES * k->stride;
    float sum = 0;
    for (int32_t at = k->offsets[bag]; at < k->offsets[bag + 1]; at++)
        sum += table[k->slots[at]].values[d];
    k->answers[i] = sum;
}

/* The sums of what the owners answered. */
struct pool {
    const float *answered; /* [ranks][floats] */
    int ranks, floats;
    float *pooled;
};
KERNEL void pool_one(const struct pool *k, int i)
{
    float sum = 0;
    for (int from = 0; from < k->ranks; from++)
        sum += k->answered[from * k->floats + i];
    k->pooled[i] = sum;
}

/* Row-wise Adagrad: a thread an id that was asked. The first that asks for a row updates it, with the sum of all. */
struct adagrad {
    struct row *rows; /* [TABLES][stride] */
    int stride, count, ranks;
    const int32_t *offsets, *bag_of; /* bag_of: the bag of each id */
    const int64_t *slots;
    const float *gradients; /* [bags][DIM] */
    float rate;
};
KERNEL void adagrad_one(const struct adagrad *k, int i)
{
    int table = k->bag_of[i] / k->count % TABLES;
    struct row *row = &k->rows[table * k->stride + k->slots[i]];
    float sums[DIM] = {0}, square = 0;
    for (int from = 0; from < k->ranks; from++) {
        const int32_t *offsets = &k->offsets[(from * TABLES + table) * k->count];
        for (int32_t at = offsets[0]; at < offsets[k->count]; at++) {
            if (k->slots[at] != k->slots[i])
                continue;
            if (at < i)
                return;
            for (int d = 0; d < DIM; d++)
                sums[d] += k->gradients[k->bag_of[at] * DIM + d];
        }
    }
    for (int d = 0; d < DIM; d++)
        square += sums[d] * sums[d] / DIM;
    row->squares += square;
    for (int d = 0; d < DIM; d++)
        row->values[d] -= k->rate / (sqrtf(row->squares) + 1e-8F) * sums[d];
}

/* ---- dense layers ---------------------------------------------------------------------------- */

struct relu {
    float *y;
};
KERNEL void relu_one(const struct relu *k, int i)
{
    k->y[i] = k->y[i] > 0 ? k->y[i] : 0;
}

/* The gradient of a layer's output becomes that of its sums. */
struct relu_back {
    const float *y;
    float *gradient;
};
KERNEL void relu_back_one(const struct relu_back *k, int i)
{
    k->gradient[i] = k->y[i] > 0 ? k->gradient[i] : 0;
}

struct sgd {
    float *weights;
    const float *gradients;
    float rate;
};
KERNEL void sgd_one(const struct sgd *k, int i)
{
    k->weights[i] -= k->rate * k->gradients[i];
}

/* ---- interaction ----------------------------------------------------------------------------- */

/* Vector v of a sample: its dense one, or the pooled one of a table. */
KERNEL const float *vector_of(const float *bottom, const float *pooled, int count, int sample,
                              int v)
{
    return v == 0 ? bottom + sample * DIM : pooled + ((v - 1) * count + sample) * DIM;
}

/* The place of a pair, a > b, behind the dense vector. */
KERNEL int place_of(int a, int b)
{
    return DIM + a * (a - 1) / 2 + b;
}

/* The dense vector, then the dot product of each pair: a thread a number. */
struct interact {
    const float *bottom, *pooled;
    int count;
    float *out; /* [count][TOP_IN] */
};
KERNEL void interact_one(const struct interact *k, int i)
{
    int sample = i / TOP_IN, at = i % TOP_IN, a = 1;
    float sum = 0;
    if (at < DIM) {
        k->out[i] = k->bottom[sample * DIM + at];
        return;
    }
    while (place_of(a + 1, 0) <= at)
        a++;
    const float *x = vector_of(k->bottom, k->pooled, k->count, sample, a);
    const float *y = vector_of(k->bottom, k->pooled, k->count, sample, at - place_of(a, 0));
    for (int d = 0; d < DIM; d++)
        sum += x[d] * y[d];
    k->out[i] = sum;
}

/* Their gradients: a thread a number of a vector. Every owner of a part of a pooled sum has the gradient of the
   whole, so that of a table's vector is written once for each rank. */
struct interact_back {
    const float *bottom, *pooled;
    const float *gradient; /* [count][TOP_IN] */
    int count, ranks;
    float *bottom_gradient; /* [count][DIM] */
    float *turned;          /* [ranks][TABLES][count][DIM] */
};
KERNEL void interact_back_one(const struct interact_back *k, int i)
{
    int v = i / (k->count * DIM), sample = i / DIM % k->count, d = i % DIM;
    const float *gradient = k->gradient + sample * TOP_IN;
    float sum = v == 0 ? gradient[d] : 0;
    for (int u = 0; u < VECTORS; u++)
        if (u != v)
            sum += gradient[u > v ? place_of(u, v) : place_of(v, u)] *
                   vector_of(k->bottom, k->pooled, k->count, sample, u)[d];
    if (v == 0)
        k->bottom_gradient[i] = sum;
    for (int to = 0; v > 0 && to < k->ranks; to++)
        k->turned[(to * TABLES * k->count - k->count) * DIM + i] = sum;
}

/* ---- loss ------------------------------------------------------------------------------------ */

/* Binary cross-entropy of sigmoid(score): a thread a sample. */
struct bce {
    const float *scores, *labels;
    float *losses, *gradient;
};
KERNEL void bce_one(const struct bce *k, int i)
{
    float score = k->scores[i], label = k->labels[i];
    float loss = fmaxf(score, 0) - score * label + log1pf(expf(-fabsf(score)));
    k->losses[i] = loss / GLOBAL_BATCH;
    k->gradient[i] = (1.0F / (1.0F + expf(-score)) - label) / GLOBAL_BATCH;
}

/* One thread: a few numbers have one order. */
struct total {
    const float *numbers;
    int count;
    float *sum;
};
KERNEL void total_one(const struct total *k, int i)
{
    k->sum[i] = 0;
    for (int n = 0; n < k->count; n++)
        k->sum[i] += k->numbers[n];
}

#endif
