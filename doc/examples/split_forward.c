/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split_forward.c - the forward of a sharded module, whole and cut into pieces that a pipeline can move.
 *
 *     cc split_forward.c $(pkg-config --cflags --libs swpipe) && ./a.out
 *
 * A sharded embedding module exchanges ids with the other ranks before it looks rows up. TorchRec rewrites the model so
 * that the exchange of the next batch runs beside the forward of this one. In C the caller cuts: the module offers its
 * halves, and each is the function of a task.
 *
 *     whole     Forward                                    start, wait, fetch rows, compute
 *     split     StartDist | WaitDist, Forward              as PipelinedForward
 *     prefetch  StartDist | WaitDist, Prefetch | Forward   as PrefetchPipelinedForward: Forward waits for nothing
 *
 * Between the halves results are handed over in the context of the iteration, by name. All three have the same losses,
 * and each plan is proved.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <swpipe.h>

enum { IDS = 4, ROWS = 64, BATCHES = 8 };

struct batch {
    int ids[IDS];
};

struct model {
    long table[ROWS];
    long losses[BATCHES];
    struct batch batches[BATCHES];
    int next;
};

/* ---- the module, which knows nothing of pipelines -------------------------------------------- */

/* An exchange under way: what ShardedModule.input_dist() returns. */
struct request {
    int ids[IDS];
};

static struct request *input_dist(const struct batch *batch)
{
    struct request *request = calloc(1, sizeof *request);
    if (request)
        memcpy(request->ids, batch->ids, sizeof request->ids);
    return request; /* with several ranks: swpipe_work() pushes the plan's all_to_all */
}

struct rows {
    long values[IDS];
};

static struct rows *fetch(const struct model *model, const struct request *request)
{
    struct rows *rows = calloc(1, sizeof *rows);
    for (int i = 0; rows && i < IDS; i++)
        rows->values[i] = model->table[request->ids[i]];
    return rows;
}

static long compute(const struct rows *rows)
{
    long loss = 0;
    for (int i = 0; i < IDS; i++)
        loss += (i + 1) * rows->values[i];
    return loss;
}

/* ---- hand-over: the fields of TrainPipelineContext are values by name ------------------------ */

static void free_value(void *value, void *arg)
{
    (void)arg;
    free(value);
}

static const struct swpipe_kind heap = {.release = free_value};

/* The value belongs to the iteration from now on: it is freed when that is retired, or fails. */
static int hand_over(struct swpipe_context *context, const char *name, void *value)
{
    if (value && swpipe_set(context, name, value, &heap) == 0)
        return 0;
    free(value);
    return swpipe_fail(context, "out of memory");
}

/* ---- the tasks ------------------------------------------------------------------------------- */

static int start_dist(struct swpipe_context *context, void *arg)
{
    (void)arg;
    return hand_over(context, "input_dist_requests", input_dist(swpipe_batch(context)));
}

/* The dependence on StartDist is the wait: on the host and on the device. */
static int wait_dist(struct swpipe_context *context, void *arg)
{
    (void)arg;
    return swpipe_get(context, "input_dist_requests") ? 0 : swpipe_fail(context, "no request");
}

static int prefetch(struct swpipe_context *context, void *arg)
{
    return hand_over(context, "rows", fetch(arg, swpipe_get(context, "input_dist_requests")));
}

/* Takes what is there already, and makes what is not: one function for all three plans. */
static int forward(struct swpipe_context *context, void *arg)
{
    struct model *model = arg;
    if (!swpipe_get(context, "input_dist_requests") && start_dist(context, arg) != 0)
        return -1;
    if (!swpipe_get(context, "rows") && prefetch(context, arg) != 0)
        return -1;
    model->losses[swpipe_iteration(context)] = compute(swpipe_get(context, "rows"));
    return 0;
}

/* ---- three plans ----------------------------------------------------------------------------- */

static const char whole[] = "swplan: 1\n"
                            "name: whole\n"
                            "schedule:\n"
                            "  Forward: {stage: 0, reads: [batch, tables], writes: [loss]}\n"
                            "inputs: [batch, tables]\n"
                            "buffers: {tables: {scope: shared, bytes: 1KiB}}\n";
