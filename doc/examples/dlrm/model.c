/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - see model.h: memory, and the dense part of the network. */
#include "model.h"

#include <stdlib.h>
#include <string.h>

static const float rate = 0.2F;
enum { USUAL_DEPTH = 5 };

/* ---- the model ------------------------------------------------------------------------------- */

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

static void begin_tables(struct row *rows)
{
    for (int i = 0; i < TABLES * ROWS; i++)
        for (int d = 0; d < DIM; d++)
            rows[i].values[d] = 0.5F * noise((uint64_t)(i * DIM + d) + 1000000);
}

static int begin_weights(const struct model *model)
{
    float *weights = host_alloc(WEIGHTS * sizeof *weights);
    if (!weights)
        return -1;
    for (int i = 0; i < WEIGHTS; i++)
        weights[i] = 0.5F * noise((uint64_t)i + 1);
    int failed = device_write(NULL, model->weights, weights, WEIGHTS * sizeof *weights);
    host_free(weights);
    return failed;
}

/* The cache is empty at first. */
static int begin_cache(struct model *model)
{
    model->cache = calloc(1, sizeof *model->cache);
    if (!model->cache)
        return -1;
    memset(model->cache->slot_of, -1, sizeof model->cache->slot_of);
    memset(model->cache->row_in, -1, sizeof model->cache->row_in);
    memset(model->cache->used_by, -1, sizeof model->cache->used_by);
    model->cache->tables = host_alloc(TABLES * ROWS * sizeof(struct row));
    if (!model->cache->tables)
        return -1;
    begin_tables(model->cache->tables);
    return 0;
}

static int begin_rows(const struct model *model)
{
    struct row *rows = host_alloc(TABLES * ROWS * sizeof *rows);
    if (!rows)
        return -1;
    begin_tables(rows);
    int failed = device_write(NULL, model->rows, rows, TABLES * ROWS * sizeof *rows);
    host_free(rows);
    return failed;
}

static void work_free(struct work *work)
{
    device_free(work->device);
    host_free(work->host);
    free(work);
}

static struct work *new_work(struct model *model)
{
    struct work *work = calloc(1, sizeof *work);
    if (!work)
        return NULL;
    work->model = model;
    work->host = host_alloc(sizeof *work->host);
    work->device = device_alloc(sizeof *work->device);
    if (work->host && work->device)
        return work;
    work_free(work);
    return NULL;
}

/* Enough for the plans here; a deeper pipeline makes more while it runs. */
static int begin_works(struct model *model)
{
    for (int i = 0; i < USUAL_DEPTH; i++) {
        struct work *work = new_work(model);
        if (!work)
            return -1;
        work_close(work);
    }
    return 0;
}

int model_open(struct model *model, int rank, int ranks, enum sharding sharding, int cached)
{
    int stride = cached ? SLOTS : ROWS;
    *model = (struct model){.rank = rank, .ranks = ranks, .sharding = sharding, .stride = stride};
    pthread_mutex_init(&model->lock, NULL);
    model->weights = device_alloc(WEIGHTS * sizeof *model->weights);
    model->rows = device_alloc((size_t)(TABLES * stride) * sizeof *model->rows);
    if (model->weights && model->rows && begin_weights(model) == 0 &&
        (cached ? begin_cache(model) : begin_rows(model)) == 0 && begin_works(model) == 0)
        return 0;
    model_close(model);
    return -1;
}

void model_close(struct model *model)
{
    for (struct work *work; (work = model->idle);) {
        model->idle = work->next;
        work_free(work);
    }
    if (model->cache)
        host_free(model->cache->tables);
    free(model->cache);
    device_free(model->weights);
    device_free(model->rows);
    pthread_mutex_destroy(&model->lock);
}

/* ---- the work of an iteration ---------------------------------------------------------------- */

/* Memory is used again: the device may have to stop before it gives more. */
static struct work *take_idle(struct model *model)
{
    pthread_mutex_lock(&model->lock);
    struct work *work = model->idle;
    if (work)
        model->idle = work->next;
    pthread_mutex_unlock(&model->lock);
    return work;
}

struct work *work_open(struct model *model, const struct batch *batch)
{
    struct work *work = take_idle(model);
    if (!work)
        work = new_work(model);
    if (work)
        work->batch = batch;
    return work;
}

void work_close(void *content)
{
    struct work *work = content;
    pthread_mutex_lock(&work->model->lock);
    work->next = work->model->idle;
    work->model->idle = work;
    pthread_mutex_unlock(&work->model->lock);
}

/* ---- dense layers ---------------------------------------------------------------------------- */

/* y = relu(x w): x [count][in], w [in][out]. */
struct layer {
    int count, in, out;
    const float *x, *w;
    float *y;
};

