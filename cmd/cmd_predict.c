/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_predict.c - `swsim predict`: simulate a plan, report how fast it is and why. */
#include <ctype.h>
#include <inttypes.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "options.h"
#include "show_channels.h"
#include "starter.h"
#include "hardware_choice.h"
#include "mpi_workers.h"

#include "improve/found.h"
#include "api/profiled.h"
#include "api/unexplained.h"
#include "plan/coverage.h"
#include "base/columns.h"
#include "base/hash.h"
#include "plan/text/parse.h"
#include "plan/text/print.h"
#include "base/units.h"
#include "sim/predict/fits.h"
#include "sim/predict/hardware_times.h"
#include "sim/predict/record.h"
#include "sim/predict/report.h"
#include "base/sort.h"

enum { MOST_FACTOR = 1000 };

enum swept { SWEPT_DEPTH, SWEPT_RANKS, SWEPT_CORES };
static const struct sweep_key {
    const char *name;
    int64_t most;
} sweep_keys[] = {[SWEPT_DEPTH] = {"max_depth", PLAN_MAX_DEPTH},
                  [SWEPT_RANKS] = {"ranks", PLAN_MAX_RANKS},
                  [SWEPT_CORES] = {"cores", PLAN_MAX_CORES}};

struct predict_request {
    struct predict_options predict;
    int driver;                      /* enum driver_choice */
    int p2p;                         /* --p2p: enum fifo_rule, CHANNELS_ALL or CHANNELS_NOT_GIVEN */
    const char *db;                  /* store the trace here; NULL: nowhere */
    const struct sweep_key *swept;   /* NULL: no sweep */
    int64_t from, to;                /* its values */
    const struct text_list *changes; /* --what-if, as given */
    struct time_rule *rules;         /* the same, parsed */
    struct mpi_workers *workers;     /* processes that help; NULL: none */
    struct warnings warnings;        /* about the plan */
    uint64_t digest;                 /* of all arguments */
    bool opaque;                     /* also a plan whose job was idle for unknown reasons */
    int64_t critical_iteration;      /* of --critical-path */
    int64_t most_ns;                 /* --max-iteration; 0: no bound */
    bool expect;                     /* judge by the plan's `expect:` */
    struct hardware_steps *steps;    /* --hardware: filled; NULL: not wanted */
};

/* ---- options with a grammar of their own ----------------------------------------------------- */

static enum status parse_jitters(struct app *app, const struct text_list *texts,
                                 struct predict_options *predict)
{
    struct jitter_rule *rules = ARENA_ARRAY(&app->arena, texts->count + 1, struct jitter_rule);
    enum status status = rules ? STATUS_OK : diag_no_memory(&app->diag);
    for (size_t i = 0; status == STATUS_OK && i < texts->count; i++)
        status = option_jitter(app_reader(app), texts->items[i], &rules[i]);
    predict->jitter = rules;
    predict->jitter_count = texts->count;
    return status;
}

/* TASK=0.8x or TASK=2ms */
static enum status parse_change(struct app *app, const char *text, struct time_rule *rule)
{
    const char *what, *equals = strchr(text, '=');
    char *end;
    if (!equals || equals == text)
        return diag_error(&app->diag, STATUS_USAGE,
                          "--what-if: found '%s', expected TASK=FACTORx or TASK=TIME, as in "
                          "Forward=0.8x",
                          text);
    rule->task = arena_strndup(&app->arena, text, (size_t)(equals - text));
    if (!rule->task)
        return diag_no_memory(&app->diag);
    rule->factor =
        isdigit((unsigned char)equals[1]) || equals[1] == '.' ? strtod(equals + 1, &end) : -1;
    if (rule->factor >= 0 && rule->factor <= MOST_FACTOR && strcmp(end, "x") == 0)
        return STATUS_OK;
    rule->factor = -1;
    if (!units_parse_time(equals + 1, &rule->set_ns, &what))
        return diag_error(&app->diag, STATUS_USAGE,
                          "--what-if %s: found '%s', expected a factor from 0x to 1000x or a time",
                          rule->task, equals + 1);
    return STATUS_OK;
}

static enum status parse_changes(struct app *app, const struct text_list *texts,
                                 struct predict_request *request)
{
    request->changes = texts;
    request->rules = ARENA_ARRAY(&app->arena, texts->count + 1, struct time_rule);
    enum status status = request->rules ? STATUS_OK : diag_no_memory(&app->diag);
    for (size_t i = 0; status == STATUS_OK && i < texts->count; i++)
        status = parse_change(app, texts->items[i], &request->rules[i]);
    return status;
}

/* Which iteration's critical path */
static enum status parse_iteration(struct app *app, const char *text, int64_t iterations,
                                   int64_t *out)
{
    if (!*text)
        *out = PATH_MIDDLE;
    else if (strcmp(text, "slowest") == 0)
        *out = PATH_SLOWEST;
    else
        return option_number(app_reader(app), "--critical-path", text, 0, iterations - 1, out);
    return STATUS_OK;
}

