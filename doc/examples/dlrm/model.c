/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - see model.h. */
#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RATE 0.2F

static uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= UINT64_C(0xff51afd7ed558ccd);
    x ^= x >> 33;
    x *= UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ x >> 33;
}

/* From -1 to 1. */
static float noise(uint64_t seed)
{
    return (float)(int64_t)(mix(seed) >> 40) / (float)(1 << 23) - 1.0F;
}

int model_open(struct model *model, int rank, int ranks)
{
    *model = (struct model){.rank = rank, .ranks = ranks};
    model->rows = calloc(TABLES, sizeof *model->rows);
    model->adagrad = calloc(TABLES, sizeof *model->adagrad);
    if (!model->rows || !model->adagrad) {
        model_close(model);
        return -1;
    }
    for (int i = 0; i < WEIGHTS; i++)
        model->weights[i] = 0.5F * noise((uint64_t)i + 1);
    for (int t = 0; t < TABLES; t++)
        for (int r = 0; r < ROWS; r++)
            for (int d = 0; d < DIM; d++)
                model->rows[t][r][d] = 0.5F * noise((uint64_t)((t * ROWS + r) * DIM + d) + 1000000);
    return 0;
}

void model_close(struct model *model)
{
    free(model->rows);
    free(model->adagrad);
}

struct work *work_open(struct model *model, const struct batch *batch)
{
    size_t sums = (size_t)(model->ranks * TABLES * batch->count) * DIM;
    struct work *work = calloc(1, sizeof *work);
    if (!work)
        return NULL;
    work->model = model;
    work->batch = batch;
    work->ask_ids = calloc(MOST_BAGS * MOST_IDS, sizeof *work->ask_ids);
    work->answers = calloc(4 * sums, sizeof *work->answers);
    if (!work->ask_ids || !work->answers) {
        work_close(work);
        return NULL;
    }
    work->answered = work->answers + sums;
    work->turned = work->answered + sums;
    work->grads_of_rows = work->turned + sums;
    return work;
}

void work_close(void *content)
{
    struct work *work = content;
    free(work->ask_ids);
    free(work->asked_ids);
    free(work->answers);
    free(work);
}

/* ---- embeddings ------------------------------------------------------------------------------ */

static int owner(const struct model *model, int table, int64_t row)
{
    return (int)((table == TABLES - 1 ? row : table) % model->ranks);
}

void model_ask(struct work *work)
{
    const struct model *model = work->model;
    const struct batch *batch = work->batch;
    size_t at = 0;
    for (int to = 0; to < model->ranks; to++) {
        const int64_t *id = batch->ids;
        size_t before = at;
        for (int bag = 0; bag < TABLES * batch->count; bag++) {
            int32_t *length = &work->ask_lengths[to * TABLES * batch->count + bag];
            *length = 0;
            for (int i = 0; i < batch->lengths[bag]; i++, id++)
                if (owner(model, bag / batch->count, *id) == to) {
                    work->ask_ids[at++] = *id;
                    (*length)++;
                }
        }
        work->ask_counts[to] = at - before;
    }
}

int model_count_asked(struct work *work)
{
    const struct model *model = work->model;
    int bags = TABLES * work->batch->count;
    size_t all = 0;
    for (int from = 0; from < model->ranks; from++) {
        work->asked_counts[from] = 0;
        for (int bag = 0; bag < bags; bag++)
            work->asked_counts[from] += (size_t)work->asked_lengths[from * bags + bag];
        all += work->asked_counts[from];
    }
    work->asked_ids = calloc(all + 1, sizeof *work->asked_ids);
    return work->asked_ids ? 0 : -1;
}

void model_look_up(struct work *work)
{
    const struct model *model = work->model;
    int count = work->batch->count;
    const int64_t *id = work->asked_ids;
    memset(work->answers, 0, (size_t)(model->ranks * TABLES * count) * DIM * sizeof(float));
    for (int bag = 0; bag < model->ranks * TABLES * count; bag++)
        for (int i = 0; i < work->asked_lengths[bag]; i++, id++)
            for (int d = 0; d < DIM; d++)
                work->answers[bag * DIM + d] += model->rows[bag / count % TABLES][*id][d];
}

/* Sums of the owners' parts. */
static void pool(const struct model *model, struct work *work)
{
    int floats = TABLES * work->batch->count * DIM;
    for (int i = 0; i < floats; i++) {
        work->pooled[i] = 0;
        for (int from = 0; from < model->ranks; from++)
            work->pooled[i] += work->answered[from * floats + i];
    }
}

/* One row: Adagrad with one number of state for it. */
static void update_row(struct model *model, int table, int64_t row, const float *gradient)
{
    float square = 0;
    for (int d = 0; d < DIM; d++)
        square += gradient[d] * gradient[d] / DIM;
    model->adagrad[table][row] += square;
    float rate = RATE / (sqrtf(model->adagrad[table][row]) + 1e-8F);
    for (int d = 0; d < DIM; d++)
        model->rows[table][row][d] -= rate * gradient[d];
}

/* A row that occurs several times is updated once, with the sum. */
static void update_rows(struct model *model, const struct work *work)
{
    int count = work->batch->count, bags = model->ranks * TABLES * count;
    for (int table = 0; table < TABLES; table++) {
        static _Thread_local float sums[ROWS][DIM];
        static _Thread_local char touched[ROWS];
        const int64_t *id = work->asked_ids;
        memset(sums, 0, sizeof sums);
        memset(touched, 0, sizeof touched);
        for (int bag = 0; bag < bags; bag++)
            for (int i = 0; i < work->asked_lengths[bag]; i++, id++) {
                if (bag / count % TABLES != table)
                    continue;
                touched[*id] = 1;
                for (int d = 0; d < DIM; d++)
                    sums[*id][d] += work->grads_of_rows[bag * DIM + d];
            }
        for (int row = 0; row < ROWS; row++)
            if (touched[row])
                update_row(model, table, row, sums[row]);
    }
}

