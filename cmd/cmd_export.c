/* cmd_export.c - `swsim export`: a plan in another format. */
#include "app.h"
#include "options.h"
#include "plan_out.h"

#include "core/parse.h"

enum { PROMELA = PLAN_CSV + 1 }; /* after the formats of plan_out.h, as in the option's list */

static enum status export_plan(struct app *app, const struct plan *plan, enum plan_format format,
                               const char *path)
{
    FILE *out = app_create(app, path);
    if (!out)
        return STATUS_SYSTEM;
    enum status status = plan_write(app, plan, format, out);
    enum status closed = app_close_file(app, out, path);
    return status != STATUS_OK ? status : closed;
}

enum status cmd_export(struct app *app, int argc, char **argv)
{
    int format = -1;
    const char *output = "-";
    const struct option_spec options[] = {
        {"format", 'f', "yaml|json|csv|promela",
         "default yaml, with --json json (promela: not in this version)", OPTION_CHOICE, &format, 0,
         0},
        {"output", 'o', "FILE", "where to (default: standard output)", OPTION_TEXT, &output, 0, 0},
    };
    const struct command command = {
        .name = "swsim export",
        .arguments = "PLAN",
        .about =
            "Print PLAN in another format: its canonical YAML, the same as JSON, or, for rank\n"
            "programs, as a PyTorch schedule.",
        .examples = "  swsim export --format=yaml schedule.csv\n"
                    "  swsim generate 1f1b -p4 -m8 | swsim export --format=csv -",
        .options = options,
        .option_count = OPTION_COUNT(options),
        .arguments_min = 1,
        .arguments_max = 1,
    };
    struct arguments arguments;
    enum status status;
    if (!options_parse(app, &command, argc, argv, &arguments, &status))
        return status;
    if (format == PROMELA)
        return diag_error(&app->diag, STATUS_USAGE, "export --format=promela: not in this version");
    if (format < 0)
        format = app->json ? PLAN_JSON : PLAN_YAML;
    struct plan plan;
    status = plan_read(arguments.items[0], &plan, &app->diag);
    if (status != STATUS_OK)
        return status;
    status = export_plan(app, &plan, (enum plan_format)format, output);
    plan_fini(&plan);
    return status;
}
