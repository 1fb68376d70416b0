/* SPDX-License-Identifier: Apache-2.0 */
/*
 * why.c - why an agent cannot step: the reason, and the agent that must act first.
 */

#include "driver.h"
#include "snapshot.h"
#include "uses.h"

/* ---- the agent that must act first ----------------------------------------------------------- */

/* True if the thread of this use has an operation ahead of it, by the program text, that helps `waiting` with
   `object`. */
static bool comes_to(const struct program *p, int32_t *c, const struct use *use,
                     const struct op *waiting, int object)
{
    int thread = p->agents[use->agent].index;
    const int32_t *state = thread_cells(p, c, thread);
    if (state[THREAD_BODY] < 0)
        return false;
    if (p->threads[thread].kind == THREAD_HOST)
        return use_is_ahead(p, c, use);
    const struct body *body = &p->bodies[state[THREAD_BODY]];
    for (int i = body->first + state[THREAD_PC]; i < body->first + body->count; i++)
        if (op_helped(p, &p->ops[i], thread) == object &&
            op_uses(p->ops[i].kind, AT_CALL) & op_helping(waiting->kind))
            return true;
    return false;
}

/* True if the operation helps `waiting` when this stream comes to it. */
static bool gives_at_stream(const struct op *op, int stream, const struct op *waiting)
{
    return op_pushes(op->kind) && op->stream == stream &&
           op_uses(op->kind, AT_STREAM) & op_helping(waiting->kind) &&
           op_operand(op->kind) == op_operand(waiting->kind) && op->object == waiting->object;
}

/* The agent that brings what the stream of this use does when it comes to it: the stream, where that is queued; else a
   thread that has yet to push it. -1: none will. */
static int bringing_agent(const struct program *p, int32_t *c, int stream, const struct op *waiting)
{
    for (int k = 0; k < stream_cells(p, c, stream)[STREAM_COUNT]; k++)
        if (gives_at_stream(&p->ops[item_cells(p, c, stream, k)[ITEM_OP]], stream, waiting))
            return program_stream_agent(p, stream);
    for (int t = 0; t < p->thread_count; t++) {
        const int32_t *state = thread_cells(p, c, t);
        const struct body *body = state[THREAD_BODY] < 0 ? NULL : &p->bodies[state[THREAD_BODY]];
        for (int i = body ? state[THREAD_PC] : 0; body && i < body->count; i++)
            if (gives_at_stream(&p->ops[body->first + i], stream, waiting))
                return program_thread_agent(p, t);
    }
    return -1;
}

/* The first agent but `self` that will help `waiting`, for which `self` waits, with the object: host programs. */
static int first_helper(const struct program *p, int32_t *c, const struct op *waiting, int self,
                        int object)
{
    const struct use_table *uses = p->uses;
    const unsigned ways = p->tasks || object < 0 ? 0 : op_helping_ways(p, waiting);
    int first = -1;
    for (int u = p->tasks ? -1 : uses->first[object]; u >= 0; u = uses->items[u].next) {
        const struct use *use = &uses->items[u];
        int agent = use->agent;
        if (!(ways >> use->way & 1))
            continue;
        if (p->agents[agent].kind == AGENT_STREAM)
            agent = bringing_agent(p, c, p->agents[agent].index, waiting);
        else if (!comes_to(p, c, use, waiting, object))
            agent = -1;
        if (agent >= 0 && agent != self && (first < 0 || agent < first))
            first = agent;
    }
    return first;
}

static void why_wait_for_stream(const struct program *p, enum wait_cause cause, int stream,
                                struct wait *wait)
{
    wait->cause = cause;
    wait->agent = stream >= 0 ? program_stream_agent(p, stream) : -1;
}

static void wait_for_task(const struct program *p, int rank, int family, int64_t iteration,
                          struct wait *wait)
{
    wait->task = family % p->tasks;
    wait->iteration = iteration;
    wait->agent = program_thread_agent(p, p->worker[rank * p->tasks + wait->task]);
}

