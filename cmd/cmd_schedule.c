/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_schedule.c - `swsim schedule`: which task works on which iteration in which period. */
#include "app.h"
#include "options.h"

#include "base/json.h"
#include "plan/schedule.h"

struct schedule_request {
    int64_t periods; /* 0: the default */
    int driver;      /* DRIVER_NOT_GIVEN: the plan's */
};

static enum status cmd_schedule_show(struct app *app, struct plan *plan, void *context)
{
    const struct schedule_request *request = context;
    const struct pipeline *pipeline = &plan->pipeline;
    const struct schedule_view view = {
        .periods = request->periods ? (int)request->periods : schedule_default_periods(plan),
        .dataflow = request->driver != DRIVER_NOT_GIVEN
                        ? request->driver == DATAFLOW_ONLY
                        : pipeline->driver_given && pipeline->driver == PLAN_DRIVER_DATAFLOW};
    if (!app->json)
        return schedule_print(plan, &view, stdout, &app->diag);
    struct json json;
    json_open(&json, stdout);
    enum status status = schedule_write(plan, view.periods, &json, &app->diag);
    return status == STATUS_OK ? json_close(&json, &app->diag) : status;
}

enum status cmd_schedule(struct app *app, int argc, char **argv)
{
    struct schedule_request request = {.driver = DRIVER_NOT_GIVEN};
    const struct option_spec options[] = {
        {"periods", 'n', "N", "periods to show (default: depth + 2, at least 5)", OPTION_INTEGER,
         .value = &request.periods, .min = 1, .max = SCHEDULE_MAX_PERIODS},
        {"driver", 0, "clock|dataflow",
         "dataflow: also in which order it submits the globally ordered tasks (default: the "
         "plan's)",
         OPTION_CHOICE, .value = &request.driver},
    };
    const struct command command = {
        .name = "swsim schedule",
        .arguments = "PLAN",
        .about =
            "Print which iteration every task works on in every period of the clock driver, one\n"
            "task a row in stage-descending topological order; `--` where there is none yet.\n"
            "The data-flow driver has no periods; for it the order is printed in which globally\n"
            "ordered tasks are submitted, and how many iterations each of them is ahead.\n"
            "PLAN must be of the pipeline form.",
        .examples = "  swsim schedule --periods=5 plans/torchrec/sparse_dist.yaml\n"
                    "  swsim schedule --driver=dataflow plans/torchrec/sparse_dist.yaml",
        COMMAND_OPTIONS(options),
    };
    return options_use_plan(app, &command, argc, argv, cmd_schedule_show, &request);
}
