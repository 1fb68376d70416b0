/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - one table describes a command's options: it parses them and prints its --help.
 *
 * GNU conventions through getopt_long: `--name=value` and `--name value`, unique abbreviations,
 * options anywhere among the arguments, `--` ends them. The common options (--json, --quiet,
 * --color, --help, --version) are added to every table. Values are stored through the table's pointers,
 * texts point into argv. Wrong use is described in app->diag.
 */
#ifndef SWSIM_OPTIONS_H
#define SWSIM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app.h"

enum option_kind {
    OPTION_FLAG,    /* bool */
    OPTION_TEXT,    /* const char * */
    OPTION_LIST,    /* struct text_list, once for each use */
    OPTION_INTEGER, /* int64_t, from min to max */
    OPTION_TIME,    /* int64_t, nanoseconds */
    OPTION_CHOICE   /* int, the position among choices, which stand in `argument`: "a|b|c" */
};

struct text_list {
    const char **items;
    size_t count, cap;
};

struct option_spec {
    const char *name;
    char letter;          /* short form, 0: none */
    const char *argument; /* as --help shows it; NULL for a flag; "[SIZE]": may be left out, and is
                             "" then (only OPTION_TEXT, without a letter) */
    const char *help;     /* one line, with the default */
    enum option_kind kind;
    void *value;
    int64_t min, max; /* OPTION_INTEGER */
    const char
        *excludes; /* names of options that cannot stand beside it, a space between; or NULL */
    const char *because; /* the reason, for the message; NULL: it is plain */
};

struct command {
    const char *name;      /* "swsim verify" */
    const char *arguments; /* "PLAN..." */
    const char *about;     /* sentences, broken into lines */
    const char *examples;  /* lines, each indented by two */
    const struct option_spec *options;
    size_t option_count;
    bool argument_optional; /* otherwise there is one at least */
    int more_arguments;     /* most of them beyond one */
    bool unlimited; /* without the common --limit: it has its own, or does not end by itself */
};

/* The two fields of a command that a table fills. */
#define COMMAND_OPTIONS(table) .options = (table), .option_count = sizeof(table) / sizeof *(table)

/* The arguments that are no options. */
struct arguments {
    char **items;
    int count;
    const char **given; /* names of the options that were used, in the order of the table */
    size_t given_count;
};

/*
 * Parse argv[1..]. Returns true when the command is to be carried out; otherwise *status says how
 * it ended: STATUS_OK after --help or --version, else STATUS_USAGE or STATUS_SYSTEM.
 */
bool options_parse(struct app *app, const struct command *command, int argc, char **argv,
                   struct arguments *out, enum status *status);

/* True if the option was used. */
bool options_given(const struct arguments *arguments, const char *name);

/* STATUS_USAGE where an option was used that has no effect on the plan: driver_check_options. */
enum status options_check_plan(struct app *app, const struct arguments *arguments,
                               const struct plan *plan, int driver, int usual);

/* The same as options_parse for a command whose one argument is a plan, then app_with_plan. */
enum status options_use_plan(struct app *app, const struct command *command, int argc, char **argv,
                             plan_use *use, void *context);

/* The same for the options before a verb: stops at the first argument, whose position in argv goes
 * to position (argc if there is none). Prints no help: sets *help instead. */
bool options_parse_leading(struct app *app, const char *name, int argc, char **argv, int *position,
                           bool *help, enum status *status);

/* The options every command has, for --help. */
enum status options_print_common(struct app *app);
void options_print_version(const char *program);
/* The meaning of all exit codes, for --help. */
void options_print_exit_codes(void);

#endif