static void why_await(const struct program *p, int32_t *c, int thread, const struct op *op,
                      int64_t iteration, struct wait *wait)
{
    int rank = p->threads[thread].rank;
    wait->cause = CAUSE_DEPENDENCE;
    if (p->tasks && op->distance >= 0)
        wait_for_task(p, rank, op->object, iteration - op->distance, wait);
    else
        wait->agent =
            first_helper(p, c, op, program_thread_agent(p, thread), op_awaited(p, op, thread));
}

/* The first stream of the device that has work. */
static int busy_stream_agent(const struct program *p, int32_t *c, int rank)
{
    for (int s = 0; s < p->stream_count; s++)
        if (p->streams[s].rank == rank && stream_cells(p, c, s)[STREAM_COUNT] > 0)
            return program_stream_agent(p, s);
    return -1;
}

static void why_sync(const struct program *p, int32_t *c, int thread, const struct op *op,
                     int64_t iteration, struct wait *wait)
{
    int rank = program_sync_rank(p, thread, op);
    wait->cause = CAUSE_DEPENDENCE;
    if (snapshot_is_needed(p, c, thread, op))
        wait->agent = program_stream_agent(p, snapshot_awaits(p, c, thread));
    else if (op->sync == SYNC_STREAM)
        wait->agent = program_stream_agent(p, op->stream);
    else if (op->sync == SYNC_EVENT)
        wait->agent =
            program_stream_agent(p, event_cells(p, c, instance_of(p, op, iteration))[EVENT_STREAM]);
    else
        wait->agent = busy_stream_agent(p, c, rank);
}

/* The workers of a rank stand behind its driver; a host program has neither. */
static int why_first_worker(const struct program *p, int rank)
{
    return p->tasks ? p->driver_thread[rank] + 1 : p->thread_count;
}

static bool why_is_worker_of(const struct program *p, int thread, int rank)
{
    return thread < p->thread_count && p->threads[thread].rank == rank &&
           p->threads[thread].kind == THREAD_WORKER;
}

/* The worker with ticket `number` of a rank, of its instance or one in its queue. */
static int ticket_holder(const struct program *p, int32_t *c, int rank, int64_t number,
                         struct wait *wait)
{
    for (int t = why_first_worker(p, rank); why_is_worker_of(p, t, rank); t++) {
        const int32_t *state = thread_cells(p, c, t);
        int body = state[THREAD_BODY];
        if (body >= 0 && p->ticket_position[body] >= 0 && state[THREAD_TICKET] == number) {
            wait->task = body % p->tasks;
            wait->iteration = state[THREAD_ITER];
            return program_thread_agent(p, t);
        }
        for (int k = 0; k < state[THREAD_COUNT]; k++) {
            const int32_t *entry = entry_cells(p, c, t, k);
            if (p->ticket_position[rank * p->tasks + entry[ENTRY_TASK]] >= 0 &&
                entry[ENTRY_TICKET] == number) {
                wait->task = entry[ENTRY_TASK];
                wait->iteration = entry[ENTRY_ITER];
                return program_thread_agent(p, t);
            }
        }
    }
    return -1;
}

static void why_thread(const struct program *p, int32_t *c, int thread, struct wait *wait)
{
    const struct op *op = machine_thread_op(p, c, thread);
    const int32_t *state = thread_cells(p, c, thread);
    int rank = p->threads[thread].rank;
    if (!op) {
        wait->cause = CAUSE_EMPTY;
        if (p->threads[thread].kind == THREAD_WORKER)
            wait->agent = program_thread_agent(p, p->driver_thread[rank]);
        return;
    }
    if (op_pushes(op->kind)) { /* to a full stream */
        why_wait_for_stream(p, CAUSE_FULL, op->stream, wait);
        return;
    }
    switch (op_operand(op->kind)) {
    case OPERAND_FLAG: why_await(p, c, thread, op, state[THREAD_ITER], wait); break;
    case OPERAND_EVENT: why_sync(p, c, thread, op, state[THREAD_ITER], wait); break;
    case OPERAND_QUEUE:
        wait->cause = CAUSE_QUEUE;
        wait->agent =
            first_helper(p, c, op, program_thread_agent(p, thread), op_awaited(p, op, thread));
        break;
    case OPERAND_LOCK:
        wait->cause = CAUSE_LOCK;
        wait->object = op->object;
        wait->agent = program_thread_agent(p, c[p->at.locks + op->object] - 1);
        break;
    case OPERAND_TURN:
        wait->cause = CAUSE_ORDER;
        if (p->tasks)
            wait->agent = ticket_holder(p, c, rank, rank_cells(p, c, rank)[RANK_SERVED], wait);
        else
            wait->agent =
                first_helper(p, c, op, program_thread_agent(p, thread), op_awaited(p, op, thread));
        break;
    case OPERAND_NONE:
    case OPERAND_SUBMISSION:
    case OPERAND_BARRIER:
    case OPERAND_COMM:
    case OPERAND_BUFFER: assert(0 && "an operation that never waits"); break;
    }
}

