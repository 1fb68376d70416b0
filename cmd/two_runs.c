/* SPDX-License-Identifier: Apache-2.0 */
/* two_runs.c - see two_runs.h: the two runs are found or made, and held against each other. */
#include "two_runs.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "run_spec.h"
#include "two_runs_text.h"

#include "improve/found.h"
#include "api/unexplained.h"
#include "plan/coverage.h"
#include "plan/text/parse.h"
#include "plan/strip_device_rules.h"
#include "sim/predict/explained.h"
#include "sim/predict/foretold.h"

enum { ITERATIONS = 100 /* of a prediction, where the run does not say */ };

struct comparer {
    struct app *app;
    const struct two_runs *request;
    struct compared_run first, second;
};

/* ---- a run of a store ------------------------------------------------------------------------ */

static enum status read_run(struct app *app, const char *spec, struct compared_run *out)
{
    struct store *store;
    const char *path;
    int64_t run;
    enum status status = option_run(app_reader(app), "RUN", spec, &path, &run);
    if (status == STATUS_OK)
        status = store_open(path, false, &store, &app->diag);
    if (status != STATUS_OK)
        return status;
    status = explained_load(store, run, &app->arena, &out->trace, &app->diag);
    enum status closed = store_close(store, &app->diag);
    out->store = path;
    if (status == STATUS_OK && out->trace.info.kind == RUN_WITNESS)
        return diag_error(&app->diag, STATUS_INPUT,
                          "run %" PRId64 " is a counterexample: it has steps and no times",
                          out->trace.run);
    return status != STATUS_OK ? status : closed;
}

/* ---- a prediction ---------------------------------------------------------------------------- */

static int depth_of(const struct trace *trace)
{
    const struct trace_stat *depth = trace_find_stat(trace, RUN_STAT_DEPTH);
    return depth ? (int)depth->value : 0;
}

/* As the run was made, as far as it tells. */
static struct program_options options_like(struct app *app, const struct plan *plan,
                                           const struct trace *trace)
{
    const struct run_info *info = &trace->info;
    const struct program_request request = {
        .driver = info->driver == RUN_DRIVER_CLOCK      ? CLOCK_ONLY
                  : info->driver == RUN_DRIVER_DATAFLOW ? DATAFLOW_ONLY
                                                        : DRIVER_NOT_GIVEN,
        .iterations = info->iterations_wanted > 0 ? info->iterations_wanted : ITERATIONS,
        .ranks = plan->form == FORM_PIPELINE ? info->ranks : 0,
        .max_depth = info->driver == RUN_DRIVER_DATAFLOW ? depth_of(trace) : 0,
    };
    return app_program_options(app, &request, plan);
}

static enum status make_accounts(struct comparer *comparer)
{
    struct compared_run *first = &comparer->first, *second = &comparer->second;
    struct diag *diag = &comparer->app->diag;
    const bool by_steps = account_has_steps(&first->trace) && account_has_steps(&second->trace);
    enum status status = account_make(&first->trace, by_steps, &first->account, diag);
    return status == STATUS_OK ? account_make(&second->trace, by_steps, &second->account, diag)
                               : status;
}

/* A plan_use. */
static enum status predict_second(struct app *app, struct plan *plan, void *context)
{
    struct comparer *comparer = context;
    const struct trace *like = &comparer->first.trace;
    struct plan device = *plan; /* as the run's device took it */
    if (comparer->request->cores > 0)
        device.machine.cores = comparer->request->cores;
    const bool cuda = strncmp(like->info.device, "cuda", strlen("cuda")) == 0;
    enum status status = refuse_unexplained(plan, comparer->request->opaque, &app->diag);
    if (status != STATUS_OK)
        return status;
    coverage_warn(plan, &app->diag);
    if (like->info.kind == RUN_MEASURED && like->info.driver != RUN_DRIVER_NONE &&
        !plan_strip_device_rules(&device, &app->arena, cuda, NULL))
        return diag_no_memory(&app->diag);
    const struct program_options options = options_like(app, &device, like);
    const uint64_t seed = comparer->request->seed;
    struct compared_run *second = &comparer->second;
    bool varies;
    status = foretell(&device, &options, seed, &app->arena, &second->trace, &varies, &app->diag);
    if (status == STATUS_OK)
        status = make_accounts(comparer);
    return status == STATUS_OK && varies
               ? foretell_more(&device, &options, seed, comparer->request->replications,
                               &app->arena, &second->account, &app->diag)
               : status;
}

/* The plan that the first run keeps. */
static enum status predict_own(struct comparer *comparer)
{
    struct app *app = comparer->app;
    const struct trace *trace = &comparer->first.trace;
    const char *text = trace->info.plan_text;
    const char *name = arena_printf(&app->arena, "plan of run %" PRId64, trace->run);
    struct plan plan;
    if (!name)
        return diag_no_memory(&app->diag);
    if (!*text)
        return diag_error(&app->diag, STATUS_INPUT, "run %" PRId64 " keeps no plan to predict",
                          trace->run);
    enum status status = plan_parse(name, text, strlen(text), &plan, &app->diag);
    if (status != STATUS_OK)
        return status;
    status = found_resolve(&plan, &plan.arena, &app->diag);
    if (status == STATUS_OK)
        status = predict_second(app, &plan, comparer);
    plan_fini(&plan);
    return status;
}

static enum status find_second(struct comparer *comparer)
{
    struct app *app = comparer->app;
    const char *second = comparer->request->second;
    bool store = second && option_has_run(second);
    if (!second)
        return predict_own(comparer);
    enum status status = store ? STATUS_OK : run_spec_is_store(app, second, &store);
    if (status != STATUS_OK)
        return status;
    if (store && comparer->request->cores > 0)
        return diag_error(&app->diag, STATUS_USAGE,
                          "found --cores, but neither of two runs of stores is predicted");
    if (!store)
        return app_with_plan(app, second, predict_second, comparer);
    status = read_run(app, second, &comparer->second);
    return status == STATUS_OK ? make_accounts(comparer) : status;
}

/* ---- both ------------------------------------------------------------------------------------ */

static enum status show(struct comparer *comparer, const struct difference *difference)
{
    struct app *app = comparer->app;
    if (app->json)
        return two_runs_write(&comparer->first, &comparer->second, difference, stdout, &app->diag);
    two_runs_print_head(&comparer->first, &comparer->second, difference, stdout);
    if (comparer->request->diff)
        two_runs_explain(&comparer->first, &comparer->second, difference, stdout);
    else
        two_runs_print(difference, app->quiet, stdout);
    return STATUS_OK;
}

static enum status check_limit(struct comparer *comparer, const struct difference *difference)
{
    const double error = fabs(difference->after_ns - difference->before_ns) / difference->before_ns;
    if (!(error > comparer->request->limit))
        return STATUS_OK;
    return diag_error(&comparer->app->diag, STATUS_VIOLATED,
                      "the runs differ by %.1f%%, expected at most %.1f%%", 100 * error,
                      100 * comparer->request->limit);
}

enum status two_runs_compare(struct app *app, const struct two_runs *request)
{
    struct comparer comparer = {.app = app, .request = request};
    struct difference difference;
    enum status status = read_run(app, request->first, &comparer.first);
    if (status == STATUS_OK)
        status = find_second(&comparer);
    if (status == STATUS_OK)
        status = difference_make(&comparer.first.account, &comparer.second.account, &app->arena,
                                 &difference, &app->diag);
    if (status == STATUS_OK)
        status = show(&comparer, &difference);
    return status == STATUS_OK ? check_limit(&comparer, &difference) : status;
}
