/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded_form.c - the operations of recordings as the threads of a job.
 *
 * The order of two threads is a flag, set behind the last operation of the first. A host function is the
 * body of its callback, whatever thread executed it.
 */
#include "recorded_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/sort.h"

int recorded_rank(const struct recorded_process *process, int device)
{
    for (int i = 0; i < process->device_count; i++)
        if (process->devices[i] == device)
            return process->first_rank + i;
    return process->first_rank;
}

/* ---- host functions --------------------------------------------------------------------------- */

/* The thread that executed a host function. */
struct recorded_form_body {
    uint64_t number;
    size_t thread, begin, end; /* its marks among the thread's operations */
    bool called;               /* by a callback that a thread pushed */
};

struct bodies {
    struct recorded_form_body *items;
    size_t count, cap;
};

static struct recorded_form_body *find_body(const struct bodies *bodies, uint64_t number)
{
    for (size_t i = 0; i < bodies->count; i++)
        if (bodies->items[i].number == number)
            return &bodies->items[i];
    return NULL;
}

static bool list_bodies(struct recorded_job *job, const struct recorded_process *process,
                        struct bodies *out)
{
    for (size_t t = 0; t < process->tapes.thread_count; t++) {
        const struct recorded_ops *ops = &process->threads[t].ops;
        for (size_t i = 0, begin = 0; i < ops->count; i++) {
            begin = ops->items[i].begins ? i : begin;
            if (!ops->items[i].ends || !ops->items[begin].begins)
                continue;
            if (!ARENA_GROW(job->arena, out->items, out->count, out->cap))
                return false;
            out->items[out->count++] =
                (struct recorded_form_body){ops->items[i].host_call, t, begin, i, false};
        }
    }
    for (size_t t = 0; t < process->tapes.thread_count; t++)
        for (size_t i = 0; i < process->threads[t].ops.count; i++) {
            const struct recorded_op *op = &process->threads[t].ops.items[i];
            struct recorded_form_body *body =
                op->op.kind == OP_CALLBACK ? find_body(out, op->host_call) : NULL;
            if (body)
                body->called = true;
        }
    return true;
}

/* True if the thread executes host functions, and nothing of its own. */
static bool is_device_thread(const struct bodies *bodies, size_t thread)
{
    for (size_t i = 0; i < bodies->count; i++)
        if (bodies->items[i].thread == thread)
            return true;
    return false;
}

static bool is_in_body(const struct bodies *bodies, size_t thread, size_t place)
{
    for (size_t i = 0; i < bodies->count; i++) {
        const struct recorded_form_body *body = &bodies->items[i];
        if (body->thread == thread && body->called && place >= body->begin && place <= body->end)
            return true;
    }
    return false;
}

/* A thread, a graph or the body of a callback under way. */
struct writing {
    struct recorded_job *job;
    struct recorded_process *process;
    const struct bodies *bodies; /* NULL: of a graph */
    struct job_thread *thread;   /* gets the operations; `host.rank` is that of the thread */
};

/* ---- the order of threads --------------------------------------------------------------------- */

/* The last operation of a thread among its first `count` items; SIZE_MAX: none, or none that the plan has. */
static size_t last_before(const struct recorded_process *process, const struct bodies *bodies,
                          size_t thread, uint64_t count)
{
    const struct recorded_ops *ops = &process->threads[thread].ops;
    size_t low = SORT_FIRST(i, 0, ops->count, ops->items[i].place > count);
    while (low > 0 && is_device_thread(bodies, thread) && !is_in_body(bodies, thread, low - 1))
        low--;
    return low > 0 ? low - 1 : SIZE_MAX;
}

static bool recorded_form_name_signal(struct recorded_job *job,
                                      const struct recorded_process *process, size_t thread,
                                      size_t place)
{
    struct recorded_op *op = &process->threads[thread].ops.items[place];
    if (op->signal >= 0)
        return true;
    const char *name =
        arena_printf(job->arena, "r%d.%zu.%zu", process->first_rank, thread + 1, place);
    op->signal = name ? names_intern(&job->plan->flags, job->arena, name) : -1;
    return op->signal >= 0;
}

