/* SPDX-License-Identifier: Apache-2.0 */
/*
 * staged.c - a pipeline that prepares batches for a loop of one's own, as TorchRec's StagedTrainPipeline.
 *
 *     cc staged.c $(pkg-config --cflags --libs swpipe) && ./a.out
 *
 * The stages end with a task that hands the prepared batch out: it puts it where the loop finds it. swpipe_progress says
 * that the oldest one is ready. A value in the context is freed with its iteration; what the loop gets belongs to the
 * loop. The callbacks of the reference are places in this program: the source is asked for every batch (fill), and its
 * answer 0 is the end of the data (data exhausted); swpipe_drain and swpipe_fill are set_flush.
 */
#include <stdio.h>
#include <stdlib.h>
#include <swpipe.h>

enum { BATCHES = 7, DEPTH = 3 };

static const char plan[] = "swplan: 1\n"
                           "name: staged\n"
                           "schedule:\n"
                           "  Copy: {stage: 0, stream: memcpy, writes: [raw]}\n"
                           "  Sort: {stage: 1, stream: sort, reads: [raw], writes: [sorted]}\n"
                           "  HandOut: {stage: 2, reads: [sorted]}\n"
                           "intra_iter_deps: [[Sort, Copy], [HandOut, Sort]]\n";

struct loop {
    int next;
    int *ready[DEPTH + 1]; /* by iteration; no more are in flight */
    long sum;
};

static int next_batch(void *arg, int rank, void **batch)
{
    struct loop *loop = arg;
    (void)rank;
    if (loop->next == BATCHES) {
        puts("data exhausted");
        return 0;
    }
    *batch = (void *)(intptr_t)loop->next++;
    return 1;
}

static int copy(struct swpipe_context *context, void *arg)
{
    int *value = malloc(sizeof *value);
    (void)arg;
    if (!value || swpipe_set(context, "batch", value, NULL) != 0) {
        free(value);
        return swpipe_fail(context, "out of memory");
    }
    *value = (int)(intptr_t)swpipe_batch(context);
    return 0;
}

static int sort(struct swpipe_context *context, void *arg)
{
    (void)arg;
    *(int *)swpipe_get(context, "batch") *= 2;
    return 0;
}

/* From here on the loop owns it. */
static int hand_out(struct swpipe_context *context, void *arg)
{
    struct loop *loop = arg;
    loop->ready[swpipe_iteration(context) % (DEPTH + 1)] = swpipe_get(context, "batch");
    return 0;
}

int main(void)
{
    struct loop loop = {0};
    struct swpipe *pipe;
    int64_t iteration;
    const struct swpipe_task tasks[] = {{.name = "Copy", .function = copy},
                                        {.name = "Sort", .function = sort},
                                        {.name = "HandOut", .function = hand_out, .arg = &loop}};
    const struct swpipe_config config = {.plan_text = plan, .tasks = tasks, .task_count = 3};
    const struct swpipe_source source = {next_batch, &loop};
    enum swpipe_status status = swpipe_open(&config, &pipe);
    if (status == SWPIPE_OK)
        status = swpipe_fill(pipe, &source);
    while (status == SWPIPE_OK &&
           (status = swpipe_progress(pipe, &source, &iteration)) == SWPIPE_OK) {
        int *batch = loop.ready[iteration % (DEPTH + 1)];
        loop.sum += *batch; /* forward, backward, step: the loop's own */
        free(batch);
    }
    if (status == SWPIPE_END)
        printf("trained on %d batches, the sum is %ld\n", loop.next, loop.sum);
    else
        fprintf(stderr, "staged: %s\n", swpipe_error(pipe));
    swpipe_close(pipe);
    return status == SWPIPE_END && loop.sum == BATCHES * (BATCHES - 1) ? 0 : 1;
}
