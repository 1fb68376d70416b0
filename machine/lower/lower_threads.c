/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower_threads.c - host programs become one body a thread, almost operation by operation.
 *
 * The exceptions: `host_time` of a push becomes a host operation before it; a pageable copy is
 * followed by a stream synchronisation; a barrier becomes a flag for each participant and use, which
 * it sets before it awaits those of the others; a group becomes operations of its communicators
 * (lower_group.c); a callback's body becomes the body of a callback thread.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "machine/straight.h"
#include "lower.h"
#include "rank_programs.h"

static enum status lower_host_op(struct lowering *lowering, int home, const struct host_op *from);

/* ---- the legacy stream ----------------------------------------------------------------------- */

/*
 * The order that the legacy default stream imposes, made of records and waits.
 *
 * CUDA: "When an action is taken in the legacy stream such as a kernel launch or cudaStreamWaitEvent(), the
 * legacy stream first waits on all blocking streams, the action is queued in the legacy stream, and then
 * all blocking streams wait on the legacy stream" (CUDA driver API, stream synchronization behavior).
 * That is what a push to it becomes:
 *
 *     record on each blocking stream, legacy waits     the push     record on legacy, each of them waits
 *
 * With `machine: {launch_lock: true}` every push is made under the context lock, on whatever stream. Another
 * thread must not push in between, so where several threads of a rank push to these streams each of
 * them does it under the context lock.
 */

static bool is_blocking(const struct plan *plan, int stream)
{
    const struct stream_spec *spec = plan_stream_spec(plan, stream);
    return !spec || spec->blocking;
}

/* Parts of a group may be on streams, and devices, of their own. */
static bool op_is_on(const struct host_op *op, int home, int rank, int stream)
{
    bool is_on = op_pushes(op->kind) && op->stream == stream && host_op_rank(op, home) == rank;
    for (size_t i = 0; !is_on && i < host_op_part_count(op); i++) {
        const struct p2p_part *part = &op->parts[i];
        is_on = (part->stream >= 0 ? part->stream : op->stream) == stream &&
                p2p_part_rank(op, part, home) == rank;
    }
    return is_on;
}

/* True if thread or, in a pipeline, thread group `index` of this rank pushes to the stream. */
static bool lower_threads_pushes_to(const struct plan *plan, int rank, int index, int stream)
{
    if (plan->form == FORM_PIPELINE) {
        for (int t = 0; t < (int)plan->pipeline.task_count; t++) {
            const struct task *task = plan_task(plan, rank, t);
            if (task->group == index && task->stream == stream)
                return true;
        }
        return false;
    }
    const struct host_thread *thread = &plan->threads[index];
    for (size_t i = 0; i < thread->op_count; i++)
        if (op_is_on(&thread->ops[i], thread->rank, rank, stream))
            return true;
    return false;
}

/* Notes for every rank and stream whether it is used, and for every rank how many threads push to the
   streams that the legacy one orders. A rank that uses one of them alone has nothing to order. */
static void lower_threads_find_uses(struct lowering *lowering)
{
    const struct plan *plan = lowering->plan;
    int streams = (int)plan->streams.count;
    int threads = plan->form == FORM_PIPELINE ? (int)plan->groups.count : (int)plan->thread_count;
    for (int rank = 0; rank < lowering->program->ranks; rank++) {
        bool *in_order = &lowering->in_order[rank * streams];
        for (int thread = 0; thread < threads; thread++) {
            bool any = false;
            for (int s = 0; s < streams; s++)
                if (is_blocking(plan, s) && lower_threads_pushes_to(plan, rank, thread, s))
                    any = in_order[s] = true;
            lowering->pushers[rank] += any;
        }
        int used = 0;
        for (int s = 0; s < streams; s++)
            used += in_order[s];
        if (used == 1)
            memset(in_order, 0, (size_t)streams * sizeof *in_order);
    }
}

enum status lower_legacy_open(struct lowering *lowering)
{
    struct program *program = lowering->program;
    const struct plan *plan = lowering->plan;
    if (!plan_legacy_stream(plan))
        return STATUS_OK;
    size_t ranks = (size_t)program->ranks, count = ranks * plan->streams.count;
    lowering->in_order = ARENA_ARRAY(&program->arena, count, bool);
    lowering->pushers = ARENA_ARRAY(&program->arena, ranks, int);
    const char **names =
        ARENA_ARRAY(&program->arena, (size_t)program->event_families + count, const char *);
    if (!lowering->in_order || !lowering->pushers || !names)
        return diag_no_memory(lowering->diag);
    for (int i = 0; i < program->event_families; i++)
        names[i] = program->event_names[i];
    lowering->first_implicit = program->event_families;
    for (size_t i = 0; i < count; i++) {
        const char *stream = plan->streams.items[i % plan->streams.count];
        const char *name = arena_printf(&program->arena, "the work so far of stream %s", stream);
        if (!name)
            return diag_no_memory(lowering->diag);
        names[program->event_families++] = name;
    }
    program->event_names = names;
    lower_threads_find_uses(lowering);
    return STATUS_OK;
}