/* Each await gets the operation that it comes behind; one that says nothing new loses its thread. */
static bool order_thread(struct recorded_job *job, const struct recorded_process *process,
                         const struct bodies *bodies, size_t thread)
{
    struct recorded_ops *ops = &process->threads[thread].ops;
    size_t *known = ARENA_ARRAY(job->arena, process->tapes.thread_count, size_t);
    if (!known)
        return false;
    memset(known, 0, process->tapes.thread_count * sizeof *known);
    for (size_t i = 0; i < ops->count; i++) {
        struct recorded_op *op = &ops->items[i];
        if (op->op.kind != OP_AWAIT)
            continue;
        const size_t of = (size_t)op->after_thread;
        const size_t place = last_before(process, bodies, of, op->after_count);
        op->after_thread = -1;
        if (place == SIZE_MAX || place < known[of])
            continue;
        known[of] = place + 1;
        op->after_thread = (int64_t)of;
        op->after_place = place;
    }
    return true;
}

/* The operations of each thread up to the last one that the plan needs: those that are more than an order, and those that such an
   order comes behind. */
static size_t *find_needed(struct recorded_job *job, const struct recorded_process *process,
                           const struct bodies *bodies)
{
    const size_t threads = process->tapes.thread_count;
    size_t *needed = ARENA_ARRAY(job->arena, threads + 1, size_t);
    bool more = needed != NULL;
    for (size_t t = 0; needed && t < threads; t++) {
        const struct recorded_ops *ops = &process->threads[t].ops;
        needed[t] = ops->count;
        while (needed[t] > 0 && !is_device_thread(bodies, t)) {
            const enum op_kind kind = ops->items[needed[t] - 1].op.kind;
            if (kind != OP_AWAIT && kind != OP_LOCK && kind != OP_UNLOCK)
                break;
            needed[t]--;
        }
    }
    while (more) {
        more = false;
        for (size_t t = 0; t < threads; t++)
            for (size_t i = 0; i < needed[t]; i++) {
                const struct recorded_op *op = &process->threads[t].ops.items[i];
                if (op->op.kind != OP_AWAIT || op->after_thread < 0 ||
                    needed[op->after_thread] > op->after_place)
                    continue;
                needed[op->after_thread] = op->after_place + 1;
                more = true;
            }
    }
    return needed;
}

/* True if the thread does nothing but wait, for others and for the device. */
static bool is_observer(const struct recorded_ops *ops)
{
    for (size_t i = 0; i < ops->count; i++)
        if (ops->items[i].op.kind != OP_AWAIT && ops->items[i].op.kind != OP_SYNC)
            return false;
    return true;
}

/* Each await that is needed gets its flag, the others lose their threads. Without luck a thread comes behind one that only waits
   where it does so in every run. */
static bool name_orders(struct recorded_job *job, const struct recorded_process *process,
                        const struct bodies *bodies)
{
    const size_t *needed = find_needed(job, process, bodies);
    for (size_t t = 0; needed && t < process->tapes.thread_count; t++)
        for (size_t i = 0; i < process->threads[t].ops.count; i++) {
            struct recorded_op *op = &process->threads[t].ops.items[i];
            if (op->op.kind != OP_AWAIT || op->after_thread < 0)
                continue;
            if (i >= needed[t] || (op->by_lock && job->options->without_luck &&
                                   is_observer(&process->threads[op->after_thread].ops))) {
                op->after_thread = -1;
                continue;
            }
            const size_t of = (size_t)op->after_thread;
            if (!recorded_form_name_signal(job, process, of, op->after_place))
                return false;
            op->op.object = process->threads[of].ops.items[op->after_place].signal;
            job->lock_orders += op->by_lock;
            job->orders_in_time += op->in_time;
        }
    return needed != NULL;
}

/* ---- the thread's time ------------------------------------------------------------------------ */

/* CPU time up to a moment of the host's clock. */
static bool recorded_form_put_time(const struct writing *writing, int64_t until_ns)
{
    return !writing->job->timed || job_add_time(writing->job->out, writing->thread, until_ns, NULL);
}

