/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_verify.c - `swsim verify`: prove plans or refute them. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "improve/found.h"
#include "api/finding.h"
#include "api/unexplained.h"
#include "base/input.h"
#include "base/output.h"
#include "base/system_words.h"
#include "base/units.h"
#include "check/certify.h"
#include "base/stopwatch.h"
#include "check/many_ranks.h"
#include "sim/predict/predict.h"

#include "app.h"
#include "limits.h"
#include "options.h"
#include "show_channels.h"
#include "verdict_formats.h"
#include "witness.h"

/* ---- the file of the plan -------------------------------------------------------------------- */

/* A file gets another text, whole or not at all. */

static enum status system_error(struct app *app, const char *what, const char *path)
{
    return diag_error(&app->diag, STATUS_SYSTEM, "cannot %s %s: %s", what, path,
                      system_words(errno));
}

/* True if the rest of the file is this text. */
static bool holds(FILE *file, const char *text)
{
    for (int byte; (byte = fgetc(file)) != EOF; text++)
        if (!*text || byte != (unsigned char)*text)
            return false;
    return !*text && !ferror(file);
}

static enum status cmd_verify_check(struct app *app, const char *path, const char *known)
{
    struct stat about;
    FILE *file = input_open_stream(path, &app->diag);
    if (!file)
        return STATUS_SYSTEM;
    bool asked = fstat(fileno(file), &about) == 0, same = asked && holds(file, known);
    bool failed = !asked || ferror(file);
    int error = errno;
    fclose(file);
    errno = error;
    if (failed)
        return system_error(app, "read", path);
    if (!S_ISREG(about.st_mode))
        return diag_error(&app->diag, STATUS_USAGE,
                          "%s was not changed: it is not an ordinary file", path);
    return same ? STATUS_OK
                : diag_error(&app->diag, STATUS_INPUT,
                             "%s was not changed: it is no longer the file that was read", path);
}

/* The file must still hold `known`; it is then replaced as base/output.h says. STATUS_USAGE: it is standard input or
   no ordinary file; STATUS_INPUT: it has changed; STATUS_SYSTEM. */
static enum status replace_file(struct app *app, const char *path, const char *known,
                                const char *text)
{
    if (strcmp(path, "-") == 0)
        return diag_error(&app->diag, STATUS_USAGE,
                          "standard input cannot be changed: --fix=FILE writes the repaired plan");
    enum status status = cmd_verify_check(app, path, known);
    return status == STATUS_OK ? output_write(path, text, strlen(text), &app->diag) : status;
}

/* ---- certificates ---------------------------------------------------------------------------- */

/* The file of `swsim verify --certificate`: why a plan is proved, for swcheck. */

static unsigned proved_properties(const struct verify_report *report)
{
    unsigned proved = 0;
    for (int p = 0; p < PROPERTY_COUNT; p++)
        if (report->outcome[p] == OUTCOME_PROVED)
            proved |= 1u << p;
    return proved;
}

/* "race, value" in the arena. */
static const char *property_list(struct app *app, unsigned properties)
{
    const char *list = "";
    for (int p = 0; p < PROPERTY_COUNT && list; p++)
        if (properties & 1u << p)
            list = arena_printf(&app->arena, "%s%s%s", list, *list ? ", " : "",
                                property_key((enum property)p));
    return list ? list : "";
}

static enum status write_one(struct app *app, const struct plan *plan,
                             const struct verify_options *options,
                             const struct verify_report *report, FILE *out)
{
    struct search_watch watch = {.until_ns = stopwatch_until(options->limits.time_ns),
                                 .interrupted = options->interrupted};
    struct program_options program = options->program;
    unsigned proved = proved_properties(report);
    struct certified certified;
    program.driver = report->driver;
    enum status status =
        certify_plan(plan, &program, proved, CERTIFY_STATES, &watch, &certified, &app->diag);
    if (status != STATUS_OK)
        return status;
    if (certified.text)
        fputs(certified.text, out);
    unsigned missing = proved & ~certified.covers;
    const char *driver = report->driver == DRIVER_NONE ? "" : driver_key(report->driver);
    if (missing)
        diag_note(&app->diag, "%s%s%s: no certificate for %s%s%s", report->file,
                  *driver ? ", driver " : "", driver, property_list(app, missing),
                  *certified.why_not ? ": " : "", certified.why_not);
    free(certified.text);
    return STATUS_OK;
}

