/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_schedule.c - `swsim schedule`: which task works on which iteration in which period. */
#include "app.h"
#include "options.h"

#include "base/json.h"
#include "plan/schedule.h"

/* `context`: number of periods, 0: the default. */
static enum status cmd_schedule_show(struct app *app, struct plan *plan, void *context)
{
    int wanted = (int)*(const int64_t *)context;
    int periods = wanted ? wanted : schedule_default_periods(plan);
    if (!app->json)
        return schedule_print(
            plan,
            &(struct schedule_view){.periods = periods,
                                    .dataflow = plan->pipeline.driver_given &&
                                                plan->pipeline.driver == PLAN_DRIVER_DATAFLOW},
            stdout, &app->diag);
    struct json json;
    json_open(&json, stdout);
    enum status status = schedule_write(plan, periods, &json, &app->diag);
    return status == STATUS_OK ? json_close(&json, &app->diag) : status;
}

enum status cmd_schedule(struct app *app, int argc, char **argv)
{
    int64_t periods = 0;
    const struct option_spec options[] = {
        {"periods", 'n', "N", "periods to show (default: depth + 2, at least 5)", OPTION_INTEGER,
         .value = &periods, .min = 1, .max = SCHEDULE_MAX_PERIODS},
    };
    const struct command command = {
        .name = "swsim schedule",
        .arguments = "PLAN",
        .about =
            "Print which iteration every task works on in every period of the clock driver, one\n"
            "task a row in stage-descending topological order; `--` where there is none yet.\n"
            "PLAN must be of the pipeline form.",
        .examples = "  swsim schedule --periods=5 plans/torchrec/sparse_dist.yaml",
        COMMAND_OPTIONS(options),
    };
    return options_use_plan(app, &command, argc, argv, cmd_schedule_show, &periods);
}
