/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fields.c - tables of keys: how a mapping is read and printed, and the kinds of values that many keys have.
 *
 * A mapping of a plan is described by an array of `struct field`. fields_parse walks the mapping once, hands each value to
 * the reader of its kind and reports unknown and missing keys. fields_print walks the table and prints what differs from
 * the defaults. plan_schema.c makes a JSON Schema of the same tables.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text_internal.h"
#include "base/printable.h"
#include "base/units.h"

enum { SHOWN_BYTES = 40 };

/* ---- errors ---------------------------------------------------------------------------------- */

bool parse_fail(struct parser *parser, enum status status)
{
    if (parser->status != STATUS_SYSTEM)
        parser->status = status;
    if (++parser->errors == PARSE_MANY_ERRORS) {
        parser->gave_up = true;
        parser->diag->too_many = true;
    }
    return false;
}

bool parse_no_memory(struct parser *parser)
{
    return parse_fail(parser, diag_no_memory(parser->diag));
}

void *parse_array(struct parser *parser, size_t count, size_t size)
{
    void *made = arena_array(&parser->plan->arena, count, size);
    if (!made)
        parse_no_memory(parser);
    return made;
}

/* A node as a message quotes it. */
const char *parse_describe(struct parser *parser, const struct node *node)
{
    if (node->kind == NODE_MAP)
        return node->length ? "a mapping" : "an empty mapping";
    if (node->kind == NODE_LIST)
        return node->length ? "a list" : "an empty list";
    if (node->plain && node->length == 0)
        return "nothing";
    size_t length = node->length;
    if (length > SHOWN_BYTES) { /* cut between characters */
        length = SHOWN_BYTES;
        while (length && ((unsigned char)node->text[length] & 0xC0) == 0x80)
            length--;
    }
    const char *shown = arena_printf(&parser->scratch, "\"%.*s%s\"", (int)length, node->text,
                                     length < node->length ? "..." : "");
    return shown ? shown : "a text";
}

bool parse_mismatch(struct parser *parser, const struct node *node, const char *expected)
{
    return parse_error(parser, node->mark, "found %s, expected %s", parse_describe(parser, node),
                       expected);
}

bool parse_want_map(struct parser *parser, const struct node *node, const char *expected)
{
    return node->kind == NODE_MAP || parse_mismatch(parser, node, expected);
}

bool parse_want_list(struct parser *parser, const struct node *node, const char *expected)
{
    return node->kind == NODE_LIST || parse_mismatch(parser, node, expected);
}

const struct node *node_find(const struct node *map, const char *wanted)
{
    MAP_EACH (map, key, value)
        if (strcmp(key->text, wanted) == 0)
            return value;
    return NULL;
}

const char *parse_keep(struct parser *parser, const char *text)
{
    const char *copy = arena_strdup(&parser->plan->arena, text);
    if (!copy)
        parse_no_memory(parser);
    return copy;
}

/* "a, b or c" so far, with `word` added; `last`: it ends the list. */
static const char *fields_add_word(struct parser *parser, const char *list, const char *word,
                                   bool last)
{
    const char *joint = !*list ? "" : last ? " or " : ", ";
    const char *longer = arena_printf(&parser->scratch, "%s%s%s", list, joint, word);
    return longer ? longer : list;
}

/* ---- mappings by table ----------------------------------------------------------------------- */

static bool unknown_key(struct parser *parser, const struct node *key, const struct field *fields,
                        size_t count, const char *what)
{
    struct nearest nearest = {.found = key->text};
    const char *list = "";
    for (size_t i = 0; i < count; i++) {
        nearest_try(&nearest, fields[i].key);
        list = fields_add_word(parser, list, fields[i].key, i + 1 == count);
    }
    return parse_error(parser, key->mark, "found unknown key \"%s\" in %s, expected %s%s",
                       key->text, what, list, nearest_hint(&nearest, '"', &parser->scratch));
}

