/* SPDX-License-Identifier: Apache-2.0 */
/* spans.c - see spans.h: libyaml's events, whose marks count characters, as a tree of bytes. */
#include "spans.h"
#include "base/array.h"

#include <string.h>

#include <yaml.h>

enum { MAX_DEPTH = 64 };

struct reader {
    yaml_parser_t yaml;
    const char *text;
    size_t length;
    size_t *bytes; /* where each character begins; NULL: every character is a byte */
    size_t characters;
    struct arena *arena;
    bool failed;
};

/* ---- characters and bytes -------------------------------------------------------------------- */

static bool is_continuation(char byte)
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}

static bool index_characters(struct reader *reader)
{
    size_t others = 0;
    for (size_t i = 0; i < reader->length; i++)
        others += is_continuation(reader->text[i]);
    if (others == 0)
        return true;
    reader->bytes = ARENA_ARRAY(reader->arena, reader->length - others + 1, size_t);
    for (size_t i = 0; reader->bytes && i < reader->length; i++)
        if (!is_continuation(reader->text[i]))
            reader->bytes[reader->characters++] = i;
    return reader->bytes != NULL;
}

static size_t spans_byte_of(const struct reader *reader, const yaml_mark_t *mark)
{
    if (!reader->bytes)
        return mark->index < reader->length ? mark->index : reader->length;
    return mark->index < reader->characters ? reader->bytes[mark->index] : reader->length;
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool next(struct reader *reader, yaml_event_t *event)
{
    if (!reader->failed && yaml_parser_parse(&reader->yaml, event))
        return true;
    reader->failed = true;
    reader->arena->failed |= reader->yaml.error == YAML_MEMORY_ERROR;
    return false;
}

static bool spans_expect(struct reader *reader, yaml_event_type_t type)
{
    yaml_event_t event;
    if (!next(reader, &event))
        return false;
    bool found = event.type == type;
    yaml_event_delete(&event);
    return found;
}

static struct span_node *read_node(struct reader *reader, yaml_event_t *event, int depth);

static void read_items(struct reader *reader, struct span_node *node, yaml_event_type_t end,
                       int depth)
{
    size_t cap = 0;
    yaml_event_t event;
    while (next(reader, &event)) {
        if (event.type == end) {
            if (node->flow)
                node->end = spans_byte_of(reader, &event.end_mark);
            else if (node->count > 0) {
                node->begin = node->items[0]->begin;
                node->end = node->items[node->count - 1]->end;
            }
            yaml_event_delete(&event);
            return;
        }
        struct span_node *item = read_node(reader, &event, depth + 1);
        if (!item || !ARENA_GROW(reader->arena, node->items, node->count, cap)) {
            reader->failed = true;
            return;
        }
        node->items[node->count++] = item;
    }
}

/* Takes the event. */
static struct span_node *read_node(struct reader *reader, yaml_event_t *event, int depth)
{
    struct span_node *node = ARENA_NEW(reader->arena, struct span_node);
    enum { NOTHING, ITEMS, PAIRS } inside = NOTHING;
    bool known = node && depth < MAX_DEPTH;
    if (known) {
        node->begin = spans_byte_of(reader, &event->start_mark);
        node->end = spans_byte_of(reader, &event->end_mark);
    }
    if (known && event->type == YAML_SCALAR_EVENT) {
        node->kind = SPAN_NODE_SCALAR;
        node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        node->value = arena_strndup(reader->arena, (const char *)event->data.scalar.value,
                                    event->data.scalar.length);
        reader->failed = !node->value;
    } else if (known && event->type == YAML_SEQUENCE_START_EVENT) {
        node->kind = SPAN_NODE_LIST;
        node->flow = event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
        inside = ITEMS;
    } else if (known && event->type == YAML_MAPPING_START_EVENT) {
        node->kind = SPAN_NODE_MAP;
        node->flow = event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
        inside = PAIRS;
    } else {
        reader->failed = true;
    }
    yaml_event_delete(event);
    if (inside != NOTHING)
        read_items(reader, node, inside == ITEMS ? YAML_SEQUENCE_END_EVENT : YAML_MAPPING_END_EVENT,
                   depth);
    return reader->failed ? NULL : node;
}

const struct span_node *spans_parse(const char *text, struct arena *arena)
{
    struct reader reader = {.text = text, .length = strlen(text), .arena = arena};
    const struct span_node *root = NULL;
    yaml_event_t event;
    if (!index_characters(&reader))
        return NULL;
    if (!yaml_parser_initialize(&reader.yaml)) {
        arena->failed = true;
        return NULL;
    }
    yaml_parser_set_input_string(&reader.yaml, (const unsigned char *)text, reader.length);
    if (spans_expect(&reader, YAML_STREAM_START_EVENT) &&
        spans_expect(&reader, YAML_DOCUMENT_START_EVENT) && next(&reader, &event))
        root = read_node(&reader, &event, 0);
    yaml_parser_delete(&reader.yaml);
    return root;
}

/* ---- comparison ------------------------------------------------------------------------------ */

const struct span_node *spans_find(const struct span_node *map, const char *key)
{
    for (size_t i = 0; map->kind == SPAN_NODE_MAP && i + 1 < map->count; i += 2)
        if (map->items[i]->kind == SPAN_NODE_SCALAR && strcmp(map->items[i]->value, key) == 0)
            return map->items[i + 1];
    return NULL;
}

static bool same_maps(const struct span_node *a, const struct span_node *b)
{
    for (size_t i = 0; i + 1 < a->count; i += 2) {
        const struct span_node *other =
            a->items[i]->kind == SPAN_NODE_SCALAR ? spans_find(b, a->items[i]->value) : NULL;
        if (!other || !spans_equal(a->items[i + 1], other))
            return false;
    }
    return true;
}

bool spans_equal(const struct span_node *a, const struct span_node *b)
{
    if (a->kind != b->kind || a->count != b->count)
        return false;
    if (a->kind == SPAN_NODE_SCALAR)
        return strcmp(a->value, b->value) == 0;
    if (a->kind == SPAN_NODE_MAP)
        return same_maps(a, b);
    for (size_t i = 0; i < a->count; i++)
        if (!spans_equal(a->items[i], b->items[i]))
            return false;
    return true;
}