/* Write a certificate for each of the reports, of one plan and several drivers. A property that none covers is told in a note, and nothing
   is written where not all are proved. */
static enum status certificate_save(struct app *app, const struct plan *plan,
                                    const struct verify_options *options,
                                    const struct verify_report *reports, int count,
                                    const char *path)
{
    for (int i = 0; i < count; i++)
        if (reports[i].verdict != VERDICT_PROVED) {
            diag_note(&app->diag, "%s was not written: %s is %s", path, plan->file,
                      verdict_key(reports[i].verdict));
            return STATUS_OK;
        }
    struct text_stream all;
    size_t bytes = 0;
    if (!text_open(&all))
        return diag_no_memory(&app->diag);
    enum status status = STATUS_OK;
    for (int i = 0; i < count && status == STATUS_OK; i++)
        status = write_one(app, plan, options, &reports[i], all.out);
    char *text = text_close(&all, status == STATUS_OK, &bytes);
    if (status == STATUS_OK && !text)
        status = diag_no_memory(&app->diag);
    else if (status == STATUS_OK && bytes == 0)
        diag_note(&app->diag, "%s was not written: there is no certificate", path);
    else if (status == STATUS_OK)
        status = app_write_file(app, path, text);
    free(text);
    return status;
}

enum { BITSTATE_LEAST = 64 };

struct verify_request {
    struct verify_options verify;
    int p2p;              /* --p2p: enum fifo_rule, CHANNELS_ALL or CHANNELS_NOT_GIVEN */
    const char *bitstate; /* its size, "" for the default; NULL: an exact search */
    int driver;           /* enum driver_choice */
    const struct arguments *arguments;
    bool expect;
    bool werror;         /* a proof that is not plain is a violation */
    int require;         /* --require: enum required */
    const char *witness; /* where counterexamples go; NULL: nowhere, or already written */
    bool no_fix, full;
    const char *fix;         /* where the repaired plan goes; NULL: nowhere */
    int64_t fix_budget;      /* candidates; 0: the default */
    const char *certificate; /* where the proof goes; NULL: nowhere */
    int format;              /* enum verdict_format */
    struct formats formats;  /* other than FORMAT_TEXT */
    bool as_expected;        /* the verdict that is shown is the one that the plan expects */
};

/* ---- options that are lists ------------------------------------------------------------------ */

/* "states=N,mem=SIZE,time=DURATION", any of them. */
static enum status cmd_verify_parse_limit(struct option_reader reader, const char *key,
                                          const char *value, void *context)
{
    struct search_limits *limits = context;
    int64_t number;
    bool known;
    enum status status =
        limits_read(reader, key, value, &limits->mem_bytes, &limits->time_ns, &known);
    if (status != STATUS_OK || known)
        return status;
    if (strcmp(key, "states") != 0)
        return diag_error(reader.diag, STATUS_USAGE,
                          "--limit: found '%s', expected states=N, mem=SIZE or time=DURATION", key);
    status = option_number(reader, "--limit states", value ? value : "", 1, INT64_MAX, &number);
    if (status == STATUS_OK)
        limits->states = (uint64_t)number;
    return status;
}

/* The size of the filter, by default half of the memory limit. */
static enum status parse_bitstate(struct app *app, const char *text, struct verify_options *options)
{
    int64_t bytes;
    const char *what;
    size_t limit = options->limits.mem_bytes ? options->limits.mem_bytes : SEARCH_DEFAULT_MEMORY;
    options->bitstate_bytes = limit / 2;
    if (*text == '\0')
        return STATUS_OK;
    if (!units_parse_bytes(text, &bytes, &what))
        return diag_error(&app->diag, STATUS_USAGE, "--bitstate: found '%s', %s", text, what);
    if (bytes < BITSTATE_LEAST)
        return diag_error(&app->diag, STATUS_USAGE,
                          "--bitstate: found '%s', expected at least %d B", text, BITSTATE_LEAST);
    options->bitstate_bytes = (size_t)bytes;
    return STATUS_OK;
}

static enum status parse_iterations(struct app *app, const char *text, int64_t *iterations)
{
    if (strcmp(text, "unbounded") == 0) {
        *iterations = -1;
        return STATUS_OK;
    }
    enum status status =
        option_number(app_reader(app), "--iterations", text, 0, PLAN_MAX_ITERATIONS, iterations);
    if (status != STATUS_OK)
        diag_note(&app->diag, "'unbounded' is any number of iterations");
    return status;
}

