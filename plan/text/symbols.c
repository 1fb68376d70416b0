/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols.c - the names of a plan while it is read: from a name to its index, in linear time for a plan of a million operations.
 */
#include <assert.h>
#include <string.h>

#include "text_internal.h"
#include "base/array.h"

static const struct symbol *symbol_at(const struct symbols *symbols, const char *name)
{
    const uint32_t found = TABLE_FIND(&symbols->table, table_hash_text(name), i,
                                      strcmp(symbols->items[i].name, name) == 0);
    return found == TABLE_NONE ? NULL : &symbols->items[found];
}

int symbol_find(const struct parser *parser, enum symbol_table table, const char *name)
{
    const struct symbol *symbol = symbol_at(&parser->symbols[table], name);
    return symbol ? symbol->index : -1;
}

bool symbol_add(struct parser *parser, enum symbol_table table, const char *name, int index)
{
    struct symbols *symbols = &parser->symbols[table];
    if (!ARENA_GROW(&parser->scratch, symbols->items, symbols->count, symbols->cap) ||
        !table_add_in(&symbols->table, &parser->scratch, table_hash_text(name), symbols->count))
        return parse_no_memory(parser);
    symbols->items[symbols->count++] = (struct symbol){name, index};
    return true;
}

struct comm *parse_add_comm(struct parser *parser, const char *name, struct mark mark)
{
    struct plan *plan = parser->plan;
    const char *copy = parse_keep(parser, name);
    if (!copy)
        return NULL;
    if (!ARENA_GROW(&plan->arena, plan->comms, plan->comm_count, parser->comm_cap)) {
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
    if (!ARENA_GROW(&plan->arena, plan->buffers, plan->buffer_count, parser->buffer_cap)) {
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
    if (!ARENA_GROW(&parser->plan->arena, names->items, names->count, names->cap) ||
        !ARENA_GROW(&parser->plan->arena, names->marks, names->mark_count, names->mark_cap)) {
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
    for (size_t i = 0; heard && i < symbols->count; i++)
        nearest_try(&nearest, symbols->items[i].name);
    parse_error(parser, node->mark, "found %s, expected %s%s", parse_describe(parser, node),
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

const char *symbol_name(const struct plan *plan, enum symbol_table table, int index)
{
    if (table == TABLE_BUFFERS)
        return plan->buffers[index].name;
    if (table == TABLE_COMMS)
        return plan->comms[index].name;
    if (table == TABLE_QUEUES)
        return plan->queues[index].name;
    assert(tables[table].only_names && index >= 0);
    return ((const struct names *)((const char *)plan + tables[table].offset))->items[index];
}

/* Many operations have the same name: it is kept once. */
const char *symbol_keep(struct parser *parser, const char *name)
{
    const struct symbol *known = symbol_at(&parser->symbols[TABLE_TEXTS], name);
    if (known)
        return known->name;
    const char *kept = parse_keep(parser, name);
    return kept && symbol_add(parser, TABLE_TEXTS, kept, 0) ? kept : NULL;
}
