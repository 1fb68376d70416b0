/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlrm.c - a DLRM trained with libswpipe: one set of functions, driven by any plan that has their tasks.
 *
 *     ./dlrm sparse_dist.yaml --ranks 4                     four ranks in this process
 *     ./dlrm sparse_dist.yaml --ranks 4 --serial            the same without overlap: the same losses, bit for bit
 *     ./dlrm plain --ranks 4                                a loop without the library: again the same
 *     ./dlrm semi_sync.yaml --ranks 4                       rows miss the last update: the losses of plain --stale
 *     ./dlrm sparse_dist.yaml --ranks 2 --rank 0 --address 127.0.0.1:29500 &
 *     ./dlrm sparse_dist.yaml --ranks 2 --rank 1 --address 127.0.0.1:29500      two processes
 *     mpirun -n 2 ./dlrm_mpi sparse_dist.yaml                                   two that MPI starts (-DDLRM_MPI)
 *
 * README.md says how it is built, for a GPU too. It prints the loss of every iteration, in hexadecimal to be compared
 * bit for bit, and the time of an iteration.
 */
#include "app.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef DLRM_MPI
#include <swpipe_mpi.h>
#endif

/* ---- batches and losses ---------------------------------------------------------------------- */

struct batch *app_next_batch(struct app *app, int rank)
{
    int count = GLOBAL_BATCH / app->ranks;
    struct batch *batch = malloc(sizeof *batch);
    if (batch)
        data_fill(app->data, app->fetched[rank]++, rank * count, count, batch);
    return batch;
}

static int next_batch(void *arg, int rank, void **batch)
{
    struct app *app = arg;
    if (app->fetched[rank] == app->iterations)
        return 0;
    *batch = app_next_batch(app, rank);
    return *batch ? 1 : -1;
}

static void release_batch(void *arg, int rank, void *batch)
{
    (void)arg, (void)rank;
    free(batch);
}

/* A thread pushes to the GPU of its rank. */
static int started(void *arg, int rank, const char *group)
{
    (void)arg, (void)group;
    return device_choose(rank) < 0;
}

/* ---- a pipeline ------------------------------------------------------------------------------ */

/* Does the plan prefetch rows into a cache? A plan that cannot be opened is told when it is opened to run. */
static int has_prefetch(const struct app *app)
{
    const struct swpipe_config config = {.plan_file = app->plan, .proof_limit_ns = -1};
    struct swpipe *pipe;
    int found = 0;
    swpipe_open(&config, &pipe);
    for (int t = 0; pipe && t < swpipe_task_count(pipe); t++)
        found |= strcmp(swpipe_task_name(pipe, t), "Prefetch") == 0;
    swpipe_close(pipe);
    return found;
}

static void tell_recorded(struct swpipe *pipe)
{
    struct swpipe_recorded recorded;
    if (swpipe_recorded(pipe, &recorded) == SWPIPE_OK)
        printf("recorded: %s\n", recorded.legal == 1 ? "as the plan allows" : recorded.why);
}

static enum swpipe_status run_pipe(struct app *app, struct swpipe *pipe, double *seconds)
{
    const struct swpipe_source source = {next_batch, app};
    enum swpipe_status status = app->record ? swpipe_record(pipe, app->record) : SWPIPE_OK;
    if (status == SWPIPE_OK)
        status = app->serial ? swpipe_run_serial(pipe, &source, seconds)
                             : swpipe_run(pipe, &source, seconds);
    return status == SWPIPE_OK ? swpipe_drain(pipe) : status;
}

static void tell_warning(void *arg, const char *text)
{
    (void)arg;
    fputs(text, stderr);
}