static bool missing_key(struct parser *parser, const struct node *map, const struct field *field,
                        const char *what)
{
    return parse_error(parser, map->mark, "found %s without \"%s\", expected \"%s: ...\" in it",
                       what, field->key, field->key);
}

/* Keys mostly stand in the order of the table: the one behind `*last` is tried first. */
static const struct field *find_field(const struct field *fields, size_t count, const char *key,
                                      size_t *last)
{
    for (size_t i = 0; i < count; i++) {
        const size_t at = (*last + 1 + i) % count;
        if (fields[at].key[0] == key[0] && strcmp(fields[at].key, key) == 0) {
            *last = at;
            return &fields[at];
        }
    }
    return NULL;
}

static bool field_parse(struct parser *parser, const struct node *value, const struct field *field,
                        void *base)
{
    char *in = field->part ? field->part->make(parser, base) : base;
    return in && field->kind->parse(parser, value, in + field->offset, field);
}

bool fields_parse(struct parser *parser, const struct node *map, const struct field *fields,
                  size_t count, void *base, const char *what)
{
    assert(count > 0);
    bool ok = true;
    size_t last = count - 1;
    READ_MAP (parser, map, key, value) {
        const struct field *field = find_field(fields, count, key->text, &last);
        ok &= field ? field_parse(parser, value, field, base)
                    : unknown_key(parser, key, fields, count, what);
    }
    for (size_t i = 0; i < count; i++)
        if (fields[i].required && !node_find(map, fields[i].key))
            ok = missing_key(parser, map, &fields[i], what);
    return ok;
}

bool keys_parse(struct parser *parser, const struct node *value, const struct keys *keys,
                void *base)
{
    return parse_want_map(parser, value, keys->example) &&
           fields_parse(parser, value, keys->fields, keys->count, base, keys->what);
}

/* NULL: in a part that is not there. */
static const char *field_member(const struct field *field, const void *base)
{
    const char *in = field->part ? field->part->find(base) : base;
    return in ? in + field->offset : NULL;
}

static bool field_same(struct printer *printer, const struct field *field, const void *base,
                       const void *usual)
{
    assert(!field->kind->print || field->kind->same || field->always);
    assert(!field->part || (!usual && !field->always && !field->required));
    const char *member = field_member(field, base);
    const void *other = usual ? (const char *)usual + field->offset : NULL;
    return !field->kind->print || !member || field->kind->same(printer, member, other, field);
}

void fields_print(struct printer *printer, const struct field *fields, size_t count,
                  const void *base, const void *usual)
{
    for (size_t i = 0; i < count; i++) {
        const struct field *field = &fields[i];
        if (!field->always && !field->required && field_same(printer, field, base, usual))
            continue;
        put_word(printer, field->key);
        field->kind->print(printer, field_member(field, base), field);
    }
}

bool fields_same(struct printer *printer, const struct field *fields, size_t count,
                 const void *base, const void *usual)
{
    for (size_t i = 0; i < count; i++)
        if (!field_same(printer, &fields[i], base, usual))
            return false;
    return true;
}

/* ---- scalars --------------------------------------------------------------------------------- */

static bool is_null(const struct node *node)
{
    return node->kind == NODE_SCALAR && node->plain &&
           (node->length == 0 || strcmp(node->text, "~") == 0 || strcmp(node->text, "null") == 0);
}

bool parse_name(struct parser *parser, const struct node *node, const char *expected)
{
    if (node->kind != NODE_SCALAR || is_null(node) || node->length == 0)
        return parse_mismatch(parser, node, expected);
    if (node->length > PLAN_MAX_NAME)
        return parse_error(parser, node->mark, "found a name of %zu bytes, expected at most %d",
                           node->length, PLAN_MAX_NAME);
    return printable_is(node->text, false) ||
           parse_error(parser, node->mark, "found a control character in a name, expected %s",
                       expected);
}