static bool sweeps(const struct predict_request *request, enum swept key)
{
    return request->swept == &sweep_keys[key];
}

static const struct sweep_key *find_sweep_key(const char *name)
{
    for (size_t i = 0; i < sizeof sweep_keys / sizeof *sweep_keys; i++)
        if (strcmp(name, sweep_keys[i].name) == 0)
            return &sweep_keys[i];
    return NULL;
}

/* KEY=FROM..TO */
static enum status parse_sweep(struct app *app, const char *text, struct predict_request *request)
{
    char *copy = arena_strdup(&app->arena, text);
    if (!copy)
        return diag_no_memory(&app->diag);
    char *equals = strchr(copy, '='), *dots = equals ? strstr(equals, "..") : NULL;
    if (!dots)
        return diag_error(&app->diag, STATUS_USAGE,
                          "--sweep: found '%s', expected KEY=FROM..TO, as in max_depth=1..8", text);
    *equals = *dots = '\0';
    const struct sweep_key *key = find_sweep_key(copy);
    if (!key)
        return diag_error(&app->diag, STATUS_USAGE,
                          "--sweep: found key '%s', expected max_depth, ranks or cores", copy);
    enum status status =
        option_number(app_reader(app), "--sweep", equals + 1, 1, key->most, &request->from);
    if (status == STATUS_OK)
        status = option_number(app_reader(app), "--sweep", dots + 2, request->from, key->most,
                               &request->to);
    request->swept = key;
    return status;
}

/* ---- one prediction -------------------------------------------------------------------------- */

struct predict_watch {
    struct progress progress;
    int64_t iterations;
    struct hardware_steps *steps;
};

static bool cmd_predict_watch_work(void *context, const struct simulate_span *span)
{
    const struct predict_watch *watch = context;
    return hardware_steps_work(watch->steps, span);
}

static enum status cmd_predict_watch_begin(void *context, const struct program *program,
                                           struct diag *diag)
{
    const struct predict_watch *watch = context;
    return hardware_steps_begin(watch->steps, program, diag);
}

/* Progress of the first replication, as its observer. */
static bool cmd_predict_watch_progress(void *context, int64_t iterations, int64_t time_ns)
{
    struct predict_watch *watch = context;
    progress_show(&watch->progress, "%" PRId64 " of %" PRId64 " iterations, %.1f s simulated",
                  iterations, watch->iterations, 1e-9 * (double)time_ns);
    return true;
}

static enum status simulate_watched(struct app *app, const struct plan *plan,
                                    struct predict_options options, struct hardware_steps *steps,
                                    struct prediction *out)
{
    struct predict_watch watch = {.iterations = options.program.iterations, .steps = steps};
    const struct simulate_observer observer = {.context = &watch,
                                               .work = steps ? cmd_predict_watch_work : NULL,
                                               .progress = cmd_predict_watch_progress};
    progress_init(&watch.progress, app);
    options.observer = &observer;
    options.begin = steps ? cmd_predict_watch_begin : NULL;
    enum status status = predict(plan, &options, out, &app->diag);
    progress_clear(&watch.progress);
    return status;
}

/* Store the trace of the first replication. */
static enum status simulate_stored(struct app *app, const char *path, const struct plan *plan,
                                   struct predict_options options, struct prediction *out)
{
    struct store *store;
    enum status status = store_open(path, true, &store, &app->diag);
    if (status != STATUS_OK)
        return status;
    struct recorder recorder;
    recorder_init(&recorder, store, plan, options.seed, &app->diag);
    options.observer = recorder_observer(&recorder);
    options.begin = recorder_begin;
    status = predict(plan, &options, out, &app->diag);
    bool predicted = status == STATUS_OK;
    enum status ended = recorder_end(&recorder, predicted ? out : NULL);
    enum status closed = store_close(store, &app->diag);
    recorder_fini(&recorder);
    if (predicted && (ended != STATUS_OK || closed != STATUS_OK)) {
        prediction_fini(out);
        status = ended != STATUS_OK ? ended : closed;
    }
    if (status == STATUS_SYSTEM && closed != STATUS_OK)
        status = closed; /* the store took no more, which ended the simulation */
    return status;
}

static enum status cmd_predict_show_json(struct app *app, const struct prediction *prediction,
                                         const struct report_row *row)
{
    struct json json;
    json_open(&json, stdout);
    enum status status = report_write(prediction, row, &json, &app->diag);
    return status == STATUS_OK ? json_close(&json, &app->diag) : status;
}

