/*
 * promela_plain.c - plain pipelines in Promela: the leanest model that takes the machine's steps.
 *
 * A pipeline is plain (promela_is_plain) when none of the knobs is turned that let an instance meet
 * an iteration it does not mean, and no two threads share a stream. Then the instances of a task
 * are handed out, taken, submitted and done on the device in the order of their iterations, and
 * everything a state holds is a count (in bytes) or a queue of tasks:
 *
 *     work_W         tasks handed to worker W          signalled_T   CPU signals of T set
 *     items_S        tasks launched on stream S        recorded_T    records of T pushed
 *     period,        the driver, where it stands       reached_T     events of T reached
 *     admitted,                                        submitted_T   instances of T submitted
 *     oldest                                           fired_T       (data-flow) handed out
 *
 * The iteration of an instance is not stored. A worker that is at T is at iteration submitted_T of
 * it; a stream whose head is T is at iteration reached_T. So "the signal of D(i - d) is set", looked
 * at by T(i), is signalled_D + d > submitted_T: true by itself where i < d.
 *
 * What takes effect at once at the head of a stream has no step: a wait is a guard of the start of
 * the work behind it; a record takes effect with the end of the work before it, or, if the host
 * comes late, when it is pushed (late_S: the work is done, its record not pushed yet).
 *
 * Under `retire: submit` the launch queue may bound the host, and it counts items: len_S is their
 * number, with the waits of the head among them until it starts; lead_S is how many of these the
 * machine has let pass already, because their events have happened.
 *
 * So every state here is one state of machine/machine.c and the reverse; tests/t_spin.sh counts both.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "promela.h"

enum { BYTE_MAX = 255, NOBODY = -1, MANY = -2 };

/* ---- is it plain? ---------------------------------------------------------------------------- */

static bool knobs_are_plain(const struct program *p)
{
    const struct pipeline *pipeline = &p->plan->pipeline;
    const struct machine_spec *machine = &p->plan->machine;
    return p->slots_safe && pipeline->retired_dep == RETIRED_DEP_WAIT &&
           pipeline->forget_done == FORGET_NEVER && pipeline->ticket_at == TICKET_AT_ITERATION &&
           machine->sm_slots == 0 && p->hw_queue_count == 0 && machine->launch_queue == 0 &&
           !machine->first_use_blocks && !machine->launch_order_implicit && !machine->lazy_load;
}

static bool counts_fit(const struct program *p)
{
    for (int rank = 0; rank < p->ranks; rank++)
        if (p->ends[rank] < 1 || p->ends[rank] + p->periods + p->depth >= BYTE_MAX)
            return false;
    return p->tasks < BYTE_MAX;
}

static bool waits_across(const struct program *p, const struct op *wait)
{
    return promela_record(p, wait->object)->stream != wait->stream;
}

/* Work of the host pushes a record and no work: it must be able to take effect with what is before
   it, so nothing of another stream may hold it up. */
static bool body_is_plain(const struct program *p, int rank, int task)
{
    const struct body *body = &p->bodies[rank * p->tasks + task];
    bool works = false, waits = false;
    for (int k = 0; k < body->count; k++) {
        const struct op *op = &p->ops[body->first + k];
        if (op->kind == OP_GROUP || (op->kind == OP_SYNC && op->sync == SYNC_LOAD))
            return false;
        if (op->kind == OP_SYNC && op->sync == SYNC_DEVICE && promela_workers(p, rank) > 1)
            return false;
        works |= op->kind == OP_LAUNCH || op->kind == OP_COPY || op->kind == OP_COLLECTIVE;
        waits |= op->kind == OP_WAIT && waits_across(p, op);
    }
    return works || (!waits && p->plan->pipeline.retire == RETIRE_DEVICE);
}

static void note(int *user, int who)
{
    *user = *user == NOBODY || *user == who ? who : MANY;
}

/* One worker pushes to each stream; one stream serves each member of a communicator; one worker
   takes the tickets of a rank, which then are always its turn (data-flow can tell them otherwise). */
static bool users_are_single(const struct program *p)
{
    bool single = true;
    for (int s = 0; s < p->stream_count; s++) {
        int pusher = NOBODY;
        for (int k = 0; k < p->ranks * p->tasks; k++)
            if (promela_record(p, k)->stream == s)
                note(&pusher, p->worker[k]);
        single &= pusher != MANY;
    }
    for (int member = 0; member < p->member_count; member++) {
        int stream = NOBODY;
        for (size_t k = 0; k < p->op_count; k++)
            if (p->ops[k].kind == OP_COLLECTIVE && promela_member(p, &p->ops[k]) == member)
                note(&stream, p->ops[k].stream);
        single &= stream != MANY;
    }
    for (int rank = 0; rank < p->ranks && p->driver == DRIVER_CLOCK; rank++) {
        int taker = NOBODY;
        for (int task = 0; task < p->tasks; task++)
            if (p->ticket_position[rank * p->tasks + task] >= 0)
                note(&taker, p->worker[rank * p->tasks + task]);
        single &= taker != MANY;
    }
    return single;
}

