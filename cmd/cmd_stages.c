/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_stages.c - `swsim stages`: how few stages would do, and which dependences stall a stream. */
#include "app.h"
#include "options.h"

#include "base/json.h"
#include "plan/schedule.h"

static enum status cmd_stages_show(struct app *app, struct plan *plan, void *context)
{
    (void)context;
    if (!app->json)
        return schedule_print_stages(plan, stdout, &app->diag);
    struct json json;
    json_open(&json, stdout);
    enum status status = schedule_write_stages(plan, &json, &app->diag);
    return status == STATUS_OK ? json_close(&json, &app->diag) : status;
}

enum status cmd_stages(struct app *app, int argc, char **argv)
{
    const struct command command = {
        .name = "swsim stages",
        .arguments = "PLAN",
        .about =
            "Print the tasks in topological order, the longest strictly decreasing subsequence\n"
            "(LDS) of their stages, which is the least depth that can hold them, and the\n"
            "enqueue order with the stall cost of each task: how many dependences within one\n"
            "period make its stream wait for another. PLAN must be of the pipeline form.",
        .examples = "  swsim stages plans/torchrec/sparse_dist.yaml",
    };
    return options_use_plan(app, &command, argc, argv, cmd_stages_show, NULL);
}
