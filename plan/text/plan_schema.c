/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_schema.c - see plan_schema.h.
 *
 * draft-07 ignores what stands beside "$ref", so a key with a description refers by "allOf".
 */
#include "plan_schema.h"

#include <assert.h>
#include <string.h>

#include "text_internal.h"

#define DECIMAL "([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][-+]?[0-9]+)?"
#define NUMBER  "^" DECIMAL

/* ---- pieces ---------------------------------------------------------------------------------- */

void schema_refer(struct json *json, const char *definition)
{
    char path[64];
    snprintf(path, sizeof path, "#/definitions/%s", definition);
    json_begin_array_at(json, "allOf");
    json_begin_object(json);
    json_put_string(json, "$ref", path);
    json_end_object(json);
    json_end_array(json);
}

void schema_int(struct json *json, const struct field *field)
{
    json_put_string(json, "type", "integer");
    json_put_int(json, "minimum", field->min);
    if (field->max < INT64_MAX)
        json_put_int(json, "maximum", field->max);
    if (field->otherwise >= field->min && !field->required && !field->always)
        json_put_int(json, "default", field->otherwise);
}

void schema_bool(struct json *json, const struct field *field)
{
    json_put_string(json, "type", "boolean");
    json_put_bool(json, "default", field->otherwise != 0);
}

/* YAML reads the words true and false as no texts. */
void schema_word(struct json *json, const struct field *field)
{
    assert(field->words);
    json_begin_array_at(json, "enum");
    for (size_t i = 0; field->words[i]; i++) {
        json_string(json, field->words[i]);
        if (strcmp(field->words[i], "false") == 0)
            json_bool(json, false);
    }
    json_end_array(json);
    if (field->otherwise >= 0 && !field->required && !field->always)
        json_put_string(json, "default", field->words[field->otherwise]);
}

void schema_map(struct json *json, const struct field *field)
{
    schema_keys(json, field->keys->fields, field->keys->count);
}

void schema_value(struct json *json, const struct field *field)
{
    assert(!field->kind->schema != !field->kind->refer);
    if (field->kind->refer)
        schema_refer(json, field->kind->refer);
    else
        field->kind->schema(json, field);
}

void schema_truth(struct json *json, const struct field *field)
{
    json_put_string(json, "type", "boolean");
}

void schema_either(struct json *json)
{
    json_begin_array_at(json, "anyOf");
    json_begin_object(json);
}

void schema_or(struct json *json)
{
    json_end_object(json);
    json_begin_object(json);
}

void schema_end_either(struct json *json)
{
    json_end_object(json);
    json_end_array(json);
}

void schema_one_or_list(struct json *json, const struct field *one, int least)
{
    schema_either(json);
    schema_value(json, one);
    schema_or(json);
    schema_begin_list(json);
    schema_value(json, one);
    schema_end(json);
    if (least > 0)
        json_put_int(json, "minItems", least);
    schema_end_either(json);
}

void schema_begin_named(struct json *json)
{
    json_put_string(json, "type", "object");
    json_begin_object_at(json, "additionalProperties");
}

void schema_begin_list(struct json *json)
{
    json_put_string(json, "type", "array");
    json_begin_object_at(json, "items");
}

void schema_end(struct json *json)
{
    json_end_object(json);
}

void schema_keys_with(struct json *json, const struct field *fields, size_t count, const char *key)
{
    json_put_string(json, "type", "object");
    json_put_bool(json, "additionalProperties", false);
    json_begin_object_at(json, "properties");
    for (size_t i = 0; i < count; i++) {
        assert(fields[i].key && fields[i].about);
        json_begin_object_at(json, fields[i].key);
        json_put_string(json, "description", fields[i].about);
        schema_value(json, &fields[i]);
        json_end_object(json);
    }
    json_end_object(json);
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        if (!fields[i].required && !(key && strcmp(fields[i].key, key) == 0))
            continue;
        if (!any)
            json_begin_array_at(json, "required");
        any = true;
        json_string(json, fields[i].key);
    }
    if (any)
        json_end_array(json);
}

void schema_keys(struct json *json, const struct field *fields, size_t count)
{
    schema_keys_with(json, fields, count, NULL);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void write_amount(struct json *json, const char *name, const char *about,
                         const char *pattern)
{
    json_begin_object_at(json, name);
    json_put_string(json, "description", about);
    json_put_string(json, "type", "string");
    json_put_string(json, "pattern", pattern);
    json_end_object(json);
}

/* A name may look like a number or a word to a reader of YAML. */
static void plan_schema_write_scalar(struct json *json, const char *name, const char *about)
{
    static const char *const types[] = {"string", "number", "boolean"};
    json_begin_object_at(json, name);
    json_put_string(json, "description", about);
    json_begin_array_at(json, "type");
    for (size_t i = 0; i < FIELD_COUNT(types); i++)
        json_string(json, types[i]);
    json_end_array(json);
    json_end_object(json);
}

static void write_definitions(struct json *json)
{
    json_begin_object_at(json, "definitions");
    write_amount(json, "time", "A number and ns, us, ms or s, such as 0.2ms.",
                 NUMBER "(ns|us|ms|s)$");
    write_amount(json, "below", "A bound of a time, such as <11ms.", "^<" DECIMAL "(ns|us|ms|s)$");
    write_amount(json, "size",
                 "A number and B, KiB, MiB, GiB, TiB, kB, MB, GB or TB, such as 64MiB.",
                 NUMBER "([KMGT]iB|[kMGT]?B)$");
    write_amount(json, "rate", "A size a second, such as 25GB/s, or Gbit/s.",
                 NUMBER "([MG]iB|[kMGT]?B|Gbit)/s$");
    write_amount(json, "flops", "Operations a second, such as 150TFLOPS.", NUMBER "[MGTP]?FLOPS$");
    json_begin_object_at(json, "share");
    json_put_string(json, "description", "A part of a whole, with at most six decimals.");
    json_put_string(json, "type", "number");
    json_put_int(json, "minimum", 0);
    json_put_int(json, "maximum", 1);
    json_end_object(json);
    plan_schema_write_scalar(json, "name", "A name or a text.");
    json_begin_object_at(json, "distribution");
    json_put_string(json, "description", "A distribution around 1, such as lognormal(cv=0.3).");
    json_put_string(json, "type", "string");
    json_end_object(json);
    json_begin_object_at(json, "task");
    schema_task(json);
    json_end_object(json);
    json_begin_object_at(json, "operation");
    schema_operation(json);
    json_end_object(json);
    json_end_object(json);
}

void plan_schema_write(struct json *json)
{
    json_begin_object(json);
    json_put_string(json, "$schema", "http://json-schema.org/draft-07/schema#");
    json_put_string(json, "title", "swplan: 1");
    json_put_string(json, "description",
                    "A plan of a pipeline, of rank programs or of host programs, see swplan(5).");
    write_definitions(json);
    schema_plan(json);
    json_end_object(json);
}