/* The moment up to which an operation takes the thread's time: what comes behind it until the call's end is the CPU's. */
static int64_t passed_ns(const struct writing *writing, const struct recorded_op *op)
{
    const struct recorded_device_time *time = &op->device_time;
    if (op->op.kind == OP_AWAIT && op->after_thread >= 0) {
        const struct recorded_ops *others = &writing->process->threads[op->after_thread].ops;
        return min_i64(others->items[op->after_place].end_ns, op->begin_ns);
    }
    if (op->op.kind == OP_SYNC)
        return max_i64(op->begin_ns, min_i64(time->ready_ns, op->end_ns));
    return time->pushes ? op->begin_ns + recorded_clock_host_time(op) : writing->thread->clock_ns;
}

/* ---- operations ------------------------------------------------------------------------------- */

static bool writing_put(const struct writing *writing, const struct host_op *op)
{
    struct host_op *to = job_add_op(writing->job->out, writing->thread, op->kind);
    if (to)
        *to = *op;
    return to != NULL;
}

static bool put_flag(const struct writing *writing, enum op_kind kind, int flag)
{
    struct host_op op = host_op_make(kind);
    op.object = flag;
    return flag < 0 || writing_put(writing, &op);
}

/* One for each piece of the memory, which nothing may have used yet; none where nothing uses it. */
static bool put_memory(const struct writing *writing, const struct recorded_op *op,
                       struct host_op *to)
{
    struct recorded_block *block = &writing->process->blocks[op->block];
    for (size_t i = 0; block->used && i + 1 < block->cut_count; i++) {
        to->object = recorded_memory_piece(writing->job, block, i);
        if (to->object < 0 || !writing_put(writing, to))
            return false;
    }
    return true;
}

/* Messages with ranks that were not recorded stand for nothing. */
static bool place_parts(const struct writing *writing, const struct recorded_op *op, int rank,
                        struct host_op *to)
{
    struct recorded_job *job = writing->job;
    struct p2p_part *parts = ARENA_ARRAY(job->arena, to->part_count + 1, struct p2p_part);
    size_t kept = 0;
    if (!parts)
        return false;
    for (size_t i = 0; i < to->part_count; i++) {
        struct p2p_part part = to->parts[i];
        const int own = recorded_rank(writing->process, part.device);
        if (!part.is_collective && (part.peer = recorded_comm_rank(job, part.comm, part.peer)) < 0)
            continue;
        if (part.root >= 0)
            part.root = recorded_comm_rank(job, part.comm, part.root);
        part.device = own == rank ? 0 : 1 + own;
        if (!recorded_memory_list(job, writing->process, op, own, false, (int)i, &part.reads) ||
            !recorded_memory_list(job, writing->process, op, own, true, (int)i, &part.writes))
            return false;
        parts[kept++] = part;
    }
    for (size_t i = 0; i < kept; i++) {
        parts[i].comm = parts[i].comm == to->comm ? -1 : parts[i].comm;
        parts[i].stream = parts[i].stream == to->stream ? -1 : parts[i].stream;
    }
    to->parts = parts;
    to->part_count = kept;
    return true;
}

static bool put_callback(const struct writing *writing, const struct recorded_op *op,
                         struct host_op *to);

/* A callback that says of its place in the stream that it is reached, or waits there for that of another one. A write that
   no stream waits for, of memory that nothing else uses, is left out. */
static bool recorded_form_put_value(const struct writing *writing, const struct recorded_op *op,
                                    struct host_op *to)
{
    const struct recorded_value *value = &writing->process->values[op->value - 1];
    struct job_thread body = {.host.rank = writing->thread->host.rank};
    const struct writing inside = {writing->job, writing->process, writing->bodies, &body};
    struct host_op write = host_op_make(OP_COMPUTE);
    struct host_accesses *accesses = host_op_make_accesses(&write, writing->job->arena);
    write.name = to->name;
    if (!accesses ||
        !recorded_memory_list(writing->job, writing->process, op, body.host.rank, true, -1,
                              &accesses->writes) ||
        (accesses->writes.count > 0 && !writing_put(&inside, &write)) ||
        !put_flag(&inside, value->writes ? OP_SIGNAL : OP_AWAIT, value->signal))
        return false;
    to->body = body.host.ops;
    to->body_count = body.host.op_count;
    return to->body_count == 0 || writing_put(writing, to);
}