static int run(struct app *app, struct swpipe_group *group)
{
    int first = app->rank < 0 ? 0 : app->rank;
    struct swpipe_config config = {
        .plan_file = app->plan,
        .driver = app->dataflow ? SWPIPE_DATAFLOW : SWPIPE_CLOCK,
        .device = device_is_cuda() ? SWPIPE_CUDA : SWPIPE_HOST,
        .gpu = device_is_cuda() ? SWPIPE_GPU(device_choose(first)) : 0,
        .ranks = app->ranks,
        .group = group,
        .message = app->quiet ? NULL : tell_warning,
        .hooks = {.release = release_batch, .arg = app, .started = started}};
    struct swpipe *pipe;
    double seconds = 0;
    config.tasks = tasks_of(app, &config.task_count);
    if (!app->models[first].cache)
        config.task_count--;
    enum swpipe_status status = swpipe_open(&config, &pipe);
    if (status == SWPIPE_OK)
        status = run_pipe(app, pipe, &seconds);
    if (status != SWPIPE_OK)
        fprintf(stderr, "dlrm: %s: %s\n", swpipe_status_name(status), swpipe_error(pipe));
    else if (!app->quiet)
        printf("%s: %.3f ms an iteration\n", device_name(),
               1e3 * seconds / (double)app->iterations);
    if (status == SWPIPE_OK && app->record)
        tell_recorded(pipe);
    swpipe_close(pipe);
    return status == SWPIPE_OK ? 0 : 1;
}

static enum swpipe_status join(const struct app *app, struct swpipe_group **out)
{
#ifdef DLRM_MPI
    (void)app;
    return swpipe_join_mpi(MPI_COMM_WORLD, out);
#else
    const struct swpipe_join join = {
        .rank = app->rank, .size = app->ranks, .address = app->address};
    return swpipe_join(&join, out);
#endif
}

static int run_in_group(struct app *app)
{
    struct swpipe_group *group;
    int failed = 1;
    if (join(app, &group) == SWPIPE_OK)
        failed = run(app, group);
    else
        fprintf(stderr, "dlrm: %s\n", swpipe_group_error(group));
    swpipe_leave(group);
    return failed;
}