static enum status cmd_predict_show(struct app *app, const struct predict_request *request,
                                    const struct prediction *prediction, int64_t value,
                                    const struct prediction *base, const bool *within)
{
    if (app->silent)
        return STATUS_OK; /* rank 0 has the figures */
    if (app->json)
        return cmd_predict_show_json(
            app, prediction,
            &(struct report_row){.swept = request->swept ? request->swept->name : NULL,
                                 .value = value,
                                 .base = base,
                                 .warnings = &request->warnings,
                                 .within = within});
    if (request->swept)
        report_sweep_line(prediction, value, stdout);
    else if (base)
        return report_print_second(prediction, base, app->quiet, app_color(app, stdout), stdout,
                                   &app->diag);
    else
        return report_print(prediction, app->quiet, app_color(app, stdout), stdout, &app->diag);
    return STATUS_OK;
}

/* A line of a table has no place for it. */
static void warn_of_violations(struct app *app, const struct prediction *prediction)
{
    for (int p = 0; p < PROPERTY_COUNT; p++)
        if (p != PROPERTY_DEADLOCK && prediction->violated & (1u << p))
            diag_warn(&app->diag,
                      "%s: the simulated run broke a property (%s); 'swsim verify' shows how",
                      prediction->program->plan->name, property_key((enum property)p));
}

/* `base`: the prediction under the other driver, for comparison; NULL: none. The prediction goes to
   *out, unless that is NULL. */
static enum status predict_one(struct app *app, const struct predict_request *request,
                               const struct plan *plan, enum driver driver, int64_t value,
                               const struct prediction *base, struct prediction *out)
{
    struct predict_options options = request->predict;
    struct prediction prediction;
    struct plan changed = *plan;
    options.program.driver = driver;
    if (sweeps(request, SWEPT_RANKS))
        options.program.ranks = (int)value;
    else if (sweeps(request, SWEPT_DEPTH))
        options.program.max_depth = (int)value;
    else if (sweeps(request, SWEPT_CORES))
        changed.machine.cores = (int)value;
    if (options.exposed == EXPOSED_IF_CHEAP && !app->json && (app->quiet || request->swept))
        options.exposed = EXPOSED_NEVER; /* it is not shown */
    options.in_flight = app->json && !request->swept;
    enum status status =
        request->db ? simulate_stored(app, request->db, &changed, options, &prediction)
                    : simulate_watched(app, &changed, options, request->steps, &prediction);
    if (status != STATUS_OK)
        return status;
    bool asked = false, within = true;
    if (!app->silent) /* rank 0 has the figures */
        within = prediction_keeps_bounds(&prediction, request->expect, request->most_ns, &asked,
                                         &app->diag);
    status = cmd_predict_show(app, request, &prediction, value, base, asked ? &within : NULL);
    if (request->swept)
        warn_of_violations(app, &prediction);
    if (status == STATUS_OK && (prediction.violated || prediction.overrun.limit_ns > 0 || !within))
        status = STATUS_VIOLATED;
    if (interrupts_seen()) {
        prediction_fini(&prediction); /* after some replications: no other prediction begins */
        return app_worse(status, STATUS_LIMIT);
    }
    if (out && (status == STATUS_OK || status == STATUS_VIOLATED))
        *out = prediction;
    else
        prediction_fini(&prediction);
    return status;
}

/* One line: the plan with these changes, compared with `base`; NULL: the plan as it is. */
static enum status predict_change(struct app *app, const struct predict_request *request,
                                  const struct plan *plan, enum driver driver, size_t first,
                                  size_t count, const char *name, const struct prediction *base,
                                  struct prediction *out)
{
    struct predict_options options = request->predict;
    struct report_row row = {.what_if = name, .base = base, .warnings = &request->warnings};
    for (size_t i = 0; i < request->changes->count; i++)
        columns_widen(&row.what_columns, request->changes->items[i]);
    options.program.driver = driver;
    options.exposed = EXPOSED_NEVER;
    options.times = request->rules + first;
    options.time_count = count;
    enum status status = simulate_watched(app, plan, options, base ? NULL : request->steps, out);
    if (status != STATUS_OK)
        return status;
    if (app->json && !app->silent)
        status = cmd_predict_show_json(app, out, &row);
    else if (!app->silent)
        report_what_if_line(out, &row, stdout);
    warn_of_violations(app, out);
    return status == STATUS_OK && (out->violated || out->overrun.limit_ns > 0) ? STATUS_VIOLATED
                                                                               : status;
}