/* ---- dense layers ---------------------------------------------------------------------------- */

/* y = relu(x w); w: [in][out]. */
static void layer(const float *x, const float *w, int in, int out, float *y)
{
    for (int o = 0; o < out; o++) {
        float sum = 0;
        for (int i = 0; i < in; i++)
            sum += x[i] * w[i * out + o];
        y[o] = sum > 0 ? sum : 0;
    }
}

/* The gradient of y becomes those of w, added, and of x (may be NULL). */
static void layer_back(const float *x, const float *w, const float *y, const float *gy, int in,
                       int out, float *gw, float *gx)
{
    for (int i = 0; i < in; i++) {
        float sum = 0;
        for (int o = 0; o < out; o++) {
            float g = y[o] > 0 ? gy[o] : 0;
            gw[i * out + o] += x[i] * g;
            sum += w[i * out + o] * g;
        }
        if (gx)
            gx[i] = sum;
    }
}

/* Vector v of a sample: its dense one, or that of a table. */
static const float *vector(const struct work *work, int sample, int v)
{
    return v == 0 ? work->bottom2[sample]
                  : work->pooled + ((v - 1) * work->batch->count + sample) * DIM;
}

static void interact(struct work *work, int sample)
{
    float *out = work->top_in[sample];
    memcpy(out, work->bottom2[sample], DIM * sizeof *out);
    out += DIM;
    for (int a = 0; a < VECTORS; a++)
        for (int b = 0; b < a; b++) {
            const float *x = vector(work, sample, a), *y = vector(work, sample, b);
            float sum = 0;
            for (int d = 0; d < DIM; d++)
                sum += x[d] * y[d];
            *out++ = sum;
        }
}

void model_forward(struct work *work)
{
    const struct model *model = work->model;
    const float *w1 = model->weights, *w2 = w1 + W1, *w3 = w2 + W2, *w4 = w3 + W3;
    float loss = 0;
    pool(model, work);
    for (int s = 0; s < work->batch->count; s++) {
        float score = 0, label = work->batch->labels[s];
        layer(work->batch->dense[s], w1, DENSE, HIDDEN, work->bottom1[s]);
        layer(work->bottom1[s], w2, HIDDEN, DIM, work->bottom2[s]);
        interact(work, s);
        layer(work->top_in[s], w3, TOP_IN, HIDDEN, work->top1[s]);
        for (int i = 0; i < HIDDEN; i++)
            score += work->top1[s][i] * w4[i];
        work->scores[s] = score;
        loss += fmaxf(score, 0) - score * label + log1pf(expf(-fabsf(score)));
    }
    work->gradients[WEIGHTS] = loss / GLOBAL_BATCH;
}

static void interact_back(struct work *work, int sample, const float *g, float *gv)
{
    memset(gv, 0, VECTORS * DIM * sizeof *gv);
    memcpy(gv, g, DIM * sizeof *g);
    g += DIM;
    for (int a = 0; a < VECTORS; a++)
        for (int b = 0; b < a; b++, g++)
            for (int d = 0; d < DIM; d++) {
                gv[a * DIM + d] += *g * vector(work, sample, b)[d];
                gv[b * DIM + d] += *g * vector(work, sample, a)[d];
            }
}

void model_backward(struct work *work)
{
    const struct model *model = work->model;
    const float *w1 = model->weights, *w2 = w1 + W1, *w3 = w2 + W2, *w4 = w3 + W3;
    float *g1 = work->gradients, *g2 = g1 + W1, *g3 = g2 + W2, *g4 = g3 + W3;
    int count = work->batch->count, floats = TABLES * count * DIM;
    memset(work->gradients, 0, WEIGHTS * sizeof(float));
    for (int s = 0; s < count; s++) {
        float gtop1[HIDDEN], gin[TOP_IN], gv[VECTORS * DIM], gbottom1[HIDDEN];
        float g = (1.0F / (1.0F + expf(-work->scores[s])) - work->batch->labels[s]) / GLOBAL_BATCH;
        for (int i = 0; i < HIDDEN; i++) {
            g4[i] += work->top1[s][i] * g;
            gtop1[i] = w4[i] * g;
        }
        layer_back(work->top_in[s], w3, work->top1[s], gtop1, TOP_IN, HIDDEN, g3, gin);
        interact_back(work, s, gin, gv);
        layer_back(work->bottom1[s], w2, work->bottom2[s], gv, HIDDEN, DIM, g2, gbottom1);
        layer_back(work->batch->dense[s], w1, work->bottom1[s], gbottom1, DENSE, HIDDEN, g1, NULL);
        for (int t = 0; t < TABLES; t++)
            memcpy(work->turned + (t * count + s) * DIM, gv + (t + 1) * DIM, DIM * sizeof(float));
    }
    for (int to = 1; to < model->ranks;
         to++) /* every owner of a part of a sum has its whole gradient */
        memcpy(work->turned + to * floats, work->turned, (size_t)floats * sizeof(float));
}

void model_update(struct work *work)
{
    struct model *model = work->model;
    for (int i = 0; i < WEIGHTS; i++)
        model->weights[i] -= RATE * work->summed[i];
    update_rows(model, work);
}
