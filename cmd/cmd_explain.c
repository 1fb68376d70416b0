/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_explain.c - `swsim explain`: what a word of reports, messages and plans means.
 *
 * The words are those of the pages, made into C by tools/words.awk; keys of plans have the line of their schema.
 */
#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "app.h"
#include "base/nearest.h"
#include "options.h"

#include "base/columns.h"
#include "base/json.h"
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

/* True if the two are one word: in capitals or not, with "-", "_" or a space, one or several. */
static bool explained_same(const char *a, const char *b)
{
    while (*a && *b) {
        const bool apart = strchr("-_ ", *a) && strchr("-_ ", *b);
        if (!apart && tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return false;
        a++;
        b++;
    }
    return (!*a || strcasecmp(a, "s") == 0) && (!*b || strcasecmp(b, "s") == 0);
}

static bool explained_is_called(const struct explained *explained, const char *word)
{
    char name[64];
    const char *at = explained->words;
    while (explained_next(&at, name, sizeof name))
        if (explained_same(name, word))
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

/* True if this member of the schema is a kind of values, which keys share, and no key. */
static bool is_definition(const char *schema, const char *member)
{
    static const char definitions[] = "\"definitions\":{";
    const char *at = strstr(schema, definitions);
    bool quoted = false;
    int depth = 1;
    assert(at);
    for (at += sizeof definitions - 1; at < member && depth > 0; at++)
        if (quoted && *at == '\\')
            at++;
        else if (*at == '"')
            quoted = !quoted;
        else if (!quoted)
            depth += (*at == '{') - (*at == '}');
    return at == member && depth == 1;
}

/* The next description of a key behind *at, which moves on; NULL: there is none. A key's own description is the first member of
   its schema that is called so (t_plan_schema). */
static const char *next_description(const char *schema, const char **at, const char *key,
                                    size_t *length)
{
    static const char begins[] = "\"description\":\"";
    char quoted[80];
    if ((size_t)snprintf(quoted, sizeof quoted, "\"%s\":{", key) >= sizeof quoted)
        return NULL;
    const char *text = strstr(*at, quoted);
    while (text && is_definition(schema, text))
        text = strstr(text + 1, quoted);
    text = text ? strstr(text, begins) : NULL;
    if (!text)
        return NULL;
    text += sizeof begins - 1;
    *length = 0;
    while (text[*length] != '"')
        *length += text[*length] == '\\' ? 2 : 1;
    *at = text + *length;
    return text;
}

enum { MOST_MEANINGS = 16 };

/* What a key means in the mappings of a plan, each meaning once. *count 0: no key is called so. */
static enum status find_key(struct app *app, const char *word, const char **meanings, int *count)
{
    size_t length;
    char *schema = plan_keys();
    *count = 0;
    if (!schema)
        return diag_no_memory(&app->diag);
    enum status status = STATUS_OK;
    const char *at = schema, *text;
    while (status == STATUS_OK && *count < MOST_MEANINGS &&
           (text = next_description(schema, &at, word, &length))) {
        const char *meaning = arena_strndup(&app->arena, text, length);
        bool known_one = false;
        for (int i = 0; meaning && i < *count; i++)
            known_one |= strcmp(meanings[i], meaning) == 0;
        if (!meaning)
            status = diag_no_memory(&app->diag);
        else if (!known_one)
            meanings[(*count)++] = meaning;
    }
    assert(*count < MOST_MEANINGS); /* more would be left out */
    free(schema);
    return status;
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
    const char *keys[MOST_MEANINGS];
    int key_count = 0;
    enum status status = word ? find_key(app, word, keys, &key_count) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    if (word && key_count == 0 && !explained_is_known(word))
        return refuse_word(app, word);
    json_open(&json, stdout);
    if (app->json) {
        json_begin_document(&json, DOCUMENT_EXPLANATION);
        json_begin_array_at(&json, "meanings");
    }
    for (int i = 0; i < KNOWN; i++)
        if (!word || explained_is_called(&known[i], word))
            put_meaning(app, &json, known[i].words, known[i].what, known[i].meaning);
    for (int i = 0; i < key_count; i++)
        put_meaning(app, &json, word, "key of plans, swplan(5)", keys[i]);
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
        .about =
            "Say what a word of the reports, messages and plans means: a property, an answer, a "
            "cause of\n"
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