/* The first unfinished task of an iteration, and the agent that has it. */
static void why_iteration(const struct program *p, int32_t *c, int rank, int64_t iteration,
                          struct wait *wait)
{
    wait->iteration = iteration;
    for (int i = p->rank_first[rank]; i < p->rank_first[rank + 1]; i++) {
        const int s = p->rank_streams[i];
        for (int k = 0; k < stream_cells(p, c, s)[STREAM_COUNT]; k++)
            if (item_cells(p, c, s, k)[ITEM_ITER] == iteration) {
                wait->agent = program_stream_agent(p, s);
                wait->task = p->ops[item_cells(p, c, s, k)[ITEM_OP]].task;
                return;
            }
    }
    for (int t = why_first_worker(p, rank); why_is_worker_of(p, t, rank); t++) {
        const int32_t *state = thread_cells(p, c, t);
        if (state[THREAD_BODY] >= 0 && state[THREAD_ITER] == iteration) {
            wait->agent = program_thread_agent(p, t);
            wait->task = state[THREAD_BODY] % p->tasks;
            return;
        }
        for (int k = 0; k < state[THREAD_COUNT]; k++)
            if (entry_cells(p, c, t, k)[ENTRY_ITER] == iteration) {
                wait->agent = program_thread_agent(p, t);
                wait->task = entry_cells(p, c, t, k)[ENTRY_TASK];
                return;
            }
    }
}

/* A driver at its end may have retired an iteration before it was finished. Find one that no agent
   has any more, because one of its tasks was never handed out. */
static void why_left(const struct program *p, int32_t *c, int rank, struct wait *wait)
{
    int64_t admitted = rank_cells(p, c, rank)[RANK_ADMITTED];
    int64_t first = admitted > p->window ? admitted - p->window : 0;
    struct wait holder = {.agent = -1, .task = -1};
    while (first < admitted && !driver_unfinished(p, c, rank, first))
        first++;
    if (first < admitted)
        why_iteration(p, c, rank, first, &holder);
    if (first == admitted || holder.agent >= 0)
        return;
    wait->cause = CAUSE_LEFT;
    wait->iteration = first;
    for (int k = p->tasks - 1; k >= 0; k--)
        if (!(*fired_cell(p, c, rank, p->order[rank][k], first) & FIRED))
            wait->task = p->order[rank][k];
}

static void why_driver(const struct program *p, int32_t *c, int rank, struct wait *wait)
{
    const int32_t *state = rank_cells(p, c, rank);
    switch (thread_cells(p, c, p->driver_thread[rank])[THREAD_PC]) {
    case PHASE_RETIRE:
        wait->cause = CAUSE_RETIRE;
        why_iteration(p, c, rank, state[RANK_OLDEST], wait);
        break;
    case PHASE_ADMIT:
        if (driver_asks_for_data(p, c, rank)) {
            wait->cause = CAUSE_DATA;
            wait->agent = 0;
        } else {
            wait->cause = CAUSE_WINDOW;
            why_iteration(p, c, rank, state[RANK_ADMITTED] - p->window, wait);
        }
        break;
    default: why_left(p, c, rank, wait); break;
    }
}

