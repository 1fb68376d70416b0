/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - see options.h.
 *
 * getopt_long does the parsing. It gets `FIRST + i` as the value of option i, so that one number
 * leads from its return value to the row of the table; the common options come after the command's.
 */
#include "options.h"

#include "limits.h"

#include <assert.h>
#include <getopt.h>
#include <string.h>

#include "base/array.h"
#include "base/nearest.h"
#include "base/units.h"

enum { FIRST = 256, COMMON = 7, HELP_COLUMN = 30, HELP_WIDTH = 80 };

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0.1.0"
#endif

/* A command's options and the common ones, and the two forms getopt wants them in. */
struct option_table {
    struct option_spec *specs;
    size_t count;
    struct option *longs;
    char *shorts;
    bool *given; /* [count] */
    bool help, version;
    const char *limits;
};

/* ---- values ---------------------------------------------------------------------------------- */

static enum status store_choice(struct app *app, const struct option_spec *spec, const char *text)
{
    const char *choice = spec->argument;
    size_t length = strlen(text);
    for (int i = 0;; i++) {
        size_t width = strcspn(choice, "|");
        if (width == length && strncmp(choice, text, width) == 0) {
            *(int *)spec->value = i;
            return STATUS_OK;
        }
        if (choice[width] == '\0')
            break;
        choice += width + 1;
    }
    return diag_error(&app->diag, STATUS_USAGE, "--%s: found '%s', expected %s", spec->name, text,
                      spec->argument);
}

static enum status store_list(struct app *app, const struct option_spec *spec, const char *text)
{
    struct text_list *list = spec->value;
    if (!ARENA_GROW(&app->arena, list->items, list->count, list->cap))
        return diag_no_memory(&app->diag);
    list->items[list->count++] = text;
    return STATUS_OK;
}

static enum status store_time(struct app *app, const struct option_spec *spec, const char *text)
{
    const char *what;
    if (units_parse_time(text, spec->value, &what))
        return STATUS_OK;
    return diag_error(&app->diag, STATUS_USAGE, "--%s: found '%s', %s", spec->name, text, what);
}

static enum status store_integer(struct app *app, const struct option_spec *spec, const char *text)
{
    char what[64];
    snprintf(what, sizeof what, "--%s", spec->name);
    return option_number(app_reader(app), what, text, spec->min, spec->max, spec->value);
}

static enum status store(struct app *app, const struct option_spec *spec, const char *text)
{
    switch (spec->kind) {
    case OPTION_FLAG: *(bool *)spec->value = true; return STATUS_OK;
    case OPTION_TEXT: *(const char **)spec->value = text ? text : ""; return STATUS_OK;
    case OPTION_LIST: return store_list(app, spec, text);
    case OPTION_INTEGER: return store_integer(app, spec, text);
    case OPTION_TIME: return store_time(app, spec, text);
    case OPTION_CHOICE: break;
    }
    return store_choice(app, spec, text);
}

/* ---- help ------------------------------------------------------------------------------------ */

/* Take the first of the names off; NULL: none is left. */
static const char *next_name(const char **names, size_t *length)
{
    const char *name = *names;
    if (!name || !*name)
        return NULL;
    *length = strcspn(name, " ");
    *names = name + *length + (name[*length] == ' ');
    return name;
}

/* "not with --db, --sweep", in lines below the option. */
static void print_exclusions(const char *names)
{
    const char *name;
    size_t length;
    int width = 0;
    while ((name = next_name(&names, &length))) {
        if (!width)
            width = printf("%*snot with ", HELP_COLUMN, "");
        else if (width + (int)length > HELP_WIDTH)
            width = printf(",\n%*s", HELP_COLUMN, "");
        else
            width += printf(", ");
        width += printf("--%.*s", (int)length, name);
    }
    if (width)
        putchar('\n');
}

/* The words of a line from a column on, in as many lines as they need; `column`: where the last one ended, or `from`. */
static int print_words(const char *words, size_t length, int from, int column)
{
    const char *end = words + length;
    while (words < end) {
        const int word = (int)strcspn(words, " \n");
        if (column > from && column + 1 + word > HELP_WIDTH)
            column = printf("\n%*s", from, "") - 1;
        column += printf("%s%.*s", column > from ? " " : "", word, words);
        words += word;
        words += strspn(words, " \n");
    }
    return column;
}

