/* SPDX-License-Identifier: Apache-2.0 */
/*
 * promela_ops.c - the operations in Promela: the text of a host thread's step, and the text of a
 * stream's steps with the item. The functions named in the rulers are in machine/machine.c.
 */
#include <assert.h>
#include <inttypes.h>

#include "promela.h"

static int op_number(const struct program *p, const struct op *op)
{
    return (int)(op - p->ops);
}

int promela_member(const struct program *p, const struct op *op)
{
    return p->comms[op->comm].first_member + op->member;
}

static bool goes_with(const struct op *a, const struct op *b)
{
    return a->kind == b->kind && op_same_collective(a, b);
}

/* Equal numbers, from 1, for collectives that go together: same_collective. */
int promela_collective_number(const struct program *p, const struct op *op)
{
    int first = 0;
    while (!goes_with(&p->ops[first], op))
        first++;
    return first + 1;
}

static const char *promela_ops_object_name(const struct program *p, const struct op *op)
{
    const char *name = program_object_name(p, op);
    if (name)
        return name;
    if (op_syncs(op->kind))
        return op->sync == SYNC_STREAM ? p->streams[op->stream].name : "device";
    return op->name >= 0 ? p->names.items[op->name] : "";
}

void promela_put_op_comment(const struct model *m, const struct op *op)
{
    const char *name = promela_ops_object_name(m->p, op);
    promela_put(m, " /* %s%s", op_key(op->kind), *name ? " " : "");
    promela_put_name(m, name);
    promela_put(m, " */");
}

/* ---- pieces of operations -------------------------------------------------------------------- */

/* The index of an event or flag: instance_of in machine_internal.h. */
static void put_instance(const struct model *m, const struct op *op)
{
    const struct program *p = m->p;
    if (!promela_is_pipeline(m) || op->distance < 0)
        promela_put(m, "%d", op->object * p->slots);
    else
        promela_put(m, "%d + (i - %d) %% %d", op->object * p->slots, op->distance, p->slots);
}

static bool may_have_no_instance(const struct model *m, const struct op *op)
{
    return promela_is_pipeline(m) && op->distance >= 0;
}

/* "the iteration that the operation depends on exists and is not skipped": dependence_applies. */
static void put_applies(const struct model *m, const struct op *op, int rank)
{
    const int distance = op_dependence(op);
    promela_put(m, "i >= %d", distance);
    if (m->p->plan->pipeline.retired_dep != RETIRED_DEP_WAIT)
        promela_put(m, " && i - %d >= oldest[%d]", distance, rank);
}

static void put_room(const struct model *m, int stream)
{
    promela_put(m, "room(%d, %d)", stream, m->p->streams[stream].cap);
}

/* Push an item with its two numbers; the guard has found room. */
static void put_push(const struct model *m, const struct op *op, const char *a, const char *b)
{
    int stream = op->stream, queue = m->p->streams[stream].hw_queue;
    promela_put(m, "items_%d!%d,%s%s,%s; ", stream, op_number(m->p, op),
                promela_is_pipeline(m) ? "i," : "", a, b);
    if (queue >= 0)
        promela_put(m, "hw_%d!%d; ", queue, stream);
    promela_put(m, "pushed[%d]++", stream);
}

static void put_push_comm(const struct model *m, const struct op *op, int rank)
{
    char issued[32], any[32] = "0";
    int member = promela_member(m->p, op);
    snprintf(issued, sizeof issued, "issued[%d]", member);
    if (m->p->plan->machine.launch_order_implicit)
        snprintf(any, sizeof any, "issued_any[%d]", rank);
    put_push(m, op, issued, any);
    promela_put(m, "; issued[%d]++", member);
    if (m->p->plan->machine.launch_order_implicit)
        promela_put(m, "; issued_any[%d]++", rank);
}

static void put_record(const struct model *m, const struct op *op)
{
    promela_put(m, "event_stream[");
    put_instance(m, op);
    promela_put(m, "] = %d; event_pos[", op->stream + 1);
    put_instance(m, op);
    promela_put(m, "] = pushed[%d]; ", op->stream);
    put_push(m, op, "0", "0");
}

