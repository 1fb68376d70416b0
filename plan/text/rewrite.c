/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rewrite.c - see rewrite.h.
 *
 * Three trees are walked together: that of the author's text, and the canonical ones before and after. Where the
 * latter two differ, the first gets an edit: some of its bytes are replaced. New items are written in brackets, on
 * one line, in the words of the canonical text. Edits that overlap are none.
 */
#include "rewrite.h"

#include "spans.h"
#include "base/array.h"
#include "base/assert_index.h"
#include "base/sort.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_MOST = 1024 };

struct text_edit {
    size_t begin, end; /* these bytes go */
    const char *text;  /* this comes */
    size_t number;     /* of those at one place the first comes first */
};

struct rewriting {
    const char *original, *after;
    struct arena *arena;
    bool json; /* names in quotes */
    bool failed;
    struct text_edit *edits;
    size_t count, cap;
};

static void rewrite_change(struct rewriting *rewriting, size_t begin, size_t end, const char *text)
{
    if (!text ||
        !ARENA_GROW(rewriting->arena, rewriting->edits, rewriting->count, rewriting->cap)) {
        rewriting->failed = true;
        return;
    }
    rewriting->edits[rewriting->count] = (struct text_edit){begin, end, text, rewriting->count};
    rewriting->count++;
}

/* ---- what is new, as text -------------------------------------------------------------------- */

static const char *slice(const struct rewriting *rewriting, const char *text,
                         const struct span_node *node)
{
    return arena_strndup(rewriting->arena, text + node->begin, node->end - node->begin);
}

static bool is_number_or_word(const char *text)
{
    char *end;
    strtod(text, &end);
    return (*text && !*end) || strcmp(text, "true") == 0 || strcmp(text, "false") == 0 ||
           strcmp(text, "null") == 0;
}

/* As the canonical text has it, if that can stand between brackets. */
static const char *scalar_text(struct rewriting *rewriting, const struct span_node *node)
{
    bool simple = !node->value[strcspn(node->value, ",[]{}#\"\\\n")] && !strstr(node->value, ": ");
    if (rewriting->json && !(node->plain && is_number_or_word(node->value)))
        return simple ? arena_printf(rewriting->arena, "\"%s\"", node->value) : NULL;
    if (node->plain && !simple)
        return NULL;
    return slice(rewriting, rewriting->after, node);
}

