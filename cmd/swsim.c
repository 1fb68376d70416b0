/* SPDX-License-Identifier: Apache-2.0 */
/* swsim.c - prove, predict and draw plans: finds the verb and hands over to it. */
#include <string.h>

#include "app.h"
#include "options.h"

#include "base/nearest.h"

/* In the order of --help. */
static const struct verb {
    const char *name, *arguments, *summary;
    verb_run *run;
} verbs[] = {
    {"verify", "PLAN...", "prove or refute", cmd_verify},
    {"predict", "PLAN", "simulate and explain", cmd_predict},
    {"render", "DB|PLAN", "a picture", cmd_render},
    {"schedule", "PLAN", "period x task table", cmd_schedule},
    {"stages", "PLAN", "stage analysis", cmd_stages},
    {"lower", "PLAN", "machine operations", cmd_lower},
    {"generate", "NAME", "a pipeline-parallel plan", cmd_generate},
    {"groups", "PLAN", "groups of parallel ranks", cmd_groups},
    {"export", "PLAN", "the plan as YAML, JSON or CSV", cmd_export},
    {"import", "FILE...", "the trace of a real job as a plan", cmd_import},
    {"record", "PROGRAM", "what a CUDA program calls", cmd_record},
    {"dry", "PROGRAM", "prove a CUDA program without a GPU", cmd_dry},
    {"compare", "DB", "predicted against measured", cmd_compare},
    {"why", "TRACE", "the largest stalls of a job", cmd_why},
    {"tune", "PLAN", "find a better plan", cmd_tune},
    {"runs", "DB", "what is in a trace store", cmd_runs},
    {"watch", "DB", "a run that goes on", cmd_watch},
    {"explain", "WORD", "what a word of reports means", cmd_explain},
    {"schema", "NAME", "keys of JSON, columns of stores", cmd_schema},
    {"mcp", "", "a server for agents", cmd_mcp},
};
enum { VERBS = sizeof verbs / sizeof *verbs };

static enum status swsim_print_help(struct app *app)
{
    printf(
        "Usage: swsim [OPTION]... VERB [ARGUMENT]...\n\n"
        "Prove, predict and draw software pipelines, pipeline-parallel schedules and other\n"
        "programs of streams, events and collectives. A plan is a YAML or JSON file or a PyTorch\n"
        "schedule CSV; `-` is standard input.\n\nVerbs:\n");
    for (size_t i = 0; i < VERBS; i++)
        printf("  %-9s %-8s  %s\n", verbs[i].name, verbs[i].arguments, verbs[i].summary);
    enum status status = options_print_common(app);
    options_print_exit_codes();
    printf("\n'swsim VERB --help' tells more about a verb.\n");
    return status;
}

static enum status unknown_verb(struct app *app, const char *name)
{
    struct nearest nearest = {.found = name};
    for (size_t i = 0; i < VERBS; i++)
        nearest_try(&nearest, verbs[i].name);
    diag_error(&app->diag, STATUS_USAGE, "unknown verb '%s'%s", name,
               nearest_hint(&nearest, '\'', &app->arena));
    diag_note(&app->diag, "'swsim --help' lists the verbs");
    return STATUS_USAGE;
}

/* argv[0] is the verb. */
static enum status run_verb(struct app *app, int argc, char **argv)
{
    for (size_t i = 0; i < VERBS; i++)
        if (strcmp(argv[0], verbs[i].name) == 0)
            return verbs[i].run(app, argc, argv);
    return unknown_verb(app, argv[0]);
}

static enum status swsim_run(struct app *app, int argc, char **argv)
{
    int position;
    bool help;
    enum status status;
    if (!options_parse_leading(app, "swsim", argc, argv, &position, &help, &status))
        return status;
    if (help)
        return swsim_print_help(app);
    if (position < argc)
        return run_verb(app, argc - position, argv + position);
    diag_error(&app->diag, STATUS_USAGE, "missing verb: swsim [OPTION]... VERB [ARGUMENT]...");
    diag_note(&app->diag, "'swsim --help' lists the verbs");
    return STATUS_USAGE;
}

int main(int argc, char **argv)
{
    struct app app;
    app_init(&app, "swsim");
    return app_close(&app, swsim_run(&app, argc, argv));
}
