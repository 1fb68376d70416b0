/* SPDX-License-Identifier: Apache-2.0 */
/* rank_steps.c - see rank_internal.h: actions become steps, and steps find the steps they wait for. */
#include <assert.h>
#include <string.h>

#include "base/array.h"
#include "plan/schedules/pass_time.h"
#include "plan/schedules/tensors.h"

#include "rank_internal.h"

/* ---- communicators --------------------------------------------------------------------------- */

bool message_is_forward(const struct action *message)
{
    return message->kind == ACTION_SEND_F || message->kind == ACTION_RECV_F;
}

static bool message_is_send(const struct action *message)
{
    return message->kind == ACTION_SEND_F || message->kind == ACTION_SEND_B;
}

int message_arrives_at(const struct action *message)
{
    return message_is_send(message) ? comms_partner(message) : message->stage;
}

/* Sender and receiver of a message, as ranks. */
static void message_ends(const struct rank_lowering *lowering, const struct action *message,
                         int *from, int *to)
{
    int here = comms_rank_of(&lowering->map, message->stage);
    int there = comms_rank_of(&lowering->map, comms_partner(message));
    *from = message_is_send(message) ? here : there;
    *to = message_is_send(message) ? there : here;
}

/* The route of a message among the lowering's. */
static struct route *route_cell(struct rank_lowering *lowering, int from, int to, bool forward)
{
    int low = from < to ? from : to, high = from < to ? to : from;
    size_t width = (size_t)lowering->rank_count;
    switch (lowering->plan->programs.fifo) {
    case FIFO_RANK: return &lowering->routes[0];
    case FIFO_DIRECTION: return &lowering->routes[forward ? 0 : 1];
    case FIFO_PAIR: return &lowering->routes[(size_t)low * width + (size_t)high];
    case FIFO_EDGE: break;
    }
    return &lowering->routes[(size_t)from * width + (size_t)to];
}

/* The end of its names: "" or ".forward", ".0-1", ".0>1". */
static void print_suffix(enum fifo_rule fifo, int from, int to, bool forward, char *suffix,
                         size_t cap)
{
    switch (fifo) {
    case FIFO_RANK: *suffix = '\0'; return;
    case FIFO_DIRECTION: snprintf(suffix, cap, "%s", forward ? ".forward" : ".backward"); return;
    case FIFO_PAIR:
        snprintf(suffix, cap, ".%d-%d", from < to ? from : to, from < to ? to : from);
        return;
    case FIFO_EDGE: snprintf(suffix, cap, ".%d>%d", from, to);
    }
}

/* The communicator of that name as the plan's `machine:` describes it, NULL if it does not. */
static const struct comm *find_described(const struct plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->comm_count; i++)
        if (strcmp(plan->comms[i].name, name) == 0)
            return &plan->comms[i];
    return NULL;
}

static bool fill_members(struct rank_lowering *lowering, struct comm *comm, int from, int to)
{
    enum fifo_rule fifo = lowering->plan->programs.fifo;
    if (fifo == FIFO_RANK || fifo == FIFO_DIRECTION)
        return true;
    comm->members = ARENA_ARRAY(&lowering->out->arena, 2, int);
    if (!comm->members)
        return false;
    comm->members[0] = from < to ? from : to;
    comm->members[1] = from < to ? to : from;
    comm->member_count = 2;
    return true;
}

static bool make_route(struct rank_lowering *lowering, struct route *route, int from, int to,
                       bool forward)
{
    char suffix[32];
    print_suffix(lowering->plan->programs.fifo, from, to, forward, suffix, sizeof suffix);
    struct plan *out = lowering->out;
    const struct programs *programs = &lowering->plan->programs;
    struct comm comm = {.name = arena_printf(&out->arena, "pp%s", suffix),
                        .eager_messages = programs->eager_messages,
                        .eager_bytes = programs->eager_bytes};
    const char *stream = arena_printf(&out->arena, "p2p%s", suffix);
    if (!comm.name || !stream || !fill_members(lowering, &comm, from, to))
        return false;
    const struct comm *described = find_described(lowering->plan, comm.name);
    if (described) {
        comm.eager_messages = described->eager_messages;
        comm.eager_bytes = described->eager_bytes;
        comm.time_limit_ns = described->time_limit_ns;
        comm.mark = described->mark;
    }
    if (!ARENA_GROW(&out->arena, out->comms, out->comm_count, lowering->comm_cap))
        return false;
    route->stream = names_intern(&out->streams, &out->arena, stream);
    route->comm = (int)out->comm_count;
    out->comms[out->comm_count++] = comm;
    return route->stream >= 0;
}