/* The plan as it is, with each change alone, and with all of them, under the same random numbers. */
static enum status predict_changes(struct app *app, const struct predict_request *request,
                                   const struct plan *plan, enum driver driver)
{
    struct prediction base, changed;
    size_t count = request->changes->count;
    if (!app->json && driver == DRIVER_NONE)
        printf("%s\n\n", plan->name);
    else if (!app->json)
        printf("%s, %s driver\n\n", plan->name, driver_key(driver));
    enum status status = predict_change(app, request, plan, driver, 0, 0, NULL, NULL, &base),
                worst = status;
    if (status != STATUS_OK && status != STATUS_VIOLATED)
        return status;
    for (size_t i = 0; i < count + (count > 1); i++) {
        bool all = i == count;
        status = predict_change(app, request, plan, driver, all ? 0 : i, all ? count : 1,
                                all ? "all of these" : request->changes->items[i], &base, &changed);
        worst = app_worse(worst, status);
        if (status != STATUS_OK && status != STATUS_VIOLATED)
            break;
        prediction_fini(&changed);
    }
    prediction_fini(&base);
    return worst;
}

/* All values of the sweep, all changes, or one prediction without. */
static enum status predict_driver(struct app *app, const struct predict_request *request,
                                  const struct plan *plan, enum driver driver)
{
    enum status worst = STATUS_OK;
    if (request->changes->count)
        return predict_changes(app, request, plan, driver);
    if (!request->swept)
        return predict_one(app, request, plan, driver, 0, NULL, NULL);
    if (!app->json) {
        printf("%s, %s driver\n\n", plan->name, driver_key(driver));
        report_sweep_head(request->swept->name, stdout);
    }
    for (int64_t value = request->from; value <= request->to; value++) {
        enum status status = predict_one(app, request, plan, driver, value, NULL, NULL);
        worst = app_worse(worst, status);
        if (status != STATUS_OK && status != STATUS_VIOLATED)
            break;
    }
    return worst;
}

/* One driver after the other, and the difference between them. */
static enum status predict_both(struct app *app, const struct predict_request *request,
                                const struct plan *plan)
{
    struct prediction clock;
    enum status status = predict_one(app, request, plan, DRIVER_CLOCK, 0, NULL, &clock);
    if (status != STATUS_OK && status != STATUS_VIOLATED)
        return status;
    if (!app->json)
        putchar('\n');
    status = app_worse(status, predict_one(app, request, plan, DRIVER_DATAFLOW, 0, &clock, NULL));
    prediction_fini(&clock);
    return status;
}

/* All workers must have the same arguments and plan. */
static enum status cmd_predict_agree(struct app *app, const struct predict_request *request,
                                     const struct plan *plan)
{
    const char *text;
    if (!request->workers)
        return STATUS_OK;
    enum status status = plan_text_in(plan, &app->arena, &text, &app->diag);
    if (status == STATUS_OK)
        mpi_workers_agree(request->workers,
                          hash_mix(request->digest ^ hash_bytes(text, strlen(text))));
    return status;
}

/* The predicted run comes to its end; another order of the steps of a host program may not. The look is a short one. */
static enum status warn_of_hang(struct app *app, const struct plan *plan,
                                const atomic_bool *interrupted)
{
    enum { HANG_STATES = 2000, HANG_STEPS = 200000 };
    const struct verify_options options = {
        .program = {.iterations = -1},
        .properties = 1u << PROPERTY_DEADLOCK | 1u << PROPERTY_MISMATCH | 1u << PROPERTY_DRAIN,
        .quick = true,
        .interrupted = interrupted,
        .limits = {.states = HANG_STATES, .steps = HANG_STEPS},
    };
    struct verify_report report;
    if (app->quiet)
        return STATUS_OK;
    enum status status = verify_plan(plan, &options, &report, &app->diag);
    if (status != STATUS_OK)
        return status;
    if (report.verdict == VERDICT_VIOLATED)
        diag_warn(&app->diag,
                  "%s: the predicted run finishes, but another order of its steps has a %s; "
                  "'swsim verify' shows it",
                  plan->file, property_key(report.first));
    verify_fini(&report);
    return STATUS_OK;
}

static enum status cmd_predict_plan(struct app *app, const struct predict_request *request,
                                    const struct plan *plan)
{
    int driver = app_driver(app, plan, request->driver, BOTH_DRIVERS);
    enum status agreed = cmd_predict_agree(app, request, plan);
    if (agreed == STATUS_OK)
        agreed = refuse_unexplained(plan, request->opaque, &app->diag);
    if (agreed != STATUS_OK)
        return agreed;
    if (!app->quiet) /* so dry, whose verdict has them */
        coverage_warn(plan, &app->diag);
    if (plan->form != FORM_PIPELINE) {
        if (request->swept)
            return diag_error(&app->diag, STATUS_USAGE,
                              "%s: found --sweep, but only plans of the pipeline form have %s",
                              plan->file,
                              sweeps(request, SWEPT_CORES) ? "one" : request->swept->name);
        enum status status = predict_driver(app, request, plan, DRIVER_NONE);
        return status == STATUS_OK && plan->form == FORM_THREADS
                   ? warn_of_hang(app, plan, request->predict.interrupted)
                   : status;
    }
    bool depth = sweeps(request, SWEPT_DEPTH);
    if (depth && driver == CLOCK_ONLY)
        return diag_error(&app->diag, STATUS_USAGE,
                          "found --sweep max_depth for the clock driver; only data-flow has it");
    if (driver != CLOCK_ONLY && driver != DATAFLOW_ONLY && !request->swept &&
        !request->changes->count)
        return predict_both(app, request, plan);
    enum status status = STATUS_OK;
    if (driver != DATAFLOW_ONLY && !depth)
        status = predict_driver(app, request, plan, DRIVER_CLOCK);
    if (status != STATUS_OK && status != STATUS_VIOLATED)
        return status;
    if (driver != CLOCK_ONLY) {
        if (driver != DATAFLOW_ONLY && !depth && !app->json)
            putchar('\n');
        status = app_worse(status, predict_driver(app, request, plan, DRIVER_DATAFLOW));
    }
    return status;
}

