/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_runs.c - `swsim runs`: the runs of a trace store, one a line, and the ledger of one. */
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "app.h"
#include "options.h"

#include "plan/json.h"
#include "plan/units.h"
#include "sim/predict/explained.h"

static void write_run(const struct store_run *run, void *context)
{
    struct json *json = context;
    const struct run_info *info = &run->info;
    json_begin_document(json, DOCUMENT_RUN);
    json_put_int(json, "run", run->id);
    json_put_string(json, "plan", info->plan_name);
    json_put_string(json, "kind", run_kind_text(info->kind));
    json_put_string(json, "driver", run_driver_text(info->driver));
    json_put_string(json, "device", info->device);
    json_put_int(json, "ranks", info->ranks);
    json_put_int(json, "seed", (int64_t)info->seed);
    json_put_int(json, "iterations", run->iterations);
    json_put_int(json, "spans", run->spans);
    json_put_int(json, "created_unix_s", info->created_unix_s);
    json_put_int(json, "duration_ns", info->duration_ns);
    json_put_string(json, "state", run_finished_text(info->finished));
    json_put_string(json, "note", info->note);
    json_end_object(json);
}

/* The table's head is printed with its first row. */
static void print_run(const struct store_run *run, void *context)
{
    bool *begun = context;
    const struct run_info *info = &run->info;
    char duration[UNITS_TEXT + 32], created[32] = "-";
    bool witness = info->kind == RUN_WITNESS; /* it has steps instead of time, and never ran */
    struct tm when;
    time_t seconds = (time_t)info->created_unix_s;
    if (gmtime_r(&seconds, &when))
        strftime(created, sizeof created, "%Y-%m-%d %H:%M:%SZ", &when);
    if (witness)
        snprintf(duration, sizeof duration, "%" PRId64 " steps", info->duration_ns);
    else
        units_show_time((double)info->duration_ns, duration);
    if (!*begun)
        printf("%4s  %-20s  %-9s  %-8s  %5s  %10s  %10s  %-11s  %-12s  %s\n", "Run", "Created",
               "Kind", "Driver", "Ranks", "Iterations", "Duration", "State", "Device", "Plan");
    *begun = true;
    printf("%4" PRId64 "  %-20s  %-9s  %-8s  %5d  %10" PRId64 "  %10s  %-11s  %-12s  %s%s%s\n",
           run->id, created, run_kind_text(info->kind), run_driver_text(info->driver), info->ranks,
           run->iterations, duration, witness ? "-" : run_finished_text(info->finished),
           info->device && *info->device ? info->device : "-", info->plan_name,
           witness && info->note ? ", " : "", witness && info->note ? info->note : "");
}

static enum status list(struct app *app, struct store *store, void *context)
{
    (void)context;
    struct json json;
    bool begun = false;
    enum status status;
    if (app->json) {
        json_open(&json, stdout);
        status = store_list_runs(store, write_run, &json, &app->diag);
        return status == STATUS_OK ? json_close(&json, &app->diag) : status;
    }
    status = store_list_runs(store, print_run, &begun, &app->diag);
    if (status == STATUS_OK && !begun && !app->quiet)
        fprintf(stderr, "swsim: no runs in the store\n");
    return status;
}

/* ---- the ledger of a run --------------------------------------------------------------------- */

static int64_t idle_of(const struct trace *trace, int agent)
{
    int64_t sum = 0;
    for (size_t i = 0; i < trace->idle_count; i++)
        sum += trace->idles[i].agent == agent ? trace->idles[i].idle_ns : 0;
    return sum;
}

static int64_t busy_of(const struct trace *trace, int agent)
{
    int64_t sum = 0;
    for (size_t i = 0; i < trace->span_count; i++)
        if (trace->spans[i].agent == agent && trace->spans[i].kind == SPAN_DEVICE)
            sum += trace->spans[i].end_ns - trace->spans[i].start_ns;
    return sum;
}

static int by_agent_and_time(const void *left, const void *right)
{
    const struct trace_idle *a = left, *b = right;
    if (a->agent != b->agent)
        return a->agent - b->agent;
    return (a->idle_ns < b->idle_ns) - (a->idle_ns > b->idle_ns);
}

static void print_stream(const struct trace *trace, int agent)
{
    char busy[UNITS_TEXT], idle[UNITS_TEXT];
    units_show_time((double)busy_of(trace, agent), busy);
    units_show_time((double)idle_of(trace, agent), idle);
    printf("rank %d stream %s: busy %s, idle %s\n", trace->agents[agent].rank,
           trace->agents[agent].name, busy, idle);
}

static void print_ledger(const struct trace *trace)
{
    int agent = -1;
    for (size_t i = 0; i < trace->idle_count; i++) {
        const struct trace_idle *line = &trace->idles[i];
        char idle[UNITS_TEXT];
        if (line->agent != agent)
            print_stream(trace, line->agent);
        agent = line->agent;
        units_show_time((double)line->idle_ns, idle);
        printf("  %10s  %-12s  by %-10s  %s\n", idle, line->cause, line->word, line->words);
    }
}

static void write_ledger(const struct trace *trace, struct json *json)
{
    json_begin_document(json, DOCUMENT_LEDGER);
    json_put_int(json, "run", trace->run);
    json_begin_array_at(json, "ledger");
    for (size_t i = 0; i < trace->idle_count; i++) {
        const struct trace_idle *line = &trace->idles[i];
        json_begin_object(json);
        json_put_int(json, "rank", trace->agents[line->agent].rank);
        json_put_string(json, "stream", trace->agents[line->agent].name);
        json_put_string(json, "cause", line->cause);
        json_put_string(json, "word", line->word);
        json_put_string(json, "waits_for", line->waits_for);
        json_put_string(json, "words", line->words);
        json_put_int(json, "idle_ns", line->idle_ns);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}

static enum status show_ledger(struct app *app, struct store *store, void *context)
{
    const int64_t *run = context;
    struct trace trace;
    struct json json;
    enum status status = explained_load(store, *run, &app->arena, &trace, &app->diag);
    if (status != STATUS_OK)
        return status;
    if (trace.idle_count == 0)
        return diag_error(&app->diag, STATUS_INPUT,
                          "run %" PRId64 " has no ledger of why its streams were idle", *run);
    qsort(trace.idles, trace.idle_count, sizeof *trace.idles, by_agent_and_time);
    if (!app->json) {
        print_ledger(&trace);
        return STATUS_OK;
    }
    json_open(&json, stdout);
    write_ledger(&trace, &json);
    return json_close(&json, &app->diag);
}

enum status cmd_runs(struct app *app, int argc, char **argv)
{
    int64_t run = STORE_ALL;
    const struct option_spec options[] = {
        {"run", 0, "N", "the ledger of this run: why its streams were idle", OPTION_INTEGER,
         .value = &run, .max = INT64_MAX},
    };
    const struct command command = {
        .name = "swsim runs",
        .arguments = "DB",
        .about =
            "List the runs in a trace store, oldest first: measured, simulated, and witnesses.\n"
            "Times are UTC. With --run the ledger of one run: how long each stream was idle for "
            "each cause,\n"
            "and by whose word.",
        .examples = "  swsim runs runs.db\n"
                    "  swsim runs --run=3 runs.db",
        COMMAND_OPTIONS(options),
    };
    struct arguments arguments;
    enum status status;
    if (!options_parse(app, &command, argc, argv, &arguments, &status))
        return status;
    return run == STORE_ALL ? app_with_store(app, arguments.items[0], list, NULL)
                            : app_with_store(app, arguments.items[0], show_ledger, &run);
}