/* ---- streams --------------------------------------------------------------------------------- */

/* True if the thread, as far as it has got, will push an operation on this communicator. */
static bool has_comm_ahead(const struct program *p, int32_t *c, int thread, int comm)
{
    const int32_t *state = thread_cells(p, c, thread);
    if (state[THREAD_BODY] < 0)
        return false;
    const struct body *body = &p->bodies[state[THREAD_BODY]];
    for (int i = state[THREAD_PC]; i < body->count; i++)
        if (p->ops[body->first + i].comm == comm)
            return true;
    return false;
}

/* The first of the threads with an operation of a member of a communicator that it has yet to push, or, not `ahead`, that it
   has pushed or left out; -1. */
static int absent_thread(const struct program *p, int32_t *c, int comm, int member, bool ahead)
{
    const int object = uses_use_object(p, OBJECT_MEMBER, p->comms[comm].first_member + member);
    int found = -1;
    for (int u = p->uses->first[object]; u >= 0; u = p->uses->items[u].next) {
        const struct use *use = &p->uses->items[u];
        const struct agent *agent = &p->agents[use->agent];
        if (use->way != WAY_PUT || agent->kind != AGENT_THREAD ||
            (ahead && !use_is_ahead(p, c, use)) || (found >= 0 && agent->index > found))
            continue;
        if (!ahead || p->threads[agent->index].kind == THREAD_HOST ||
            has_comm_ahead(p, c, agent->index, comm))
            found = agent->index;
    }
    return found;
}

/* The stream or thread with the operation that a communicator's member has yet to start. */
static int absent_member(const struct program *p, int32_t *c, int comm, int member)
{
    int stream = member_holder(p, c, comm, member);
    if (stream >= 0)
        return program_stream_agent(p, stream);
    int thread = absent_thread(p, c, comm, member, true);
    if (thread < 0) /* none is left: its thread must act */
        thread = absent_thread(p, c, comm, member, false);
    if (thread < 0)
        thread = p->first_thread[p->comms[comm].members[member]];
    return thread >= 0 ? program_thread_agent(p, thread) : -1;
}

static int absent_peer(const struct program *p, int32_t *c, const struct op *op)
{
    if (op_ends_together(op->kind)) {
        const struct comm_desc *comm = &p->comms[op->comm];
        for (int m = 0; m < comm->count; m++) {
            int active =
                c[p->at.members + (comm->first_member + m) * MEMBER_CELLS + MEMBER_ACTIVE] - 1;
            if (active >= 0 && op_ends_together(head_op(p, c, active)->kind))
                continue;
            return active >= 0 ? program_stream_agent(p, active) : absent_member(p, c, op->comm, m);
        }
        return -1;
    }
    for (int k = 0; k < op->part_count; k++) {
        const struct part *part = &p->parts[op->part_first + k];
        const struct channel *channel = &p->channels[part->channel];
        int pending = c[p->at.channels[part->channel]];
        if (part->send ? pending > 0 : pending < 0)
            return absent_member(
                p, c, op->comm,
                program_member(p, op->comm, part->send ? channel->to : channel->from));
    }
    return -1;
}

/* The stream with the most residency slots of the device; -1: none has any. */
static int slot_holder(const struct program *p, int32_t *c, int device_of)
{
    int holder = -1, most = 1;
    for (int rank = p->device[device_of]; rank >= 0; rank = p->device_next[rank])
        for (int i = p->rank_first[rank]; i < p->rank_first[rank + 1]; i++) {
            int s = p->rank_streams[i];
            if (!stream_cells(p, c, s)[STREAM_RUNNING] || slots_held(p, c, s) < most)
                continue;
            most = slots_held(p, c, s);
            holder = s;
        }
    return holder;
}

