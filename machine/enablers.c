/* SPDX-License-Identifier: Apache-2.0 */
/*
 * enablers.c - the agents of which one must act before a blocked agent can: machine_enablers of conflicts.h.
 *
 * The waits of a blocked agent mirror machine.c: every condition under which machine_agent_enabled
 * says no has its line here. Records and waits take effect at once, as part of another agent's step, so
 * "stream s must move" is followed back to the agents that can make it move:
 *
 *     s is empty                            -> the threads that may still push to s
 *     the head runs                         -> s itself; for a collective the communicator
 *     the head waits for stream t           -> t must move
 *     s is not first in its hardware queue  -> the first stream there must move
 *     the head must start                   -> s itself; it may wait for a flag, which stream_enablers says
 *
 * The chain ends, because each link leads to an operation that was pushed earlier. Who only watches follows no chain:
 * stream t itself is asked again as often as it moves (ready.c).
 */
#include "conflicts.h"
#include "driver.h"
#include "failure.h"
#include "snapshot.h"
#include "uses.h"

/* ---- the users of an object ------------------------------------------------------------------ */

/* Program, state, and the set that collects the agents. */
struct enablers_query {
    const struct program *p;
    int32_t *c;
    struct agent_set *set;
    int watcher; /* the agent that watches streams and follows no chains; -1 */
};

/* Add all threads that may still use an object in this way. */
static void add_users(const struct enablers_query *q, enum object_kind kind, int index,
                      enum way way)
{
    const struct use_table *uses = q->p->uses;
    for (int u = uses->first[uses_use_object(q->p, kind, index)]; u >= 0; u = uses->items[u].next)
        if (uses->items[u].way == way && use_is_ahead(q->p, q->c, &uses->items[u]))
            agent_set_add(q->set, uses->items[u].agent);
}

static void enablers_add_stream(const struct enablers_query *q, int stream)
{
    agent_set_add(q->set, program_stream_agent(q->p, stream));
}

static void enablers_add_thread(const struct enablers_query *q, int thread)
{
    agent_set_add(q->set, program_thread_agent(q->p, thread));
}

static void enablers_add_comm(const struct enablers_query *q, int comm)
{
    agent_set_add(q->set, program_comm_agent(q->p, comm));
}

/* An abort ends what a stream has started on a communicator. */
static void add_aborters(const struct enablers_query *q, int comm)
{
    if (q->p->has_aborts)
        add_users(q, OBJECT_COMM, comm, WAY_WRITE);
}

/* ---- a stream must move ---------------------------------------------------------------------- */

static void add_movers(const struct enablers_query *q, int stream)
{
    const struct program *p = q->p;
    for (;;) {
        const int32_t *state = stream_cells(p, q->c, stream);
        if (state[STREAM_COUNT] == 0) {
            add_users(q, OBJECT_STREAM, stream, WAY_WRITE);
            return;
        }
        const struct op *op = head_op(p, q->c, stream);
        int queue = p->streams[stream].hw_queue;
        const int32_t *item = item_cells(p, q->c, stream, 0);
        int awaited =
            op_waits_for_record(op->kind) && !wait_is_over(p, q->c, item) ? item[ITEM_A] : -1;
        if (state[STREAM_RUNNING] && op_ends_together(op->kind) &&
            !failure_is_aborted(p, q->c, op->comm, op->member)) {
            enablers_add_comm(q, op->comm);
            add_aborters(q, op->comm);
            return;
        }
        int next = -1;
        if (!state[STREAM_RUNNING] && queue >= 0 && q->c[p->at.hw_queues[queue] + 1] != stream)
            next = q->c[p->at.hw_queues[queue] + 1];
        else if (!state[STREAM_RUNNING] && awaited >= 0)
            next = awaited;
        if (next < 0 || q->watcher >= 0) {
            bool itself = q->watcher == program_stream_agent(p, stream);
            enablers_add_stream(q, next >= 0 && itself ? next : stream);
            return;
        }
        stream = next;
    }
}

/* A member of a communicator must start its next operation there, or finish the one it is in. */
static void add_member_movers(const struct enablers_query *q, int comm, int member)
{
    const struct program *p = q->p;
    int index = p->comms[comm].first_member + member;
    const int32_t *cells = q->c + p->at.members + index * MEMBER_CELLS;
    int stream = cells[MEMBER_ACTIVE] - 1;
    if (stream < 0)
        stream = member_holder(p, q->c, comm, member);
    if (stream >= 0)
        add_movers(q, stream);
    else
        add_users(q, OBJECT_MEMBER, index, WAY_PUT);
}

