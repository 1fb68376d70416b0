/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_compare.c - `swsim compare`: the pipelined runs of a trace store beside their predictions; two runs: two_runs.c. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "options.h"
#include "two_runs.h"

#include "base/columns.h"
#include "base/json.h"
#include "plan/text/print.h"
#include "base/processors.h"
#include "base/units.h"
#include "sim/predict/compare.h"
#include "base/sort.h"

/* Shares below a thousandth, measured and predicted, are not shown. */
#define SHOWN   0.001
#define STRETCH 1.2 /* tasks that take so many times as long are told */

/* ---- text ------------------------------------------------------------------------------------ */

static const char *cmd_compare_show_time(double ns, char out[UNITS_TEXT])
{
    if (isnan(ns))
        snprintf(out, UNITS_TEXT, "-");
    else
        units_show_time(ns, out);
    return out;
}

static const char *show_error(double error, char out[UNITS_TEXT])
{
    if (isnan(error))
        snprintf(out, UNITS_TEXT, "-");
    else
        snprintf(out, UNITS_TEXT, "%+.1f%%", 100 * error);
    return out;
}

enum { PLAN_COLUMNS = 32, STREAM_COLUMNS = 16 }; /* of names */

/* A row of a stream: measured and predicted share of one thing it did. */
static void cmd_compare_print_share(const char *stream, const char *what, bool accounted,
                                    double measured, double predicted)
{
    printf("      %s%*s  %-16s", stream, columns_fill(stream, STREAM_COLUMNS), "", what);
    if (accounted && !isnan(measured))
        printf("  %8.1f%%", 100 * measured);
    else
        printf("  %9s", "-");
    printf("  %8.1f%%\n", 100 * predicted);
}

static void cmd_compare_print_stream(const struct comparison *run,
                                     const struct compared_stream *stream)
{
    const struct compared_account *measured = &stream->measured, *predicted = &stream->predicted;
    cmd_compare_print_share(stream->name, "busy", run->accounted, measured->busy, predicted->busy);
    for (int i = 0; i < STALL_COUNT; i++)
        if (measured->stall[i] >= SHOWN || predicted->stall[i] >= SHOWN)
            cmd_compare_print_share("", stall_words((enum stall_cause)i), run->accounted,
                                    measured->stall[i], predicted->stall[i]);
}

/* Tasks that take a hundredth of the run or differ by that, up to MOST_TASKS. */
static void print_tasks(const struct comparison *run, const struct compared_stream *stream)
{
    enum { MOST_TASKS = 8, LEAST = 100 };
    double whole_ns = 0;
    char measured[UNITS_TEXT], predicted[UNITS_TEXT];
    for (size_t s = 0; s < run->stream_count; s++)
        for (size_t i = 0; i < run->streams[s].task_count; i++)
            whole_ns += run->streams[s].tasks[i].measured_ns;
    for (size_t i = 0; i < stream->task_count && i < MOST_TASKS; i++) {
        const struct compared_task *task = &stream->tasks[i];
        if (LEAST * task->measured_ns < whole_ns && LEAST * task->predicted_ns < whole_ns)
            return;
        printf("      %-16s  %9s  %9s  %s\n", "",
               cmd_compare_show_time(task->measured_ns, measured),
               cmd_compare_show_time(task->predicted_ns, predicted), task->name);
    }
}

/* How many times as long the tasks took as the serial run says, without those that wait for other ranks; NAN: nothing to
   compare. */
static double stretch_of(const struct comparison *run)
{
    double measured_ns = 0, predicted_ns = 0;
    for (size_t s = 0; s < run->stream_count; s++)
        for (size_t i = 0; i < run->streams[s].task_count; i++) {
            const struct compared_task *task = &run->streams[s].tasks[i];
            measured_ns += task->meets ? 0 : task->measured_ns;
            predicted_ns += task->meets ? 0 : task->predicted_ns;
        }
    return run->serial_run != run->run && predicted_ns > 0 ? measured_ns / predicted_ns : NAN;
}

