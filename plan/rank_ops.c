/* rank_ops.c - see rank_internal.h: steps become host operations, with events and buffers. */
#include "rank_internal.h"

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

int rank_buffer(struct lowering *lowering, int *cell, int64_t bytes, const char *what, int stage,
                int number)
{
    struct plan *out = lowering->out;
    if (*cell)
        return *cell - 1;
    struct buffer buffer = {.name = arena_printf(&out->arena, "%s.%d.%d", what, stage, number),
                            .scope = SCOPE_SHARED,
                            .bytes = bytes,
                            .owner = replica_count(lowering) > 1 ? 0 : lowering->rank + 1,
                            .declared = true,
                            .input = true}; /* check/passes.h asks the list of actions */
    if (!buffer.name || !arena_grow(&out->arena, (void **)&out->buffers, out->buffer_count,
                                    &lowering->buffer_cap, sizeof buffer))
        return -1;
    out->buffers[out->buffer_count] = buffer;
    *cell = (int)++out->buffer_count;
    return *cell - 1;
}

/* The output of a stage for a microbatch, on any rank. */
static bool use_activation(struct lowering *lowering, struct index_list *list, int stage,
                           int microbatch)
{
    int *cell = &lowering->activations[lowering_cell(lowering, stage, microbatch)];
    list->items[list->count] =
        rank_buffer(lowering, cell, lowering->plan->programs.p2p_bytes, "act", stage, microbatch);
    return list->items[list->count++] >= 0;
}

/* The gradient of a stage's input. */
static bool use_gradient(struct lowering *lowering, struct index_list *list, int stage,
                         int microbatch)
{
    int *cell = &lowering->gradients[lowering_cell(lowering, stage, microbatch)];
    list->items[list->count] =
        rank_buffer(lowering, cell, lowering->plan->programs.p2p_bytes, "grad", stage, microbatch);
    return list->items[list->count++] >= 0;
}

static bool access_pass(struct lowering *lowering, struct host_op *op, const struct action *pass)
{
    int s = pass->stage, m = pass->microbatch, last = lowering->map.stages - 1;
    bool ok = fsdp_access_pass(lowering, op, pass) &&
              (s == 0 || use_activation(lowering, &op->reads, s - 1, m));
    if (pass->kind == ACTION_F)
        return ok && use_activation(lowering, &op->writes, s, m);
    ok = ok && (s == last || use_gradient(lowering, &op->reads, s + 1, m));
    if (pass->kind == ACTION_W)
        return ok;
    ok = ok && use_activation(lowering, &op->reads, s, m);
    return ok && (s == 0 || use_gradient(lowering, &op->writes, s, m));
}

static bool access_message(struct lowering *lowering, struct host_op *op,
                           const struct action *message)
{
    int partner = comms_partner(message), m = message->microbatch;
    switch (message->kind) {
    case ACTION_SEND_F: return use_activation(lowering, &op->reads, message->stage, m);
    case ACTION_RECV_F: return use_activation(lowering, &op->writes, partner, m);
    case ACTION_SEND_B: return use_gradient(lowering, &op->reads, message->stage, m);
    default: return use_gradient(lowering, &op->writes, partner, m);
    }
}

static bool access_collective(struct lowering *lowering, struct host_op *op,
                              const struct action *action)
{
    if (action->kind == ACTION_REDUCE_GRAD)
        return fsdp_gradient(lowering, &op->reads, action->stage);
    op->writes.items[op->writes.count++] =
        lowering->fsdp.stages[action->stage].parameters - 1; /* allocated just before */
    return true;
}

/* The buffers that an operation reads and writes. */
static bool add_accesses(struct lowering *lowering, struct host_op *op,
                         const struct rank_step *step)
{
    enum { MOST_OF_A_PASS = 4 };
    if (!lowering->activations || step->kind == STEP_HOST)
        return true;
    size_t most = step->message_count > MOST_OF_A_PASS ? step->message_count : MOST_OF_A_PASS;
    op->reads.items = ARENA_ARRAY(&lowering->out->arena, most, int);
    op->writes.items = ARENA_ARRAY(&lowering->out->arena, most, int);
    if (!op->reads.items || !op->writes.items)
        return false;
    if (step->kind == STEP_KERNEL)
        return access_pass(lowering, op, step->action);
    if (step->kind == STEP_COLLECTIVE)
        return access_collective(lowering, op, step->action);
    const struct message *messages = lowering->now.messages;
    for (size_t i = step->first_message + 1; i; i = messages[i - 1].next)
        if (!access_message(lowering, op, messages[i - 1].action))
            return false;
    return true;
}

/* ---- steps to host operations ---------------------------------------------------------------- */

static struct host_op *add_op(struct host_thread *thread, enum op_kind kind, struct mark mark)
{
    struct host_op *op = &thread->ops[thread->op_count++];
    *op = (struct host_op){.kind = kind, .mark = mark, .stream = -1, .object = -1, .comm = -1};
    op->work.comm = op->work.root = -1;
    return op;
}