static int layer_forward(void *stream, const struct layer *l)
{
    const struct product product = {
        .m = l->count, .n = l->out, .k = l->in, .a = l->x, .b = l->w, .c = l->y};
    const struct relu relu = {l->y};
    return device_multiply(stream, &product) || device_relu(stream, &relu, l->count * l->out);
}

/* The gradient of y becomes those of w and of x (NULL: nobody needs it). */
static int layer_backward(void *stream, const struct layer *l, float *gy, float *gw, float *gx)
{
    const struct relu_back relu = {l->y, gy};
    const struct product of_w = {
        .m = l->in, .n = l->out, .k = l->count, .a = l->x, .a_transposed = 1, .b = gy, .c = gw};
    const struct product of_x = {
        .m = l->count, .n = l->in, .k = l->out, .a = gy, .b = l->w, .b_transposed = 1, .c = gx};
    return device_relu_back(stream, &relu, l->count * l->out) || device_multiply(stream, &of_w) ||
           (gx && device_multiply(stream, &of_x));
}

struct network {
    struct layer bottom1, bottom2, top1;
    const float *w4; /* top1 to the score, without relu */
};

static struct network network_of(const struct work *work)
{
    const float *w1 = work->model->weights, *w2 = w1 + W1, *w3 = w2 + W2, *w4 = w3 + W3;
    struct on_device *d = work->device;
    int count = work->batch->count;
    return (struct network){{count, DENSE, HIDDEN, d->dense, w1, d->bottom1},
                            {count, HIDDEN, DIM, d->bottom1, w2, d->bottom2},
                            {count, TOP_IN, HIDDEN, d->top_in, w3, d->top1},
                            w4};
}

int model_forward(struct work *work, void *stream)
{
    struct on_device *d = work->device;
    const struct network net = network_of(work);
    int count = work->batch->count, floats = TABLES * count * DIM;
    const struct pool pool = {d->answered, work->model->ranks, floats, d->pooled};
    const struct interact interact = {d->bottom2, d->pooled, count, d->top_in};
    const struct product score = {
        .m = count, .n = 1, .k = HIDDEN, .a = d->top1, .b = net.w4, .c = d->scores};
    const struct bce bce = {d->scores, d->labels, d->losses, d->score_gradient};
    const struct total total = {d->losses, count, &d->gradients[WEIGHTS]};
    return device_pool(stream, &pool, floats) || layer_forward(stream, &net.bottom1) ||
           layer_forward(stream, &net.bottom2) ||
           device_interact(stream, &interact, count * TOP_IN) || layer_forward(stream, &net.top1) ||
           device_multiply(stream, &score) || device_bce(stream, &bce, count) ||
           device_total(stream, &total, 1);
}

int model_backward(struct work *work, void *stream)
{
    struct on_device *d = work->device;
    const struct network net = network_of(work);
    float *g1 = d->gradients, *g2 = g1 + W1, *g3 = g2 + W2, *g4 = g3 + W3;
    int count = work->batch->count;
    const struct product of_w4 = {.m = HIDDEN,
                                  .n = 1,
                                  .k = count,
                                  .a = d->top1,
                                  .a_transposed = 1,
                                  .b = d->score_gradient,
                                  .c = g4};
    const struct product of_top1 = {.m = count,
                                    .n = HIDDEN,
                                    .k = 1,
                                    .a = d->score_gradient,
                                    .b = net.w4,
                                    .c = d->top1_gradient};
    const struct interact_back interact = {d->bottom2, d->pooled,          d->top_in_gradient,
                                           count,      work->model->ranks, d->bottom2_gradient,
                                           d->turned};
    return device_multiply(stream, &of_w4) || device_multiply(stream, &of_top1) ||
           layer_backward(stream, &net.top1, d->top1_gradient, g3, d->top_in_gradient) ||
           device_interact_back(stream, &interact, VECTORS * count * DIM) ||
           layer_backward(stream, &net.bottom2, d->bottom2_gradient, g2, d->bottom1_gradient) ||
           layer_backward(stream, &net.bottom1, d->bottom1_gradient, g1, NULL);
}

int model_update(struct work *work, void *stream)
{
    const struct model *model = work->model;
    struct on_device *d = work->device;
    const struct sgd sgd = {model->weights, d->summed, rate};
    const struct adagrad adagrad = {.rows = model->rows,
                                    .stride = model->stride,
                                    .count = work->batch->count,
                                    .ranks = model->ranks,
                                    .offsets = d->offsets,
                                    .bag_of = d->bag_of,
                                    .slots = model->cache ? d->slots : d->asked_ids,
                                    .gradients = d->row_gradients,
                                    .rate = rate};
    return device_sgd(stream, &sgd, WEIGHTS) || device_adagrad(stream, &adagrad, work->asked) ||
           device_read(stream, &work->host->loss, &d->summed[WEIGHTS], sizeof(float));
}
