/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exposed.c - the gain of an iteration if a task took no time: swpipe_profile.
 *
 * Source: TaskProfiler of the SWPipeline reference. Four phases: warm up; the baseline, the median of
 * rounds of serial iterations; the same with each task short-cut in turn; exposed(T) = max(0, baseline -
 * median with T short-cut). Within a round no thread waits for the device: an iteration is over when it has
 * been submitted (`loose`), so that a task is not exposed where its launch hides behind device work.
 */
#include "swpipe_impl.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "plan/order.h"

static double median(double *values, int count)
{
    assert(count > 0);
    sort_double(values, (size_t)count);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The device has finished all of them in the end. */
static enum swpipe_status exposed_iterate(struct swpipe *pipe, void *const *batches, int count)
{
    enum swpipe_status status = SWPIPE_OK;
    for (int i = 0; i < count && status == SWPIPE_OK; i++)
        status = swpipe_run_one_serial(pipe, batches, i);
    if (status == SWPIPE_OK && count > 0 && !pipe_enter(pipe))
        return SWPIPE_USAGE;
    if (status == SWPIPE_OK && count > 0)
        status = swpipe_finish(pipe, engine_sync(&pipe->serial, pipe->progress_ns, &pipe->diag));
    return status;
}

/* Seconds of an iteration, the median of the rounds. */
static enum swpipe_status exposed_measure(struct swpipe *pipe, void *const *batches,
                                          const struct swpipe_profile_options *options,
                                          double *rounds, double *out)
{
    enum swpipe_status status = exposed_iterate(pipe, batches, options->warmup);
    for (int r = 0; r < options->rounds && status == SWPIPE_OK; r++) {
        double start = now_seconds();
        status = exposed_iterate(pipe, batches, options->measure);
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
        status = exposed_measure(pipe, batches, options, rounds, &without);
    if (status != SWPIPE_OK)
        return status;
    out->seconds = without < baseline ? baseline - without : 0;
    return swpipe_disable_shortcut(pipe, out->task);
}

static enum status exposed_check(struct swpipe *pipe, const struct swpipe_profile_options *options)
{
    if (options->warmup < 0 || options->measure < 1 || options->rounds < 1)
        return diag_error(&pipe->diag, STATUS_USAGE,
                          "warmup, measure and rounds of a profile: expected positive numbers");
    if (options->skip_count && !options->skip)
        return diag_error(&pipe->diag, STATUS_USAGE, "skip is NULL, but its count is %zu",
                          options->skip_count);
    for (size_t i = 0; i < options->skip_count; i++)
        if (!options->skip[i])
            return diag_error(&pipe->diag, STATUS_USAGE, "skip: name %zu is NULL", i);
        else if (swpipe_find_task(pipe, options->skip[i]) < 0)
            return swpipe_no_task(pipe, "skip: ", options->skip[i]);
    return STATUS_OK;
}

/* Tasks in topological order, none measured yet, once for each of `profiles`. */
static enum status exposed_list_tasks(struct swpipe *pipe, size_t profiles)
{
    size_t count = pipe->plan.pipeline.task_count;
    int *order = calloc(count, sizeof *order);
    struct swpipe_exposed *exposed =
        reallocarray(pipe->exposed, count * (profiles ? profiles : 1), sizeof *exposed);
    pipe->exposed = exposed ? exposed : pipe->exposed;
    enum status status = order && exposed ? order_topological(&pipe->plan, order, &pipe->diag)
                                          : diag_no_memory(&pipe->diag);
    for (size_t i = 0; i < count * profiles && !status; i++)
        exposed[i] = (struct swpipe_exposed){pipe->plan.pipeline.tasks[order[i % count]].name, -1};
    free(order);
    return status;
}

/* One profile; its tasks begin at `exposed`. */
static enum swpipe_status measure_all(struct swpipe *pipe, void *const *batches,
                                      const struct swpipe_profile_options *options, double *rounds,
                                      struct swpipe_exposed *exposed, struct swpipe_profile *out)
{
    size_t count = pipe->plan.pipeline.task_count;
    enum swpipe_status status =
        exposed_measure(pipe, batches, options, rounds, &out->baseline_seconds);
    for (size_t i = 0; i < count && status == SWPIPE_OK; i++) {
        bool on = pipe->shortcuts[swpipe_find_task(pipe, exposed[i].task)].on;
        if (!on && !is_skipped(options, exposed[i].task))
            status =
                measure_task(pipe, batches, options, rounds, out->baseline_seconds, &exposed[i]);
    }
    out->tasks = exposed;
    out->task_count = count;
    return status;
}

/* With nothing recorded, and iterations that do not wait for the device; as it was when it returns. */
static enum swpipe_status measure_many(struct swpipe *pipe, void *const *const *batches,
                                       size_t count, const struct swpipe_profile_options *options,
                                       double *rounds, struct swpipe_profile *out)
{
    char *db = pipe->db;
    pipe->db = NULL;
    enum swpipe_status status = swpipe_record(pipe, NULL); /* what was recorded is a run */
    pipe->loose = true;
    for (size_t i = 0; i < count && status == SWPIPE_OK; i++)
        status = measure_all(pipe, batches[i], options, rounds,
                             pipe->exposed + i * pipe->plan.pipeline.task_count, &out[i]);
    pipe->loose = false;
    pipe->db = db;
    if (!pipe_enter(pipe))
        return SWPIPE_USAGE;
    enum swpipe_status closed = swpipe_finish(pipe, swpipe_close_serial(pipe));
    return status == SWPIPE_OK ? closed : status;
}

enum swpipe_status swpipe_profile_many(struct swpipe *pipe, void *const *const *batches,
                                       size_t count, const struct swpipe_profile_options *options,
                                       struct swpipe_profile *out)
{
    struct swpipe_profile_options filled = options ? *options : (struct swpipe_profile_options){0};
    filled.warmup = filled.warmup ? filled.warmup : 3;
    filled.measure = filled.measure ? filled.measure : 10;
    filled.rounds = filled.rounds ? filled.rounds : 3;
    if (!pipe_enter(pipe))
        return SWPIPE_USAGE;
    double *rounds = NULL;
    enum status status = swpipe_must_be_open(pipe);
    if (!status && count > 0 && (!batches || !out))
        status = diag_error(&pipe->diag, STATUS_USAGE,
                            "a profile needs batches, and a place that is not NULL");
    if (!status)
        status = exposed_check(pipe, &filled);
    if (!status)
        status = exposed_list_tasks(pipe, count);
    if (!status && !(rounds = calloc((size_t)filled.rounds, sizeof *rounds)))
        status = diag_no_memory(&pipe->diag);
    if (swpipe_finish(pipe, status) != SWPIPE_OK)
        return status_for_caller(status);
    enum swpipe_status ended = measure_many(pipe, batches, count, &filled, rounds, out);
    free(rounds);
    return ended;
}

enum swpipe_status swpipe_profile(struct swpipe *pipe, void *const *batches,
                                  const struct swpipe_profile_options *options,
                                  struct swpipe_profile *out)
{
    struct swpipe_profile profile = {0};
    enum swpipe_status status =
        swpipe_profile_many(pipe, &batches, 1, options, out ? &profile : NULL);
    if (status == SWPIPE_OK)
        *out = profile;
    return status;
}