/* number := "0" | [ "-" ] nonzero digit*: every number has one spelling, so keys that are numbers differ
   where their texts do. */
static bool fields_scan_number(const char *text, int64_t *out)
{
    const char *digits = text + (*text == '-');
    size_t length = strspn(digits, "0123456789");
    if (length == 0 || digits[length] || (digits[0] == '0' && (length > 1 || digits != text)))
        return false;
    errno = 0;
    *out = strtoll(text, NULL, 10);
    if (errno == ERANGE)
        *out = *text == '-' ? INT64_MIN : INT64_MAX;
    return true;
}

bool parse_number(struct parser *parser, const struct node *node, bool is_key, int64_t min,
                  int64_t max, int64_t *out)
{
    char expected[96];
    if (max >= INT64_MAX)
        snprintf(expected, sizeof expected, "a whole number, at least %" PRId64, min);
    else
        snprintf(expected, sizeof expected, "a whole number from %" PRId64 " to %" PRId64, min,
                 max);
    int64_t value;
    bool number = node->kind == NODE_SCALAR && fields_scan_number(node->text, &value);
    if (number && !node->plain && !is_key)
        return parse_error(parser, node->mark, "found the text %s, expected %s without quotes",
                           parse_describe(parser, node), expected);
    if (!number || value < min || value > max || (value == INT64_MAX && max == INT64_MAX))
        return parse_mismatch(parser, node, expected);
    *out = value;
    return true;
}

bool field_int(PARSE_PARAMS)
{
    int64_t number;
    if (!parse_number(parser, value, false, field->min, field->max, &number))
        return false;
    *(int *)member = (int)number;
    return true;
}

bool field_rank(PARSE_PARAMS)
{
    struct field bounds = *field;
    bounds.max = parser->plan->ranks - 1;
    return field_int(parser, value, member, &bounds);
}

bool parse_check_pageable(struct parser *parser, const struct node *map, enum direction direction)
{
    const struct node *pageable = node_find(map, "pageable");
    return !pageable || direction != DIRECTION_D2D ||
           parse_error(
               parser, pageable->mark,
               "found \"pageable\" in a copy on the device, expected h2d or d2h: there is no "
               "host memory in it");
}

bool parse_check_jitter(struct parser *parser, const struct node *map, const char *key,
                        const char *of, int64_t ns)
{
    const struct node *jitter = node_find(map, key);
    return !jitter || ns > 0 ||
           parse_error(
               parser, jitter->mark,
               "found \"%s\" without \"%s\", expected both: what takes no time does not vary", key,
               of);
}

bool parse_check_count(struct parser *parser, const struct node *map, enum element element,
                       int64_t count, int64_t *bytes)
{
    const struct node *given = node_find(map, "count");
    if (!given)
        return true;
    const int64_t size = count * element_bytes(element);
    if (element == ELEMENT_NONE)
        return parse_error(parser, given->mark, "found \"count\" without \"dtype\", expected both");
    if (node_find(map, "bytes") && *bytes != size)
        return parse_error(parser, given->mark,
                           "found %" PRId64 " elements of %s beside %" PRId64
                           " bytes, expected %" PRId64 " bytes, or none named",
                           count, element_key(element), *bytes, size);
    *bytes = size;
    return true;
}

bool parse_check_root(struct parser *parser, const struct node *map, enum collective_kind kind,
                      int root)
{
    return root < 0 || collective_has_root(kind) ||
           parse_error(parser, node_find(map, "root")->mark,
                       "found a root of %s, expected it only where one rank sends to all",
                       collective_key(kind));
}

bool field_int64(PARSE_PARAMS)
{
    return parse_number(parser, value, false, field->min, field->max, member);
}

