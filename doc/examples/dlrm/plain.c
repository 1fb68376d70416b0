/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain.c - the training loop without a pipeline: all ranks in one thread, one step after the other, and exchanges that
 * copy memory. It shares the arithmetic with the pipelines and nothing else, so it says what their losses have to be.
 */
#include "app.h"

#include <stdlib.h>
#include <string.h>

struct iteration {
    struct work *works[MOST_RANKS];
    struct batch *batches[MOST_RANKS];
};

/* ---- exchanges ------------------------------------------------------------------------------- */

/* Block `to` of each rank's array goes to block `from` of the other's. */
static void all_to_all(int ranks, const void *const *send, void *const *receive, size_t block_bytes)
{
    for (size_t from = 0; from < (size_t)ranks; from++)
        for (size_t to = 0; to < (size_t)ranks; to++)
            memcpy((char *)receive[to] + from * block_bytes,
                   (const char *)send[from] + to * block_bytes, block_bytes);
}

/* Blocks of ids have lengths of their own, and follow each other without gaps. */
static void exchange_ids(struct work *const *works, int ranks)
{
    for (int to = 0; to < ranks; to++) {
        int64_t *at = works[to]->device->asked_ids;
        for (int from = 0; from < ranks; from++) {
            const int64_t *ids = works[from]->device->ask_ids;
            for (int before = 0; before < to; before++)
                ids += works[from]->ask_counts[before];
            memcpy(at, ids, works[from]->ask_counts[to] * sizeof *ids);
            at += works[from]->ask_counts[to];
        }
    }
}

/* In the order of the ranks. */
static void all_reduce(struct work *const *works, int ranks)
{
    for (int i = 0; i < WEIGHTS + 1; i++) {
        float sum = works[0]->device->gradients[i];
        for (int r = 1; r < ranks; r++)
            sum += works[r]->device->gradients[i];
        for (int r = 0; r < ranks; r++)
            works[r]->device->summed[i] = sum;
    }
}

/* ---- an iteration ---------------------------------------------------------------------------- */

static size_t bags_of(const struct iteration *it)
{
    return (size_t)(TABLES * it->batches[0]->count);
}

static void each(const struct app *app, struct iteration *it, model_step *step)
{
    for (int r = 0; r < app->ranks; r++)
        step(it->works[r], NULL);
}

static void end(const struct app *app, struct iteration *it)
{
    for (int r = 0; r < app->ranks; r++) {
        if (it->works[r])
            work_close(it->works[r]);
        free(it->batches[r]);
    }
}

static int begin(struct app *app, struct iteration *it)
{
    int failed = 0;
    *it = (struct iteration){0};
    for (int r = 0; r < app->ranks && !failed; r++) {
        it->batches[r] = app_next_batch(app, r);
        it->works[r] = it->batches[r] ? work_open(&app->models[r], it->batches[r]) : NULL;
        failed = !it->works[r];
    }
    if (failed)
        end(app, it);
    return failed ? -1 : 0;
}

/* Load the batch and send its ids to their owners. */
static void input_dist(const struct app *app, struct iteration *it)
{
    const void *send[MOST_RANKS];
    void *receive[MOST_RANKS];
    for (int r = 0; r < app->ranks; r++) {
        model_ask(it->works[r]);
        send[r] = it->works[r]->device->ask_lengths;
        receive[r] = it->works[r]->device->asked_lengths;
    }
    each(app, it, model_load);
    all_to_all(app->ranks, send, receive, bags_of(it) * sizeof(int32_t));
    each(app, it, model_fetch_lengths);
    for (int r = 0; r < app->ranks; r++)
        model_count_asked(it->works[r]);
    exchange_ids(it->works, app->ranks);
}

static void look_up(const struct app *app, struct iteration *it)
{
    const void *send[MOST_RANKS];
    void *receive[MOST_RANKS];
    for (int r = 0; r < app->ranks; r++) {
        send[r] = it->works[r]->device->answers;
        receive[r] = it->works[r]->device->answered;
    }
    each(app, it, model_look_up);
    all_to_all(app->ranks, send, receive, bags_of(it) * DIM * sizeof(float));
}

static void train(const struct app *app, struct iteration *it)
{
    const void *send[MOST_RANKS];
    void *receive[MOST_RANKS];
    for (int r = 0; r < app->ranks; r++) {
        send[r] = it->works[r]->device->turned;
        receive[r] = it->works[r]->device->row_gradients;
    }
    each(app, it, model_forward);
    each(app, it, model_backward);
    all_to_all(app->ranks, send, receive, bags_of(it) * DIM * sizeof(float));
    all_reduce(it->works, app->ranks);
    each(app, it, model_update);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static int prepare(struct app *app, struct iteration *it)
{
    if (begin(app, it) != 0)
        return -1;
    input_dist(app, it);
    return 0;
}

int plain_run(struct app *app)
{
    struct iteration now, next;
    if (prepare(app, &now) != 0)
        return -1;
    look_up(app, &now);
    for (int64_t i = 0; i < app->iterations; i++) {
        if (prepare(app, &next) != 0) {
            end(app, &now);
            return -1;
        }
        if (app->stale)
            look_up(app, &next);
        train(app, &now);
        if (!app->stale)
            look_up(app, &next);
        app->losses[i] = now.works[0]->host->loss;
        end(app, &now);
        now = next;
    }
    end(app, &now);
    return 0;
}
