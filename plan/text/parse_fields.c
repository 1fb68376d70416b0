/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse_fields.c - tables of keys, scalars and names.
 *
 * A mapping of a plan is described by an array of `struct field`; fields_parse walks the mapping
 * once, hands each value to its handler and reports unknown and missing keys. Names go through
 * symbol tables, so that a plan of a million operations is read in linear time.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "parse_internal.h"
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

/* A node as a message quotes it. */
static const char *describe(struct parser *parser, const struct node *node)
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
    return parse_error(parser, node->mark, "found %s, expected %s", describe(parser, node),
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
static const char *add_word(struct parser *parser, const char *list, const char *word, bool last)
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
        list = add_word(parser, list, fields[i].key, i + 1 == count);
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

bool fields_parse(struct parser *parser, const struct node *map, const struct field *fields,
                  size_t count, void *base, const char *what)
{
    bool ok = true;
    size_t last = count - 1;
    READ_MAP (parser, map, key, value) {
        const struct field *field = find_field(fields, count, key->text, &last);
        ok &= field ? field->parse(parser, value, (char *)base + field->offset, field)
                    : unknown_key(parser, key, fields, count, what);
    }
    for (size_t i = 0; i < count; i++)
        if (fields[i].required && !node_find(map, fields[i].key))
            ok = missing_key(parser, map, &fields[i], what);
    return ok;
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
static bool scan_number(const char *text, int64_t *out)
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
    bool number = node->kind == NODE_SCALAR && scan_number(node->text, &value);
    if (number && !node->plain && !is_key)
        return parse_error(parser, node->mark, "found the text %s, expected %s without quotes",
                           describe(parser, node), expected);
    if (!number || value < min || value > max || (value == INT64_MAX && max == INT64_MAX))
        return parse_mismatch(parser, node, expected);
    *out = value;
    return true;
}

bool field_int(struct parser *parser, const struct node *value, void *member,
               const struct field *field)
{
    int64_t number;
    if (!parse_number(parser, value, false, field->min, field->max, &number))
        return false;
    *(int *)member = (int)number;
    return true;
}

bool field_rank(struct parser *parser, const struct node *value, void *member,
                const struct field *field)
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

bool parse_check_root(struct parser *parser, const struct node *map, enum collective_kind kind,
                      int root)
{
    return root < 0 || collective_has_root(kind) ||
           parse_error(parser, node_find(map, "root")->mark,
                       "found a root of %s, expected it only where one rank sends to all",
                       collective_key(kind));
}

bool field_int64(struct parser *parser, const struct node *value, void *member,
                 const struct field *field)
{
    return parse_number(parser, value, false, field->min, field->max, member);
}

bool field_bool(struct parser *parser, const struct node *value, void *member,
                const struct field *field)
{
    (void)field;
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
    return parse_error(parser, value->mark, "found %s, %s", describe(parser, value), what);
}

bool field_time(struct parser *parser, const struct node *value, void *member,
                const struct field *field)
{
    (void)field;
    return parse_with_unit(parser, value, member, units_parse_time, "a duration such as 0.2ms");
}

bool field_bytes(struct parser *parser, const struct node *value, void *member,
                 const struct field *field)
{
    (void)field;
    return parse_with_unit(parser, value, member, units_parse_bytes, "a size such as 64MiB");
}

bool field_given_time(struct parser *parser, const struct node *value, void *member,
                      const struct field *field)
{
    struct amount *amount = member;
    return amount->given = field_time(parser, value, &amount->value, field);
}

bool field_given_bytes(struct parser *parser, const struct node *value, void *member,
                       const struct field *field)
{
    struct amount *amount = member;
    return amount->given = field_bytes(parser, value, &amount->value, field);
}

bool field_given_rate(struct parser *parser, const struct node *value, void *member,
                      const struct field *field)
{
    (void)field;
    struct amount *amount = member;
    if (!parse_with_unit(parser, value, &amount->value, units_parse_rate, "a rate such as 25GB/s"))
        return false;
    if (amount->value == 0)
        return parse_mismatch(parser, value, "a rate above 0");
    return amount->given = true;
}

bool field_share(struct parser *parser, const struct node *value, void *member,
                 const struct field *field)
{
    (void)field;
    struct share *share = member;
    const char *expected = "a share from 0 to 1 with at most six decimals, such as 0.6";
    if (value->kind != NODE_SCALAR || !units_parse_share(value->text, &share->millionths))
        return parse_mismatch(parser, value, expected);
    if (!value->plain)
        return parse_error(parser, value->mark, "found the text %s, expected %s, without quotes",
                           describe(parser, value), expected);
    share->given = true;
    return true;
}

bool field_slots(struct parser *parser, const struct node *value, void *member,
                 const struct field *field)
{
    int share;
    if (value->kind == NODE_SCALAR && strchr(value->text, '.') &&
        units_parse_share(value->text, &share))
        return parse_error(parser, value->mark,
                           "found %s, expected a whole number of residency slots; a share of the "
                           "device is said with shares: {sm: %s}",
                           describe(parser, value), value->text);
    return field_int(parser, value, member, field);
}

bool field_shares(struct parser *parser, const struct node *value, void *member,
                  const struct field *field)
{
    (void)field;
    static const struct field shares_fields[] = {
        FIELD("sm", struct shares, sm, field_share),
        FIELD("link", struct shares, link, field_share),
        FIELD("core", struct shares, core, field_share),
    };
    struct shares shares = {{0}, {0}, {0}};
    if (!parse_want_map(parser, value, "shares of the device, such as {sm: 0.6, link: 0.5}") ||
        !fields_parse(parser, value, shares_fields, FIELD_COUNT(shares_fields), &shares,
                      "\"shares\""))
        return false;
    *(struct shares *)member = shares;
    return true;
}

static bool wrong_word(struct parser *parser, const struct node *value, const char *const *words)
{
    struct nearest nearest = {.found = value->kind == NODE_SCALAR ? value->text : ""};
    const char *list = "";
    for (size_t i = 0; words[i]; i++) {
        nearest_try(&nearest, words[i]);
        list = add_word(parser, list, words[i], !words[i + 1]);
    }
    return parse_error(parser, value->mark, "found %s, expected %s%s", describe(parser, value),
                       list, nearest_hint(&nearest, '"', &parser->scratch));
}

bool field_word(struct parser *parser, const struct node *value, void *member,
                const struct field *field)
{
    for (int i = 0; value->kind == NODE_SCALAR && field->words[i]; i++) {
        if (strcmp(value->text, field->words[i]) == 0) {
            memcpy(member, &i, sizeof i); /* an enum is as wide as an int */
            return true;
        }
    }
    return wrong_word(parser, value, field->words);
}

bool field_text(struct parser *parser, const struct node *value, void *member,
                const struct field *field)
{
    (void)field;
    if (value->kind != NODE_SCALAR || is_null(value))
        return parse_mismatch(parser, value, "a text");
    if (!printable_is(value->text, true))
        return parse_error(parser, value->mark,
                           "found a control character in a text, expected it without");
    *(const char **)member = parse_keep(parser, value->text);
    return *(const char **)member != NULL;
}

bool field_dist(struct parser *parser, const struct node *value, void *member,
                const struct field *field)
{
    (void)field;
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

/* ---- names ----------------------------------------------------------------------------------- */

static size_t hash_name(const char *name)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
    return (size_t)(hash ^ hash >> 32);
}

/* The slot that holds `name`, or the free one where it belongs. */
static struct symbol *find_slot(const struct symbols *symbols, const char *name)
{
    assert(symbols->cap && symbols->count < symbols->cap);
    size_t at = hash_name(name) & (symbols->cap - 1);
    while (symbols->slots[at].name && strcmp(symbols->slots[at].name, name) != 0)
        at = (at + 1) & (symbols->cap - 1);
    return &symbols->slots[at];
}

int symbol_find(const struct parser *parser, enum symbol_table table, const char *name)
{
    const struct symbols *symbols = &parser->symbols[table];
    const struct symbol *slot = symbols->cap ? find_slot(symbols, name) : NULL;
    return slot && slot->name ? slot->index : -1;
}

/* Twice the slots once half are in use. */
static bool make_room(struct parser *parser, struct symbols *symbols)
{
    if (2 * (symbols->count + 1) <= symbols->cap)
        return true;
    struct symbols grown = {.count = symbols->count, .cap = symbols->cap ? 2 * symbols->cap : 16};
    grown.slots = ARENA_ARRAY(&parser->scratch, grown.cap, struct symbol);
    if (!grown.slots)
        return parse_no_memory(parser);
    for (size_t i = 0; i < symbols->cap; i++)
        if (symbols->slots[i].name)
            *find_slot(&grown, symbols->slots[i].name) = symbols->slots[i];
    *symbols = grown;
    return true;
}

bool symbol_add(struct parser *parser, enum symbol_table table, const char *name, int index)
{
    struct symbols *symbols = &parser->symbols[table];
    if (!make_room(parser, symbols))
        return false;
    *find_slot(symbols, name) = (struct symbol){name, index};
    symbols->count++;
    return true;
}

/* Many operations have the same name: it is kept once. */
bool field_name(struct parser *parser, const struct node *value, void *member,
                const struct field *field)
{
    (void)field;
    if (!parse_name(parser, value, "a name"))
        return false;
    const struct symbols *texts = &parser->symbols[TABLE_TEXTS];
    const struct symbol *slot = texts->cap ? find_slot(texts, value->text) : NULL;
    const char *kept = slot && slot->name ? slot->name : parse_keep(parser, value->text);
    if (!kept || (!(slot && slot->name) && !symbol_add(parser, TABLE_TEXTS, kept, 0)))
        return false;
    *(const char **)member = kept;
    return true;
}

struct comm *parse_add_comm(struct parser *parser, const char *name, struct mark mark)
{
    struct plan *plan = parser->plan;
    const char *copy = parse_keep(parser, name);
    if (!copy)
        return NULL;
    if (!arena_grow(&plan->arena, (void **)&plan->comms, plan->comm_count, &parser->comm_cap,
                    sizeof *plan->comms)) {
        parse_no_memory(parser);
        return NULL;
    }
    if (!symbol_add(parser, TABLE_COMMS, copy, (int)plan->comm_count))
        return NULL;
    struct comm *comm = &plan->comms[plan->comm_count++];
    *comm = (struct comm){.name = copy, .mark = mark};
    return comm;
}

struct buffer *parse_add_buffer(struct parser *parser, const char *name, struct mark mark)
{
    struct plan *plan = parser->plan;
    const char *copy = parse_keep(parser, name);
    if (!copy)
        return NULL;
    if (!arena_grow(&plan->arena, (void **)&plan->buffers, plan->buffer_count, &parser->buffer_cap,
                    sizeof *plan->buffers)) {
        parse_no_memory(parser);
        return NULL;
    }
    if (!symbol_add(parser, TABLE_BUFFERS, copy, (int)plan->buffer_count))
        return NULL;
    struct buffer *buffer = &plan->buffers[plan->buffer_count++];
    *buffer = (struct buffer){.name = copy, .mark = mark};
    buffer->scope = plan->form == FORM_PIPELINE ? SCOPE_ITERATION : SCOPE_SHARED;
    return buffer;
}

/* The noun for a table's names in messages, and the plan's table when it holds nothing but
 * names. */
static const struct table_info {
    const char *what;
    bool only_names;
    size_t offset; /* of the struct names in the plan */
} tables[] = {
    [TABLE_STREAMS] = {"a stream", true, offsetof(struct plan, streams)},
    [TABLE_GROUPS] = {"a thread group", true, offsetof(struct plan, groups)},
    [TABLE_EVENTS] = {"an event", true, offsetof(struct plan, events)},
    [TABLE_FLAGS] = {"a flag", true, offsetof(struct plan, flags)},
    [TABLE_LOCKS] = {"a lock", true, offsetof(struct plan, locks)},
    [TABLE_BARRIERS] = {"a barrier", true, offsetof(struct plan, barriers)},
    [TABLE_BUFFERS] = {"a buffer", false, 0},
    [TABLE_COMMS] = {"a communicator of this plan", false, 0},
    [TABLE_QUEUES] = {"a queue named under \"queues\"", false, 0},
    [TABLE_TASKS] = {"a task of \"schedule\"", false, 0},
    [TABLE_TEXTS] = {"a text", false, 0},
};

static int add_name(struct parser *parser, enum symbol_table table, const struct node *node)
{
    struct names *names = (struct names *)((char *)parser->plan + tables[table].offset);
    const char *copy = parse_keep(parser, node->text);
    if (!copy)
        return -1;
    if (!arena_grow(&parser->plan->arena, (void **)&names->items, names->count, &names->cap,
                    sizeof copy) ||
        !arena_grow(&parser->plan->arena, (void **)&names->marks, names->mark_count,
                    &names->mark_cap, sizeof *names->marks)) {
        parse_no_memory(parser);
        return -1;
    }
    if (!symbol_add(parser, table, copy, (int)names->count))
        return -1;
    names->items[names->count] = copy;
    names->marks[names->mark_count++] = node->mark;
    return (int)names->count++;
}

static int dangling(struct parser *parser, enum symbol_table table, const struct node *node)
{
    struct nearest nearest = {.found = node->text};
    const struct symbols *symbols = &parser->symbols[table];
    bool heard = parser->diag->errors < 100; /* later messages are only counted */
    for (size_t i = 0; heard && i < symbols->cap; i++)
        if (symbols->slots[i].name)
            nearest_try(&nearest, symbols->slots[i].name);
    parse_error(parser, node->mark, "found %s, expected %s%s", describe(parser, node),
                tables[table].what, nearest_hint(&nearest, '"', &parser->scratch));
    return -1;
}

int symbol_require(struct parser *parser, enum symbol_table table, const struct node *node)
{
    if (!parse_name(parser, node, tables[table].what))
        return -1;
    int found = symbol_find(parser, table, node->text);
    return found >= 0 ? found : dangling(parser, table, node);
}

int symbol_resolve(struct parser *parser, enum symbol_table table, const struct node *node)
{
    if (!parse_name(parser, node, tables[table].what))
        return -1;
    int found = symbol_find(parser, table, node->text);
    if (found >= 0)
        return found;
    if (tables[table].only_names)
        return add_name(parser, table, node);
    if (table == TABLE_BUFFERS)
        return parse_add_buffer(parser, node->text, node->mark)
                   ? (int)parser->plan->buffer_count - 1
                   : -1;
    if (table == TABLE_COMMS && parser->plan->form != FORM_THREADS)
        return parse_add_comm(parser, node->text, node->mark) ? (int)parser->plan->comm_count - 1
                                                              : -1;
    return dangling(parser, table, node);
}

int symbol_implicit(struct parser *parser, enum symbol_table table, const char *name)
{
    return symbol_resolve(
        parser, table, &(struct node){.kind = NODE_SCALAR, .text = name, .length = strlen(name)});
}

bool field_symbol(struct parser *parser, const struct node *value, void *member,
                  const struct field *field)
{
    int index = symbol_resolve(parser, field->table, value);
    if (index < 0)
        return false;
    *(int *)member = index;
    return true;
}

bool field_symbols(struct parser *parser, const struct node *value, void *member,
                   const struct field *field)
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
