/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower_pipeline.c - tasks and dependences become one body of operations per rank and task.
 *
 * A worker executes the body of an instance (task, iteration) in the order of doc/semantics.md,
 * section 4: await the CPU signal of every dependence, push a wait for the event of each, take the
 * ticket, take the locks, do the CPU part, push the work, do the CPU part behind it, serve the ticket,
 * record the event, set the CPU signal, complete.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lower.h"
#include "base/array.h"
#include "base/sort.h"
#include "plan/order.h"

static int family(const struct program *program, int rank, int task)
{
    return rank * program->tasks + task;
}

static int lower_pipeline_stream_of(struct lowering *lowering, int rank, const struct task *task)
{
    return lower_stream(lowering, rank, task->stream);
}

static void emit_dependences(struct lowering *lowering, int rank, int task_index)
{
    const struct pipeline *pipeline = &lowering->plan->pipeline;
    const struct task *task = plan_task(lowering->plan, rank, task_index);
    const struct edge_list *depends = &lowering->program->depends[task_index];
    for (int i = 0; i < depends->count; i++) {
        const struct dep *dep = &pipeline->deps[depends->items[i].dep];
        struct op *op = lower_emit(lowering, OP_AWAIT, dep->mark);
        op->task = task_index;
        op->object = family(lowering->program, rank, dep->on);
        op->distance = (int8_t)dep->distance;
    }
    for (int i = 0; i < depends->count; i++) {
        const struct dep *dep = &pipeline->deps[depends->items[i].dep];
        if (pipeline->elide_same_stream &&
            plan_task(lowering->plan, rank, dep->on)->stream == task->stream)
            continue;
        const size_t first = lowering->program->op_count;
        lower_legacy_begin(lowering, rank, task->stream, false, dep->mark);
        struct op *op = lower_emit(lowering, OP_WAIT, dep->mark);
        op->task = task_index;
        op->stream = lower_pipeline_stream_of(lowering, rank, task);
        op->object = family(lowering->program, rank, dep->on);
        op->distance = (int8_t)dep->distance;
        lower_legacy_end(lowering, rank, task->stream, false, dep->mark);
        for (size_t k = first; k < lowering->program->op_count; k++)
            lowering->program->ops[k].within = dep->distance;
    }
}

static struct op *emit_task_op(struct lowering *lowering, enum op_kind kind, int rank,
                               int task_index)
{
    const struct task *task = plan_task(lowering->plan, rank, task_index);
    struct op *op = lower_emit(lowering, kind, task->mark);
    op->task = task_index;
    op->name = lower_name(lowering, task->name);
    return op;
}

static void lower_pipeline_emit_sync(struct lowering *lowering, int rank, int task_index,
                                     enum sync_kind sync)
{
    int stream =
        lower_pipeline_stream_of(lowering, rank, plan_task(lowering->plan, rank, task_index));
    struct op *op = emit_task_op(lowering, OP_SYNC, rank, task_index);
    op->sync = sync;
    op->stream = stream;
}

static void emit_sync_of_task(struct lowering *lowering, int rank, int task_index,
                              enum host_sync sync)
{
    if (sync != HOST_SYNC_NONE)
        lower_pipeline_emit_sync(lowering, rank, task_index,
                                 sync == HOST_SYNC_STREAM ? SYNC_STREAM : SYNC_DEVICE);
}

static void emit_host_part(struct lowering *lowering, int rank, int task_index)
{
    const struct task *task = plan_task(lowering->plan, rank, task_index);
    emit_sync_of_task(lowering, rank, task_index, task->host_sync);
    bool is_host_work = task->work.kind == WORK_HOST;
    if (task->host_time_ns == 0 && !is_host_work)
        return;
    struct op *op = emit_task_op(lowering, OP_HOST, rank, task_index);
    op->time_ns = task->host_time_ns;
    lower_give(
        lowering, op,
        (struct given){.jitter = &task->host_jitter, .work = is_host_work ? &task->work : NULL});
    if (is_host_work) {
        op->time_ns += task->work.time_ns;
        lower_accesses(lowering, op, rank, &task->reads, &task->writes);
    }
}