/* ---- the work -------------------------------------------------------------------------------- */

static void cmd_verify_show_progress(void *arg, const struct search_progress *search)
{
    char bytes[UNITS_TEXT];
    units_show_bytes((double)search->bytes, bytes);
    progress_show(arg,
                  "%" PRIu64 " states, %.0f/s, %" PRIu64 " to expand, %" PRIu64
                  " transitions, %s, %.0f s",
                  search->states, (double)search->states / search->seconds, search->frontier,
                  search->transitions, bytes, search->seconds);
}

/* The words of --require. */
#define REQUIRE_CHOICE "accesses"
enum required { REQUIRE_ACCESSES, REQUIRE_NOTHING };

/* Where --require, or under --expect the plan, asks that all work declares what it accesses. */
static enum status judge_coverage(struct app *app, const struct verify_request *request,
                                  const struct finding *finding)
{
    const struct plan *plan = finding->plan;
    const bool expected = plan->expect.covers_all || plan->expect_dataflow.covers_all;
    if (request->require != REQUIRE_ACCESSES && !(request->expect && expected))
        return STATUS_OK;
    return coverage_tell_undeclared(plan, &finding->coverage, &app->diag);
}

/* Under --expect, where the plan has a bound for the time of an iteration. */
static enum status judge_time(struct app *app, const struct verify_request *request,
                              const struct plan *plan, enum driver driver)
{
    const struct expectation *expect =
        driver == DRIVER_DATAFLOW ? &plan->expect_dataflow : &plan->expect;
    struct prediction prediction;
    bool asked;
    if (!request->expect || expect->below_ns == 0)
        return STATUS_OK;
    enum status status = refuse_unexplained(plan, false, &app->diag);
    struct predict_options options = {.program = request->verify.program,
                                      .seed = 1,
                                      .replications = 1,
                                      .threads = 1,
                                      .exposed = EXPOSED_NEVER,
                                      .interrupted = request->verify.interrupted};
    options.program.driver = driver;
    options.program.iterations = PREDICT_ITERATIONS;
    if (status == STATUS_OK)
        status = predict(plan, &options, &prediction, &app->diag);
    if (status != STATUS_OK)
        return status;
    status = prediction_keeps_bounds(&prediction, true, 0, &asked, &app->diag) ? STATUS_OK
                                                                               : STATUS_VIOLATED;
    prediction_fini(&prediction);
    return status;
}

static enum status cmd_verify_judge(struct app *app, const struct verify_request *request,
                                    const struct plan *plan, const struct verify_report *report)
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
static enum status keep_witness(struct app *app, struct verify_request *request,
                                const struct finding *finding, const struct verdict_view *view)
{
    struct program_options options = request->verify.program;
    options.driver = view->report->driver;
    if (!request->witness || view->report->verdict != VERDICT_VIOLATED)
        return STATUS_OK;
    enum status status = witness_save(app, finding->plan, &options, view, request->witness);
    /* A store that could not take one driver's witness is not tried again. */
    if (!witness_keeps_all(request->witness) || status != STATUS_OK)
        request->witness = NULL;
    return status;
}

/* The look of results on `out`. */
static struct verdict_style style_of(struct app *app, bool full, FILE *out)
{
    return (struct verdict_style){.arena = &app->arena,
                                  .diag = &app->diag,
                                  .color = app_color(app, out),
                                  .quiet = app->quiet,
                                  .whole = full};
}

static void show_repair_progress(void *arg, const struct repair_progress *repair)
{
    progress_show(arg, "looking for a fix: %" PRIu64 " candidates, %" PRIu64 " states, %.0f s",
                  repair->candidates, repair->states, repair->seconds);
}

/* For people --expect and --quiet leave out the repair, unless --fix asks for it: a file for programs has it. A bitstate
   search cannot prove a repair, and an interrupt ends all work. */
static bool wants_repair(const struct app *app, const struct verify_request *request)
{
    if (request->bitstate || interrupts_seen())
        return false;
    return request->fix || (!request->no_fix && (request->format != FORMAT_TEXT || app->json ||
                                                 (!request->expect && !app->quiet)));
}