/* Paragraphs. A line that begins with a space stands as it is. */
static void print_about(const char *text)
{
    int column = 0;
    while (*text) {
        const size_t length = strcspn(text, "\n");
        const bool is_own = length == 0 || *text == ' ';
        if (is_own && column > 0)
            putchar('\n');
        if (is_own)
            printf("%.*s\n", (int)length, text);
        column = is_own ? 0 : print_words(text, length, 0, column);
        text += length + (text[length] == '\n');
    }
    if (column > 0)
        putchar('\n');
}

static void print_option(const struct option_spec *spec)
{
    int width = spec->letter ? printf("  -%c, --%s", spec->letter, spec->name)
                             : printf("      --%s", spec->name);
    if (spec->argument)
        width += *spec->argument == '[' ? printf("[=%s", spec->argument + 1)
                                        : printf("=%s", spec->argument);
    if (width >= HELP_COLUMN - 1)
        width = printf("\n") - 1;
    printf("%*s", HELP_COLUMN - width, "");
    print_words(spec->help, strlen(spec->help), HELP_COLUMN, HELP_COLUMN);
    putchar('\n');
    print_exclusions(spec->excludes);
}

void options_print_exit_codes(void)
{
    printf("\nExit status:\n"
           "  0  the properties hold, or the work is done\n"
           "  1  a property is violated, or a run failed\n"
           "  2  wrong use, or the system refused something\n"
           "  3  a bad plan or another bad input\n"
           "  4  a limit was reached, undecided\n");
}

static void options_print_help(const struct command *command, const struct option_table *table)
{
    printf("Usage: %s [OPTION]... %s\n\n", command->name, command->arguments);
    print_about(command->about);
    if (command->option_count > 0)
        printf("\nOptions:\n");
    for (size_t i = 0; i < command->option_count; i++)
        print_option(&table->specs[i]);
    printf("\nCommon options:\n");
    for (size_t i = command->option_count; i < table->count; i++)
        print_option(&table->specs[i]);
    if (command->examples)
        printf("\nExamples:\n%s\n", command->examples);
    options_print_exit_codes();
}

void options_print_version(const char *program)
{
    printf("%s %s\n", program, PACKAGE_VERSION);
}

/* ---- parsing --------------------------------------------------------------------------------- */

static void add_common(struct app *app, bool limited, struct option_table *table)
{
    const struct option_spec common[COMMON] = {
        {"json", 0, NULL, "results as JSON, one object a line", OPTION_FLAG, .value = &app->json},
        {"quiet", 'q', NULL, "only results and errors, no progress", OPTION_FLAG,
         .value = &app->quiet},
        {"color", 0, "auto|always|never", "colours (default auto: on terminals)", OPTION_CHOICE,
         .value = &app->color},
        {"progress", 0, "auto|always|never",
         "progress of long work (default auto: on terminals); always: elsewhere too, a line each "
         "that "
         "begins with a tab",
         OPTION_CHOICE, .value = &app->progress},
        {"help", 'h', NULL, "print this help", OPTION_FLAG, .value = &table->help},
        {"version", 'V', NULL, "print the version", OPTION_FLAG, .value = &table->version},
        {"limit", 0, "LIST", "end with exit code 4 at a limit: mem=SIZE,time=DURATION", OPTION_TEXT,
         .value = &table->limits},
    };
    memcpy(table->specs + table->count, common, sizeof common);
    table->count += limited ? COMMON : COMMON - 1;
}

static int takes_argument(const struct option_spec *spec)
{
    if (!spec->argument)
        return no_argument;
    return *spec->argument == '[' ? optional_argument : required_argument;
}

/* Fill `table`, whose address the common options keep. `order` is "+" to stop at the first
 * argument. */