/* The event of the task is recorded behind this, so it is reached when CPU part and device part are over. */
static void emit_host_after(struct lowering *lowering, int rank, int task_index)
{
    const struct task *task = plan_task(lowering->plan, rank, task_index);
    if (task->host_after_ns > 0) {
        struct op *op = emit_task_op(lowering, OP_HOST, rank, task_index);
        op->time_ns = task->host_after_ns;
        lower_give(lowering, op, (struct given){.jitter = &task->host_jitter});
    }
    emit_sync_of_task(lowering, rank, task_index, task->sync_after);
}

static enum op_kind lower_pipeline_push_kind(enum work_kind kind)
{
    switch (kind) {
    case WORK_COPY: return OP_COPY;
    case WORK_COLLECTIVE: return OP_COLLECTIVE;
    case WORK_SEND:
    case WORK_RECV: return OP_GROUP;
    default: return OP_LAUNCH;
    }
}

/* A task that sends or receives is a group of one. */
static void lower_pipeline_add_part(struct lowering *lowering, struct op *op, int rank,
                                    const struct task *task)
{
    struct program *program = lowering->program;
    const struct work *work = &task->work;
    bool send = work->kind == WORK_SEND;
    struct part part = {.send = send, .element = work->element, .bytes = work->bytes};
    part.tag = lower_name(lowering, work->tag ? work->tag : task->name);
    part.channel =
        lower_channel(lowering, work->comm, send ? rank : work->peer, send ? work->peer : rank);
    op->part_first = (int)program->part_count;
    op->part_count = 1;
    if (ARENA_GROW(&program->arena, program->parts, program->part_count, program->part_cap))
        program->parts[program->part_count++] = part;
    else
        lowering->failed = true;
}

static enum status lower_pipeline_check_member(struct lowering *lowering, int rank,
                                               const struct task *task)
{
    int comm = task->work.comm;
    const struct plan *plan = lowering->plan;
    bool p2p = task->work.kind != WORK_COLLECTIVE;
    if (lower_member(lowering, comm, rank) < 0)
        return plan_error_at(
            plan, lowering->diag, task->mark,
            "found task %s of rank %d on communicator %s, expected one of its members "
            "(other work under \"rank_overrides\")",
            task->name, rank, plan->comms[comm].name);
    if (task->work.root >= 0 && lower_member(lowering, comm, task->work.root) < 0)
        return plan_error_at(plan, lowering->diag, task->mark,
                             "found root %d in task %s, expected a member of communicator %s",
                             task->work.root, task->name, plan->comms[comm].name);
    if (p2p && (task->work.peer == rank || lower_member(lowering, comm, task->work.peer) < 0))
        return plan_error_at(plan, lowering->diag, task->mark,
                             "found peer %d in task %s of rank %d, expected another member of "
                             "communicator %s",
                             task->work.peer, task->name, rank, plan->comms[comm].name);
    return STATUS_OK;
}

static enum status emit_work(struct lowering *lowering, int rank, int task_index)
{
    const struct task *task = plan_task(lowering->plan, rank, task_index);
    if (task->work.kind == WORK_HOST)
        return STATUS_OK;
    enum op_kind kind = lower_pipeline_push_kind(task->work.kind);
    int stream = lower_pipeline_stream_of(lowering, rank, task);
    bool uses_comm = op_uses_comm(kind);
    if (uses_comm) {
        enum status status = lower_pipeline_check_member(lowering, rank, task);
        if (status != STATUS_OK)
            return status;
        const struct p2p_part message = {.send = task->work.kind == WORK_SEND,
                                         .peer = task->work.peer,
                                         .comm = -1,
                                         .mark = task->mark};
        lower_first_use(lowering, &(struct first_use){task->work.comm, rank, &message,
                                                      kind == OP_GROUP, task->mark});
    } else {
        lower_load_begin(lowering, rank, lower_name(lowering, task->name), task->mark);
    }
    bool locked = !uses_comm && lowering->plan->machine.lazy_load;
    lower_legacy_begin(lowering, rank, task->stream, locked, task->mark);
    struct op *op = emit_task_op(lowering, kind, rank, task_index);
    op->stream = stream;
    op->time_ns = task->time_ns ? task->time_ns : task->work.time_ns;
    lower_slots(lowering, op, task->sm, task->greedy);
    lower_give(lowering, op,
               (struct given){.jitter = &task->jitter,
                              .shares = &task->shares,
                              .work = &task->work,
                              .bytes = task->work.bytes});
    lower_accesses(lowering, op, rank, &task->reads, &task->writes);
    if (uses_comm) {
        op->comm = task->work.comm;
        op->member = lower_member(lowering, op->comm, rank);
        if (kind == OP_COLLECTIVE)
            lower_root(lowering, op, task->work.collective, task->work.root);
    }
    if (kind == OP_GROUP)
        lower_pipeline_add_part(lowering, op, rank, task);
    lower_legacy_end(lowering, rank, task->stream, locked, task->mark);
    if (!uses_comm)
        lower_load_end(lowering, rank, task->mark);
    if (kind != OP_COPY)
        lower_launched(lowering, stream, task->mark);
    if (kind == OP_COPY && task->work.pageable) {
        lower_pipeline_emit_sync(lowering, rank, task_index, SYNC_STAGED);
        lower_pipeline_emit_sync(lowering, rank, task_index, SYNC_STREAM);
    }
    return STATUS_OK;
}

