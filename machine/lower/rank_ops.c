/* SPDX-License-Identifier: Apache-2.0 */
/* rank_ops.c - see rank_internal.h: steps become host operations, with events and buffers. */
#include "rank_internal.h"
#include "plan/schedules/tensors.h"

#include <assert.h>

/* ---- events ---------------------------------------------------------------------------------- */

/* An event for results of this kind of action that no step waits for any more, or a new one. */
static bool take_event(struct lowering *lowering, enum action_kind kind, size_t *slot)
{
    struct plan *out = lowering->out;
    struct event_pool *pool = &lowering->events[kind];
    if (pool->unused_count > 0) {
        *slot = pool->unused[--pool->unused_count];
        return true;
    }
    const char *text = action_text(kind);
    const char *name = pool->count ? arena_printf(&out->arena, "%s.%zu", text, pool->count) : text;
    if (!name || !arena_grow(&lowering->scratch, (void **)&pool->ids, pool->count, &pool->cap,
                             sizeof *pool->ids))
        return false;
    if (!arena_grow(&out->arena, (void **)&out->events.items, out->events.count, &out->events.cap,
                    sizeof *out->events.items))
        return false;
    out->events.items[out->events.count] = name;
    pool->ids[pool->count] = (int)out->events.count++;
    *slot = pool->count++;
    return true;
}

static bool drop_event(struct lowering *lowering, enum action_kind kind, size_t slot)
{
    struct event_pool *pool = &lowering->events[kind];
    if (!arena_grow(&lowering->scratch, (void **)&pool->unused, pool->unused_count,
                    &pool->unused_cap, sizeof *pool->unused))
        return false;
    pool->unused[pool->unused_count++] = slot;
    return true;
}

void events_reset(struct lowering *lowering)
{
    for (int kind = 0; kind < ACTION_IDLE; kind++) {
        struct event_pool *pool = &lowering->events[kind];
        assert(pool->unused_count == pool->count);
        for (size_t i = 0; i < pool->count; i++)
            pool->unused[i] = pool->count - 1 - i;
    }
}

/* ---- buffers --------------------------------------------------------------------------------- */

/* The buffers that an operation reads and writes. */
static bool add_accesses(struct lowering *lowering, struct host_op *op,
                         const struct rank_step *step)
{
    if (!lowering->tracked || step->kind == STEP_HOST)
        return true;
    const struct action *parts;
    size_t count = step->kind == STEP_GROUP ? 0 : comms_parts(step->action, &parts);
    size_t most = count ? count * ACTION_MOST_USES : step->message_count;
    int *items = ARENA_ARRAY(lowering->sink.arena, 2 * most, int);
    if (!items)
        return false;
    op->reads.items = items;
    op->writes.items = items + most;
    bool of_pass = step->place != STEP_ALONE && step->action->kind != ACTION_REDUCE_GRAD;
    for (size_t k = 0; k < count; k++)
        if (!(of_pass ? tensors_access_shared(lowering, op, &parts[k], step->place)
                      : tensors_access(lowering, op, &parts[k])))
            return false;
    const struct message *messages = lowering->now.messages;
    for (size_t i = count ? 0 : step->first_message + 1; i; i = messages[i - 1].next)
        if (!tensors_access(lowering, op, messages[i - 1].action))
            return false;
    return true;
}

/* ---- steps to host operations ---------------------------------------------------------------- */

/* Hand on the operation that has been written, if there is one. */
static void hand_on(struct lowering *lowering, struct host_thread *thread)
{
    struct ops_sink *sink = &lowering->sink;
    if (!sink->open)
        return;
    if (sink->take) {
        replicas_move(lowering, &sink->op);
        if (sink->status == STATUS_OK)
            sink->status = sink->take(sink->arg, thread, &sink->op);
    }
    if (sink->empties)
        arena_empty(sink->arena);
    sink->open = false;
}

/* The next operation, valid until the one behind it is added. */
static struct host_op *add_op(struct lowering *lowering, struct host_thread *thread,
                              enum op_kind kind, struct mark mark)
{
    struct ops_sink *sink = &lowering->sink;
    hand_on(lowering, thread);
    sink->open = true;
    thread->op_count++;
    if (!sink->take) {
        sink->op.reads.count = sink->op.writes.count = sink->op.part_count = 0;
        return &sink->op;
    }
    sink->op = (struct host_op){.kind = kind, .mark = mark, .stream = -1, .object = -1, .comm = -1};
    sink->op.work.comm = sink->op.work.root = -1;
    return &sink->op;
}

static void write_event_op(struct lowering *lowering, struct host_thread *thread, enum op_kind kind,
                           const struct rank_step *producer, int stream, struct mark mark)
{
    struct host_op *op = add_op(lowering, thread, kind, mark);
    op->object = lowering->events[producer->action->kind].ids[producer->event_slot];
    op->stream = stream;
}

