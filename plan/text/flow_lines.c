/* SPDX-License-Identifier: Apache-2.0 */
/* flow_lines.c - see flow_lines.h. Each line is copied, and a NUL put behind each text of the copy. */
#include "flow_lines.h"
#include "base/array.h"

#include <string.h>

enum { SHORTEST_RUN = 4 };

/* ---- characters ------------------------------------------------------------------------------ */

/* Where a character may stand: in a key, as the first of a value, behind it. ' ' and ':' depend on what follows. */
enum { IN_KEY = 1, FIRST = 2, INNER = 4, WORD = IN_KEY | FIRST | INNER };

#define TWO(c)  [c] = WORD, [(c) + 1] = WORD
#define FOUR(c) TWO(c), TWO((c) + 2)
#define TEN(c)  FOUR(c), FOUR((c) + 4), TWO((c) + 8)

static const unsigned char classes[256] = {
    TEN('0'),
    TEN('a'),
    TEN('k'),
    FOUR('u'),
    TWO('y'),
    TEN('A'),
    TEN('K'),
    FOUR('U'),
    TWO('Y'),
    ['_'] = WORD,
    ['/'] = FIRST | INNER,
    ['.'] = FIRST | INNER,
    ['('] = FIRST | INNER,
    ['<'] = FIRST | INNER,
    [')'] = INNER,
    ['>'] = INNER,
    ['+'] = INNER,
    ['-'] = INNER,
    ['*'] = INNER,
    ['='] = INNER,
    ['~'] = INNER,
    ['$'] = INNER,
    ['%'] = INNER,
    [';'] = INNER,
    ['@'] = INNER,
    ['&'] = INNER,
    ['|'] = INNER,
    ['!'] = INNER,
    ['^'] = INNER,
};

static bool is(char c, unsigned class)
{
    return (classes[(unsigned char)c] & class) != 0;
}

/* ---- a line ---------------------------------------------------------------------------------- */

struct flow_lines_cursor {
    struct flow_line *line;
    char *at;
    uint32_t number;
};

static struct node *flow_lines_add_node(struct flow_lines_cursor *cursor, enum node_kind kind)
{
    struct flow_line *line = cursor->line;
    if (line->count == FLOW_NODES)
        return NULL;
    struct node *node = &line->nodes[line->count++];
    *node = (struct node){.kind = kind,
                          .mark = {cursor->number, (uint32_t)(cursor->at - line->text) + 1}};
    return node;
}

static bool flow_lines_skip(struct flow_lines_cursor *cursor, char c)
{
    const bool found = *cursor->at == c;
    cursor->at += found;
    return found;
}

static struct node *scalar(struct flow_lines_cursor *cursor, const char *end)
{
    struct node *node = flow_lines_add_node(cursor, NODE_SCALAR);
    if (!node)
        return NULL;
    node->plain = true;
    node->text = cursor->at;
    node->length = (size_t)(end - cursor->at);
    cursor->at += node->length;
    return node;
}

static struct node *flow_lines_read_key(struct flow_lines_cursor *cursor)
{
    const char *end = cursor->at;
    while (is(*end, IN_KEY))
        end++;
    struct node *key =
        end > cursor->at && *end == ':' && end[1] == ' ' ? scalar(cursor, end) : NULL;
    if (!key)
        return NULL;
    *cursor->at = '\0';
    cursor->at += 2;
    return key;
}

/* The byte behind it is the caller's: it ends the text once what follows is known. */
static struct node *read_text(struct flow_lines_cursor *cursor)
{
    const char *end = cursor->at;
    if (!is(*end, FIRST))
        return NULL;
    for (end++; is(*end, INNER) || (*end == ':' && (is(end[1], INNER) || end[1] == ':')) ||
                (*end == ' ' && is(end[1], INNER));)
        end++;
    return scalar(cursor, end);
}

static struct node *flow_lines_read_value(struct flow_lines_cursor *cursor, int depth);

/* A key that is there already is not ours to report. */
static bool flow_lines_is_new(const struct node *map, const struct node *key)
{
    for (const struct node *other = map->first; other != key; other = other->next->next)
        if (other->length == key->length && memcmp(other->text, key->text, key->length) == 0)
            return false;
    return true;
}

/* Behind a value: ", " goes on, `close` ends; the text before it ends here. */
static bool flow_lines_goes_on(struct flow_lines_cursor *cursor, char close, bool *out)
{
    const char found = *cursor->at;
    if (found != close && (found != ',' || cursor->at[1] != ' '))
        return false;
    *cursor->at = '\0';
    *out = found == ',';
    cursor->at += found == ',' ? 2 : 1;
    return true;
}

static struct node *read_map(struct flow_lines_cursor *cursor, int depth)
{
    struct node *map = flow_lines_add_node(cursor, NODE_MAP);
    struct node **tail = map ? &map->first : NULL;
    bool more = map && flow_lines_skip(cursor, '{');
    if (!more)
        return NULL;
    while (more) {
        struct node *key = flow_lines_read_key(cursor);
        if (!key)
            return NULL;
        *tail = key;
        key->next = flow_lines_read_value(cursor, depth);
        if (!key->next || !flow_lines_is_new(map, key) || !flow_lines_goes_on(cursor, '}', &more))
            return NULL;
        tail = &key->next->next;
        map->length++;
    }
    return map;
}