static enum status find_repair(struct app *app, const struct verify_request *request,
                               struct finding *finding)
{
    struct progress progress;
    const struct repair_options options = {.verify = request->verify,
                                           .candidates = (uint64_t)request->fix_budget,
                                           .progress = show_repair_progress,
                                           .progress_arg = &progress};
    progress_init(&progress, app);
    enum status status = finding_repair(finding, &options, &app->diag);
    progress_clear(&progress);
    return status;
}

static enum status show_view(struct app *app, struct verify_request *request, bool full,
                             const struct verdict_view *view)
{
    struct json json;
    if (request->format != FORMAT_TEXT) {
        return formats_verdict(&request->formats, view, request->as_expected, &app->arena,
                               &app->diag);
    }
    const struct verdict_style style = style_of(app, full, stdout);
    if (!app->json)
        return verdict_print(&style, view, stdout);
    json_open(&json, stdout);
    verdict_write(view, &json);
    return json_close(&json, &app->diag);
}

/* For people: a search for a repair may take long, and the verdict stands there by then. */
static bool is_told_first(const struct app *app, const struct verify_request *request)
{
    return request->format == FORMAT_TEXT && !app->json;
}

static enum status show_repair(struct app *app, struct verify_request *request,
                               struct finding *finding, int number)
{
    const struct verdict_style style = style_of(app, request->full, stdout);
    fflush(stdout);
    enum status status = find_repair(app, request, finding);
    const struct verdict_view view = finding_view(finding, number);
    if (status == STATUS_OK && !app->quiet)
        verdict_print_repair(&style, &view, stdout);
    return status;
}

static enum status cmd_verify_show(struct app *app, struct verify_request *request,
                                   struct finding *finding, int number)
{
    struct verdict_view view = finding_view(finding, number);
    enum status status = show_view(app, request, request->full, &view);
    if (status == STATUS_OK && view.report->verdict == VERDICT_VIOLATED &&
        !finding->repair_sought && is_told_first(app, request) && wants_repair(app, request))
        status = show_repair(app, request, finding, number);
    if (status != STATUS_OK)
        return status;
    status = keep_witness(app, request, finding, &view);
    if (request->werror && view.report->verdict == VERDICT_PROVED &&
        (!verdict_is_plain(&view) || view.warnings->count > 0))
        status = app_worse(status, STATUS_VIOLATED);
    return status;
}

/* The output while a driver is verified. */
struct screen {
    struct app *app;
    struct progress progress;
    bool told, full;
};

/* A violation, printed before the verdict is complete. */
static void show_found(void *arg, const struct verify_report *so_far)
{
    struct screen *screen = arg;
    if (screen->told)
        return;
    screen->told = true;
    progress_clear(&screen->progress);
    const struct verdict_style style = style_of(screen->app, screen->full, stdout);
    verdict_print_found(&style, so_far, stdout);
    fflush(stdout);
}

static enum status verify_driver(struct app *app, const struct verify_request *request,
                                 struct finding *finding, enum driver driver)
{
    struct screen screen = {.app = app, .full = request->full};
    struct verify_options options = request->verify;
    options.program.driver = driver;
    options.progress = cmd_verify_show_progress;
    options.progress_arg = &screen.progress;
    /* The second driver's story is told only where it is another one, which its verdict says. */
    options.found = app->json || app->quiet || request->format != FORMAT_TEXT || finding->count > 0
                        ? NULL
                        : show_found;
    options.found_arg = &screen;
    progress_init(&screen.progress, app);
    enum status status = finding_verify(finding, &options, &app->diag);
    progress_clear(&screen.progress);
    return status;
}

static enum status verify_drivers(struct app *app, const struct verify_request *request,
                                  struct finding *finding)
{
    if (finding->plan->form != FORM_PIPELINE)
        return verify_driver(app, request, finding, DRIVER_NONE);
    enum status status = STATUS_OK;
    int driver = app_driver(app, finding->plan, request->driver, BOTH_DRIVERS);
    if (driver != DATAFLOW_ONLY)
        status = verify_driver(app, request, finding, DRIVER_CLOCK);
    if (driver != CLOCK_ONLY && status != STATUS_SYSTEM && !interrupts_seen())
        status = app_worse(status, verify_driver(app, request, finding, DRIVER_DATAFLOW));
    return status;
}

/* ---- repair ---------------------------------------------------------------------------------- */

