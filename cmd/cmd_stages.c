/* cmd_stages.c - `swsim stages`: are the stages as few as they can be, and what stalls whom. */
#include "app.h"
#include "options.h"

#include "plan/json.h"
#include "plan/schedule.h"

static enum status show(struct app *app, const struct plan *plan)
{
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
        .arguments_min = 1,
        .arguments_max = 1,
    };
    struct plan plan;
    enum status status;
    if (!options_parse_plan(app, &command, argc, argv, &plan, &status))
        return status;
    status = show(app, &plan);
    plan_fini(&plan);
    return status;
}