static void recorded_form_set_times(const struct writing *writing, const struct recorded_op *op,
                                    struct host_op *to)
{
    if (!writing->job->timed || !op->device_time.pushes)
        return;
    if (!host_op_is_graph(to))
        to->time_ns = recorded_clock_time(op);
    if (writing->bodies)
        to->host_time_ns = recorded_clock_host_time(op);
}

/* The thread's rank has no number in the plan; `rank` is that of the operation. */
static void set_ranks(const struct writing *writing, const struct recorded_op *op, int rank,
                      struct host_op *to)
{
    const int home = writing->thread->host.rank;
    const int event_rank = recorded_rank(writing->process, op->event_device);
    const bool syncs_event = host_op_syncs(to, SYNC_EVENT);
    to->device = rank == home || syncs_event ? 0 : 1 + rank;
    if (syncs_event && event_rank != home)
        to->object_rank = 1 + event_rank;
    if (to->kind == OP_WAIT && event_rank != rank)
        to->object_rank = 1 + event_rank;
}

static bool put_accesses(const struct writing *writing, const struct recorded_op *op, int rank,
                         struct host_op *to)
{
    struct recorded_job *job = writing->job;
    struct host_accesses found = {{0}, {0}};
    if (!recorded_memory_list(job, writing->process, op, rank, false, -1, &found.reads) ||
        !recorded_memory_list(job, writing->process, op, rank, true, -1, &found.writes))
        return false;
    if (found.reads.count + found.writes.count == 0)
        return true;
    if (!host_op_make_accesses(to, job->arena))
        return false;
    *to->accesses = found;
    return true;
}

/* One operation of the plan, or several, or none. */
static bool put_placed(const struct writing *writing, const struct recorded_op *op, int rank,
                       struct host_op *to)
{
    const struct recorded_job *job = writing->job;
    if (op->value > 0)
        return recorded_form_put_value(writing, op, to);
    if (to->kind == OP_GROUP && !place_parts(writing, op, rank, to))
        return false;
    if (to->kind == OP_GROUP && to->part_count == 0)
        return true;
    if (to->kind == OP_COLLECTIVE || to->kind == OP_GROUP)
        to->sm = job->options->sm_slots > 0;
    if (to->kind == OP_COLLECTIVE && to->root >= 0)
        to->root = recorded_comm_rank(job, to->comm, to->root);
    if (!put_accesses(writing, op, rank, to))
        return false;
    return to->kind == OP_ALLOC || to->kind == OP_FREE ? put_memory(writing, op, to)
           : to->kind == OP_CALLBACK                   ? put_callback(writing, op, to)
                                                       : writing_put(writing, to);
}

/* The operation, and the flag that is set behind it. */
static bool put_op(const struct writing *writing, const struct recorded_op *op)
{
    struct host_op to = op->op;
    const bool is_lock = to.kind == OP_LOCK || to.kind == OP_UNLOCK;
    const bool is_host =
        to.kind == OP_COMPUTE || to.kind == OP_HOST || to.kind == OP_AWAIT || is_lock;
    const int rank =
        is_host ? writing->thread->host.rank : recorded_rank(writing->process, op->device);
    const bool is_left_out = (to.kind == OP_AWAIT && op->after_thread < 0) || op->begins ||
                             op->ends || (is_lock && to.object < 0);
    if (to.kind == OP_CALLBACK && !writing->bodies)
        return plan_add_unrecorded(writing->job->plan, "host functions in a graph",
                                   "a plan has none");
    recorded_form_set_times(writing, op, &to);
    set_ranks(writing, op, rank, &to);
    return (is_left_out || put_placed(writing, op, rank, &to)) &&
           put_flag(writing, OP_SIGNAL, op->signal);
}

