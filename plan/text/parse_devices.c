/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse_devices.c - threads of host programs that drive the devices of several ranks.
 *
 *     {launch: k, device: 1, stream: s, reads: [x, r0.y]}      {wait: r0.copied, device: 1, stream: s}
 *
 * `device: 1` is the device of rank 1: the operation's stream, event and buffers are those of rank 1. A
 * name `r0.y` is y of rank 0, on whatever device it is used. A statement that is there twice is kept once: a rank that is
 * the operation's own is not stored.
 */
#include <string.h>

#include "text_internal.h"

bool field_device(PARSE_PARAMS)
{
    int rank;
    if (!field_rank(parser, value, &rank, field))
        return false;
    *(int *)member = rank + 1;
    return true;
}

/* The name without its rank, which `rank` gets as 1 + rank; 0: there is none. */
static bool split_name(struct parser *parser, const struct node *value, struct node *name,
                       int *rank)
{
    int found = 0;
    const char *rest = NULL;
    *name = *value;
    *rank = 0;
    if (value->kind != NODE_SCALAR || !thread_name_rank(value->text, &found, &rest))
        return true;
    if (found >= parser->plan->ranks)
        return parse_error(parser, value->mark,
                           "found \"%s\" of rank %d, expected a rank from 0 to %d", value->text,
                           found, parser->plan->ranks - 1);
    name->text = rest;
    name->length = strlen(rest);
    *rank = found + 1;
    return true;
}

bool field_event(PARSE_PARAMS)
{
    struct host_op *op = member;
    struct node name;
    if (!split_name(parser, value, &name, &op->object_rank))
        return false;
    op->object = symbol_resolve(parser, field->table, &name);
    return op->object >= 0;
}

bool field_own(PARSE_PARAMS)
{
    struct node name;
    int rank;
    if (!split_name(parser, value, &name, &rank))
        return false;
    if (rank > 0)
        return parse_error(
            parser, value->mark,
            "found \"%s\", expected a name without a rank: what is done to it is done "
            "on its own device (\"device: %d\")",
            value->text, rank - 1);
    return field_symbol(parser, value, member, field);
}

bool field_buffers(PARSE_PARAMS)
{
    struct index_list list = {0};
    if (!parse_want_list(parser, value, "a list of names"))
        return false;
    list.items = value->length ? ARENA_ARRAY(&parser->plan->arena, value->length, int) : NULL;
    list.ranks = value->length ? ARENA_ARRAY(&parser->plan->arena, value->length, int) : NULL;
    if (value->length && (!list.items || !list.ranks))
        return parse_no_memory(parser);
    bool ok = true;
    LIST_EACH (value, item) {
        struct node name;
        int rank, index = -1;
        if (split_name(parser, item, &name, &rank))
            index = symbol_resolve(parser, field->table, &name);
        ok &= index >= 0;
        if (index < 0)
            continue;
        list.ranks[list.count] = rank;
        list.items[list.count++] = index;
    }
    *(struct index_list *)member = list;
    return ok;
}

/* ---- after a thread is read ------------------------------------------------------------------ */

/* Forget ranks that are the operation's own. True if another rank's are among them. */
static bool settle_list(struct index_list *list, int own)
{
    bool others = false;
    for (size_t i = 0; list->ranks && i < list->count; i++) {
        list->ranks[i] = list->ranks[i] == own + 1 ? 0 : list->ranks[i];
        others |= list->ranks[i] > 0;
    }
    if (!others)
        list->ranks = NULL;
    return others;
}

static bool parse_devices_check_call(struct parser *parser, const struct host_op *op)
{
    bool devices = op->device > 0;
    for (size_t i = 0; i < host_op_part_count(op); i++)
        devices |= op->parts[i].device > 0;
    return !devices || !host_op_process_group(op) ||
           parse_error(parser, op->mark,
                       "found \"device\" in a call with \"async\", expected the device of its "
                       "thread: a process group has one rank in a process");
}

static bool parse_devices_check_copy(struct parser *parser, const struct host_op *op, bool others)
{
    const struct stream_spec *legacy = plan_legacy_stream(parser->plan);
    return op->kind != OP_COPY || !others || !legacy || legacy->stream != op->stream ||
           parse_error(
               parser, op->mark,
               "found a copy between devices on the legacy default stream, expected another "
               "stream: there it would wait for all work of both devices");
}

/* `home`: the rank of the thread; `around`: the operation whose body this is in, or NULL. */
static bool settle_op(struct parser *parser, int home, const struct host_op *around,
                      struct host_op *op)
{
    if (around) {
        op->device = around->device;
        if (around->device > 0 && op_operand(op->kind) == OPERAND_TURN)
            return parse_error(parser, op->mark,
                               "found \"%s\" in a callback on another device, expected it on the "
                               "device of its thread: turns belong to a rank",
                               op_key(op->kind));
    }
    op->device = op->device == home + 1 ? 0 : op->device;
    int rank = host_op_rank(op, home);
    bool others = op->accesses && settle_list(&op->accesses->reads, rank);
    others |= op->accesses && settle_list(&op->accesses->writes, rank);
    op->object_rank = op->object_rank == rank + 1 ? 0 : op->object_rank;
    for (size_t i = 0; i < host_op_part_count(op); i++) {
        struct p2p_part *part = &op->parts[i];
        part->device = part->device == rank + 1 ? 0 : part->device;
        settle_list(&part->reads, p2p_part_rank(op, part, home));
        settle_list(&part->writes, p2p_part_rank(op, part, home));
    }
    bool ok = parse_devices_check_call(parser, op) && parse_devices_check_copy(parser, op, others);
    for (size_t i = 0; i < host_op_body_count(op); i++)
        ok &= settle_op(parser, home, op, &op->body[i]);
    return ok;
}

bool parse_settle_devices(struct parser *parser, struct host_thread *thread)
{
    bool ok = true;
    for (size_t i = 0; i < thread->op_count; i++)
        ok &= settle_op(parser, thread->rank, NULL, &thread->ops[i]);
    return ok;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static bool names_rank(const struct index_list *list)
{
    for (size_t i = 0; list->ranks && i < list->count; i++)
        if (list->ranks[i] > 0)
            return true;
    return false;
}

bool parse_check_graph_device(struct parser *parser, const struct host_op *op)
{
    bool named = op->device > 0 || op->object_rank > 0 || names_rank(host_op_reads(op)) ||
                 names_rank(host_op_writes(op));
    for (size_t i = 0; i < host_op_part_count(op); i++)
        named |= op->parts[i].device > 0 || names_rank(&op->parts[i].reads) ||
                 names_rank(&op->parts[i].writes);
    return !named || parse_error(parser, op->mark,
                                 "found another device in a graph, expected \"device\" where it is "
                                 "launched: a graph is captured on one device");
}