static void lower_threads_emit(struct lowering *lowering, enum op_kind kind, int rank, int stream,
                               int of, struct mark mark)
{
    int place = lower_stream(lowering, rank, stream);
    struct op *op = lower_emit(lowering, kind, mark);
    op->stream = place;
    op->object = lowering->first_implicit + rank * (int)lowering->plan->streams.count + of;
    op->distance = -1;
}

/* Each stream that the legacy one orders is recorded on, or waits, or both are done to the legacy stream:
   `from` a record on that stream and a wait of the legacy one, else only its wait. */
static void order_others(struct lowering *lowering, int rank, int legacy, bool from,
                         struct mark mark)
{
    int streams = (int)lowering->plan->streams.count;
    for (int s = 0; s < streams; s++) {
        if (s == legacy || !lowering->in_order[rank * streams + s])
            continue;
        if (from)
            lower_threads_emit(lowering, OP_RECORD, rank, s, s, mark);
        lower_threads_emit(lowering, OP_WAIT, rank, from ? legacy : s, from ? s : legacy, mark);
    }
}

static bool lower_threads_is_ordered(const struct lowering *lowering, int rank, int stream)
{
    return lowering->in_order && stream >= 0 &&
           lowering->in_order[rank * (int)lowering->plan->streams.count + stream];
}

static bool needs_lock(const struct lowering *lowering, int rank, bool ordered, bool locked)
{
    bool several = ordered && lowering->pushers[rank] > 1;
    return (several || lowering->plan->machine.launch_lock) && !locked;
}

void lower_legacy_begin(struct lowering *lowering, int rank, int stream, bool locked,
                        struct mark mark)
{
    bool ordered = lower_threads_is_ordered(lowering, rank, stream);
    if (needs_lock(lowering, rank, ordered, locked))
        lower_emit(lowering, OP_LOCK, mark)->object = lower_context_lock(lowering, rank);
    if (ordered && plan_legacy_stream(lowering->plan)->stream == stream)
        order_others(lowering, rank, stream, true, mark);
}

void lower_legacy_end(struct lowering *lowering, int rank, int stream, bool locked,
                      struct mark mark)
{
    bool ordered = lower_threads_is_ordered(lowering, rank, stream);
    if (ordered && plan_legacy_stream(lowering->plan)->stream == stream) {
        lower_threads_emit(lowering, OP_RECORD, rank, stream, stream, mark);
        order_others(lowering, rank, stream, false, mark);
    }
    if (needs_lock(lowering, rank, ordered, locked))
        lower_emit(lowering, OP_UNLOCK, mark)->object = lower_context_lock(lowering, rank);
}

/* ---- launches of graphs ---------------------------------------------------------------------- */

/*
 * The launch of a graph: its piece of work once more, on streams of its own.
 *
 *     record begin on s;  each stream of the graph waits for it, and for the end of the last launch
 *     the operations of the graph
 *     each stream of the graph records its end, s waits for it
 *
 * CUDA: "Only one instance of graphExec may be executing at a time. Each launch is ordered behind both any
 * previous work in stream and any previous launches of graphExec" (cudaGraphLaunch). An end that was never
 * recorded holds nothing: there was no launch before.
 */

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

static int lower_threads_own_stream(const struct graph *graph, int stream)
{
    size_t at = 0;
    while (graph->streams[at].of != stream)
        at++;
    return graph->streams[at].stream;
}

/* True if several threads of a rank launch the graph. Their pushes must not mix. */
static bool lower_threads_is_shared(const struct plan *plan, int rank, int graph)
{
    int threads = 0;
    for (size_t t = 0; t < plan->thread_count; t++) {
        bool launches = false;
        for (size_t i = 0; i < plan->threads[t].op_count; i++) {
            const struct host_op *op = &plan->threads[t].ops[i];
            launches |= host_op_is_graph(op) && op->graph == graph &&
                        host_op_rank(op, plan->threads[t].rank) == rank;
        }
        threads += launches;
    }
    return threads > 1;
}

static enum status lower_graph(struct lowering *lowering, int home, const struct host_op *launch)
{
    int rank = host_op_rank(launch, home);
    const struct graph *graph = &lowering->plan->graphs[launch->graph];
    if (lower_threads_is_shared(lowering->plan, rank, launch->graph))
        return plan_error_at(lowering->plan, lowering->diag, launch->mark,
                             "found graph %s launched by several threads of rank %d, expected one: "
                             "graphs are not synchronised between threads",
                             graph->name, rank);
    emit_begin(lowering, rank, graph, launch->stream, launch->mark);
    struct host_op *ops = ARENA_ARRAY(&lowering->program->arena, graph->op_count, struct host_op);
    enum status status = ops ? STATUS_OK : diag_no_memory(lowering->diag);
    for (size_t i = 0; status == STATUS_OK && i < graph->op_count; i++) {
        ops[i] = graph->ops[i];
        ops[i].stream = lower_threads_own_stream(graph, graph->ops[i].stream);
        ops[i].device = launch->device;
        if (graph->events[i] >= 0)
            ops[i].object = graph->events[i];
        status = lower_host_op(lowering, home, &ops[i]);
    }
    emit_end(lowering, rank, graph, launch->stream, launch->mark);
    return status;
}

