/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse_relative.c - host programs: one list of operations for all ranks, and what differs in it by rank.
 *
 *     r*.main: [{group: [{send: x, peer: rank+1}, {recv: x, peer: rank-1}], comm: c}, {launch: k, reads: [r+1.y]}]
 *
 * `rank`, with a number added or not, is a rank counted from that of the thread, as a peer, a root or a device; `r+1.y`
 * is y of the next rank, and `r.y` that of its own. The ranks are a ring: behind the last comes rank 0. An operation with
 * such words is copied for the thread, with ranks in their place; so all later stages see only ranks.
 */
#include <stdlib.h>
#include <string.h>

#include "text_internal.h"

enum { STEP_DIGITS = 4 };

/* "", "+1", "-12": the step, and where it ends; NULL: there is none. */
static const char *relative_step(const char *text, int *step)
{
    *step = 0;
    if (*text != '+' && *text != '-')
        return text;
    const size_t digits = strspn(text + 1, "0123456789");
    if (digits == 0 || digits > STEP_DIGITS)
        return NULL;
    *step = atoi(text + 1) * (*text == '-' ? -1 : 1);
    return text + 1 + digits;
}

static int relative_rank(const struct parser *parser, int step)
{
    const int ranks = parser->plan->ranks, rank = (parser->home + step % ranks) % ranks;
    return rank < 0 ? rank + ranks : rank;
}

/* "rank+1" */
static bool is_relative_rank(const char *text, int *step)
{
    if (strncmp(text, "rank", 4) != 0)
        return false;
    const char *end = relative_step(text + 4, step);
    return end && !*end;
}

/* "r+1.x"; `rest` begins at the dot. */
static bool is_relative_name(const char *text, int *step, const char **rest)
{
    if (*text != 'r')
        return false;
    *rest = relative_step(text + 1, step);
    return *rest && **rest == '.' && (*rest)[1];
}

static bool relative_takes_rank(const char *key)
{
    return strcmp(key, "peer") == 0 || strcmp(key, "root") == 0 || strcmp(key, "device") == 0;
}

/* `key`: that of the value, "" of another node. */
static bool is_relative(const struct node *node, const char *key)
{
    int step;
    const char *rest;
    if (node->kind == NODE_SCALAR)
        return *node->text == 'r' &&
               (is_relative_name(node->text, &step, &rest) ||
                (relative_takes_rank(key) && is_relative_rank(node->text, &step)));
    bool any = false;
    for (const struct node *item = node->first; item && !any; item = item->next) {
        key = node->kind == NODE_MAP ? item->text : "";
        item = node->kind == NODE_MAP ? item->next : item;
        any = is_relative(item, key);
    }
    return any;
}

/* The text with a rank in its place; NULL without memory. */
static const char *relative_text(struct parser *parser, const struct node *node, const char *key)
{
    int step;
    const char *rest;
    if (relative_takes_rank(key) && is_relative_rank(node->text, &step))
        return arena_printf(&parser->scratch, "%d", relative_rank(parser, step));
    if (is_relative_name(node->text, &step, &rest))
        return arena_printf(&parser->scratch, "r%d%s", relative_rank(parser, step), rest);
    return node->text;
}

static struct node *relative_copy(struct parser *parser, const struct node *node, const char *key)
{
    struct node *copy = ARENA_NEW(&parser->scratch, struct node);
    if (!copy)
        return NULL;
    *copy = *node;
    copy->next = NULL;
    if (node->kind == NODE_SCALAR) {
        copy->text = relative_text(parser, node, key);
        copy->length = copy->text ? strlen(copy->text) : 0;
        return copy->text ? copy : NULL;
    }
    struct node **tail = &copy->first;
    bool is_key = node->kind == NODE_MAP;
    for (const struct node *item = node->first; item; item = item->next) {
        struct node *made =
            is_key ? ARENA_NEW(&parser->scratch, struct node) : relative_copy(parser, item, key);
        if (!made)
            return NULL;
        if (is_key)
            *made = *item;
        key = node->kind == NODE_MAP ? item->text : "";
        *tail = made;
        tail = &made->next;
        is_key = node->kind == NODE_MAP && !is_key;
    }
    *tail = NULL;
    return copy;
}

const struct node *parse_relative(struct parser *parser, const struct node *item)
{
    if (!is_relative(item, ""))
        return item;
    const struct node *copy = relative_copy(parser, item, "");
    if (!copy)
        parse_no_memory(parser);
    return copy;
}

/* ---- printing -------------------------------------------------------------------------------- */

/* From the rank that is printed to another, the shorter way round. */
static int relative_way(const struct printer *printer, int rank)
{
    const int ranks = printer->plan->ranks;
    const int way = ((rank - printer->home) % ranks + ranks) % ranks;
    return way > ranks / 2 ? way - ranks : way;
}

void put_rank(struct printer *printer, int rank)
{
    const int way = relative_way(printer, rank);
    if (!printer->relative)
        put_number(printer, rank);
    else
        put_word(printer, way == 0 ? "rank" : arena_printf(&printer->scratch, "rank%+d", way));
}

