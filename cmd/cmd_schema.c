/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_schema.c - `swsim schema`: what the keys of JSON objects and of plans and the columns of trace stores mean.
 *
 * The texts are doc/schema/NAME.json, as bytes in C, the SQL that makes a store, and what the tables of the parser say.
 */
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "options.h"
#include "yaml_json.h"

#include "base/documents.h"
#include "base/json.h"
#include "base/nearest.h"
#include "base/text_stream.h"
#include "plan/text/plan_schema.h"
#include "trace/schema.h"

#include "cmd/schema_documents.inc"

#define PLAN_NAME      "plan"
#define PLAN_VERSION   1
#define PLAN_COMMANDS  "plan files (swplan: 1), of JSON Schema draft-07 for editors"
#define STORE_NAME     "store"
#define STORE_COMMANDS "trace stores (SQLite): --db, --witness=FILE.db"

static const struct description {
    const char *name;
    int version;
    const char *commands, *text;
} descriptions[] = {
#define X(constant, name, version, commands) {#name, version, commands, schema_##name},
    DOCUMENT_LIST(X)
#undef X
};

/* ---- the list -------------------------------------------------------------------------------- */

static void write_entry(struct json *json, const char *name, int version, const char *commands)
{
    json_begin_object(json);
    json_put_string(json, "name", name);
    json_put_int(json, "version", version);
    json_put_string(json, "printed_by", commands);
    json_end_object(json);
}

/* ---- one description ------------------------------------------------------------------------- */

/* The bytes of the value that begins here, an object or a list. */
static size_t value_length(const char *text)
{
    bool quoted = false;
    int depth = 0;
    size_t at = 0;
    do {
        if (quoted && text[at] == '\\')
            at++;
        else if (text[at] == '"')
            quoted = !quoted;
        else if (!quoted)
            depth += (text[at] == '{' || text[at] == '[') - (text[at] == '}' || text[at] == ']');
        at++;
    } while (depth > 0);
    return at;
}

/* One line of JSON with line breaks and an indent of two; what fits into a line stays on it. */
static void print_indented(const char *text)
{
    enum { WIDTH = 110 };
    bool quoted = false;
    int depth = 0;
    size_t inside = 0; /* the rest of a value that is on one line */
    for (; *text; text++) {
        const bool opens = !quoted && (*text == '{' || *text == '[');
        const bool closes = !quoted && (*text == '}' || *text == ']');
        if (opens && inside == 0 && value_length(text) + 2 * (size_t)depth <= WIDTH)
            inside = value_length(text);
        const bool breaks = inside == 0;
        depth += breaks ? opens - closes : 0;
        if (closes && breaks)
            printf("\n%*s", 2 * depth, "");
        putchar(*text);
        if (quoted && *text == '\\') {
            putchar(*++text);
            inside -= inside > 0;
        } else if (*text == '"')
            quoted = !quoted;
        if (breaks && (opens || (!quoted && *text == ',')))
            printf("\n%*s", 2 * depth, "");
        else if (!quoted && (*text == ':' || *text == ','))
            putchar(' ');
        inside -= inside > 0;
    }
}

static enum status show_plan(struct app *app, struct json *json)
{
    struct text_stream stream;
    struct json line;
    if (app->json) {
        plan_schema_write(json);
        return STATUS_OK;
    }
    if (!text_open(&stream))
        return diag_no_memory(&app->diag);
    json_open(&line, stream.out);
    plan_schema_write(&line);
    char *text = text_close(&stream, true, NULL);
    if (!text)
        return diag_no_memory(&app->diag);
    print_indented(text);
    free(text);
    return STATUS_OK;
}

static const struct description *cmd_schema_find(struct app *app, const char *name)
{
    struct nearest nearest = {.found = name};
    for (int i = 0; i < DOCUMENT_COUNT; i++) {
        if (strcmp(descriptions[i].name, name) == 0)
            return &descriptions[i];
        nearest_try(&nearest, descriptions[i].name);
    }
    nearest_try(&nearest, PLAN_NAME);
    nearest_try(&nearest, STORE_NAME);
    diag_error(&app->diag, STATUS_USAGE, "there is no schema '%s'%s", name,
               nearest_hint(&nearest, '\'', &app->arena));
    diag_note(&app->diag, "'swsim schema' lists them");
    return NULL;
}

/* --json: on one line. */
static enum status cmd_schema_show(struct app *app, const char *name, struct json *json)
{
    if (strcmp(name, PLAN_NAME) == 0)
        return show_plan(app, json);
    bool store = strcmp(name, STORE_NAME) == 0;
    const struct description *found = store ? NULL : cmd_schema_find(app, name);
    if (!store && !found)
        return STATUS_USAGE;
    if (!store && app->json)
        return yaml_write_json(found->text, strlen(found->text), json, &app->diag);
    if (!store)
        fputs(found->text, stdout);
    else if (app->json) {
        json_begin_document(json, DOCUMENT_TABLES);
        json_put_int(json, "application_id", SCHEMA_APPLICATION);
        json_put_int(json, "version", SCHEMA_VERSION);
        json_put_string(json, "sql", SCHEMA_ALL);
        json_end_object(json);
    } else
        printf("PRAGMA application_id = %d;\nPRAGMA user_version = %d;\n%s", SCHEMA_APPLICATION,
               SCHEMA_VERSION, SCHEMA_ALL);
    return STATUS_OK;
}

enum status cmd_schema(struct app *app, int argc, char **argv)
{
    const struct command command = {
        .name = "swsim schema",
        .arguments = "[NAME]",
        .about = "List the kinds of JSON objects that --json prints, with the versions of their "
                 "schemas, or\n"
                 "print one as a JSON Schema with a description of each key. The name \"" PLAN_NAME
                 "\" stands for the\n"
                 "keys of plans, for editors; \"" STORE_NAME
                 "\" for the tables of a trace store, as SQL.",
        .examples = "  swsim schema verdict\n"
                    "  swsim schema plan >plan.json\n"
                    "  swsim schema store | sqlite3 empty.db",
        .argument_optional = true,
    };
    struct arguments arguments;
    enum status status;
    struct json json;
    if (!options_parse(app, &command, argc, argv, &arguments, &status))
        return status;
    json_open(&json, stdout);
    if (arguments.count > 0)
        status = cmd_schema_show(app, arguments.items[0], &json);
    else if (app->json) {
        json_begin_document(&json, DOCUMENT_SCHEMAS);
        json_begin_array_at(&json, "documents");
        for (int i = 0; i < DOCUMENT_COUNT; i++)
            write_entry(&json, descriptions[i].name, descriptions[i].version,
                        descriptions[i].commands);
        write_entry(&json, PLAN_NAME, PLAN_VERSION, PLAN_COMMANDS);
        write_entry(&json, STORE_NAME, SCHEMA_VERSION, STORE_COMMANDS);
        json_end_array(&json);
        json_end_object(&json);
    } else {
        printf("%-10s  %7s  %s\n", "Name", "Version", "Printed by");
        for (int i = 0; i < DOCUMENT_COUNT; i++)
            printf("%-10s  %7d  %s\n", descriptions[i].name, descriptions[i].version,
                   descriptions[i].commands);
        printf("%-10s  %7d  %s\n", PLAN_NAME, PLAN_VERSION, PLAN_COMMANDS);
        printf("%-10s  %7d  %s\n", STORE_NAME, SCHEMA_VERSION, STORE_COMMANDS);
    }
    return status == STATUS_OK && app->json ? json_close(&json, &app->diag) : status;
}