/* ---- streams and communicators that cannot step ---------------------------------------------- */

/* A group is matched when all its parts are: add the peer of the first part that is not. */
static void group_enablers(const struct enablers_query *q, const struct op *op)
{
    for (int k = 0; k < op->part_count; k++) {
        const struct part *part = &q->p->parts[op->part_first + k];
        const struct channel *channel = &q->p->channels[part->channel];
        struct op alone = *op;
        alone.part_first += k;
        alone.part_count = 1;
        if (machine_group_matched(q->p, q->c, &alone))
            continue;
        int peer = part->send ? channel->to : channel->from;
        add_member_movers(q, channel->comm, program_member(q->p, channel->comm, peer));
        return;
    }
}

static void running_enablers(const struct enablers_query *q, const struct op *op)
{
    if (op->comm >= 0)
        add_aborters(q, op->comm);
    if (op_ends_together(op->kind))
        enablers_add_comm(q, op->comm);
    else if (op_calls_host(op->kind))
        enablers_add_thread(q, op->callback);
    else
        group_enablers(q, op);
}

/* The holders of residency slots of a rank may release them. */
static void holders_of_rank(const struct enablers_query *q, int rank)
{
    const struct program *p = q->p;
    for (int i = p->rank_first[rank]; i < p->rank_first[rank + 1]; i++) {
        int s = p->rank_streams[i];
        if (stream_cells(p, q->c, s)[STREAM_RUNNING] && head_op(p, q->c, s)->sm > 0)
            add_movers(q, s);
    }
}

/* Those of all ranks on the device. */
static void slot_holders(const struct enablers_query *q, int rank)
{
    for (int other = q->p->device[rank]; other >= 0; other = q->p->device_next[other])
        holders_of_rank(q, other);
}

/* The users of an object that can help with it who waits there: threads, and streams, which must move then. */
static void add_helpers(const struct enablers_query *q, int object, const struct op *op)
{
    const struct use_table *uses = q->p->uses;
    const unsigned ways = op_helping_ways(q->p, op);
    for (int u = uses->first[object]; u >= 0; u = uses->items[u].next) {
        const struct use *use = &uses->items[u];
        const struct agent *agent = &q->p->agents[use->agent];
        if (!(ways >> use->way & 1) || !use_is_ahead(q->p, q->c, use))
            continue;
        if (agent->kind == AGENT_STREAM)
            add_movers(q, agent->index);
        else
            agent_set_add(q->set, use->agent);
    }
}

/* A head that could start but for its communicator, for residency slots, or for what it takes. */
static void waiting_enablers(const struct enablers_query *q, int stream, const struct op *op)
{
    const struct program *p = q->p;
    int rank = p->streams[stream].rank;
    const int32_t *item = item_cells(p, q->c, stream, 0), *ranks = rank_cells(p, q->c, rank);
    if (op->comm >= 0 && item[ITEM_A] != member_cells(p, q->c, op)[MEMBER_FINISHED])
        add_member_movers(q, op->comm, op->member);
    else if (op->comm >= 0 && p->plan->machine.launch_order_implicit &&
             item[ITEM_C] != ranks[RANK_COMM_STARTED])
        add_movers(q, stream_holding(p, q->c, rank, -1, ranks[RANK_COMM_STARTED]));
    else if (op_stream_awaits(p, op) >= 0)
        add_helpers(q, op_stream_awaits(p, op), op);
    else
        slot_holders(q, rank);
}

static void stream_enablers(const struct enablers_query *q, int stream)
{
    const struct program *p = q->p;
    const int32_t *state = stream_cells(p, q->c, stream);
    const struct op *op = state[STREAM_COUNT] ? head_op(p, q->c, stream) : NULL;
    int queue = p->streams[stream].hw_queue;
    bool first = queue < 0 || q->c[p->at.hw_queues[queue] + 1] == stream;
    if (op && state[STREAM_RUNNING])
        running_enablers(q, op);
    else if (!op || !first || op_waits_for_record(op->kind))
        add_movers(q, stream);
    else
        waiting_enablers(q, stream, op);
}

