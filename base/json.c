/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - see json.h.
 *
 * `levels[depth - 1]` describes the innermost open object or array. In an object a value may only
 * come `after_key`; `filled` says whether a comma is due before the next item.
 */
#include "json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "printable.h"

void json_open(struct json *json, FILE *out)
{
    *json = (struct json){.out = out};
}

enum status json_close(struct json *json, struct diag *diag)
{
    assert(json->depth == 0);
    return diag_flush(diag, json->out, "the JSON output");
}

/* The comma before a value, where one is due. */
static void begin_value(struct json *json)
{
    if (json->depth == 0)
        return;
    if (json->levels[json->depth - 1].object) {
        assert(json->after_key);
        json->after_key = false;
        return;
    }
    if (json->levels[json->depth - 1].filled)
        fputc(',', json->out);
    json->levels[json->depth - 1].filled = true;
}

/* And ends with: a line of its own at the top. */
static void end_value(struct json *json)
{
    if (json->depth == 0)
        fputc('\n', json->out);
}

static void begin_level(struct json *json, bool object)
{
    begin_value(json);
    assert(json->depth < JSON_MAX_DEPTH);
    json->levels[json->depth].object = object;
    json->levels[json->depth].filled = false;
    json->depth++;
    fputc(object ? '{' : '[', json->out);
}

static void end_level(struct json *json, bool object)
{
    assert(json->depth > 0 && json->levels[json->depth - 1].object == object);
    assert(!json->after_key);
    json->depth--;
    fputc(object ? '}' : ']', json->out);
    end_value(json);
}

void json_begin_object(struct json *json)
{
    begin_level(json, true);
}

void json_begin_document(struct json *json, enum document document)
{
#define X(constant, name, version, commands) DOCUMENT_SCHEMA(name, version),
    static const char *const schemas[] = {DOCUMENT_LIST(X)};
#undef X
    assert(json->depth == 0);
    json_begin_object(json);
    json_put_string(json, "schema", schemas[document]);
}

void json_end_object(struct json *json)
{
    end_level(json, true);
}

void json_begin_array(struct json *json)
{
    begin_level(json, false);
}

void json_end_array(struct json *json)
{
    end_level(json, false);
}

/* As \u and the number, beyond 16 bits as a surrogate pair. */
static void write_number(FILE *out, unsigned code)
{
    if (code <= 0xFFFF)
        fprintf(out, "\\u%04x", code);
    else
        fprintf(out, "\\u%04x\\u%04x", 0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF));
}

static void write_escaped(FILE *out, unsigned code)
{
    static const char letters[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    const char *pair = letters;
    while (*pair && (unsigned char)*pair != code)
        pair += 2;
    if (*pair)
        fprintf(out, "\\%c", pair[1]);
    else
        write_number(out, code);
}

/* Characters that act on a terminal are escaped, too (base/printable.h). A byte that is no UTF-8 has no escape. */
static void write_string(FILE *out, const char *string)
{
    unsigned code;
    fputc('"', out);
    for (size_t length; *string; string += length) {
        length = printable_decode(string, &code);
        if (code == 0)
            fputs("\xEF\xBF\xBD", out);
        else if (code == '"' || code == '\\' || printable_acts(code))
            write_escaped(out, code);
        else
            fwrite(string, 1, length, out);
    }
    fputc('"', out);
}

void json_key(struct json *json, const char *key)
{
    assert(json->depth > 0 && json->levels[json->depth - 1].object && !json->after_key);
    if (json->levels[json->depth - 1].filled)
        fputc(',', json->out);
    json->levels[json->depth - 1].filled = true;
    write_string(json->out, key);
    fputc(':', json->out);
    json->after_key = true;
}

void json_string(struct json *json, const char *text)
{
    if (!text) {
        json_null(json);
        return;
    }
    begin_value(json);
    write_string(json->out, text);
    end_value(json);
}

static void write_word(struct json *json, const char *word)
{
    begin_value(json);
    fputs(word, json->out);
    end_value(json);
}

void json_int(struct json *json, int64_t value)
{
    begin_value(json);
    fprintf(json->out, "%" PRId64, value);
    end_value(json);
}

void json_print_double(double value, char out[JSON_DOUBLE_TEXT])
{
    if (!isfinite(value)) {
        strcpy(out, "null");
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out, JSON_DOUBLE_TEXT, "%.*g", digits, value);
        /* Everything below 2^53 that is whole is better read without an exponent. */
        if (strchr(out, 'e') && value == floor(value) && fabs(value) < 9007199254740992.0)
            snprintf(out, JSON_DOUBLE_TEXT, "%.0f", value);
        double back = strtod(out, NULL);
        if (memcmp(&back, &value, sizeof back) == 0)
            return;
    }
}

void json_double(struct json *json, double value)
{
    char text[JSON_DOUBLE_TEXT];
    json_print_double(value, text);
    write_word(json, text);
}

void json_bool(struct json *json, bool value)
{
    write_word(json, value ? "true" : "false");
}

void json_null(struct json *json)
{
    write_word(json, "null");
}

void json_begin_object_at(struct json *json, const char *key)
{
    json_key(json, key);
    json_begin_object(json);
}

void json_begin_array_at(struct json *json, const char *key)
{
    json_key(json, key);
    json_begin_array(json);
}

void json_put_string(struct json *json, const char *key, const char *text)
{
    json_key(json, key);
    json_string(json, text);
}

void json_put_int(struct json *json, const char *key, int64_t value)
{
    json_key(json, key);
    json_int(json, value);
}

void json_put_known(struct json *json, const char *key, int64_t value, bool known)
{
    json_key(json, key);
    known ? json_int(json, value) : json_null(json);
}

void json_put_double(struct json *json, const char *key, double value)
{
    json_key(json, key);
    json_double(json, value);
}

void json_put_thousandths(struct json *json, const char *key, int64_t value)
{
    char text[JSON_DOUBLE_TEXT];
    const int64_t whole = value / 1000, rest = value % 1000;
    if (rest == 0)
        snprintf(text, sizeof text, "%" PRId64, whole);
    else
        snprintf(text, sizeof text, "%s%" PRId64 ".%03d", value < 0 ? "-" : "",
                 whole < 0 ? -whole : whole, (int)(rest < 0 ? -rest : rest));
    json_key(json, key);
    write_word(json, text);
}

void json_put_bool(struct json *json, const char *key, bool value)
{
    json_key(json, key);
    json_bool(json, value);
}

/* ---- errors ------------------------------------------------------------------------------------ */

static void json_write_error(const struct diag_message *message, struct json *json)
{
    json_begin_object(json);
    json_put_string(json, "file", message->file);
    json_put_known(json, "line", message->mark.line, message->mark.line);
    json_put_known(json, "column", message->mark.col, message->mark.line);
    json_put_string(json, "text", message->text);
    json_end_object(json);
}

void json_write_errors(const struct diag *diag, FILE *out)
{
    char out_of_memory[] = "out of memory";
    const struct diag_message no_memory = {.text = out_of_memory};
    struct json json;
    json_open(&json, out);
    json_begin_document(&json, DOCUMENT_ERRORS);
    json_begin_array_at(&json, "errors");
    for (size_t i = 0; i < diag->count; i++)
        if (diag->messages[i].severity == SEVERITY_ERROR)
            json_write_error(&diag->messages[i], &json);
    if (diag->out_of_memory)
        json_write_error(&no_memory, &json);
    json_end_array(&json);
    json_end_object(&json);
}
