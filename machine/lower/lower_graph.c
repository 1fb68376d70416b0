/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower_graph.c - the launch of a graph: its piece of work once more, on streams of its own.
 *
 *     record begin on s;  each stream of the graph waits for it, and for the end of the last launch
 *     the operations of the graph
 *     each stream of the graph records its end, s waits for it
 *
 * CUDA: "Only one instance of graphExec may be executing at a time. Each launch is ordered behind both any
 * previous work in stream and any previous launches of graphExec" (cudaGraphLaunch). An end that was never
 * recorded holds nothing: there was no launch before.
 */
#include "lower.h"

static void emit_mark(struct lowering *lowering, enum op_kind kind, int rank, int event, int stream,
                      struct mark mark)
{
    int on = lower_stream(lowering, rank, stream);
    lower_legacy_begin(lowering, rank, stream, false, mark);
    struct op *op = lower_emit(lowering, kind, mark);
    op->object = rank * (int)lowering->plan->events.count + event;
    op->stream = on;
    lower_legacy_end(lowering, rank, stream, false, mark);
}

static void emit_begin(struct lowering *lowering, int rank, const struct graph *graph, int stream,
                       struct mark mark)
{
    emit_mark(lowering, OP_RECORD, rank, graph->begin, stream, mark);
    for (size_t i = 0; i < graph->stream_count; i++) {
        emit_mark(lowering, OP_WAIT, rank, graph->begin, graph->streams[i].stream, mark);
        for (size_t k = 0; k < graph->stream_count; k++)
            if (k != i)
                emit_mark(lowering, OP_WAIT, rank, graph->streams[k].end, graph->streams[i].stream,
                          mark);
    }
}

static void emit_end(struct lowering *lowering, int rank, const struct graph *graph, int stream,
                     struct mark mark)
{
    for (size_t i = 0; i < graph->stream_count; i++) {
        emit_mark(lowering, OP_RECORD, rank, graph->streams[i].end, graph->streams[i].stream, mark);
        emit_mark(lowering, OP_WAIT, rank, graph->streams[i].end, stream, mark);
    }
}

static int own_stream(const struct graph *graph, int stream)
{
    size_t at = 0;
    while (graph->streams[at].of != stream)
        at++;
    return graph->streams[at].stream;
}

/* Do several threads of a rank launch the graph? Their pushes must not mix. */
static bool is_shared(const struct plan *plan, int rank, int graph)
{
    int threads = 0;
    for (size_t t = 0; t < plan->thread_count; t++) {
        bool launches = false;
        for (size_t i = 0; i < plan->threads[t].op_count; i++) {
            const struct host_op *op = &plan->threads[t].ops[i];
            launches |= op->is_graph && op->graph == graph &&
                        host_op_rank(op, plan->threads[t].rank) == rank;
        }
        threads += launches;
    }
    return threads > 1;
}

enum status lower_graph(struct lowering *lowering, int home, const struct host_op *launch)
{
    int rank = host_op_rank(launch, home);
    const struct graph *graph = &lowering->plan->graphs[launch->graph];
    if (is_shared(lowering->plan, rank, launch->graph))
        return plan_error_at(lowering->plan, lowering->diag, launch->mark,
                             "found graph %s launched by several threads of rank %d, expected one: "
                             "graphs are not synchronised between threads",
                             graph->name, rank);
    emit_begin(lowering, rank, graph, launch->stream, launch->mark);
    struct host_op *ops = ARENA_ARRAY(&lowering->program->arena, graph->op_count, struct host_op);
    enum status status = ops ? STATUS_OK : diag_no_memory(lowering->diag);
    for (size_t i = 0; status == STATUS_OK && i < graph->op_count; i++) {
        ops[i] = graph->ops[i];
        ops[i].stream = own_stream(graph, graph->ops[i].stream);
        ops[i].device = launch->device;
        if (graph->events[i] >= 0)
            ops[i].object = graph->events[i];
        status = lower_host_op(lowering, home, &ops[i]);
    }
    emit_end(lowering, rank, graph, launch->stream, launch->mark);
    return status;
}
