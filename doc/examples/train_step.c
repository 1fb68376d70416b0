/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_step.c - a plan from a file, both drivers, a serial baseline and the exposed time of each task.
 *
 *     cc train_step.c $(pkg-config --cflags --libs swpipe) && ./a.out sparse_dist.yaml [clock|dataflow [FILE.db]]
 *
 * With a FILE both runs are recorded: `swsim render FILE.db`, `swsim compare FILE.db`.
 *
 * Tasks do the work that the plan describes, except for one that is a function here: it counts, and then
 * pushes the plan's own work. One member of the configuration selects the driver.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <swpipe.h>

enum { ITERATIONS = 20, MAX_RANKS = 64 };

static int count_and_work(struct swpipe_context *context, void *arg)
{
    atomic_int *calls = arg;
    atomic_fetch_add(calls, 1);
    return swpipe_work(context);
}

/* Every rank gets ITERATIONS batches, which are empty: the plan's copies provide the numbers. */
static int next_batch(void *arg, int rank, void **batch)
{
    int *left = arg;
    *batch = NULL;
    return left[rank]-- > 0;
}

static void refill(int *left)
{
    for (int rank = 0; rank < MAX_RANKS; rank++)
        left[rank] = ITERATIONS;
}

static enum swpipe_status report(struct swpipe *pipe)
{
    void *batches[MAX_RANKS] = {NULL};
    const struct swpipe_profile_options options = {.warmup = 1, .measure = 3, .rounds = 3};
    struct swpipe_profile profile;
    enum swpipe_status status = swpipe_profile(pipe, batches, &options, &profile);
    if (status != SWPIPE_OK)
        return status;
    char *schedule = swpipe_format_schedule(pipe, 0);
    char *exposed = swpipe_format_profile(pipe, &profile);
    if (schedule && exposed)
        printf("%s\n%s", schedule, exposed);
    else
        status = SWPIPE_SYSTEM;
    free(schedule);
    free(exposed);
    return status;
}

static enum swpipe_status tell_recorded(struct swpipe *pipe, const char *what)
{
    struct swpipe_recorded recorded;
    enum swpipe_status status = swpipe_recorded(pipe, &recorded);
    if (status == SWPIPE_OK)
        printf("run %lld, %s: %lld iterations, %s %s\n", (long long)recorded.run, what,
               (long long)recorded.iterations,
               recorded.legal == 1 ? "as the plan allows" : "NOT AS THE PLAN ALLOWS", recorded.why);
    return status;
}

static enum swpipe_status compare(struct swpipe *pipe, int *left, const char *file)
{
    const struct swpipe_source source = {next_batch, left};
    double pipelined = 0, serial = 0;
    enum swpipe_status status = swpipe_record(pipe, file);
    refill(left);
    if (status == SWPIPE_OK)
        status = swpipe_run(pipe, &source, &pipelined);
    if (status == SWPIPE_OK && file)
        status = tell_recorded(pipe, "pipelined");
    refill(left);
    if (status == SWPIPE_OK)
        status = swpipe_run_serial(pipe, &source, &serial);
    if (status == SWPIPE_OK)
        status = swpipe_record(pipe, NULL); /* the serial run is complete */
    if (status == SWPIPE_OK && file)
        status = tell_recorded(pipe, "serial");
    if (status == SWPIPE_OK)
        printf("pipelined %.2f ms, serial %.2f ms an iteration\n\n", 1e3 * pipelined / ITERATIONS,
               1e3 * serial / ITERATIONS);
    return status;
}

int main(int argc, char **argv)
{
    int left[MAX_RANKS];
    atomic_int calls = 0;
    struct swpipe *pipe;
    if (argc < 2 || argc > 4) {
        fprintf(stderr, "usage: train_step PLAN [clock|dataflow [FILE.db]]\n");
        return 2;
    }
    const struct swpipe_task task = {.name = "Forward", .function = count_and_work, .arg = &calls};
    const struct swpipe_config config = {
        .plan_file = argv[1],
        .tasks = &task,
        .task_count = 1,
        .driver = argc > 2 && strcmp(argv[2], "dataflow") == 0 ? SWPIPE_DATAFLOW : SWPIPE_CLOCK};
    enum swpipe_status status = swpipe_open(&config, &pipe);
    if (status == SWPIPE_OK)
        status = compare(pipe, left, argc > 3 ? argv[3] : NULL);
    if (status == SWPIPE_OK)
        status = report(pipe);
    if (status != SWPIPE_OK)
        fprintf(stderr, "train_step: %s: %s\n", swpipe_status_name(status), swpipe_error(pipe));
    else
        printf("Forward was called %d times\n", atomic_load(&calls));
    swpipe_close(pipe);
    return status == SWPIPE_OK ? 0 : 1;
}
