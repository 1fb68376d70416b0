/* cmd_export.c - `swsim export`: a plan in another format. */
#include "app.h"
#include "options.h"
#include "plan_out.h"

#include "machine/program.h"
#include "check/spin/export_promela.h"

enum { PROMELA = PLAN_CSV + 1 }; /* after the formats of plan_out.h, as in the option's list */

struct export_request {
    struct program_request program;
    int format; /* as above; -1: the default */
    const char *path;
};

static enum status write_promela(struct app *app, const struct plan *plan,
                                 const struct export_request *request, FILE *out)
{
    const struct program_options options = app_program_options(app, &request->program, plan);
    struct program *program;
    enum status status = program_build(plan, &options, &program, &app->diag);
    if (status != STATUS_OK)
        return status;
    status = export_promela(program, out, &app->diag);
    program_close(program);
    return status;
}

static enum status export_plan(struct app *app, struct plan *plan, void *context)
{
    const struct export_request *request = context;
    int format = request->format >= 0 ? request->format : app->json ? PLAN_JSON : PLAN_YAML;
    struct app_output output;
    enum status status = app_create(app, request->path, &output);
    if (status != STATUS_OK)
        return status;
    status = format == PROMELA ? write_promela(app, plan, request, output.file)
                               : plan_write(app, plan, (enum plan_format)format, output.file);
    return app_close_file(app, &output, status);
}

enum status cmd_export(struct app *app, int argc, char **argv)
{
    struct export_request request = {
        .program = {.driver = DRIVER_NOT_GIVEN, .iterations = 3}, .format = -1, .path = "-"};
    const struct option_spec options[] = {
        {"format", 'f', "yaml|json|csv|promela", "default yaml, with --json json", OPTION_CHOICE,
         .value = &request.format},
        {"as", 0, "yaml|json|csv|promela", "the same as --format", OPTION_CHOICE,
         .value = &request.format},
        {"output", 'o', "FILE", "output file (default: standard output)", OPTION_TEXT,
         .value = &request.path},
        {"driver", 0, "clock|dataflow",
         "promela, pipeline form: which driver (default: the plan's, else clock)", OPTION_CHOICE,
         .value = &request.program.driver},
        {"iterations", 'n', "N", "promela, pipeline form: iterations of data (default 3)",
         OPTION_INTEGER, .value = &request.program.iterations, .max = INT16_MAX},
        {"ranks", 0, "N", "promela: ranks (default: the plan's)", OPTION_INTEGER,
         .value = &request.program.ranks, .min = 1, .max = PLAN_MAX_RANKS},
        {"max-depth", 0, "N", "promela: most iterations in flight (default: the plan's)",
         OPTION_INTEGER, .value = &request.program.max_depth, .min = 1, .max = PLAN_MAX_DEPTH},
    };
    const struct command command = {
        .name = "swsim export",
        .arguments = "PLAN",
        .about =
            "Print PLAN in another format: its canonical YAML, the same as JSON, for rank "
            "programs\n"
            "a PyTorch schedule, or a model for SPIN, which checks it for deadlock and mismatch.",
        .examples =
            "  swsim export --format=yaml schedule.csv\n"
            "  swsim generate 1f1b -p4 -m8 | swsim export --format=csv -\n"
            "  swsim export --format=promela -o model.pml plans/bugs/nccl_send_send_broken.yaml",
        COMMAND_OPTIONS(options),
    };
    return options_use_plan(app, &command, argc, argv, export_plan, &request);
}
