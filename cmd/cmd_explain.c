/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_explain.c - `swsim explain`: what a word of reports, messages and plans means.
 *
 * The words are those of the pages, made into C by tools/words.awk; keys of plans have the line of their schema.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "app.h"
#include "options.h"

#include "base/columns.h"
#include "base/json.h"
#include "base/nearest.h"
#include "base/text_stream.h"
#include "plan/text/plan_schema.h"

static const struct explained {
    const char *words, *what, *meaning; /* words: one, or several with commas between */
} known[] = {
#include "cmd/explained_words.inc"
};
enum { KNOWN = sizeof known / sizeof *known, WIDTH = 100 };

/* The next of the words behind `*at`, without the comma; false: there is none. */
static bool explained_next(const char **at, char *out, size_t size)
{
    size_t length = strcspn(*at, ",");
    if (**at == '\0')
        return false;
    snprintf(out, size, "%.*s", (int)length, *at);
    *at += length + strspn(*at + length, ", ");
    return true;
}

static bool explained_is_called(const struct explained *explained, const char *word)
{
    char name[64];
    const char *at = explained->words;
    while (explained_next(&at, name, sizeof name))
        if (strcasecmp(name, word) == 0)
            return true;
    return false;
}

/* The words of a meaning, with line breaks where a line would be too wide. */
static void print_wrapped(const char *text)
{
    int column = WIDTH;
    while (*text) {
        int length = (int)strcspn(text, " "), columns;
        char *word = strndup(text, (size_t)length);
        columns = word ? columns_of(word) : length;
        free(word);
        if (column + 1 + columns > WIDTH) {
            fputs("\n  ", stdout);
            column = 2;
        } else {
            putchar(' ');
            column++;
        }
        printf("%.*s", length, text);
        column += columns;
        text += length + (text[length] == ' ');
    }
    putchar('\n');
}

static void put_meaning(struct app *app, struct json *json, const char *words, const char *what,
                        const char *meaning)
{
    if (app->json) {
        json_begin_object(json);
        json_put_string(json, "words", words);
        json_put_string(json, "what", what);
        json_put_string(json, "meaning", meaning);
        json_end_object(json);
        return;
    }
    printf("%s (%s)", words, what);
    print_wrapped(meaning);
}

/* ---- keys of plans --------------------------------------------------------------------------------- */

/* The schema of plans, which the caller frees; NULL: memory is exhausted. */
static char *plan_keys(void)
{
    struct text_stream stream;
    struct json json;
    if (!text_open(&stream))
        return NULL;
    json_open(&json, stream.out);
    plan_schema_write(&json);
    return text_close(&stream, true, NULL);
}

/* The description of a key: from where its schema begins up to the first one, which is its own. */
static const char *description_of(const char *schema, const char *key, size_t *length)
{
    static const char begins[] = "\"description\":\"";
    char quoted[80];
    if ((size_t)snprintf(quoted, sizeof quoted, "\"%s\":{", key) >= sizeof quoted)
        return NULL;
    const char *at = strstr(schema, quoted);
    at = at ? strstr(at, begins) : NULL;
    if (!at)
        return NULL;
    at += sizeof begins - 1;
    *length = 0;
    while (at[*length] != '"')
        *length += at[*length] == '\\' ? 2 : 1;
    return at;
}

/* NULL in *meaning: no key of plans is called so. */
static enum status find_key(struct app *app, const char *word, const char **meaning)
{
    size_t length;
    char *schema = plan_keys();
    *meaning = NULL;
    if (!schema)
        return diag_no_memory(&app->diag);
    const char *text = description_of(schema, word, &length);
    if (text)
        *meaning = arena_strndup(&app->arena, text, length);
    free(schema);
    return text && !*meaning ? diag_no_memory(&app->diag) : STATUS_OK;
}

/* ---- the verb -------------------------------------------------------------------------------------- */

static enum status refuse_word(struct app *app, const char *word)
{
    struct nearest nearest = {.found = word};
    for (int i = 0; i < KNOWN; i++) {
        char *name = arena_strdup(&app->arena, known[i].words);
        for (name = name ? strtok(name, ",") : NULL; name; name = strtok(NULL, ","))
            nearest_try(&nearest, name + strspn(name, " "));
    }
    return diag_error(&app->diag, STATUS_USAGE,
                      "no page explains the word '%s'%s; 'swsim explain' lists the words", word,
                      nearest_hint(&nearest, '\'', &app->arena));
}

static bool explained_is_known(const char *word)
{
    bool found = false;
    for (int i = 0; i < KNOWN && !found; i++)
        found = explained_is_called(&known[i], word);
    return found;
}

static enum status explain_word(struct app *app, const char *word)
{
    struct json json;
    const char *key = NULL;
    enum status status = word ? find_key(app, word, &key) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    if (word && !key && !explained_is_known(word))
        return refuse_word(app, word);
    json_open(&json, stdout);
    if (app->json) {
        json_begin_document(&json, DOCUMENT_EXPLANATION);
        json_begin_array_at(&json, "meanings");
    }
    for (int i = 0; i < KNOWN; i++)
        if (!word || explained_is_called(&known[i], word))
            put_meaning(app, &json, known[i].words, known[i].what, known[i].meaning);
    if (key)
        put_meaning(app, &json, word, "key of plans, swplan(5)", key);
    if (!app->json)
        return STATUS_OK;
    json_end_array(&json);
    json_end_object(&json);
    return json_close(&json, &app->diag);
}

enum status cmd_explain(struct app *app, int argc, char **argv)
{
    const struct command command = {
        .name = "swsim explain",
        .arguments = "[WORD]",
        .about = "Say what a word means that reports, messages and plans use: a property, an "
                 "answer, a cause of\n"
                 "stalls, a warning, a term, a key of plans. Without a word all but the keys are "
                 "listed.",
        .examples = "  swsim explain race\n"
                    "  swsim explain head_of_line\n"
                    "  swsim explain ticket_at",
        .argument_optional = true,
    };
    struct arguments arguments;
    enum status status;
    if (!options_parse(app, &command, argc, argv, &arguments, &status))
        return status;
    return explain_word(app, arguments.count ? arguments.items[0] : NULL);
}