/* A prediction has the times of the serial run. Where they changed it is off by that, whatever the schedule. */
static void print_stretch(const struct comparison *run)
{
    double stretch = stretch_of(run);
    if (stretch > 1 / STRETCH && stretch < STRETCH)
        return;
    if (!isnan(stretch))
        printf("      tasks took %.2f times as long as in serial run %" PRId64
               ", whose times the prediction uses\n",
               stretch, run->serial_run);
}

static void print_cores(const struct comparison *run)
{
    char text[PROFILE_CORES_TEXT];
    if (run->cores == 0)
        return;
    printf("      %s\n", profile_describe_cores(run->cores, run->own_cores, text));
    if (run->own_cores && run->ranks > run->cores)
        printf("      %d ranks shared %s in the serial run already, which the prediction may "
               "count twice\n",
               run->ranks, run->cores == 1 ? "it" : "them");
}

static void cmd_compare_print_run(const struct comparison *run, bool quiet)
{
    char measured[UNITS_TEXT], predicted[UNITS_TEXT], error[UNITS_TEXT];
    printf("%4" PRId64 "  %s%*s  %-8s  %5d  %5d  %9s  %9s  %7s\n", run->run, run->plan,
           columns_fill(run->plan, PLAN_COLUMNS), "", driver_key(run->driver), run->depth,
           run->ranks, cmd_compare_show_time(run->measured_ns, measured),
           cmd_compare_show_time(run->predicted_ns, predicted), show_error(run->error, error));
    for (size_t i = 0; i < run->stream_count && !quiet; i++) {
        cmd_compare_print_stream(run, &run->streams[i]);
        print_tasks(run, &run->streams[i]);
    }
    if (!quiet) {
        print_cores(run);
        print_stretch(run);
    }
}

