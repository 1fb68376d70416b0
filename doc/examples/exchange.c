/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.c - three stages on memory of the program's own: copy in, all-to-all, train. Ranks in one process, or one each.
 *
 *     cc exchange.c $(pkg-config --cflags --libs swpipe) && ./a.out                 both ranks in this process
 *     ./a.out 0 127.0.0.1:7788 & ./a.out 1 127.0.0.1:7788                           a process for each
 *
 * A batch has ids; each belongs to a row of a table, and row r lies on rank r % RANKS. CopyIn copies the batch, Exchange sends
 * each rank its ids, Train updates the rows. While one batch trains, the next is exchanged and the one after it copied. The
 * plan is proved when it is opened; so the losses are those of a serial run.
 *
 * Each batch in flight has a struct work, a value of its iteration, which is freed when its device work is done. So a loss is
 * read where the iteration is retired, under `retire: device`: it is there by then, and the value is there still.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <swpipe.h>

enum { RANKS = 2, EACH = 64, ROWS = 100, BATCHES = 30 };

static const char plan[] =
    "swplan: 1\n"
    "name: exchange\n"
    "ranks: 2\n"
    "retire: device\n"
    "schedule:\n"
    "  CopyIn: {stage: 0, stream: memcpy, thread_group: io, time: 100us, writes: [ids]}\n"
    "  Exchange:\n"
    "    {stage: 1, stream: dist, thread_group: dist, globally_ordered: true, time: 100us,\n"
    "     reads: [ids], writes: [mine], work: {collective: all_to_all, comm: dp, bytes: 1KiB}}\n"
    "  Train: {stage: 2, thread_group: train, time: 200us, reads: [mine], writes: [table]}\n"
    "intra_iter_deps: [[Exchange, CopyIn], [Train, Exchange]] # without one: a race, and no proof\n"
    "buffers: {table: {scope: shared}}\n";

/* A rank of this process. */
struct shard {
    double rows[ROWS];
    double losses[BATCHES];
    int given; /* batches */
};

struct model {
    struct shard shards[RANKS];
};

struct batch {
    int64_t ids[RANKS][EACH]; /* by the rank that has their rows */
};

struct work {
    const struct batch *batch;
    struct shard *shard;
    int64_t ids[RANKS][EACH], mine[RANKS][EACH];
    double loss;
};

/* ---- tasks ----------------------------------------------------------------------------------- */

static void free_work(void *work, void *arg)
{
    (void)arg;
    free(work);
}

/* The iteration's own; the first task makes it. */
static struct work *work_of(struct swpipe_context *context, struct model *model)
{
    static const struct swpipe_kind kind = {.release = free_work};
    struct work *work = swpipe_get(context, "work");
    if (work)
        return work;
    work = calloc(1, sizeof *work);
    if (!work || swpipe_set(context, "work", work, &kind) != 0) {
        free(work);
        swpipe_fail(context, "out of memory");
        return NULL;
    }
    work->batch = swpipe_batch(context);
    work->shard = &model->shards[swpipe_rank(context)];
    return work;
}

static void copy(void *arg)
{
    struct work *work = arg;
    memcpy(work->ids, work->batch->ids, sizeof work->ids);
}

static int copy_in(struct swpipe_context *context, void *model)
{
    struct work *work = work_of(context, model);
    return work ? swpipe_launch(context, copy, work) : -1;
}

static int exchange(struct swpipe_context *context, void *model)
{
    struct work *work = work_of(context, model);
    return work ? swpipe_all_to_all(context, "dp", work->ids, work->mine, EACH, SWPIPE_I64) : -1;
}

static void update(void *arg)
{
    struct work *work = arg;
    for (int i = 0; i < RANKS * EACH; i++) {
        double *row = &work->shard->rows[work->mine[i / EACH][i % EACH] / RANKS];
        double error = *row - 1;
        work->loss += error * error;
        *row -= .05 * error;
    }
}

static int train(struct swpipe_context *context, void *model)
{
    struct work *work = work_of(context, model);
    if (!work)
        return -1;
    swpipe_set_result(context, &work->loss);
    return swpipe_launch(context, update, work);
}