void put_ranked_name(struct printer *printer, int rank, const char *name)
{
    const int way = relative_way(printer, rank);
    if (!printer->relative)
        put_text(printer, arena_printf(&printer->scratch, "r%d.%s", rank, name));
    else
        put_text(printer, way == 0 ? arena_printf(&printer->scratch, "r.%s", name)
                                   : arena_printf(&printer->scratch, "r%+d.%s", way, name));
}

/* ---- a list that all ranks have -------------------------------------------------------------- */

/* The list of a thread as text, a line an operation: with ranks, and with what is counted from its own. */
struct relative_lines {
    const struct host_thread *thread;
    const char *texts[2];
    bool alike; /* True if it can be printed as the first. */
};

static bool relative_print_lines(struct printer *printer, struct relative_lines *lines)
{
    for (int relative = 0; relative < 2; relative++) {
        lines->texts[relative] = print_aside(printer, lines->thread, relative);
        if (!lines->texts[relative])
            return false;
    }
    return true;
}

static size_t relative_line(const char *text)
{
    return strcspn(text, "\n") + 1;
}

static bool same_line(const char *a, const char *b)
{
    const size_t length = relative_line(a);
    return length == relative_line(b) && memcmp(a, b, length - 1) == 0;
}

/* True if each line of one agrees with the other's in one way or the other. `marked`, if given: the lines that are
   printed relatively; else those lines are marked in `marks` that do not agree with ranks. */
static bool relative_agree(const struct relative_lines *a, const struct relative_lines *b,
                           const bool *marked, bool *marks)
{
    const char *at[2] = {a->texts[0], a->texts[1]}, *other[2] = {b->texts[0], b->texts[1]};
    for (size_t line = 0; *at[0] && *other[0]; line++) {
        const bool absolute = same_line(at[0], other[0]), relative = same_line(at[1], other[1]);
        if (marked ? !(marked[line] ? relative : absolute) : !absolute && !relative)
            return false;
        if (marks)
            marks[line] |= !absolute;
        for (int i = 0; i < 2; i++) {
            at[i] += relative_line(at[i]);
            other[i] += relative_line(other[i]);
        }
    }
    return !*at[0] && !*other[0];
}

static size_t relative_count(const char *text)
{
    size_t count = 0;
    for (; *text; text += relative_line(text))
        count++;
    return count;
}

/* Of three ranks or more the list that two of the first three have. */
static size_t relative_first(const struct relative_lines *lists, size_t count)
{
    return count > 2 && !relative_agree(&lists[0], &lists[1], NULL, NULL) &&
                   relative_agree(&lists[1], &lists[2], NULL, NULL)
               ? 1
               : 0;
}

/* Which lines of the first list are printed relatively, and which lists it stands for; NULL: no memory. */
static bool *relative_choose(struct printer *printer, struct relative_lines *lists, size_t count,
                             const struct relative_lines *first)
{
    const size_t lines = relative_count(first->texts[0]);
    bool *marks = ARENA_ARRAY(&printer->scratch, lines + 1, bool);
    bool *more = ARENA_ARRAY(&printer->scratch, lines + 1, bool);
    for (size_t i = 0; marks && more && i < count; i++) {
        memset(more, 0, lines);
        lists[i].alike = relative_agree(first, &lists[i], NULL, more);
        for (size_t k = 0; lists[i].alike && k < lines; k++)
            marks[k] |= more[k];
    }
    for (size_t i = 0; marks && more && i < count; i++)
        lists[i].alike = lists[i].alike && relative_agree(first, &lists[i], marks, NULL);
    return more ? marks : NULL;
}

void print_for_all_ranks(struct printer *printer, const struct host_thread *thread)
{
    const struct plan *plan = printer->plan;
    struct relative_lines *lists =
        ARENA_ARRAY(&printer->scratch, plan->thread_count, struct relative_lines);
    size_t count = 0;
    for (size_t i = 0; lists && i < plan->thread_count; i++)
        if (plan->threads[i].of_all && strcmp(plan->threads[i].name, thread->name) == 0) {
            lists[count].thread = &plan->threads[i];
            printer->failed |= !relative_print_lines(printer, &lists[count++]);
        }
    if (!lists || count == 0 || printer->failed) {
        printer->failed = true;
        return;
    }
    const struct relative_lines *first = &lists[relative_first(lists, count)];
    const bool *marks = relative_choose(printer, lists, count, first);
    printer->failed |= !marks;
    put_text(printer, arena_printf(&printer->scratch, "r*.%s", thread->name));
    printer->relative_lines = marks;
    print_thread(printer, first->thread);
    printer->relative_lines = NULL;
    printer->relative = false;
    for (size_t i = 0; i < count; i++)
        if (!lists[i].alike) {
            put_text(printer, arena_printf(&printer->scratch, "r%d.%s", lists[i].thread->rank,
                                           thread->name));
            print_thread(printer, lists[i].thread);
        }
}