/* One member that is in no collective is enough: it must come to one. */
static void comm_enablers(const struct enablers_query *q, int comm)
{
    const struct program *p = q->p;
    for (int m = 0; m < p->comms[comm].count; m++) {
        int stream =
            q->c[p->at.members + (p->comms[comm].first_member + m) * MEMBER_CELLS + MEMBER_ACTIVE] -
            1;
        if (stream >= 0 && op_ends_together(head_op(p, q->c, stream)->kind))
            continue;
        add_member_movers(q, comm, m);
        return;
    }
}

/* ---- threads that cannot step ---------------------------------------------------------------- */

static void add_workers(const struct enablers_query *q, int rank)
{
    for (int t = q->p->driver_thread[rank] + 1; program_is_worker(q->p, t); t++)
        enablers_add_thread(q, t);
}

/* True if a worker submits an instance of an iteration, or one is in its queue. */
static bool has_instance(const struct enablers_query *q, int thread, int64_t iteration)
{
    const int32_t *state = thread_cells(q->p, q->c, thread);
    if (machine_thread_op(q->p, q->c, thread) && state[THREAD_ITER] == iteration)
        return true;
    for (int place = 0; place < state[THREAD_COUNT]; place++)
        if (entry_cells(q->p, q->c, thread, place)[ENTRY_ITER] == iteration)
            return true;
    return false;
}

/* All instances of an iteration must be submitted: a worker that has one must step; all of them, if the rest
   is not handed out. */
static void add_submitters(const struct enablers_query *q, int rank, int64_t iteration)
{
    const struct program *p = q->p;
    const int first = p->driver_thread[rank] + 1;
    if (q->watcher >= 0 && p->driver == DRIVER_DATAFLOW &&
        !(*fired_cell(p, q->c, rank, p->last_task, iteration) & DONE)) {
        enablers_add_thread(q, p->worker[rank * p->tasks + p->last_task]);
        return; /* without it the iteration is not submitted */
    }
    int t = first;
    while (program_is_worker(q->p, t))
        t++;
    const bool alone = t == first + 1;
    while (t-- > first) /* the last ones are handed an instance last, so they have it longest */
        if (alone || has_instance(q, t, iteration)) {
            enablers_add_thread(q, t);
            return;
        }
    add_workers(q, rank);
}

/* The device must reach the record of a task of an iteration: all of them (task -1), or this. */
static void add_record_movers(const struct enablers_query *q, int rank, int task, int64_t iteration)
{
    const struct program *p = q->p;
    for (int i = p->rank_first[rank]; i < p->rank_first[rank + 1]; i++) {
        int s = p->rank_streams[i];
        for (int k = 0; k < stream_cells(p, q->c, s)[STREAM_COUNT]; k++) {
            const int32_t *item = item_cells(p, q->c, s, k);
            const struct op *op = &p->ops[item[ITEM_OP]];
            if (item[ITEM_ITER] != iteration || !program_records_task(op) ||
                (task >= 0 && op->task != task))
                continue;
            add_movers(q, s);
            return;
        }
    }
    if (task >= 0)
        enablers_add_thread(q, p->worker[rank * p->tasks + task]); /* it has not been pushed */
    else
        add_submitters(q, rank, iteration);
}

/* An iteration must get further: be submitted, then be reached by the device. */
static void add_iteration_movers(const struct enablers_query *q, int rank, int64_t iteration,
                                 enum retire_rule rule)
{
    const int32_t *window = window_cells(q->p, q->c, rank, iteration);
    if (rule != RETIRE_LAST_TASK && window[WINDOW_SUBMIT_LEFT] > 0)
        add_submitters(q, rank, iteration);
    else
        add_record_movers(q, rank, rule == RETIRE_LAST_TASK ? q->p->last_task : -1, iteration);
}

/* A driver asks for data, has no room in the window, or waits for its oldest iteration. */
static void driver_enablers(const struct enablers_query *q, int rank)
{
    const struct program *p = q->p;
    const int32_t *state = rank_cells(p, q->c, rank);
    int phase = thread_cells(p, q->c, p->driver_thread[rank])[THREAD_PC];
    if (phase == PHASE_RETIRE)
        add_iteration_movers(q, rank, state[RANK_OLDEST], p->plan->pipeline.retire);
    if (phase != PHASE_ADMIT)
        return;
    if (driver_asks_for_data(p, q->c, rank))
        agent_set_add(q->set, 0);
    else
        add_iteration_movers(q, rank, state[RANK_ADMITTED] - p->window, RETIRE_DEVICE);
}