/* ---- one thread for several ranks ------------------------------------------------------------ */

/*
 * One thread that calls NCCL for the devices of several ranks.
 *
 * "Every NCCL call may have to block, waiting for other threads/ranks to arrive, before effectively posting the
 * NCCL operation on the given stream" (NCCL user guide, "Management Of Multiple GPUs From One Thread"): a
 * thread that calls for several ranks of a communicator must do it in one group. A call outside of such a group
 * awaits the calls for the other ranks, which its thread makes only when it returns: a flag that nobody sets.
 */

/* A collective, or a message, of one rank on a communicator. */
struct lower_threads_call {
    int comm, rank;
    int peer; /* a message; -1: a collective */
    bool send;
};

static bool same_call(const struct lower_threads_call *a, const struct lower_threads_call *b)
{
    return a->comm == b->comm && a->rank == b->rank && a->peer == b->peer &&
           (a->peer < 0 || a->send == b->send);
}

static size_t call_count(const struct host_op *op)
{
    return op->kind == OP_GROUP ? op->part_count : op->kind == OP_COLLECTIVE;
}

static struct lower_threads_call call_at(const struct host_op *op, int home, size_t i)
{
    if (op->kind == OP_COLLECTIVE)
        return (struct lower_threads_call){
            .comm = op->comm, .rank = host_op_rank(op, home), .peer = -1};
    const struct p2p_part *part = &op->parts[i];
    return (struct lower_threads_call){.comm = part->comm >= 0 ? part->comm : op->comm,
                                       .rank = p2p_part_rank(op, part, home),
                                       .peer = part->is_collective ? -1 : part->peer,
                                       .send = part->send};
}

static bool makes(const struct host_op *op, int home, const struct lower_threads_call *call)
{
    for (size_t i = 0; i < call_count(op); i++) {
        struct lower_threads_call made = call_at(op, home, i);
        if (same_call(&made, call))
            return true;
    }
    return false;
}

static bool thread_makes(const struct host_thread *thread, const struct lower_threads_call *call)
{
    for (size_t i = 0; i < thread->op_count; i++)
        if (makes(&thread->ops[i], thread->rank, call))
            return true;
    return false;
}

/* True if the thread calls NCCL for another rank than its own. */
static bool lower_drives_others(const struct host_thread *thread)
{
    for (size_t i = 0; i < thread->op_count; i++)
        for (size_t k = 0; k < call_count(&thread->ops[i]); k++)
            if (call_at(&thread->ops[i], thread->rank, k).rank != thread->rank)
                return true;
    return false;
}

/* The thread makes the call, but not in this group. */
static void await_other(struct lowering *lowering, int home, const struct host_op *op,
                        const struct lower_threads_call *other)
{
    if (makes(op, home, other) || !thread_makes(lowering->driver, other))
        return;
    int flag =
        lower_flag(lowering, arena_printf(&lowering->program->arena,
                                          "the call for rank %d on %s in the same group",
                                          other->rank, lowering->plan->comms[other->comm].name));
    lower_emit(lowering, OP_AWAIT, op->mark)->object = flag;
}

void lower_alone(struct lowering *lowering, int home, const struct host_op *op)
{
    for (size_t i = 0; lowering->driver && i < call_count(op); i++) {
        const struct lower_threads_call call = call_at(op, home, i);
        const struct comm_desc *comm = &lowering->program->comms[call.comm];
        struct lower_threads_call other = {
            .comm = call.comm, .rank = call.peer, .peer = call.rank, .send = !call.send};
        if (call.peer >= 0 && call.peer != call.rank)
            await_other(lowering, home, op, &other);
        for (int m = 0; call.peer < 0 && m < comm->count; m++) {
            other = (struct lower_threads_call){
                .comm = call.comm, .rank = comm->members[m], .peer = -1};
            await_other(lowering, home, op, &other);
        }
    }
}

/* True if its call takes CPU time before it. */
static bool has_host_time(const struct host_op *op)
{
    return !op_is_cpu_work(op->kind) && op->host_time_ns > 0;
}

static void emit_host_time(struct lowering *lowering, const struct host_op *from)
{
    if (!has_host_time(from))
        return;
    struct op *op = lower_emit(lowering, OP_HOST, from->mark);
    op->time_ns = from->host_time_ns;
}