/* The route of a message, made at its first use; NULL when memory is exhausted. */
static const struct route *route_of(struct rank_lowering *lowering, int from, int to, bool forward)
{
    struct route *route = route_cell(lowering, from, to, forward);
    if (route->comm < 0 && !make_route(lowering, route, from, to, forward))
        return NULL;
    return route;
}

bool routes_begin(struct rank_lowering *lowering)
{
    enum fifo_rule fifo = lowering->plan->programs.fifo;
    size_t width = (size_t)lowering->rank_count;
    size_t count = fifo == FIFO_RANK || fifo == FIFO_DIRECTION ? 2 : width * width;
    lowering->routes = ARENA_ARRAY(&lowering->scratch, count, struct route);
    for (size_t i = 0; lowering->routes && i < count; i++)
        lowering->routes[i].comm = -1;
    return lowering->routes != NULL;
}

enum status routes_check(const struct rank_lowering *lowering)
{
    const struct plan *plan = lowering->plan, *out = lowering->out;
    for (size_t i = 0; i < plan->comm_count; i++) {
        bool made = false;
        for (size_t k = 0; k < out->comm_count; k++)
            made |= strcmp(out->comms[k].name, plan->comms[i].name) == 0;
        if (!made)
            return plan_error_at(plan, lowering->diag, plan->comms[i].mark,
                                 "found communicator %s, which no message uses, expected %s%s",
                                 plan->comms[i].name,
                                 out->comm_count ? "one that `p2p: {fifo}` makes, like " : "none",
                                 out->comm_count ? out->comms[0].name : "");
    }
    return STATUS_OK;
}

/* ---- actions to steps ------------------------------------------------------------------------ */

static struct rank_step *rank_steps_add_step(struct rank_steps *now, const struct rank_step *step)
{
    now->steps[now->step_count] = *step;
    return &now->steps[now->step_count++];
}

static bool rank_steps_is_collective(enum action_kind kind)
{
    return kind == ACTION_UNSHARD || kind == ACTION_REDUCE_GRAD || kind == ACTION_REDUCE_EMBEDDING;
}

static bool step_collective(struct rank_lowering *lowering, struct rank_step *step)
{
    enum action_kind kind = step->action->kind;
    step->kind = STEP_COLLECTIVE;
    if (kind != ACTION_UNSHARD && lowering->plan->programs.parallel.given)
        return groups_reduce(lowering, step);
    step->collective.kind =
        kind == ACTION_UNSHARD ? COLLECTIVE_ALL_GATHER : COLLECTIVE_REDUCE_SCATTER;
    step->collective.bytes = lowering->plan->programs.fsdp_bytes;
    step->stream = fsdp_stream(lowering);
    step->comm = fsdp_comm(lowering, step->action->stage);
    return step->stream >= 0 && step->comm >= 0;
}

static bool rank_steps_step_pass(struct rank_lowering *lowering, const struct action *action,
                                 uint32_t listed)
{
    struct rank_step step = {.action = action,
                             .listed = listed,
                             .stream = lowering->compute,
                             .comm = -1,
                             .time_ns = pass_time(&lowering->clock, action)};
    if (action->kind == ACTION_RESHARD) {
        step.kind = STEP_HOST;
        step.stream = -1;
    } else if (rank_steps_is_collective(action->kind) && !step_collective(lowering, &step)) {
        return false;
    }
    if (!collectives_before(lowering, &step))
        return false;
    rank_steps_add_step(&lowering->now, &step);
    bool ok = collectives_behind(lowering);
    lowering->now.run_first = lowering->now.step_count;
    return ok;
}