static bool write_waits(struct lowering *lowering, struct host_thread *thread,
                        const struct rank_step *step)
{
    struct rank_steps *now = &lowering->now;
    for (size_t i = step->first_wait; i < step->first_wait + step->wait_count; i++) {
        struct rank_step *producer = &now->steps[now->waits[i].producer];
        write_event_op(lowering, thread, OP_WAIT, producer, step->stream, step->action->mark);
        if (--producer->waiters_left == 0 &&
            !drop_event(lowering, producer->action->kind, producer->event_slot))
            return false;
    }
    return true;
}

static bool write_record(struct lowering *lowering, struct host_thread *thread,
                         struct rank_step *step)
{
    if (step->waiters_left == 0)
        return true;
    if (!take_event(lowering, step->action->kind, &step->event_slot))
        return false;
    write_event_op(lowering, thread, OP_RECORD, step, step->stream, step->action->mark);
    return true;
}

/* The first message of its kind and stage in the list, or each? */
static bool tells_shape(struct lowering *lowering, const struct action *message)
{
    if (lowering->plan->programs.metadata != METADATA_FIRST)
        return lowering->plan->programs.metadata == METADATA_EACH;
    size_t kind = (size_t)message_is_forward(message) * 2 + message_is_send(message);
    uint32_t *told = &lowering->told[(size_t)message->stage * MESSAGE_KINDS + kind];
    bool first = *told != lowering->walk;
    *told = lowering->walk;
    return first;
}

static bool write_part(struct lowering *lowering, struct p2p_part *part, const struct message *of,
                       bool metadata)
{
    const struct action *message = of->action;
    int from, to;
    message_ends(lowering, message, &from, &to);
    *part = (struct p2p_part){.send = message_is_send(message),
                              .metadata = metadata,
                              .peer = message_is_send(message) ? to : from,
                              .root = -1,
                              .comm = -1,
                              .stream = -1,
                              .listed = of->listed,
                              .bytes = metadata ? METADATA_BYTES : of->cost.bytes,
                              .mark = message->mark};
    return names_message(lowering, part, message);
}

static bool write_group(struct lowering *lowering, struct host_op *op, const struct rank_step *step)
{
    const struct message *messages = lowering->now.messages;
    lowering->part_count += step->message_count;
    if (only_counts(lowering))
        return true;
    op->comm = step->comm;
    op->parts = ARENA_ARRAY(lowering->sink.arena, step->message_count, struct p2p_part);
    if (!op->parts)
        return false;
    for (size_t i = step->first_message + 1; i; i = messages[i - 1].next)
        if (!write_part(lowering, &op->parts[op->part_count++], &messages[i - 1], false))
            return false;
    return true;
}

/* Before a group goes one of the same ends, with the shapes of its tensors. */
static bool write_metadata(struct lowering *lowering, struct host_thread *thread,
                           const struct rank_step *step)
{
    const struct message *messages = lowering->now.messages;
    struct host_op *op = NULL;
    bool ok = true;
    for (size_t i = step->first_message + 1; i && ok; i = messages[i - 1].next) {
        const struct message *message = &messages[i - 1];
        if (!tells_shape(lowering, message->action))
            continue;
        if (!op) {
            op = add_op(lowering, thread, OP_GROUP, step->action->mark);
            op->stream = step->stream;
            op->comm = step->comm;
            op->listed = step->listed;
            op->sm = 1;
            op->parts = ARENA_ARRAY(lowering->sink.arena, step->message_count, struct p2p_part);
            if (!op->parts)
                return false;
        }
        ok = write_part(lowering, &op->parts[op->part_count++], message, true);
        lowering->part_count++;
        if (message->cost.metadata_ns > op->time_ns)
            op->time_ns = message->cost.metadata_ns;
    }
    return ok;
}

static void write_buffer_op(struct lowering *lowering, struct host_thread *thread,
                            enum op_kind kind, int buffer, int stream, struct mark mark)
{
    struct host_op *op = add_op(lowering, thread, kind, mark);
    op->object = buffer;
    op->stream = stream;
}

/* The memory that an UNSHARD fills belongs to the stream that gathers. */
static bool write_alloc(struct lowering *lowering, struct host_thread *thread,
                        const struct rank_step *step)
{
    if (step->action->kind != ACTION_UNSHARD || !lowering->tracked)
        return true;
    int buffer = fsdp_gather(lowering, step->action->stage);
    if (buffer >= 0)
        write_buffer_op(lowering, thread, OP_ALLOC, buffer, step->stream, step->action->mark);
    return buffer >= 0;
}

/* The passes that read it run on another stream, which the allocator is told. */
static void write_free(struct lowering *lowering, struct host_thread *thread,
                       const struct action *action)
{
    int buffer = action->kind == ACTION_RESHARD && lowering->tracked
                     ? fsdp_free(lowering, action->stage)
                     : -1;
    if (buffer < 0)
        return;
    write_buffer_op(lowering, thread, OP_RECORD_STREAM, buffer, lowering->compute, action->mark);
    write_buffer_op(lowering, thread, OP_FREE, buffer, -1, action->mark);
}