/* ---- batches and losses ---------------------------------------------------------------------- */

static int next_batch(void *arg, int rank, void **out)
{
    struct shard *shard = &((struct model *)arg)->shards[rank];
    struct batch *batch = shard->given < BATCHES ? malloc(sizeof *batch) : NULL;
    if (!batch)
        return shard->given < BATCHES ? -1 : 0;
    for (int to = 0; to < RANKS; to++)
        for (int i = 0; i < EACH; i++)
            batch->ids[to][i] =
                RANKS * ((31 * shard->given + 7 * rank + (to + 1) * i * i) % ROWS) + to;
    shard->given++;
    *out = batch;
    return 1;
}

static void release_batch(void *arg, int rank, void *batch)
{
    (void)arg, (void)rank;
    free(batch);
}

static void keep_loss(void *arg, const struct swpipe_retired *retired)
{
    struct model *model = arg;
    model->shards[retired->rank].losses[retired->iteration] = *(double *)retired->result;
}

static void tell(void *arg, const char *text)
{
    (void)arg;
    fputs(text, stderr);
}

/* ---- run ------------------------------------------------------------------------------------- */

/* Serial, and then pipelined from the same table. */
static enum swpipe_status run(struct swpipe *pipe, struct model *model, const char *how)
{
    const struct swpipe_source source = {next_batch, model};
    double seconds;
    memset(model, 0, sizeof *model);
    enum swpipe_status status = strcmp(how, "serial") == 0
                                    ? swpipe_run_serial(pipe, &source, &seconds)
                                    : swpipe_run(pipe, &source, &seconds);
    for (int rank = 0; rank < RANKS && status == SWPIPE_OK; rank++)
        if (model->shards[rank].given) /* it is here */
            printf("%s, rank %d: loss %.17g, then %.17g\n", how, rank,
                   model->shards[rank].losses[0], model->shards[rank].losses[BATCHES - 1]);
    return status;
}

static enum swpipe_status join(int argc, char **argv, struct swpipe_group **group)
{
    if (argc < 3)
        return SWPIPE_OK; /* all ranks are here */
    const struct swpipe_join join = {.rank = atoi(argv[1]), .size = RANKS, .address = argv[2]};
    enum swpipe_status status = (enum swpipe_status)swpipe_join(&join, group);
    if (status != SWPIPE_OK)
        fprintf(stderr, "exchange: %s\n", swpipe_group_error(*group));
    return status;
}

static enum swpipe_status train_both_ways(struct swpipe_group *group)
{
    static struct model model;
    const struct swpipe_task tasks[] = {{.name = "CopyIn", .function = copy_in, .arg = &model},
                                        {.name = "Exchange", .function = exchange, .arg = &model},
                                        {.name = "Train", .function = train, .arg = &model}};
    const struct swpipe_config config = {
        .plan_file = "exchange.c",
        .plan_text = plan,
        .tasks = tasks,
        .task_count = 3,
        .group = group,
        .message = tell,
        .hooks = {.retired = keep_loss, .release = release_batch, .arg = &model}};
    struct swpipe_answer answer;
    struct swpipe *pipe;
    enum swpipe_status status = swpipe_open(&config, &pipe);
    if (status == SWPIPE_OK)
        status = swpipe_verify(pipe, 0, &answer);
    if (status == SWPIPE_OK)
        fputs(answer.text, stdout);
    if (status == SWPIPE_OK)
        status = run(pipe, &model, "serial");
    if (status == SWPIPE_OK)
        status = run(pipe, &model, "pipelined");
    if (status != SWPIPE_OK)
        fprintf(stderr, "exchange: %s: %s\n", swpipe_status_name(status), swpipe_error(pipe));
    swpipe_close(pipe);
    return status;
}

int main(int argc, char **argv)
{
    struct swpipe_group *group = NULL;
    enum swpipe_status status = join(argc, argv, &group);
    if (status == SWPIPE_OK)
        status = train_both_ways(group);
    swpipe_leave(group);
    return status == SWPIPE_OK ? 0 : 1;
}