static bool options_make_table(struct app *app, const struct option_spec *options, size_t count,
                               const char *order, bool limited, struct option_table *table)
{
    *table = (struct option_table){0};
    table->specs = ARENA_ARRAY(&app->arena, count + COMMON, struct option_spec);
    table->longs = ARENA_ARRAY(&app->arena, count + COMMON + 1, struct option);
    table->shorts = arena_alloc(&app->arena, 2 * (count + COMMON) + 3);
    table->given = ARENA_ARRAY(&app->arena, count + COMMON, bool);
    if (!table->specs || !table->longs || !table->shorts || !table->given)
        return false;
    if (count > 0)
        memcpy(table->specs, options, count * sizeof *options);
    table->count = count;
    add_common(app, limited, table);
    char *shorts = stpcpy(stpcpy(table->shorts, order), ":");
    for (size_t i = 0; i < table->count; i++) {
        const struct option_spec *spec = &table->specs[i];
        assert((spec->argument == NULL) == (spec->kind == OPTION_FLAG));
        table->longs[i] = (struct option){spec->name, takes_argument(spec), NULL, FIRST + (int)i};
        if (spec->letter) {
            *shorts++ = spec->letter;
            if (spec->argument)
                *shorts++ = ':';
        }
    }
    return true;
}

enum status options_print_common(struct app *app)
{
    struct option_table table;
    if (!options_make_table(app, NULL, 0, "", true, &table))
        return diag_no_memory(&app->diag);
    printf("\nCommon options:\n");
    for (size_t i = 0; i < table.count; i++)
        print_option(&table.specs[i]);
    return STATUS_OK;
}

static const struct option_spec *find_option(const struct option_table *table, int value)
{
    if (value >= FIRST)
        return &table->specs[value - FIRST];
    for (size_t i = 0; i < table->count; i++)
        if (table->specs[i].letter == value)
            return &table->specs[i];
    return NULL;
}

/* `text` is a long option that getopt refused: unknown, or short for several. */
static enum status refuse_long(struct app *app, const struct option_table *table, const char *text)
{
    size_t length = strcspn(text, "=");
    char *name = arena_strndup(&app->arena, text, length);
    if (!name)
        return diag_no_memory(&app->diag);
    struct nearest nearest = {.found = name};
    const char *first = NULL, *second = NULL;
    for (size_t i = 0; i < table->count; i++) {
        nearest_try(&nearest, table->specs[i].name);
        if (strncmp(table->specs[i].name, name, length) == 0) {
            second = first ? table->specs[i].name : NULL;
            first = first ? first : table->specs[i].name;
        }
    }
    if (second)
        return diag_error(&app->diag, STATUS_USAGE, "option '--%s' is ambiguous: --%s or --%s?",
                          name, first, second);
    if (nearest.best)
        return diag_error(&app->diag, STATUS_USAGE, "unknown option '--%s'; did you mean '--%s'?",
                          name, nearest.best);
    return diag_error(&app->diag, STATUS_USAGE, "unknown option '--%s'", name);
}

/* getopt returned '?' or ':' about `argument`. */
static enum status options_refuse(struct app *app, const struct option_table *table, int answer,
                                  const char *argument)
{
    const struct option_spec *spec = optopt ? find_option(table, optopt) : NULL;
    if (spec && answer == ':')
        return diag_error(&app->diag, STATUS_USAGE, "option '--%s' needs a value: --%s=%s",
                          spec->name, spec->name, spec->argument);
    if (spec && optopt >= FIRST)
        return diag_error(&app->diag, STATUS_USAGE, "option '--%s' takes no value", spec->name);
    if (optopt)
        return diag_error(&app->diag, STATUS_USAGE, "unknown option '-%c'", optopt);
    return refuse_long(app, table, argument + 2);
}

static enum status options_own_parse(struct app *app, struct option_table *table, int argc,
                                     char **argv)
{
    optind = 0; /* glibc: start again, with the order and the signs in `shorts` */
    opterr = 0;
    for (;;) {
        int answer = getopt_long(argc, argv, table->shorts, table->longs, NULL);
        if (answer == -1)
            return STATUS_OK;
        if (answer == '?' || answer == ':')
            return options_refuse(app, table, answer, argv[optind - 1]);
        const struct option_spec *spec = find_option(table, answer);
        enum status status = store(app, spec, optarg);
        if (status != STATUS_OK)
            return status;
        table->given[spec - table->specs] = true;
    }
}

/* ---- options that exclude each other --------------------------------------------------------- */

static bool options_is_given(const struct option_table *table, const char *name, size_t length)
{
    for (size_t i = 0; i < table->count; i++)
        if (strncmp(table->specs[i].name, name, length) == 0 && !table->specs[i].name[length])
            return table->given[i];
    assert(0 && "an option excludes one that the table does not have");
    return false;
}