/* The group a message joins: with `batch` that of its communicator since the last other action. */
static struct rank_step *find_group(struct rank_lowering *lowering, const struct route *route)
{
    struct rank_steps *now = &lowering->now;
    for (size_t i = now->run_first; lowering->plan->programs.batch && i < now->step_count; i++)
        if (now->steps[i].comm == route->comm)
            return &now->steps[i];
    return NULL;
}

static bool rank_steps_step_message(struct rank_lowering *lowering, const struct action *action,
                                    uint32_t listed)
{
    struct rank_steps *now = &lowering->now;
    int from, to;
    message_ends(lowering, action, &from, &to);
    if (from == to)
        return true;
    bool forward = message_is_forward(action);
    const struct route *route = route_of(lowering, from, to, forward);
    if (!route)
        return false;
    size_t message = now->message_count++;
    now->messages[message] =
        (struct message){.action = action, .listed = listed, .from = from, .to = to};
    if (!only_counts(lowering))
        now->messages[message].cost =
            costs_message(lowering->plan, from, to,
                          parallel_apart(lowering->plan, lowering->replica, from, to), forward);
    struct rank_step *group = find_group(lowering, route);
    if (group) {
        now->messages[group->last_message].next = message + 1;
    } else {
        group = rank_steps_add_step(now, &(struct rank_step){.kind = STEP_GROUP,
                                                             .action = action,
                                                             .listed = listed,
                                                             .stream = route->stream,
                                                             .comm = route->comm,
                                                             .first_message = message});
    }
    group->last_message = message;
    group->message_count++;
    return true;
}

/* ---- waits ---------------------------------------------------------------------- */

void steps_wait(struct rank_steps *now, size_t at, uint32_t producer)
{
    if (producer == 0)
        return;
    struct rank_step *step = &now->steps[at], *from = &now->steps[producer - 1];
    if (from->stream == step->stream)
        return;
    for (size_t i = from->first_waiter; i; i = now->waits[i - 1].next)
        if (now->waits[i - 1].stream == step->stream)
            return;
    now->waits[now->wait_count] = (struct wait_for){
        .producer = producer - 1, .stream = step->stream, .next = from->first_waiter};
    from->first_waiter = ++now->wait_count;
    from->waiters_left++;
    step->wait_count++;
}

/* The messages from one rank to another share a link, those of other pairs move beside them. */
static int64_t edge_time(const struct rank_steps *now, const struct rank_step *group,
                         const struct message *edge)
{
    int64_t latency = 0, transfer = 0;
    for (size_t i = group->first_message + 1; i; i = now->messages[i - 1].next) {
        const struct message *message = &now->messages[i - 1];
        if (message->from != edge->from || message->to != edge->to)
            continue;
        latency = message->cost.latency_ns > latency ? message->cost.latency_ns : latency;
        transfer += message->cost.transfer_ns;
    }
    return latency + transfer;
}

/* As long as the last of its edges. */
static int64_t group_time(const struct rank_steps *now, const struct rank_step *group)
{
    int64_t most = 0;
    for (size_t i = group->first_message + 1; i; i = now->messages[i - 1].next) {
        int64_t time = edge_time(now, group, &now->messages[i - 1]);
        most = time > most ? time : most;
    }
    return most;
}

static void link_step(struct rank_lowering *lowering, size_t at)
{
    struct rank_steps *now = &lowering->now;
    struct rank_step *step = &now->steps[at];
    step->first_wait = now->wait_count;
    const struct action *parts = NULL;
    size_t count = step->kind == STEP_GROUP ? 0 : comms_parts(step->action, &parts);
    for (size_t k = 0; step->place == STEP_BEFORE && k < count; k++)
        tensors_await(lowering, at, &parts[k]);
    if (step->place == STEP_BESIDE || step->kind == STEP_JOIN)
        collectives_link(lowering, at);
    if (step->place != STEP_ALONE)
        return;
    for (size_t k = 0; k < count; k++)
        tensors_link(lowering, at, at + step->behind, &parts[k]);
    if (step->kind == STEP_GROUP && !only_counts(lowering))
        step->time_ns = group_time(now, step);
    for (size_t m = step->kind == STEP_GROUP ? step->first_message + 1 : 0; m;
         m = now->messages[m - 1].next)
        tensors_link(lowering, at, at, now->messages[m - 1].action);
}

