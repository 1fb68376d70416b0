/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yaml_json.c - see yaml_json.h: libyaml's events, one JSON call each.
 *
 * `levels` remembers of every open collection whether it is a mapping and whether a key is next.
 */
#include "yaml_json.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct converter {
    struct json *json;
    struct diag *diag;
    struct {
        bool mapping, key_next;
    } levels[JSON_MAX_DEPTH];
    int depth;
};

static enum status yaml_json_refuse(struct converter *c, const yaml_event_t *event,
                                    const char *what)
{
    return diag_error(c->diag, STATUS_INPUT, "line %zu: %s cannot be written as JSON",
                      event->start_mark.line + 1, what);
}

/* JSON's grammar of a number: no leading zeros, plus signs, bare points, hexadecimals. */
static bool yaml_json_is_number(const char *text)
{
    text += *text == '-';
    size_t whole = strspn(text, "0123456789");
    if (whole == 0 || (whole > 1 && *text == '0'))
        return false;
    text += whole;
    if (*text == '.') {
        size_t digits = strspn(++text, "0123456789");
        if (digits == 0)
            return false;
        text += digits;
    }
    if (*text == 'e' || *text == 'E') {
        text += text[1] == '+' || text[1] == '-' ? 2 : 1;
        size_t digits = strspn(text, "0123456789");
        if (digits == 0)
            return false;
        text += digits;
    }
    return *text == '\0';
}

static bool is_integer(const char *text)
{
    return yaml_json_is_number(text) && strlen(text) <= 18 && !strpbrk(text, ".eE");
}

static void yaml_json_write_scalar(struct json *json, const char *text, bool plain)
{
    if (!plain)
        json_string(json, text);
    else if (is_integer(text))
        json_int(json, strtoll(text, NULL, 10));
    else if (yaml_json_is_number(text))
        json_double(json, strtod(text, NULL));
    else if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        json_bool(json, *text == 't');
    else if (strcmp(text, "null") == 0 || strcmp(text, "~") == 0 || *text == '\0')
        json_null(json);
    else
        json_string(json, text);
}

/* True if the next scalar is a key. A mapping alternates. */
static bool at_key(struct converter *c)
{
    if (c->depth == 0 || !c->levels[c->depth - 1].mapping)
        return false;
    bool key = c->levels[c->depth - 1].key_next;
    c->levels[c->depth - 1].key_next = !key;
    return key;
}

static enum status yaml_json_begin(struct converter *c, const yaml_event_t *event, bool mapping)
{
    if (at_key(c))
        return yaml_json_refuse(c, event, "a key that is no scalar");
    if (c->depth == JSON_MAX_DEPTH)
        return yaml_json_refuse(c, event, "deeper nesting");
    c->levels[c->depth].mapping = c->levels[c->depth].key_next = mapping;
    c->depth++;
    if (mapping)
        json_begin_object(c->json);
    else
        json_begin_array(c->json);
    return STATUS_OK;
}

static enum status convert_event(struct converter *c, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    switch (event->type) {
    case YAML_MAPPING_START_EVENT: return yaml_json_begin(c, event, true);
    case YAML_SEQUENCE_START_EVENT: return yaml_json_begin(c, event, false);
    case YAML_MAPPING_END_EVENT:
        c->depth--;
        json_end_object(c->json);
        return STATUS_OK;
    case YAML_SEQUENCE_END_EVENT:
        c->depth--;
        json_end_array(c->json);
        return STATUS_OK;
    case YAML_SCALAR_EVENT:
        if (at_key(c))
            json_key(c->json, text);
        else
            yaml_json_write_scalar(c->json, text, event->data.scalar.plain_implicit);
        return STATUS_OK;
    case YAML_ALIAS_EVENT: return yaml_json_refuse(c, event, "an alias");
    default: return STATUS_OK; /* starts and ends of stream and document */
    }
}

enum status yaml_write_json(const char *text, size_t length, struct json *json, struct diag *diag)
{
    struct converter converter = {.json = json, .diag = diag};
    enum status status = STATUS_OK;
    bool more = true;
    yaml_parser_t parser;
    yaml_event_t event;
    if (!yaml_parser_initialize(&parser))
        return diag_no_memory(diag);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    while (more && status == STATUS_OK) {
        if (!yaml_parser_parse(&parser, &event)) {
            status =
                parser.error == YAML_MEMORY_ERROR
                    ? diag_no_memory(diag)
                    : diag_error(diag, STATUS_INPUT, "line %zu: %s", parser.problem_mark.line + 1,
                                 parser.problem ? parser.problem : "not YAML");
            break;
        }
        more = event.type != YAML_STREAM_END_EVENT;
        status = convert_event(&converter, &event);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return status;
}