bool promela_is_plain(const struct program *p)
{
    if (p->tasks == 0 || !knobs_are_plain(p) || !counts_fit(p) || !users_are_single(p))
        return false;
    for (int k = 0; k < p->ranks * p->tasks; k++)
        if (!body_is_plain(p, k / p->tasks, k % p->tasks))
            return false;
    return true;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* A task's name as a word of Promela. Returns buf. */
static const char *word_of(const char *name, char *buf, size_t cap)
{
    size_t length = 0;
    for (; name[length] && length + 1 < cap; length++) {
        char c = name[length];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        buf[length] = good ? c : '_';
    }
    buf[length] = '\0';
    return buf;
}

enum { WORD = 48 };

/* Do two tasks become the same word? Then all of them are numbered instead. */
static bool words_clash(const struct program *p)
{
    char a[WORD], b[WORD];
    for (int i = 0; i < p->tasks; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(word_of(p->plan->pipeline.tasks[i].name, a, sizeof a),
                       word_of(p->plan->pipeline.tasks[j].name, b, sizeof b)) == 0)
                return true;
    return false;
}

/* "what_Task", with "1_" in between on rank 1 of several. */
static void put_of(const struct model *m, const char *what, int rank, int task)
{
    char word[WORD];
    promela_put(m, "%s_", what);
    if (rank >= 0 && m->p->ranks > 1)
        promela_put(m, "%d_", rank);
    if (m->numbered)
        promela_put(m, "%d", task);
    else
        promela_put(m, "%s", word_of(m->p->plan->pipeline.tasks[task].name, word, sizeof word));
}

static void put_task(const struct model *m, int task)
{
    put_of(m, "T", -1, task);
}

/* "what_A + distance > other_B": what T(i) asks of D(i - distance). */
static void put_ahead(const struct model *m, const char *what, int rank, int on, int distance,
                      const char *other, int task)
{
    put_of(m, what, rank, on);
    if (distance)
        promela_put(m, " + %d", distance);
    promela_put(m, " > ");
    put_of(m, other, rank, task);
}

/* ---- asking the program ---------------------------------------------------------------------- */

/* Can the host fill this stream's launch queue? With few iterations there is room for them all. */
static bool is_bounded(const struct model *m, int stream)
{
    const struct program *p = m->p;
    int64_t items = 0;
    for (size_t k = 0; k < p->op_count; k++)
        items += promela_pushes(p->ops[k].kind) && p->ops[k].stream == stream;
    return p->plan->pipeline.retire == RETIRE_SUBMIT &&
           items * p->ends[p->streams[stream].rank] > p->streams[stream].cap;
}

static const struct body *body_of(const struct program *p, int rank, int task)
{
    return &p->bodies[rank * p->tasks + task];
}

/* The work a task pushes, or NULL: it works on the host. */
static const struct op *work_of(const struct program *p, int rank, int task)
{
    const struct body *body = body_of(p, rank, task);
    for (int k = 0; k < body->count; k++) {
        const struct op *op = &p->ops[body->first + k];
        if (op->kind == OP_LAUNCH || op->kind == OP_COPY || op->kind == OP_COLLECTIVE)
            return op;
    }
    return NULL;
}

static int stream_of(const struct program *p, int rank, int task)
{
    return promela_record(p, rank * p->tasks + task)->stream;
}

/* Does anybody sync with this stream, or is work of the host recorded in it? */
static bool counts_busy(const struct program *p, int stream)
{
    for (size_t k = 0; k < p->op_count; k++)
        if (p->ops[k].kind == OP_SYNC &&
            (p->ops[k].sync == SYNC_DEVICE || p->ops[k].stream == stream))
            return true;
    int rank = p->streams[stream].rank;
    for (int task = 0; task < p->tasks; task++)
        if (stream_of(p, rank, task) == stream && !work_of(p, rank, task))
            return true;
    return false;
}

/* The member that a stream's collectives act for, or -1. */
static int stream_member(const struct program *p, int stream)
{
    for (size_t k = 0; k < p->op_count; k++)
        if (p->ops[k].kind == OP_COLLECTIVE && p->ops[k].stream == stream)
            return promela_member(p, &p->ops[k]);
    return -1;
}

/* Only its worker sends to it and only its own process receives from it and looks into it. */
static bool is_exclusive(const struct model *m, int stream)
{
    return !m->exact && !is_bounded(m, stream) && !counts_busy(m->p, stream) &&
           stream_member(m->p, stream) < 0;
}

static bool is_awaited(const struct program *p, int task)
{
    return p->fires[task].count > 0;
}

/* Does only the worker that sets the signal look at it? */
static bool signal_is_local(const struct program *p, int rank, int task)
{
    const struct edge_list *fires = &p->fires[task];
    bool local = is_awaited(p, task);
    for (int k = 0; k < fires->count; k++)
        local &=
            p->worker[rank * p->tasks + fires->items[k].task] == p->worker[rank * p->tasks + task];
    return local;
}

/* ---- the host side --------------------------------------------------------------------------- */

static void put_room(const struct model *m, int stream)
{
    promela_put(m, "len_%d - lead_%d < %d", stream, stream, m->p->streams[stream].cap);
}

/* A step without effect, e.g. work of the host: only an exact model takes it. The text of a step ends
   with a semicolon unless it is the last. */
static void put_no_effect(const struct model *m)
{
    if (m->exact)
        promela_put(m, "step;");
}

/* The launch queue's place for an item of T(i); a wait that looks before the first iteration takes
   none. */
static void put_wait(const struct model *m, const struct op *op, int rank)
{
    if (!is_bounded(m, op->stream)) {
        put_no_effect(m);
        return;
    }
    promela_put(m, "d_step { ");
    if (op->distance == 0) {
        put_room(m, op->stream);
        promela_put(m, " -> len_%d++ };", op->stream);
        return;
    }
    put_of(m, "submitted", rank, op->task);
    promela_put(m, " < %d || ", op->distance);
    put_room(m, op->stream);
    promela_put(m, " ->\n         if :: ");
    put_of(m, "submitted", rank, op->task);
    promela_put(m, " >= %d -> len_%d++ :: else fi };", op->distance, op->stream);
}

static void put_launch(const struct model *m, const struct op *op)
{
    bool busy = counts_busy(m->p, op->stream), bounded = is_bounded(m, op->stream);
    if (busy || bounded)
        promela_put(m, "d_step { ");
    if (bounded) {
        put_room(m, op->stream);
        promela_put(m, " -> len_%d++; ", op->stream);
    }
    if (busy)
        promela_put(m, "busy_%d++; ", op->stream);
    promela_put(m, "items_%d!", op->stream);
    put_task(m, op->task);
    promela_put(m, busy || bounded ? " };" : ";");
}

/* The event is reached at once if all before it is done. */
static void put_record(const struct model *m, const struct op *op, int rank)
{
    int stream = op->stream;
    promela_put(m, "d_step { ");
    if (is_bounded(m, stream)) {
        put_room(m, stream);
        promela_put(m, " -> len_%d++; ", stream);
    }
    if (work_of(m->p, rank, op->task)) {
        put_of(m, "recorded", rank, op->task);
        promela_put(m, "++;\n         if :: late_%d -> late_%d = 0; ", stream, stream);
        if (is_bounded(m, stream))
            promela_put(m, "len_%d--; ", stream);
        put_of(m, "reached", rank, op->task);
        promela_put(m, "++ :: else fi };");
        return;
    }
    promela_put(m, "if :: !busy_%d -> ", stream);
    put_of(m, "reached", rank, op->task);
    promela_put(m, "++ :: else -> busy_%d++; items_%d!", stream, stream);
    put_task(m, op->task);
    promela_put(m, " fi };");
}

/* The stream is empty when nothing is launched on it and the waits in front of the launch to come
   are over. */
static void put_sync(const struct model *m, const struct op *op, int rank)
{
    const struct program *p = m->p;
    const struct body *body = body_of(p, rank, op->task);
    promela_put(m, "(true");
    for (int s = 0; s < p->stream_count; s++)
        if (op->sync == SYNC_DEVICE ? p->streams[s].rank == rank : s == op->stream)
            promela_put(m, " && !busy_%d", s);
    for (int k = 0; k < body->count; k++) {
        const struct op *wait = &p->ops[body->first + k];
        if (wait->kind != OP_WAIT || !waits_across(p, wait))
            continue;
        promela_put(m, " && ");
        put_ahead(m, "reached", rank, wait->object % p->tasks, wait->distance, "submitted",
                  op->task);
    }
    promela_put(m, ");");
}

static void put_ticket(const struct model *m, const struct op *op, int rank)
{
    const struct program *p = m->p;
    if (p->driver == DRIVER_CLOCK) {
        put_no_effect(m);
        return;
    }
    promela_put(m, "(served_%d == ", rank);
    put_of(m, "submitted", rank, op->task);
    promela_put(m, " * %d + %d);", p->ordered_tasks[rank],
                p->ticket_position[rank * p->tasks + op->task]);
}

static void put_complete(const struct model *m, const struct op *op, int rank)
{
    const struct edge_list *fires = &m->p->fires[op->task];
    bool fire = m->p->driver == DRIVER_DATAFLOW && fires->count > 0;
    promela_put(m, fire ? "d_step { " : "");
    put_of(m, "submitted", rank, op->task);
    promela_put(m, "++");
    for (int k = 0; fire && k < fires->count; k++) {
        promela_put(m, "; ");
        put_of(m, "fire", rank, fires->items[k].task);
        promela_put(m, "()");
    }
    promela_put(m, fire ? " }" : "");
}

static void put_host_op(const struct model *m, const struct op *op, int rank)
{
    switch (op->kind) {
    case OP_AWAIT:
        promela_put(m, "(");
        put_ahead(m, "signalled", rank, op->object % m->p->tasks, op->distance, "submitted",
                  op->task);
        promela_put(m, ");");
        break;
    case OP_WAIT: put_wait(m, op, rank); break;
    case OP_LAUNCH:
    case OP_COPY:
    case OP_COLLECTIVE: put_launch(m, op); break;
    case OP_RECORD: put_record(m, op, rank); break;
    case OP_SYNC: put_sync(m, op, rank); break;
    case OP_LOCK:
        promela_put(m, "d_step { !lock_%d -> lock_%d = 1 };", op->object, op->object);
        break;
    case OP_UNLOCK: promela_put(m, "lock_%d = 0;", op->object); break;
    case OP_TICKET: put_ticket(m, op, rank); break;
    case OP_SERVE:
        if (m->p->driver == DRIVER_CLOCK)
            put_no_effect(m);
        else
            promela_put(m, "served_%d++;", rank);
        break;
    case OP_SIGNAL:
        if (is_awaited(m->p, op->task)) {
            put_of(m, "signalled", rank, op->task);
            promela_put(m, "++;");
        } else {
            put_no_effect(m);
        }
        break;
    case OP_COMPLETE: put_complete(m, op, rank); break;
    default: put_no_effect(m); break; /* work of the host */
    }
}

static void put_worker(const struct model *m, int thread)
{
    const struct program *p = m->p;
    int rank = p->threads[thread].rank;
    promela_put(m, "  xr work_%d;\n", thread);
    for (int s = 0; s < p->stream_count; s++)
        for (int task = 0; task < p->tasks; task++)
            if (p->worker[rank * p->tasks + task] == thread && stream_of(p, rank, task) == s &&
                is_exclusive(m, s)) {
                promela_put(m, "  xs items_%d;\n", s);
                break;
            }
    for (int task = 0; task < p->tasks; task++)
        if (p->worker[rank * p->tasks + task] == thread && signal_is_local(p, rank, task)) {
            promela_put(m, "  byte ");
            put_of(m, "signalled", rank, task);
            promela_put(m, ";\n");
        }
    promela_put(m, "end:\n  do\n");
    for (int task = 0; task < p->tasks; task++) {
        if (p->worker[rank * p->tasks + task] != thread)
            continue;
        promela_put(m, "  :: work_%d?", thread);
        put_task(m, task);
        promela_put(m, " ->\n");
        const struct body *body = body_of(p, rank, task);
        for (int k = 0; k < body->count; k++) {
            const struct op *op = &p->ops[body->first + k];
            promela_put(m, "     ");
            put_host_op(m, op, rank);
            promela_put_op_comment(m, op);
            promela_put(m, "\n");
        }
    }
    promela_put(m, "  od\n");
}

/* ---- the device side ------------------------------------------------------------------------- */

/* All waits of T(i) on other streams are over. */
static void put_waits_over(const struct model *m, int rank, int task)
{
    const struct body *body = body_of(m->p, rank, task);
    for (int k = 0; k < body->count; k++) {
        const struct op *wait = &m->p->ops[body->first + k];
        if (wait->kind != OP_WAIT || !waits_across(m->p, wait))
            continue;
        promela_put(m, " && ");
        put_ahead(m, "reached", rank, wait->object % m->p->tasks, wait->distance, "reached", task);
    }
}

static bool has_waits_across(const struct program *p, int rank, int task)
{
    const struct body *body = body_of(p, rank, task);
    for (int k = 0; k < body->count; k++)
        if (p->ops[body->first + k].kind == OP_WAIT && waits_across(p, &p->ops[body->first + k]))
            return true;
    return false;
}

/* "len = len - waits": they leave the launch queue when the work behind them starts. */
static void put_pop_waits(const struct model *m, int stream, int rank, int task)
{
    const struct body *body = body_of(m->p, rank, task);
    bool any = false;
    for (int k = 0; k < body->count; k++)
        any |= m->p->ops[body->first + k].kind == OP_WAIT;
    promela_put(m, "; run_%d = 1", stream);
    if (!any)
        return;
    promela_put(m, "; len_%d = len_%d", stream, stream);
    for (int k = 0; k < body->count; k++) {
        const struct op *wait = &m->p->ops[body->first + k];
        if (wait->kind != OP_WAIT)
            continue;
        if (wait->distance == 0) {
            promela_put(m, " - 1");
            continue;
        }
        promela_put(m, " - (");
        put_of(m, "reached", rank, task);
        promela_put(m, " >= %d)", wait->distance);
    }
}

/* The work of T(i) is over: what follows it at once. */
static void put_finish(const struct model *m, int stream, int rank, int task)
{
    bool bounded = is_bounded(m, stream);
    if (bounded)
        promela_put(m, "run_%d = 0; len_%d--; ", stream, stream);
    if (counts_busy(m->p, stream))
        promela_put(m, "busy_%d--; ", stream);
    promela_put(m, "if :: ");
    put_of(m, "recorded", rank, task);
    promela_put(m, " > ");
    put_of(m, "reached", rank, task);
    promela_put(m, " -> ");
    put_of(m, "reached", rank, task);
    promela_put(m, "++%s", "");
    if (bounded)
        promela_put(m, "; len_%d--", stream);
    promela_put(m, " :: else -> late_%d = 1 fi", stream);
    for (int other = 0; other < m->p->tasks; other++)
        if (stream_of(m->p, rank, other) == stream && !work_of(m->p, rank, other)) {
            promela_put(m, ";\n         pass_%d(); skip", stream); /* a loop cannot end a d_step */
            break;
        }
}

/* inline pass_S(): records of work of the host that are now at the head. */
static void put_pass(const struct model *m, int stream)
{
    const struct program *p = m->p;
    int rank = p->streams[stream].rank;
    bool any = false;
    for (int task = 0; task < p->tasks; task++) {
        if (stream_of(p, rank, task) != stream || work_of(p, rank, task))
            continue;
        if (!any)
            promela_put(m,
                        "inline pass_%d() { /* records of work of the host, now at the head */\n"
                        "  do\n",
                        stream);
        any = true;
        promela_put(m, "  :: items_%d?[", stream);
        put_task(m, task);
        promela_put(m, "] -> items_%d?_; busy_%d--; ", stream, stream);
        put_of(m, "reached", rank, task);
        promela_put(m, "++\n");
    }
    if (any)
        promela_put(m, "  :: else -> break\n  od\n}\n");
}

/* Two members of a communicator are in collectives that do not go together: the run is over. */
static void put_agree(const struct model *m, const struct op *op, int rank)
{
    const struct comm_desc *comm = &m->p->comms[op->comm];
    for (int k = 0; k < comm->count; k++) {
        int other = comm->first_member + k;
        if (k == op->member)
            continue;
        promela_put(m, ";\n         agree(!current_%d || (current_%d == %d && ", other, other,
                    promela_collective_number(m->p, op));
        put_of(m, "reached", comm->members[k], op->task);
        promela_put(m, " == ");
        put_of(m, "reached", rank, op->task);
        promela_put(m, "))");
    }
}

/* A collective stays at the head until its communicator completes it. */
static void put_collective(const struct model *m, const struct op *op, int stream, int rank)
{
    int member = promela_member(m->p, op);
    promela_put(m, "  :: d_step { !current_%d && items_%d?[", member, stream);
    put_task(m, op->task);
    promela_put(m, "]");
    put_waits_over(m, rank, op->task);
    promela_put(m, " ->\n         current_%d = %d", member, promela_collective_number(m->p, op));
    if (is_bounded(m, stream))
        put_pop_waits(m, stream, rank, op->task);
    put_agree(m, op, rank);
    promela_put(m, " }");
    promela_put_op_comment(m, op);
    promela_put(m, "\n");
}

static void put_work(const struct model *m, const struct op *op, int stream, int rank)
{
    int member = stream_member(m->p, stream), task = op->task;
    bool guarded = has_waits_across(m->p, rank, task) || member >= 0 || is_bounded(m, stream);
    promela_put(m, "  :: ");
    if (guarded && is_exclusive(m, stream)) { /* who only looks is no exclusive reader */
        promela_put(m, "items_%d?", stream);
        put_task(m, task);
        promela_put(m, " -> (true");
        put_waits_over(m, rank, task);
        promela_put(m, ")");
        guarded = false;
    } else if (guarded) {
        promela_put(m, "d_step { items_%d?[", stream);
        put_task(m, task);
        promela_put(m, "]");
        if (member >= 0)
            promela_put(m, " && !current_%d", member);
        put_waits_over(m, rank, task);
        promela_put(m, " -> items_%d?", stream);
        put_task(m, task);
    } else {
        promela_put(m, "items_%d?", stream);
        put_task(m, task);
    }
    if (is_bounded(m, stream))
        put_pop_waits(m, stream, rank, task);
    promela_put(m, "%s ->", guarded ? " }" : "");
    promela_put_op_comment(m, op);
    promela_put(m, "\n     d_step { ");
    put_finish(m, stream, rank, task);
    promela_put(m, " }\n");
}

static void put_stream(const struct model *m, int stream)
{
    const struct program *p = m->p;
    int rank = p->streams[stream].rank;
    if (is_exclusive(m, stream))
        promela_put(m, "  xr items_%d;\n", stream);
    promela_put(m, "end:\n  do\n");
    for (int task = 0; task < p->tasks; task++) {
        const struct op *work = work_of(p, rank, task);
        if (stream_of(p, rank, task) != stream || !work)
            continue;
        if (work->kind == OP_COLLECTIVE)
            put_collective(m, work, stream, rank);
        else
            put_work(m, work, stream, rank);
    }
    promela_put(m, "  od\n");
}

/* "all members are in a collective -> finish it on all of them". */
static void put_comm(const struct model *m, int index)
{
    const struct program *p = m->p;
    const struct comm_desc *comm = &p->comms[index];
    promela_put(m, "end:\n  do\n");
    for (int task = 0; task < p->tasks; task++) {
        const struct op *first = work_of(p, comm->members[0], task);
        if (!first || first->kind != OP_COLLECTIVE || first->comm != index)
            continue;
        promela_put(m, "  :: d_step { (true");
        for (int k = 0; k < comm->count; k++)
            promela_put(m, " && current_%d == %d", comm->first_member + k,
                        promela_collective_number(p, first));
        promela_put(m, ") ->");
        for (int k = 0; k < comm->count; k++) {
            int rank = comm->members[k], stream = stream_of(p, rank, task);
            promela_put(m, "\n         current_%d = 0; items_%d?_; ", comm->first_member + k,
                        stream);
            put_finish(m, stream, rank, task);
            promela_put(m, "%s", k + 1 < comm->count ? ";" : "");
        }
        promela_put(m, " }");
        promela_put_op_comment(m, first);
        promela_put(m, "\n");
    }
    promela_put(m, "  od\n");
}

/* A stream on which nothing takes time does all at once, in whoever pushes it. */
static bool stream_works(const struct program *p, int stream)
{
    int rank = p->streams[stream].rank;
    for (int task = 0; task < p->tasks; task++)
        if (stream_of(p, rank, task) == stream && work_of(p, rank, task))
            return true;
    return false;
}

static bool comm_is_used(const struct program *p, int index)
{
    for (size_t k = 0; k < p->op_count; k++)
        if (p->ops[k].kind == OP_COLLECTIVE && p->ops[k].comm == index)
            return true;
    return false;
}

/* ---- the drivers ----------------------------------------------------------------------------- */

/* has_room in driver.c; where retiring waits for the device it always holds. */
static void put_has_room(const struct model *m, int rank, const char *admitted)
{
    const struct program *p = m->p;
    if (p->plan->pipeline.retire != RETIRE_SUBMIT || p->ends[rank] <= p->window)
        return;
    promela_put(m, " && (%s < %d || (true", admitted, p->window);
    for (int task = 0; task < p->tasks; task++) {
        promela_put(m, " &&\n         ");
        put_of(m, "submitted", rank, task);
        promela_put(m, " + %d > %s && ", p->window, admitted);
        put_of(m, "reached", rank, task);
        promela_put(m, " + %d > %s", p->window, admitted);
    }
    promela_put(m, "))");
}

static void put_retire(const struct model *m, int rank)
{
    const struct program *p = m->p;
    for (int task = 0; task < p->tasks; task++) {
        promela_put(m, " &&\n              ");
        put_of(m, "submitted", rank, task);
        promela_put(m, " > oldest");
        if (p->plan->pipeline.retire == RETIRE_DEVICE) {
            promela_put(m, " && ");
            put_of(m, "reached", rank, task);
            promela_put(m, " > oldest");
        }
    }
    promela_put(m,
                " ->\n       oldest++;\n       if\n       :: oldest == %" PRId64
                " -> goto end_over\n       :: else\n       fi }\n  od;\nend_over:\n  false\n",
                p->ends[rank]);
}

/* The driver is to hand out a period while period < depth + oldest, and else to retire. */
static void put_clock(const struct model *m, int rank)
{
    const struct program *p = m->p;
    char admitted[96];
    snprintf(admitted, sizeof admitted, "(period < %" PRId64 " -> period - %d : %" PRId64 ")",
             p->ends[rank] + p->min_stage, p->min_stage, p->ends[rank]);
    promela_put(m, "  byte period, oldest;\n");
    for (int t = 0; t < p->thread_count; t++)
        if (p->threads[t].kind == THREAD_WORKER && p->threads[t].rank == rank)
            promela_put(m, "  xs work_%d;\n", t);
    promela_put(m, "  do\n  :: d_step { period < %d + oldest", p->periods);
    put_has_room(m, rank, admitted);
    promela_put(m, " ->\n");
    for (int k = 0; k < p->tasks; k++) {
        int task = p->order[rank][k], stage = plan_task(p->plan, rank, task)->stage;
        promela_put(m, "       if :: ");
        if (stage)
            promela_put(m, "period >= %d && ", stage);
        promela_put(m, "period < %" PRId64 " -> work_%d!", p->ends[rank] + stage,
                    p->worker[rank * p->tasks + task]);
        put_task(m, task);
        promela_put(m, " :: else fi;\n");
    }
    promela_put(m, "       period++ }\n  :: atomic { period == %d + oldest", p->periods);
    put_retire(m, rank);
}

/* inline fire_T(): hand out the next instance of T if nothing is missing. */
static void put_fire(const struct model *m, int rank, int task)
{
    const struct program *p = m->p;
    promela_put(m, "inline ");
    put_of(m, "fire", rank, task);
    promela_put(m, "() {\n  if\n  :: ");
    put_of(m, "fired", rank, task);
    promela_put(m, " < admitted_%d", rank);
    for (int e = 0; e < p->depends[task].count; e++) {
        promela_put(m, " && ");
        put_ahead(m, "submitted", rank, p->depends[task].items[e].task,
                  p->depends[task].items[e].distance, "fired", task);
    }
    promela_put(m, " -> ");
    put_of(m, "fired", rank, task);
    promela_put(m, "++; work_%d!", p->worker[rank * p->tasks + task]);
    put_task(m, task);
    promela_put(m, "\n  :: else\n  fi\n}\n");
}

/* Nothing can be fired by retiring: what was submitted stays so. */
static void put_dataflow(const struct model *m, int rank)
{
    const struct program *p = m->p;
    char admitted[32], admits[96];
    snprintf(admitted, sizeof admitted, "admitted_%d", rank);
    snprintf(admits, sizeof admits, "(%s < %" PRId64 " && %s - oldest < %d)", admitted,
             p->ends[rank], admitted, p->depth);
    promela_put(m, "  byte oldest;\n  do\n  :: d_step { %s", admits);
    put_has_room(m, rank, admitted);
    promela_put(m, " ->\n       %s++", admitted);
    for (int k = 0; k < p->tasks; k++) {
        promela_put(m, "; ");
        put_of(m, "fire", rank, p->order[rank][k]);
        promela_put(m, "()");
    }
    promela_put(m, " }\n  :: atomic { !%s", admits);
    put_retire(m, rank);
}

/* ---- declarations ---------------------------------------------------------------------------- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Instances of T in a worker's queue: iterations that have a context; launched: those that the
   launch queue holds. */
static int64_t places(const struct model *m, int rank, int tasks, bool stream)
{
    const struct program *p = m->p;
    bool ahead = stream && p->plan->pipeline.retire == RETIRE_SUBMIT;
    int64_t held = ahead ? p->window : p->depth;
    return tasks * least(p->ends[rank], held);
}

static void put_counts(const struct model *m, int rank)
{
    static const char *const what[] = {"signalled", "recorded", "reached", "submitted", "fired"};
    const struct program *p = m->p;
    for (int task = 0; task < p->tasks; task++) {
        promela_put(m, "byte ");
        const char *comma = "";
        for (int k = 0; k < 5; k++) {
            if ((k == 0 && (!is_awaited(p, task) || signal_is_local(p, rank, task))) ||
                (k == 1 && !work_of(p, rank, task)) || (k == 4 && p->driver != DRIVER_DATAFLOW))
                continue;
            promela_put(m, "%s", comma);
            put_of(m, what[k], rank, task);
            comma = ", ";
        }
        promela_put(m, ";\n");
    }
}

static void put_queues(const struct model *m, int rank)
{
    const struct program *p = m->p;
    for (int t = 0; t < p->thread_count; t++) {
        int tasks = 0;
        for (int task = 0; task < p->tasks; task++)
            tasks += p->worker[rank * p->tasks + task] == t;
        if (tasks)
            promela_put(m, "chan work_%d = [%" PRId64 "] of { byte };\n", t,
                        places(m, rank, tasks, false));
    }
    for (int s = 0; s < p->stream_count; s++) {
        if (p->streams[s].rank != rank)
            continue;
        int tasks = 0;
        for (int task = 0; task < p->tasks; task++)
            tasks += stream_of(p, rank, task) == s;
        promela_put(m, "chan items_%d = [%" PRId64 "] of { byte }; /* ", s,
                    least(places(m, rank, tasks, true), p->streams[s].cap));
        promela_put_agent(m, program_stream_agent(p, s));
        promela_put(m, " */\nbit late_%d;\n", s);
        if (counts_busy(p, s))
            promela_put(m, "byte busy_%d;\n", s);
        if (is_bounded(m, s))
            promela_put(m, "short len_%d; bit run_%d;\n", s, s);
    }
}

/* "#define lead_S": the waits at the head that are over already, in their order. */
static void put_lead(const struct model *m, int stream)
{
    const struct program *p = m->p;
    int rank = p->streams[stream].rank;
    promela_put(m, "#define lead_%d (run_%d -> 0 : 0", stream, stream);
    for (int task = 0; task < p->tasks; task++) {
        const struct body *body = body_of(p, rank, task);
        int open = 0;
        if (stream_of(p, rank, task) != stream)
            continue;
        for (int k = 0; k < body->count; k++) {
            const struct op *wait = &p->ops[body->first + k];
            if (wait->kind != OP_WAIT)
                continue;
            if (!open) {
                promela_put(m, " \\\n  + (items_%d?[", stream);
                put_task(m, task);
                promela_put(m, "] -> (");
                open = 2;
            } else {
                promela_put(m, " + (");
                open++;
            }
            if (waits_across(p, wait)) {
                put_ahead(m, "reached", rank, wait->object % p->tasks, wait->distance, "reached",
                          task);
            } else {
                promela_put(m, "true");
            }
            promela_put(m, " -> ");
            if (wait->distance) {
                promela_put(m, "(");
                put_of(m, "reached", rank, task);
                promela_put(m, " >= %d)", wait->distance);
            } else {
                promela_put(m, "1");
            }
        }
        for (int k = 0; k < open; k++)
            promela_put(m, " : 0)");
    }
    promela_put(m, ")\n");
}

static bool is_locked(const struct program *p, int lock)
{
    for (size_t k = 0; k < p->op_count; k++)
        if (p->ops[k].kind == OP_LOCK && p->ops[k].object == lock)
            return true;
    return false;
}

static void put_declarations(const struct model *m, int rank)
{
    const struct program *p = m->p;
    promela_put(m,
                "\n/* rank %d: how many iterations each task has got how far; queues of tasks */\n",
                rank);
    put_counts(m, rank);
    put_queues(m, rank);
    for (int s = 0; s < p->stream_count; s++) {
        if (p->streams[s].rank != rank)
            continue;
        put_pass(m, s);
        if (is_bounded(m, s))
            put_lead(m, s);
    }
    for (int k = 0; k < p->lock_count; k++)
        if (p->lock_rank[k] == rank && is_locked(p, k))
            promela_put(m, "bit lock_%d;\n", k);
    if (p->driver != DRIVER_DATAFLOW)
        return;
    promela_put(m, "byte admitted_%d; short served_%d;\n", rank, rank);
    for (int task = 0; task < p->tasks; task++)
        put_fire(m, rank, task);
}

/* A mismatch ends the run. SPIN told to ignore it goes on, but never stands still again. */
static void put_mismatch(const struct model *m)
{
    promela_put(m, "\n/* members of communicators: the collective each has started, 0 none */\n");
    for (int k = 0; k < m->p->member_count; k++)
        promela_put(m, "byte current_%d;\n", k);
    promela_put(m, "bit mismatch;\n"
                   "inline agree(same) { if :: same :: else -> assert(false); mismatch = 1 fi }\n"
                   "active proctype ended() { end: do :: mismatch od }\n");
}

static void put_process(const struct model *m, const char *what, int number, int agent)
{
    promela_put(m, "\nactive proctype %s_%d() /* ", what, number);
    promela_put_agent(m, agent);
    promela_put(m, " */\n{\n");
}

void promela_put_plain(struct model *m)
{
    const struct program *p = m->p;
    m->numbered = words_clash(p);
    promela_put(m, m->exact ? "\n#define step (_pid >= 0) /* no effect */\n" : "\n");
    for (int task = 0; task < p->tasks; task++) {
        promela_put(m, "#define ");
        put_task(m, task);
        promela_put(m, " %d\n", task + 1);
    }
    for (int rank = 0; rank < p->ranks; rank++)
        put_declarations(m, rank);
    if (m->matches)
        put_mismatch(m);
    for (int t = 0; t < p->thread_count; t++) {
        put_process(m, "thread", t, program_thread_agent(p, t));
        if (p->threads[t].kind == THREAD_WORKER)
            put_worker(m, t);
        else if (p->driver == DRIVER_CLOCK)
            put_clock(m, p->threads[t].rank);
        else
            put_dataflow(m, p->threads[t].rank);
        promela_put(m, "}\n");
    }
    for (int s = 0; s < p->stream_count; s++) {
        if (!stream_works(p, s))
            continue;
        put_process(m, "stream", s, program_stream_agent(p, s));
        put_stream(m, s);
        promela_put(m, "}\n");
    }
    for (int c = 0; c < p->comm_count; c++) {
        if (!comm_is_used(p, c))
            continue;
        put_process(m, "comm", c, program_comm_agent(p, c));
        put_comm(m, c);
        promela_put(m, "}\n");
    }
}
