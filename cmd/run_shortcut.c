/* SPDX-License-Identifier: Apache-2.0 */
/* run_shortcut.c - see run_shortcut.h. */
#include "run_shortcut.h"

#include "plan/text/print.h"
#include "gpu/lib/swpipe_impl.h"

static enum status run_shortcut_check(struct app *app, struct swpipe *pipe,
                                      enum swpipe_status status)
{
    static const enum status meanings[] = {
        [SWPIPE_OK] = STATUS_OK,           [SWPIPE_END] = STATUS_OK,
        [SWPIPE_FAILED] = STATUS_VIOLATED, [SWPIPE_TIMEOUT] = STATUS_VIOLATED,
        [SWPIPE_USAGE] = STATUS_USAGE,     [SWPIPE_INPUT] = STATUS_INPUT,
        [SWPIPE_SYSTEM] = STATUS_SYSTEM};
    enum status meaning = meanings[status];
    return meaning ? diag_error(&app->diag, meaning, "%s", swpipe_error(pipe)) : STATUS_OK;
}

/* ---- batches: the plan's copies bring numbers ------------------------------------------------ */

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

/* ---- the run --------------------------------------------------------------------------------- */

static enum status open_pipe(struct app *app, const struct plan *plan,
                             const struct runtime_options *options, struct swpipe **pipe)
{
    const char *text;
    enum status status = plan_text_in(plan, &app->arena, &text, &app->diag);
    if (status != STATUS_OK)
        return status;
    const struct swpipe_config config = {
        .plan_file = plan->file,
        .plan_text = text,
        .driver = options->driver == DRIVER_DATAFLOW ? SWPIPE_DATAFLOW : SWPIPE_CLOCK,
        .device = options->device == DEVICE_KIND_CUDA ? SWPIPE_CUDA : SWPIPE_HOST,
        .ranks = options->ranks,
        .max_depth = options->max_depth,
        .wait_timeout_ns = options->timeout_ns,
        .progress_timeout_ns = options->timeout_ns};
    return run_shortcut_check(app, *pipe, swpipe_open(&config, pipe));
}

static enum status keep_results(struct app *app, struct swpipe *pipe,
                                const struct shortcut_run *how)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < how->count && status == STATUS_OK; i++)
        status = run_shortcut_check(app, pipe, swpipe_enable_shortcut(pipe, how->tasks[i]));
    return status ? status : run_shortcut_check(app, pipe, swpipe_run_one_serial(pipe, NULL, 0));
}

static enum status run_shortcut_run_recorded(struct app *app, struct swpipe *pipe,
                                             const struct runtime_options *options,
                                             const struct shortcut_run *how)
{
    struct feeder feeder = {options->iterations * pipe->ranks, how->stop};
    const struct swpipe_source source = {next_batch, &feeder};
    enum status status =
        run_shortcut_check(app, pipe, swpipe_record(pipe, options->db ? options->db : ""));
    if (status == STATUS_OK)
        status = run_shortcut_check(app, pipe,
                                    options->serial ? swpipe_run_serial(pipe, &source, NULL)
                                                    : swpipe_run(pipe, &source, NULL));
    enum status drained = run_shortcut_check(app, pipe, swpipe_drain(pipe));
    return status ? status : drained;
}

enum status shortcut_run(struct app *app, const struct plan *plan,
                         const struct runtime_options *options, const struct shortcut_run *how,
                         struct swpipe **pipe, const struct runtime_result **out)
{
    *pipe = NULL;
    *out = NULL;
    enum status status = open_pipe(app, plan, options, pipe);
    if (status == STATUS_OK)
        status = keep_results(app, *pipe, how);
    if (status == STATUS_OK)
        status = run_shortcut_run_recorded(app, *pipe, options, how);
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