static void emit_locks(struct lowering *lowering, int rank, int task_index, enum op_kind kind)
{
    const struct task *task = plan_task(lowering->plan, rank, task_index);
    size_t count = task->holds.count;
    for (size_t k = 0; k < count; k++) {
        size_t which = kind == OP_LOCK ? k : count - 1 - k;
        struct op *op = lower_emit(lowering, kind, task->mark);
        op->task = task_index;
        op->object = rank * ((int)lowering->plan->locks.count + 1) + task->holds.items[which];
    }
}

static enum status lower_task(struct lowering *lowering, int rank, int task_index)
{
    const struct task *task = plan_task(lowering->plan, rank, task_index);
    int body = lower_body_begin(lowering);
    emit_dependences(lowering, rank, task_index);
    const bool waits_for_turn = task->globally_ordered && !program_fires_by_turn(lowering->program);
    if (waits_for_turn)
        emit_task_op(lowering, OP_TICKET, rank, task_index);
    emit_locks(lowering, rank, task_index, OP_LOCK);
    emit_host_part(lowering, rank, task_index);
    enum status status = emit_work(lowering, rank, task_index);
    if (status != STATUS_OK)
        return status;
    emit_host_after(lowering, rank, task_index);
    emit_locks(lowering, rank, task_index, OP_UNLOCK);
    if (waits_for_turn)
        emit_task_op(lowering, OP_SERVE, rank, task_index);
    int stream = lower_pipeline_stream_of(lowering, rank, task);
    lower_legacy_begin(lowering, rank, task->stream, false, task->mark);
    struct op *op = emit_task_op(lowering, OP_RECORD, rank, task_index);
    op->stream = stream;
    op->object = family(lowering->program, rank, task_index);
    lower_legacy_end(lowering, rank, task->stream, false, task->mark);
    op = emit_task_op(lowering, OP_SIGNAL, rank, task_index);
    op->object = family(lowering->program, rank, task_index);
    emit_task_op(lowering, OP_COMPLETE, rank, task_index);
    lower_body_end(lowering, body);
    return STATUS_OK;
}

/* `counts` has a place for each thread group. */
static void lower_pipeline_add_threads(struct lowering *lowering, int rank, int *counts)
{
    struct program *program = lowering->program;
    const struct plan *plan = lowering->plan;
    program->driver_thread[rank] = lower_thread(
        lowering,
        (struct thread_desc){.kind = THREAD_DRIVER, .rank = rank, .name = "driver", .body = -1});
    const struct task *tasks = plan_tasks(plan, rank);
    int *worker = &program->worker[rank * program->tasks];
    memset(counts, 0, plan->groups.count * sizeof *counts);
    for (int task = 0; task < program->tasks; task++)
        counts[tasks[task].group]++;
    for (int group = 0; group < (int)plan->groups.count; group++)
        if (counts[group]) /* from now on it is the group's thread */
            counts[group] =
                lower_thread(lowering, (struct thread_desc){.kind = THREAD_WORKER,
                                                            .rank = rank,
                                                            .name = plan->groups.items[group],
                                                            .body = -1,
                                                            .group = group,
                                                            .queue_cap = counts[group]});
    for (int task = 0; task < program->tasks; task++)
        worker[task] = counts[tasks[task].group];
}