static const char split[] =
    "swplan: 1\n"
    "name: split\n"
    "schedule:\n"
    "  StartDist: {stage: 0, stream: data_dist, reads: [batch], writes: [request]}\n"
    "  WaitDist: {stage: 1, stream: data_dist, reads: [request], writes: [ids]}\n"
    "  Forward: {stage: 1, reads: [ids, tables], writes: [loss]}\n"
    "intra_iter_deps: [[WaitDist, StartDist], [Forward, WaitDist]]\n"
    "inputs: [batch, tables]\n"
    "buffers: {tables: {scope: shared, bytes: 1KiB}}\n";
static const char prefetched[] =
    "swplan: 1\n"
    "name: prefetch\n"
    "schedule:\n"
    "  StartDist: {stage: 0, stream: data_dist, reads: [batch], writes: [request]}\n"
    "  WaitDist: {stage: 1, stream: prefetch, reads: [request], writes: [ids]}\n"
    "  Prefetch: {stage: 1, stream: prefetch, reads: [ids, tables], writes: [rows]}\n"
    "  Forward: {stage: 2, reads: [rows], writes: [loss]}\n"
    "intra_iter_deps: [[WaitDist, StartDist], [Prefetch, WaitDist], [Forward, Prefetch]]\n"
    "inputs: [batch, tables]\n"
    "buffers: {tables: {scope: shared, bytes: 1KiB}}\n";

static int next_batch(void *arg, int rank, void **batch)
{
    struct model *model = arg;
    (void)rank;
    if (model->next == BATCHES)
        return 0;
    *batch = &model->batches[model->next++];
    return 1;
}

/* The task table may name tasks of any of the plans: those of this one. */
static size_t tasks_of(const char *plan, struct model *model, struct swpipe_task tasks[4])
{
    const struct swpipe_task all[] = {{.name = "StartDist", .function = start_dist, .arg = model},
                                      {.name = "WaitDist", .function = wait_dist, .arg = model},
                                      {.name = "Prefetch", .function = prefetch, .arg = model},
                                      {.name = "Forward", .function = forward, .arg = model}};
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strstr(plan, all[i].name))
            tasks[count++] = all[i];
    return count;
}

static enum swpipe_status train(const char *plan, struct model *model)
{
    struct swpipe_task tasks[4];
    const struct swpipe_source source = {next_batch, model};
    const struct swpipe_config config = {
        .plan_text = plan, .tasks = tasks, .task_count = tasks_of(plan, model, tasks)};
    struct swpipe_answer answer;
    struct swpipe *pipe;
    model->next = 0;
    enum swpipe_status status = swpipe_open(&config, &pipe);
    if (status == SWPIPE_OK)
        status = swpipe_verify(pipe, 0, &answer);
    if (status == SWPIPE_OK)
        fputs(answer.text, stdout);
    if (status == SWPIPE_OK)
        status = swpipe_run(pipe, &source, NULL);
    if (status != SWPIPE_OK)
        fprintf(stderr, "split_forward: %s\n", swpipe_error(pipe));
    swpipe_close(pipe);
    return status;
}

static void fill(struct model *model)
{
    memset(model, 0, sizeof *model);
    for (int row = 0; row < ROWS; row++)
        model->table[row] = 10 * row;
    for (int b = 0; b < BATCHES; b++)
        for (int i = 0; i < IDS; i++)
            model->batches[b].ids[i] = (7 * b + 3 * i) % ROWS;
}

int main(void)
{
    static const char *const plans[] = {whole, split, prefetched};
    static struct model models[3];
    for (int i = 0; i < 3; i++) {
        fill(&models[i]);
        if (train(plans[i], &models[i]) != SWPIPE_OK)
            return 1;
        if (memcmp(models[i].losses, models[0].losses, sizeof models[0].losses) != 0)
            return 1;
    }
    printf("three forwards, the same losses: %ld to %ld\n", models[0].losses[0],
           models[0].losses[BATCHES - 1]);
    return 0;
}