static void put_push_wait(const struct model *m, const struct op *op)
{
    int queue = m->p->streams[op->stream].hw_queue;
    promela_put(m, "items_%d!%d,%sevent_stream[", op->stream, op_number(m->p, op),
                promela_is_pipeline(m) ? "i," : "");
    put_instance(m, op);
    promela_put(m, "],event_pos[");
    put_instance(m, op);
    promela_put(m, "]; ");
    if (queue >= 0)
        promela_put(m, "hw_%d!%d; ", queue, op->stream);
    promela_put(m, "pushed[%d]++", op->stream);
}

static void put_wait(const struct model *m, const struct op *op)
{
    put_room(m, op->stream);
    promela_put(m, " -> ");
    put_push_wait(m, op);
}

static void put_device_idle(const struct model *m, int rank)
{
    promela_put(m, "true");
    for (int s = 0; s < m->p->stream_count; s++)
        if (m->p->streams[s].rank == rank)
            promela_put(m, " && idle(%d)", s);
}

static bool promela_ops_is_awaited(const struct model *m, int thread, const struct op *op,
                                   int stream)
{
    switch (op->sync) {
    case SYNC_EVENT: return true;
    case SYNC_STREAM: return op->stream == stream;
    case SYNC_DEVICE:
    case SYNC_LOAD: return m->p->streams[stream].rank == program_sync_rank(m->p, thread, op);
    case SYNC_RETRY:
    case SYNC_STAGED: break;
    }
    return false;
}

static void put_event_call(const struct model *m, const struct op *op, int k)
{
    promela_put(m, "awaited[%d] = (event_stream[", k);
    put_instance(m, op);
    promela_put(m, "] == %d -> event_pos[", m->p->awaited[k].stream + 1);
    put_instance(m, op);
    promela_put(m, "] + 1 : 0)");
}

/* The streams that the thread notes at its call, each in one of two texts: snapshot_take and snapshot_awaits. */
static void put_awaited(const struct model *m, int thread, const struct op *op, bool take)
{
    const struct program *p = m->p;
    const char *between = "";
    for (int k = p->awaited_by[thread]; k >= 0; k = p->awaited[k].next_of_thread) {
        int s = p->awaited[k].stream;
        if (!promela_ops_is_awaited(m, thread, op, s))
            continue;
        promela_put(m, "%s", between);
        if (!take)
            promela_put(m, "popped[%d] >= awaited[%d]", s, k);
        else if (op->sync == SYNC_EVENT)
            put_event_call(m, op, k);
        else
            promela_put(m, "awaited[%d] = pushed[%d]", k, s);
        between = take ? "; " : " && ";
    }
}

static void put_snapshot(const struct model *m, int thread, const struct op *op)
{
    int kernel = program_sync_rank(m->p, thread, op) * m->p->kernel_count + op->object;
    if (op->sync == SYNC_LOAD)
        promela_put(m, "if :: loaded[%d] :: else -> ", kernel);
    promela_put(m, "atomic { ");
    put_awaited(m, thread, op, true);
    promela_put(m, op->sync == SYNC_LOAD ? " } fi; " : " }; ");
}

static void put_idle(const struct model *m, int thread, const struct op *op)
{
    promela_put(m, "(");
    if (op->snapshot)
        put_awaited(m, thread, op, false);
    else
        put_device_idle(m, program_sync_rank(m->p, thread, op));
    promela_put(m, ")");
}

static void put_sync(const struct model *m, const struct op *op, int thread)
{
    int kernel = program_sync_rank(m->p, thread, op) * m->p->kernel_count + op->object;
    if (op->snapshot && op->sync != SYNC_LOAD) {
        put_idle(m, thread, op);
        return;
    }
    switch (op->sync) {
    case SYNC_STREAM: promela_put(m, "idle(%d)", op->stream); break;
    case SYNC_EVENT:
        promela_put(m, "over(");
        put_instance(m, op);
        promela_put(m, ")");
        break;
    case SYNC_DEVICE: put_idle(m, thread, op); break;
    case SYNC_RETRY:
    case SYNC_STAGED: assert(0 && "put_body puts it with the sync behind it"); break;
    case SYNC_LOAD:
        promela_put(m, "loaded[%d] || ", kernel);
        put_idle(m, thread, op);
        promela_put(m, " -> loaded[%d] = 1", kernel);
        break;
    }
}