bool field_bool(PARSE_PARAMS)
{
    bool is_true = value->kind == NODE_SCALAR && strcmp(value->text, "true") == 0;
    bool is_false = value->kind == NODE_SCALAR && strcmp(value->text, "false") == 0;
    if (!value->plain || (!is_true && !is_false))
        return parse_mismatch(parser, value, "true or false");
    *(bool *)member = is_true;
    return true;
}

/* A value with a unit. The sentence of units.h ("expected a unit: ns, ...") is completed. */
static bool parse_with_unit(struct parser *parser, const struct node *value, int64_t *out,
                            bool (*parse)(const char *, int64_t *, const char **),
                            const char *example)
{
    const char *what = NULL;
    if (value->kind == NODE_SCALAR && !is_null(value) && parse(value->text, out, &what))
        return true;
    if (!what)
        return parse_mismatch(parser, value, example);
    return parse_error(parser, value->mark, "found %s, %s", parse_describe(parser, value), what);
}

bool field_time(PARSE_PARAMS)
{
    int64_t *time_ns = member;
    if (!parse_with_unit(parser, value, time_ns, units_parse_time, "a duration such as 0.2ms"))
        return false;
    if (*time_ns <= PLAN_MOST_NS)
        return true;
    char most[UNITS_TEXT];
    units_show_time((double)PLAN_MOST_NS, most);
    return parse_error(parser, value->mark, "found \"%s\", expected at most %s", value->text, most);
}

bool field_bytes(PARSE_PARAMS)
{
    return parse_with_unit(parser, value, member, units_parse_bytes, "a size such as 64MiB");
}

static bool field_rate(PARSE_PARAMS)
{
    int64_t *rate = member;
    return parse_with_unit(parser, value, rate, units_parse_rate, "a rate such as 25GB/s") &&
           (*rate > 0 || parse_mismatch(parser, value, "a rate above 0"));
}

static bool field_flops(PARSE_PARAMS)
{
    const char *what;
    int64_t *flops = member;
    return (value->kind == NODE_SCALAR && units_parse_flops(value->text, flops, &what) &&
            *flops > 0) ||
           parse_mismatch(parser, value, "operations a second such as 150TFLOPS");
}

static bool field_given(PARSE_PARAMS)
{
    struct amount *amount = member;
    assert(field->kind->of && field->kind->of->parse);
    return amount->given = field->kind->of->parse(parser, value, &amount->value, field);
}

static bool field_share(PARSE_PARAMS)
{
    struct share *share = member;
    const char *expected = "a share from 0 to 1 with at most six decimals, such as 0.6";
    if (value->kind != NODE_SCALAR || !units_parse_share(value->text, &share->millionths))
        return parse_mismatch(parser, value, expected);
    if (!value->plain)
        return parse_error(parser, value->mark, "found the text %s, expected %s, without quotes",
                           parse_describe(parser, value), expected);
    share->given = true;
    return true;
}

static bool field_slots(PARSE_PARAMS)
{
    int share;
    if (value->kind == NODE_SCALAR && strchr(value->text, '.') &&
        units_parse_share(value->text, &share))
        return parse_error(parser, value->mark,
                           "found %s, expected a whole number of residency slots; a share of the "
                           "device is said with shares: {sm: %s}",
                           parse_describe(parser, value), value->text);
    return field_int(parser, value, member, field);
}

static bool wrong_word(struct parser *parser, const struct node *value, const char *const *words)
{
    struct nearest nearest = {.found = value->kind == NODE_SCALAR ? value->text : ""};
    const char *list = "";
    for (size_t i = 0; words[i]; i++) {
        nearest_try(&nearest, words[i]);
        list = fields_add_word(parser, list, words[i], !words[i + 1]);
    }
    return parse_error(parser, value->mark, "found %s, expected %s%s",
                       parse_describe(parser, value), list,
                       nearest_hint(&nearest, '"', &parser->scratch));
}

