/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse_yaml.c - YAML text to a tree of nodes: libyaml's events, composed.
 *
 * Composing here rather than in libyaml keeps the quoting of scalars and allows the parser to refuse early what
 * a plan never needs and an attacker might like: tags, several documents, deep nesting, aliases of aliases that
 * would fill the memory. Duplicate keys are found here too, once for all mappings.
 *
 * An alias is a copy of what its anchor names, with its positions: a mistake in it is one of the text that was written.
 * A merge key, `<<: *base` or `<<: [*base, *more]`, is replaced by the keys of these mappings that the mapping around
 * it does not have.
 *
 * Runs of lines of operations (flow_lines.h) are left out of what libyaml reads. Where it does not find what stands for
 * them, or finds any mistake, everything is read again by libyaml alone, so that messages are the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "flow_lines.h"
#include "text_internal.h"
#include "base/array.h"
#include "base/sort.h"

enum { MAX_NESTING = 64, FEW_KEYS = 16, MANY_KEYS = 1024 };
enum { MOST_COPIED = 4 * 1024 * 1024 }; /* nodes, for all aliases */
#define MERGE_KEY "<<"

/* What a name stands for; of two anchors of one name the later. */
struct anchor {
    const char *name;
    const struct node *node; /* NULL: not read to its end */
};

/* A list or map under construction; `tail` is where the next child is linked. */
struct level {
    struct node *node;
    struct node **tail;
    const char *key; /* MAP: the last one */
    bool want_value; /* MAP: the last child was a key */
    size_t anchor;   /* 1 + that of this node; 0: none */
    bool merges;     /* MAP: it has a merge key */
};

struct tree_builder {
    struct parser *parser;
    yaml_parser_t yaml;
    struct level levels[MAX_NESTING];
    int depth;
    int documents;
    struct node *root;
    struct anchor *anchors;
    size_t anchor_count, anchor_cap;
    size_t copied; /* nodes, for aliases */
    const struct flow_runs *runs;
    size_t next_run;
    uint32_t left_out; /* lines of the runs so far */
};

static struct mark to_mark(const struct tree_builder *builder, yaml_mark_t mark)
{
    return (struct mark){(uint32_t)mark.line + 1 + builder->left_out, (uint32_t)mark.column + 1};
}

/* Line and column, in characters, of a byte offset. */
static struct mark mark_of_offset(const char *source, size_t offset)
{
    struct mark mark = {1, 1};
    for (size_t i = 0; i < offset && source[i]; i++) {
        if (source[i] == '\n')
            mark = (struct mark){mark.line + 1, 1};
        else if (((unsigned char)source[i] & 0xC0) != 0x80)
            mark.col++;
    }
    return mark;
}

/* True if the scanner stopped at a tab in front of a key. */
static bool is_tab(const struct tree_builder *builder)
{
    const yaml_parser_t *yaml = &builder->yaml;
    return yaml->error == YAML_SCANNER_ERROR && yaml->buffer.pointer < yaml->buffer.last &&
           *yaml->buffer.pointer == '\t';
}

/* True if a brace or bracket still stands open on a later line, at something that is no item. The scanner goes on to
   where a comma or its end is due. */
static bool is_left_open(const yaml_parser_t *yaml)
{
    return yaml->error == YAML_PARSER_ERROR && yaml->context &&
           strncmp(yaml->context, "while parsing a flow", 20) == 0 &&
           yaml->problem_mark.line > yaml->context_mark.line;
}

static bool report_left_open(struct tree_builder *builder)
{
    const yaml_parser_t *yaml = &builder->yaml;
    bool map = strstr(yaml->context, "mapping") != NULL;
    return parse_error(builder->parser, to_mark(builder, yaml->context_mark),
                       "found \"%c\", expected \",\" or \"%c\" in front of line %u",
                       map ? '{' : '[', map ? '}' : ']',
                       (unsigned)to_mark(builder, yaml->problem_mark).line);
}

static bool report_yaml_error(struct tree_builder *builder)
{
    const yaml_parser_t *yaml = &builder->yaml;
    if (yaml->error == YAML_MEMORY_ERROR)
        return parse_no_memory(builder->parser);
    const char *problem = yaml->problem ? yaml->problem : "unknown problem";
    if (yaml->error == YAML_READER_ERROR)
        return parse_error(builder->parser,
                           mark_of_offset(builder->parser->source, yaml->problem_offset),
                           "found a bad byte (%s), expected YAML in UTF-8", problem);
    if (is_tab(builder))
        return parse_error(
            builder->parser, to_mark(builder, yaml->problem_mark),
            "found a tab, expected spaces in front of a key: YAML is indented with spaces only");
    if (is_left_open(yaml))
        return report_left_open(builder);
    return parse_error(builder->parser, to_mark(builder, yaml->problem_mark),
                       "found bad YAML: %s%s%s", yaml->context ? yaml->context : "",
                       yaml->context ? ", " : "", problem);
}