static const char *flow_text(struct rewriting *rewriting, const struct span_node *node)
{
    if (node->kind == SPAN_NODE_SCALAR)
        return scalar_text(rewriting, node);
    bool map = node->kind == SPAN_NODE_MAP;
    const char *text = map ? "{" : "[";
    for (size_t i = 0; i < node->count && text; i++) {
        const char *item = flow_text(rewriting, node->items[i]);
        const char *joint = i == 0 ? "" : map && i % 2 ? ": " : ", ";
        text = item ? arena_printf(rewriting->arena, "%s%s%s", text, joint, item) : NULL;
    }
    return text ? arena_printf(rewriting->arena, "%s%s", text, map ? "}" : "]") : NULL;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static size_t line_begin(const struct rewriting *rewriting, size_t at)
{
    while (at > 0 && rewriting->original[at - 1] != '\n')
        at--;
    return at;
}

/* Behind the line end. */
static size_t line_end(const struct rewriting *rewriting, size_t at)
{
    at += strcspn(rewriting->original + at, "\n");
    return at + (rewriting->original[at] == '\n');
}

/* True if there is nothing before `at` in its line but spaces, and a dash if `dash`. */
static bool begins_line(const struct rewriting *rewriting, size_t at, bool dash)
{
    bool found = false;
    for (size_t i = line_begin(rewriting, at); i < at; i++) {
        found |= rewriting->original[i] == '-';
        if (rewriting->original[i] != ' ' && (rewriting->original[i] != '-' || !dash))
            return false;
    }
    return found == dash;
}

/* Nothing but a comment may follow a node that takes its lines with it. */
static bool ends_line(const struct rewriting *rewriting, size_t at)
{
    at += strspn(rewriting->original + at, " \t\r");
    return strchr("\n#", rewriting->original[at]) != NULL;
}

/* A line of its own behind the one that `at` is in. */
static void rewrite_add_line(struct rewriting *rewriting, size_t at, size_t indent,
                             const char *text)
{
    size_t place = line_end(rewriting, at);
    bool closed = place > 0 && rewriting->original[place - 1] == '\n';
    rewrite_change(rewriting, place, place,
                   arena_printf(rewriting->arena, "%s%*s%s%s", closed ? "" : "\n", (int)indent, "",
                                text, closed ? "\n" : ""));
}

static void remove_lines(struct rewriting *rewriting, size_t begin, size_t end, bool dash)
{
    if (!begins_line(rewriting, begin, dash) || !ends_line(rewriting, end))
        rewriting->failed = true;
    else
        rewrite_change(rewriting, line_begin(rewriting, begin), line_end(rewriting, end), "");
}

/* ---- items between brackets ------------------------------------------------------------------ */

/* `width`: 1 in a list, 2 in a map. */
static void remove_flow_item(struct rewriting *rewriting, const struct span_node *node, size_t at,
                             size_t width)
{
    size_t last = at + width - 1;
    if (at > 0)
        rewrite_change(rewriting, node->items[at - 1]->end, node->items[last]->end, "");
    else if (last + 1 < node->count)
        rewrite_change(rewriting, node->items[at]->begin, node->items[last + 1]->begin, "");
    else
        rewrite_change(rewriting, node->items[at]->begin, node->items[last]->end, "");
}

/* Before item `at`, which may be the end. */
static void insert_flow_item(struct rewriting *rewriting, const struct span_node *node, size_t at,
                             const char *text)
{
    if (!text)
        rewriting->failed = true;
    else if (node->count == 0)
        rewrite_change(rewriting, node->begin + 1, node->begin + 1, text);
    else if (at == 0)
        rewrite_change(rewriting, node->items[0]->begin, node->items[0]->begin,
                       arena_printf(rewriting->arena, "%s, ", text));
    else
        rewrite_change(rewriting, node->items[at - 1]->end, node->items[at - 1]->end,
                       arena_printf(rewriting->arena, ", %s", text));
}

/* ---- maps ------------------------------------------------------------------------------------ */

static void rewrite_walk(struct rewriting *rewriting, const struct span_node *original,
                         const struct span_node *before, const struct span_node *after);

static size_t key_index(const struct span_node *map, const char *key)
{
    for (size_t i = 0; i + 1 < map->count; i += 2)
        if (map->items[i]->kind == SPAN_NODE_SCALAR && strcmp(map->items[i]->value, key) == 0)
            return i;
    return map->count;
}

static void remove_key(struct rewriting *rewriting, const struct span_node *map, size_t at)
{
    if (map->flow)
        remove_flow_item(rewriting, map, at, 2);
    else
        remove_lines(rewriting, map->items[at]->begin, map->items[at + 1]->end, false);
}

/* Where the new key `at` of `after` goes: behind the nearest key before it that the map has, else at its end. */
static size_t place_of_key(const struct span_node *map, const struct span_node *after, size_t at)
{
    for (size_t i = at; i >= 2; i -= 2) {
        size_t found = key_index(map, after->items[i - 2]->value);
        if (found < map->count)
            return found + 2;
    }
    return map->count;
}

static void insert_key(struct rewriting *rewriting, const struct span_node *map,
                       const struct span_node *after, size_t at)
{
    ASSERT_INDEX(at, after->count);
    const char *key = scalar_text(rewriting, after->items[at]);
    const char *value = flow_text(rewriting, after->items[at + 1]);
    const char *text = key && value ? arena_printf(rewriting->arena, "%s: %s", key, value) : NULL;
    size_t place = place_of_key(map, after, at);
    if (!text || (!map->flow && map->count == 0))
        rewriting->failed = true;
    else if (map->flow)
        insert_flow_item(rewriting, map, place, text);
    else
        rewrite_add_line(rewriting, map->items[place - 1]->end,
                         map->items[0]->begin - line_begin(rewriting, map->items[0]->begin), text);
}

/* Keys of `map` that the other has not. */
static size_t extra_keys(const struct span_node *map, const struct span_node *other)
{
    size_t extra = 0;
    for (size_t i = 0; i + 1 < map->count; i += 2)
        extra += !spans_find(other, map->items[i]->value);
    return extra;
}

/* Several keys that go, or some that go and some that come, would be edits of one place. */
static bool is_written_anew(const struct span_node *before, const struct span_node *after)
{
    size_t gone = extra_keys(before, after);
    return gone > 1 || (gone == 1 && extra_keys(after, before) > 0);
}

static void walk_map(struct rewriting *rewriting, const struct span_node *original,
                     const struct span_node *before, const struct span_node *after)
{
    for (size_t i = 0; i + 1 < after->count; i += 2) {
        const char *key = after->items[i]->value;
        const struct span_node *old = spans_find(before, key), *mine = spans_find(original, key);
        if (old && spans_equal(old, after->items[i + 1]))
            continue;
        if (mine)
            rewrite_walk(rewriting, mine, old, after->items[i + 1]);
        else
            insert_key(rewriting, original, after, i);
    }
    for (size_t i = 0; i + 1 < before->count; i += 2) {
        size_t at = key_index(original, before->items[i]->value);
        if (!spans_find(after, before->items[i]->value) && at < original->count)
            remove_key(rewriting, original, at);
    }
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* An item that has moved keeps the words of its author. */
static const char *item_text(struct rewriting *rewriting, const struct span_node *original,
                             const struct span_node *before, const struct span_node *item)
{
    for (size_t i = 0; i < before->count; i++)
        if (original->items[i]->flow && spans_equal(before->items[i], item))
            return slice(rewriting, rewriting->original, original->items[i]);
    return flow_text(rewriting, item);
}

static void rewrite_remove_item(struct rewriting *rewriting, const struct span_node *list,
                                size_t at)
{
    if (list->flow)
        remove_flow_item(rewriting, list, at, 1);
    else
        remove_lines(rewriting, list->items[at]->begin, list->items[at]->end, true);
}

/* Before item `at` of the author's list, which may be its end. */
static void insert_item(struct rewriting *rewriting, const struct span_node *list, size_t at,
                        const char *text)
{
    if (list->flow) {
        insert_flow_item(rewriting, list, at, text);
        return;
    }
    const struct span_node *neighbour = list->count ? list->items[at ? at - 1 : 0] : NULL;
    if (!text || !neighbour || !begins_line(rewriting, neighbour->begin, true)) {
        rewriting->failed = true;
        return;
    }
    size_t begin = line_begin(rewriting, neighbour->begin);
    size_t indent = strcspn(rewriting->original + begin, "-");
    const char *line = arena_printf(rewriting->arena, "- %s", text);
    if (at > 0 && line)
        rewrite_add_line(rewriting, neighbour->end, indent, line);
    else if (line)
        rewrite_change(rewriting, begin, begin,
                       arena_printf(rewriting->arena, "%*s%s\n", (int)indent, "", line));
    else
        rewriting->failed = true;
}

/* Items first .. last - 1 of the author become items from .. to - 1: the common number changes in place. */
static void walk_gap(struct rewriting *rewriting, const struct span_node *original,
                     const struct span_node *before, const struct span_node *after, size_t first,
                     size_t last, size_t from, size_t to)
{
    bool same_number = last - first == to - from;
    for (; same_number && first < last; first++, from++)
        rewrite_walk(rewriting, original->items[first], before->items[first], after->items[from]);
    for (size_t i = first; i < last; i++)
        rewrite_remove_item(rewriting, original, i);
    for (size_t i = from; i < to; i++)
        insert_item(rewriting, original, last,
                    item_text(rewriting, original, before, after->items[i]));
}

/* lengths[i][j]: the longest common sequence of before from i on and after from j on. */
static unsigned short *common_lengths(struct rewriting *rewriting, const struct span_node *before,
                                      const struct span_node *after)
{
    size_t row = after->count + 1;
    unsigned short *lengths =
        ARENA_ARRAY(rewriting->arena, (before->count + 1) * row, unsigned short);
    for (size_t i = before->count; lengths && i-- > 0;)
        for (size_t j = after->count; j-- > 0;) {
            unsigned short down = lengths[(i + 1) * row + j], right = lengths[i * row + j + 1];
            lengths[i * row + j] = spans_equal(before->items[i], after->items[j])
                                       ? (unsigned short)(lengths[(i + 1) * row + j + 1] + 1)
                                   : down > right ? down
                                                  : right;
        }
    return lengths;
}

static bool is_of_scalars(const struct span_node *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i]->kind != SPAN_NODE_SCALAR)
            return false;
    return true;
}