/* A head that could start but for its communicator, its hardware queue, or residency slots. */
static void why_not_started(const struct program *p, int32_t *c, int stream, const struct op *op,
                            struct wait *wait)
{
    const int rank = p->streams[stream].rank, queue = p->streams[stream].hw_queue;
    const int32_t *item = item_cells(p, c, stream, 0), *ranks = rank_cells(p, c, rank);
    if (op->comm >= 0 && item[ITEM_A] != member_cells(p, c, op)[MEMBER_FINISHED]) {
        const int32_t *member = member_cells(p, c, op);
        int active = member[MEMBER_ACTIVE] - 1;
        if (active < 0) /* queued, not started */
            active = member_holder(p, c, op->comm, op->member);
        why_wait_for_stream(p, CAUSE_COMM_ORDER, active, wait);
        wait->object = op->comm;
    } else if (queue >= 0 && c[p->at.hw_queues[queue] + 1] != stream) {
        why_wait_for_stream(p, CAUSE_HW_QUEUE, c[p->at.hw_queues[queue] + 1], wait);
    } else if (op->comm >= 0 && p->plan->machine.launch_order_implicit &&
               item[ITEM_C] != ranks[RANK_COMM_STARTED]) {
        why_wait_for_stream(p, CAUSE_ISSUE,
                            stream_holding(p, c, rank, -1, ranks[RANK_COMM_STARTED]), wait);
    } else {
        why_wait_for_stream(p, CAUSE_RESIDENCY, slot_holder(p, c, rank), wait);
    }
}

static void why_stream(const struct program *p, int32_t *c, int stream, struct wait *wait)
{
    const int32_t *state = stream_cells(p, c, stream);
    if (state[STREAM_COUNT] == 0) {
        wait->cause = CAUSE_EMPTY;
        return;
    }
    const struct op *op = head_op(p, c, stream);
    const int32_t *item = item_cells(p, c, stream, 0);
    const int queue = p->streams[stream].hw_queue;
    if (state[STREAM_RUNNING]) {
        wait->cause = CAUSE_PEER;
        wait->agent =
            op_calls_host(op->kind) ? program_thread_agent(p, op->callback) : absent_peer(p, c, op);
    } else if (op_waits_for_record(op->kind) && !wait_is_over(p, c, item)) {
        wait->cause = CAUSE_DEPENDENCE;
        wait->agent = program_stream_agent(p, item[ITEM_A]);
        if (p->tasks && op->distance >= 0) {
            wait->task = op->object % p->tasks;
            wait->iteration = item[ITEM_ITER] - op->distance;
        }
    } else if (op_role(op->kind) == ROLE_STEP &&
               (queue < 0 || c[p->at.hw_queues[queue] + 1] == stream)) {
        wait->cause = CAUSE_DEPENDENCE;
        wait->agent =
            first_helper(p, c, op, program_stream_agent(p, stream), op_stream_awaits(p, op));
    } else {
        why_not_started(p, c, stream, op, wait);
    }
}

bool machine_hangs(const struct program *p, const struct state *state, int agent)
{
    ASSERT_INDEX(agent, p->agent_count);
    struct wait wait;
    if (!machine_agent_idle(p, state, agent))
        return !machine_agent_enabled(p, state, agent);
    machine_why(p, state, agent, &wait);
    return wait.cause == CAUSE_LEFT;
}

void machine_why(const struct program *p, const struct state *state, int agent, struct wait *wait)
{
    ASSERT_INDEX(agent, p->agent_count);
    *wait = (struct wait){.cause = CAUSE_NONE, .agent = -1, .task = -1, .object = -1};
    const struct agent *desc = &p->agents[agent];
    if (machine_agent_enabled(p, state, agent))
        return;
    if (desc->kind == AGENT_STREAM)
        why_stream(p, state->cells, desc->index, wait);
    else if (desc->kind == AGENT_THREAD && p->threads[desc->index].kind == THREAD_DRIVER)
        why_driver(p, state->cells, desc->rank, wait);
    else if (desc->kind == AGENT_THREAD)
        why_thread(p, state->cells, desc->index, wait);
    else if (desc->kind == AGENT_WATCHDOG && !machine_agent_idle(p, state, agent))
        *wait = (struct wait){.cause = CAUSE_DEPENDENCE,
                              .agent = busy_stream_agent(p, state->cells, desc->rank),
                              .task = -1,
                              .object = -1};
}