/* The action in this column of the rank's list, or a part of it: its number in plan->listed, from 1; 0: out of
   memory. */
static uint32_t steps_list(struct rank_lowering *lowering, const struct action *action,
                           size_t column)
{
    struct plan *out = lowering->out;
    if (!ARENA_GROW(&out->arena, out->listed, out->listed_count, lowering->listed_cap))
        return 0;
    if (!lowering->again) /* the second walk finds them there */
        out->listed[out->listed_count] = (struct listed_action){.kind = action->kind,
                                                                .stage = action->stage,
                                                                .microbatch = action->microbatch,
                                                                .row = lowering->rank + 1,
                                                                .column = (int)column,
                                                                .in_file = action->column};
    return (uint32_t)++out->listed_count;
}

/* ---- steps to operations --------------------------------------------------------------------- */

/* Steps become host operations, with events and buffers. */

/* ---- events ---------------------------------------------------------------------------------- */

/* An event for results of this kind of action that no step waits for any more, or a new one. */
static bool rank_steps_take_event(struct rank_lowering *lowering, enum action_kind kind,
                                  size_t *slot)
{
    struct plan *out = lowering->out;
    struct event_pool *pool = &lowering->events[kind];
    if (pool->unused_count > 0) {
        *slot = pool->unused[--pool->unused_count];
        return true;
    }
    const char *text = action_text(kind);
    const char *name = pool->count ? arena_printf(&out->arena, "%s.%zu", text, pool->count) : text;
    if (!name || !ARENA_GROW(&lowering->scratch, pool->ids, pool->count, pool->cap))
        return false;
    if (!ARENA_GROW(&out->arena, out->events.items, out->events.count, out->events.cap))
        return false;
    out->events.items[out->events.count] = name;
    pool->ids[pool->count] = (int)out->events.count++;
    *slot = pool->count++;
    return true;
}

static bool drop_event(struct rank_lowering *lowering, enum action_kind kind, size_t slot)
{
    struct event_pool *pool = &lowering->events[kind];
    if (!ARENA_GROW(&lowering->scratch, pool->unused, pool->unused_count, pool->unused_cap))
        return false;
    pool->unused[pool->unused_count++] = slot;
    return true;
}