static void fill_collective(struct host_op *op, const struct rank_step *step)
{
    op->comm = step->comm;
    op->collective = step->collective.kind;
    op->bytes = step->collective.bytes;
    op->work = (struct work){.kind = WORK_COLLECTIVE,
                             .collective = op->collective,
                             .comm = op->comm,
                             .bytes = op->bytes,
                             .peer = -1,
                             .root = -1};
}

/* It holds up the stream of the passes, and occupies nothing. */
static bool is_stream_wait(enum action_kind kind)
{
    return kind == ACTION_WAIT_SEND_F || kind == ACTION_WAIT_SEND_B || kind == ACTION_WAIT_RECV_F ||
           kind == ACTION_WAIT_RECV_B || kind == ACTION_WAIT_REDUCE_GRAD;
}

static bool write_step(struct lowering *lowering, struct host_thread *thread,
                       struct rank_step *step)
{
    static const enum op_kind kinds[] = {[STEP_KERNEL] = OP_LAUNCH,
                                         [STEP_HOST] = OP_HOST,
                                         [STEP_GROUP] = OP_GROUP,
                                         [STEP_COLLECTIVE] = OP_COLLECTIVE,
                                         [STEP_RING] = OP_GROUP};
    if (!write_waits(lowering, thread, step) || !write_alloc(lowering, thread, step))
        return false;
    if (step->kind == STEP_GROUP && !write_metadata(lowering, thread, step))
        return false;
    if (step->kind == STEP_JOIN)
        return write_record(lowering, thread, step);
    struct host_op *op = add_op(lowering, thread, kinds[step->kind], step->action->mark);
    op->stream = step->stream;
    op->listed = step->listed;
    op->time_ns = step->time_ns;
    op->sm = step->kind == STEP_HOST || is_stream_wait(step->action->kind) ? 0 : 1;
    if (step->kind == STEP_GROUP) {
        if (!write_group(lowering, op, step))
            return false;
    } else if (step->kind == STEP_RING) {
        if (!collectives_ring(lowering, op, step))
            return false;
    } else if (!names_op(lowering, op, step)) {
        return false;
    }
    if (step->kind == STEP_COLLECTIVE)
        fill_collective(op, step);
    if (!add_accesses(lowering, op, step) || !write_record(lowering, thread, step))
        return false;
    write_free(lowering, thread, step->action);
    return true;
}

/* The training step uses what all passes have computed: the end of a list reads what none of them does. */
static bool write_end(struct lowering *lowering, struct host_thread *thread)
{
    struct index_list missing = {0};
    hand_on(lowering, thread);
    if (!tensors_missing(lowering, &missing))
        return false;
    if (missing.count == 0)
        return true;
    struct host_op *end = add_op(lowering, thread, OP_HOST, (struct mark){0, 0});
    end->reads = missing;
    end->listed = steps_list(lowering, &(struct action){.kind = ACTION_IDLE, .microbatch = -1}, 0);
    return end->listed > 0 && names_word(lowering, end, "end of the list");
}

/* Once for all stages of the rank, when all its other work is done. */
static bool write_optimizer(struct lowering *lowering, struct host_thread *thread)
{
    int64_t time_ns = 0;
    const struct stage_map *map = &lowering->map;
    for (int s = map->lowest_of[lowering->rank]; s >= 0; s = map->next_of[s])
        time_ns += lowering->costs[s].of[COST_OPTIMIZER];
    if (time_ns == 0)
        return true;
    struct host_op *op = add_op(lowering, thread, OP_LAUNCH, (struct mark){0, 0});
    op->stream = lowering->compute;
    op->time_ns = time_ns;
    op->sm = 1;
    if (!names_word(lowering, op, "optimizer"))
        return false;
    add_op(lowering, thread, OP_SYNC, (struct mark){0, 0})->sync = SYNC_DEVICE;
    return true;
}

enum status ops_write(struct lowering *lowering, struct host_thread *thread)
{
    struct rank_steps *now = &lowering->now;
    thread->op_count = 0;
    for (size_t i = 0; i < now->step_count; i++)
        if (!write_step(lowering, thread, &now->steps[i]))
            return diag_no_memory(lowering->diag);
    struct host_op *end = add_op(lowering, thread, OP_SYNC, (struct mark){0, 0});
    end->sync = SYNC_DEVICE;
    if (!write_optimizer(lowering, thread) || !write_end(lowering, thread))
        return diag_no_memory(lowering->diag);
    hand_on(lowering, thread);
    lowering->op_count += thread->op_count;
    if (lowering->op_count > PLAN_MAX_LOWERED)
        return diag_error(lowering->diag, STATUS_INPUT,
                          "%s: the rank programs need more than %d machine operations, expected a "
                          "smaller schedule",
                          lowering->plan->file, PLAN_MAX_LOWERED);
    return lowering->sink.status;
}
