/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse_graphs.c - graphs of host programs: pieces of work that are captured once and launched again.
 *
 *     graphs := {name: [operation, ...], ...}
 *
 * Work that CUDA refuses to capture is refused here: work that ends outside of the stream in which the capture began,
 * streams that do not fork from it, waits for events of other work ("Prohibited and Unhandled Operations",
 * CUDA programming guide). The streams and events of a graph are its own; external events are those of the plan, which each
 * launch records or waits for (cudaEventRecordExternal, cudaEventWaitExternal).
 */

#include "text_internal.h"
#include "base/assert_index.h"

static bool fits_in_graph(const struct host_op *op)
{
    bool event = op->kind == OP_RECORD || op->kind == OP_WAIT;
    bool work = op_is_device_work(op->kind) && host_op_body_count(op) == 0 && !host_op_is_graph(op);
    return event || (work && !host_op_is_pageable(op) && !host_op_process_group(op));
}

static bool parse_graphs_check_kinds(struct parser *parser, const struct graph *graph)
{
    for (size_t i = 0; i < graph->op_count; i++)
        if (!fits_in_graph(&graph->ops[i]))
            return parse_error(
                parser, graph->ops[i].mark,
                "found \"%s\" in a graph, expected launches, copies, collectives and "
                "groups that block no thread, records and waits",
                op_key(graph->ops[i].kind));
    for (size_t i = 0; i < graph->op_count; i++)
        if (!parse_check_graph_device(parser, &graph->ops[i]))
            return false;
    for (size_t i = 0; i < graph->op_count; i++)
        for (size_t k = 0; k < host_op_part_count(&graph->ops[i]); k++)
            if (graph->ops[i].parts[k].stream >= 0)
                return parse_error(
                    parser, graph->ops[i].parts[k].mark,
                    "found a stream of a part in a graph, expected that of the group");
    return true;
}

/* The last record before operation `at` of the event that it waits for, or -1. */
static int record_before(const struct graph *graph, size_t at)
{
    ASSERT_INDEX(at, graph->op_count);
    for (size_t i = at; i-- > 0;)
        if (graph->ops[i].kind == OP_RECORD && !graph->ops[i].external &&
            graph->ops[i].object == graph->ops[at].object)
            return (int)i;
    return -1;
}

static bool check_forks(struct parser *parser, const struct graph *graph)
{
    for (size_t i = 0; i < graph->op_count; i++) {
        const struct host_op *op = &graph->ops[i];
        bool first = op->stream != graph->ops[0].stream;
        for (size_t k = 0; first && k < i; k++)
            first = graph->ops[k].stream != op->stream;
        if (first && (op->kind != OP_WAIT || op->external))
            return parse_error(
                parser, op->mark,
                "found another stream in the graph, expected it to wait first for an "
                "event of the graph: else it is not captured");
        if (op->kind == OP_WAIT && !op->external && record_before(graph, i) < 0)
            return parse_error(
                parser, op->mark,
                "found a wait for an event that the graph has not recorded, expected "
                "one of its own, or external: captured work cannot wait for other work");
    }
    return true;
}

/* From the end backwards: a stream is joined before a record that a joined stream waits for. */
static bool check_joins(struct parser *parser, const struct graph *graph)
{
    bool *awaited = ARENA_ARRAY(&parser->scratch, graph->op_count, bool);
    bool *joined = ARENA_ARRAY(&parser->scratch, parser->plan->streams.count, bool);
    if (!awaited || !joined)
        return parse_no_memory(parser);
    joined[graph->ops[0].stream] = true;
    for (size_t i = graph->op_count; i-- > 0;) {
        const struct host_op *op = &graph->ops[i];
        joined[op->stream] |= awaited[i];
        if ((op_is_stream_work(op->kind) || host_op_is_external(op)) && !joined[op->stream])
            return parse_error(parser, op->mark,
                               "found work that the first stream of the graph does not wait for, "
                               "expected every stream to be joined at the end");
        if (op->kind == OP_WAIT && !op->external && joined[op->stream])
            awaited[record_before(graph, i)] = true;
    }
    return true;
}

static int own_name(struct parser *parser, enum symbol_table table, const struct graph *graph,
                    const char *of)
{
    const char *name = arena_printf(&parser->scratch, "%s.%s", graph->name, of);
    return name ? symbol_implicit(parser, table, name) : -1;
}

/* The streams of a graph in the order of their first use, and what stands for each of them. */
static bool name_streams(struct parser *parser, struct graph *graph)
{
    struct plan *plan = parser->plan;
    graph->streams = ARENA_ARRAY(&plan->arena, graph->op_count, struct graph_stream);
    if (!graph->streams)
        return parse_no_memory(parser);
    for (size_t i = 0; i < graph->op_count; i++) {
        int stream = graph->ops[i].stream;
        size_t at = 0;
        while (at < graph->stream_count && graph->streams[at].of != stream)
            at++;
        if (at < graph->stream_count)
            continue;
        const char *name = plan->streams.items[stream];
        const char *end = arena_printf(&parser->scratch, "end.%s", name);
        struct graph_stream *own = &graph->streams[graph->stream_count++];
        own->of = stream;
        own->stream = own_name(parser, TABLE_STREAMS, graph, name);
        own->end = end ? own_name(parser, TABLE_EVENTS, graph, end) : -1;
        if (own->stream < 0 || own->end < 0)
            return false;
    }
    return true;
}

static bool name_events(struct parser *parser, struct graph *graph)
{
    struct plan *plan = parser->plan;
    graph->begin = own_name(parser, TABLE_EVENTS, graph, "begin");
    graph->events = ARENA_ARRAY(&plan->arena, graph->op_count, int);
    if (!graph->events)
        return parse_no_memory(parser);
    for (size_t i = 0; i < graph->op_count; i++) {
        bool event =
            op_operand(graph->ops[i].kind) == OPERAND_EVENT && !host_op_is_external(&graph->ops[i]);
        graph->events[i] =
            event ? own_name(parser, TABLE_EVENTS, graph, plan->events.items[graph->ops[i].object])
                  : -1;
        if (event && graph->events[i] < 0)
            return false;
    }
    return graph->begin >= 0;
}

static void parse_graph(struct parser *parser, const struct node *key, const struct node *value,
                        struct graph *graph)
{
    *graph = (struct graph){.mark = key->mark};
    if (!parse_name(parser, key, "a graph's name"))
        return;
    graph->name = parser->thread = parse_keep(parser, key->text);
    if (!graph->name)
        return;
    if (value->kind != NODE_LIST || value->length == 0) {
        parse_mismatch(parser, value, "a list of operations");
        return;
    }
    if (!parse_graph_ops(parser, value, graph) || !parse_graphs_check_kinds(parser, graph))
        return;
    if (check_forks(parser, graph) && check_joins(parser, graph) && name_streams(parser, graph))
        name_events(parser, graph);
}

void parse_graphs(struct parser *parser, const struct node *value)
{
    struct plan *plan = parser->plan;
    if (!value)
        return;
    if (value->kind != NODE_MAP || value->length == 0) {
        parse_mismatch(parser, value, "a mapping from graphs to lists of operations");
        return;
    }
    plan->graphs = PARSE_ARRAY(parser, value->length, struct graph);
    if (!plan->graphs)
        return;
    READ_MAP (parser, value, key, ops)
        parse_graph(parser, key, ops, &plan->graphs[plan->graph_count++]);
}
