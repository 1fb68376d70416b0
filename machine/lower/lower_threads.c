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

#include "lower.h"
#include "rank_programs.h"

static void emit_host_time(struct lowering *lowering, const struct host_op *from)
{
    if (op_is_cpu_work(from->kind) || from->host_time_ns == 0)
        return;
    struct op *op = lower_emit(lowering, OP_HOST, from->mark);
    op->time_ns = from->host_time_ns;
}

/* The number of uses of barrier `barrier` by `thread`. */
static int barrier_uses(const struct host_thread *thread, int barrier)
{
    int uses = 0;
    for (size_t i = 0; i < thread->op_count; i++)
        uses += thread->ops[i].kind == OP_BARRIER && thread->ops[i].object == barrier;
    return uses;
}

static int barrier_flag(struct lowering *lowering, int barrier, int thread, int use)
{
    const struct host_thread *desc = &lowering->plan->threads[thread];
    return lower_flag(lowering,
                      arena_printf(&lowering->program->arena, "arrival %d of r%d.%s at barrier %s",
                                   use + 1, desc->rank, desc->name,
                                   lowering->plan->barriers.items[barrier]));
}

static void emit_barrier(struct lowering *lowering, int thread, const struct host_op *from, int use)
{
    const struct plan *plan = lowering->plan;
    struct op *op = lower_emit(lowering, OP_SIGNAL, from->mark);
    op->object = barrier_flag(lowering, from->object, thread, use);
    for (int other = 0; other < (int)plan->thread_count; other++) {
        if (other == thread || barrier_uses(&plan->threads[other], from->object) == 0)
            continue;
        int flag = barrier_flag(lowering, from->object, other, use);
        op = lower_emit(lowering, OP_AWAIT, from->mark);
        op->object = flag;
    }
}

/* Waits before a push and records behind it on other streams. Allocating is no call of CUDA's. */
static void push_begin(struct lowering *lowering, int rank, const struct host_op *from)
{
    bool locked = from->kind == OP_LAUNCH && lowering->plan->machine.lazy_load;
    if (op_pushes(from->kind) && from->kind != OP_ALLOC)
        lower_legacy_begin(lowering, rank, from->stream, locked, from->mark);
}

static void push_end(struct lowering *lowering, int rank, const struct host_op *from)
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
    lower_give(lowering, op, (struct given){.jitter = &from->jitter});
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
    case OPERAND_NONE: break;
    }
    return 0;
}

static void emit_simple(struct lowering *lowering, int home, const struct host_op *from, int stream)
{
    int rank = host_op_rank(from, home);
    struct op *op = lower_emit(lowering, from->kind, from->mark);
    op->device = (int16_t)(from->kind == OP_SYNC ? rank : -1);
    op->name = lower_op_name(lowering, from);
    op->listed = from->listed;
    op->stream = stream;
    op->sync = from->sync;
    op->ticket = (int)from->ticket;
    op->time_ns = from->time_ns;
    op->sm = from->sm;
    lower_given(lowering, op, from);
    op->object =
        from->object < 0 ? -1 : first_object(lowering->plan, from, home, rank) + from->object;
    lower_accesses(lowering, op, rank, &from->reads, &from->writes);
}

static void emit_sync(struct lowering *lowering, int rank, enum sync_kind sync, int stream,
                      struct mark mark)
{
    struct op *op = lower_emit(lowering, OP_SYNC, mark);
    op->sync = sync;
    op->stream = stream;
    op->device = (int16_t)rank;
}

/* A kernel with steps holds its stream, and its residency slots, until they are done: as a callback does. */
static bool has_body(const struct host_op *op)
{
    return op->kind == OP_CALLBACK || (op->kind == OP_LAUNCH && op->body_count > 0);
}

enum status lower_host_op(struct lowering *lowering, int home, const struct host_op *from)
{
    int rank = host_op_rank(from, home);
    emit_host_time(lowering, from);
    if (from->kind == OP_LAUNCH && from->is_graph)
        return lower_graph(lowering, home, from);
    if (from->kind == OP_COLLECTIVE)
        return lower_collective(lowering, home, from);
    if (from->kind == OP_GROUP)
        return lower_group(lowering, home, from);
    int stream = host_op_has_stream(from) ? lower_stream(lowering, rank, from->stream) : -1;
    bool loads = from->kind == OP_LAUNCH;
    if (loads)
        lower_load_begin(lowering, rank, lower_op_name(lowering, from), from->mark);
    if (from->kind == OP_ALLOC)
        lower_allocating(lowering, rank, from->mark);
    push_begin(lowering, rank, from);
    if (has_body(from))
        emit_callback(lowering, rank, from);
    else
        emit_simple(lowering, home, from, stream);
    push_end(lowering, rank, from);
    if (loads)
        lower_load_end(lowering, rank, from->mark);
    if (from->kind == OP_LAUNCH)
        lower_launched(lowering, stream, from->mark);
    if (from->kind == OP_COPY && from->pageable) {
        emit_sync(lowering, rank, SYNC_STAGED, stream, from->mark);
        emit_sync(lowering, rank, SYNC_STREAM, stream, from->mark);
    }
    return STATUS_OK;
}

/* The thread whose operations are lowered. */
struct walk {
    struct lowering *lowering;
    int index;
    int *barrier_uses; /* so far */
};

static enum status lower_next(struct walk *walk, int rank, const struct host_op *op)
{
    struct lowering *lowering = walk->lowering;
    lowering->iteration = op->iteration;
    if (op->iteration > lowering->program->repeats)
        lowering->program->repeats = op->iteration;
    if (op->kind != OP_BARRIER)
        return lower_host_op(lowering, rank, op);
    emit_barrier(lowering, walk->index, op, walk->barrier_uses[op->object]++);
    return STATUS_OK;
}

static enum status take_next(void *arg, struct host_thread *thread, const struct host_op *op)
{
    return lower_next(arg, thread->rank, op);
}

static int take_name(void *arg, const char *text)
{
    const struct walk *walk = arg;
    return lower_new_name(walk->lowering, text);
}

static enum status lower_listed(struct walk *walk, const struct host_thread *thread)
{
    struct lowering *lowering = walk->lowering;
    lowering->driver = NULL;
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
    struct walk walk = {lowering, index, calloc(lowering->plan->barriers.count + 1, sizeof(int))};
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
        arena_printf(&lowering->program->arena, "%s of %s", is_kernel ? "kernel" : "callback",
                     program->streams[stream].name);
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
                return diag_no_memory(lowering->diag);
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
        if (op->kind != OP_ALLOC)
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

/* Most host operations become one operation of the machine. */
static void reserve(struct lowering *lowering)
{
    const struct plan *plan = lowering->plan;
    size_t ops = 1, parts = 1;
    for (size_t t = 0; t < plan->thread_count; t++) {
        ops += plan->threads[t].op_count;
        for (size_t i = 0; !lowering->ranks && i < plan->threads[t].op_count; i++)
            parts += plan->threads[t].ops[i].part_count;
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
    for (int t = 0; status == STATUS_OK && t < (int)lowering->plan->thread_count; t++)
        status = lower_thread_body(lowering, t);
    if (status == STATUS_OK && lowering->failed)
        return diag_no_memory(lowering->diag);
    if (status == STATUS_OK && !lowering->ranks) /* actions have none */
        status = lower_callbacks(lowering);
    if (status == STATUS_OK && lowering->failed)
        return diag_no_memory(lowering->diag);
    if (status == STATUS_OK)
        status = check_allocs(lowering);
    return status == STATUS_OK ? size_streams(lowering) : status;
}