/* The same with measured times. */
static enum status cmd_predict_profiled(struct app *app, const struct predict_request *request,
                                        const struct plan *plan, const char *spec)
{
    struct profile profile;
    int most = sweeps(request, SWEPT_RANKS) ? (int)request->to : request->predict.program.ranks;
    enum status status = profiled_read(app_reader(app), spec, plan, most, app->quiet, &profile);
    if (status != STATUS_OK)
        return status;
    status = cmd_predict_plan(app, request, &profile.plan);
    profile_fini(&profile);
    return status;
}

/* ---- the command line ------------------------------------------------------------------------ */

static uint64_t digest_of(int argc, char **argv)
{
    uint64_t digest = hash_bytes(PACKAGE_VERSION, sizeof PACKAGE_VERSION);
    for (int i = 1; i < argc; i++)
        digest = hash_mix(digest ^ hash_bytes(argv[i], strlen(argv[i])));
    return digest;
}

/* The command line, where the request has it in another form. */
struct predict_line {
    const struct arguments *arguments;
    struct text_list jitters, changes;
    const char *sweep, *profile, *times, *critical, *exposed, *most, *path, *max_step;
    struct hardware_choice hardware;
    int64_t max_step_ns;
    int64_t iterations, ranks, max_depth, cores, replications, seed, threads;
    bool no_mpi, werror;
};

/* --hardware, and what it says of the plan. */
struct predict_hardware {
    struct hardware_times times;
    struct hardware_steps steps;
};

static enum status parse_texts(struct app *app, struct predict_line *line,
                               struct predict_request *request)
{
    enum status status = parse_jitters(app, &line->jitters, &request->predict);
    if (status == STATUS_OK)
        status = parse_changes(app, &line->changes, request);
    if (status == STATUS_OK && line->critical) {
        status = parse_iteration(app, line->critical, request->predict.program.iterations,
                                 &request->critical_iteration);
        request->predict.critical_path = &request->critical_iteration;
    }
    const char *what;
    if (status == STATUS_OK && line->max_step &&
        (!units_parse_time(line->max_step, &line->max_step_ns, &what) || line->max_step_ns <= 0))
        status = diag_error(&app->diag, STATUS_USAGE, "--max-step: found '%s', expected a time",
                            line->max_step);
    if (status == STATUS_OK && line->max_step && !line->hardware.name)
        status = diag_error(&app->diag, STATUS_USAGE, "found --max-step without --hardware");
    if (status == STATUS_OK && line->sweep)
        status = parse_sweep(app, line->sweep, request);
    if (status == STATUS_OK && line->most &&
        (!units_parse_time(line->most, &request->most_ns, &what) || request->most_ns <= 0))
        status =
            diag_error(&app->diag, STATUS_USAGE,
                       "--max-iteration: found '%s', expected a time such as 11ms", line->most);
    if (status == STATUS_OK && line->exposed && *line->exposed &&
        strcmp(line->exposed, "never") != 0)
        status = diag_error(&app->diag, STATUS_USAGE, "--exposed: found '%s', expected never",
                            line->exposed);
    return status;
}

/* The table of --p2p=all has figures of one kind only. */
static enum status refuse_beside_channels(struct app *app, const struct arguments *arguments)
{
    static const char *const without_effect[] = {
        "sweep", "db", "critical-path", "exposed", "max-iteration", "expect"};
    for (size_t i = 0; i < sizeof without_effect / sizeof *without_effect; i++)
        if (options_given(arguments, without_effect[i]))
            return diag_error(&app->diag, STATUS_USAGE, "found --p2p=all together with --%s",
                              without_effect[i]);
    return STATUS_OK;
}

/* Prints the steps, times and memory of the plan on the hardware. The plan may have memory without times, or times without
   memory. STATUS_VIOLATED: a rank does not fit, or a step takes longer than --max-step. */