bool field_word(PARSE_PARAMS)
{
    for (int i = 0; value->kind == NODE_SCALAR && field->words[i]; i++) {
        if (strcmp(value->text, field->words[i]) == 0) {
            memcpy(member, &i, sizeof i); /* an enum is as wide as an int */
            return true;
        }
    }
    return wrong_word(parser, value, field->words);
}

static bool field_text(PARSE_PARAMS)
{
    if (value->kind != NODE_SCALAR || is_null(value))
        return parse_mismatch(parser, value, "a text");
    if (!printable_is(value->text, true))
        return parse_error(parser, value->mark,
                           "found a control character in a text, expected it without");
    *(const char **)member = parse_keep(parser, value->text);
    return *(const char **)member != NULL;
}

static bool field_dist(PARSE_PARAMS)
{
    const char *what;
    size_t where;
    if (value->kind != NODE_SCALAR || is_null(value))
        return parse_mismatch(parser, value, "a distribution such as lognormal(cv=0.3)");
    if (dist_parse(value->text, &parser->plan->arena, member, &what, &where))
        return true;
    struct mark mark = value->mark;
    mark.col += (uint32_t)where + !value->plain;
    return parse_error(parser, mark, "%s", what);
}

static bool field_name(PARSE_PARAMS)
{
    const char *kept =
        parse_name(parser, value, "a name") ? symbol_keep(parser, value->text) : NULL;
    if (kept)
        *(const char **)member = kept;
    return kept != NULL;
}

bool field_symbol(PARSE_PARAMS)
{
    int index = symbol_resolve(parser, field->table, value);
    if (index < 0)
        return false;
    *(int *)member = index;
    return true;
}

static bool field_symbols(PARSE_PARAMS)
{
    struct index_list list = {0};
    if (!parse_want_list(parser, value, "a list of names"))
        return false;
    list.items = value->length ? ARENA_ARRAY(&parser->plan->arena, value->length, int) : NULL;
    if (value->length && !list.items)
        return parse_no_memory(parser);
    bool ok = true;
    READ_LIST (parser, value, item) {
        int index = symbol_resolve(parser, field->table, item);
        if (index >= 0)
            list.items[list.count++] = index;
        ok &= index >= 0;
    }
    *(struct index_list *)member = list;
    return ok;
}

bool field_map(PARSE_PARAMS)
{
    assert(field->keys);
    return keys_parse(parser, value, field->keys, member);
}

/* ---- printed --------------------------------------------------------------------------------- */

void print_int(PRINT_PARAMS)
{
    put_number(printer, *(const int *)member);
}

static void print_int64(PRINT_PARAMS)
{
    put_number(printer, *(const int64_t *)member);
}

void print_bool(PRINT_PARAMS)
{
    put_word(printer, *(const bool *)member ? "true" : "false");
}

static void print_time(PRINT_PARAMS)
{
    put_time(printer, *(const int64_t *)member);
}

static void fields_print_bytes(PRINT_PARAMS)
{
    put_bytes(printer, *(const int64_t *)member);
}

static void print_rate(PRINT_PARAMS)
{
    char text[UNITS_TEXT];
    units_print_rate(*(const int64_t *)member, text);
    put_word(printer, text);
}

static void print_flops(PRINT_PARAMS)
{
    char text[UNITS_TEXT];
    units_print_flops(*(const int64_t *)member, text);
    put_word(printer, text);
}

static void print_given(PRINT_PARAMS)
{
    assert(((const struct amount *)member)->given);
    field->kind->of->print(printer, &((const struct amount *)member)->value, field);
}

static void fields_print_share(PRINT_PARAMS)
{
    char text[UNITS_TEXT];
    units_print_share(((const struct share *)member)->millionths, text);
    put_word(printer, text);
}

void print_word(PRINT_PARAMS)
{
    assert(field->words && *(const int *)member >= 0);
    put_word(printer, field->words[*(const int *)member]);
}

static void print_text(PRINT_PARAMS)
{
    put_text(printer, *(const char *const *)member);
}