void events_reset(struct rank_lowering *lowering)
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
static bool add_accesses(struct rank_lowering *lowering, struct host_op *op,
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
    if (!host_op_make_accesses(op, lowering->sink.arena))
        return false;
    op->accesses->reads.items = items;
    op->accesses->writes.items = items + most;
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
static void rank_steps_hand_on(struct rank_lowering *lowering, struct host_thread *thread)
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
static struct host_op *rank_steps_add_op(struct rank_lowering *lowering, struct host_thread *thread,
                                         enum op_kind kind, struct mark mark)
{
    struct ops_sink *sink = &lowering->sink;
    rank_steps_hand_on(lowering, thread);
    sink->open = true;
    thread->op_count++;
    sink->op = host_op_make(kind);
    sink->op.mark = mark;
    return &sink->op;
}

static void write_event_op(struct rank_lowering *lowering, struct host_thread *thread,
                           enum op_kind kind, const struct rank_step *producer, int stream,
                           struct mark mark)
{
    struct host_op *op = rank_steps_add_op(lowering, thread, kind, mark);
    op->object = lowering->events[producer->action->kind].ids[producer->event_slot];
    op->stream = stream;
}

static bool rank_steps_write_waits(struct rank_lowering *lowering, struct host_thread *thread,
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

static bool write_record(struct rank_lowering *lowering, struct host_thread *thread,
                         struct rank_step *step)
{
    if (step->waiters_left == 0)
        return true;
    if (!rank_steps_take_event(lowering, step->action->kind, &step->event_slot))
        return false;
    write_event_op(lowering, thread, OP_RECORD, step, step->stream, step->action->mark);
    return true;
}

/* True if the message tells its shape: the first of its kind and stage in the list, or each. */
static bool tells_shape(struct rank_lowering *lowering, const struct action *message)
{
    if (lowering->plan->programs.metadata != METADATA_FIRST)
        return lowering->plan->programs.metadata == METADATA_EACH;
    size_t kind = (size_t)message_is_forward(message) * 2 + message_is_send(message);
    uint32_t *told = &lowering->told[(size_t)message->stage * MESSAGE_KINDS + kind];
    bool first = *told != lowering->walk;
    *told = lowering->walk;
    return first;
}

static bool rank_steps_write_part(struct rank_lowering *lowering, struct p2p_part *part,
                                  const struct message *of, bool metadata)
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

static bool write_group(struct rank_lowering *lowering, struct host_op *op,
                        const struct rank_step *step)
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
        if (!rank_steps_write_part(lowering, &op->parts[op->part_count++], &messages[i - 1], false))
            return false;
    return true;
}

/* Before a group goes one of the same ends, with the shapes of its tensors. */
static bool write_metadata(struct rank_lowering *lowering, struct host_thread *thread,
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
            op = rank_steps_add_op(lowering, thread, OP_GROUP, step->action->mark);
            op->stream = step->stream;
            op->comm = step->comm;
            op->listed = step->listed;
            op->sm = 1;
            op->parts = ARENA_ARRAY(lowering->sink.arena, step->message_count, struct p2p_part);
            if (!op->parts)
                return false;
        }
        ok = rank_steps_write_part(lowering, &op->parts[op->part_count++], message, true);
        lowering->part_count++;
        if (message->cost.metadata_ns > op->time_ns)
            op->time_ns = message->cost.metadata_ns;
    }
    return ok;
}

static void write_buffer_op(struct rank_lowering *lowering, struct host_thread *thread,
                            enum op_kind kind, int buffer, int stream, struct mark mark)
{
    struct host_op *op = rank_steps_add_op(lowering, thread, kind, mark);
    op->object = buffer;
    op->stream = stream;
}