/* Who meets at each barrier of the plan: threads in their order, each once. */
static bool find_meetings(struct lowering *lowering)
{
    const struct plan *plan = lowering->plan;
    struct arena *arena = &lowering->program->arena;
    struct barrier_meeting *meetings =
        ARENA_ARRAY(arena, plan->barriers.count + 1, struct barrier_meeting);
    lowering->meetings = meetings;
    for (int t = 0; meetings && t < (int)plan->thread_count; t++)
        for (size_t i = 0; i < plan->threads[t].op_count; i++) {
            const struct host_op *op = &plan->threads[t].ops[i];
            if (op->kind != OP_BARRIER)
                continue;
            struct barrier_meeting *at = &meetings[op->object];
            if (at->count > 0 && at->threads[at->count - 1] == t)
                continue;
            if (!ARENA_GROW(arena, at->threads, at->count, at->cap))
                return false;
            at->threads[at->count++] = t;
        }
    return meetings;
}

static int barrier_flag(struct lowering *lowering, int barrier, int thread, int use)
{
    const struct host_thread *desc = &lowering->plan->threads[thread];
    return lower_flag(lowering,
                      arena_printf(&lowering->program->arena, "arrival %d of r%d.%s at barrier %s",
                                   use + 1, desc->rank, desc->name,
                                   lowering->plan->barriers.items[barrier]));
}

static void emit_arrival(struct lowering *lowering, enum op_kind kind, const struct host_op *from,
                         int thread, int use)
{
    const int flag = barrier_flag(lowering, from->object, thread, use);
    lower_emit(lowering, kind, from->mark)->object = flag;
}

/* Where more than these meet, each but the first waits for one flag, which the first sets when all have come: flags by
   flags would be as many as their pairs. Where fewer meet, what a thread waits for names who has not come. */
enum { MEETING_OF_FEW = 32 };

static void emit_opening(struct lowering *lowering, enum op_kind kind, const struct host_op *from,
                         int use)
{
    const int flag =
        lower_flag(lowering, arena_printf(&lowering->program->arena,
                                          "opening %d of barrier %s, when all have come", use + 1,
                                          lowering->plan->barriers.items[from->object]));
    lower_emit(lowering, kind, from->mark)->object = flag;
}

static void emit_barrier(struct lowering *lowering, int thread, const struct host_op *from, int use)
{
    const struct barrier_meeting *meeting = &lowering->meetings[from->object];
    const bool opens = meeting->count > MEETING_OF_FEW, first = meeting->threads[0] == thread;
    emit_arrival(lowering, OP_SIGNAL, from, thread, use);
    for (size_t i = 0; i < meeting->count && (!opens || first); i++)
        if (meeting->threads[i] != thread)
            emit_arrival(lowering, OP_AWAIT, from, meeting->threads[i], use);
    if (opens)
        emit_opening(lowering, first ? OP_SIGNAL : OP_AWAIT, from, use);
}

/* Waits before a push and records behind it on other streams. Allocating is no call of CUDA's. */
static void lower_threads_push_begin(struct lowering *lowering, int rank,
                                     const struct host_op *from)
{
    bool locked = from->kind == OP_LAUNCH && lowering->plan->machine.lazy_load;
    if (op_pushes(from->kind) && from->kind != OP_ALLOC)
        lower_legacy_begin(lowering, rank, from->stream, locked, from->mark);
}

static void lower_threads_push_end(struct lowering *lowering, int rank, const struct host_op *from)
{
    bool locked = from->kind == OP_LAUNCH && lowering->plan->machine.lazy_load;
    if (op_pushes(from->kind) && from->kind != OP_ALLOC)
        lower_legacy_end(lowering, rank, from->stream, locked, from->mark);
}

bool lower_frees(struct lowering *lowering, int buffer)
{
    const struct plan *plan = lowering->plan;
    if (!lowering->freed) {
        lowering->freed = ARENA_ARRAY(&lowering->program->arena, plan->buffer_count + 1, bool);
        lowering->failed |= !lowering->freed;
        for (size_t t = 0; lowering->freed && t < plan->thread_count; t++)
            for (size_t i = 0; i < plan->threads[t].op_count; i++)
                if (plan->threads[t].ops[i].kind == OP_FREE)
                    lowering->freed[plan->threads[t].ops[i].object] = true;
    }
    return lowering->freed && lowering->freed[buffer];
}

static void emit_callback(struct lowering *lowering, int rank, const struct host_op *from)
{
    int stream = lower_stream(lowering, rank, from->stream);
    struct op *op = lower_emit(lowering, OP_CALLBACK, from->mark);
    op->name = lower_name(lowering, from->name ? from->name : "callback");
    op->is_kernel = from->kind == OP_LAUNCH;
    op->stream = stream;
    op->time_ns = from->time_ns;
    lower_give(lowering, op, (struct given){.jitter = &host_op_details(from)->jitter});
    op->sm = from->sm;
    op->callback = -1; /* its body is lowered after all threads, see lower_callbacks */
}

/* Where the objects of the operation begin among the program's: events and buffers are those of the device,
   locks those of the thread, and the plan's own are shared by all ranks. */
