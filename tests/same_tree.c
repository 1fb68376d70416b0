/* SPDX-License-Identifier: Apache-2.0 */
/* same_tree.c - see same_tree.h. Lines that are still text are read where the other tree has items. */
#include "same_tree.h"

#include <stdlib.h>
#include <string.h>

#include "plan/text/flow_lines.h"
#include "plan/text/text_internal.h"

static bool same_mark(struct mark a, struct mark b)
{
    return a.line == b.line && a.col == b.col;
}

static bool same_node(const struct node *a, const struct node *b, const char *end);

/* The items of `lines` against those from `item` on; returns the one behind them, or `lines` where one differs. */
static const struct node *skip_lines(const struct node *lines, const struct node *item,
                                     const char *end)
{
    struct flow_line line;
    const char *at = lines->text;
    for (uint32_t i = 0; i < lines->length; i++, at += line.bytes, item = item->next)
        if (!item || !flow_line_read(at, end, lines->mark.line + i, &line) ||
            !same_node(line.nodes, item, end))
            return lines;
    return item;
}

static bool same_children(const struct node *a, const struct node *b, const char *end)
{
    const struct node *left = a->first, *right = b->first;
    while (left) {
        if (left->kind == NODE_LINES) {
            right = skip_lines(left, right, end);
            if (right == left)
                return false;
        } else {
            if (!right || !same_node(left, right, end))
                return false;
            right = right->next;
        }
        left = left->next;
    }
    return !right;
}

static bool same_node(const struct node *a, const struct node *b, const char *end)
{
    if (a->kind != b->kind || a->length != b->length || !same_mark(a->mark, b->mark))
        return false;
    if (a->kind == NODE_SCALAR)
        return a->plain == b->plain && strcmp(a->text, b->text) == 0;
    return same_children(a, b, end);
}

static bool same_messages(const struct diag *a, const struct diag *b)
{
    bool same = a->count == b->count && a->errors == b->errors && a->too_many == b->too_many;
    for (size_t i = 0; same && i < a->count; i++)
        same = strcmp(a->messages[i].text, b->messages[i].text) == 0 &&
               same_mark(a->messages[i].mark, b->messages[i].mark);
    return same;
}

struct reading {
    struct plan plan;
    struct diag diag;
    struct parser parser;
    struct node *root;
};

static void begin(struct reading *reading, const char *text, size_t length, bool lines)
{
    diag_init(&reading->diag);
    if (!parser_start(&reading->parser, &reading->plan, "same.yaml", text, length, &reading->diag))
        abort();
    reading->root = parse_yaml(&reading->parser, lines);
}

static void end(struct reading *reading)
{
    arena_fini(&reading->parser.scratch);
    plan_fini(&reading->plan);
    diag_fini(&reading->diag);
}

static size_t count_lines(const char *text, size_t length)
{
    struct arena scratch;
    struct flow_runs runs;
    size_t lines = 0;
    arena_init(&scratch, 0);
    if (flow_runs_find(text, length, &scratch, &runs))
        for (size_t i = 0; i < runs.count; i++)
            lines += runs.items[i].lines;
    arena_fini(&scratch);
    return lines;
}

bool same_tree(const char *text, size_t length, size_t *lines)
{
    struct reading own, plain;
    begin(&own, text, length, true);
    begin(&plain, text, length, false);
    const struct parser *parser = &own.parser;
    const bool same = same_messages(&own.diag, &plain.diag) &&
                      parser->status == plain.parser.status && !own.root == !plain.root &&
                      (!own.root || same_node(own.root, plain.root, parser->source + length));
    if (lines)
        *lines = own.root ? count_lines(own.plan.text, length) : 0;
    end(&own);
    end(&plain);
    return same;
}