static enum status predict_hardware_report(struct app *app, const struct predict_line *line,
                                           const struct plan *plan,
                                           const struct predict_hardware *on)
{
    FILE *out = app->json || app->silent ? NULL : stdout;
    if (out && plan->form == FORM_THREADS) {
        hardware_steps_report(&on->steps, out);
        hardware_times_report(&on->times, &line->hardware.hardware, out);
    }
    if (plan->memory_count == 0)
        diag_note(&app->diag,
                  "%s: no memory was recorded, so whether it fits on %s is not known; 'swsim "
                  "record --device=none' records that of PyTorch",
                  plan->file, line->hardware.hardware.name);
    enum status status = fits_report(plan, &line->hardware.hardware, out, &app->diag);
    const int64_t step_ns = hardware_steps_median(&on->steps);
    if (status == STATUS_OK && line->max_step_ns > 0 && step_ns < 0)
        return diag_error(&app->diag, STATUS_INPUT,
                          "%s: found --max-step, but the recording has fewer than two steps of an "
                          "optimizer",
                          plan->file);
    if (status == STATUS_OK && line->max_step_ns > 0 && step_ns > line->max_step_ns) {
        diag_warn(&app->diag, "%s: a step is predicted to take longer than --max-step=%s",
                  plan->file, line->max_step);
        status = STATUS_VIOLATED;
    }
    return status;
}

/* Times for a plan without; ranks that stand for more are those of the plan from here on. */
static enum status predict_hardware_set(struct app *app, struct predict_request *request,
                                        const struct predict_line *line, struct plan *plan,
                                        struct predict_hardware *on)
{
    if (plan->form != FORM_THREADS)
        return STATUS_OK;
    const int ranks = request->predict.program.ranks;
    request->predict.program.ranks = 0;
    request->steps = &on->steps;
    return hardware_times_set(plan, &line->hardware.hardware, &line->hardware.measured, ranks,
                              &on->times, &app->diag);
}

static enum status predict_file(struct app *app, struct predict_request *request,
                                struct predict_line *line)
{
    struct plan plan;
    struct predict_hardware on = {0};
    enum status status = parse_texts(app, line, request);
    if (status == STATUS_OK)
        status = hardware_choice_read(app, &line->hardware);
    if (status == STATUS_OK && request->p2p == CHANNELS_ALL)
        status = refuse_beside_channels(app, line->arguments);
    if (status == STATUS_OK && request->workers && strcmp(line->path, "-") == 0)
        status =
            diag_error(&app->diag, STATUS_USAGE,
                       "found '-', but standard input is that of rank 0 alone: expected a file "
                       "that all ranks can read");
    if (status == STATUS_OK)
        status = plan_read(line->path, &plan, &app->diag);
    if (status != STATUS_OK)
        return status;
    if (line->hardware.name)
        status = predict_hardware_set(app, request, line, &plan, &on);
    if (status == STATUS_OK && !(line->hardware.name && plan.form == FORM_THREADS))
        status = options_check_plan(app, line->arguments, &plan, request->driver, BOTH_DRIVERS);
    if (line->cores > 0 || sweeps(request, SWEPT_CORES))
        plan.machine.cores = (int)(line->cores > 0 ? line->cores : request->from);
    if (status == STATUS_OK)
        status = warned_find(app, &plan, &request->warnings);
    if (status == STATUS_OK && line->times)
        status = option_times(app_reader(app), line->times, &plan);
    if (status == STATUS_OK)
        status = channels_choose(&plan, request->p2p, &app->diag);
    if (status == STATUS_OK && request->p2p != CHANNELS_ALL)
        status = found_resolve(&plan, &plan.arena, &app->diag);
    if (status == STATUS_OK && request->p2p == CHANNELS_ALL)
        status = show_channels(app, &plan, &(struct verify_options){.program = {.iterations = -1}},
                               &request->predict);
    else if (status == STATUS_OK && line->profile)
        status = cmd_predict_profiled(app, request, &plan, line->profile);
    else if (status == STATUS_OK)
        status = cmd_predict_plan(app, request, &plan);
    if (line->hardware.name && (status == STATUS_OK || status == STATUS_VIOLATED))
        status = app_worse(status, predict_hardware_report(app, line, &plan, &on));
    hardware_steps_fini(&on.steps);
    if (line->werror && request->warnings.count)
        status = app_worse(status, STATUS_VIOLATED);
    plan_fini(&plan);
    return status;
}