static void lower_pipeline_add_edge(struct edge_list *list, int task, const struct dep *dep,
                                    int number, int place)
{
    list->items[list->count++] = (struct edge){task, dep->distance, number, place};
}

/* Every list gets its part of `items`, by the counts, and is empty again. */
static void share_out(struct edge_list *lists, int count, struct edge *items)
{
    for (int i = 0; i < count; i++) {
        lists[i].items = items;
        items += lists[i].count;
        lists[i].count = 0;
    }
}

static bool collect_edges(struct lowering *lowering)
{
    struct program *program = lowering->program;
    const struct pipeline *pipeline = &lowering->plan->pipeline;
    const int deps = (int)pipeline->dep_count;
    program->depends = ARENA_ARRAY(&program->arena, (size_t)program->tasks, struct edge_list);
    program->fires = ARENA_ARRAY(&program->arena, (size_t)program->tasks, struct edge_list);
    struct edge *depends = ARENA_ARRAY(&program->arena, pipeline->dep_count, struct edge);
    struct edge *fires = ARENA_ARRAY(&program->arena, pipeline->dep_count, struct edge);
    if (!program->depends || !program->fires || !depends || !fires)
        return false;
    for (int i = 0; i < deps; i++) {
        program->depends[pipeline->deps[i].task].count++;
        program->fires[pipeline->deps[i].on].count++;
    }
    share_out(program->depends, program->tasks, depends);
    share_out(program->fires, program->tasks, fires);
    for (int i = 0; i < deps; i++) {
        const struct dep *dep = &pipeline->deps[i];
        const int place = program->depends[dep->task].count;
        lower_pipeline_add_edge(&program->depends[dep->task], dep->on, dep, i, place);
        lower_pipeline_add_edge(&program->fires[dep->on], dep->task, dep, i, place);
    }
    return true;
}

/* All ranks number tasks in the order of rank 0, so that they agree; each counts its own ordered tasks. */
static void number_tickets(struct program *program, const struct plan *plan, int rank,
                           const int *order)
{
    for (int k = 0; k < program->tasks; k++) {
        int task = order[k];
        int *position = &program->ticket_position[rank * program->tasks + task];
        *position =
            plan_task(plan, rank, task)->globally_ordered ? program->ordered_tasks[rank]++ : -1;
        if (program->turn_task && *position >= 0)
            program->turn_task[rank * program->tasks + *position] = task;
    }
}

/* How many of the turns behind one may be the next: those in front of the first one of the same iteration need not exist. A turn
   of the next round is as if of one stage less. */
static int count_followers(const struct program *program, int rank, int position)
{
    const int *turns = program->turn_task + rank * program->tasks;
    const int ordered = program->ordered_tasks[rank], own = program->turn_stage[turns[position]];
    for (int count = 1; count < ordered; count++) {
        const int next = position + count;
        if (program->turn_stage[turns[next % ordered]] - next / ordered == own)
            return count;
    }
    return ordered;
}

/* The order of turns in a round, to `order`. */
static enum status find_turns(struct lowering *lowering, int *order)
{
    struct program *program = lowering->program;
    const size_t tasks = (size_t)program->tasks;
    program->turn_task = ARENA_ARRAY(&program->arena, (size_t)program->ranks * tasks, int);
    program->turn_followers = ARENA_ARRAY(&program->arena, (size_t)program->ranks * tasks, int);
    program->turn_stage = ARENA_ARRAY(&program->arena, tasks, int);
    program->turn_place = ARENA_ARRAY(&program->arena, tasks, int);
    if (!program->turn_task || !program->turn_followers || !program->turn_stage ||
        !program->turn_place)
        return diag_no_memory(lowering->diag);
    enum status status =
        order_pipelined(lowering->plan, program->depth, program->turn_stage, order, lowering->diag);
    for (int k = 0; k < program->tasks && status == STATUS_OK; k++) {
        const int stage = program->turn_stage[order[k]];
        program->turn_place[order[k]] = k;
        program->last_turn_stage =
            stage > program->last_turn_stage ? stage : program->last_turn_stage;
    }
    return status;
}

/* Under the clock driver tickets are taken as tasks are handed out. Data-flow fires a task behind what it depends on, so
   its tickets follow the dependences. `scratch` has room for the tasks. */