static void print_all(const struct compared *compared, bool quiet)
{
    printf("%4s  %-*s  %-8s  %5s  %5s  %9s  %9s  %7s\n", "Run", PLAN_COLUMNS, "Plan", "Driver",
           "Depth", "Ranks", "Measured", "Predicted", "Error");
    for (size_t i = 0; i < compared->run_count; i++)
        cmd_compare_print_run(&compared->runs[i], quiet);
    if (isnan(compared->worst_error))
        printf("\nno error: the runs are too short for an iteration time\n");
    else
        printf("\nmedian error %.1f%%, worst %.1f%%, of %zu run%s\n", 100 * compared->median_error,
               100 * compared->worst_error, compared->run_count,
               compared->run_count == 1 ? "" : "s");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void cmd_compare_write_account(const char *key, const struct compared_account *account,
                                      bool known, struct json *json)
{
    json_key(json, key);
    if (!known) {
        json_null(json);
        return;
    }
    json_begin_object(json);
    json_put_double(json, "busy", account->busy);
    json_begin_object_at(json, "stall");
    for (int i = 0; i < STALL_COUNT; i++)
        json_put_double(json, stall_key((enum stall_cause)i), account->stall[i]);
    json_end_object(json);
    json_end_object(json);
}

static void write_tasks(const struct compared_stream *stream, struct json *json)
{
    json_begin_object_at(json, "tasks");
    for (size_t i = 0; i < stream->task_count; i++) {
        const struct compared_task *task = &stream->tasks[i];
        json_begin_object_at(json, task->name);
        json_put_double(json, "measured_ns", task->measured_ns);
        json_put_double(json, "predicted_ns", task->predicted_ns);
        json_put_double(json, "measured_count", task->measured_count);
        json_put_double(json, "predicted_count", task->predicted_count);
        json_end_object(json);
    }
    json_end_object(json);
}

static void cmd_compare_write_streams(const struct comparison *run, struct json *json)
{
    json_begin_object_at(json, "streams");
    for (size_t i = 0; i < run->stream_count; i++) {
        json_begin_object_at(json, run->streams[i].name);
        cmd_compare_write_account("measured", &run->streams[i].measured, run->accounted, json);
        cmd_compare_write_account("predicted", &run->streams[i].predicted, true, json);
        write_tasks(&run->streams[i], json);
        json_end_object(json);
    }
    json_end_object(json);
}

static void cmd_compare_write_run(const struct comparison *run, struct json *json)
{
    json_begin_object(json);
    json_put_int(json, "run", run->run);
    json_put_int(json, "serial_run", run->serial_run);
    json_put_string(json, "plan", run->plan);
    json_put_string(json, "driver", driver_key(run->driver));
    json_put_string(json, "device", run->device);
    json_put_int(json, "depth", run->depth);
    json_put_int(json, "ranks", run->ranks);
    json_put_int(json, "iterations", run->iterations);
    json_put_int(json, "profiled_iterations", run->profiled);
    json_put_int(json, "warm_up_iterations", run->warm_up);
    json_put_int(json, "parts_not_measured", (int64_t)run->missing);
    json_put_known(json, "cores", run->cores, run->cores > 0);
    json_put_double(json, "measured_ns", run->measured_ns);
    json_put_double(json, "predicted_ns", run->predicted_ns);
    json_put_double(json, "error", run->error);
    json_key(json, "tasks_by_steps");
    json_bool(json, run->by_steps);
    cmd_compare_write_streams(run, json);
    json_end_object(json);
}

static enum status cmd_compare_write_all(struct app *app, const struct compared *compared)
{
    struct json json;
    json_open(&json, stdout);
    json_begin_document(&json, DOCUMENT_COMPARISON);
    json_begin_array_at(&json, "runs");
    for (size_t i = 0; i < compared->run_count; i++)
        cmd_compare_write_run(&compared->runs[i], &json);
    json_end_array(&json);
    json_put_int(&json, "runs_without_serial", (int64_t)compared->unmatched);
    json_put_double(&json, "median_error", compared->median_error);
    json_put_double(&json, "worst_error", compared->worst_error);
    json_end_object(&json);
    return json_close(&json, &app->diag);
}

/* ---- the command line ------------------------------------------------------------------------ */

/* "5%" or "0.05", as a share; NAN: not given. */
static enum status cmd_compare_parse_limit(struct app *app, const char *text, double *out)
{
    char *end;
    *out = NAN;
    if (!text)
        return STATUS_OK;
    double value = strtod(text, &end);
    bool percent = end != text && strcmp(end, "%") == 0;
    if (end == text || (*end && !percent) || !isfinite(value) || value < 0)
        return diag_error(&app->diag, STATUS_USAGE,
                          "--limit-error: found '%s', expected a share such as 5%% or 0.05", text);
    *out = percent ? value / 100 : value;
    return STATUS_OK;
}

struct compare_request {
    struct compare_options options;
    double limit;
};

static enum status cmd_compare_runs(struct app *app, struct store *store, void *context)
{
    const struct compare_request *request = context;
    struct compared compared;
    enum status status = compare_store(store, &request->options, &compared, &app->diag);
    if (status != STATUS_OK)
        return status;
    if (app->json)
        status = cmd_compare_write_all(app, &compared);
    else
        print_all(&compared, app->quiet);
    if (status == STATUS_OK && compared.interrupted)
        status = diag_error(&app->diag, STATUS_LIMIT, "interrupted after %zu run%s",
                            compared.run_count, units_plural(compared.run_count));
    if (status == STATUS_OK && compared.worst_error > request->limit)
        status = diag_error(&app->diag, STATUS_VIOLATED,
                            "the worst error is %.1f%%, expected at most %.1f%%",
                            100 * compared.worst_error, 100 * request->limit);
    compared_fini(&compared);
    return status;
}

/* The canonical text by which runs of this plan are known. */
static enum status canonical_text(struct app *app, struct plan *plan, void *out)
{
    return plan_kept_text_in(plan, &app->arena, out, &app->diag);
}

/* Find out whether a run is named, or two stores are. Else the runs of one store are compared with predictions. */
static enum status wants_two(struct app *app, const struct arguments *arguments, bool *out)
{
    *out |= option_has_run(arguments->items[0]) ||
            (arguments->count == 2 && option_has_run(arguments->items[1]));
    return *out || arguments->count < 2 ? STATUS_OK
                                        : run_spec_is_store(app, arguments->items[1], out);
}

enum status cmd_compare(struct app *app, int argc, char **argv)
{
    struct two_runs two = {.limit = NAN};
    int64_t run = STORE_ALL, seed = 1, replications = 10, cores = 0;
    const char *limit_text = NULL;
    const struct option_spec options[] = {
        {"run", 0, "N", "only this run (default: all measured ones)", OPTION_INTEGER, .value = &run,
         .max = INT64_MAX},
        {"limit-error", 0, "SHARE", "exit with 1 if the worst error is above SHARE, such as 5%",
         OPTION_TEXT, .value = &limit_text},
        {"cores", 0, "N",
         "cores for the work of all ranks (default: the plan's, the run's machine's)",
         OPTION_INTEGER, .value = &cores, .min = 1, .max = PLAN_MAX_CORES},
        {"replications", 0, "N", "of each prediction (default 10)", OPTION_INTEGER,
         .value = &replications, .min = 1, .max = PREDICT_MAX_REPLICATIONS},
        {"seed", 0, "S", "of all random numbers (default 1)", OPTION_INTEGER, .value = &seed,
         .max = INT64_MAX},
        {"diff", 0, NULL, "two runs: say what takes longer or less, and why", OPTION_FLAG,
         .value = &two.diff},
        {"opaque", 0, NULL, "predict an import also where more than 5% of its time is unexplained",
         OPTION_FLAG, .value = &two.opaque},
    };
    const struct command command = {
        .name = "swsim compare",
        .arguments = "DB[:RUN] [DB[:RUN]|PLAN]",
        .about =
            "Predict the measured runs in a trace store and say how far off the predictions are.\n"
            "\n"
            "An import and a run of host programs are predicted by their own plans, which hold "
            "their\n"
            "times: a pipeline by steps, host programs as a whole. Of a pipelined run the times "
            "come\n"
            "from the newest serial run of the same plan, on the same device, with as many ranks:\n"
            "'swrun --serial --db DB PLAN' makes one. A prediction uses nothing of the pipelined "
            "run\n"
            "but its driver, depth and number of iterations. The causes of measured idle time are "
            "found\n"
            "by replaying the steps of the run.\n"
            "With PLAN only the runs of that plan are compared.\n"
            "\n"
            "With DB:RUN that run, of any kind, is compared with a second one: another run, the "
            "prediction\n"
            "of PLAN, or that of its own plan; by steps, streams, causes of idle time and tasks.",
        .examples = "  swrun --serial --db=runs.db plan.yaml\n"
                    "  swrun --driver=both --db=runs.db plan.yaml\n"
                    "  swsim compare --limit-error=5% runs.db\n"
                    "  swsim compare --diff yesterday.db:1 today.db:1",
        COMMAND_OPTIONS(options),
        .more_arguments = 1,
    };
    struct arguments arguments;
    enum status status;
    struct compare_request request;
    const char *text = NULL;
    if (!options_parse(app, &command, argc, argv, &arguments, &status))
        return status;
    status = cmd_compare_parse_limit(app, limit_text, &request.limit);
    bool is_two = two.diff;
    if (status == STATUS_OK)
        status = wants_two(app, &arguments, &is_two);
    if (status == STATUS_OK && is_two && run != STORE_ALL)
        status = diag_error(&app->diag, STATUS_USAGE,
                            "--run names one run; two runs are named DB:RUN each");
    if (status == STATUS_OK && is_two) {
        two.first = arguments.items[0];
        two.second = arguments.count == 2 ? arguments.items[1] : NULL;
        two.seed = (uint64_t)seed;
        two.cores = (int)cores;
        two.replications = (int)replications;
        two.limit = request.limit;
        return two_runs_compare(app, &two);
    }
    if (status == STATUS_OK && arguments.count == 2)
        status = app_with_plan(app, arguments.items[1], canonical_text, &text);
    request.options =
        (struct compare_options){.run = run,
                                 .opaque = two.opaque,
                                 .cores = (int)cores,
                                 .plan = text,
                                 .seed = (uint64_t)seed,
                                 .replications = (int)replications,
                                 .threads = min_int(processors_count(), PREDICT_MAX_THREADS),
                                 .interrupted = interrupts_catch()};
    if (status == STATUS_OK)
        status = app_with_store(app, arguments.items[0], cmd_compare_runs, &request);
    return status;
}
