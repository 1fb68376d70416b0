/* SPDX-License-Identifier: Apache-2.0 */
/* lean_device.c - see lean.h: the processes of streams and communicators. */
#include "lean.h"

/* ---- streams --------------------------------------------------------------------------------- */

/* "all waits of T(i) on other streams are over". */
static void put_waits_over(const struct lean *m, int rank, int task)
{
    const struct body *body = lean_body(m->p, rank, task);
    for (int k = 0; k < body->count; k++) {
        const struct op *wait = &m->p->ops[body->first + k];
        if (wait->kind != OP_WAIT || !lean_waits_across(m->p, wait))
            continue;
        put(m, " && ");
        lean_put_ahead(m, "reached", rank, wait->object % m->p->tasks, wait->distance, "reached",
                       task);
    }
}

static bool has_waits_across(const struct program *p, int rank, int task)
{
    const struct body *body = lean_body(p, rank, task);
    for (int k = 0; k < body->count; k++)
        if (p->ops[body->first + k].kind == OP_WAIT &&
            lean_waits_across(p, &p->ops[body->first + k]))
            return true;
    return false;
}

/* "len = len - waits": waits leave the launch queue when the work behind them starts. */
static void put_pop_waits(const struct lean *m, int stream, int rank, int task)
{
    const struct body *body = lean_body(m->p, rank, task);
    bool any = false;
    for (int k = 0; k < body->count; k++)
        any |= m->p->ops[body->first + k].kind == OP_WAIT;
    put(m, "; run_%d = 1", stream);
    if (!any)
        return;
    put(m, "; len_%d = len_%d", stream, stream);
    for (int k = 0; k < body->count; k++) {
        const struct op *wait = &m->p->ops[body->first + k];
        if (wait->kind != OP_WAIT)
            continue;
        if (wait->distance == 0) {
            put(m, " - 1");
            continue;
        }
        put(m, " - (");
        lean_put_of(m, "reached", rank, task);
        put(m, " >= %d)", wait->distance);
    }
}

/* The end of the work of T(i), and the items that take effect with it. */
static void put_finish(const struct lean *m, int stream, int rank, int task)
{
    bool bounded = lean_is_bounded(m->p, stream);
    if (bounded)
        put(m, "run_%d = 0; len_%d--; ", stream, stream);
    if (lean_counts_busy(m->p, stream))
        put(m, "busy_%d--; ", stream);
    put(m, "if :: ");
    lean_put_of(m, "recorded", rank, task);
    put(m, " > ");
    lean_put_of(m, "reached", rank, task);
    put(m, " -> ");
    lean_put_of(m, "reached", rank, task);
    put(m, "++");
    if (bounded)
        put(m, "; len_%d--", stream);
    put(m, " :: else -> late_%d = 1 fi", stream);
    for (int other = 0; other < m->p->tasks; other++)
        if (lean_stream(m->p, rank, other) == stream && !lean_work(m->p, rank, other)) {
            put(m, ";\n         pass_%d(); skip", stream); /* a loop cannot end a d_step */
            break;
        }
}

void lean_put_pass(const struct lean *m, int stream)
{
    const struct program *p = m->p;
    int rank = p->streams[stream].rank;
    bool any = false;
    for (int task = 0; task < p->tasks; task++) {
        if (lean_stream(p, rank, task) != stream || lean_work(p, rank, task))
            continue;
        if (!any)
            put(m,
                "inline pass_%d() { /* records of work of the host, now at the head */\n"
                "  do\n",
                stream);
        any = true;
        put(m, "  :: items_%d?[", stream);
        lean_put_task(m, task);
        put(m, "] -> items_%d?_; busy_%d--; ", stream, stream);
        lean_put_of(m, "reached", rank, task);
        put(m, "++\n");
    }
    if (any)
        put(m, "  :: else -> break\n  od\n}\n");
}

/* "(the event of the wait has happened -> 1", left open; 0 for a wait before the first iteration. */
static void put_lead_wait(const struct lean *m, const struct op *wait, int rank)
{
    put(m, "(");
    if (lean_waits_across(m->p, wait))
        lean_put_ahead(m, "reached", rank, wait->object % m->p->tasks, wait->distance, "reached",
                       wait->task);
    else
        put(m, "true");
    put(m, " -> ");
    if (wait->distance == 0) {
        put(m, "1");
        return;
    }
    put(m, "(");
    lean_put_of(m, "reached", rank, wait->task);
    put(m, " >= %d)", wait->distance);
}

/* The waits of a task in their order: each counts only behind those before it. */
static void put_lead_task(const struct lean *m, int stream, int rank, int task)
{
    const struct body *body = lean_body(m->p, rank, task);
    int open = 0;
    for (int k = 0; k < body->count; k++) {
        const struct op *wait = &m->p->ops[body->first + k];
        if (wait->kind != OP_WAIT)
            continue;
        if (open++ == 0) {
            put(m, " \\\n  + (items_%d?[", stream);
            lean_put_task(m, task);
            put(m, "] -> ");
            open++;
        } else {
            put(m, " + ");
        }
        put_lead_wait(m, wait, rank);
    }
    for (int k = 0; k < open; k++)
        put(m, " : 0)");
}