static enum status find_tickets(struct lowering *lowering, bool dataflow, int *scratch)
{
    struct program *program = lowering->program;
    const int *order = program->order[0];
    if (dataflow && lowering->plan->pipeline.ticket_at == TICKET_AT_PIPELINED) {
        enum status status = find_turns(lowering, scratch);
        if (status != STATUS_OK)
            return status;
        order = scratch;
    } else if (dataflow) {
        enum status status =
            order_behind_dependences(lowering->plan, program->order[0], scratch, lowering->diag);
        if (status != STATUS_OK)
            return status;
        order = scratch;
    }
    for (int rank = 0; rank < program->ranks; rank++)
        number_tickets(program, lowering->plan, rank, order);
    for (int rank = 0; program->turn_task && rank < program->ranks; rank++)
        for (int k = 0; k < program->ordered_tasks[rank]; k++)
            program->turn_followers[rank * program->tasks + k] = count_followers(program, rank, k);
    return STATUS_OK;
}

static enum status find_orders(struct lowering *lowering)
{
    struct program *program = lowering->program;
    const bool dataflow = program->driver == DRIVER_DATAFLOW;
    size_t tasks = (size_t)program->tasks;
    program->order = ARENA_ARRAY(&program->arena, (size_t)program->ranks, int *);
    program->ticket_position = ARENA_ARRAY(&program->arena, (size_t)program->ranks * tasks, int);
    program->ordered_tasks = ARENA_ARRAY(&program->arena, (size_t)program->ranks, int);
    int *topological = ARENA_ARRAY(&program->arena, tasks, int);
    program->serial_place = ARENA_ARRAY(&program->arena, tasks, int);
    if (!program->serial_place || !program->order || !program->ticket_position ||
        !program->ordered_tasks || !topological)
        return diag_no_memory(lowering->diag);
    for (int rank = 0; rank < program->ranks; rank++) {
        program->order[rank] = ARENA_ARRAY(&program->arena, tasks, int);
        if (!program->order[rank])
            return diag_no_memory(lowering->diag);
        enum status status = (dataflow ? order_dataflow : order_enqueue)(
            lowering->plan, rank, program->order[rank], lowering->diag);
        if (status != STATUS_OK)
            return status;
    }
    enum status status = find_tickets(lowering, dataflow, topological);
    if (status == STATUS_OK)
        status = order_topological(lowering->plan, topological, lowering->diag);
    if (status != STATUS_OK)
        return status;
    program->last_task = topological[tasks - 1];
    for (size_t k = 0; k < tasks; k++)
        program->serial_place[topological[k]] = (int)k;
    return STATUS_OK;
}

static enum status find_ends(struct lowering *lowering)
{
    struct program *program = lowering->program;
    const struct pipeline *pipeline = &lowering->plan->pipeline;
    program->ends = ARENA_ARRAY(&program->arena, (size_t)program->ranks, int64_t);
    if (!program->ends)
        return diag_no_memory(lowering->diag);
    if (pipeline->batches && pipeline->batch_count != (size_t)program->ranks)
        return diag_error(
            lowering->diag, STATUS_INPUT,
            "%s: batches names %zu ranks, the plan runs on %d: expected one number a rank",
            lowering->plan->file, pipeline->batch_count, program->ranks);
    for (int rank = 0; rank < program->ranks; rank++)
        program->ends[rank] =
            pipeline->batches ? pipeline->batches[rank] : program->options.iterations;
    return STATUS_OK;
}

static int max_distance(const struct pipeline *pipeline)
{
    int distance = 0;
    for (size_t i = 0; i < pipeline->dep_count; i++)
        distance = pipeline->deps[i].distance > distance ? pipeline->deps[i].distance : distance;
    return distance;
}

/* The items that one iteration pushes to each stream. */
static void lower_pipeline_count_pushes(const struct program *program, int *per_stream)
{
    memset(per_stream, 0, (size_t)program->stream_count * sizeof *per_stream);
    for (size_t i = 0; i < program->op_count; i++)
        if (op_pushes(program->ops[i].kind))
            per_stream[program->ops[i].stream]++;
}

/* The bytes of the smallest send of the channel. */
static int64_t smallest_message(const struct program *program, int channel)
{
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < program->part_count; i++) {
        const struct part *part = &program->parts[i];
        if (part->send && part->channel == channel && part->bytes < least)
            least = part->bytes;
    }
    return least;
}