/* A function that never ran, or did nothing that was seen, has an empty body. */
static bool put_callback(const struct writing *writing, const struct recorded_op *op,
                         struct host_op *to)
{
    const struct recorded_form_body *body = find_body(writing->bodies, op->host_call);
    struct job_thread ops = {.host.rank = writing->thread->host.rank};
    const struct writing inside = {writing->job, writing->process, writing->bodies, &ops};
    if (body) {
        const struct recorded_op *items = writing->process->threads[body->thread].ops.items;
        ops.clock_ns = items[body->begin].begin_ns;
        if (!recorded_form_put_time(&inside, items[body->end].begin_ns))
            return false;
        for (size_t i = body->begin; i <= body->end; i++) {
            const enum op_kind kind = items[i].op.kind;
            const bool host = kind == OP_AWAIT || kind == OP_COMPUTE || kind == OP_HOST ||
                              kind == OP_LOCK || kind == OP_UNLOCK;
            if (host && !put_op(&inside, &items[i]))
                return false;
        }
    }
    const struct host_op nothing = host_op_make(OP_HOST);
    if (ops.host.op_count == 0 && !writing_put(&inside, &nothing))
        return false;
    to->body = ops.host.ops;
    to->body_count = ops.host.op_count;
    return writing_put(writing, to);
}

/* The rank of the device that a thread uses first. */
static int home_of(const struct recorded_process *process, const struct recorded_ops *ops)
{
    for (size_t i = 0; i < ops->count; i++)
        if (ops->items[i].op.stream >= 0)
            return recorded_rank(process, ops->items[i].device);
    return process->first_rank;
}

static bool recorded_form_write_thread(struct recorded_job *job, struct recorded_process *process,
                                       const struct bodies *bodies, size_t index)
{
    struct recorded_thread *from = &process->threads[index];
    const struct recorded_ops *ops = &from->ops;
    const int home = home_of(process, ops);
    assert(home >= 0 && home < job->plan->ranks);
    const char *name =
        index == 0 && home == process->first_rank
            ? "main"
            : arena_printf(job->arena, "%d.thread%zu", process->first_rank, index + 1);
    struct job_thread *thread = name ? job_add_thread(job->out, home, name) : NULL;
    const struct writing writing = {job, process, bodies, thread};
    if (!thread)
        return false;
    thread->clock_ns = job->begin_ns - process->tapes.wall_ns;
    for (size_t i = 0; i < ops->count; i++) {
        /* An await stands where the thread began to wait, so no time is in front of it. */
        if ((ops->items[i].op.kind != OP_AWAIT &&
             !recorded_form_put_time(&writing, ops->items[i].begin_ns)) ||
            !put_op(&writing, &ops->items[i]))
            return false;
        job_pass_time(thread, passed_ns(&writing, &ops->items[i]));
    }
    if (ops->count > 0 && !recorded_form_put_time(&writing, ops->items[ops->count - 1].end_ns))
        return false;
    if (thread->host.op_count > 0) {
        from->home = home;
        from->name = name;
    }
    return true;
}

static bool write_graph(struct recorded_job *job, struct recorded_process *process,
                        const struct recorded_graph *graph)
{
    struct job_thread ops = {.host.rank = recorded_rank(process, graph->device)};
    const struct writing writing = {job, process, NULL, &ops};
    for (size_t k = 0; k < graph->ops.count; k++)
        if (!put_op(&writing, &graph->ops.items[k]))
            return false;
    assert(graph->index >= 0 && (size_t)graph->index < job->plan->graph_count);
    job->plan->graphs[graph->index].ops = ops.host.ops;
    job->plan->graphs[graph->index].op_count = ops.host.op_count;
    return true;
}

/* In the order of the plan, in front of all threads: buffers are listed as they are met in its text. */
static bool write_graphs(struct recorded_job *job)
{
    const size_t count = job->plan->graph_count;
    struct {
        struct recorded_process *process;
        const struct recorded_graph *graph;
    } *places = arena_array(job->arena, count + 1, sizeof *places);
    for (size_t i = 0; places && i < job->process_count; i++)
        for (size_t k = 0; k < job->processes[i].graph_count; k++) {
            const struct recorded_graph *graph = &job->processes[i].graphs[k];
            if (graph->index >= 0) {
                places[graph->index].process = &job->processes[i];
                places[graph->index].graph = graph;
            }
        }
    for (size_t i = 0; places && i < count; i++)
        if (!write_graph(job, places[i].process, places[i].graph))
            return false;
    return places != NULL;
}