static void print_dist(PRINT_PARAMS)
{
    put_word(printer, dist_print(member, &printer->scratch));
}

void print_symbol(PRINT_PARAMS)
{
    put_text(printer, symbol_name(printer->plan, field->table, *(const int *)member));
}

/* A name of another rank's buffer has the rank in front: r1.x. */
void print_symbols(PRINT_PARAMS)
{
    const struct index_list *list = member;
    open_list(printer, FLOW);
    for (size_t i = 0; i < list->count; i++) {
        const char *name = symbol_name(printer->plan, field->table, list->items[i]);
        if (list->ranks && list->ranks[i] > 0)
            put_ranked_name(printer, list->ranks[i] - 1, name);
        else
            put_text(printer, name);
    }
    close_list(printer);
}

void print_map(PRINT_PARAMS)
{
    open_map(printer, FLOW);
    fields_print(printer, field->keys->fields, field->keys->count, member, NULL);
    close_map(printer);
}

/* ---- the default, or the same as another ------------------------------------------------------ */

bool same_int(SAME_PARAMS)
{
    return *(const int *)member == (other ? *(const int *)other : (int)field->otherwise);
}

static bool same_more(SAME_PARAMS)
{
    return *(const int *)member <= 1;
}

/* Of an index or a rank: negative ones are not given. */
static bool same_index(SAME_PARAMS)
{
    const int index = *(const int *)member;
    return index < 0 || (other && index == *(const int *)other);
}

static bool same_int64(SAME_PARAMS)
{
    return *(const int64_t *)member == (other ? *(const int64_t *)other : field->otherwise);
}

static bool same_bool(SAME_PARAMS)
{
    return *(const bool *)member == (other ? *(const bool *)other : (field->otherwise != 0));
}

static bool fields_same_given(SAME_PARAMS)
{
    const struct amount *a = member, *b = other;
    return b ? a->given == b->given && (!a->given || a->value == b->value) : !a->given;
}

static bool same_share(SAME_PARAMS)
{
    const struct share *a = member, *b = other;
    return b ? a->given == b->given && (!a->given || a->millionths == b->millionths) : !a->given;
}