/* Arrays begin at 0: a flag's cell has what it is above the value with which it begins. */
static void put_flag_suffices(const struct model *m, const struct op *op)
{
    promela_put(m, "flag[");
    put_instance(m, op);
    promela_put(m, "]");
    if (m->p->flag_counts[op->object])
        promela_put(m, op->flag_rule == FLAG_EQUALS ? " == %d" : " >= %d",
                    op->value - m->p->flag_begins[op->object]);
}

static void put_await(const struct model *m, const struct op *op, int rank)
{
    if (may_have_no_instance(m, op)) {
        promela_put(m, "!(");
        put_applies(m, op, rank);
        promela_put(m, ") || ");
    }
    put_flag_suffices(m, op);
}

static void put_complete(const struct model *m, const struct op *op, int rank)
{
    const struct program *p = m->p;
    promela_put(m, "submit_left[%" PRId64 " + i]--", rank * m->iterations);
    if (p->driver != DRIVER_DATAFLOW)
        return;
    promela_put(m, "; submitted[%" PRId64 " + i] = 1",
                (rank * p->tasks + op->task) * m->iterations);
    const bool ends_turn = program_ends_turn(p, rank, op->task);
    if (ends_turn)
        promela_put(m, "; served[%d]++; pass_%d()", rank, rank);
    const struct edge_list *fires = &p->fires[op->task];
    for (int k = 0; k < fires->count; k++)
        promela_put(m, "; fire_%d_%d(i + %d)", rank, fires->items[k].task,
                    fires->items[k].distance);
    if (ends_turn)
        promela_put(m, "; turn_%d()", rank);
}

static void put_ticket(const struct model *m, const struct op *op, int rank)
{
    if (op->ticket >= 0)
        promela_put(m, "served[%d] >= %d", rank, op->ticket);
    else
        promela_put(m, "served[%d] >= n", rank);
}

/* ---- the host side: op_can_step and execute -------------------------------------------------- */

/* A push: "there is room -> push the item". One that looks for a record has a text of its own. */
static void put_pushing_op(const struct model *m, const struct op *op)
{
    if (op_uses_so(op->kind, OPERAND_EVENT, AT_CALL, LOOKS)) {
        put_wait(m, op);
        return;
    }
    put_room(m, op->stream);
    promela_put(m, " -> ");
    if (op_uses_comm(op->kind))
        put_push_comm(m, op, m->p->streams[op->stream].rank);
    else if (op_uses_so(op->kind, OPERAND_EVENT, AT_CALL, SETS))
        put_record(m, op);
    else
        put_push(m, op, "0", "0");
}

static void put_signal(const struct model *m, const struct op *op)
{
    const int added = op->flag_rule == FLAG_TAKES  ? -op->value
                      : op->flag_rule == FLAG_SETS ? op->value - m->p->flag_begins[op->object]
                                                   : op->value;
    promela_put(m, "flag[");
    put_instance(m, op);
    promela_put(m, "] = ");
    if (op->flag_rule != FLAG_SETS) {
        promela_put(m, "flag[");
        put_instance(m, op);
        promela_put(m, "] + ");
    }
    promela_put(m, "%d", added);
}

static void put_queue_op(const struct model *m, const struct op *op)
{
    int queue = op->object;
    if (op_gives(op->kind))
        promela_put(m, "queued[%d] < %d -> queued[%d]++", queue, m->p->queue_caps[queue], queue);
    else
        promela_put(m, "queued[%d] > 0 -> queued[%d]--", queue, queue);
}

static void put_lock_op(const struct model *m, const struct op *op)
{
    if (op_takes(op->kind))
        promela_put(m, "!locked[%d] -> locked[%d] = 1", op->object, op->object);
    else
        promela_put(m, "true -> locked[%d] = 0", op->object);
}

static void put_query(const struct model *m, const struct op *op, int thread)
{
    if (op->sync == SYNC_DEVICE)
        put_device_idle(m, program_sync_rank(m->p, thread, op));
    else if (op->sync == SYNC_STREAM)
        promela_put(m, "idle(%d)", op->stream);
    else {
        promela_put(m, "over(");
        put_instance(m, op);
        promela_put(m, ")");
    }
}

