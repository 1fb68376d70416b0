/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_check.c - see replay_check.h. The whole run is predicted first; where it is off, both runs are accounted for. A prediction
 * of a large trace takes as much memory as the trace does. So the trace may be freed before the prediction, and the account reads the
 * files again.
 */
#include "replay_check.h"

#include <math.h>

#include "base/units.h"
#include "sim/predict/difference.h"
#include "sim/predict/foretold.h"
#include "sim/predict/predict.h"
#include "trace/import/record.h"

#define REPLAY_WARNED  0.05
#define REPLAY_REFUSED 0.20

static int64_t measured_ns(const struct job *job)
{
    int64_t last_ns = 0;
    for (size_t r = 0; r < job->rank_count; r++)
        last_ns = job->ranks[r].end_ns > last_ns ? job->ranks[r].end_ns : last_ns;
    return last_ns;
}

static enum status replay_time(const struct plan *plan, double *out, struct diag *diag)
{
    const struct predict_options options = {.program = {.driver = DRIVER_NONE},
                                            .seed = 1,
                                            .replications = 1,
                                            .threads = 1,
                                            .exposed = EXPOSED_NEVER};
    struct prediction prediction;
    const enum status status = predict(plan, &options, &prediction, diag);
    if (status != STATUS_OK)
        return status;
    *out = prediction.blocked_count > 0 ? NAN : (double)prediction.total_ns;
    prediction_fini(&prediction);
    return STATUS_OK;
}

/* Both runs, with what they differ in. */
static enum status compare_runs(struct app *app, const struct imported *imported,
                                struct difference *out, struct diag *quiet)
{
    const struct program_options options = {.driver = DRIVER_NONE};
    struct run_account before, after;
    struct trace measured, replayed;
    bool varies;
    trace_init(&measured, &app->arena);
    enum status status = import_record(imported, &measured, quiet);
    if (status == STATUS_OK && !trace_sort(&measured))
        status = STATUS_SYSTEM;
    if (status == STATUS_OK)
        status = foretell(&imported->plan, &options, 1, &app->arena, &replayed, &varies, quiet);
    if (status == STATUS_OK)
        status = account_make(&measured, false, &before, quiet);
    if (status == STATUS_OK)
        status = account_make(&replayed, false, &after, quiet);
    return status == STATUS_OK ? difference_make(&before, &after, &app->arena, out, quiet) : status;
}

/* "; the largest difference: stream s7, GEMM, 3 ms instead of 2 ms", or nothing where none can be told. */
static const char *largest_difference(struct app *app, const struct replay_source *source)
{
    struct imported imported;
    struct difference difference = {0};
    struct diag quiet;
    const char *text = NULL;
    diag_init(&quiet);
    if (import_files(source->paths, source->count, source->options, &imported, &quiet) ==
        STATUS_OK) {
        const enum status status = compare_runs(app, &imported, &difference, &quiet);
        if (status == STATUS_OK && difference.stream_count > 0 &&
            difference.streams[0].row_count > 0) {
            const struct difference_row *row = &difference.streams[0].rows[0];
            const struct account_stream *stream = difference.streams[0].before;
            char was[UNITS_TEXT], is[UNITS_TEXT];
            units_show_time(row->before_ns, was);
            units_show_time(row->after_ns, is);
            text = arena_printf(&app->arena,
                                "; the largest difference, on stream %s: %s%s, %s instead of %s",
                                stream ? stream->name : difference.streams[0].after->name,
                                row->cause ? "idle for " : "", row->name, is, was);
        }
        import_fini(&imported);
    }
    diag_fini(&quiet);
    return text ? text : "";
}

/* True if the plan that --opaque makes has less time without a cause, and this one too much of it. */
static bool opaque_helps(const struct imported *imported)
{
    int most = 0;
    for (size_t r = 0; r < imported->job.rank_count; r++) {
        const int left =
            evidence_unexplained(&imported->job.ranks[r], &imported->evidence[r], true);
        most = left > most ? left : most;
    }
    return plan_is_unexplained(&imported->plan) && most < imported->plan.unexplained.millionths;
}

enum status replay_check(struct app *app, const struct imported *imported,
                         const struct replay_source *source, bool force)
{
    const double was_ns = (double)measured_ns(&imported->job);
    double is_ns;
    enum status status = replay_time(&imported->plan, &is_ns, &app->diag);
    if (status != STATUS_OK)
        return status;
    if (isnan(is_ns) || was_ns <= 0) {
        diag_warn(&app->diag, "the plan does not come to its end, and the job did: 'swsim verify' "
                              "shows where it stops");
        return STATUS_OK;
    }
    const double error = is_ns / was_ns - 1;
    char is[UNITS_TEXT], was[UNITS_TEXT];
    units_show_time(is_ns, is);
    units_show_time(was_ns, was);
    if (fabs(error) <= REPLAY_WARNED) {
        diag_note(&app->diag, "replayed %s of %s measured (%+.1f%%)", is, was, 100 * error);
        return STATUS_OK;
    }
    const char *why = largest_difference(app, source);
    if (fabs(error) <= REPLAY_REFUSED || force) {
        diag_warn(
            &app->diag,
            "replayed %s of %s measured (%+.1f%%): predictions of this plan are off by as much%s",
            is, was, 100 * error, why);
        return STATUS_OK;
    }
    return diag_error(&app->diag, STATUS_LIMIT,
                      "replayed %s of %s measured (%+.1f%%): the plan is not the job%s; --%s", is,
                      was, 100 * error, why,
                      opaque_helps(imported)
                          ? "opaque makes idle time without a cause part of the plan"
                          : "force writes it all the same");
}