static bool fields_same_text(SAME_PARAMS)
{
    const char *a = *(const char *const *)member, *b = other ? *(const char *const *)other : NULL;
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_dist(SAME_PARAMS)
{
    const struct dist *dist = member;
    if (!other)
        return dist->kind == DIST_CONSTANT && dist->spike_probability <= 0;
    const char *a = dist_print(dist, &printer->scratch), *b = dist_print(other, &printer->scratch);
    return a && b && strcmp(a, b) == 0;
}

bool same_list(SAME_PARAMS)
{
    const struct index_list *a = member, *b = other;
    return a->count == (b ? b->count : 0) &&
           (a->count == 0 || memcmp(a->items, b->items, a->count * sizeof *a->items) == 0);
}

bool same_map(SAME_PARAMS)
{
    return fields_same(printer, field->keys->fields, field->keys->count, member, other);
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static const struct field shares_fields[] = {
    FIELD("sm", struct shares, sm, share, "The share of the device's multiprocessors."),
    FIELD("link", struct shares, link, share, "The share of the link between devices."),
    FIELD("core", struct shares, core, share, "The share of a core of the host."),
};
static const struct keys share_keys =
    KEYS(shares_fields, "\"shares\"", "shares of the device, such as {sm: 0.6, link: 0.5}");

static bool field_shares(PARSE_PARAMS)
{
    struct shares shares = {{0}, {0}, {0}};
    if (!keys_parse(parser, value, &share_keys, &shares))
        return false;
    *(struct shares *)member = shares;
    return true;
}

static void fields_print_shares(PRINT_PARAMS)
{
    print_map(printer, member, &(struct field){.keys = &share_keys});
}

static bool same_shares(SAME_PARAMS)
{
    return fields_same(printer, shares_fields, FIELD_COUNT(shares_fields), member, other);
}

static void schema_shares(struct json *json, const struct field *field)
{
    schema_keys(json, shares_fields, FIELD_COUNT(shares_fields));
}

static void schema_given(struct json *json, const struct field *field)
{
    struct field number = *field;
    number.kind = field->kind->of;
    schema_value(json, &number);
}

void schema_symbols(struct json *json, const struct field *field)
{
    schema_begin_list(json);
    schema_refer(json, "name");
    schema_end(json);
}

void schema_names(struct json *json, const struct field *field)
{
    assert(field->each);
    schema_begin_named(json);
    schema_value(json, field->each);
    schema_end(json);
}

void schema_list(struct json *json, const struct field *field)
{
    assert(field->each);
    schema_begin_list(json);
    schema_value(json, field->each);
    schema_end(json);
}

static void print_rank(PRINT_PARAMS)
{
    put_rank(printer, *(const int *)member);
}

/* Counted from the rank of its thread, too. */
void schema_rank(struct json *json, const struct field *field)
{
    schema_either(json);
    schema_int(json, field);
    schema_or(json);
    json_put_string(json, "type", "string");
    json_put_string(json, "pattern", "^rank([+-][0-9]{1,4})?$");
    schema_end_either(json);
}

const struct field_kind kind_int = {field_int, print_int, same_int, .schema = schema_int};
const struct field_kind kind_more = {field_int, print_int, same_more, .schema = schema_int};
const struct field_kind kind_int64 = {field_int64, print_int64, same_int64, .schema = schema_int};
const struct field_kind kind_rank = {field_rank, print_rank, same_index, .schema = schema_rank};
const struct field_kind kind_slots = {field_slots, print_int, same_int, .schema = schema_int};
const struct field_kind kind_boolean = {field_bool, print_bool, same_bool, .schema = schema_bool};
const struct field_kind kind_time = {field_time, print_time, same_int64, .refer = "time"};
const struct field_kind kind_bytes = {field_bytes, fields_print_bytes, same_int64, .refer = "size"};
static const struct field_kind kind_rate = {field_rate, print_rate, same_int64, .refer = "rate"};
const struct field_kind kind_flops = {field_flops, print_flops, same_int64, .refer = "flops"};
#define GIVEN(number)                                                                              \
    {                                                                                              \
        field_given, print_given, fields_same_given, schema_given, .of = &(number)                 \
    }
const struct field_kind kind_given_int = GIVEN(kind_int64);
const struct field_kind kind_given_time = GIVEN(kind_time);
const struct field_kind kind_given_bytes = GIVEN(kind_bytes);
const struct field_kind kind_given_rate = GIVEN(kind_rate);
const struct field_kind kind_given_flops = GIVEN(kind_flops);
const struct field_kind kind_share = {field_share, fields_print_share, same_share,
                                      .refer = "share"};
const struct field_kind kind_shares = {field_shares, fields_print_shares, same_shares,
                                       .schema = schema_shares};
const struct field_kind kind_word = {field_word, print_word, same_int, .schema = schema_word};
const struct field_kind kind_text = {field_text, print_text, fields_same_text, .refer = "name"};
const struct field_kind kind_name = {field_name, print_text, fields_same_text, .refer = "name"};
const struct field_kind kind_dist = {field_dist, print_dist, same_dist, .refer = "distribution"};
const struct field_kind kind_symbol = {field_symbol, print_symbol, same_index, .refer = "name"};
const struct field_kind kind_count = {field_int64, NULL, NULL, .schema = schema_int};
const struct field_kind kind_symbols = {field_symbols, print_symbols, same_list,
                                        .schema = schema_symbols};
const struct field_kind kind_map = {field_map, print_map, same_map, .schema = schema_map};
const struct field_kind kind_names = {.schema = schema_names};
const struct field_kind kind_list = {.schema = schema_list};