static void put_host_op(const struct model *m, const struct op *op, int rank, int thread)
{
    switch (op->kind) {
    case OP_LAUNCH:
    case OP_COPY:
    case OP_CALLBACK:
    case OP_ALLOC:
    case OP_COLLECTIVE:
    case OP_GROUP:
    case OP_WRITE:
    case OP_WAIT_FLAG:
    case OP_RECORD:
    case OP_WAIT: put_pushing_op(m, op); break;
    case OP_SYNC: put_sync(m, op, thread); break;
    case OP_SIGNAL: put_signal(m, op); break;
    case OP_AWAIT: put_await(m, op, rank); break;
    case OP_ACQUIRE:
        put_flag_suffices(m, op);
        promela_put(m, " -> ");
        put_signal(m, op);
        break;
    case OP_PUT:
    case OP_GET: put_queue_op(m, op); break;
    case OP_LOCK:
    case OP_UNLOCK: put_lock_op(m, op); break;
    case OP_TICKET: put_ticket(m, op, rank); break;
    case OP_SERVE: promela_put(m, "served[%d]++", rank); break;
    case OP_COMPLETE: put_complete(m, op, rank); break;
    case OP_HOST:
    case OP_COMPUTE:
    case OP_HOST_ALLOC:
    case OP_FREE:
    case OP_RECORD_STREAM: promela_put(m, "skip"); break;
    case OP_QUERY: put_query(m, op, thread); break;
    case OP_QUERY_FLAG: put_flag_suffices(m, op); break;
    case OP_QUERY_QUEUE: promela_put(m, "queued[%d] > 0", op->object); break;
    case OP_CHOOSE: promela_put(m, "true"); break;
    case OP_ABORT: assert(0 && "a program that is not exported"); break;
    case OP_ELSE: /* put_branches */
    case OP_END:
    case OP_CLEAR:
    case OP_BARRIER: assert(0 && "an operation that is lowered to others"); break;
    }
}

/* Nothing is done where there is nothing to wait for: an await has that in its condition. */
static void put_op_that_applies(const struct model *m, const struct op *op, int rank, int thread)
{
    const bool may = promela_is_pipeline(m) && op_dependence(op) >= 0 && op->kind != OP_AWAIT;
    if (may) {
        promela_put(m, "if :: !(");
        put_applies(m, op, rank);
        promela_put(m, ") :: (");
        put_applies(m, op, rank);
        promela_put(m, ") && ");
    }
    put_host_op(m, op, rank, thread);
    promela_put(m, may ? " fi" : "");
}

static void put_ops(const struct model *m, const struct body *body, int k, int end, int rank,
                    const char *indent);

/* "if :: question -> then :: else -> else fi". Returns the operation behind the branches. */
static int put_branches(const struct model *m, const struct body *body, int k, int rank,
                        const char *indent)
{
    const struct op *ops = &m->p->ops[body->first], *op = &ops[k];
    const int otherwise = k + op->otherwise;
    const bool has_else = ops[otherwise - 1].kind == OP_ELSE;
    const int end = has_else ? otherwise - 1 + ops[otherwise - 1].otherwise : otherwise;
    promela_put(m, "%sif :: atomic { ", indent);
    put_host_op(m, op, rank, body->thread);
    promela_put(m, " };");
    promela_put_op_comment(m, op);
    promela_put(m, "\n");
    put_ops(m, body, k + 1, has_else ? otherwise - 1 : otherwise, rank, indent);
    promela_put(m, "%s:: %s ->\n", indent, op->kind == OP_CHOOSE ? "true" : "else");
    put_ops(m, body, otherwise, end, rank, indent);
    promela_put(m, "%s   skip\n%sfi;\n", indent, indent);
    return end;
}

/* The operations from `k` up to, without it, `end`. */
static void put_ops(const struct model *m, const struct body *body, int k, int end, int rank,
                    const char *indent)
{
    while (k < end) {
        const struct op *op = &m->p->ops[body->first + k];
        if (op_has_branches(op)) {
            k = put_branches(m, body, k, rank, indent);
            continue;
        }
        bool may = op_may_sync(op);
        if (may)
            op = &m->p->ops[body->first + ++k];
        promela_put(m, may ? "%sif :: true :: true -> " : "%s", indent);
        if (op->snapshot)
            put_snapshot(m, body->thread, op);
        promela_put(m, "atomic { ");
        put_op_that_applies(m, op, rank, body->thread);
        promela_put(m, may ? " } fi;" : " };");
        promela_put_op_comment(m, op);
        promela_put(m, "\n");
        k++;
    }
}

