/*
 * exposed.c - what an iteration would gain if a task took no time: swpipe_profile.
 *
 * Source: TaskProfiler of the SWPipeline reference. Four phases: warm up; the baseline, the median of
 * rounds of serial iterations; the same with each task short-cut in turn; exposed(T) = max(0, baseline -
 * median with T short-cut).
 */
#include "gpu/swpipe_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/order.h"

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static enum swpipe_status iterate(struct swpipe *pipe, void *const *batches, int count)
{
    enum swpipe_status status = SWPIPE_OK;
    for (int i = 0; i < count && status == SWPIPE_OK; i++)
        status = swpipe_run_one_serial(pipe, batches, i);
    return status;
}

/* Seconds of an iteration, the median of the rounds. */
static enum swpipe_status measure(struct swpipe *pipe, void *const *batches,
                                  const struct swpipe_profile_options *options, double *rounds,
                                  double *out)
{
    enum swpipe_status status = iterate(pipe, batches, options->warmup);
    for (int r = 0; r < options->rounds && status == SWPIPE_OK; r++) {
        double start = now_seconds();
        status = iterate(pipe, batches, options->measure);
        rounds[r] = (now_seconds() - start) / options->measure;
    }
    if (status == SWPIPE_OK)
        *out = median(rounds, options->rounds);
    return status;
}

static bool is_skipped(const struct swpipe_profile_options *options, const char *task)
{
    for (size_t i = 0; i < options->skip_count; i++)
        if (strcmp(options->skip[i], task) == 0)
            return true;
    return false;
}

static enum swpipe_status measure_task(struct swpipe *pipe, void *const *batches,
                                       const struct swpipe_profile_options *options, double *rounds,
                                       double baseline, struct swpipe_exposed *out)
{
    double without = 0;
    enum swpipe_status status = swpipe_enable_shortcut(pipe, out->task);
    if (status == SWPIPE_OK)
        status = measure(pipe, batches, options, rounds, &without);
    if (status != SWPIPE_OK)
        return status;
    out->seconds = without < baseline ? baseline - without : 0;
    return swpipe_disable_shortcut(pipe, out->task);
}

static enum status check(struct swpipe *pipe, const struct swpipe_profile_options *options)
{
    if (options->warmup < 0 || options->measure < 1 || options->rounds < 1)
        return diag_error(&pipe->diag, STATUS_USAGE,
                          "warmup, measure and rounds of a profile: expected positive numbers");
    for (size_t i = 0; i < options->skip_count; i++)
        if (swpipe_find_task(pipe, options->skip[i]) < 0)
            return diag_error(&pipe->diag, STATUS_INPUT, "%s has no task '%s'", pipe->plan.file,
                              options->skip[i]);
    return STATUS_OK;
}

/* Tasks in topological order, none measured yet. */
static enum status list_tasks(struct swpipe *pipe)
{
    size_t count = pipe->plan.pipeline.task_count;
    int *order = calloc(count, sizeof *order);
    enum status status =
        order ? order_topological(&pipe->plan, order, &pipe->diag) : diag_no_memory(&pipe->diag);
    for (size_t i = 0; i < count && !status; i++)
        pipe->exposed[i] = (struct swpipe_exposed){pipe->plan.pipeline.tasks[order[i]].name, -1};
    free(order);
    return status;
}

static enum swpipe_status measure_all(struct swpipe *pipe, void *const *batches,
                                      const struct swpipe_profile_options *options, double *rounds,
                                      struct swpipe_profile *out)
{
    size_t count = pipe->plan.pipeline.task_count;
    enum swpipe_status status = measure(pipe, batches, options, rounds, &out->baseline_seconds);
    for (size_t i = 0; i < count && status == SWPIPE_OK; i++) {
        struct swpipe_exposed *exposed = &pipe->exposed[i];
        bool on = pipe->shortcuts[swpipe_find_task(pipe, exposed->task)].on;
        if (!on && !is_skipped(options, exposed->task))
            status = measure_task(pipe, batches, options, rounds, out->baseline_seconds, exposed);
    }
    out->tasks = pipe->exposed;
    out->task_count = count;
    return status;
}

enum swpipe_status swpipe_profile(struct swpipe *pipe, void *const *batches,
                                  const struct swpipe_profile_options *options,
                                  struct swpipe_profile *out)
{
    struct swpipe_profile_options filled = options ? *options : (struct swpipe_profile_options){0};
    filled.warmup = filled.warmup ? filled.warmup : 3;
    filled.measure = filled.measure ? filled.measure : 10;
    filled.rounds = filled.rounds ? filled.rounds : 3;
    if (!pipe->exposed)
        return swpipe_finish(pipe,
                             diag_error(&pipe->diag, STATUS_USAGE, "the pipeline did not open"));
    enum status status = check(pipe, &filled);
    if (!status)
        status = list_tasks(pipe);
    if (status)
        return swpipe_finish(pipe, status);
    double *rounds = calloc((size_t)filled.rounds, sizeof *rounds);
    if (!rounds)
        return swpipe_finish(pipe, diag_no_memory(&pipe->diag));
    struct swpipe_profile profile = {0};
    char *db = pipe->db; /* nothing of this is recorded */
    pipe->db = NULL;
    enum swpipe_status ended = swpipe_record(pipe, NULL);
    if (ended == SWPIPE_OK)
        ended = measure_all(pipe, batches, &filled, rounds, &profile);
    pipe->db = db;
    free(rounds);
    if (ended == SWPIPE_OK)
        *out = profile;
    return ended;
}

/* ---- the report ------------------------------------------------------------------------------ */

static void print_profile(const struct swpipe_profile *profile, FILE *out)
{
    double sum = 0, baseline = profile->baseline_seconds;
    int width = 4;
    for (size_t i = 0; i < profile->task_count; i++) {
        int length = (int)strlen(profile->tasks[i].task);
        width = length > width ? length : width;
    }
    fprintf(out, "Baseline serial iteration: %.3f ms\n\n", 1e3 * baseline);
    fprintf(out, "%-*s  %12s  %10s\n", width, "Task", "Exposed", "% baseline");
    for (size_t i = 0; i < profile->task_count; i++) {
        const struct swpipe_exposed *task = &profile->tasks[i];
        if (task->seconds < 0) {
            fprintf(out, "%-*s  %12s\n", width, task->task, "skipped");
            continue;
        }
        sum += task->seconds;
        fprintf(out, "%-*s  %9.3f ms  %9.1f%%\n", width, task->task, 1e3 * task->seconds,
                100 * task->seconds / baseline);
    }
    fprintf(out, "%-*s  %9.3f ms  %9.1f%%\n", width, "SUM", 1e3 * sum, 100 * sum / baseline);
}

char *swpipe_format_profile(struct swpipe *pipe, const struct swpipe_profile *profile)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out)
        print_profile(profile, out);
    if (!out || fclose(out) != 0) {
        free(text);
        text = NULL;
        swpipe_finish(pipe, diag_no_memory(&pipe->diag));
    }
    return text;
}