static bool prepare_process(struct recorded_job *job, struct recorded_process *process,
                            struct bodies *bodies)
{
    if (!process->is_rank)
        return true;
    const size_t threads = process->tapes.thread_count;
    int *homes = ARENA_ARRAY(job->arena, threads + 1, int);
    if (!homes || !list_bodies(job, process, bodies) || !recorded_tenants_settle(job, process) ||
        !recorded_memory_cut(job, process))
        return false;
    for (size_t t = 0; t < threads; t++) {
        homes[t] = home_of(process, &process->threads[t].ops);
        if (!order_thread(job, process, bodies, t))
            return false;
    }
    return name_orders(job, process, bodies) && recorded_locks_name(job, process, homes);
}

static bool write_threads(struct recorded_job *job, struct recorded_process *process,
                          struct bodies *bodies)
{
    for (size_t t = 0; process->is_rank && t < process->tapes.thread_count; t++)
        if (!is_device_thread(bodies, t) && !recorded_form_write_thread(job, process, bodies, t))
            return false;
    return true;
}

/* ---- the plan --------------------------------------------------------------------------------- */

/* Clocks of hosts are taken for right: all processes begin on one line. */
static void find_begin(struct recorded_job *job)
{
    job->begin_ns = INT64_MAX;
    for (size_t i = 0; i < job->process_count; i++) {
        const struct tapes *tapes = &job->processes[i].tapes;
        for (size_t t = 0; t < tapes->thread_count; t++)
            for (size_t k = 0; k < tapes->threads[t].count; k++) {
                const int64_t at_ns = tapes->threads[t].items[k]->at_ns + tapes->wall_ns;
                job->begin_ns = at_ns < job->begin_ns ? at_ns : job->begin_ns;
            }
    }
}

static void recorded_form_note_streams(const struct host_op *ops, size_t count, bool *used)
{
    for (size_t i = 0; i < count; i++) {
        if (ops[i].stream >= 0)
            used[ops[i].stream] = true;
        for (size_t k = 0; k < host_op_part_count(&ops[i]); k++)
            if (ops[i].parts[k].stream >= 0)
                used[ops[i].parts[k].stream] = true;
    }
}

/* Of streams that nothing uses, and all where there is no legacy stream: a blocking stream is like any other then. */
static bool drop_specs(struct recorded_job *job)
{
    struct plan *plan = job->plan;
    const size_t count = plan->streams.count;
    bool *used = ARENA_ARRAY(job->arena, count + 1, bool);
    size_t kept = 0;
    if (!used)
        return false;
    memset(used, 0, count * sizeof *used);
    for (size_t i = 0; i < job->out->thread_count; i++)
        recorded_form_note_streams(job->out->threads[i]->host.ops,
                                   job->out->threads[i]->host.op_count, used);
    for (size_t i = 0; i < plan->graph_count; i++)
        recorded_form_note_streams(plan->graphs[i].ops, plan->graphs[i].op_count, used);
    for (size_t i = 0; i < plan->stream_spec_count; i++)
        if (used[plan->stream_specs[i].stream])
            plan->stream_specs[kept++] = plan->stream_specs[i];
    plan->stream_spec_count = kept;
    if (!plan_legacy_stream(plan))
        plan->stream_spec_count = 0;
    return true;
}

static const char *about_structs(const struct recorded_job *job)
{
    const char *plural = job->struct_launches == 1 ? "" : "es";
    if (job->struct_launches == 0)
        return "";
    if (job->options->structs == RECORDED_STRUCTS_READ)
        return arena_printf(
            job->arena,
            "; by --structs=read %zu launch%s with structs write nothing that these point to",
            job->struct_launches, plural);
    return arena_printf(
        job->arena,
        "; %zu launch%s with structs may write all that these point to, so that a race "
        "of theirs may be two reads (--structs=read tries it)",
        job->struct_launches, plural);
}

static const char *about_queries(const struct recorded_job *job)
{
    const int way = job->options->queries;
    if (way == RECORDED_QUERIES_NONE)
        return "; by --queries=none an answer orders nothing that another run need not have";
    const size_t waits = (way == RECORDED_QUERIES_SEEN ? 0 : job->loops) +
                         (way == RECORDED_QUERIES_WAIT ? job->ready_answers : 0);
    if (waits == 0)
        return "";
    return arena_printf(job->arena, "; by --queries=%s %zu quer%s asked until the answer was yes",
                        way == RECORDED_QUERIES_WAIT ? "wait" : "loops", waits,
                        waits == 1 ? "y was" : "ies were");
}