void promela_put_body(const struct model *m, int index, int rank, const char *indent)
{
    const struct body *body = &m->p->bodies[index];
    put_ops(m, body, 0, body->count, rank, indent);
}

/* ---- the device side: settle_head, machine_can_start, start, can_finish, finish -------------- */

static bool takes_sm(const struct model *m, const struct op *op)
{
    return m->p->plan->machine.sm_slots && op->sm;
}

/* The conditions of a start at the head of a stream: the hardware queue, residency slots, the
   operation's turn in its communicator. */
static void put_start_guard(const struct model *m, const struct op *op)
{
    const struct stream_desc *stream = &m->p->streams[op->stream];
    promela_put(m, "(true");
    if (stream->hw_queue >= 0)
        promela_put(m, " && hw_%d?[%d]", stream->hw_queue, op->stream);
    if (takes_sm(m, op))
        promela_put(m, " && sm_used[%d] + %d <= %d", m->p->device[stream->rank], op->sm,
                    m->p->plan->machine.sm_slots);
    if (op_uses_comm(op->kind))
        promela_put(m, " && a == finished[%d]", promela_member(m->p, op));
    if (op_uses_comm(op->kind) && m->p->plan->machine.launch_order_implicit)
        promela_put(m, " && b == started_any[%d]", stream->rank);
    if (op_uses_so(op->kind, OPERAND_EVENT, AT_STREAM, TAKES))
        promela_put(m, " && (a == 0 || popped[a - 1] > b)");
    if (op_uses_so(op->kind, OPERAND_FLAG, AT_STREAM, TAKES)) {
        promela_put(m, " && ");
        put_flag_suffices(m, op);
    }
    promela_put(m, ")");
}

static void put_start_effect(const struct model *m, const struct op *op)
{
    const struct stream_desc *stream = &m->p->streams[op->stream];
    int device = m->p->device[stream->rank];
    if (stream->hw_queue >= 0)
        promela_put(m, "; hw_%d?%d", stream->hw_queue, op->stream);
    if (takes_sm(m, op))
        promela_put(m, "; sm_used[%d] = sm_used[%d] + %d", device, device, op->sm);
    if (op_uses_comm(op->kind) && m->p->plan->machine.launch_order_implicit)
        promela_put(m, "; started_any[%d]++", stream->rank);
    if (op_uses_so(op->kind, OPERAND_FLAG, AT_STREAM, GIVES)) {
        promela_put(m, "; ");
        put_signal(m, op);
    }
}

/* "items?N,... -> guard; effect", left open inside an atomic. */
static void put_start(const struct model *m, const struct op *op)
{
    bool reads = op_uses_comm(op->kind) || op_uses_so(op->kind, OPERAND_EVENT, AT_STREAM, TAKES);
    promela_put(m, "    :: atomic { items_%d?%d,%s%s ->", op->stream, op_number(m->p, op),
                promela_is_pipeline(m) ? "i," : "", reads ? "a,b" : "_,_");
    promela_put_op_comment(m, op);
    promela_put(m, "\n         ");
    put_start_guard(m, op);
    put_start_effect(m, op);
}

/* The effect of a finish. */
static void put_finish(const struct model *m, const struct op *op)
{
    int device = m->p->device[m->p->streams[op->stream].rank];
    if (takes_sm(m, op))
        promela_put(m, "sm_used[%d] = sm_used[%d] - %d; ", device, device, op->sm);
    promela_put(m, "popped[%d]++", op->stream);
}

static void put_launch_item(const struct model *m, const struct op *op)
{
    put_start(m, op);
    promela_put(m, " };\n       atomic { ");
    put_finish(m, op);
    promela_put(m, " }\n");
}

static void put_callback_item(const struct model *m, const struct op *op)
{
    put_start(m, op);
    promela_put(m, " };\n");
    promela_put_body(m, op->object, m->p->streams[op->stream].rank, "       ");
    promela_put(m, "       atomic { ");
    put_finish(m, op);
    promela_put(m, " }\n");
}