static struct node *flow_lines_read_list(struct flow_lines_cursor *cursor, int depth)
{
    struct node *list = flow_lines_add_node(cursor, NODE_LIST);
    struct node **tail = list ? &list->first : NULL;
    bool more = list && flow_lines_skip(cursor, '[');
    if (!more)
        return NULL;
    while (more) {
        struct node *item = *tail = flow_lines_read_value(cursor, depth);
        if (!item || !flow_lines_goes_on(cursor, ']', &more))
            return NULL;
        tail = &item->next;
        list->length++;
    }
    return list;
}

static struct node *flow_lines_read_value(struct flow_lines_cursor *cursor, int depth)
{
    const bool nested = *cursor->at == '{' || *cursor->at == '[';
    if (!nested)
        return read_text(cursor);
    if (depth == FLOW_DEPTH)
        return NULL;
    return *cursor->at == '{' ? read_map(cursor, depth + 1)
                              : flow_lines_read_list(cursor, depth + 1);
}

/* The bytes before the newline; 0: too many, or none. */
static size_t flow_lines_line_length(const char *text, const char *end)
{
    const size_t most = (size_t)(end - text);
    const char *newline = memchr(text, '\n', most < FLOW_BYTES ? most : FLOW_BYTES);
    return newline ? (size_t)(newline - text) : 0;
}

/* A repeat is several operations, and so is one with branches. */
static bool is_one_operation(const struct node *map)
{
    static const char *const more[] = {"repeat", "query", "choose", "then", "else"};
    for (const struct node *key = map->first; key; key = key->next->next)
        for (size_t i = 0; i < sizeof more / sizeof *more; i++)
            if (*key->text == *more[i] && strcmp(key->text, more[i]) == 0)
                return false;
    return true;
}

bool flow_line_read(const char *text, const char *end, uint32_t number, struct flow_line *out)
{
    size_t indent = 0;
    while (text[indent] == ' ')
        indent++;
    if (text[indent] != '-' || text[indent + 1] != ' ' || text[indent + 2] != '{')
        return false;
    const size_t length = flow_lines_line_length(text, end);
    if (length == 0)
        return false;
    memcpy(out->text, text, length);
    out->text[length] = '\0';
    out->count = 0;
    out->indent = indent;
    out->bytes = length + 1;
    struct flow_lines_cursor cursor = {out, out->text + indent + 2, number};
    const struct node *map = read_map(&cursor, 0);
    return map && cursor.at == out->text + length && is_one_operation(map);
}

/* ---- runs ------------------------------------------------------------------------------------ */

struct flow_lines_finder {
    const char *text, *end;
    struct arena *scratch;
    struct flow_runs *runs;
    size_t cap;
    struct flow_run run; /* so far */
    uint32_t line;
};

static bool end_run(struct flow_lines_finder *finder)
{
    struct flow_runs *runs = finder->runs;
    if (finder->run.lines >= SHORTEST_RUN) {
        if (!ARENA_GROW(finder->scratch, runs->items, runs->count, finder->cap))
            return false;
        runs->items[runs->count++] = finder->run;
    }
    finder->run.lines = 0;
    return true;
}

static bool flow_lines_add_line(struct flow_lines_finder *finder, size_t start,
                                const struct flow_line *line)
{
    if (finder->run.lines > 0 && finder->run.indent != line->indent && !end_run(finder))
        return false;
    if (finder->run.lines++ == 0) {
        finder->run.start = start;
        finder->run.indent = line->indent;
        finder->run.line = finder->line;
    }
    finder->run.end = start + line->bytes;
    return true;
}

static bool flow_lines_find_runs(struct flow_lines_finder *finder)
{
    struct flow_line line;
    const char *at = finder->text;
    for (finder->line = 1; at < finder->end; finder->line++) {
        if (flow_line_read(at, finder->end, finder->line, &line)) {
            if (!flow_lines_add_line(finder, (size_t)(at - finder->text), &line))
                return false;
            at += line.bytes;
            continue;
        }
        const char *newline = memchr(at, '\n', (size_t)(finder->end - at));
        at = newline ? newline + 1 : finder->end;
        if (!end_run(finder))
            return false;
    }
    return end_run(finder);
}

static size_t flow_lines_append(struct flow_runs *runs, const char *text, size_t length)
{
    memcpy(runs->rest + runs->rest_length, text, length);
    return runs->rest_length += length;
}

/* A placeholder is no longer than the shortest run. */
static void write_rest(const char *text, size_t length, struct flow_runs *runs)
{
    static const char placeholder[] = "- " FLOW_PLACEHOLDER "\n";
    size_t done = 0;
    uint32_t saved = 0; /* lines */
    for (size_t i = 0; i < runs->count; i++) {
        struct flow_run *run = &runs->items[i];
        flow_lines_append(runs, text + done, run->start + run->indent - done);
        flow_lines_append(runs, placeholder, sizeof placeholder - 1);
        run->rest_line = run->line - 1 - saved;
        saved += (uint32_t)run->lines - 1;
        done = run->end;
    }
    flow_lines_append(runs, text + done, length - done);
    runs->rest[runs->rest_length] = '\0';
}

bool flow_runs_find(const char *text, size_t length, struct arena *scratch, struct flow_runs *out)
{
    *out = (struct flow_runs){0};
    struct flow_lines_finder finder = {
        .text = text, .end = text + length, .scratch = scratch, .runs = out};
    if (!flow_lines_find_runs(&finder))
        return false;
    size_t rest = length;
    for (size_t i = 0; i < out->count; i++)
        rest -= out->items[i].end - out->items[i].start - out->items[i].indent -
                sizeof FLOW_PLACEHOLDER - 2;
    out->rest = out->count ? arena_alloc(scratch, rest + 1) : NULL;
    if (!out->rest)
        return out->count == 0;
    write_rest(text, length, out);
    return true;
}