static int first_object(const struct plan *plan, const struct host_op *op, int home, int rank)
{
    switch (op_operand(op->kind)) {
    case OPERAND_EVENT:
        return (op->object_rank > 0 ? op->object_rank - 1 : rank) * (int)plan->events.count;
    case OPERAND_LOCK: return home * ((int)plan->locks.count + 1);
    case OPERAND_BUFFER: return lower_first_buffer(plan, rank);
    case OPERAND_FLAG: /* the plan's flags are the first families */
    case OPERAND_QUEUE:
    case OPERAND_BARRIER:
    case OPERAND_TURN:
    case OPERAND_COMM:
    case OPERAND_SUBMISSION:
    case OPERAND_NONE: break;
    }
    return 0;
}

/* To clear a flag is to set it to 0. */
static void lower_flag_use(struct op *op, const struct host_op *from)
{
    int64_t value;
    op->flag_rule = host_op_flag_use(from, &value);
    op->value = (int)value;
    if (from->kind == OP_CLEAR)
        op->kind = OP_SIGNAL;
}

static void emit_simple(struct lowering *lowering, int home, const struct host_op *from, int stream)
{
    int rank = host_op_rank(from, home);
    struct op *op = lower_emit(lowering, from->kind, from->mark);
    const bool of_device = from->kind == OP_SYNC || from->kind == OP_QUERY;
    op->device = of_device ? rank : -1;
    op->name = lower_op_name(lowering, from);
    op->listed = from->listed;
    op->stream = stream;
    if (of_device)
        op->sync = from->sync;
    if (op_operand(from->kind) == OPERAND_TURN)
        op->ticket = (int)from->ticket;
    if (op_operand(from->kind) == OPERAND_FLAG)
        lower_flag_use(op, from);
    op->time_ns = from->time_ns;
    lower_slots(lowering, op, from->sm, host_op_is_greedy(from));
    lower_given(lowering, op, from);
    op->object =
        from->object < 0 ? -1 : first_object(lowering->plan, from, home, rank) + from->object;
    lower_accesses(lowering, op, rank, host_op_reads(from), host_op_writes(from));
}

static void lower_threads_emit_sync(struct lowering *lowering, int rank, enum sync_kind sync,
                                    int stream, struct mark mark)
{
    struct op *op = lower_emit(lowering, OP_SYNC, mark);
    op->sync = sync;
    op->stream = stream;
    op->device = rank;
}

/* A kernel with steps holds its stream, and its residency slots, until they are done: as a callback does. */
static bool has_body(const struct host_op *op)
{
    return op->kind == OP_CALLBACK || (op->kind == OP_LAUNCH && op->body_count > 0);
}

/* First all are aborted; then the thread waits for the device, whose memory it frees. */
static enum status lower_abort(struct lowering *lowering, int rank, const struct host_op *from)
{
    for (size_t i = 0; i < from->aborted->count; i++) {
        const int comm = from->aborted->items[i], member = lower_member(lowering, comm, rank);
        if (member < 0)
            return plan_error_at(lowering->plan, lowering->diag, from->mark,
                                 "found an abort of communicator %s by rank %d, expected one of "
                                 "its members",
                                 lowering->plan->comms[comm].name, rank);
        struct op *op = lower_emit(lowering, OP_ABORT, from->mark);
        op->object = comm;
        op->member = member;
    }
    lower_threads_emit_sync(lowering, rank, SYNC_DEVICE, -1, from->mark);
    return STATUS_OK;
}

static enum status lower_host_op(struct lowering *lowering, int home, const struct host_op *from)
{
    int rank = host_op_rank(from, home);
    lowering->at = from->at ? 1 + lower_name(lowering, from->at) : 0;
    emit_host_time(lowering, from);
    if (host_op_is_graph(from))
        return lower_graph(lowering, home, from);
    if (from->kind == OP_COLLECTIVE)
        return lower_collective(lowering, home, from);
    if (from->kind == OP_GROUP)
        return lower_group(lowering, home, from);
    if (from->kind == OP_ABORT)
        return lower_abort(lowering, rank, from);
    int stream = host_op_has_stream(from) ? lower_stream(lowering, rank, from->stream) : -1;
    bool loads = from->kind == OP_LAUNCH;
    if (loads)
        lower_load_begin(lowering, rank, lower_op_name(lowering, from), from->mark);
    if (from->kind == OP_ALLOC)
        lower_allocating(lowering, rank, from->mark);
    lower_threads_push_begin(lowering, rank, from);
    if (has_body(from))
        emit_callback(lowering, rank, from);
    else
        emit_simple(lowering, home, from, stream);
    lower_threads_push_end(lowering, rank, from);
    if (loads)
        lower_load_end(lowering, rank, from->mark);
    if (from->kind == OP_LAUNCH)
        lower_launched(lowering, stream, from->mark);
    if (host_op_is_pageable(from)) {
        lower_threads_emit_sync(lowering, rank, SYNC_STAGED, stream, from->mark);
        lower_threads_emit_sync(lowering, rank, SYNC_STREAM, stream, from->mark);
    }
    return STATUS_OK;
}