static void sync_enablers(const struct enablers_query *q, int thread, const struct op *op,
                          int64_t iteration)
{
    const struct program *p = q->p;
    int rank = program_sync_rank(p, thread, op);
    if (snapshot_is_needed(p, q->c, thread, op)) {
        add_movers(q, snapshot_awaits(p, q->c, thread));
        return;
    }
    if (op->sync == SYNC_EVENT) { /* reached; or recorded anew where nothing is queued */
        add_movers(q, event_cells(p, q->c, instance_of(p, op, iteration))[EVENT_STREAM]);
        add_users(q, OBJECT_EVENT, op->object, WAY_WRITE);
        return;
    }
    int busy = op->stream;
    for (int i = p->rank_first[rank]; op->sync != SYNC_STREAM && i < p->rank_first[rank + 1]; i++)
        if (stream_cells(p, q->c, p->rank_streams[i])[STREAM_COUNT] > 0)
            busy = p->rank_streams[i];
    add_movers(q, busy); /* a lock keeps other threads from loading the kernel */
}

/* A lock that all release who hold it is released by its holder. -1: another operand. */
static int lock_holder(const struct enablers_query *q, const struct op *op)
{
    const struct program *p = q->p;
    bool known = op_operand(op->kind) == OPERAND_LOCK && !p->uses->lock_abused[op->object];
    return known ? q->c[p->at.locks + op->object] - 1 : -1;
}

/* True if there is nothing to wait for, or to push, once the iteration waited for is retired. */
static bool may_be_skipped(const struct program *p, const struct op *op)
{
    return p->tasks && p->plan->pipeline.retired_dep == RETIRED_DEP_SKIP && op_dependence(op) >= 0;
}

static void op_enablers(const struct enablers_query *q, int thread, const struct op *op)
{
    const struct program *p = q->p;
    const int rank = p->threads[thread].rank;
    if (op_pushes(op->kind)) /* its stream is full */
        add_movers(q, op->stream);
    else if (op_syncs(op->kind))
        sync_enablers(q, thread, op, thread_cells(p, q->c, thread)[THREAD_ITER]);
    else if (lock_holder(q, op) >= 0)
        enablers_add_thread(q, lock_holder(q, op));
    else
        add_helpers(q, op_awaited(p, op, thread), op);
    if (may_be_skipped(p, op))
        enablers_add_thread(q, p->driver_thread[rank]);
}

static void thread_enablers(const struct enablers_query *q, int thread)
{
    const struct program *p = q->p;
    const struct op *op = machine_thread_op(p, q->c, thread);
    switch (p->threads[thread].kind) {
    case THREAD_DRIVER: driver_enablers(q, p->threads[thread].rank); return;
    case THREAD_WORKER:
        if (!op)
            add_users(q, OBJECT_INBOX, thread, WAY_PUT);
        break;
    case THREAD_CALLBACK:
        if (!op)
            enablers_add_stream(q, p->threads[thread].stream);
        break;
    case THREAD_HOST: break;
    }
    if (op)
        op_enablers(q, thread, op);
}

static void add_enablers(const struct enablers_query *query, int agent)
{
    const struct program *p = query->p;
    const struct agent *desc = &p->agents[agent];
    switch (desc->kind) {
    case AGENT_DATA: /* asked by a driver */
        for (int rank = 0; p->tasks && rank < p->ranks; rank++)
            enablers_add_thread(query, p->driver_thread[rank]);
        break;
    case AGENT_THREAD: thread_enablers(query, desc->index); break;
    case AGENT_STREAM: stream_enablers(query, desc->index); break;
    case AGENT_COMM: comm_enablers(query, desc->index); break;
    case AGENT_FAULT:
    case AGENT_WATCHDOG: assert(0 && "faults are searched without reduction"); break;
    }
}

void machine_enablers(const struct program *p, const struct state *state, int agent,
                      struct agent_set *set)
{
    add_enablers(&(struct enablers_query){p, state->cells, set, -1}, agent);
}

void machine_watched(const struct program *p, const struct state *state, int agent,
                     struct agent_set *set)
{
    add_enablers(&(struct enablers_query){p, state->cells, set, agent}, agent);
}