static const char *recorded_form_about(const struct recorded_job *job)
{
    const size_t measured = job->pushes - job->untimed_pushes;
    const char *times = job->timed ? arena_printf(job->arena,
                                                  "with measured times of %zu operation%s of "
                                                  "devices",
                                                  measured, measured == 1 ? "" : "s")
                                   : "without times";
    const char *structs = about_structs(job), *queries = about_queries(job);
    if (!times || !structs || !queries)
        return NULL;
    return arena_printf(job->arena,
                        "a recording of %zu process%s, %s; threads come in the order of "
                        "%s, kernels access what their arguments point to%s%s",
                        job->process_count, job->process_count == 1 ? "" : "es", times,
                        job->options->order == RECORDED_WAITS
                            ? "their signals and joins, and locks exclude each other"
                        : job->options->order == RECORDED_LOCKS ? "their locks, signals and joins"
                                                                : "their calls in time",
                        structs, queries);
}

/* True if a device uses this memory of the host and the host's own accesses to it are not known. */
static bool is_untouched(const struct recorded_process *process, const struct recorded_block *block)
{
    switch (block->memory) {
    case RECORDING_MEMORY_DEVICE: return false;
    case RECORDING_MEMORY_PINNED:
        return block->used && block->tenant == 0 && (!process->tapes.touches || block->unseen);
    case RECORDING_MEMORY_MANAGED:
    case RECORDING_MEMORY_REGISTERED: return block->used;
    }
    return false;
}

static bool say_accesses(struct recorded_job *job, const char *whose, size_t count, const char *why)
{
    return count == 0 || plan_add_unrecorded(job->plan,
                                             arena_printf(job->arena, "%s to %zu allocation%s",
                                                          whose, count, count == 1 ? "" : "s"),
                                             why);
}

static bool say_untouched(struct recorded_job *job)
{
    size_t count = 0, pinned = 0, others = 0, parts = 0;
    bool touches = true;
    for (size_t i = 0; i < job->process_count; i++)
        for (size_t k = 0; k < job->processes[i].block_count; k++) {
            const struct recorded_block *block = &job->processes[i].blocks[k];
            const bool untouched = is_untouched(&job->processes[i], block);
            count += untouched;
            pinned += untouched && block->memory == RECORDING_MEMORY_PINNED;
            others += !untouched && block->others;
            parts += !untouched && block->in_parts;
            touches = touches && job->processes[i].tapes.touches;
        }
    return say_accesses(job, "the host's accesses", count,
                        pinned == 0 ? "of managed or registered memory they are not seen"
                        : touches   ? "behind graphs, collectives and messages they are not seen"
                                    : "recorded without --host-accesses") &&
           say_accesses(job, "other threads' accesses", others,
                        "only the first behind each operation of a device is seen") &&
           say_accesses(job, "the host's accesses in parts", parts,
                        "only the first behind each operation of a device is seen");
}

/* A process that hung, or was killed */
static bool say_unended(struct recorded_job *job)
{
    size_t count = 0;
    for (size_t i = 0; i < job->process_count; i++)
        count += !job->processes[i].ended;
    return count == 0 ||
           plan_add_unrecorded(job->plan,
                               arena_printf(job->arena, "later calls of %zu process%s", count,
                                            count == 1 ? "" : "es"),
                               count == 1 ? "it was ended, or its calls were not written"
                                          : "they were ended, or their calls were not written");
}

static bool say_unmodelled(struct recorded_job *job)
{
    for (size_t i = 0; i < job->unmodelled_count; i++) {
        const size_t calls = job->unmodelled[i].calls;
        if (!plan_add_unrecorded(job->plan,
                                 arena_printf(job->arena, "%zu call%s of %s", calls,
                                              calls == 1 ? "" : "s", job->unmodelled[i].name),
                                 calls == 1 ? "the recording does not model it"
                                            : "the recording does not model them"))
            return false;
    }
    return job->coarse_copies == 0 ||
           plan_add_unrecorded(
               job->plan,
               arena_printf(job->arena, "rows of %zu copies or fills", job->coarse_copies),
               "more than 64: the gaps between them count as accessed");
}