/* Together with the other processes of mpirun or srun; rank 0 prints and stores. */
static enum status predict_together(struct app *app, struct predict_request *request,
                                    const struct starter *starter, struct predict_line *line)
{
    enum status status = starter->rank > 0 ? app_silence(app) : STATUS_OK;
    if (status != STATUS_OK || !mpi_workers_open(app, starter, &request->workers))
        return status;
    request->predict.wire = mpi_workers_wire(request->workers);
    if (starter->rank > 0)
        request->db = NULL;
    else if (request->workers && request->predict.replications < starter->size)
        diag_note(&app->diag,
                  "the ranks share the replications (--replications): %d of them leave %d of %d "
                  "ranks without work",
                  request->predict.replications, starter->size - request->predict.replications,
                  starter->size);
    status = predict_file(app, request, line);
    return mpi_workers_close(request->workers, app, status);
}

/* Freed memory stays with the process: the next replication uses it again. */
static void cmd_predict_keep_memory(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
#endif
}

static const char about[] =
    "Simulate PLAN and say how long an iteration takes and what every stream waits for.\n"
    "\n"
    "Iteration times are those of the steady state: the warm-up (MSER-5) and the last depth\n"
    "iterations are left out. The confidence interval (95%) is that of 20 batch means, or of\n"
    "the replications; where it should not be trusted a line gives the reason. Fill lasts\n"
    "until the first iteration is over, drain from the last admission to the end. Busy\n"
    "and idle shares are of the whole run. Under one seed all plans and drivers draw the same\n"
    "random numbers.\n"
    "\n"
    "DIST: constant, uniform(half=), normal(cv=), lognormal(cv=), gamma(cv=), exponential,\n"
    "pareto(alpha=), empirical(f, ...), each also with + spike(p=, add=). It holds for the\n"
    "device part of TASK.\n"
    "\n"
    "The steady state of a pipeline without jitter is also computed exactly: as the maximum\n"
    "cycle ratio of the event graph if causes do not depend on the timing, else from the run,\n"
    "once it repeats itself.\n"
    "Work that declares its share of the device (shares, copy_engines) slows other work down,\n"
    "and so does all work where there are fewer cores than it keeps busy (cores): the report\n"
    "says by how much.\n"
    "Above ten million iterations the quantiles come from a sample.\n"
    "\n"
    "With --profile the CPU part and the device part of every task draw their durations from\n"
    "those measured in a serial run ('swrun --serial --db FILE PLAN') or found by an import\n"
    "('swsim import --form=pipeline --db FILE TRACE'): in RUN, or in the newest one of a plan of\n"
    "this name. If the work of RUN was computed on the host, the prediction uses as many cores\n"
    "as its machine had, unless the plan or --cores names another number.\n"
    "\n"
    "Under mpirun or srun the processes share the replications, also those of each line of a\n"
    "sweep and of each change of a what-if; the figures are those of one process, and rank 0\n"
    "prints them.";

static const char examples[] =
    "  swsim predict plans/torchrec/sparse_dist.yaml\n"
    "  swsim predict --jitter='H2D=lognormal(cv=0.3)' --driver=dataflow \\\n"
    "      --sweep=max_depth=1..8 plans/reference/sparse_dist.yaml\n"
    "  swsim predict --what-if=Forward=0.8x --what-if=H2D=1ms plan.yaml\n"
    "  swsim predict --times=F=1ms,B=2ms schedule.csv\n"
    "  mpirun -n 4 swsim predict --replications=1000 --jitter='*=gamma(cv=0.2)' plan.yaml";