/* Messages that may be sent on credit: as many as the eager buffer has room for; those without bytes
   always fit, until the data ends. */
static enum status most_eager(struct lowering *lowering, int channel, int *out)
{
    struct program *program = lowering->program;
    const struct channel *desc = &program->channels[channel];
    const struct comm_desc *comm = &program->comms[desc->comm];
    int64_t least = smallest_message(program, channel), end = program->ends[desc->from];
    int64_t fits = comm->eager_bytes == 0 ? 0 : least > 0 ? comm->eager_bytes / least : INT64_MAX;
    if (end >= 0 && fits / desc->cap > end) {
        fits = end * desc->cap;
        program->credit_ends = true;
    }
    if (fits > PLAN_MAX_EAGER)
        return diag_error(lowering->diag, STATUS_INPUT,
                          "%s: the eager_bytes of communicator %s have room for more messages of "
                          "%" PRId64 " bytes than can be tracked: expected at most %d",
                          lowering->plan->file, comm->name, least, PLAN_MAX_EAGER);
    *out = fits > comm->eager_messages ? (int)fits : comm->eager_messages;
    return STATUS_OK;
}

/* A channel holds the messages of a window of iterations, and those sent on credit. */
static enum status size_channels(struct lowering *lowering)
{
    struct program *program = lowering->program;
    for (int c = 0; c < program->channel_count; c++) {
        int eager = 0;
        enum status status = most_eager(lowering, c, &eager);
        if (status != STATUS_OK)
            return status;
        program->channels[c].cap = (program->channels[c].cap + 1) * (program->window + 1) + eager;
    }
    return STATUS_OK;
}

/* The machine counts in 32 bits what a stream receives, and the turns of an order. `pushes`: of an iteration, for each
   stream. */
static enum status check_ends(const struct lowering *lowering, const int *pushes)
{
    const struct program *program = lowering->program;
    int64_t each = 1;
    for (int rank = 0; rank < program->ranks; rank++)
        each = max_i64(each, program->ordered_tasks[rank] + 1);
    for (int s = 0; s < program->stream_count; s++)
        each = max_i64(each, pushes[s]);
    const int64_t most = max_i64(
        0, min_i64(PLAN_MAX_ITERATIONS, INT32_MAX / each - program->window - program->history));
    for (int rank = 0; rank < program->ranks && !program->options.ended_by_caller; rank++)
        if (program->ends[rank] > most)
            return diag_error(lowering->diag,
                              lowering->plan->pipeline.batches ? STATUS_INPUT : STATUS_USAGE,
                              "%s: found %" PRId64 " iterations, expected at most %" PRId64
                              ": what a stream receives in a run is counted in 32 bits",
                              lowering->plan->file, program->ends[rank], most);
    return STATUS_OK;
}

/* How far ahead of the device the host may run, and the iterations that must be remembered for it:
 *
 *        device lags by <= run      contexts <= depth     history: only as "done"
 *     ------[-----------------------|----------------]------> iterations
 *           window = run + depth + 1, indexed by iteration mod window
 */
static enum status size_windows(struct lowering *lowering)
{
    struct program *program = lowering->program;
    const struct pipeline *pipeline = &lowering->plan->pipeline;
    int launch_queue = lowering->plan->machine.launch_queue;
    int *pushes = ARENA_ARRAY(&program->arena, (size_t)program->stream_count, int);
    if (!pushes)
        return diag_no_memory(lowering->diag);
    lower_pipeline_count_pushes(program, pushes);
    bool device_bounded = pipeline->retire == RETIRE_DEVICE;
    const int ahead = device_bounded ? program->depth : program->depth + 2; /* unless bounded */
    int run = device_bounded ? 0 : ahead, behind = 0;
    for (int s = 0; s < program->stream_count; s++) {
        int cap = pushes[s] * ahead;
        if (launch_queue && (launch_queue < cap || !device_bounded))
            cap = launch_queue;
        program->streams[s].cap = cap;
        int lag = cap / pushes[s] + 2, unfinished = (cap - 1) / pushes[s] + 1;
        if (!device_bounded && lag > run)
            run = lag;
        if (!device_bounded && unfinished > behind)
            behind = unfinished;
    }
    program->max_distance = max_distance(pipeline);
    program->window = run + program->depth + 1;
    program->most_in_flight =
        pipeline->retire == RETIRE_LAST_TASK ? program->window : program->depth + behind;
    program->history = program->window + program->max_distance + 1;
    int enough = program->depth + program->max_distance;
    program->slots = pipeline->num_slots_given ? pipeline->num_slots : enough;
    program->slots_safe = program->slots >= enough && pipeline->retire != RETIRE_LAST_TASK &&
                          pipeline->slot_reset == SLOT_RESET_ADMIT;
    if (program->window > 4096)
        return diag_error(
            lowering->diag, STATUS_INPUT,
            "%s: the launch queue lets the host run %d iterations ahead; at most 4096 "
            "iterations can be tracked: expected a smaller machine.launch_queue",
            lowering->plan->file, program->window);
    int held = pipeline->retire == RETIRE_LAST_TASK ? program->window : program->depth;
    for (int t = 0; t < program->thread_count; t++)
        if (program->threads[t].kind == THREAD_WORKER)
            program->threads[t].queue_cap *= held;
    enum status status = check_ends(lowering, pushes);
    return status == STATUS_OK ? size_channels(lowering) : status;
}

