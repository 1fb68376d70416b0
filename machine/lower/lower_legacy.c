/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower_legacy.c - the order that the legacy default stream imposes, made of records and waits.
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
#include "lower.h"

static bool is_blocking(const struct plan *plan, int stream)
{
    const struct stream_spec *spec = plan_stream_spec(plan, stream);
    return !spec || spec->blocking;
}

/* Parts of a group may be on streams, and devices, of their own. */
static bool op_is_on(const struct host_op *op, int home, int rank, int stream)
{
    bool is_on = op_pushes(op->kind) && op->stream == stream && host_op_rank(op, home) == rank;
    for (size_t i = 0; !is_on && i < op->part_count; i++) {
        const struct p2p_part *part = &op->parts[i];
        is_on = (part->stream >= 0 ? part->stream : op->stream) == stream &&
                p2p_part_rank(op, part, home) == rank;
    }
    return is_on;
}

/* Does thread or, in a pipeline, thread group `index` of this rank push to the stream? */
static bool pushes_to(const struct plan *plan, int rank, int index, int stream)
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
   streams that the legacy one orders. */
static void find_uses(struct lowering *lowering)
{
    const struct plan *plan = lowering->plan;
    int streams = (int)plan->streams.count;
    int threads = plan->form == FORM_PIPELINE ? (int)plan->groups.count : (int)plan->thread_count;
    for (int rank = 0; rank < lowering->program->ranks; rank++)
        for (int thread = 0; thread < threads; thread++) {
            bool any = false;
            for (int s = 0; s < streams; s++)
                if (is_blocking(plan, s) && pushes_to(plan, rank, thread, s))
                    any = lowering->in_order[rank * streams + s] = true;
            lowering->pushers[rank] += any;
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
    find_uses(lowering);
    return STATUS_OK;
}

static void emit(struct lowering *lowering, enum op_kind kind, int rank, int stream, int of,
                 struct mark mark)
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
            emit(lowering, OP_RECORD, rank, s, s, mark);
        emit(lowering, OP_WAIT, rank, from ? legacy : s, from ? s : legacy, mark);
    }
}

static bool is_ordered(const struct lowering *lowering, int rank, int stream)
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
    bool ordered = is_ordered(lowering, rank, stream);
    if (needs_lock(lowering, rank, ordered, locked))
        lower_emit(lowering, OP_LOCK, mark)->object = lower_context_lock(lowering, rank);
    if (ordered && plan_legacy_stream(lowering->plan)->stream == stream)
        order_others(lowering, rank, stream, true, mark);
}

void lower_legacy_end(struct lowering *lowering, int rank, int stream, bool locked,
                      struct mark mark)
{
    bool ordered = is_ordered(lowering, rank, stream);
    if (ordered && plan_legacy_stream(lowering->plan)->stream == stream) {
        emit(lowering, OP_RECORD, rank, stream, stream, mark);
        order_others(lowering, rank, stream, false, mark);
    }
    if (needs_lock(lowering, rank, ordered, locked))
        lower_emit(lowering, OP_UNLOCK, mark)->object = lower_context_lock(lowering, rank);
}
