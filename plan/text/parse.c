/* SPDX-License-Identifier: Apache-2.0 */
/* parse.c - see parse.h: reading files and telling the format. */
#include "parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "csv.h"
#include "base/input.h"
#include "text_internal.h"
#include "base/printable.h"
#include "base/system_words.h"

enum { READ_CHUNK = 64 * 1024 };

/* ---- lifetime of a parser -------------------------------------------------------------------- */

/* The file's base name without its last suffix. */
static const char *default_name(struct plan *plan, const char *file_name)
{
    if (strcmp(file_name, "-") == 0)
        return "stdin";
    const char *slash = strrchr(file_name, '/');
    const char *base = slash && slash[1] ? slash + 1 : file_name;
    const char *dot = strrchr(base, '.');
    size_t length = dot && dot != base ? (size_t)(dot - base) : strlen(base);
    char *name = arena_strndup(&plan->arena, base, length < PLAN_MAX_NAME ? length : PLAN_MAX_NAME);
    return printable_text(&plan->arena, name, false);
}

bool parser_start(struct parser *parser, struct plan *plan, const char *file_name, const char *text,
                  size_t length, struct diag *diag)
{
    plan_init(plan);
    *parser = (struct parser){.plan = plan, .diag = diag, .source_length = length};
    arena_init(&parser->scratch, 0);
    plan->file = arena_strdup(&plan->arena, file_name);
    plan->name = default_name(plan, file_name);
    plan->text = parser->source = arena_strndup(&plan->arena, text, length);
    return (plan->file && plan->name && parser->source) || parse_no_memory(parser);
}

enum status parser_finish(struct parser *parser)
{
    if (parser->plan->arena.failed || parser->scratch.failed)
        parse_no_memory(parser);
    arena_fini(&parser->scratch);
    if (parser->status != STATUS_OK)
        plan_fini(parser->plan);
    return parser->status;
}

static enum status parse_yaml_plan(const char *file_name, const char *text, size_t length,
                                   struct plan *out, struct diag *diag)
{
    struct parser parser;
    if (parser_start(&parser, out, file_name, text, length, diag)) {
        parser.root = parse_yaml(&parser, true);
        if (parser.root)
            parse_root(&parser);
    }
    return parser_finish(&parser);
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool parse_has_suffix(const char *name, const char *suffix)
{
    size_t length = strlen(name), suffix_length = strlen(suffix);
    return length > suffix_length && strcasecmp(name + length - suffix_length, suffix) == 0;
}

static bool is_csv(const char *file_name, const char *text, size_t length)
{
    if (parse_has_suffix(file_name, ".csv"))
        return true;
    if (parse_has_suffix(file_name, ".yaml") || parse_has_suffix(file_name, ".yml") ||
        parse_has_suffix(file_name, ".json"))
        return false;
    return csv_looks_like(text, length);
}

/* Files that other verbs read, by their first bytes. */
static enum status refuse_binary(const char *file_name, const char *text, size_t length,
                                 struct diag *diag)
{
    static const struct {
        const char *bytes, *what;
    } kinds[] = {
        {"SQLite format 3", "a file of SQLite, expected a plan: 'swsim runs' lists the runs of a "
                            "trace store, 'swsim import' reads an export of Nsight Systems"},
        {"\x1f\x8b", "a compressed file, expected a plan: 'swsim import' reads compressed traces"},
        {"\x80", "a pickle, expected a plan: 'swsim import' reads the dump of a flight recorder"}};
    for (size_t i = 0; i < FIELD_COUNT(kinds); i++) {
        size_t size = strlen(kinds[i].bytes);
        if (length > size && memcmp(text, kinds[i].bytes, size) == 0)
            return diag_error(diag, STATUS_INPUT, "%s: found %s", file_name, kinds[i].what);
    }
    return STATUS_OK;
}

enum status plan_parse(const char *file_name, const char *text, size_t length, struct plan *out,
                       struct diag *diag)
{
    enum status status = refuse_binary(file_name, text, length, diag);
    if (status != STATUS_OK) {
        *out = (struct plan){0};
        return status;
    }
    return is_csv(file_name, text, length) ? plan_parse_csv(file_name, text, length, out, diag)
                                           : parse_yaml_plan(file_name, text, length, out, diag);
}

/* The whole of an open file, at most PLAN_MAX_FILE_BYTES. Behind a zero byte, for which every format is refused, little
   is read: a stream of them has no end. The caller frees *out. */
static enum status parse_read_all(FILE *file, const char *path, char **out, size_t *out_length,
                                  struct diag *diag)
{
    char *text = NULL;
    size_t length = 0, cap = 0, got;
    bool is_text;
    do {
        if (cap - length < READ_CHUNK) {
            cap = cap ? 2 * cap : 2 * READ_CHUNK;
            char *grown = realloc(text, cap);
            if (!grown) {
                free(text);
                return diag_no_memory(diag);
            }
            text = grown;
        }
        errno = 0;
        got = fread(text + length, 1, cap - length, file);
        is_text = !memchr(text + length, '\0', got);
        length += got;
    } while (got && is_text && length <= PLAN_MAX_FILE_BYTES);
    enum status status = STATUS_OK;
    if (ferror(file))
        status = diag_error(diag, STATUS_SYSTEM, "cannot read %s: %s", path, system_words(errno));
    else if (length > PLAN_MAX_FILE_BYTES)
        status = diag_error(diag, STATUS_INPUT,
                            "found %s bigger than %d MiB, expected a plan below "
                            "this limit",
                            path, PLAN_MAX_FILE_BYTES / (1024 * 1024));
    if (status != STATUS_OK) {
        free(text);
        return status;
    }
    *out = text;
    *out_length = length;
    return STATUS_OK;
}

enum status parse_text_of(const char *path, char **out, size_t *out_length, struct diag *diag)
{
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : input_open_stream(path, diag);
    if (!file)
        return STATUS_SYSTEM;
    enum status status =
        parse_read_all(file, is_stdin ? "standard input" : path, out, out_length, diag);
    if (!is_stdin)
        fclose(file);
    return status;
}

enum status plan_read(const char *path, struct plan *out, struct diag *diag)
{
    *out = (struct plan){0};
    char *text = NULL;
    size_t length = 0;
    enum status status = parse_text_of(path, &text, &length, diag);
    if (status != STATUS_OK)
        return status;
    status = plan_parse(path, text, length, out, diag);
    free(text);
    return status;
}