static const char **family_names(struct lowering *lowering, const char *what)
{
    struct program *program = lowering->program;
    size_t count = (size_t)(program->ranks * program->tasks);
    const char **names = ARENA_ARRAY(&program->arena, count, const char *);
    for (size_t i = 0; names && i < count; i++) {
        names[i] = arena_printf(&program->arena, "%s of %s", what,
                                lowering->plan->pipeline.tasks[i % (size_t)program->tasks].name);
        if (!names[i])
            return NULL;
    }
    return names;
}

enum status lower_pipeline(struct lowering *lowering)
{
    struct program *program = lowering->program;
    const struct plan *plan = lowering->plan;
    const struct pipeline *pipeline = &plan->pipeline;
    if ((int64_t)program->ranks * (int64_t)pipeline->task_count > PLAN_MAX_LOWERED)
        return lower_too_large(lowering);
    program->tasks = (int)pipeline->task_count;
    program->periods = pipeline->depth;
    program->depth = program->driver == DRIVER_CLOCK ? pipeline->depth : program->options.max_depth;
    program->min_stage = PLAN_MAX_STAGE;
    for (int i = 0; i < program->ranks * program->tasks; i++) {
        int stage = plan_task(plan, i / program->tasks, i % program->tasks)->stage;
        program->min_stage = stage < program->min_stage ? stage : program->min_stage;
    }
    size_t families = (size_t)(program->ranks * program->tasks);
    program->event_families = program->flag_families = (int)families;
    program->worker = ARENA_ARRAY(&program->arena, families, int);
    program->driver_thread = ARENA_ARRAY(&program->arena, (size_t)program->ranks, int);
    int *groups = ARENA_ARRAY(&program->arena, plan->groups.count + 1, int);
    program->event_names = family_names(lowering, "the event");
    program->flag_names = family_names(lowering, "the CPU signal");
    if (!program->worker || !program->driver_thread || !groups || !program->event_names ||
        !program->flag_names || !collect_edges(lowering))
        return diag_no_memory(lowering->diag);
    for (size_t i = 0; i < families; i++)
        if (lower_flag(lowering,
                       arena_printf(&program->arena, "%zu %s", i, program->flag_names[i])) < 0)
            return diag_no_memory(lowering->diag);
    enum status status = find_orders(lowering);
    if (status == STATUS_OK)
        status = find_ends(lowering);
    if (status == STATUS_OK)
        status = lower_legacy_open(lowering);
    for (int rank = 0; status == STATUS_OK && rank < program->ranks; rank++) {
        lower_pipeline_add_threads(lowering, rank, groups);
        for (int task = 0; status == STATUS_OK && task < program->tasks; task++)
            status = lower_task(lowering, rank, task);
        if (rank == 0 && status == STATUS_OK && /* the others have as many */
            !ARENA_RESERVE(&program->arena, program->ops,
                           program->op_count * (size_t)program->ranks, program->op_cap))
            return diag_no_memory(lowering->diag);
    }
    if (status == STATUS_OK && lowering->failed)
        return lower_failed(lowering);
    return status == STATUS_OK ? size_windows(lowering) : status;
}
