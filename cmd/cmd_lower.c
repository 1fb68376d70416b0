/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_lower.c - `swsim lower`: the machine operations a plan stands for. */
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "options.h"

#include "base/json.h"
#include "base/text_stream.h"
#include "machine/program.h"

/* The printed program as one JSON object, a string for each line. */
static enum status write_lines(struct app *app, const struct program *program, char *text)
{
    struct json json;
    char *rest = NULL;
    json_open(&json, stdout);
    json_begin_document(&json, DOCUMENT_LOWERED);
    json_put_string(&json, "plan", program->plan->name);
    json_put_string(&json, "driver", driver_key(program->driver));
    json_put_int(&json, "ranks", program->ranks);
    json_put_int(&json, "agents", program->agent_count);
    json_put_int(&json, "ops", (int64_t)program->op_count);
    json_begin_array_at(&json, "lines");
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        json_string(&json, line);
    json_end_array(&json);
    json_end_object(&json);
    return json_close(&json, &app->diag);
}

static enum status cmd_lower_show_json(struct app *app, const struct program *program)
{
    struct text_stream stream;
    if (!text_open(&stream))
        return diag_no_memory(&app->diag);
    enum status status = program_print(program, stream.out, &app->diag);
    char *text = text_close(&stream, status == STATUS_OK, NULL);
    if (status == STATUS_OK)
        status = text ? write_lines(app, program, text) : diag_no_memory(&app->diag);
    free(text);
    return status;
}

struct lower_request {
    struct program_request program;
    struct arguments arguments;
};

static enum status cmd_lower_show(struct app *app, struct plan *plan, void *context)
{
    const struct lower_request *request = context;
    struct program *program;
    enum status status =
        options_check_plan(app, &request->arguments, plan, request->program.driver, CLOCK_ONLY);
    if (status != STATUS_OK)
        return status;
    struct program_options options = app_program_options(app, &request->program, plan);
    options.any_size = true;
    status = program_build(plan, &options, &program, &app->diag);
    if (status != STATUS_OK)
        return status;
    status =
        app->json ? cmd_lower_show_json(app, program) : program_print(program, stdout, &app->diag);
    program_close(program);
    return status;
}

enum status cmd_lower(struct app *app, int argc, char **argv)
{
    struct lower_request request = {.program = {.driver = DRIVER_NOT_GIVEN, .iterations = -1}};
    enum status status;
    const struct option_spec options[] = {
        {"driver", 0, "clock|dataflow",
         "pipeline form: which driver (default: the plan's, else clock)", OPTION_CHOICE,
         .value = &request.program.driver},
        {"iterations", 'n', "N",
         "pipeline form: iterations until the data ends (default: any number)", OPTION_INTEGER,
         .value = &request.program.iterations, .max = PLAN_MAX_ITERATIONS},
        {"ranks", 0, "N", "ranks (default: the plan's)", OPTION_INTEGER,
         .value = &request.program.ranks, .min = 1, .max = PLAN_MAX_RANKS},
        {"max-depth", 0, "N", "most iterations in flight (default: the plan's)", OPTION_INTEGER,
         .value = &request.program.max_depth, .min = 1, .max = PLAN_MAX_DEPTH},
    };
    const struct command command = {
        .name = "swsim lower",
        .arguments = "PLAN",
        .about =
            "Print what PLAN means: the threads, streams and communicators of every rank and the\n"
            "machine operations they execute. In all three forms these are verified,\n"
            "simulated and run.",
        .examples = "  swsim lower plans/torchrec/base.yaml\n"
                    "  swsim generate 1f1b --ranks=4 --microbatches=8 | swsim lower -",
        COMMAND_OPTIONS(options),
    };
    if (!options_parse(app, &command, argc, argv, &request.arguments, &status))
        return status;
    return app_with_plan(app, request.arguments.items[0], cmd_lower_show, &request);
}