/* The thread whose operations are lowered. */
struct lower_threads_walk {
    struct lowering *lowering;
    int index;
    int *barrier_uses; /* so far */
    int open; /* the operation whose branches are being lowered, or their OP_ELSE; its `otherwise` is the one around it; -1 */
};

/* `from` has been lowered: what follows is its branches. */
static enum status open_branches(struct lower_threads_walk *walk, const struct host_op *from)
{
    struct program *program = walk->lowering->program;
    struct op *op = &program->ops[program->op_count - 1];
    op->otherwise = walk->open;
    walk->open = (int)program->op_count - 1;
    program->has_branches = true;
    program->asks_device |= from->kind == OP_QUERY;
    return STATUS_OK;
}

/* The `then` that is open ends here, or, where there is an OP_ELSE, the `else`. */
static void close_branch(struct lower_threads_walk *walk)
{
    struct program *program = walk->lowering->program;
    struct op *op = &program->ops[walk->open];
    const int around = op->otherwise;
    op->otherwise = (int)program->op_count - walk->open;
    walk->open = around;
}

static void lower_else(struct lower_threads_walk *walk, const struct host_op *from)
{
    struct lowering *lowering = walk->lowering;
    struct op *op = lower_emit(lowering, OP_ELSE, from->mark);
    const int index = (int)lowering->program->op_count - 1;
    close_branch(walk);
    op->otherwise = walk->open;
    walk->open = index;
}

/* What comes first, or has its partner, by the lists of the plan: in a branch that depends on the run. */
static bool check_in_branch_lowered(struct lowering *lowering, const struct host_op *op)
{
    const struct plan *plan = lowering->plan;
    if (!op_uses_comm(op->kind))
        return true;
    if (plan->machine.first_use_blocks)
        return plan_error_at(
                   plan, lowering->diag, op->mark,
                   "found \"%s\" in a branch under first_use_blocks, expected it outside: "
                   "which call is the first depends on the run",
                   op_key(op->kind)) == STATUS_OK;
    for (size_t i = 0; i < host_op_part_count(op); i++) {
        const int index = op->parts[i].comm >= 0 ? op->parts[i].comm : op->comm;
        const struct comm_desc *comm = &lowering->program->comms[index];
        if (!op->parts[i].is_collective && (comm->eager_messages > 0 || comm->eager_bytes > 0))
            return plan_error_at(
                       plan, lowering->diag, op->parts[i].mark,
                       "found a message in a branch on communicator %s, which sends eagerly, "
                       "expected it outside: whether it has its partner depends on the run",
                       comm->name) == STATUS_OK;
    }
    return true;
}

static enum status lower_next(struct lower_threads_walk *walk, int rank, const struct host_op *op)
{
    struct lowering *lowering = walk->lowering;
    lowering->iteration = op->iteration;
    if (op->iteration > lowering->program->repeats)
        lowering->program->repeats = op->iteration;
    if (lowering->failed && (op->has_branches || op_ends_branch(op->kind)))
        return diag_no_memory(lowering->diag);
    if (op_ends_branch(op->kind)) {
        if (op->kind == OP_ELSE)
            lower_else(walk, op);
        else
            close_branch(walk);
        return STATUS_OK;
    }
    if (walk->open >= 0 && !check_in_branch_lowered(lowering, op))
        return STATUS_INPUT;
    if (op->kind != OP_BARRIER) {
        enum status status = lower_host_op(lowering, rank, op);
        return status == STATUS_OK && op->has_branches ? open_branches(walk, op) : status;
    }
    emit_barrier(lowering, walk->index, op, walk->barrier_uses[op->object]++);
    return STATUS_OK;
}

static enum status take_next(void *arg, struct host_thread *thread, const struct host_op *op)
{
    return lower_next(arg, thread->rank, op);
}

static int take_name(void *arg, const char *text)
{
    const struct lower_threads_walk *walk = arg;
    return lower_new_name(walk->lowering, text);
}

static enum status lower_listed(struct lower_threads_walk *walk, const struct host_thread *thread)
{
    struct lowering *lowering = walk->lowering;
    const struct straight *straight = lowering->program->straight;
    lowering->driver = NULL;
    for (int s = straight ? straight->rank_first[walk->index] : 0;
         straight && s < straight->rank_first[walk->index + 1]; s++)
        lower_stream(lowering, walk->index, straight->streams[s].plan_stream);
    if (straight)
        return STATUS_OK;
    if (lowering->ranks)
        return rank_programs_thread(lowering->ranks, walk->index, take_next, take_name, walk);
    enum status status = STATUS_OK;
    lowering->driver = lower_drives_others(thread) ? thread : NULL;
    for (size_t i = 0; status == STATUS_OK && i < thread->op_count; i++)
        status = lower_next(walk, thread->rank, &thread->ops[i]);
    return status;
}

