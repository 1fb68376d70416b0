/* cmd_verify.c - `swsim verify`: prove plans or refute them. */
#include <inttypes.h>
#include <string.h>

#include "app.h"
#include "options.h"
#include "progress.h"
#include "verdict.h"
#include "witness.h"

#include "check/verify.h"
#include "core/parse.h"
#include "core/units.h"

struct request {
    struct verify_options verify;
    int driver; /* 0 clock, 1 dataflow, 2 both */
    bool expect;
    const char *witness; /* where counterexamples go; NULL: nowhere, or already written */
};

/* ---- options that are lists ------------------------------------------------------------------ */

static enum status parse_limit(struct app *app, const char *key, const char *value,
                               struct search_limits *limits)
{
    int64_t number;
    const char *what = NULL;
    if (strcmp(key, "states") == 0) {
        enum status status = options_integer(app, "--limit states", value, 1, INT64_MAX, &number);
        if (status == STATUS_OK)
            limits->states = (uint64_t)number;
        return status;
    }
    if (strcmp(key, "mem") == 0 && units_parse_bytes(value, &number, &what))
        limits->mem_bytes = (size_t)number;
    else if (strcmp(key, "time") == 0)
        units_parse_time(value, &limits->time_ns, &what);
    else if (!what)
        return diag_error(&app->diag, STATUS_USAGE,
                          "--limit: found '%s', expected states=N, mem=SIZE or time=DURATION", key);
    if (what)
        return diag_error(&app->diag, STATUS_USAGE, "--limit %s: found '%s', %s", key, value, what);
    return STATUS_OK;
}