static void write_event_op(struct lowering *lowering, struct host_thread *thread, enum op_kind kind,
                           const struct rank_step *producer, int stream, struct mark mark)
{
    struct host_op *op = add_op(thread, kind, mark);
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

static bool write_part(struct lowering *lowering, struct p2p_part *part,
                       const struct action *message)
{
    int from, to;
    message_ends(lowering, message, &from, &to);
    int arrives_at = message_is_send(message) ? comms_partner(message) : message->stage;
    *part = (struct p2p_part){.send = message_is_send(message),
                              .tag = arena_printf(&lowering->out->arena, "%s%d@%d",
                                                  message_is_forward(message) ? "F" : "B",
                                                  message->microbatch, arrives_at),
                              .peer = message_is_send(message) ? to : from,
                              .root = -1,
                              .comm = -1,
                              .stream = -1,
                              .bytes = lowering->plan->programs.p2p_bytes,
                              .mark = message->mark};
    return part->tag != NULL;
}

static bool write_group(struct lowering *lowering, struct host_op *op, const struct rank_step *step)
{
    const struct message *messages = lowering->now.messages;
    op->comm = step->comm;
    op->parts = ARENA_ARRAY(&lowering->out->arena, step->message_count, struct p2p_part);
    if (!op->parts)
        return false;
    for (size_t i = step->first_message + 1; i; i = messages[i - 1].next)
        if (!write_part(lowering, &op->parts[op->part_count++], messages[i - 1].action))
            return false;
    return true;
}

static void write_buffer_op(struct host_thread *thread, enum op_kind kind, int buffer, int stream,
                            struct mark mark)
{
    struct host_op *op = add_op(thread, kind, mark);
    op->object = buffer;
    op->stream = stream;
}

/* The memory that an UNSHARD fills belongs to the stream that gathers. */
static bool write_alloc(struct lowering *lowering, struct host_thread *thread,
                        const struct rank_step *step)
{
    if (step->action->kind != ACTION_UNSHARD || !lowering->activations)
        return true;
    int buffer = fsdp_gather(lowering, step->action->stage);
    if (buffer >= 0)
        write_buffer_op(thread, OP_ALLOC, buffer, step->stream, step->action->mark);
    return buffer >= 0;
}

/* The passes that read it run on another stream, which the allocator is told. */
static void write_free(struct lowering *lowering, struct host_thread *thread,
                       const struct action *action)
{
    int buffer = action->kind == ACTION_RESHARD && lowering->activations
                     ? fsdp_free(lowering, action->stage)
                     : -1;
    if (buffer < 0)
        return;
    write_buffer_op(thread, OP_RECORD_STREAM, buffer, lowering->compute, action->mark);
    write_buffer_op(thread, OP_FREE, buffer, -1, action->mark);
}

static void fill_collective(const struct lowering *lowering, struct host_op *op,
                            const struct rank_step *step)
{
    op->comm = step->comm;
    op->collective =
        step->action->kind == ACTION_UNSHARD ? COLLECTIVE_ALL_GATHER : COLLECTIVE_REDUCE_SCATTER;
    op->bytes = lowering->plan->programs.fsdp_bytes;
    op->work = (struct work){.kind = WORK_COLLECTIVE,
                             .collective = op->collective,
                             .comm = op->comm,
                             .bytes = op->bytes,
                             .peer = -1,
                             .root = -1};
}

static bool write_step(struct lowering *lowering, struct host_thread *thread,
                       struct rank_step *step)
{
    static const enum op_kind kinds[] = {[STEP_KERNEL] = OP_LAUNCH,
                                         [STEP_HOST] = OP_HOST,
                                         [STEP_GROUP] = OP_GROUP,
                                         [STEP_COLLECTIVE] = OP_COLLECTIVE};
    if (!write_waits(lowering, thread, step) || !write_alloc(lowering, thread, step))
        return false;
    struct host_op *op = add_op(thread, kinds[step->kind], step->action->mark);
    op->stream = step->stream;
    op->time_ns = step->time_ns;
    op->sm = step->kind == STEP_HOST ? 0 : 1;
    if (step->kind == STEP_GROUP) {
        if (!write_group(lowering, op, step))
            return false;
    } else {
        char name[ACTION_NAME];
        op->name =
            arena_strdup(&lowering->out->arena, comms_action_name(step->action, name, sizeof name));
        if (!op->name)
            return false;
    }
    if (step->kind == STEP_COLLECTIVE)
        fill_collective(lowering, op, step);
    if (!add_accesses(lowering, op, step) || !write_record(lowering, thread, step))
        return false;
    write_free(lowering, thread, step->action);
    return true;
}

/* How many operations the steps take at most: each one, its waits, a record if another step waits for it, and
   what it does to memory. */
static size_t count_ops(const struct rank_steps *now)
{
    size_t count = now->step_count + now->wait_count;
    for (size_t i = 0; i < now->step_count; i++)
        count += (now->steps[i].waiters_left > 0) +
                 (now->steps[i].action->kind == ACTION_UNSHARD ? 1u : 0u) +
                 (now->steps[i].action->kind == ACTION_RESHARD ? 2u : 0u);
    return count;
}

enum status ops_write(struct lowering *lowering, struct host_thread *thread)
{
    struct rank_steps *now = &lowering->now;
    size_t count = count_ops(now) + 1;
    lowering->op_count += count;
    if (lowering->op_count > PLAN_MAX_OPS)
        return diag_error(lowering->diag, STATUS_INPUT,
                          "%s: the rank programs need more than %d machine operations, expected a "
                          "smaller schedule",
                          lowering->plan->file, PLAN_MAX_OPS);
    thread->ops = ARENA_ARRAY(&lowering->out->arena, count, struct host_op);
    if (!thread->ops)
        return diag_no_memory(lowering->diag);
    for (size_t i = 0; i < now->step_count; i++)
        if (!write_step(lowering, thread, &now->steps[i]))
            return diag_no_memory(lowering->diag);
    struct host_op *end = add_op(thread, OP_SYNC, (struct mark){0, 0});
    end->sync = SYNC_DEVICE;
    assert(thread->op_count <= count);
    return STATUS_OK;
}
