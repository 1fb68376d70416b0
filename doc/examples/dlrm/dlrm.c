/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlrm.c - a DLRM trained with libswpipe: one set of functions, driven by any plan that has their tasks.
 *
 *     cc *.c $(pkg-config --cflags --libs swpipe) -lm -o dlrm
 *     ./dlrm sparse_dist.yaml --ranks 4                     four ranks in this process
 *     ./dlrm sparse_dist.yaml --ranks 4 --serial            the same without overlap: the same losses, bit for bit
 *     ./dlrm sparse_dist.yaml --ranks 2 --rank 0 --address 127.0.0.1:29500 &
 *     ./dlrm sparse_dist.yaml --ranks 2 --rank 1 --address 127.0.0.1:29500      two processes
 *
 * --iterations N (40), --data FILE (lines as Criteo's), --record FILE.db, --dataflow, --quiet. It prints the loss of
 * every iteration in hexadecimal, and the time of an iteration.
 */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <swpipe.h>

enum { MOST_RANKS = 8 };

struct app {
    const char *plan, *data_file, *address, *record;
    int ranks, rank, serial, dataflow, quiet; /* rank -1: all are in this process */
    int64_t iterations;
    struct data *data;
    struct model models[MOST_RANKS];
    int64_t fetched[MOST_RANKS];
    float *losses; /* [iterations] */
};

/* ---- the tasks: each pushes its work and returns --------------------------------------------- */

static struct work *work_of(struct swpipe_context *context)
{
    return swpipe_get(context, "work");
}

/* Device work on the host device: in the order of the task's stream. */
static void run_ask(void *work)
{
    model_ask(work);
}

static void run_look_up(void *work)
{
    model_look_up(work);
}

static void run_forward(void *work)
{
    model_forward(work);
}

static void run_backward(void *work)
{
    model_backward(work);
}

static void run_update(void *work)
{
    model_update(work);
}

static size_t bags_of(const struct work *work)
{
    return (size_t)(TABLES * work->batch->count);
}

static int load(struct swpipe_context *context, void *arg)
{
    static const struct swpipe_kind kind = {NULL, work_close};
    struct app *app = arg;
    struct work *work = work_open(&app->models[swpipe_rank(context)], swpipe_batch(context));
    if (!work || swpipe_set(context, "work", work, &kind) != 0)
        return swpipe_fail(context, "out of memory");
    return swpipe_launch(context, run_ask, work);
}

static int input_dist_start(struct swpipe_context *context, void *arg)
{
    struct work *work = work_of(context);
    (void)arg;
    return swpipe_all_to_all(context, NULL, work->ask_lengths, work->asked_lengths, bags_of(work),
                             SWPIPE_I32);
}

/* The host has to know how many ids come before it can push their exchange. */
static int input_dist_wait(struct swpipe_context *context, void *arg)
{
    struct work *work = work_of(context);
    (void)arg;
    if (swpipe_sync(context) != 0)
        return -1;
    if (model_count_asked(work) != 0)
        return swpipe_fail(context, "out of memory");
    return swpipe_all_to_all_v(context, NULL, work->ask_ids, work->ask_counts, work->asked_ids,
                               work->asked_counts, SWPIPE_I64);
}

static int look_up(struct swpipe_context *context, void *arg)
{
    (void)arg;
    return swpipe_launch(context, run_look_up, work_of(context));
}

static int output_dist(struct swpipe_context *context, void *arg)
{
    struct work *work = work_of(context);
    (void)arg;
    return swpipe_all_to_all(context, NULL, work->answers, work->answered, bags_of(work) * DIM,
                             SWPIPE_F32);
}

static int forward(struct swpipe_context *context, void *arg)
{
    (void)arg;
    return swpipe_launch(context, run_forward, work_of(context));
}

static int backward(struct swpipe_context *context, void *arg)
{
    (void)arg;
    return swpipe_launch(context, run_backward, work_of(context));
}

static int grad_dist(struct swpipe_context *context, void *arg)
{
    struct work *work = work_of(context);
    (void)arg;
    return swpipe_all_to_all(context, NULL, work->turned, work->grads_of_rows, bags_of(work) * DIM,
                             SWPIPE_F32) ||
           swpipe_all_reduce(context, NULL, work->gradients, work->summed, WEIGHTS + 1, SWPIPE_F32);
}

static int update(struct swpipe_context *context, void *arg)
{
    struct work *work = work_of(context);
    (void)arg;
    swpipe_set_result(context, &work->summed[WEIGHTS]);
    return swpipe_launch(context, run_update, work);
}

/* ---- batches and losses ---------------------------------------------------------------------- */

static int next_batch(void *arg, int rank, void **batch)
{
    struct app *app = arg;
    int count = GLOBAL_BATCH / app->ranks;
    if (app->fetched[rank] == app->iterations)
        return 0;
    struct batch *filled = malloc(sizeof *filled);
    if (!filled)
        return -1;
    data_fill(app->data, app->fetched[rank]++, rank * count, count, filled);
    *batch = filled;
    return 1;
}

static void release_batch(void *arg, int rank, void *batch)
{
    (void)arg, (void)rank;
    free(batch);
}

/* The sum of all ranks' losses: the same on all of them. */
static void keep_loss(void *arg, const struct swpipe_retired *retired)
{
    struct app *app = arg;
    app->losses[retired->iteration] = *(float *)retired->result;
}

/* ---- run ------------------------------------------------------------------------------------- */

static void tell_recorded(struct swpipe *pipe)
{
    struct swpipe_recorded recorded;
    if (swpipe_recorded(pipe, &recorded) == SWPIPE_OK)
        printf("recorded: %s\n", recorded.legal == 1 ? "as the plan allows" : recorded.why);
}

static int run(struct app *app, struct swpipe_group *group)
{
    const struct swpipe_task tasks[] = {
        {"Load", load, app, NULL, 0},
        {"InputDistStart", input_dist_start, app, NULL, 0},
        {"InputDistWait", input_dist_wait, app, NULL, 0},
        {"Lookup", look_up, app, NULL, 0},
        {"OutputDist", output_dist, app, NULL, 0},
        {"Forward", forward, app, NULL, 0},
        {"Backward", backward, app, NULL, 0},
        {"GradDist", grad_dist, app, NULL, 0},
        {"Update", update, app, NULL, 0},
    };
    const struct swpipe_config config = {
        .plan_file = app->plan,
        .tasks = tasks,
        .task_count = sizeof tasks / sizeof *tasks,
        .driver = app->dataflow ? SWPIPE_DATAFLOW : SWPIPE_CLOCK,
        .ranks = app->ranks,
        .group = group,
        .hooks = {.retired = keep_loss, .release = release_batch, .arg = app}};
    const struct swpipe_source source = {next_batch, app};
    struct swpipe *pipe;
    double seconds = 0;
    enum swpipe_status status = swpipe_open(&config, &pipe);
    if (status == SWPIPE_OK && app->record)
        status = swpipe_record(pipe, app->record);
    if (status == SWPIPE_OK)
        status = app->serial ? swpipe_run_serial(pipe, &source, &seconds)
                             : swpipe_run(pipe, &source, &seconds);
    if (status == SWPIPE_OK)
        status = swpipe_drain(pipe);
    if (status != SWPIPE_OK)
        fprintf(stderr, "dlrm: %s: %s\n", swpipe_status_name(status), swpipe_error(pipe));
    else if (!app->quiet)
        printf("%.3f ms an iteration\n", 1e3 * seconds / (double)app->iterations);
    if (status == SWPIPE_OK && app->record)
        tell_recorded(pipe);
    swpipe_close(pipe);
    return status == SWPIPE_OK ? 0 : 1;
}

static int run_in_group(struct app *app)
{
    const struct swpipe_join join = {
        .rank = app->rank, .size = app->ranks, .address = app->address};
    struct swpipe_group *group;
    int failed = 1;
    if (swpipe_join(&join, &group) == SWPIPE_OK)
        failed = run(app, group);
    else
        fprintf(stderr, "dlrm: %s\n", swpipe_group_error(group));
    swpipe_leave(group);
    return failed;
}

static int train(struct app *app)
{
    int failed = 0, opened = 0;
    app->data = data_open(app->data_file);
    app->losses = calloc((size_t)app->iterations, sizeof *app->losses);
    for (; opened < app->ranks && !failed; opened += !failed)
        failed = model_open(&app->models[opened], opened, app->ranks);
    if (!app->data || !app->losses || failed) {
        fprintf(stderr, "dlrm: no memory, or no data in %s\n",
                app->data_file ? app->data_file : "it");
        failed = 1;
    }
    if (!failed)
        failed = app->address ? run_in_group(app) : run(app, NULL);
    for (int64_t i = 0; i < app->iterations && !failed && app->rank <= 0; i++)
        printf("loss %lld %a %f\n", (long long)i, (double)app->losses[i], (double)app->losses[i]);
    while (opened > 0)
        model_close(&app->models[--opened]);
    free(app->losses);
    data_close(app->data);
    return failed;
}

static int usage(void)
{
    fprintf(stderr,
            "usage: dlrm PLAN [--ranks N] [--rank R --address HOST:PORT] [--iterations N]\n"
            "            [--serial | --dataflow] [--data FILE] [--record FILE.db] [--quiet]\n");
    return 2;
}

int main(int argc, char **argv)
{
    static struct app app = {.ranks = 1, .rank = -1, .iterations = 40};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--serial") == 0)
            app.serial = 1;
        else if (strcmp(argv[i], "--dataflow") == 0)
            app.dataflow = 1;
        else if (strcmp(argv[i], "--quiet") == 0)
            app.quiet = 1;
        else if (argv[i][0] != '-' && !app.plan)
            app.plan = argv[i];
        else if (!value)
            return usage();
        else if (strcmp(argv[i], "--ranks") == 0)
            app.ranks = atoi(argv[++i]);
        else if (strcmp(argv[i], "--rank") == 0)
            app.rank = atoi(argv[++i]);
        else if (strcmp(argv[i], "--iterations") == 0)
            app.iterations = atoll(argv[++i]);
        else if (strcmp(argv[i], "--address") == 0)
            app.address = argv[++i];
        else if (strcmp(argv[i], "--data") == 0)
            app.data_file = argv[++i];
        else if (strcmp(argv[i], "--record") == 0)
            app.record = argv[++i];
        else
            return usage();
    }
    if (!app.plan || app.ranks < 1 || app.ranks > MOST_RANKS || GLOBAL_BATCH % app.ranks != 0 ||
        app.iterations < 1 || (app.address && (app.rank < 0 || app.rank >= app.ranks)))
        return usage();
    return train(&app);
}
