/* SPDX-License-Identifier: Apache-2.0 */
/* value.c - see value.h; trees from JSON. */
#include "value.h"

#include <string.h>

#include "json_reader.h"

bool value_append(struct value *list, struct value *item, struct arena *arena)
{
    if (!arena_grow(arena, (void **)&list->items, list->count, &list->cap, sizeof(struct value *)))
        return false;
    list->items[list->count++] = item;
    return true;
}

const struct value *value_get(const struct value *value, const char *key)
{
    if (!value || value->kind != VALUE_DICT)
        return NULL;
    for (size_t i = 0; i + 1 < value->count; i += 2) {
        const char *text = value_text(value->items[i]);
        if (text && strcmp(text, key) == 0)
            return value->items[i + 1];
    }
    return NULL;
}

int64_t value_int(const struct value *value, int64_t otherwise)
{
    int64_t number;
    if (value && (value->kind == VALUE_INT || value->kind == VALUE_BOOL))
        return value->number;
    if (value && value->kind == VALUE_TEXT &&
        decimal_scaled(value->text, strlen(value->text), 0, &number))
        return number;
    return otherwise;
}

const char *value_text(const struct value *value)
{
    return value && value->kind == VALUE_TEXT ? value->text : NULL;
}

size_t value_count(const struct value *value)
{
    return value && value->kind == VALUE_LIST ? value->count : 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

struct builder {
    struct json_reader reader;
    struct arena *arena;
    struct value *open[JSON_MAX_NESTING + 1]; /* the lists and dicts that are not complete */
    int depth;
};

/* The value of a token that is no beginning and no end; NULL without memory. */
static struct value *make(struct builder *builder, enum json_token token)
{
    const struct json_reader *reader = &builder->reader;
    struct value *value = ARENA_NEW(builder->arena, struct value);
    if (!value)
        return NULL;
    switch (token) {
    case JSON_KEY:
    case JSON_STRING:
        value->kind = VALUE_TEXT;
        value->text = arena_strndup(builder->arena, reader->text, reader->length);
        return value->text ? value : NULL;
    case JSON_NUMBER:
        value->kind = decimal_scaled(reader->text, reader->length, 0, &value->number) ? VALUE_INT
                                                                                      : VALUE_REAL;
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        value->kind = VALUE_BOOL;
        value->number = token == JSON_TRUE;
        break;
    case JSON_OBJECT: value->kind = VALUE_DICT; break;
    case JSON_ARRAY: value->kind = VALUE_LIST; break;
    case JSON_FAILED:
    case JSON_DONE:
    case JSON_OBJECT_END:
    case JSON_ARRAY_END:
    case JSON_NULL: break;
    }
    return value;
}

static bool take(struct builder *builder, enum json_token token, struct value **root)
{
    if (token == JSON_OBJECT_END || token == JSON_ARRAY_END) {
        builder->depth--;
        return true;
    }
    struct value *value = make(builder, token);
    if (!value)
        return false;
    if (builder->depth == 0)
        *root = value;
    else if (!value_append(builder->open[builder->depth - 1], value, builder->arena))
        return false;
    if (token == JSON_OBJECT || token == JSON_ARRAY)
        builder->open[builder->depth++] = value;
    return true;
}

enum status value_read_json(struct bytes *bytes, struct arena *arena, struct value **out,
                            struct diag *diag)
{
    struct builder builder = {.arena = arena};
    struct value *root = NULL;
    enum json_token token;
    enum status status = json_reader_open(&builder.reader, bytes, diag);
    if (status != STATUS_OK)
        return status;
    while (status == STATUS_OK && (token = json_next(&builder.reader)) > JSON_DONE) {
        if (!take(&builder, token, &root))
            status = diag_no_memory(diag);
        else if (builder.reader.consumed > VALUE_MAX_BYTES)
            status = diag_error(diag, STATUS_INPUT, "%s: larger than 256 MiB", bytes_name(bytes));
    }
    if (status == STATUS_OK)
        status = builder.reader.status;
    json_reader_close(&builder.reader);
    if (status == STATUS_OK)
        *out = root;
    return status;
}