static bool say_graph_blocks(struct recorded_job *job)
{
    return job->graph_blocks == 0 ||
           plan_add_unrecorded(job->plan,
                               arena_printf(job->arena, "values in %zu allocation%s of graphs",
                                            job->graph_blocks, job->graph_blocks == 1 ? "" : "s"),
                               "a launch that reads them before it writes them is not found");
}

static bool say_room(struct recorded_job *job)
{
    return !job->shares_room || job->options->sm_slots > 0 ||
           plan_add_unrecorded(job->plan, "the room that several communicators need at once",
                               "any number of their operations is assumed to run; import with "
                               "--sm-slots=1 has one at a time");
}

static bool say_unseen(struct recorded_job *job)
{
    struct plan *plan = job->plan;
    return say_unmodelled(job) && say_graph_blocks(job) &&
           (job->opaque_launches == 0 ||
            plan_add_unrecorded(plan,
                                arena_printf(job->arena, "arguments of %zu launch%s",
                                             job->opaque_launches,
                                             job->opaque_launches == 1 ? "" : "es"),
                                "CUDA does not tell what they hold")) &&
           (job->strange_accesses == 0 ||
            plan_add_unrecorded(plan,
                                arena_printf(job->arena, "%zu access%s", job->strange_accesses,
                                             job->strange_accesses == 1 ? "" : "es"),
                                "to memory of the device that no call was seen to allocate")) &&
           (job->failed_calls == 0 ||
            plan_add_unrecorded(plan,
                                arena_printf(job->arena, "%zu call%s of NCCL", job->failed_calls,
                                             job->failed_calls == 1 ? "" : "s"),
                                "refused by it")) &&
           say_untouched(job) && say_unended(job) &&
           (!job->assumes_extents ||
            plan_add_unrecorded(plan, "extents of kernels",
                                "memory from each pointer to the next that is used")) &&
           (job->options->order == RECORDED_SEEN || recorded_order_say(job)) &&
           recorded_locks_say(job) && say_room(job) && recorded_values_say(job) &&
           recorded_queries_say(job);
}

/* A process without a device is a rank all the same, but for one that has no number where others have a device: the one that
   has launched them. */
static void find_ranks(struct recorded_job *job)
{
    bool devices = false;
    for (size_t i = 0; i < job->process_count; i++)
        devices = devices || job->processes[i].device_count > 0;
    for (size_t i = 0; i < job->process_count; i++) {
        struct recorded_process *process = &job->processes[i];
        process->is_rank = !devices || process->device_count > 0 || process->tapes.rank >= 0;
    }
}

bool recorded_write(struct recorded_job *job)
{
    struct plan *plan = job->plan;
    int rank = 0;
    find_ranks(job);
    for (size_t i = 0; i < job->process_count; i++) {
        struct recorded_process *process = &job->processes[i];
        process->first_rank = rank;
        sort_int(process->devices, (size_t)process->device_count);
        if (process->is_rank)
            rank += process->device_count > 0 ? process->device_count : 1;
    }
    job->plan->ranks = rank;
    for (size_t i = 0; i < job->process_count; i++)
        if (!recorded_values_pair(job, &job->processes[i]))
            return false;
    find_begin(job);
    if (!recorded_clock_meet(job))
        return false;
    recorded_clock_warn(job);
    plan->inputs_given = true;
    plan->machine.sm_slots = (int)job->options->sm_slots;
    plan->machine.launch_latency_ns = recorded_clock_latency(job);
    plan->machine.launch_order_implicit = job->options->launch_order;
    plan->name = arena_strdup(job->arena, job->options->name);
    plan->about = recorded_form_about(job);
    if (!plan->name || !plan->about || !recorded_comm_write(job))
        return false;
    struct bodies *bodies = arena_array(job->arena, job->process_count + 1, sizeof *bodies);
    bool good = bodies != NULL;
    for (size_t i = 0; good && i < job->process_count; i++)
        good = prepare_process(job, &job->processes[i], &bodies[i]);
    for (size_t i = 0; good && i < job->process_count; i++)
        good = recorded_tensors_write(job, &job->processes[i]);
    good = good && write_graphs(job);
    for (size_t i = 0; good && i < job->process_count; i++)
        good = write_threads(job, &job->processes[i], &bodies[i]);
    return good && drop_specs(job) && say_unseen(job);
}