/* --fix: the author's file itself. */
static enum status fix_in_place(struct app *app, const struct finding *finding)
{
    const struct plan *plan = finding->plan;
    const struct repair *repair = &finding->repair;
    if (!repair->edited)
        return diag_error(&app->diag, STATUS_USAGE,
                          "%s was not changed: the fix cannot be written as edits of this text; "
                          "--fix=FILE writes the repaired plan",
                          plan->file);
    enum status status = replace_file(app, plan->file, plan->text, repair->edited);
    if (status == STATUS_OK)
        diag_note(&app->diag, "%s: fixed: %s (%s)", plan->file, repair->change,
                  verdict_proved_under(repair, finding->count > 1));
    return status;
}

static enum status save_repair(struct app *app, const char *path, const struct finding *finding)
{
    const char *target = *path ? path : finding->plan->file;
    if (!finding->repair_sought || !finding->repair.found) {
        diag_note(&app->diag, "%s was not %s: %s", target, *path ? "written" : "changed",
                  finding->repair_sought ? "no fix was found" : "there is nothing to repair");
        return STATUS_OK;
    }
    if (!*path)
        return fix_in_place(app, finding);
    return app_write_file(app, path,
                          finding->repair.edited ? finding->repair.edited : finding->repair.text);
}

/* A certificate speaks of every driver that was asked for, or is not written. */
static enum status save_certificate(struct app *app, const struct verify_request *request,
                                    const struct finding *finding, bool all_drivers)
{
    if (request->verify.many_ranks) {
        diag_note(&app->diag,
                  "%s was not written: a certificate covers the ranks of the plan and no others",
                  request->certificate);
        return STATUS_OK;
    }
    if (all_drivers)
        return certificate_save(app, finding->plan, &request->verify, finding->reports,
                                finding->count, request->certificate);
    diag_note(&app->diag, "%s was not written: %s was not verified under every driver",
              request->certificate, finding->plan->file);
    return STATUS_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum status verify_plan_file(struct app *app, struct verify_request *request,
                                    struct finding *finding)
{
    enum status status = verify_drivers(app, request, finding);
    bool all_drivers = status == STATUS_OK && !interrupts_seen();
    size_t first = 0;
    if (all_drivers) {
        status = finding_dead_writes(finding, &request->verify, &app->arena, &first, &app->diag);
        warned_tell_from(app, finding->plan, &finding->warnings, first);
    }
    if (finding->count > 0 && status == STATUS_OK && !is_told_first(app, request) &&
        wants_repair(app, request))
        status = find_repair(app, request, finding);
    for (int d = 0; d < finding->count; d++) {
        const struct verify_report *report = &finding->reports[d];
        enum status judged = cmd_verify_judge(app, request, finding->plan, report);
        request->as_expected = request->expect && judged == STATUS_OK;
        status = app_worse(status, cmd_verify_show(app, request, finding, d));
        status = app_worse(status, judged);
        if (!interrupts_seen())
            status = app_worse(status, judge_time(app, request, finding->plan, report->driver));
        if (report->no_memory)
            status = app_worse(status, STATUS_SYSTEM);
    }
    status = app_worse(status, judge_coverage(app, request, finding));
    if (request->fix && finding->count > 0)
        status = app_worse(status, save_repair(app, request->fix, finding));
    if (request->certificate && finding->count > 0)
        status = app_worse(status, save_certificate(app, request, finding, all_drivers));
    return status;
}

/* All channels in one table. */
static enum status verify_channels(struct app *app, const struct plan *plan,
                                   const struct verify_request *request)
{
    const struct predict_options predict = {
        .program = {.iterations = 1, .ranks = request->verify.program.ranks},
        .seed = 1,
        .replications = 1,
        .threads = 1,
        .interrupted = request->verify.interrupted};
    return show_channels(app, plan, &request->verify, &predict);
}

static enum status verify_one(struct app *app, struct plan *plan, void *context)
{
    struct verify_request *request = context;
    many_ranks_option(&request->verify, plan);
    enum status chosen =
        options_check_plan(app, request->arguments, plan, request->driver, BOTH_DRIVERS);
    if (chosen == STATUS_OK)
        chosen = channels_choose(plan, request->p2p, &app->diag);
    if (chosen == STATUS_OK && request->p2p != CHANNELS_ALL)
        chosen = found_resolve(plan, &plan->arena, &app->diag);
    if (chosen != STATUS_OK)
        return chosen;
    if (request->p2p == CHANNELS_ALL)
        return verify_channels(app, plan, request);
    struct finding *finding = ARENA_NEW(&app->arena, struct finding);
    if (!finding)
        return diag_no_memory(&app->diag);
    enum status status = finding_open(finding, plan, &app->arena, &app->diag);
    if (status != STATUS_OK)
        return status;
    warned_tell_from(app, plan, &finding->warnings, 0);
    status = verify_plan_file(app, request, finding);
    finding_close(finding);
    return status;
}

static enum status verify_all(struct app *app, struct verify_request *request,
                              const struct arguments *plans)
{
    enum status status = STATUS_OK;
    if (request->format != FORMAT_TEXT)
        formats_begin(&request->formats, (enum verdict_format)request->format, stdout);
    else if (plans->count > 1 && !app->json && !app->quiet)
        verdict_print_head(stdout);
    for (int i = 0; i < plans->count && !interrupts_seen(); i++) {
        const enum status one = app_with_written(app, plans->items[i], verify_one, request);
        status = app_worse(status, one);
        if (request->format != FORMAT_TEXT)
            formats_errors(&request->formats, plans->items[i], one, &app->diag);
        app_report(app);
    }
    return request->format == FORMAT_TEXT
               ? status
               : app_worse(status, formats_end(&request->formats, &app->diag));
}

/* The options with a grammar of their own. */
static enum status finish_request(struct app *app, struct verify_request *request,
                                  const char *iterations, const char *limits,
                                  const char *properties)
{
    enum status status = STATUS_OK;
    request->verify.program.iterations = -1;
    if (iterations)
        status = parse_iterations(app, iterations, &request->verify.program.iterations);
    if (status == STATUS_OK && limits)
        status =
            option_each(app_reader(app), limits, cmd_verify_parse_limit, &request->verify.limits);
    if (status == STATUS_OK && properties)
        status = option_properties(app_reader(app), properties, &request->verify.properties);
    if (status == STATUS_OK && request->bitstate)
        status = parse_bitstate(app, request->bitstate, &request->verify);
    if (status == STATUS_OK && request->bitstate && request->verify.threads > 1)
        status = diag_error(&app->diag, STATUS_USAGE,
                            "--bitstate searches with one thread: found --threads=%d",
                            request->verify.threads);
    return status;
}

#define PROPERTY_WORD(name, key) " " key

static const char about[] =
    "Explore every interleaving of every PLAN, for any number of iterations, and say\n"
    "whether each property is proved or violated. A violation is shown with the steps\n"
    "that lead to it, with the agents that are blocked in the end, and with the smallest\n"
    "change of the plan found that repairs it. The repaired plan is proved, too.";

static const char examples[] =
    "  swsim verify plans/torchrec/sparse_dist.yaml\n"
    "  swsim verify --expect plans/deadlocks/*.yaml\n"
    "  swsim verify --witness=hang.svg plans/bugs/nccl_send_send_broken.yaml";

enum status cmd_verify(struct app *app, int argc, char **argv)
{
    struct verify_request request = {
        .driver = DRIVER_NOT_GIVEN, .p2p = CHANNELS_NOT_GIVEN, .require = REQUIRE_NOTHING};
    const char *iterations = NULL, *limits = NULL, *properties = NULL;
    int64_t ranks = 0, max_depth = 0, threads = 1;
    const struct option_spec options[] = {
        {"driver", 0, "clock|dataflow|both",
         "pipeline form: which driver (default: the plan's, else both)", OPTION_CHOICE,
         .value = &request.driver},
        {"iterations", 'n', "N|unbounded", "pipeline form: iterations of data (default unbounded)",
         OPTION_TEXT, .value = &iterations},
        {"ranks", 0, "N",
         "ranks (default: the plan's); of a host program more, which do what its own do",
         OPTION_INTEGER, .value = &ranks, .min = 1, .max = PLAN_MAX_RANKS},
        {"max-depth", 0, "N", "most iterations in flight, data-flow (default: the plan's)",
         OPTION_INTEGER, .value = &max_depth, .min = 1, .max = PLAN_MAX_DEPTH},
        {"property", 0, "LIST",
         "check only these, separated by commas:" PROPERTY_LIST(PROPERTY_WORD), OPTION_TEXT,
         .value = &properties},
        {"faults", 0, NULL,
         "also check failure safety: a task fails, the data ends early or a rank dies", OPTION_FLAG,
         .value = &request.verify.faults},
        {"no-reduction", 0, NULL, "explore without reductions: slower, same verdicts", OPTION_FLAG,
         .value = &request.verify.no_reduction},
        {"limit", 0, "LIST", "stop, undecided, at a limit: states=N,mem=SIZE,time=DURATION",
         OPTION_TEXT, .value = &limits},
        {"threads", 0, "N", "threads to search with (default 1): same verdict, same states",
         OPTION_INTEGER, .value = &threads, .min = 1, .max = SEARCH_MAX_THREADS},
        {"bitstate", 0, "[SIZE]",
         "store a few bits of each state: finds violations, proves nothing", OPTION_TEXT,
         .value = &request.bitstate},
        {"no-shorten", 0, NULL,
         "show counterexamples as they were found, without making them shorter", OPTION_FLAG,
         .value = &request.verify.any_witness},
        {"full", 0, NULL, "tell every step of a counterexample, none folded or left out",
         OPTION_FLAG, .value = &request.full},
        {"witness", 0, "FILE",
         "write the first counterexample: .txt .json .svg .png .dot; or add all to a store: .db",
         OPTION_TEXT, .value = &request.witness},
        {"fix", 0, "[FILE]", "write the repair into PLAN itself, or the repaired plan to FILE",
         OPTION_TEXT, .value = &request.fix, .excludes = "bitstate",
         .because = "a repair is written only if it is proved"},
        {"no-fix", 0, NULL, "do not search for a repair of a violated plan", OPTION_FLAG,
         .value = &request.no_fix},
        {"fix-budget", 0, "N", "try at most N changed plans (default 3000)", OPTION_INTEGER,
         .value = &request.fix_budget, .min = 1, .max = INT32_MAX},
        {"certificate", 0, "FILE", "write why a proved plan is proved, for swcheck", OPTION_TEXT,
         .value = &request.certificate, .excludes = "bitstate", .because = "it proves nothing"},
        {"werror", 0, NULL, "exit with 1 also if a proof has exceptions or there are warnings",
         OPTION_FLAG, .value = &request.werror},
        {"require", 0, REQUIRE_CHOICE,
         "exit with 1 where work does not declare what it reads and writes", OPTION_CHOICE,
         .value = &request.require},
        {"p2p", 0, CHANNELS_CHOICE,
         "rank programs: channels of messages (default: the plan's); all: a table", OPTION_CHOICE,
         .value = &request.p2p},
        {"format", 0, VERDICT_FORMATS,
         "verdicts for people (the default), as annotations of a pull request, as SARIF, as "
         "JUnit's XML",
         OPTION_CHOICE, .value = &request.format},
        {"expect", 0, NULL, "compare the verdicts with the plan's `expect:`", OPTION_FLAG,
         .value = &request.expect},
    };
    const struct command command = {
        .unlimited = true,
        .name = "swsim verify",
        .arguments = "PLAN...",
        .about = about,
        .examples = examples,
        COMMAND_OPTIONS(options),
        .more_arguments = INT_MAX,
    };
    struct arguments arguments;
    enum status status;
    if (!options_parse(app, &command, argc, argv, &arguments, &status))
        return status;
    if (request.fix && arguments.count > 1)
        return diag_error(&app->diag, STATUS_USAGE, "--fix: found %d plans, expected one",
                          arguments.count);
    if (request.format != FORMAT_TEXT && app->json)
        return diag_error(&app->diag, STATUS_USAGE,
                          "--format: found --json, which is a format too");
    if (request.format != FORMAT_TEXT && request.p2p == CHANNELS_ALL)
        return diag_error(&app->diag, STATUS_USAGE,
                          "--format: found --p2p=all, which prints a table");
    if (request.certificate && arguments.count > 1)
        return diag_error(&app->diag, STATUS_USAGE, "--certificate: found %d plans, expected one",
                          arguments.count);
    request.arguments = &arguments;
    request.verify.threads = (int)threads;
    status = finish_request(app, &request, iterations, limits, properties);
    if (status != STATUS_OK)
        return status;
    request.verify.program.ranks = (int)ranks;
    request.verify.program.max_depth = (int)max_depth;
    request.verify.interrupted = interrupts_catch();
    return verify_all(app, &request, &arguments);
}