static enum status lower_thread_body(struct lowering *lowering, int index)
{
    const struct host_thread *thread = &lowering->plan->threads[index];
    int body = lower_body_begin(lowering);
    struct lower_threads_walk walk = {lowering, index,
                                      calloc(lowering->plan->barriers.count + 1, sizeof(int)), -1};
    if (!walk.barrier_uses)
        return diag_no_memory(lowering->diag);
    enum status status = lower_listed(&walk, thread);
    lowering->iteration = 0;
    free(walk.barrier_uses);
    lower_body_end(lowering, body);
    lower_thread(lowering, (struct thread_desc){.kind = THREAD_HOST,
                                                .rank = thread->rank,
                                                .name = thread->name,
                                                .body = body,
                                                .group = -1,
                                                .stream = -1});
    return status;
}

/* The callback thread of a stream; made when its first callback, or kernel of steps, is lowered. */
static int callback_thread(struct lowering *lowering, int rank, int stream, bool is_kernel)
{
    const struct program *program = lowering->program;
    for (int t = 0; t < program->thread_count; t++)
        if (program->threads[t].kind == THREAD_CALLBACK && program->threads[t].stream == stream)
            return t;
    const char *name =
        arena_printf(&lowering->program->arena, "%s%s",
                     is_kernel ? PROGRAM_KERNEL_OF : "callback of ", program->streams[stream].name);
    return lower_thread(lowering, (struct thread_desc){.kind = THREAD_CALLBACK,
                                                       .rank = rank,
                                                       .name = name,
                                                       .body = -1,
                                                       .group = -1,
                                                       .stream = stream});
}

/* Bodies of callbacks, in the order their operations were emitted; op->object is the body. */
static enum status lower_callbacks(struct lowering *lowering)
{
    struct program *program = lowering->program;
    const struct plan *plan = lowering->plan;
    size_t at = 0;
    for (size_t t = 0; t < plan->thread_count; t++) {
        const struct host_thread *thread = &plan->threads[t];
        for (size_t i = 0; i < thread->op_count; i++) {
            if (!has_body(&thread->ops[i]))
                continue;
            while (program->ops[at].kind != OP_CALLBACK)
                at++;
            int body = lower_body_begin(lowering);
            lowering->iteration = thread->ops[i].iteration;
            for (size_t k = 0; k < thread->ops[i].body_count; k++) {
                enum status status = lower_host_op(lowering, thread->rank, &thread->ops[i].body[k]);
                if (status != STATUS_OK)
                    return status;
            }
            lowering->iteration = 0;
            lower_body_end(lowering, body);
            if (lowering->failed)
                return lower_failed(lowering);
            program->ops[at].object = body;
            program->ops[at].callback =
                callback_thread(lowering, host_op_rank(&thread->ops[i], thread->rank),
                                program->ops[at].stream, program->ops[at].is_kernel);
            at++;
        }
    }
    return STATUS_OK;
}

/* All pushes of a finite program fit, unless the plan limits the launch queue. */
static enum status size_streams(struct lowering *lowering)
{
    struct program *program = lowering->program;
    int limit = lowering->plan->machine.launch_queue;
    for (size_t i = 0; i < program->op_count; i++)
        if (op_pushes(program->ops[i].kind))
            program->streams[program->ops[i].stream].cap++;
    for (int s = 0; s < program->stream_count; s++) {
        struct stream_desc *stream = &program->streams[s];
        if (program->straight)
            stream->cap = program->straight->streams[s].pushes;
        if (stream->cap == 0)
            stream->cap = 1;
        if (limit && limit < stream->cap)
            stream->cap = limit;
    }
    program->slots = 1;
    program->window = 1;
    program->history = 1;
    program->slots_safe = true;
    return STATUS_OK;
}

/* Accesses are known by the buffer's name, so a name must not have two lifetimes. */
static enum status check_allocs(struct lowering *lowering)
{
    const struct program *program = lowering->program;
    struct mark *first = calloc((size_t)program->buffer_count + 1, sizeof *first);
    enum status status = first ? STATUS_OK : diag_no_memory(lowering->diag);
    for (size_t i = 0; status == STATUS_OK && i < program->op_count; i++) {
        const struct op *op = &program->ops[i];
        if (!op_allocates(op->kind))
            continue;
        struct mark *known = &first[op->object];
        if (known->line)
            status = plan_error_at(
                lowering->plan, lowering->diag, op->mark,
                "found a second alloc of %s (first at %u:%u), expected one: give new memory a name "
                "of its own",
                program->buffers[op->object].name, known->line, known->col);
        *known = op->mark;
    }
    free(first);
    return status;
}