static bool cmd_predict_parse_line(struct app *app, int argc, char **argv,
                                   struct predict_request *request, struct predict_line *line,
                                   struct arguments *arguments, enum status *status)
{
    const struct option_spec options[] = {
        {"driver", 0, "clock|dataflow|both",
         "pipeline form: which driver (default: the plan's, else both)", OPTION_CHOICE,
         .value = &request->driver},
        {"iterations", 'n', "N", "pipeline form: iterations in a replication (default 1000)",
         OPTION_INTEGER, .value = &line->iterations, .min = 1, .max = PLAN_MAX_ITERATIONS},
        {"replications", 0, "N", "simulations, each with other random numbers (default 1)",
         OPTION_INTEGER, .value = &line->replications, .min = 1, .max = PREDICT_MAX_REPLICATIONS},
        {"seed", 0, "S", "of all random numbers (default 1)", OPTION_INTEGER, .value = &line->seed,
         .max = INT64_MAX},
        {"jitter", 0, "TASK=DIST", "vary the time of TASK ('*': of every task); may be repeated",
         OPTION_LIST, .value = &line->jitters},
        {"sweep", 0, "KEY=A..B", "one line for each value of max_depth, ranks or cores",
         OPTION_TEXT, .value = &line->sweep},
        {"what-if", 0, "TASK=0.8x",
         "effect of another time of TASK (0.8x, 2ms); a * stands for any characters; may be "
         "repeated",
         OPTION_LIST, .value = &line->changes, .excludes = "sweep db"},
        {"critical-path", 0, "[ITERATION]",
         "what determined when ITERATION finished (a number or 'slowest'; default: the middle one)",
         OPTION_TEXT, .value = &line->critical, .excludes = "sweep what-if"},
        {"exposed", 0, "[never]", "compute exposed times even for many tasks, or leave them out",
         OPTION_TEXT, .value = &line->exposed},
        {"times", 0, "F=T,B=T,...", "rank programs: durations of actions (default: the plan's)",
         OPTION_TEXT, .value = &line->times},
        HARDWARE_OPTIONS(
            &line->hardware,
            "recordings: times of this GPU (h100-sxm, a100-80, ...), and does the memory fit "
            "there?"),
        {"max-step", 0, "TIME", "with --hardware: exit with 1 where a step takes longer",
         OPTION_TEXT, .value = &line->max_step},
        {"p2p", 0, CHANNELS_CHOICE,
         "rank programs: channels of messages (default: the plan's); all: a table", OPTION_CHOICE,
         .value = &request->p2p, .excludes = "profile what-if"},
        {"ranks", 0, "N", "ranks (default: the plan's)", OPTION_INTEGER, .value = &line->ranks,
         .min = 1, .max = PLAN_MAX_RANKS},
        {"max-depth", 0, "N", "most iterations in flight, data-flow (default: the plan's)",
         OPTION_INTEGER, .value = &line->max_depth, .min = 1, .max = PLAN_MAX_DEPTH},
        {"cores", 0, "N",
         "cores for the work of all ranks (default: the plan's, with --profile the run's "
         "machine's)",
         OPTION_INTEGER, .value = &line->cores, .min = 1, .max = PLAN_MAX_CORES},
        {"db", 0, "FILE", "store the trace of the first replication", OPTION_TEXT,
         .value = &request->db},
        {"threads", 0, "N", "threads for the replications (default: one a processor)",
         OPTION_INTEGER, .value = &line->threads, .min = 1, .max = PREDICT_MAX_THREADS},
        {"no-mpi", 0, NULL, "under mpirun: each process works by itself, as if started alone",
         OPTION_FLAG, .value = &line->no_mpi},
        {"max-iteration", 0, "T", "exit with 1 if an iteration takes longer than T, such as 11ms",
         OPTION_TEXT, .value = &line->most, .excludes = "sweep what-if"},
        {"expect", 0, NULL, "exit with 1 if it takes longer than the plan's `expect:` says",
         OPTION_FLAG, .value = &request->expect, .excludes = "sweep what-if"},
        {"werror", 0, NULL, "exit with 1 where there are warnings about the plan", OPTION_FLAG,
         .value = &line->werror},
        {"opaque", 0, NULL, "predict an import also where more than 5% of its time is unexplained",
         OPTION_FLAG, .value = &request->opaque},
        {"profile", 0, "FILE[:RUN]", "measured times: a serial run or an import in a trace store",
         OPTION_TEXT, .value = &line->profile, .excludes = "jitter",
         .because = "the measured times have their own jitter"},
    };
    const struct command command = {
        .name = "swsim predict",
        .arguments = "PLAN",
        .about = about,
        .examples = examples,
        COMMAND_OPTIONS(options),
    };
    if (!options_parse(app, &command, argc, argv, arguments, status))
        return false;
    line->arguments = arguments;
    line->path = arguments->items[0];
    return true;
}

enum status cmd_predict(struct app *app, int argc, char **argv)
{
    struct predict_request request = {
        .driver = DRIVER_NOT_GIVEN, .p2p = CHANNELS_NOT_GIVEN, .digest = digest_of(argc, argv)};
    struct starter starter;
    struct arguments arguments;
    enum status status;
    cmd_predict_keep_memory();
    starter_find(&starter);
    app->silent = starter.rank > 0;
    struct predict_line line = {.iterations = PREDICT_ITERATIONS,
                                .replications = 1,
                                .seed = 1,
                                .threads =
                                    min_int(starter_processors(&starter), PREDICT_MAX_THREADS)};
    if (!cmd_predict_parse_line(app, argc, argv, &request, &line, &arguments, &status))
        return status;
    request.predict = (struct predict_options){
        .program = {.iterations = line.iterations,
                    .ranks = (int)line.ranks,
                    .max_depth = (int)line.max_depth},
        .seed = (uint64_t)line.seed,
        .replications = (int)line.replications,
        .threads = (int)line.threads,
        .exposed = !line.exposed           ? EXPOSED_IF_CHEAP
                   : *line.exposed == '\0' ? EXPOSED_ALWAYS
                                           : EXPOSED_NEVER,
    };
    if (line.no_mpi) {
        app->silent = false;
        starter = (struct starter){0};
    }
    status = starter_check(&starter, &app->diag);
    if (status != STATUS_OK)
        return status;
    if (starter.size <= 1) /* the ranks of a launcher are ended by it, all together */
        request.predict.interrupted = interrupts_catch();
    return predict_together(app, &request, &starter, &line);
}