/* The memory that an UNSHARD fills belongs to the stream that gathers. */
static bool write_alloc(struct rank_lowering *lowering, struct host_thread *thread,
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
static void write_free(struct rank_lowering *lowering, struct host_thread *thread,
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
}

/* It holds up the stream of the passes, and occupies nothing. */
static bool is_stream_wait(enum action_kind kind)
{
    return kind == ACTION_WAIT_SEND_F || kind == ACTION_WAIT_SEND_B || kind == ACTION_WAIT_RECV_F ||
           kind == ACTION_WAIT_RECV_B || kind == ACTION_WAIT_REDUCE_GRAD;
}

static bool rank_steps_write_step(struct rank_lowering *lowering, struct host_thread *thread,
                                  struct rank_step *step)
{
    static const enum op_kind kinds[] = {[STEP_KERNEL] = OP_LAUNCH,
                                         [STEP_HOST] = OP_HOST,
                                         [STEP_GROUP] = OP_GROUP,
                                         [STEP_COLLECTIVE] = OP_COLLECTIVE,
                                         [STEP_RING] = OP_GROUP};
    if (!rank_steps_write_waits(lowering, thread, step) || !write_alloc(lowering, thread, step))
        return false;
    if (step->kind == STEP_GROUP && !write_metadata(lowering, thread, step))
        return false;
    if (step->kind == STEP_JOIN)
        return write_record(lowering, thread, step);
    struct host_op *op = rank_steps_add_op(lowering, thread, kinds[step->kind], step->action->mark);
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
static bool write_end(struct rank_lowering *lowering, struct host_thread *thread)
{
    struct index_list missing = {0};
    rank_steps_hand_on(lowering, thread);
    if (!tensors_missing(lowering, &missing))
        return false;
    if (missing.count == 0)
        return true;
    struct host_op *end = rank_steps_add_op(lowering, thread, OP_HOST, (struct mark){0, 0});
    if (!host_op_make_accesses(end, lowering->sink.arena))
        return false;
    end->accesses->reads = missing;
    end->listed = steps_list(lowering, &(struct action){.kind = ACTION_IDLE, .microbatch = -1}, 0);
    return end->listed > 0 && names_word(lowering, end, "end of the list");
}

/* Once for all stages of the rank, when all its other work is done. */
static bool write_optimizer(struct rank_lowering *lowering, struct host_thread *thread)
{
    int64_t time_ns = 0;
    const struct stage_map *map = &lowering->map;
    for (int s = map->lowest_of[lowering->rank]; s >= 0; s = map->next_of[s])
        time_ns += lowering->costs[s].of[COST_OPTIMIZER];
    if (time_ns == 0)
        return true;
    struct host_op *op = rank_steps_add_op(lowering, thread, OP_LAUNCH, (struct mark){0, 0});
    op->stream = lowering->compute;
    op->time_ns = time_ns;
    op->sm = 1;
    if (!names_word(lowering, op, "optimizer"))
        return false;
    rank_steps_add_op(lowering, thread, OP_SYNC, (struct mark){0, 0})->sync = SYNC_DEVICE;
    return true;
}

enum status ops_write(struct rank_lowering *lowering, struct host_thread *thread)
{
    struct rank_steps *now = &lowering->now;
    thread->op_count = 0;
    for (size_t i = 0; i < now->step_count; i++)
        if (!rank_steps_write_step(lowering, thread, &now->steps[i]))
            return diag_no_memory(lowering->diag);
    struct host_op *end = rank_steps_add_op(lowering, thread, OP_SYNC, (struct mark){0, 0});
    end->sync = SYNC_DEVICE;
    if (!write_optimizer(lowering, thread) || !write_end(lowering, thread))
        return diag_no_memory(lowering->diag);
    rank_steps_hand_on(lowering, thread);
    lowering->op_count += thread->op_count;
    if (lowering->op_count > PLAN_MAX_LOWERED)
        return diag_error(lowering->diag, STATUS_INPUT,
                          "%s: the rank programs need more than %d machine operations, expected a "
                          "smaller schedule",
                          lowering->plan->file, PLAN_MAX_LOWERED);
    return lowering->sink.status;
}

/* ---- all of a rank --------------------------------------------------------------------------- */

/* The parts of a composite are listed one behind the other. */
static uint32_t rank_steps_list_parts(struct rank_lowering *lowering, const struct action *action,
                                      size_t column)
{
    const struct action *parts;
    size_t count = comms_parts(action, &parts);
    uint32_t first = 0;
    for (size_t k = 0; k < count; k++) {
        struct action part = parts[k];
        part.column = action->column;
        uint32_t listed = steps_list(lowering, &part, column);
        if (!listed)
            return 0;
        first = first ? first : listed;
    }
    return first;
}

static bool step_action(struct rank_lowering *lowering, const struct action *action, size_t column)
{
    if (action->kind == ACTION_IDLE)
        return true;
    uint32_t listed = rank_steps_list_parts(lowering, action, column);
    return listed && (comms_is_message(action) ? rank_steps_step_message(lowering, action, listed)
                                               : rank_steps_step_pass(lowering, action, listed));
}

bool steps_make(struct rank_lowering *lowering, const struct rank_program *list)
{
    struct rank_steps *now = &lowering->now;
    now->step_count = now->message_count = now->wait_count = now->run_first = 0;
    for (size_t i = 0; i < list->count; i++)
        if (!step_action(lowering, &list->actions[i], i + 1))
            return false;
    for (size_t i = 0; i < now->step_count; i++)
        link_step(lowering, i);
    return true;
}
