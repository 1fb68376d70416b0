/* SPDX-License-Identifier: Apache-2.0 */
/* library_runs.c - see library_runs.h. */
#include "library_runs.h"

#include <stdlib.h>

#include "base/json.h"
#include "plan/text/print.h"
#include "gpu/lib/swpipe_impl.h"

static enum status library_check(struct app *app, struct swpipe *pipe, enum swpipe_status status)
{
    static const enum status meanings[] = {
        [SWPIPE_OK] = STATUS_OK,           [SWPIPE_END] = STATUS_OK,
        [SWPIPE_FAILED] = STATUS_VIOLATED, [SWPIPE_TIMEOUT] = STATUS_VIOLATED,
        [SWPIPE_USAGE] = STATUS_USAGE,     [SWPIPE_INPUT] = STATUS_INPUT,
        [SWPIPE_SYSTEM] = STATUS_SYSTEM};
    enum status meaning = meanings[status];
    return meaning ? diag_error(&app->diag, meaning, "%s", swpipe_error(pipe)) : STATUS_OK;
}

/* *pipe is closed by the caller, also after a failure. */
static enum status library_open(struct app *app, const struct plan *plan,
                                struct swpipe_config config, struct swpipe **pipe)
{
    enum status status = plan_text_in(plan, &app->arena, &config.plan_text, &app->diag);
    if (status != STATUS_OK)
        return status;
    config.plan_file = plan->file;
    enum swpipe_status opened = swpipe_open(&config, pipe);
    return library_check(app, *pipe, opened);
}

/* ---- what each task adds --------------------------------------------------------------------- */

static enum status exposure_write_profile(struct app *app, const struct plan *plan,
                                          const struct exposure_options *options,
                                          const struct swpipe_profile *profile)
{
    struct json json;
    json_open(&json, stdout);
    json_begin_document(&json, DOCUMENT_EXPOSURE);
    json_put_string(&json, "plan", plan->name);
    json_put_string(&json, "device", device_kind_key(options->device));
    json_put_double(&json, "baseline_ns", 1e9 * profile->baseline_seconds);
    json_begin_object_at(&json, "exposed_ns");
    for (size_t i = 0; i < profile->task_count; i++)
        json_put_double(&json, profile->tasks[i].task, 1e9 * profile->tasks[i].seconds);
    json_end_object(&json);
    json_end_object(&json);
    return json_close(&json, &app->diag);
}

static enum status print_profile(struct app *app, const struct plan *plan,
                                 const struct exposure_options *options, struct swpipe *pipe,
                                 const struct swpipe_profile *profile)
{
    char *text = swpipe_format_profile(pipe, profile);
    if (!text)
        return diag_no_memory(&app->diag);
    printf("%s: exposed time of each task, on %s, one task after another\n\n%s", plan->name,
           device_kind_key(options->device), text);
    free(text);
    return STATUS_OK;
}

static enum status exposure_measure(struct app *app, const struct plan *plan,
                                    const struct exposure_options *options, struct swpipe *pipe)
{
    int ranks = options->ranks ? options->ranks : plan_rank_count(plan);
    const struct swpipe_profile_options how = {.measure = options->iterations};
    struct swpipe_profile profile;
    void **batches = calloc((size_t)ranks, sizeof *batches); /* the plan's copies bring numbers */
    if (!batches)
        return diag_no_memory(&app->diag);
    enum status status = library_check(app, pipe, swpipe_profile(pipe, batches, &how, &profile));
    free(batches);
    if (status != STATUS_OK)
        return status;
    return app->json ? exposure_write_profile(app, plan, options, &profile)
                     : print_profile(app, plan, options, pipe, &profile);
}

enum status exposure_show(struct app *app, const struct plan *plan,
                          const struct exposure_options *options)
{
    struct swpipe *pipe = NULL;
    const struct swpipe_config config = {
        .device = options->device == DEVICE_KIND_CUDA ? SWPIPE_CUDA : SWPIPE_HOST,
        .ranks = options->ranks,
        .wait_timeout_ns = options->timeout_ns,
        .progress_timeout_ns = options->timeout_ns};
    enum status status = library_open(app, plan, config, &pipe);
    if (status == STATUS_OK)
        status = exposure_measure(app, plan, options, pipe);
    swpipe_close(pipe);
    return status;
}

/* ---- tasks put back -------------------------------------------------------------------------- */

/* Batches; the plan's copies bring numbers. */
struct feeder {
    int64_t left; /* of all ranks */
    const atomic_int *stop;
};

/* Ranks ask in turn: once one has a batch, all get one. */
static int next_batch(void *arg, int rank, void **batch)
{
    struct feeder *feeder = arg;
    *batch = NULL;
    if (rank == 0 && feeder->stop && atomic_load(feeder->stop) != RUNTIME_GO)
        feeder->left = 0;
    return feeder->left > 0 ? (feeder->left--, 1) : 0;
}

static enum status keep_results(struct app *app, struct swpipe *pipe,
                                const struct shortcut_run *how)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < how->count && status == STATUS_OK; i++)
        status = library_check(app, pipe, swpipe_enable_shortcut(pipe, how->tasks[i]));
    return status ? status : library_check(app, pipe, swpipe_run_one_serial(pipe, NULL, 0));
}

static enum status shortcut_run_recorded(struct app *app, struct swpipe *pipe,
                                         const struct runtime_options *options,
                                         const struct shortcut_run *how)
{
    struct feeder feeder = {options->iterations * pipe->ranks, how->stop};
    const struct swpipe_source source = {next_batch, &feeder};
    enum status status =
        library_check(app, pipe, swpipe_record(pipe, options->db ? options->db : ""));
    if (status == STATUS_OK)
        status = library_check(app, pipe,
                               options->serial ? swpipe_run_serial(pipe, &source, NULL)
                                               : swpipe_run(pipe, &source, NULL));
    enum status drained = library_check(app, pipe, swpipe_drain(pipe));
    return status ? status : drained;
}

enum status shortcut_run(struct app *app, const struct plan *plan,
                         const struct runtime_options *options, const struct shortcut_run *how,
                         struct swpipe **pipe, const struct runtime_result **out)
{
    *pipe = NULL;
    *out = NULL;
    const struct swpipe_config config = {
        .driver = options->driver == DRIVER_DATAFLOW ? SWPIPE_DATAFLOW : SWPIPE_CLOCK,
        .device = options->device == DEVICE_KIND_CUDA ? SWPIPE_CUDA : SWPIPE_HOST,
        .ranks = options->ranks,
        .max_depth = options->max_depth,
        .wait_timeout_ns = options->timeout_ns,
        .progress_timeout_ns = options->timeout_ns};
    enum status status = library_open(app, plan, config, pipe);
    if (status == STATUS_OK)
        status = keep_results(app, *pipe, how);
    if (status == STATUS_OK)
        status = shortcut_run_recorded(app, *pipe, options, how);
    if (!*pipe || !(*pipe)->recorded.is)
        return status;
    *out = &(*pipe)->recorded.result;
    if (status == STATUS_OK && how->stop && atomic_load(how->stop) != RUNTIME_GO)
        status =
            diag_error(&app->diag, STATUS_VIOLATED, "interrupted: what was in flight has finished");
    if (status == STATUS_OK && (*out)->legal == ANSWER_NO)
        status = diag_error(&app->diag, STATUS_VIOLATED, "%s", (*pipe)->recorded.why);
    return status;
}

void shortcut_close(struct swpipe *pipe)
{
    swpipe_close(pipe);
}