/* The keys of a map, in the order of the file; `earlier` is the first key with the same text, or NULL. */
struct key {
    struct node *node;
    const struct node *earlier;
    size_t place;
};

static int parse_yaml_compare_keys(const void *a, const void *b)
{
    const struct key *first = a, *second = b;
    return compare_then(strcmp(first->node->text, second->node->text),
                        compare_size(first->place, second->place));
}

static int parse_yaml_compare_places(const void *a, const void *b)
{
    const struct key *first = a, *second = b;
    return compare_size(first->place, second->place);
}

static void report_duplicate(struct parser *parser, const struct node *key,
                             const struct node *earlier)
{
    parse_error(parser, key->mark,
                "found key \"%s\" a second time (first on line %u), "
                "expected every key once",
                key->text, earlier->mark.line);
}

static size_t find_few(struct key *keys, size_t count)
{
    size_t found = 0;
    for (size_t i = 1; i < count; i++)
        for (size_t k = 0; k < i && !keys[i].earlier; k++)
            if (strcmp(keys[k].node->text, keys[i].node->text) == 0) {
                keys[i].earlier = keys[k].node;
                found++;
            }
    return found;
}

static size_t find_many(struct key *keys, size_t count)
{
    size_t found = 0;
    SORT(keys, count, parse_yaml_compare_keys);
    for (size_t i = 1, first = 0; i < count; i++) {
        if (strcmp(keys[first].node->text, keys[i].node->text) != 0) {
            first = i;
            continue;
        }
        keys[i].earlier = keys[first].node;
        found++;
    }
    if (found)
        SORT(keys, count, parse_yaml_compare_places);
    return found;
}

/* A key that is there already is reported and leaves the map with its value: nothing reads it a second time. */
static void drop_duplicates(struct parser *parser, struct node *map, const struct key *keys,
                            size_t count)
{
    struct node **tail = &map->first;
    for (size_t i = 0; i < count && !parse_gave_up(parser); i++) {
        struct node *key = keys[i].node;
        if (keys[i].earlier) {
            report_duplicate(parser, key, keys[i].earlier);
            map->length--;
            continue;
        }
        *tail = key;
        tail = &key->next->next;
    }
    *tail = NULL;
}

static struct key *list_keys(struct parser *parser, const struct node *map)
{
    struct key *keys = malloc((map->length + 1) * sizeof *keys);
    size_t count = 0;
    if (!keys)
        parse_no_memory(parser);
    for (struct node *key = map->first; keys && key; key = key->next->next, count++)
        keys[count] = (struct key){key, NULL, count};
    return keys;
}

static void check_duplicates(struct parser *parser, struct node *map)
{
    struct key *keys = map->length > 1 ? list_keys(parser, map) : NULL;
    if (!keys)
        return;
    bool few = map->length <= FEW_KEYS;
    if (few ? find_few(keys, map->length) : find_many(keys, map->length))
        drop_duplicates(parser, map, keys, map->length);
    free(keys);
}

/* Hang a node into the open level, or make it the root. */
static bool link_node(struct tree_builder *builder, struct node *node)
{
    if (builder->depth == 0) {
        builder->root = node;
        return true;
    }
    struct level *level = &builder->levels[builder->depth - 1];
    bool is_key = level->node->kind == NODE_MAP && !level->want_value;
    if (is_key && node->kind != NODE_SCALAR)
        return parse_error(builder->parser, node->mark, "found a %s as a key, expected a name",
                           node->kind == NODE_MAP ? "mapping" : "list");
    *level->tail = node;
    level->tail = &node->next;
    level->want_value = is_key;
    level->key = is_key ? node->text : level->key;
    level->merges |= is_key && node->plain && strcmp(node->text, MERGE_KEY) == 0;
    level->node->length += node->kind == NODE_LINES ? node->length : !is_key;
    return true;
}

/* A map of doubled keys alone need not be read to its end to be refused: looked at whenever it has twice as
   many. */
