/* SPDX-License-Identifier: Apache-2.0 */
/* swsim.c - prove, predict and draw plans: finds the verb and hands over to it. */
#include <string.h>

#include "app.h"
#include "options.h"

#include "base/nearest.h"

/* In the order of --help. */
static const struct verb {
    const char *name, *arguments, *summary;
    verb_run *run;  /* NULL: help, which is here */
    bool is_report; /* lines are broken to fit the terminal */
} verbs[] = {
    {"verify", "PLAN...", "prove a plan, or show how it fails", cmd_verify, true},
    {"predict", "PLAN", "simulate a plan and say what limits it", cmd_predict, true},
    {"render", "DB|PLAN", "draw a plan, a run or a counterexample", cmd_render, false},
    {"schedule", "PLAN", "print which iteration each task works on", cmd_schedule, false},
    {"stages", "PLAN", "analyse the stages of a pipeline", cmd_stages, true},
    {"lower", "PLAN", "print the machine operations of a plan", cmd_lower, false},
    {"generate", "NAME", "print the plan of a pipeline-parallel schedule", cmd_generate, false},
    {"groups", "PLAN", "print the groups of parallel ranks", cmd_groups, true},
    {"export", "PLAN", "print a plan as YAML, JSON or CSV", cmd_export, false},
    {"import", "FILE...", "turn the trace of a real job into a plan", cmd_import, false},
    {"record", "PROGRAM", "record what a CUDA program calls", cmd_record, false},
    {"dry", "PROGRAM", "prove a CUDA program without a GPU", cmd_dry, true},
    {"compare", "DB", "compare predicted with measured times", cmd_compare, true},
    {"why", "TRACE", "name the largest stalls of a job", cmd_why, true},
    {"tune", "PLAN", "search for a faster plan", cmd_tune, true},
    {"runs", "DB", "list the runs in a trace store", cmd_runs, true},
    {"watch", "DB", "follow a run while it is running", cmd_watch, false},
    {"explain", "WORD", "say what a word of the reports means", cmd_explain, true},
    {"schema", "NAME", "print the keys of JSON output and of plans", cmd_schema, false},
    {"mcp", "", "serve an agent", cmd_mcp, false},
    {"help", "[VERB]", "print the options of a verb", NULL, true},
};
enum { VERBS = sizeof verbs / sizeof *verbs };

static enum status swsim_print_help(struct app *app)
{
    printf(
        "Usage: swsim [OPTION]... VERB [ARGUMENT]...\n\n"
        "Prove, predict and draw software pipelines, pipeline-parallel schedules and\n"
        "other programs of streams, events and collectives. A plan is a YAML or JSON\n"
        "file or a PyTorch schedule CSV; `-` is standard input.\n\nVerbs:\n");
    for (size_t i = 0; i < VERBS; i++)
        printf("  %-9s %-8s  %s\n", verbs[i].name, verbs[i].arguments, verbs[i].summary);
    enum status status = options_print_common(app);
    options_print_exit_codes();
    printf("\n'swsim help VERB' or 'swsim VERB --help' prints the options of a verb;\n"
           "'man swsim-VERB' is its page. "
           "'swsim explain WORD' says what a word of a report means.\n");
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

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < VERBS; i++)
        if (strcmp(name, verbs[i].name) == 0)
            return &verbs[i];
    return NULL;
}

/* `swsim help [VERB]`: what `swsim [VERB] --help` prints. */
static enum status help(struct app *app, int argc, char **argv)
{
    if (argc == 1 || (argc == 2 && argv[1][0] == '-'))
        return swsim_print_help(app);
    if (argc > 2)
        return diag_error(&app->diag, STATUS_USAGE, "found '%s', expected one verb: swsim help [VERB]", argv[2]);
    const struct verb *verb = find_verb(argv[1]);
    if (!verb)
        return unknown_verb(app, argv[1]);
    char option[] = "--help";
    char *line[] = {argv[1], option, NULL};
    return verb->run ? verb->run(app, 2, line) : swsim_print_help(app);
}

/* argv[0] is the verb. */
static enum status run_verb(struct app *app, int argc, char **argv)
{
    const struct verb *verb = find_verb(argv[0]);
    if (!verb)
        return unknown_verb(app, argv[0]);
    if (verb->is_report)
        app_fit_terminal();
    return verb->run ? verb->run(app, argc, argv) : help(app, argc, argv);
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