/* "states=N,mem=SIZE,time=DURATION", any of them. */
static enum status parse_limits(struct app *app, const char *text, struct search_limits *limits)
{
    char *copy = arena_strdup(&app->arena, text), *rest = NULL;
    if (!copy)
        return diag_no_memory(&app->diag);
    for (char *item = strtok_r(copy, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        char *value = strchr(item, '=');
        if (value)
            *value++ = '\0';
        enum status status = parse_limit(app, item, value ? value : "", limits);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status parse_property(struct app *app, const char *key, unsigned *properties)
{
    const char *keys[PROPERTY_COUNT];
    for (int p = 0; p < PROPERTY_COUNT; p++) {
        keys[p] = property_key((enum property)p);
        if (strcmp(keys[p], key) == 0) {
            *properties |= 1u << p;
            return STATUS_OK;
        }
    }
    const char *nearest = options_nearest(key, keys, PROPERTY_COUNT);
    return diag_error(&app->diag, STATUS_USAGE, "--property: unknown property '%s'%s%s%s", key,
                      nearest ? "; did you mean '" : "", nearest ? nearest : "",
                      nearest ? "'?" : "");
}

static enum status parse_properties(struct app *app, const char *text, unsigned *properties)
{
    char *copy = arena_strdup(&app->arena, text), *rest = NULL;
    if (!copy)
        return diag_no_memory(&app->diag);
    for (char *key = strtok_r(copy, ",", &rest); key; key = strtok_r(NULL, ",", &rest)) {
        enum status status = parse_property(app, key, properties);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status parse_iterations(struct app *app, const char *text, int64_t *iterations)
{
    if (strcmp(text, "unbounded") == 0) {
        *iterations = -1;
        return STATUS_OK;
    }
    return options_integer(app, "--iterations", text, 0, INT32_MAX, iterations);
}

/* ---- the work -------------------------------------------------------------------------------- */

static void show_progress(void *arg, const struct search_progress *search)
{
    char bytes[UNITS_TEXT];
    units_show_bytes((double)search->bytes, bytes);
    progress_show(arg, "%" PRIu64 " states, %" PRIu64 " transitions, %s, %.0f s", search->states,
                  search->transitions, bytes, search->seconds);
}

static enum status judge(struct app *app, const struct request *request, const struct plan *plan,
                         const struct verify_report *report)
{
    static const enum status statuses[] = {
        [VERDICT_PROVED] = STATUS_OK,
        [VERDICT_VIOLATED] = STATUS_VIOLATED,
        [VERDICT_UNDECIDED] = STATUS_LIMIT,
    };
    bool given =
        report->driver == DRIVER_DATAFLOW ? plan->expect_dataflow.given : plan->expect.given;
    if (request->expect && given)
        return verify_as_expected(plan, report, &app->diag) ? STATUS_OK : STATUS_VIOLATED;
    return statuses[report->verdict];
}

/* A store takes every counterexample, any other file the first. */
static enum status keep_witness(struct app *app, struct request *request, const struct plan *plan,
                                const struct program_options *options,
                                const struct verify_report *report)
{
    if (!request->witness || report->verdict != VERDICT_VIOLATED)
        return STATUS_OK;
    enum status status = witness_save(app, plan, options, report, request->witness);
    if (!witness_keeps_all(request->witness))
        request->witness = NULL;
    return status;
}

static enum status show(struct app *app, const struct verify_report *report)
{
    if (app->json) {
        struct json json;
        json_open(&json, stdout);
        verdict_write(report, &json);
        enum status status = json_close(&json, &app->diag);
        if (status != STATUS_OK)
            return status;
    } else {
        verdict_print(app, report, false, stdout);
    }
    return STATUS_OK;
}

static enum status verify_driver(struct app *app, struct request *request, const struct plan *plan,
                                 enum driver driver)
{
    struct progress progress;
    struct verify_report report;
    struct verify_options options = request->verify;
    options.program.driver = driver;
    options.progress = show_progress;
    options.progress_arg = &progress;
    progress_init(&progress, app);
    enum status status = verify_plan(plan, &options, &report, &app->diag);
    progress_clear(&progress);
    if (status != STATUS_OK)
        return status;
    status = app_worse(show(app, &report), judge(app, request, plan, &report));
    status = app_worse(keep_witness(app, request, plan, &options.program, &report), status);
    verify_fini(&report);
    return status;
}

static enum status verify_one(struct app *app, struct request *request, const char *path)
{
    struct plan plan;
    enum status status = plan_read(path, &plan, &app->diag);
    if (status != STATUS_OK)
        return status;
    if (plan.form != FORM_PIPELINE) {
        status = verify_driver(app, request, &plan, DRIVER_NONE);
    } else {
        if (request->driver != 1)
            status = verify_driver(app, request, &plan, DRIVER_CLOCK);
        if (request->driver != 0 && status != STATUS_SYSTEM)
            status = app_worse(status, verify_driver(app, request, &plan, DRIVER_DATAFLOW));
    }
    plan_fini(&plan);
    return status;
}

static enum status verify_all(struct app *app, struct request *request,
                              const struct arguments *plans)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < plans->count; i++) {
        status = app_worse(status, verify_one(app, request, plans->items[i]));
        app_report(app);
    }
    return status;
}

/* What the option table could not say. */
static enum status finish_request(struct app *app, struct request *request, const char *iterations,
                                  const char *limits, const char *properties)
{
    enum status status = STATUS_OK;
    request->verify.program.iterations = -1;
    if (iterations)
        status = parse_iterations(app, iterations, &request->verify.program.iterations);
    if (status == STATUS_OK && limits)
        status = parse_limits(app, limits, &request->verify.limits);
    if (status == STATUS_OK && properties)
        status = parse_properties(app, properties, &request->verify.properties);
    return status;
}

enum status cmd_verify(struct app *app, int argc, char **argv)
{
    struct request request = {.driver = 2};
    const char *iterations = NULL, *limits = NULL, *properties = NULL;
    int64_t ranks = 0, max_depth = 0;
    const struct option_spec options[] = {
        {"driver", 0, "clock|dataflow|both", "pipeline form: which driver (default both)",
         OPTION_CHOICE, &request.driver, 0, 0},
        {"iterations", 'n', "N|unbounded", "iterations of data (default unbounded)", OPTION_TEXT,
         &iterations, 0, 0},
        {"ranks", 0, "N", "ranks (default: the plan's)", OPTION_INTEGER, &ranks, 1, PLAN_MAX_RANKS},
        {"max-depth", 0, "N", "most iterations in flight (default: the plan's)", OPTION_INTEGER,
         &max_depth, 1, PLAN_MAX_DEPTH},
        {"property", 0, "LIST",
         "only these: deadlock,mismatch,race,lifetime,slot,bound,drain,faults", OPTION_TEXT,
         &properties, 0, 0},
        {"faults", 0, NULL, "failure safety too: a task fails, data end early, a rank dies",
         OPTION_FLAG, &request.verify.faults, 0, 0},
        {"no-reduction", 0, NULL, "explore without reductions: slower, same verdicts", OPTION_FLAG,
         &request.verify.no_reduction, 0, 0},
        {"limit", 0, "LIST", "stop undecided at states=N,mem=SIZE,time=DURATION", OPTION_TEXT,
         &limits, 0, 0},
        {"witness", 0, "FILE",
         "write the first counterexample: .txt .json .svg .png .dot; or add all to a store: .db",
         OPTION_TEXT, &request.witness, 0, 0},
        {"expect", 0, NULL, "hold the verdicts against the plan's `expect:`", OPTION_FLAG,
         &request.expect, 0, 0},
    };
    const struct command command = {
        .name = "swsim verify",
        .arguments = "PLAN...",
        .about =
            "Explore every interleaving of every PLAN, for any number of iterations, and say\n"
            "whether each property is proved or violated. A violation is shown with the steps\n"
            "that lead to it and with who waits for whom.",
        .examples = "  swsim verify plans/torchrec/sparse_dist.yaml\n"
                    "  swsim verify --expect plans/deadlocks/*.yaml\n"
                    "  swsim verify --witness=hang.svg plans/bugs/nccl_send_send_broken.yaml",
        .options = options,
        .option_count = OPTION_COUNT(options),
        .arguments_min = 1,
        .arguments_max = -1,
    };
    struct arguments arguments;
    enum status status;
    if (!options_parse(app, &command, argc, argv, &arguments, &status))
        return status;
    status = finish_request(app, &request, iterations, limits, properties);
    if (status != STATUS_OK)
        return status;
    request.verify.program.ranks = (int)ranks;
    request.verify.program.max_depth = (int)max_depth;
    return verify_all(app, &request, &arguments);
}
