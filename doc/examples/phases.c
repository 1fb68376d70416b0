/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phases.c - training whose plan or work changes at a certain batch.
 *
 *     cc phases.c $(pkg-config --cflags --libs swpipe) && ./a.out
 *
 * A plan says the same of every iteration, so that it can be proved for any number of them. A change that comes once is a
 * second plan: semi-synchronous training takes its first batches in step (TorchRec: start_batch=900, here 6), then the
 * pipeline is drained and the next one goes on with the same source, functions and model. A change inside a function,
 * as a compilation at the third call, needs no second plan.
 */
#include <stdio.h>
#include <swpipe.h>

enum { START_BATCH = 6, BATCHES = 16, COMPILE_ON_ITER = 3 };

struct training {
    int next, end; /* batches */
    int calls, compiled;
    long weights, embedding;
};

static int next_batch(void *arg, int rank, void **batch)
{
    struct training *training = arg;
    (void)rank;
    if (training->next == training->end)
        return 0;
    *batch = (void *)(intptr_t)training->next++;
    return 1;
}

/* Reads the weights: of the batch before in the first phase, of the one before that in the second. */
static int look_up(struct swpipe_context *context, void *arg)
{
    struct training *training = arg;
    training->embedding = training->weights;
    return swpipe_iteration(context) < 0;
}

static int train(struct swpipe_context *context, void *arg)
{
    struct training *training = arg;
    if (training->calls++ == COMPILE_ON_ITER)
        training->compiled = 1; /* a slow call; a plan for `predict` takes the time of the others */
    training->weights += (long)(intptr_t)swpipe_batch(context);
    return 0;
}

static const char in_step[] = "swplan: 1\n"
                              "name: in step\n"
                              "schedule:\n"
                              "  LookUp: {stage: 0, reads: [weights], writes: [rows]}\n"
                              "  Train: {stage: 0, reads: [rows], writes: [weights]}\n"
                              "intra_iter_deps: [[Train, LookUp]]\n"
                              "inter_iter_deps: [[LookUp, Train]]\n"
                              "buffers: {weights: {scope: shared, bytes: 8 B}}\n";
static const char semi_sync[] = "swplan: 1\n"
                                "name: semi-synchronous\n"
                                "schedule:\n"
                                "  LookUp: {stage: 0, reads: [weights], writes: [rows]}\n"
                                "  Train: {stage: 1, reads: [rows], writes: [weights]}\n"
                                "enqueue_order: [LookUp, Train]\n"
                                "intra_iter_deps: [[Train, LookUp]]\n"
                                "staleness: {weights: 1}\n"
                                "buffers: {weights: {scope: shared, bytes: 8 B}}\n";

static int phase(const char *plan, struct training *training, int end)
{
    const struct swpipe_task tasks[] = {{.name = "LookUp", .function = look_up, .arg = training},
                                        {.name = "Train", .function = train, .arg = training}};
    const struct swpipe_config config = {.plan_text = plan, .tasks = tasks, .task_count = 2};
    const struct swpipe_source source = {next_batch, training};
    struct swpipe_answer answer;
    struct swpipe *pipe;
    training->end = end;
    enum swpipe_status status = swpipe_open(&config, &pipe);
    if (status == SWPIPE_OK)
        status = swpipe_verify(pipe, 0, &answer);
    if (status == SWPIPE_OK)
        fputs(answer.text, stdout);
    if (status == SWPIPE_OK)
        status = swpipe_run(pipe, &source, NULL); /* to the end of this phase, then drained */
    if (status != SWPIPE_OK)
        fprintf(stderr, "phases: %s\n", swpipe_error(pipe));
    swpipe_close(pipe);
    return status == SWPIPE_OK;
}

int main(void)
{
    struct training training = {0};
    if (!phase(in_step, &training, START_BATCH) || !phase(semi_sync, &training, BATCHES))
        return 1;
    printf("%d batches, %d of them in step; compiled: %s; the sum is %ld\n", training.next,
           START_BATCH, training.compiled ? "yes" : "no", training.weights);
    return training.weights == BATCHES * (BATCHES - 1) / 2 ? 0 : 1;
}