static enum status check_exclusions(struct app *app, const struct option_table *table)
{
    size_t length;
    for (size_t i = 0; i < table->count; i++) {
        const struct option_spec *spec = &table->specs[i];
        const char *names = table->given[i] ? spec->excludes : NULL, *name;
        while ((name = next_name(&names, &length)))
            if (options_is_given(table, name, length))
                return diag_error(&app->diag, STATUS_USAGE, "found --%s together with --%.*s%s%s",
                                  spec->name, (int)length, name, spec->because ? ": " : "",
                                  spec->because ? spec->because : "");
    }
    return STATUS_OK;
}

static void note_help(struct app *app, const char *name, enum status status)
{
    if (status == STATUS_USAGE)
        diag_note(&app->diag, "'%s --help' tells more", name);
}

static enum status check_count(struct app *app, const struct command *command,
                               const struct arguments *arguments)
{
    if (arguments->count == 0 && !command->argument_optional)
        return diag_error(&app->diag, STATUS_USAGE, "missing argument: %s [OPTION]... %s",
                          command->name, command->arguments);
    if (arguments->count - 1 > command->more_arguments)
        return diag_error(&app->diag, STATUS_USAGE, "unexpected argument '%s': %s [OPTION]... %s",
                          arguments->items[1 + command->more_arguments], command->name,
                          command->arguments);
    return STATUS_OK;
}

static bool list_given(struct app *app, const struct option_table *table, struct arguments *out)
{
    out->given = ARENA_ARRAY(&app->arena, table->count + 1, const char *);
    for (size_t i = 0; out->given && i < table->count; i++)
        if (table->given[i])
            out->given[out->given_count++] = table->specs[i].name;
    return out->given != NULL;
}

bool options_given(const struct arguments *arguments, const char *name)
{
    for (size_t i = 0; i < arguments->given_count; i++)
        if (strcmp(arguments->given[i], name) == 0)
            return true;
    return false;
}

enum status options_check_plan(struct app *app, const struct arguments *arguments,
                               const struct plan *plan, int driver, int usual)
{
    return driver_check_options(plan, arguments->given, arguments->given_count, driver, usual,
                                &app->diag);
}

bool options_parse(struct app *app, const struct command *command, int argc, char **argv,
                   struct arguments *out, enum status *status)
{
    struct option_table table;
    if (!options_make_table(app, command->options, command->option_count, "", !command->unlimited,
                            &table)) {
        *status = diag_no_memory(&app->diag);
        return false;
    }
    /* An error in a command line with --json is told as JSON, too, wherever --json stands. */
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        app->json |= strcmp(argv[i], "--json") == 0;
    *status = options_own_parse(app, &table, argc, argv);
    if (*status == STATUS_OK && (table.help || table.version)) {
        if (table.help && !app->silent)
            options_print_help(command, &table);
        else if (!app->silent)
            options_print_version(app->program);
        return false;
    }
    *out = (struct arguments){.items = argv + optind, .count = argc - optind};
    if (*status == STATUS_OK && !list_given(app, &table, out))
        *status = diag_no_memory(&app->diag);
    if (*status == STATUS_OK)
        *status = check_exclusions(app, &table);
    if (*status == STATUS_OK)
        *status = check_count(app, command, out);
    if (*status == STATUS_OK)
        *status = limits_begin(app, table.limits);
    note_help(app, command->name, *status);
    return *status == STATUS_OK;
}

enum status options_use_plan(struct app *app, const struct command *command, int argc, char **argv,
                             plan_use *use, void *context)
{
    struct arguments arguments;
    enum status status;
    if (!options_parse(app, command, argc, argv, &arguments, &status))
        return status;
    return app_with_plan(app, arguments.items[0], use, context);
}

bool options_parse_leading(struct app *app, const char *name, int argc, char **argv, int *position,
                           bool *help, enum status *status)
{
    struct option_table table;
    if (!options_make_table(app, NULL, 0, "+", false, &table)) {
        *status = diag_no_memory(&app->diag);
        return false;
    }
    *status = options_own_parse(app, &table, argc, argv);
    note_help(app, name, *status);
    if (*status != STATUS_OK)
        return false;
    *position = optind;
    *help = table.help;
    if (table.version && !table.help) {
        options_print_version(app->program);
        return false;
    }
    return true;
}