void lean_put_lead(const struct lean *m, int stream)
{
    int rank = m->p->streams[stream].rank;
    put(m, "#define lead_%d (run_%d -> 0 : 0", stream, stream);
    for (int task = 0; task < m->p->tasks; task++)
        if (lean_stream(m->p, rank, task) == stream)
            put_lead_task(m, stream, rank, task);
    put(m, ")\n");
}

/* Two members are in collectives that do not match: the run is over. */
static void put_agree(const struct lean *m, const struct op *op, int rank)
{
    const struct comm_desc *comm = &m->p->comms[op->comm];
    for (int k = 0; k < comm->count; k++) {
        int other = comm->first_member + k;
        if (k == op->member)
            continue;
        put(m, ";\n         agree(!current_%d || (current_%d == %d && ", other, other,
            promela_collective_number(m->p, op));
        lean_put_of(m, "reached", comm->members[k], op->task);
        put(m, " == ");
        lean_put_of(m, "reached", rank, op->task);
        put(m, "))");
    }
}

/* A collective stays at the head until its communicator completes it. */
static void put_collective(const struct lean *m, const struct op *op, int stream, int rank)
{
    int member = promela_member(m->p, op);
    put(m, "  :: d_step { !current_%d && items_%d?[", member, stream);
    lean_put_task(m, op->task);
    put(m, "]");
    put_waits_over(m, rank, op->task);
    put(m, " ->\n         current_%d = %d", member, promela_collective_number(m->p, op));
    if (lean_is_bounded(m->p, stream))
        put_pop_waits(m, stream, rank, op->task);
    put_agree(m, op, rank);
    put(m, " }");
    promela_put_op_comment(&m->model, op);
    put(m, "\n");
}

static void put_work(const struct lean *m, const struct op *op, int stream, int rank)
{
    int member = lean_stream_member(m->p, stream), task = op->task;
    bool guarded =
        has_waits_across(m->p, rank, task) || member >= 0 || lean_is_bounded(m->p, stream);
    put(m, "  :: ");
    if (guarded && lean_is_exclusive(m, stream)) { /* a process that looks is no exclusive reader */
        put(m, "items_%d?", stream);
        lean_put_task(m, task);
        put(m, " -> (true");
        put_waits_over(m, rank, task);
        put(m, ")");
        guarded = false;
    } else if (guarded) {
        put(m, "d_step { items_%d?[", stream);
        lean_put_task(m, task);
        put(m, "]");
        if (member >= 0)
            put(m, " && !current_%d", member);
        put_waits_over(m, rank, task);
        put(m, " -> items_%d?", stream);
        lean_put_task(m, task);
    } else {
        put(m, "items_%d?", stream);
        lean_put_task(m, task);
    }
    if (lean_is_bounded(m->p, stream))
        put_pop_waits(m, stream, rank, task);
    put(m, "%s ->", guarded ? " }" : "");
    promela_put_op_comment(&m->model, op);
    put(m, "\n     d_step { ");
    put_finish(m, stream, rank, task);
    put(m, " }\n");
}

void lean_put_stream(const struct lean *m, int stream)
{
    const struct program *p = m->p;
    int rank = p->streams[stream].rank;
    if (lean_is_exclusive(m, stream))
        put(m, "  xr items_%d;\n", stream);
    put(m, "end:\n  do\n");
    for (int task = 0; task < p->tasks; task++) {
        const struct op *work = lean_work(p, rank, task);
        if (lean_stream(p, rank, task) != stream || !work)
            continue;
        if (work->kind == OP_COLLECTIVE)
            put_collective(m, work, stream, rank);
        else
            put_work(m, work, stream, rank);
    }
    put(m, "  od\n");
}

bool lean_stream_works(const struct program *p, int stream)
{
    int rank = p->streams[stream].rank;
    for (int task = 0; task < p->tasks; task++)
        if (lean_stream(p, rank, task) == stream && lean_work(p, rank, task))
            return true;
    return false;
}

/* ---- communicators --------------------------------------------------------------------------- */

/* "all members are in a collective -> finish it on all of them". */
void lean_put_comm(const struct lean *m, int index)
{
    const struct program *p = m->p;
    const struct comm_desc *comm = &p->comms[index];
    put(m, "end:\n  do\n");
    for (int task = 0; task < p->tasks; task++) {
        const struct op *first = lean_work(p, comm->members[0], task);
        if (!first || first->kind != OP_COLLECTIVE || first->comm != index)
            continue;
        put(m, "  :: d_step { (true");
        for (int k = 0; k < comm->count; k++)
            put(m, " && current_%d == %d", comm->first_member + k,
                promela_collective_number(p, first));
        put(m, ") ->");
        for (int k = 0; k < comm->count; k++) {
            int rank = comm->members[k], stream = lean_stream(p, rank, task);
            put(m, "\n         current_%d = 0; items_%d?_; ", comm->first_member + k, stream);
            put_finish(m, stream, rank, task);
            put(m, "%s", k + 1 < comm->count ? ";" : "");
        }
        put(m, " }");
        promela_put_op_comment(&m->model, first);
        put(m, "\n");
    }
    put(m, "  od\n");
}

bool lean_comm_is_used(const struct program *p, int index)
{
    for (size_t k = 0; k < p->op_count; k++)
        if (p->ops[k].kind == OP_COLLECTIVE && p->ops[k].comm == index)
            return true;
    return false;
}
