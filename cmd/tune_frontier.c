/* SPDX-License-Identifier: Apache-2.0 */
/* tune_frontier.c - see tune_frontier.h. */
#include "tune_frontier.h"

#include <stdlib.h>
#include <string.h>

#include "api/frontier_picture.h"
#include "api/frontier_report.h"
#include "base/hash.h"
#include "improve/frontier.h"
#include "plan/text/print.h"
#include "sim/predict/result_wire.h"
#include "trace/draw.h"

#include "mpi_workers.h"
#include "plan_out.h"
#include "app.h"
#include "starter.h"

/* ---- divided among processes ----------------------------------------------------------------- */

/*
 * The candidates of a frontier, divided among the processes of mpirun or srun.
 *
 * Candidate n is tried by rank n mod size, and goes to rank 0 as it is in memory.
 */

/* Candidates of a rank. */
static size_t tune_frontier_part_of(const struct frontier *f, const struct result_wire *wire,
                                    int rank)
{
    size_t size = (size_t)wire->size, first = (size_t)rank;
    return f->count > first ? (f->count - first + size - 1) / size : 0;
}

/* A byte says that the rank has failed. */
static enum status send_part(const struct frontier *f, const struct result_wire *wire, bool failed,
                             struct diag *diag)
{
    size_t count = tune_frontier_part_of(f, wire, wire->rank);
    struct candidate *part = ARENA_ARRAY(f->arena, count + 1, struct candidate);
    if (!part || failed) {
        enum status status = wire->send(wire->context, "", 1, diag);
        return part ? status : diag_no_memory(diag);
    }
    for (size_t i = 0; i < count; i++)
        part[i] = f->candidates[(size_t)wire->rank + i * (size_t)wire->size];
    return wire->send(wire->context, part, count * sizeof *part, diag);
}

static enum status tune_frontier_take_part(struct frontier *f, const struct result_wire *wire,
                                           int from, struct diag *diag)
{
    size_t count = tune_frontier_part_of(f, wire, from), bytes;
    void *data;
    enum status status = wire->receive(wire->context, from, &data, &bytes, diag);
    if (status != STATUS_OK)
        return status;
    const struct candidate *part = data;
    if (bytes != count * sizeof *part)
        status = diag_error(diag, STATUS_SYSTEM, "rank %d could not try its candidates", from);
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        f->candidates[(size_t)from + i * (size_t)wire->size] = part[i];
    free(data);
    return status;
}

/* Try all; NULL: this process does it alone. On rank 0 all candidates have been tried then, on the others those of
   the rank. */
static enum status frontier_try_all(struct frontier *f, const struct result_wire *wire,
                                    struct diag *diag)
{
    if (!wire)
        return frontier_try(f, 0, 1, diag);
    enum status status = wire->begin(wire->context, diag);
    if (status != STATUS_OK)
        return status;
    status = frontier_try(f, (size_t)wire->rank, (size_t)wire->size, diag);
    if (wire->rank > 0) {
        enum status sent = send_part(f, wire, status != STATUS_OK, diag);
        return status == STATUS_OK ? sent : status;
    }
    for (int from = 1; from < wire->size; from++) { /* all are heard */
        enum status taken = tune_frontier_take_part(f, wire, from, diag);
        status = status == STATUS_OK ? taken : status;
    }
    return status;
}

/* ---- the work -------------------------------------------------------------------------------- */

static void tune_frontier_show_progress(void *arg, size_t done, size_t count)
{
    progress_show(arg, "%zu of %zu candidates", done, count);
}

static enum status tune_frontier_write_plan(struct app *app, const struct frontier *f,
                                            const char *path)
{
    struct plan plan;
    bool found;
    if (!path)
        return STATUS_OK;
    enum status status = frontier_best(f, &plan, &found, &app->diag);
    return status == STATUS_OK && found ? plan_write_file(app, &plan, PLAN_YAML, path) : status;
}

static enum status tune_frontier_show(struct app *app, const struct frontier *f)
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

static enum status tune_frontier_report(struct app *app, const struct frontier_request *request,
                                        const struct frontier *f)
{
    enum status status = STATUS_OK;
    bool only_plan = request->plan_path && strcmp(request->plan_path, "-") == 0;
    frontier_warn(f, &app->diag);
    if (!only_plan)
        status = tune_frontier_show(app, f);
    if (status == STATUS_OK)
        status = tune_frontier_write_plan(app, f, request->plan_path);
    if (status == STATUS_OK && request->picture_path)
        status = frontier_draw(f, request->picture_path, &app->diag);
    return status == STATUS_OK && !f->fates[FATE_PROVED] ? STATUS_VIOLATED : status;
}

static enum status tune_frontier_search(struct app *app, struct frontier_request *request,
                                        const struct plan *plan, const struct result_wire *wire)
{
    struct frontier frontier;
    struct progress progress;
    request->options.progress = tune_frontier_show_progress;
    request->options.progress_arg = &progress;
    progress_init(&progress, app);
    enum status status = frontier_open(plan, &request->options, &app->arena, &frontier, &app->diag);
    if (status == STATUS_OK)
        status = frontier_try_all(&frontier, wire, &app->diag);
    progress_clear(&progress);
    if (status != STATUS_OK || app->silent)
        return status;
    frontier_sort(&frontier);
    return tune_frontier_report(app, request, &frontier);
}

/* Plan and choices are the same on all processes. */
static enum status tune_frontier_agree(struct app *app, const struct frontier_options *options,
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
        status = tune_frontier_agree(app, &request->options, plan, workers);
    if (status == STATUS_OK)
        status =
            tune_frontier_search(app, request, plan, workers ? mpi_workers_wire(workers) : NULL);
    return mpi_workers_close(workers, app, status);
}
