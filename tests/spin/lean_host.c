/* SPDX-License-Identifier: Apache-2.0 */
/* lean_host.c - see lean.h: the processes of workers. */
#include "lean.h"

static void put_room(const struct lean *m, int stream)
{
    put(m, "len_%d - lead_%d < %d", stream, stream, m->p->streams[stream].cap);
}

/* A step without effect, such as work of the host: an exact model alone takes it. The text of each
   step but the last ends with a semicolon. */
static void put_no_effect(const struct lean *m)
{
    if (m->exact)
        put(m, "step;");
}

/* A wait takes a place in the launch queue, unless it looks before the first iteration. */
static void put_wait(const struct lean *m, const struct op *op, int rank)
{
    if (!lean_is_bounded(m->p, op->stream)) {
        put_no_effect(m);
        return;
    }
    put(m, "d_step { ");
    if (op->distance == 0) {
        put_room(m, op->stream);
        put(m, " -> len_%d++ };", op->stream);
        return;
    }
    lean_put_of(m, "submitted", rank, op->task);
    put(m, " < %d || ", op->distance);
    put_room(m, op->stream);
    put(m, " ->\n         if :: ");
    lean_put_of(m, "submitted", rank, op->task);
    put(m, " >= %d -> len_%d++ :: else fi };", op->distance, op->stream);
}

static void put_launch(const struct lean *m, const struct op *op)
{
    bool busy = lean_counts_busy(m->p, op->stream), bounded = lean_is_bounded(m->p, op->stream);
    if (busy || bounded)
        put(m, "d_step { ");
    if (bounded) {
        put_room(m, op->stream);
        put(m, " -> len_%d++; ", op->stream);
    }
    if (busy)
        put(m, "busy_%d++; ", op->stream);
    put(m, "items_%d!", op->stream);
    lean_put_task(m, op->task);
    put(m, busy || bounded ? " };" : ";");
}

/* The event is reached at once if all before it is done. */
static void put_record(const struct lean *m, const struct op *op, int rank)
{
    int stream = op->stream;
    put(m, "d_step { ");
    if (lean_is_bounded(m->p, stream)) {
        put_room(m, stream);
        put(m, " -> len_%d++; ", stream);
    }
    if (lean_work(m->p, rank, op->task)) {
        lean_put_of(m, "recorded", rank, op->task);
        put(m, "++;\n         if :: late_%d -> late_%d = 0; ", stream, stream);
        if (lean_is_bounded(m->p, stream))
            put(m, "len_%d--; ", stream);
        lean_put_of(m, "reached", rank, op->task);
        put(m, "++ :: else fi };");
        return;
    }
    put(m, "if :: !busy_%d -> ", stream);
    lean_put_of(m, "reached", rank, op->task);
    put(m, "++ :: else -> busy_%d++; items_%d!", stream, stream);
    lean_put_task(m, op->task);
    put(m, " fi };");
}

/* A stream is empty when nothing is launched on it and the waits already pushed for the next launch
   are over. */
static void put_sync(const struct lean *m, const struct op *op, int rank)
{
    const struct program *p = m->p;
    const struct body *body = lean_body(p, rank, op->task);
    put(m, "(true");
    for (int s = 0; s < p->stream_count; s++)
        if (op->sync == SYNC_DEVICE ? p->streams[s].rank == rank : s == op->stream)
            put(m, " && !busy_%d", s);
    for (int k = 0; k < body->count; k++) {
        const struct op *wait = &p->ops[body->first + k];
        if (wait->kind != OP_WAIT || !lean_waits_across(p, wait))
            continue;
        put(m, " && ");
        lean_put_ahead(m, "reached", rank, wait->object % p->tasks, wait->distance, "submitted",
                       op->task);
    }
    put(m, ");");
}

static void put_ticket(const struct lean *m, const struct op *op, int rank)
{
    const struct program *p = m->p;
    if (p->driver == DRIVER_CLOCK) {
        put_no_effect(m);
        return;
    }
    put(m, "(served_%d == ", rank);
    lean_put_of(m, "submitted", rank, op->task);
    put(m, " * %d + %d);", p->ordered_tasks[rank], p->ticket_position[rank * p->tasks + op->task]);
}

static void put_complete(const struct lean *m, const struct op *op, int rank)
{
    const struct edge_list *fires = &m->p->fires[op->task];
    bool fire = m->p->driver == DRIVER_DATAFLOW && fires->count > 0;
    put(m, fire ? "d_step { " : "");
    lean_put_of(m, "submitted", rank, op->task);
    put(m, "++");
    for (int k = 0; fire && k < fires->count; k++) {
        put(m, "; ");
        lean_put_of(m, "fire", rank, fires->items[k].task);
        put(m, "()");
    }
    put(m, fire ? " }" : "");
}

static void put_host_op(const struct lean *m, const struct op *op, int rank)
{
    switch (op->kind) {
    case OP_AWAIT:
        put(m, "(");
        lean_put_ahead(m, "signalled", rank, op->object % m->p->tasks, op->distance, "submitted",
                       op->task);
        put(m, ");");
        break;
    case OP_WAIT: put_wait(m, op, rank); break;
    case OP_LAUNCH:
    case OP_COPY:
    case OP_COLLECTIVE: put_launch(m, op); break;
    case OP_RECORD: put_record(m, op, rank); break;
    case OP_SYNC: put_sync(m, op, rank); break;
    case OP_LOCK: put(m, "d_step { !lock_%d -> lock_%d = 1 };", op->object, op->object); break;
    case OP_UNLOCK: put(m, "lock_%d = 0;", op->object); break;
    case OP_TICKET: put_ticket(m, op, rank); break;
    case OP_SERVE:
        if (m->p->driver == DRIVER_CLOCK)
            put_no_effect(m);
        else
            put(m, "served_%d++;", rank);
        break;
    case OP_SIGNAL:
        if (lean_is_awaited(m->p, op->task)) {
            lean_put_of(m, "signalled", rank, op->task);
            put(m, "++;");
        } else {
            put_no_effect(m);
        }
        break;
    case OP_COMPLETE: put_complete(m, op, rank); break;
    default: put_no_effect(m); break; /* work of the host */
    }
}

void lean_put_worker(const struct lean *m, int thread)
{
    const struct program *p = m->p;
    int rank = p->threads[thread].rank;
    put(m, "  xr work_%d;\n", thread);
    for (int s = 0; s < p->stream_count; s++)
        for (int task = 0; task < p->tasks; task++)
            if (p->worker[rank * p->tasks + task] == thread && lean_stream(p, rank, task) == s &&
                lean_is_exclusive(m, s)) {
                put(m, "  xs items_%d;\n", s);
                break;
            }
    for (int task = 0; task < p->tasks; task++)
        if (p->worker[rank * p->tasks + task] == thread && lean_signal_is_local(p, rank, task)) {
            put(m, "  byte ");
            lean_put_of(m, "signalled", rank, task);
            put(m, ";\n");
        }
    put(m, "end:\n  do\n");
    for (int task = 0; task < p->tasks; task++) {
        if (p->worker[rank * p->tasks + task] != thread)
            continue;
        put(m, "  :: work_%d?", thread);
        lean_put_task(m, task);
        put(m, " ->\n");
        const struct body *body = lean_body(p, rank, task);
        for (int k = 0; k < body->count; k++) {
            const struct op *op = &p->ops[body->first + k];
            put(m, "     ");
            put_host_op(m, op, rank);
            promela_put_op_comment(&m->model, op);
            put(m, "\n");
        }
    }
    put(m, "  od\n");
}