static bool check_growing(struct tree_builder *builder)
{
    struct level *level = builder->depth ? &builder->levels[builder->depth - 1] : NULL;
    if (!level || level->node->kind != NODE_MAP || level->want_value)
        return true;
    size_t length = level->node->length;
    if (length < MANY_KEYS || (length & (length - 1)) != 0)
        return true;
    struct key *keys = list_keys(builder->parser, level->node);
    if (!keys)
        return false;
    if (find_many(keys, length) >= PARSE_MANY_ERRORS)
        drop_duplicates(builder->parser, level->node, keys, length);
    free(keys);
    return !parse_gave_up(builder->parser);
}

static struct node *parse_yaml_new_node(struct tree_builder *builder, enum node_kind kind,
                                        yaml_mark_t mark)
{
    struct node *node = ARENA_NEW(&builder->parser->scratch, struct node);
    if (!node) {
        parse_no_memory(builder->parser);
        return NULL;
    }
    node->kind = kind;
    node->mark = to_mark(builder, mark);
    return node;
}

/* ---- anchors, aliases, merge keys ------------------------------------------------------------ */

/* Reads what stands before a node: no tag; an anchor gets its number, 1 + its index. */
static bool read_decoration(struct tree_builder *builder, const yaml_char_t *name,
                            const yaml_char_t *tag, yaml_mark_t mark, size_t *anchor)
{
    struct parser *parser = builder->parser;
    *anchor = 0;
    if (tag)
        return parse_error(parser, to_mark(builder, mark),
                           "found the tag \"%s\", expected a plan without tags", (const char *)tag);
    if (!name)
        return true;
    if (builder->runs) /* a copy must be of nodes: all is read again, without runs of lines */
        return parse_error(parser, to_mark(builder, mark), "found an anchor, expected none");
    const char *kept = arena_strdup(&parser->scratch, (const char *)name);
    if (!kept ||
        !ARENA_GROW(&parser->scratch, builder->anchors, builder->anchor_count, builder->anchor_cap))
        return parse_no_memory(parser);
    builder->anchors[builder->anchor_count++] = (struct anchor){kept, NULL};
    *anchor = builder->anchor_count;
    return true;
}

static const struct anchor *find_anchor(const struct tree_builder *builder, const char *name)
{
    for (size_t i = builder->anchor_count; i-- > 0;)
        if (strcmp(builder->anchors[i].name, name) == 0)
            return &builder->anchors[i];
    return NULL;
}

/* NULL after an error, which is at `mark`. */
static struct node *copy_tree(struct tree_builder *builder, const struct node *node, int depth,
                              struct mark mark)
{
    struct parser *parser = builder->parser;
    if (depth > MAX_NESTING) {
        parse_error(parser, mark, "found more than %d levels of nesting, expected fewer",
                    MAX_NESTING);
        return NULL;
    }
    if (builder->copied++ == MOST_COPIED) {
        parse_error(parser, mark,
                    "found aliases for more than %d keys, values and items, expected fewer",
                    MOST_COPIED);
        return NULL;
    }
    struct node *copy = ARENA_NEW(&parser->scratch, struct node);
    if (!copy) {
        parse_no_memory(parser);
        return NULL;
    }
    *copy = *node;
    copy->first = copy->next = NULL;
    struct node **tail = &copy->first;
    for (const struct node *item = node->first; item; item = item->next) {
        *tail = copy_tree(builder, item, depth + 1, mark);
        if (!*tail)
            return NULL;
        tail = &(*tail)->next;
    }
    return copy;
}

static bool on_alias(struct tree_builder *builder, const yaml_event_t *event)
{
    const struct mark mark = to_mark(builder, event->start_mark);
    const char *name = (const char *)event->data.alias.anchor;
    const struct anchor *anchor = find_anchor(builder, name);
    if (!anchor)
        return parse_error(builder->parser, mark,
                           "found the alias \"*%s\", expected an anchor \"&%s\" before it", name,
                           name);
    if (!anchor->node)
        return parse_error(builder->parser, mark,
                           "found the alias \"*%s\" within what it stands for, expected it behind",
                           name);
    struct node *copy = copy_tree(builder, anchor->node, builder->depth, mark);
    return copy && link_node(builder, copy);
}

static bool merge_has_key(const struct node *map, const char *name)
{
    for (const struct node *key = map->first; key; key = key->next->next)
        if (strcmp(key->text, name) == 0)
            return true;
    return false;
}

/* Takes the keys of `from` that the map does not have, and puts them to *tail. */
static bool merge_one(struct parser *parser, struct node *map, struct node *from,
                      struct node ***tail)
{
    if (from->kind != NODE_MAP)
        return parse_error(parser, from->mark, "found %s to merge, expected a mapping",
                           parse_describe(parser, from));
    for (struct node *key = from->first, *after; key; key = after) {
        after = key->next->next;
        if (merge_has_key(map, key->text))
            continue;
        key->next->next = **tail;
        **tail = key;
        *tail = &key->next->next;
        map->length++;
    }
    return true;
}

