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

/* The bytes of the well-formed UTF-8 sequence at `text` (Unicode, table 3-7); 0: it is not one. */
static size_t sequence_length(const unsigned char *text)
{
    static const struct {
        unsigned char first_low, first_high, second_low, second_high;
        size_t length;
    } forms[] = {
        {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3}, {0xE1, 0xEC, 0x80, 0xBF, 3},
        {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
        {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };
    if (text[0] < 0x80)
        return 1;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (text[0] < forms[i].first_low || text[0] > forms[i].first_high)
            continue;
        if (text[1] < forms[i].second_low || text[1] > forms[i].second_high)
            return 0;
        for (size_t k = 2; k < forms[i].length; k++)
            if (text[k] < 0x80 || text[k] > 0xBF)
                return 0;
        return forms[i].length;
    }
    return 0;
}

static void write_escaped(FILE *out, unsigned char c)
{
    static const char letters[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    const char *pair = letters;
    while (*pair && (unsigned char)*pair != c)
        pair += 2;
    if (*pair)
        fprintf(out, "\\%c", pair[1]);
    else
        fprintf(out, "\\u%04x", c);
}

static void write_string(FILE *out, const char *string)
{
    const unsigned char *text = (const unsigned char *)string;
    fputc('"', out);
    while (*text) {
        size_t length = sequence_length(text);
        if (length == 0)
            fputs("\xEF\xBF\xBD", out);
        else if (*text < 0x20 || *text == '"' || *text == '\\' || *text == 0x7F)
            write_escaped(out, *text);
        else
            fwrite(text, 1, length, out);
        text += length ? length : 1;
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

void json_put_double(struct json *json, const char *key, double value)
{
    json_key(json, key);
    json_double(json, value);
}

void json_put_bool(struct json *json, const char *key, bool value)
{
    json_key(json, key);
    json_bool(json, value);
}
