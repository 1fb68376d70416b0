/* cmd_runs.c - `swsim runs`: the runs of a trace store, one a line. */
#include <inttypes.h>
#include <time.h>

#include "app.h"
#include "options.h"

#include "plan/json.h"
#include "plan/units.h"

static const char *finished_text(enum run_finished finished)
{
    switch (finished) {
    case RUN_OPEN: return "open";
    case RUN_FINISHED: return "finished";
    case RUN_INTERRUPTED: break;
    }
    return "interrupted";
}

static void write_run(const struct store_run *run, void *context)
{
    struct json *json = context;
    const struct run_info *info = &run->info;
    json_begin_object(json);
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
    json_put_string(json, "state", finished_text(info->finished));
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
           run->iterations, duration, witness ? "-" : finished_text(info->finished),
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

enum status cmd_runs(struct app *app, int argc, char **argv)
{
    const struct command command = {
        .name = "swsim runs",
        .arguments = "DB",
        .about =
            "List the runs in a trace store, oldest first: measured, simulated, and witnesses.\n"
            "Times are UTC.",
        .examples = "  swsim runs runs.db",
    };
    struct arguments arguments;
    enum status status;
    if (!options_parse(app, &command, argc, argv, &arguments, &status))
        return status;
    return app_with_store(app, arguments.items[0], list, NULL);
}