/* An item that takes effect at once at the head. */
static void put_settling_item(const struct model *m, const struct op *op)
{
    int64_t first = m->p->streams[op->stream].rank * m->iterations;
    put_start(m, op);
    promela_put(m, "; popped[%d]++", op->stream);
    if (program_records_task(op) && promela_is_pipeline(m)) {
        promela_put(m, "; device_left[%" PRId64 " + i]--", first);
        if (op->task == m->p->last_task)
            promela_put(m, "; last_left[%" PRId64 " + i] = 0", first);
    }
    promela_put(m, " }\n");
}

/* The members compare the collectives they have started; the communicator's process finishes
   them. */
static void put_collective_item(const struct model *m, const struct op *op)
{
    const struct comm_desc *comm = &m->p->comms[op->comm];
    int self = promela_member(m->p, op);
    put_start(m, op);
    promela_put(m, ";\n         current[%d] = %d; on_stream[%d] = %d", self,
                promela_collective_number(m->p, op), self, op->stream);
    if (m->p->plan->machine.sm_slots)
        promela_put(m, "; held[%d] = %d", self, op->sm);
    if (promela_is_pipeline(m))
        promela_put(m, "; current_i[%d] = i", self);
    for (int other = comm->first_member; other < comm->first_member + comm->count; other++) {
        if (other == self)
            continue;
        promela_put(m, ";\n         agree(current[%d] <= 0 || (current[%d] == current[%d]", other,
                    other, self);
        if (promela_is_pipeline(m))
            promela_put(m, " && current_i[%d] == current_i[%d]", other, self);
        promela_put(m, "))");
    }
    promela_put(m, " };\n       (finished[%d] > a)\n", self);
}

/* "the message may leave the group": matched, or small enough to be sent eagerly. */
static void put_part_over(const struct model *m, const struct comm_desc *comm,
                          const struct part *part)
{
    int link = part->channel;
    bool to_itself = m->p->channels[link].from == m->p->channels[link].to;
    if (!part->send)
        promela_put(m, " && balance[%d] >= 0", link);
    else if (to_itself)
        promela_put(m, " && balance[%d] <= 0", link);
    else if (comm->eager_bytes)
        promela_put(m, " && (balance[%d] <= %d || unmatched[%d] <= %" PRId64 ")", link,
                    comm->eager_messages, link, comm->eager_bytes / m->byte_unit);
    else
        promela_put(m, " && balance[%d] <= %d", link, comm->eager_messages);
}

static void put_group_item(const struct model *m, const struct op *op)
{
    const struct program *p = m->p;
    const struct part *parts = &p->parts[op->part_first];
    int self = promela_member(p, op);
    put_start(m, op);
    promela_put(m, ";\n         current[%d] = -1", self);
    for (int k = 0; k < op->part_count; k++)
        promela_put(m, ";\n         %s(link_%d, %d, %d, %" PRId64 ")",
                    parts[k].send ? "send" : "receive", parts[k].channel, parts[k].channel,
                    parts[k].tag, parts[k].bytes / m->byte_unit);
    promela_put(m, " };\n       atomic { (true");
    for (int k = 0; k < op->part_count; k++)
        put_part_over(m, &p->comms[op->comm], &parts[k]);
    promela_put(m, ") ->\n         current[%d] = 0; finished[%d]++; ", self, self);
    put_finish(m, op);
    promela_put(m, " }\n");
}

void promela_put_item(const struct model *m, const struct op *op)
{
    switch (op_role(op->kind)) {
    case ROLE_DEVICE:
    case ROLE_STEP: put_launch_item(m, op); break;
    case ROLE_CALL: put_callback_item(m, op); break;
    case ROLE_MARK: put_settling_item(m, op); break;
    case ROLE_COMM:
        if (op_ends_together(op->kind))
            put_collective_item(m, op);
        else
            put_group_item(m, op);
        break;
    case ROLE_CONTROL:
    case ROLE_ASK:
    case ROLE_BRANCH:
    case ROLE_CPU: assert(0 && "an operation that pushes nothing"); break;
    }
}
