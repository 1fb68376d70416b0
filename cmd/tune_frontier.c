/* SPDX-License-Identifier: Apache-2.0 */
/* tune_frontier.c - see tune_frontier.h. */
#include "tune_frontier.h"

#include <string.h>

#include "frontier_picture.h"
#include "frontier_shared.h"
#include "mpi_workers.h"
#include "plan_out.h"
#include "progress.h"
#include "starter.h"

#include "api/frontier_report.h"
#include "trace/draw.h"
#include "base/hash.h"
#include "plan/text/print.h"

/* ---- the work -------------------------------------------------------------------------------- */

static void show_progress(void *arg, size_t done, size_t count)
{
    progress_show(arg, "%zu of %zu candidates", done, count);
}

static enum status write_plan(struct app *app, const struct frontier *f, const char *path)
{
    struct plan plan;
    bool found;
    if (!path)
        return STATUS_OK;
    enum status status = frontier_best(f, &plan, &found, &app->diag);
    return status == STATUS_OK && found ? plan_write_file(app, &plan, PLAN_YAML, path) : status;
}

static enum status show(struct app *app, const struct frontier *f)
{
    struct json json;
    if (!app->json) {
        frontier_print(f, app->quiet, stdout);
        return STATUS_OK;
    }
    json_open(&json, stdout);
    frontier_write(f, &json);
    return json_close(&json, &app->diag);
}

static enum status report(struct app *app, const struct frontier_request *request,
                          const struct frontier *f)
{
    enum status status = STATUS_OK;
    bool only_plan = request->plan_path && strcmp(request->plan_path, "-") == 0;
    frontier_warn(f, &app->diag);
    if (!only_plan)
        status = show(app, f);
    if (status == STATUS_OK)
        status = write_plan(app, f, request->plan_path);
    if (status == STATUS_OK && request->picture_path)
        status = frontier_draw(f, request->picture_path, &app->diag);
    return status == STATUS_OK && !f->fates[FATE_PROVED] ? STATUS_VIOLATED : status;
}

static enum status search(struct app *app, struct frontier_request *request,
                          const struct plan *plan, const struct result_wire *wire)
{
    struct frontier frontier;
    struct progress progress;
    request->options.progress = show_progress;
    request->options.progress_arg = &progress;
    progress_init(&progress, app);
    enum status status = frontier_open(plan, &request->options, &app->arena, &frontier, &app->diag);
    if (status == STATUS_OK)
        status = frontier_try_all(&frontier, wire, &app->diag);
    progress_clear(&progress);
    if (status != STATUS_OK || app->silent)
        return status;
    frontier_sort(&frontier);
    return report(app, request, &frontier);
}

/* Plan and choices are the same on all processes. */
static enum status agree(struct app *app, const struct frontier_options *options,
                         const struct plan *plan, struct mpi_workers *workers)
{
    const char *text;
    enum status status = plan_text_in(plan, &app->arena, &text, &app->diag);
    if (status != STATUS_OK)
        return status;
    uint64_t digest = hash_bytes(text, strlen(text));
    digest = hash_mix(digest ^ hash_bytes(options->axes, sizeof options->axes));
    digest = hash_mix(digest ^ hash_bytes(&options->samples, sizeof options->samples));
    digest = hash_mix(digest ^ hash_bytes(&options->half_size, sizeof options->half_size));
    mpi_workers_agree(workers, hash_mix(digest ^ (uint64_t)options->memory_bytes));
    return STATUS_OK;
}

enum status frontier_tune(struct app *app, struct frontier_request *request,
                          const struct plan *plan)
{
    struct starter starter;
    struct mpi_workers *workers;
    enum draw_format format;
    starter_find(&starter);
    enum status status = starter.rank > 0 ? app_silence(app) : STATUS_OK;
    if (status != STATUS_OK || !mpi_workers_open(app, &starter, &workers))
        return status;
    if (request->picture_path)
        status = draw_format_of(request->picture_path, &format, &app->diag);
    if (status == STATUS_OK)
        status = frontier_check_samples(&request->options, plan, &app->diag);
    if (status == STATUS_OK && workers)
        status = agree(app, &request->options, plan, workers);
    if (status == STATUS_OK)
        status = search(app, request, plan, workers ? mpi_workers_wire(workers) : NULL);
    return mpi_workers_close(workers, app, status);
}
