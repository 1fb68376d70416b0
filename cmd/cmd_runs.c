/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_runs.c - `swsim runs`: the runs of a trace store, one a line, and the ledger of one. */
#include "app.h"
#include "options.h"

#include "api/run_list.h"

static enum status cmd_runs_list(struct app *app, struct store *store, void *context)
{
    struct json json;
    size_t count;
    (void)context;
    if (app->json) {
        json_open(&json, stdout);
        enum status status = run_list_write(store, &json, &app->diag);
        return status == STATUS_OK ? json_close(&json, &app->diag) : status;
    }
    enum status status = run_list_print(store, stdout, &count, &app->diag);
    if (status == STATUS_OK && count == 0 && !app->quiet)
        fprintf(stderr, "swsim: no runs in the store\n");
    return status;
}

static enum status show_ledger(struct app *app, struct store *store, void *context)
{
    const int64_t *run = context;
    struct trace trace;
    struct json json;
    enum status status = run_ledger_load(store, *run, &app->arena, &trace, &app->diag);
    if (status != STATUS_OK)
        return status;
    if (!app->json) {
        run_ledger_print(&trace, stdout);
        return STATUS_OK;
    }
    json_open(&json, stdout);
    run_ledger_write(&trace, &json);
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
            "Times are UTC. With --run the ledger of one run is printed: how long each stream was idle "
            "for\n"
            "each cause, and what the cause is known from.",
        .examples = "  swsim runs runs.db\n"
                    "  swsim runs --run=3 runs.db",
        COMMAND_OPTIONS(options),
    };
    struct arguments arguments;
    enum status status;
    if (!options_parse(app, &command, argc, argv, &arguments, &status))
        return status;
    return run == STORE_ALL ? app_with_store(app, arguments.items[0], cmd_runs_list, NULL)
                            : app_with_store(app, arguments.items[0], show_ledger, &run);
}