/* The keys that are merged stand where the merge key stood. */
static bool merge_keys(struct parser *parser, struct node *map)
{
    struct node **at = &map->first;
    while (*at && strcmp((*at)->text, MERGE_KEY) != 0)
        at = &(*at)->next->next;
    struct node *value = *at ? (*at)->next : NULL;
    if (!value)
        return true;
    *at = value->next;
    map->length--;
    bool ok = true;
    if (value->kind != NODE_LIST)
        return merge_one(parser, map, value, &at);
    for (struct node *item = value->first, *next; item && ok; item = next) {
        next = item->next;
        ok = merge_one(parser, map, item, &at);
    }
    return ok;
}

/* ---- runs of lines --------------------------------------------------------------------------- */

static const struct flow_run *run_at(const struct tree_builder *builder, yaml_mark_t mark)
{
    const struct flow_runs *runs = builder->runs;
    if (!runs || builder->next_run == runs->count)
        return NULL;
    const struct flow_run *run = &runs->items[builder->next_run];
    return mark.line == run->rest_line && mark.column == run->indent + 2 ? run : NULL;
}

/* Operations of a thread, which are read one by one (parse_repeat.c). */
static bool in_thread(const struct tree_builder *builder)
{
    const char *key = builder->levels[0].key;
    return builder->depth == 3 && key && strcmp(key, "threads") == 0;
}

static struct node *copy_line(struct arena *scratch, const struct flow_line *line)
{
    char *text = arena_alloc(scratch, line->bytes);
    struct node *nodes = ARENA_ARRAY(scratch, line->count, struct node);
    if (!text || !nodes)
        return NULL;
    memcpy(text, line->text, line->bytes);
    memcpy(nodes, line->nodes, line->count * sizeof *nodes);
    for (size_t i = 0; i < line->count; i++) {
        struct node *node = &nodes[i];
        node->text = node->text ? text + (node->text - line->text) : NULL;
        node->first = node->first ? nodes + (node->first - line->nodes) : NULL;
        node->next = node->next ? nodes + (node->next - line->nodes) : NULL;
    }
    return nodes;
}

static bool link_each_line(struct tree_builder *builder, const struct flow_run *run)
{
    struct parser *parser = builder->parser;
    const char *at = parser->source + run->start, *end = parser->source + run->end;
    struct flow_line line;
    for (uint32_t number = run->line; at < end; number++, at += line.bytes) {
        flow_line_read(at, end, number, &line);
        struct node *map = copy_line(&parser->scratch, &line);
        if (!map)
            return parse_no_memory(parser);
        if (!link_node(builder, map))
            return false;
    }
    return true;
}

static bool link_lines(struct tree_builder *builder, const struct flow_run *run, yaml_mark_t mark)
{
    struct node *node = parse_yaml_new_node(builder, NODE_LINES, mark);
    if (!node)
        return false;
    node->text = builder->parser->source + run->start;
    node->length = run->lines;
    return link_node(builder, node);
}