/* Which instance of several is used follows from the iteration of a repeat, and memory of several is not allocated. */
static enum status check_rings(struct lowering *lowering)
{
    const struct program *program = lowering->program;
    for (size_t i = 0; i < program->op_count; i++) {
        const struct op *op = &program->ops[i];
        const bool names = op_operand(op->kind) == OPERAND_BUFFER;
        for (int k = names ? -1 : 0; k < op->access_count; k++) {
            const struct buffer_desc *buffer =
                &program
                     ->buffers[k < 0 ? op->object : program->accesses[op->access_first + k].buffer];
            if (k >= 0 && op->iteration >= 0)
                continue;
            if (buffer->scope == SCOPE_ITERATION)
                return plan_error_at(lowering->plan, lowering->diag, op->mark,
                                     "found buffer %s of scope iteration %s", buffer->name,
                                     k < 0 ? "in an alloc, free or record_stream, expected a "
                                             "shared one"
                                           : "outside of a repeat, expected it in one");
            if (buffer->period > 1)
                return plan_error_at(
                    lowering->plan, lowering->diag, op->mark,
                    "found buffer %s of %d instances %s: iteration i of a repeat uses instance i "
                    "mod %d",
                    buffer->name, buffer->period,
                    k < 0 ? "in an alloc, free or record_stream, expected one that has one"
                          : "outside of a repeat, expected it in one",
                    buffer->period);
        }
    }
    return STATUS_OK;
}

/* cudaFreeAsync is of memory of the device. */
static enum status check_host_frees(struct lowering *lowering)
{
    const struct program *program = lowering->program;
    bool *on_host = calloc((size_t)program->buffer_count + 1, sizeof *on_host);
    enum status status = on_host ? STATUS_OK : diag_no_memory(lowering->diag);
    for (size_t i = 0; on_host && i < program->op_count; i++)
        if (program->ops[i].kind == OP_HOST_ALLOC)
            on_host[program->ops[i].object] = true;
    for (size_t i = 0; status == STATUS_OK && i < program->op_count; i++) {
        const struct op *op = &program->ops[i];
        if (op->kind == OP_FREE && op->stream >= 0 && on_host[op->object])
            status = plan_error_at(lowering->plan, lowering->diag, op->mark,
                                   "found a stream in the free of %s, expected none: host_alloc "
                                   "has allocated it, in memory of the host",
                                   program->buffers[op->object].name);
    }
    free(on_host);
    return status;
}

static enum status name_tables(struct lowering *lowering)
{
    struct program *program = lowering->program;
    const struct plan *plan = lowering->plan;
    size_t events = (size_t)program->ranks * plan->events.count;
    program->event_families = (int)events;
    program->event_names = ARENA_ARRAY(&program->arena, events, const char *);
    program->queue_count = (int)plan->queue_count;
    program->queue_names = ARENA_ARRAY(&program->arena, plan->queue_count, const char *);
    program->queue_caps = ARENA_ARRAY(&program->arena, plan->queue_count, int);
    if (!program->event_names || !program->queue_names || !program->queue_caps)
        return diag_no_memory(lowering->diag);
    for (size_t i = 0; i < events; i++) {
        program->event_names[i] =
            arena_printf(&program->arena, "event %s", plan->events.items[i % plan->events.count]);
        if (!program->event_names[i])
            return diag_no_memory(lowering->diag);
    }
    for (size_t i = 0; i < plan->queue_count; i++) {
        program->queue_names[i] = plan->queues[i].name;
        program->queue_caps[i] = plan->queues[i].capacity;
    }
    for (size_t i = 0; i < plan->flags.count; i++)
        lower_flag(lowering, plan->flags.items[i]);
    return STATUS_OK;
}

/* Most host operations become one operation of the machine, and one more where their call takes time. */
static void reserve(struct lowering *lowering)
{
    const struct plan *plan = lowering->plan;
    size_t ops = 1, parts = 1;
    for (size_t t = 0; t < plan->thread_count; t++) {
        ops += plan->threads[t].op_count;
        for (size_t i = 0; !lowering->ranks && i < plan->threads[t].op_count; i++) {
            parts += host_op_part_count(&plan->threads[t].ops[i]);
            ops += has_host_time(&plan->threads[t].ops[i]);
        }
    }
    if (lowering->ranks)
        parts += rank_programs_parts(lowering->ranks);
    lower_reserve(lowering, ops, parts);
}

enum status lower_threads(struct lowering *lowering)
{
    reserve(lowering);
    enum status status = name_tables(lowering);
    if (status == STATUS_OK)
        status = lower_legacy_open(lowering);
    if (status == STATUS_OK && !lowering->ranks && !find_meetings(lowering)) /* actions have none */
        status = diag_no_memory(lowering->diag);
    for (int t = 0; status == STATUS_OK && t < (int)lowering->plan->thread_count; t++)
        status = lower_thread_body(lowering, t);
    if (status == STATUS_OK && lowering->failed)
        return lower_failed(lowering);
    if (status == STATUS_OK && !lowering->ranks)
        status = lower_callbacks(lowering);
    if (status == STATUS_OK && lowering->failed)
        return lower_failed(lowering);
    if (status == STATUS_OK)
        status = check_allocs(lowering);
    if (status == STATUS_OK)
        status = check_host_frees(lowering);
    if (status == STATUS_OK)
        status = check_rings(lowering);
    return status == STATUS_OK ? size_streams(lowering) : status;
}
