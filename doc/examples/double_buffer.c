/* SPDX-License-Identifier: Apache-2.0 */
/*
 * double_buffer.c - the smallest use of libswpipe: load the next batch while this one is computed.
 *
 *     cc double_buffer.c $(pkg-config --cflags --libs swpipe) && ./a.out
 *
 * Two tasks, each a C function, on two streams and two threads. A batch is a number; "loading" squares
 * it, "computing" adds it up. On the host device a stream is a thread, and swpipe_launch puts a
 * function into it; on a GPU the functions would push kernels to swpipe_stream(context).
 */
#include <stdio.h>
#include <stdlib.h>
#include <swpipe.h>

static const char plan[] =
    "swplan: 1\n"
    "name: double buffer\n"
    "schedule:\n"
    "  Load:    {stage: 0, stream: memcpy, thread_group: io, writes: [batch]}\n"
    "  Compute: {stage: 1, reads: [batch]}\n"
    "intra_iter_deps: [[Compute, Load]]\n";

/* The data of one launched function. They live until the device is done with the iteration: the context frees them. */
struct work {
    long input, *batch, *sum;
};

static void free_work(void *work, void *arg)
{
    (void)arg;
    free(work);
}

static const struct swpipe_kind work_kind = {.release = free_work};

static struct work *new_work(struct swpipe_context *context, const char *name)
{
    struct work *work = calloc(1, sizeof *work);
    if (work && swpipe_set(context, name, work, &work_kind) != 0) {
        free(work);
        work = NULL;
    }
    if (work)
        work->batch = swpipe_buffer(context, "batch", NULL); /* this iteration's own */
    else
        swpipe_fail(context, "out of memory");
    return work;
}

static void square(void *arg)
{
    struct work *work = arg;
    *work->batch = work->input * work->input;
}

static int load(struct swpipe_context *context, void *arg)
{
    struct work *work = new_work(context, "loading");
    (void)arg;
    if (!work)
        return -1;
    work->input = (long)(intptr_t)swpipe_batch(context);
    return swpipe_launch(context, square, work);
}

static void add(void *arg)
{
    struct work *work = arg;
    *work->sum += *work->batch;
}

static int compute(struct swpipe_context *context, void *arg)
{
    struct work *work = new_work(context, "computing");
    if (!work)
        return -1;
    work->sum = arg;
    return swpipe_launch(context, add, work);
}

static int next_number(void *arg, int rank, void **batch)
{
    int *next = arg;
    (void)rank;
    if (*next > 10)
        return 0;
    *batch = (void *)(intptr_t)(*next)++;
    return 1;
}

int main(void)
{
    long sum = 0;
    int next = 1;
    int64_t iteration;
    struct swpipe *pipe;
    const struct swpipe_task tasks[] = {{.name = "Load", .function = load},
                                        {.name = "Compute", .function = compute, .arg = &sum}};
    const struct swpipe_config config = {.plan_text = plan, .tasks = tasks, .task_count = 2};
    const struct swpipe_source source = {next_number, &next};
    enum swpipe_status status = swpipe_open(&config, &pipe);
    if (status == SWPIPE_OK)
        status = swpipe_fill(pipe, &source);
    while (status == SWPIPE_OK) {
        status = swpipe_progress(pipe, &source, &iteration);
        if (status == SWPIPE_OK)
            printf("iteration %lld is done\n", (long long)iteration);
    }
    if (status == SWPIPE_END)
        printf("the sum of the squares is %ld\n", sum);
    else
        fprintf(stderr, "double_buffer: %s\n", swpipe_error(pipe));
    swpipe_close(pipe);
    return status == SWPIPE_END ? 0 : 1;
}