/* The scalar that stands for a run; it is none where YAML took more than the placeholder for it. */
static bool on_run(struct tree_builder *builder, const struct flow_run *run,
                   const yaml_event_t *event)
{
    const bool in_list =
        builder->depth > 0 && builder->levels[builder->depth - 1].node->kind == NODE_LIST;
    if (!in_list || strcmp((const char *)event->data.scalar.value, FLOW_PLACEHOLDER) != 0)
        return false;
    if (in_thread(builder) ? !link_lines(builder, run, event->start_mark)
                           : !link_each_line(builder, run))
        return false;
    builder->next_run++;
    builder->left_out += (uint32_t)run->lines - 1;
    return true;
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool on_scalar(struct tree_builder *builder, const yaml_event_t *event)
{
    const struct flow_run *run = run_at(builder, event->start_mark);
    if (run)
        return on_run(builder, run, event);
    size_t anchor;
    if (!read_decoration(builder, event->data.scalar.anchor, event->data.scalar.tag,
                         event->start_mark, &anchor))
        return false;
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    if (memchr(text, '\0', length))
        return parse_error(builder->parser, to_mark(builder, event->start_mark),
                           "found a NUL character in a string, expected text");
    struct node *node = parse_yaml_new_node(builder, NODE_SCALAR, event->start_mark);
    if (!node)
        return false;
    node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    node->text = arena_strndup(&builder->parser->scratch, text, length);
    node->length = length;
    if (anchor)
        builder->anchors[anchor - 1].node = node;
    return node->text ? link_node(builder, node) : parse_no_memory(builder->parser);
}

static bool on_open(struct tree_builder *builder, enum node_kind kind, const yaml_event_t *event)
{
    bool list = kind == NODE_LIST;
    size_t anchor;
    if (!read_decoration(
            builder, list ? event->data.sequence_start.anchor : event->data.mapping_start.anchor,
            list ? event->data.sequence_start.tag : event->data.mapping_start.tag,
            event->start_mark, &anchor))
        return false;
    if (builder->depth == MAX_NESTING)
        return parse_error(builder->parser, to_mark(builder, event->start_mark),
                           "found more than %d levels of nesting, expected fewer", MAX_NESTING);
    struct node *node = parse_yaml_new_node(builder, kind, event->start_mark);
    if (!node || !link_node(builder, node))
        return false;
    builder->levels[builder->depth++] =
        (struct level){.node = node, .tail = &node->first, .anchor = anchor};
    return true;
}

/* Duplicate keys are reported but do not stop the reading. */
static bool on_close(struct tree_builder *builder)
{
    const struct level *level = &builder->levels[--builder->depth];
    struct node *node = level->node;
    if (node->kind == NODE_MAP)
        check_duplicates(builder->parser, node);
    if (level->merges && !merge_keys(builder->parser, node))
        return false;
    if (level->anchor)
        builder->anchors[level->anchor - 1].node = node;
    return builder->parser->status != STATUS_SYSTEM && !parse_gave_up(builder->parser);
}

static bool on_event(struct tree_builder *builder, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return builder->documents++ == 0 ||
               parse_error(builder->parser, to_mark(builder, event->start_mark),
                           "found a second document, expected one plan a file");
    case YAML_ALIAS_EVENT: return on_alias(builder, event);
    case YAML_SCALAR_EVENT: return on_scalar(builder, event);
    case YAML_SEQUENCE_START_EVENT: return on_open(builder, NODE_LIST, event);
    case YAML_MAPPING_START_EVENT: return on_open(builder, NODE_MAP, event);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: return on_close(builder);
    default: return true;
    }
}

/* Read events until the end of the stream. */
static bool parse_yaml_build(struct tree_builder *builder)
{
    for (bool done = false; !done;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&builder->yaml, &event))
            return report_yaml_error(builder);
        done = event.type == YAML_STREAM_END_EVENT;
        bool ok = on_event(builder, &event) && check_growing(builder);
        yaml_event_delete(&event);
        if (!ok)
            return false;
    }
    return true;
}

static struct node *read_tree(struct parser *parser, const char *text, size_t length,
                              const struct flow_runs *runs)
{
    struct tree_builder builder = {.parser = parser, .runs = runs};
    if (!yaml_parser_initialize(&builder.yaml)) {
        parse_no_memory(parser);
        return NULL;
    }
    yaml_parser_set_encoding(&builder.yaml, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&builder.yaml, (const unsigned char *)text, length);
    bool ok = parse_yaml_build(&builder);
    yaml_parser_delete(&builder.yaml);
    if (ok && !builder.root)
        ok = parse_error(parser, ((struct mark){1, 1}),
                         "found an empty file, expected a plan: a mapping with \"swplan: 1\"");
    return ok && (!runs || builder.next_run == runs->count) ? builder.root : NULL;
}

static void forget_errors(struct parser *parser)
{
    parser->status = STATUS_OK;
    parser->errors = 0;
    parser->gave_up = false;
}

/* The tree with runs of lines left out; NULL: there are none, or the file has a mistake. */
static struct node *read_without_lines(struct parser *parser)
{
    struct flow_runs runs;
    if (!flow_runs_find(parser->source, parser->source_length, &parser->scratch, &runs)) {
        parse_no_memory(parser);
        return NULL;
    }
    if (runs.count == 0)
        return NULL;
    struct diag aside;
    diag_init(&aside);
    struct diag *diag = parser->diag;
    parser->diag = &aside;
    struct node *root = read_tree(parser, runs.rest, runs.rest_length, &runs);
    parser->diag = diag;
    if (parser->errors)
        root = NULL;
    if (parser->status == STATUS_SYSTEM)
        diag_take(diag, &aside);
    else
        forget_errors(parser);
    diag_fini(&aside);
    return root;
}

struct node *parse_yaml(struct parser *parser, bool lines)
{
    struct node *root = lines ? read_without_lines(parser) : NULL;
    if (root || parser->status == STATUS_SYSTEM)
        return root;
    return read_tree(parser, parser->source, parser->source_length, NULL);
}