static int run_plain(struct app *app)
{
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    if (plain_run(app) != 0) {
        fprintf(stderr, "dlrm: out of memory\n");
        return 1;
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    double seconds = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
    if (!app->quiet)
        printf("%s: %.3f ms an iteration\n", device_name(),
               1e3 * seconds / (double)app->iterations);
    return 0;
}

/* ---- models, and all of it ------------------------------------------------------------------- */

static void close_models(struct app *app, int from, int to)
{
    while (to > from)
        model_close(&app->models[--to]);
}

/* Those of the ranks in this process. */
static int open_models(struct app *app, int from, int to)
{
    int cached = app->plan && has_prefetch(app);
    for (int rank = from; rank < to; rank++) {
        if (device_choose(rank) >= 0 &&
            model_open(&app->models[rank], rank, app->ranks, app->sharding, cached) == 0)
            continue;
        fprintf(stderr, "dlrm: no memory for the model %s\n", device_error());
        close_models(app, from, rank);
        return -1;
    }
    return 0;
}

static int train(struct app *app)
{
    int from = app->rank < 0 ? 0 : app->rank, to = app->rank < 0 ? app->ranks : app->rank + 1;
    if (open_models(app, from, to) != 0)
        return 1;
    int failed = !app->plan ? run_plain(app) : app->address ? run_in_group(app) : run(app, NULL);
    for (int64_t i = 0; i < app->iterations && !failed && app->rank <= 0; i++)
        printf("loss %lld %a %f\n", (long long)i, (double)app->losses[i], (double)app->losses[i]);
    close_models(app, from, to);
    return failed;
}

static int train_on_data(struct app *app)
{
    char why[512];
    if (data_open(app->data_file, &app->data, why) != 0) {
        fprintf(stderr, "dlrm: %s\n", why);
        return 1;
    }
    app->losses = calloc((size_t)app->iterations, sizeof *app->losses);
    int failed = app->losses ? train(app) : 1;
    if (!app->losses)
        fprintf(stderr, "dlrm: no memory for the losses of %lld iterations\n",
                (long long)app->iterations);
    free(app->losses);
    data_close(app->data);
    return failed;
}

/* ---- the command line ------------------------------------------------------------------------ */

static int usage(void)
{
    fprintf(stderr,
            "usage: dlrm PLAN  [--ranks N] [--rank R --address HOST:PORT] [--serial | --dataflow]\n"
            "                  [--record FILE.db]\n"
            "       dlrm plain [--ranks N] [--stale]\n"
            "       both: [--iterations N] [--shard mixed|table|row] [--data FILE] [--quiet]\n");
    return 2;
}

static int parse_sharding(const char *word, enum sharding *out)
{
    static const char *const words[] = {"mixed", "table", "row"};
    for (int s = 0; s < 3; s++)
        if (strcmp(word, words[s]) == 0) {
            *out = (enum sharding)s;
            return 1;
        }
    return 0;
}

static int parse_flag(const char *word, struct app *app)
{
    const struct {
        const char *word;
        int *flag;
    } flags[] = {{"--serial", &app->serial},
                 {"--dataflow", &app->dataflow},
                 {"--quiet", &app->quiet},
                 {"--stale", &app->stale}};
    for (size_t f = 0; f < sizeof flags / sizeof *flags; f++)
        if (strcmp(word, flags[f].word) == 0)
            return *flags[f].flag = 1;
    return 0;
}

enum { MOST_ITERATIONS = 1000000000 };

static int parse_number(const char *word, const char *value, int64_t least, int64_t most,
                        int64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoll(value, &end, 10);
    if (end != value && *end == '\0' && errno == 0 && *out >= least && *out <= most)
        return 1;
    fprintf(stderr, "dlrm: %s: found '%s', expected a number from %lld to %lld\n", word, value,
            (long long)least, (long long)most);
    return 0;
}

static int parse_rank(const char *word, const char *value, int64_t least, int64_t most, int *out)
{
    int64_t number;
    if (!parse_number(word, value, least, most, &number))
        return 0;
    *out = (int)number;
    return 1;
}

static int parse_value(const char *word, const char *value, struct app *app)
{
    if (strcmp(word, "--ranks") == 0)
        return parse_rank(word, value, 1, MOST_RANKS, &app->ranks);
    if (strcmp(word, "--rank") == 0)
        return parse_rank(word, value, 0, MOST_RANKS - 1, &app->rank);
    if (strcmp(word, "--iterations") == 0)
        return parse_number(word, value, 1, MOST_ITERATIONS, &app->iterations);
    if (strcmp(word, "--address") == 0)
        app->address = value;
    else if (strcmp(word, "--data") == 0)
        app->data_file = value;
    else if (strcmp(word, "--record") == 0)
        app->record = value;
    else
        return strcmp(word, "--shard") == 0 && parse_sharding(value, &app->sharding);
    return 1;
}

static const char *why_not_plain(const struct app *app)
{
    if (device_is_cuda())
        return "plain runs on the host: use the dlrm that was built with device_host.c";
    if (app->address || app->rank >= 0)
        return "plain has all ranks in one process: --rank and --address are for a plan";
    if (app->serial || app->dataflow || app->record)
        return "--serial, --dataflow and --record are for a plan";
    return NULL;
}

/* A GPU has one rank of a process. NULL: the options make sense together. */
static const char *why_not(const struct app *app)
{
    if (GLOBAL_BATCH % app->ranks != 0)
        return "--ranks: the samples of an iteration cannot be divided among so many "
               "ranks";
    if (!app->plan)
        return why_not_plain(app);
    if (app->stale)
        return "--stale is for plain; semi_sync.yaml has rows that miss an update";
    if (app->serial && app->dataflow)
        return "--serial has no driver: leave --dataflow out";
    if (!app->address && app->rank >= 0)
        return "--rank needs --address, which all ranks have";
    if (!app->address && app->ranks > 1 && device_is_cuda())
        return "a process has one rank on a GPU: give --rank and --address";
    if (app->address && (app->rank < 0 || app->rank >= app->ranks))
        return "--address needs --rank, a number below that of --ranks";
    return NULL;
}

static int run_main(int argc, char **argv)
{
    static struct app app = {.ranks = 1, .rank = -1, .iterations = 40};
#ifdef DLRM_MPI
    MPI_Comm_rank(MPI_COMM_WORLD, &app.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &app.ranks);
    app.address = "MPI";
#endif
    if (argc < 2 || strncmp(argv[1], "--", 2) == 0)
        return usage();
    if (strcmp(argv[1], "plain") != 0)
        app.plan = argv[1];
    for (int i = 2; i < argc; i++)
        if (!parse_flag(argv[i], &app) &&
            (i + 1 == argc || !parse_value(argv[i], argv[i + 1], &app) || !++i))
            return usage();
    const char *why = why_not(&app);
    if (!why)
        return train_on_data(&app);
    fprintf(stderr, "dlrm: %s\n", why);
    return usage();
}

int main(int argc, char **argv)
{
#ifdef DLRM_MPI
    MPI_Init(&argc, &argv);
    int failed = run_main(argc, argv);
    MPI_Finalize();
    return failed;
#else
    return run_main(argc, argv);
#endif
}