static void rewrite_walk_list(struct rewriting *rewriting, const struct span_node *original,
                              const struct span_node *before, const struct span_node *after)
{
    if (original->count != before->count || before->count > LIST_MOST || after->count > LIST_MOST) {
        rewriting->failed = true;
        return;
    }
    unsigned short *lengths = common_lengths(rewriting, before, after);
    size_t row = after->count + 1, i = 0, j = 0;
    if (!lengths) {
        rewriting->failed = true;
        return;
    }
    while (i < before->count || j < after->count) {
        size_t first = i, from = j;
        while (i < before->count && j < after->count &&
               !spans_equal(before->items[i], after->items[j]))
            if (lengths[(i + 1) * row + j] >= lengths[i * row + j + 1])
                i++;
            else
                j++;
        if (i == before->count || j == after->count) {
            i = before->count;
            j = after->count;
        }
        walk_gap(rewriting, original, before, after, first, i, from, j);
        i += i < before->count;
        j += j < after->count;
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool has_comment(const struct rewriting *rewriting, const struct span_node *node)
{
    return memchr(rewriting->original + node->begin, '#', node->end - node->begin) != NULL;
}

/* `before` is NULL where the author's text says what the canonical one leaves out. */
static void rewrite_walk(struct rewriting *rewriting, const struct span_node *original,
                         const struct span_node *before, const struct span_node *after)
{
    bool same_kind = before && original->kind == before->kind && original->kind == after->kind;
    if (same_kind && original->kind == SPAN_NODE_MAP &&
        !(original->flow && is_written_anew(before, after) && !has_comment(rewriting, original)))
        walk_map(rewriting, original, before, after);
    else if (same_kind && original->kind == SPAN_NODE_LIST &&
             !(original->flow && is_of_scalars(original) && !has_comment(rewriting, original)))
        rewrite_walk_list(rewriting, original, before, after);
    else if (original->kind != SPAN_NODE_SCALAR && !original->flow)
        rewriting->failed = true;
    else
        rewrite_change(rewriting, original->begin, original->end, flow_text(rewriting, after));
}

static int rewrite_by_place(const void *a, const void *b)
{
    const struct text_edit *first = a, *second = b;
    /* what comes stands before what goes */
    const bool first_goes = first->begin != first->end, second_goes = second->begin != second->end;
    return compare_then(compare_size(first->begin, second->begin),
                        compare_then(compare_int(first_goes, second_goes),
                                     compare_size(first->number, second->number)));
}

static const char *apply(struct rewriting *rewriting)
{
    size_t length = strlen(rewriting->original), at = 0;
    for (size_t i = 0; i < rewriting->count; i++)
        length += strlen(rewriting->edits[i].text);
    char *text = arena_alloc(rewriting->arena, length + 1), *out = text;
    if (!text)
        return NULL;
    if (rewriting->count > 0)
        SORT(rewriting->edits, rewriting->count, rewrite_by_place);
    for (size_t i = 0; i < rewriting->count; i++) {
        const struct text_edit *edit = &rewriting->edits[i];
        if (edit->begin < at)
            return NULL; /* they overlap */
        out = mempcpy(out, rewriting->original + at, edit->begin - at);
        out = stpcpy(out, edit->text);
        at = edit->end;
    }
    strcpy(out, rewriting->original + at);
    return text;
}

const char *rewrite_text(const char *original, const char *before, const char *after,
                         struct arena *arena)
{
    const struct span_node *mine = spans_parse(original, arena);
    const struct span_node *old = spans_parse(before, arena), *new = spans_parse(after, arena);
    if (!mine || !old || !new || mine->kind != SPAN_NODE_MAP)
        return NULL;
    struct rewriting rewriting = {.original = original,
                                  .after = after,
                                  .arena = arena,
                                  .json = mine->flow && mine->count > 0 && !mine->items[0]->plain};
    walk_map(&rewriting, mine, old, new);
    return rewriting.failed ? NULL : apply(&rewriting);
}
