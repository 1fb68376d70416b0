/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words.c - the machine in words: why an agent cannot step, and what its steps are.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "driver.h"
#include "failure.h"
#include "snapshot.h"
#include "plan/listed.h"
#include "plan/units.h"
#include "uses.h"

/* ---- the agent that must act first ----------------------------------------------------------- */

/* Does the thread of this use have an operation `kind` on `object` ahead of it, by the program text? */
static bool comes_to(const struct program *p, int32_t *c, const struct use *use, enum op_kind kind,
                     int object)
{
    int thread = p->agents[use->agent].index;
    const int32_t *state = thread_cells(p, c, thread);
    if (state[THREAD_BODY] < 0)
        return false;
    if (p->threads[thread].kind == THREAD_HOST)
        return use_is_ahead(p, c, use);
    const struct body *body = &p->bodies[state[THREAD_BODY]];
    for (int i = state[THREAD_PC]; i < body->count; i++)
        if (p->ops[body->first + i].kind == kind && p->ops[body->first + i].object == object)
            return true;
    return false;
}

/* The first thread but `not_thread` that will do `kind`, which uses number `used` of `used_kind` in this
   way, to `object`: host programs. */
static int thread_with(const struct program *p, int32_t *c, enum op_kind kind, int object,
                       enum object_kind used_kind, int used, enum way way, int not_thread)
{
    const struct use_table *uses = p->uses;
    int first = -1;
    for (int u = p->tasks ? -1 : uses->first[use_object(p, used_kind, used)]; u >= 0;
         u = uses->items[u].next) {
        const struct use *use = &uses->items[u];
        int thread = p->agents[use->agent].index;
        if (use->way == way && thread != not_thread && (first < 0 || thread < first) &&
            comes_to(p, c, use, kind, object))
            first = thread;
    }
    return first < 0 ? -1 : program_thread_agent(p, first);
}

static int thread_that_signals(const struct program *p, int32_t *c, int flag, int not_thread)
{
    return thread_with(p, c, OP_SIGNAL, flag, OBJECT_FLAG, flag, WAY_PUT, not_thread);
}

static int thread_that_serves(const struct program *p, int32_t *c, int rank, int not_thread)
{
    return thread_with(p, c, OP_SERVE, -1, OBJECT_TICKET, rank, WAY_CHANGE, not_thread);
}

/* A thread at the other end of the queue. */
static int thread_opposite(const struct program *p, int32_t *c, const struct op *op, int not_thread)
{
    bool puts = op->kind == OP_PUT;
    return thread_with(p, c, puts ? OP_GET : OP_PUT, op->object, OBJECT_QUEUE, op->object,
                       puts ? WAY_GET : WAY_PUT, not_thread);
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
        wait->agent = thread_that_signals(p, c, op->object, thread);
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
        for (int s = p->stream_count - 1; s >= 0; s--)
            if (p->streams[s].rank == rank && stream_cells(p, c, s)[STREAM_COUNT] > 0)
                wait->agent = program_stream_agent(p, s);
}

/* The worker with ticket `number` of a rank, of its instance or one in its queue. */
static int ticket_holder(const struct program *p, int32_t *c, int rank, int64_t number,
                         struct wait *wait)
{
    for (int t = 0; t < p->thread_count; t++) {
        if (p->threads[t].rank != rank || p->threads[t].kind != THREAD_WORKER)
            continue;
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
        wait->cause = CAUSE_RESOURCE;
        wait->agent = program_stream_agent(p, op->stream);
        return;
    }
    switch (op_operand(op->kind)) {
    case OPERAND_FLAG: why_await(p, c, thread, op, state[THREAD_ITER], wait); break;
    case OPERAND_EVENT: why_sync(p, c, thread, op, state[THREAD_ITER], wait); break;
    case OPERAND_QUEUE:
        wait->cause = CAUSE_QUEUE;
        wait->agent = thread_opposite(p, c, op, thread);
        break;
    case OPERAND_LOCK:
        wait->cause = CAUSE_RESOURCE;
        wait->agent = program_thread_agent(p, c[p->at.locks + op->object] - 1);
        break;
    case OPERAND_TURN:
        wait->cause = CAUSE_ORDER;
        if (p->tasks)
            wait->agent = ticket_holder(p, c, rank, rank_cells(p, c, rank)[RANK_SERVED], wait);
        else
            wait->agent = thread_that_serves(p, c, rank, thread);
        break;
    case OPERAND_NONE:
    case OPERAND_BARRIER:
    case OPERAND_BUFFER: assert(0 && "an operation that never waits"); break;
    }
}

/* The first unfinished task of an iteration, and the agent that has it. */
static void why_iteration(const struct program *p, int32_t *c, int rank, int64_t iteration,
                          struct wait *wait)
{
    wait->iteration = iteration;
    for (int s = 0; s < p->stream_count; s++) {
        if (p->streams[s].rank != rank)
            continue;
        for (int k = 0; k < stream_cells(p, c, s)[STREAM_COUNT]; k++)
            if (item_cells(p, c, s, k)[ITEM_ITER] == iteration) {
                wait->agent = program_stream_agent(p, s);
                wait->task = p->ops[item_cells(p, c, s, k)[ITEM_OP]].task;
                return;
            }
    }
    for (int t = 0; t < p->thread_count; t++) {
        if (p->threads[t].rank != rank || p->threads[t].kind != THREAD_WORKER)
            continue;
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

/* A driver at its end may have retired an iteration before it was finished. Is there one that no agent
   has any more, because one of its tasks was never handed out? */
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
            wait->cause = CAUSE_RESOURCE;
            why_iteration(p, c, rank, state[RANK_ADMITTED] - p->window, wait);
        }
        break;
    default: why_left(p, c, rank, wait); break;
    }
}

/* ---- streams --------------------------------------------------------------------------------- */

/* The stream or thread with the operation that a communicator's member has yet to start. */
static int absent_member(const struct program *p, int32_t *c, int comm, int member_rank)
{
    for (int s = 0; s < p->stream_count; s++) {
        if (p->streams[s].rank != member_rank)
            continue;
        for (int k = 0; k < stream_cells(p, c, s)[STREAM_COUNT]; k++)
            if (p->ops[item_cells(p, c, s, k)[ITEM_OP]].comm == comm)
                return program_stream_agent(p, s);
    }
    for (int t = 0; t < p->thread_count; t++) {
        const int32_t *state = thread_cells(p, c, t);
        if (p->threads[t].rank != member_rank || state[THREAD_BODY] < 0)
            continue;
        const struct body *body = &p->bodies[state[THREAD_BODY]];
        for (int i = state[THREAD_PC]; i < body->count; i++)
            if (p->ops[body->first + i].comm == comm)
                return program_thread_agent(p, t);
    }
    for (int t = 0; t < p->thread_count; t++) /* none is left: its thread must act */
        if (p->threads[t].rank == member_rank &&
            (p->threads[t].kind == THREAD_DRIVER || p->threads[t].kind == THREAD_HOST))
            return program_thread_agent(p, t);
    return -1;
}

static int absent_peer(const struct program *p, int32_t *c, const struct op *op)
{
    if (op->kind == OP_COLLECTIVE) {
        const struct comm_desc *comm = &p->comms[op->comm];
        for (int m = 0; m < comm->count; m++) {
            int active =
                c[p->at.members + (comm->first_member + m) * MEMBER_CELLS + MEMBER_ACTIVE] - 1;
            if (active >= 0 && head_op(p, c, active)->kind == OP_COLLECTIVE)
                continue;
            return active >= 0 ? program_stream_agent(p, active)
                               : absent_member(p, c, op->comm, comm->members[m]);
        }
        return -1;
    }
    for (int k = 0; k < op->part_count; k++) {
        const struct part *part = &p->parts[op->part_first + k];
        const struct channel *channel = &p->channels[part->channel];
        int pending = c[p->at.channels[part->channel]];
        if (part->send ? pending > 0 : pending < 0)
            return absent_member(p, c, op->comm, part->send ? channel->to : channel->from);
    }
    return -1;
}

static void why_not_started(const struct program *p, int32_t *c, int stream, const struct op *op,
                            struct wait *wait)
{
    int rank = p->streams[stream].rank;
    if (op->comm >= 0 &&
        item_cells(p, c, stream, 0)[ITEM_A] != member_cells(p, c, op)[MEMBER_FINISHED]) {
        int active = member_cells(p, c, op)[MEMBER_ACTIVE] - 1;
        wait->cause = CAUSE_COMM_ORDER;
        for (int s = 0; active < 0 && s < p->stream_count; s++) /* queued, not started */
            for (int k = 0; k < stream_cells(p, c, s)[STREAM_COUNT]; k++) {
                const struct op *other = &p->ops[item_cells(p, c, s, k)[ITEM_OP]];
                if (p->streams[s].rank == rank && other->comm == op->comm &&
                    item_cells(p, c, s, k)[ITEM_A] == member_cells(p, c, op)[MEMBER_FINISHED])
                    active = s;
            }
        wait->agent = active >= 0 ? program_stream_agent(p, active) : -1;
        return;
    }
    wait->cause = CAUSE_RESOURCE;
    int queue = p->streams[stream].hw_queue;
    if (queue >= 0 && c[p->at.hw_queues[queue] + 1] != stream) {
        wait->agent = program_stream_agent(p, c[p->at.hw_queues[queue] + 1]);
        return;
    }
    for (int s = 0; s < p->stream_count; s++) /* a holder of residency slots */
        if (s != stream && p->streams[s].rank == rank && stream_cells(p, c, s)[STREAM_RUNNING] &&
            head_op(p, c, s)->sm > 0)
            wait->agent = program_stream_agent(p, s);
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
    if (state[STREAM_RUNNING]) {
        wait->cause = CAUSE_PEER;
        wait->agent =
            op->kind == OP_CALLBACK ? program_thread_agent(p, op->callback) : absent_peer(p, c, op);
    } else if (op->kind == OP_WAIT && !wait_is_over(p, c, item)) {
        wait->cause = CAUSE_DEPENDENCE;
        wait->agent = program_stream_agent(p, item[ITEM_A]);
        if (p->tasks && op->distance >= 0) {
            wait->task = op->object % p->tasks;
            wait->iteration = item[ITEM_ITER] - op->distance;
        }
    } else {
        why_not_started(p, c, stream, op, wait);
    }
}

void machine_why(const struct program *p, const struct state *state, int agent, struct wait *wait)
{
    *wait = (struct wait){.cause = CAUSE_NONE, .agent = -1, .task = -1};
    const struct agent *desc = &p->agents[agent];
    if (machine_agent_enabled(p, state, agent))
        return;
    if (desc->kind == AGENT_STREAM)
        why_stream(p, state->cells, desc->index, wait);
    else if (desc->kind == AGENT_THREAD && p->threads[desc->index].kind == THREAD_DRIVER)
        why_driver(p, state->cells, desc->rank, wait);
    else if (desc->kind == AGENT_THREAD)
        why_thread(p, state->cells, desc->index, wait);
}

/* ---- sentences ------------------------------------------------------------------------------- */

enum { NAME = MACHINE_NAME };

/* The object of an operation: "CPU signal of Forward(3)", "m"; of a sync, what it waits for. */
static const char *object_name(const struct program *p, const struct op *op, int64_t iteration,
                               char *buf)
{
    enum op_operand kind = op_operand(op->kind);
    bool instance = kind == OPERAND_EVENT || kind == OPERAND_FLAG;
    const char *name = program_object_name(p, op);
    const char *to_load = op->sync == SYNC_LOAD ? " to load a kernel" : "";
    if (name && instance && p->tasks && op->distance >= 0)
        snprintf(buf, NAME, "%s(%" PRId64 ")", name, iteration - op->distance);
    else if (name)
        snprintf(buf, NAME, "%s", name);
    else if (op->kind == OP_SYNC && op->sync == SYNC_STREAM)
        snprintf(buf, NAME, "stream %s", p->streams[op->stream].full_name);
    else if (p->is_crossed)
        snprintf(buf, NAME, "the device of rank %d%s", op->device, to_load);
    else
        snprintf(buf, NAME, "the device%s", to_load);
    return buf;
}

/* The text for a letter of an operation's words in ops.h. */
static const char *spell(const struct program *p, const struct op *op, int64_t iteration,
                         char letter, char *buf)
{
    switch (letter) {
    case 'o': return object_name(p, op, iteration, buf);
    case 's': return p->streams[op->stream].full_name;
    case 'c': return p->comms[op->comm].name;
    default: return program_op_subject(p, op, iteration, buf, NAME);
    }
}

static void put_words(const struct program *p, const struct op *op, int64_t iteration,
                      const char *words, char *buf, size_t cap)
{
    char text[NAME];
    for (size_t at = 0; *words && at < cap;) {
        int plain = (int)strcspn(words, "%");
        bool named = words[plain] == '%';
        const char *name = named ? spell(p, op, iteration, words[plain + 1], text) : "";
        at += (size_t)snprintf(buf + at, cap - at, "%.*s%s", plain, words, name);
        words += plain + 2 * named;
    }
}

/* The first iterations have no earlier one to wait for. */
static bool waits_for_nothing(const struct program *p, const struct op *op, int64_t iteration)
{
    return p->tasks && op->distance > iteration && (op->kind == OP_AWAIT || op->kind == OP_WAIT);
}

static void describe_op(const struct program *p, const struct op *op, int64_t iteration, char *buf,
                        size_t cap)
{
    if (waits_for_nothing(p, op, iteration))
        snprintf(buf, cap, "has nothing to wait for: there is no %s(%" PRId64 ")",
                 p->plan->pipeline.tasks[op->object % p->tasks].name, iteration - op->distance);
    else
        put_words(p, op, iteration, op_words(op->is_kernel ? OP_LAUNCH : op->kind), buf, cap);
}

static void describe_driver(const struct program *p, int32_t *c, int rank, char *buf, size_t cap)
{
    const int32_t *state = rank_cells(p, c, rank);
    if (thread_cells(p, c, p->driver_thread[rank])[THREAD_PC] == PHASE_RETIRE)
        snprintf(buf, cap, "retires iteration %d", state[RANK_OLDEST]);
    else if (p->driver == DRIVER_CLOCK)
        snprintf(buf, cap, "enqueues period %d", state[RANK_PERIOD]);
    else
        snprintf(buf, cap, "admits iteration %d", state[RANK_ADMITTED]);
}

/* "task Forward(1) of rank 0 fails", "rank 1 dies". */
static void describe_fault(const struct program *p, int32_t *c, const struct fault *fault,
                           char *buf, size_t cap)
{
    char subject[NAME], rank[32] = "";
    if (fault->kind == FAULT_RANK) {
        snprintf(buf, cap, "rank %d dies", fault->index);
        return;
    }
    if (fault->kind == FAULT_DATA) {
        snprintf(buf, cap, "rank %d runs out of data before iteration %d", fault->index,
                 rank_cells(p, c, fault->index)[RANK_ADMITTED]);
        return;
    }
    const struct thread_desc *thread = &p->threads[fault->index];
    const struct op *op = machine_thread_op(p, c, fault->index);
    program_op_subject(p, op, thread_cells(p, c, fault->index)[THREAD_ITER], subject,
                       sizeof subject);
    if (p->ranks > 1)
        snprintf(rank, sizeof rank, " of rank %d", thread->rank);
    if (p->tasks)
        snprintf(buf, cap, "task %s%s fails", subject, rank);
    else
        snprintf(buf, cap, "thread %s%s fails at %s", thread->name, rank, subject);
}

static bool ends_with_error(const struct program *p, int32_t *c, int stream)
{
    const struct op *op = head_op(p, c, stream);
    return stream_cells(p, c, stream)[STREAM_RUNNING] && op->comm >= 0 &&
           failure_is_aborted(p, c, op->comm);
}

/* The next step of a thread; on a stopped rank it gives up instead of waiting. */
static void describe_thread(const struct program *p, int32_t *c, int thread, const struct op *op,
                            int choice, char *buf, size_t cap)
{
    char object[NAME];
    if (failure_gives_up(p, c, thread, op))
        snprintf(buf, cap, "is woken and gives up");
    else if (op->kind == OP_SYNC && op->sync == SYNC_RETRY)
        snprintf(buf, cap,
                 choice ? "lacks memory, is about to free what the allocator caches"
                        : "finds memory that the allocator caches");
    else if (snapshot_is_needed(p, c, thread, op) && !snapshot_is_taken(p, c, thread))
        snprintf(buf, cap, "calls the wait for %s",
                 object_name(p, op, thread_cells(p, c, thread)[THREAD_ITER], object));
    else
        describe_op(p, op, thread_cells(p, c, thread)[THREAD_ITER], buf, cap);
}

const char *machine_describe_action(const struct program *p, const struct state *state,
                                    struct transition transition, char *buf, size_t cap)
{
    int32_t *c = state->cells;
    const struct agent *desc = &p->agents[transition.agent];
    char subject[NAME];
    switch (desc->kind) {
    case AGENT_DATA:
        snprintf(buf, cap,
                 transition.choice ? "the data ends before iteration %d"
                                   : "there is data for iteration %d",
                 c[0]);
        break;
    case AGENT_STREAM:
        program_op_subject(p, head_op(p, c, desc->index),
                           item_cells(p, c, desc->index, 0)[ITEM_ITER], subject, sizeof subject);
        snprintf(buf, cap, "%s %s%s",
                 stream_cells(p, c, desc->index)[STREAM_RUNNING] ? "finishes" : "starts", subject,
                 ends_with_error(p, c, desc->index) ? " with an error" : "");
        break;
    case AGENT_COMM: {
        int stream =
            c[p->at.members + p->comms[desc->index].first_member * MEMBER_CELLS + MEMBER_ACTIVE] -
            1;
        program_op_subject(p, head_op(p, c, stream), item_cells(p, c, stream, 0)[ITEM_ITER],
                           subject, sizeof subject);
        snprintf(buf, cap, "completes %s on all members", subject);
        break;
    }
    case AGENT_THREAD: {
        const struct op *op = machine_thread_op(p, c, desc->index);
        if (p->threads[desc->index].kind == THREAD_DRIVER)
            describe_driver(p, c, desc->rank, buf, cap);
        else if (op)
            describe_thread(p, c, desc->index, op, transition.choice, buf, cap);
        else
            snprintf(buf, cap, "takes %s(%d) from its queue",
                     p->plan->pipeline.tasks[entry_cells(p, c, desc->index, 0)[ENTRY_TASK]].name,
                     entry_cells(p, c, desc->index, 0)[ENTRY_ITER]);
        break;
    }
    case AGENT_FAULT: describe_fault(p, c, &p->faults[desc->index], buf, cap); break;
    case AGENT_WATCHDOG:
        snprintf(buf, cap, "aborts communicator %s: its ranks stop", p->comms[desc->index].name);
        break;
    }
    return buf;
}

const char *machine_describe(const struct program *p, const struct state *state,
                             struct transition transition, char *buf, size_t cap)
{
    char name[NAME], action[2 * NAME];
    snprintf(buf, cap, "%s: %s", program_agent_name(p, transition.agent, name, sizeof name),
             machine_describe_action(p, state, transition, action, sizeof action));
    return buf;
}

static void thread_words(const struct program *p, int32_t *c, int thread, struct action_words *out)
{
    const struct op *op = machine_thread_op(p, c, thread);
    int64_t iteration = thread_cells(p, c, thread)[THREAD_ITER];
    if (!op || p->threads[thread].kind == THREAD_DRIVER)
        return;
    program_op_subject(p, op, iteration, out->subject, sizeof out->subject);
    if (!op_pushes(op->kind) || failure_gives_up(p, c, thread, op) ||
        waits_for_nothing(p, op, iteration))
        return;
    out->stream = p->streams[op->stream].name;
    put_words(p, op, iteration, op_pushed(op->kind), out->pushed, sizeof out->pushed);
    if (op->kind == OP_WAIT && p->tasks && op->distance >= 0)
        snprintf(out->behind, sizeof out->behind, "%s(%" PRId64 ")",
                 p->plan->pipeline.tasks[op->object % p->tasks].name, iteration - op->distance);
}

void machine_action_words(const struct program *p, const struct state *state, int agent,
                          struct action_words *out)
{
    int32_t *c = state->cells;
    const struct agent *desc = &p->agents[agent];
    *out = (struct action_words){.subject = ""};
    if (desc->kind == AGENT_THREAD)
        thread_words(p, c, desc->index, out);
    else if (desc->kind == AGENT_STREAM)
        program_op_subject(p, head_op(p, c, desc->index),
                           item_cells(p, c, desc->index, 0)[ITEM_ITER], out->subject,
                           sizeof out->subject);
}

static void describe_thread_wait(const struct program *p, int32_t *c, int thread,
                                 const struct wait *wait, char *buf, size_t cap)
{
    const struct op *op = machine_thread_op(p, c, thread);
    int64_t iteration = thread_cells(p, c, thread)[THREAD_ITER];
    char subject[NAME], object[NAME], other[NAME] = "";
    if (wait->agent >= 0)
        program_agent_name(p, wait->agent, other, sizeof other);
    if (op->task >= 0)
        snprintf(subject, sizeof subject, "%s(%" PRId64 ")", p->plan->pipeline.tasks[op->task].name,
                 iteration);
    else
        snprintf(subject, sizeof subject, "operation %d",
                 thread_cells(p, c, thread)[THREAD_PC] + 1);
    if (op_pushes(op->kind)) {
        snprintf(buf, cap, "is at %s, waits for room in the launch queue of %s", subject, other);
        return;
    }
    switch (op_operand(op->kind)) {
    case OPERAND_FLAG:
        snprintf(buf, cap, "is at %s, waits for %s", subject,
                 object_name(p, op, iteration, object));
        break;
    case OPERAND_EVENT:
        if (op->sync == SYNC_EVENT)
            snprintf(buf, cap, "is at %s, waits on the host for %s", subject,
                     object_name(p, op, iteration, object));
        else
            snprintf(buf, cap, "is at %s, waits on the host for %s%s", subject,
                     op->sync == SYNC_STREAM ? "" : "the device: ", other);
        break;
    case OPERAND_QUEUE:
        snprintf(buf, cap, "is at %s, waits for %s in queue %s", subject,
                 op_takes(op->kind) ? "an item" : "room", p->queue_names[op->object]);
        break;
    case OPERAND_LOCK:
        snprintf(buf, cap, "is at %s, waits for lock %s, held by %s", subject,
                 p->lock_names[op->object], other);
        break;
    case OPERAND_TURN:
        if (wait->task >= 0)
            snprintf(buf, cap, "is at %s, waits for the turn of %s(%" PRId64 ") to be over",
                     subject, p->plan->pipeline.tasks[wait->task].name, wait->iteration);
        else
            snprintf(buf, cap, "is at %s, waits for its turn", subject);
        break;
    case OPERAND_NONE:
    case OPERAND_BARRIER:
    case OPERAND_BUFFER: assert(0 && "an operation that never waits"); break;
    }
}

static void describe_driver_wait(const struct program *p, const struct wait *wait, char *buf,
                                 size_t cap)
{
    switch (wait->cause) {
    case CAUSE_RETIRE:
        snprintf(buf, cap, "waits for iteration %" PRId64 " to finish%s%s", wait->iteration,
                 wait->task >= 0 ? ", which lacks " : "",
                 wait->task >= 0 ? p->plan->pipeline.tasks[wait->task].name : "");
        break;
    case CAUSE_LEFT:
        snprintf(buf, cap, "has retired iteration %" PRId64 ", %s%s%s", wait->iteration,
                 wait->task >= 0 ? "of which " : "which never finishes",
                 wait->task >= 0 ? p->plan->pipeline.tasks[wait->task].name : "",
                 wait->task >= 0 ? " was never handed out" : "");
        break;
    case CAUSE_DATA: snprintf(buf, cap, "waits for the data loader"); break;
    default:
        snprintf(buf, cap, "waits for the device, which is too far behind (iteration %" PRId64 ")",
                 wait->iteration);
        break;
    }
}

enum { SHOWN_MEMBERS = 8 };

/* Of a collective that an action of rank programs makes: the action's place in its list, and the ranks it is among. */
static const char *describe_among(const struct program *p, const struct op *op, char *buf,
                                  size_t cap)
{
    const struct comm_desc *comm = &p->comms[op->comm];
    buf[0] = '\0';
    if (op->kind != OP_COLLECTIVE || op->listed == 0)
        return buf;
    const struct listed_action *listed = &p->plan->listed[op->listed - 1];
    size_t used =
        (size_t)snprintf(buf, cap, " (row %d, column %d; ranks", listed->row, listed->column);
    for (int i = 0; i < comm->count && i < SHOWN_MEMBERS && used < cap; i++)
        used += (size_t)snprintf(buf + used, cap - used, "%s %d", i ? "," : "", comm->members[i]);
    if (used < cap)
        snprintf(buf + used, cap - used, "%s)", comm->count > SHOWN_MEMBERS ? ", ..." : "");
    return buf;
}

static void describe_stream_wait(const struct program *p, int32_t *c, int stream,
                                 const struct wait *wait, char *buf, size_t cap)
{
    char subject[NAME], object[NAME], among[NAME], other[NAME] = "another member";
    const struct op *op = head_op(p, c, stream);
    int64_t iteration = item_cells(p, c, stream, 0)[ITEM_ITER];
    program_op_subject(p, op, iteration, subject, sizeof subject);
    if (wait->agent >= 0)
        program_agent_name(p, wait->agent, other, sizeof other);
    switch (wait->cause) {
    case CAUSE_DEPENDENCE:
        snprintf(buf, cap, "waits for %s on %s", object_name(p, op, iteration, object), other);
        break;
    case CAUSE_PEER:
        if (op->kind == OP_CALLBACK)
            snprintf(buf, cap, "runs %s %s", op->is_kernel ? "kernel" : "callback", subject);
        else
            snprintf(buf, cap, "is in %s of communicator %s%s, waits for %s", subject,
                     p->comms[op->comm].name, describe_among(p, op, among, sizeof among), other);
        break;
    case CAUSE_COMM_ORDER:
        snprintf(buf, cap, "cannot start %s before communicator %s has finished on %s", subject,
                 p->comms[op->comm].name, other);
        break;
    default:
        snprintf(buf, cap, "cannot start %s: its resources are held by %s", subject, other);
        break;
    }
}

const char *machine_describe_wait(const struct program *p, const struct state *state, int agent,
                                  char *buf, size_t cap)
{
    struct wait wait;
    machine_why(p, state, agent, &wait);
    const struct agent *desc = &p->agents[agent];
    if (wait.cause == CAUSE_NONE)
        snprintf(buf, cap, machine_agent_idle(p, state, agent) ? "is at its end" : "can go on");
    else if (wait.cause == CAUSE_EMPTY)
        snprintf(buf, cap, "has nothing queued");
    else if (desc->kind == AGENT_STREAM)
        describe_stream_wait(p, state->cells, desc->index, &wait, buf, cap);
    else if (p->threads[desc->index].kind == THREAD_DRIVER)
        describe_driver_wait(p, &wait, buf, cap);
    else
        describe_thread_wait(p, state->cells, desc->index, &wait, buf, cap);
    return buf;
}

/* ---- mismatches ------------------------------------------------------------------------------ */

__attribute__((format(printf, 3, 4))) static void append(char *buf, size_t cap, const char *format,
                                                         ...)
{
    size_t length = strlen(buf);
    va_list args;
    va_start(args, format);
    vsnprintf(buf + length, cap - length, format, args);
    va_end(args);
}

static void append_bytes(char *buf, size_t cap, int64_t ours, int64_t theirs)
{
    char a[UNITS_TEXT], b[UNITS_TEXT];
    units_show_bytes((double)ours, a);
    units_show_bytes((double)theirs, b);
    if (strcmp(a, b) == 0)
        append(buf, cap, ", bytes (%" PRId64 ", %" PRId64 ")", ours, theirs);
    else
        append(buf, cap, ", bytes (%s, %s)", a, b);
}

static void append_tags(const struct program *p, int ours, int theirs, char *buf, size_t cap)
{
    append(buf, cap, ", tag (%s, %s)", ours >= 0 ? p->names.items[ours] : "none",
           theirs >= 0 ? p->names.items[theirs] : "none");
}

static void differing_collectives(const struct program *p, const struct op *ours,
                                  const struct op *theirs, char *buf, size_t cap)
{
    if (ours->name != theirs->name)
        append_tags(p, ours->name, theirs->name, buf, cap);
    if (ours->given->work->collective != theirs->given->work->collective)
        append(buf, cap, ", kind (%s, %s)", collective_key(ours->given->work->collective),
               collective_key(theirs->given->work->collective));
    if (ours->given->bytes != theirs->given->bytes)
        append_bytes(buf, cap, ours->given->bytes, theirs->given->bytes);
}

/* The two sides of one channel that do not fit, the first such. */
static void differing_messages(const struct program *p, const struct op *ours,
                               const struct op *theirs, char *buf, size_t cap)
{
    size_t before = strlen(buf);
    for (int i = 0; i < ours->part_count && strlen(buf) == before; i++)
        for (int k = 0; k < theirs->part_count && strlen(buf) == before; k++) {
            const struct part *a = &p->parts[ours->part_first + i];
            const struct part *b = &p->parts[theirs->part_first + k];
            if (a->channel != b->channel || a->send == b->send)
                continue;
            if (a->tag != b->tag)
                append_tags(p, a->tag, b->tag, buf, cap);
            if (a->bytes != b->bytes && a->bytes && b->bytes)
                append_bytes(buf, cap, a->bytes, b->bytes);
        }
}

/* ": they differ in tag (grads, activations), bytes (1.00 MiB, 2.00 MiB)" */
static void describe_difference(const struct program *p, const struct effect *effect, char *buf,
                                size_t cap)
{
    char fields[NAME] = "";
    if (effect->op < 0 || effect->other_op < 0)
        return;
    const struct op *ours = &p->ops[effect->op], *theirs = &p->ops[effect->other_op];
    if (ours->kind == OP_COLLECTIVE && theirs->kind == OP_COLLECTIVE)
        differing_collectives(p, ours, theirs, fields, sizeof fields);
    else if (ours->kind == OP_GROUP && theirs->kind == OP_GROUP)
        differing_messages(p, ours, theirs, fields, sizeof fields);
    else
        append(fields, sizeof fields, ", kind (%s, %s)", op_key(ours->kind), op_key(theirs->kind));
    if (p->tasks && effect->iteration != effect->other_iteration)
        append(fields, sizeof fields, ", iteration (%" PRId64 ", %" PRId64 ")", effect->iteration,
               effect->other_iteration);
    if (*fields)
        append(buf, cap, ": they differ in %s", fields + strlen(", "));
}

/* ---- violations ------------------------------------------------------------------------------ */

/* "line 7", of a task. */
static int line_of(const struct program *p, int task)
{
    return (int)p->plan->pipeline.tasks[task].mark.line;
}

/* The access of `subject` in this run and in a serial one. */
static void describe_order(const struct program *p, const struct effect *effect,
                           const char *subject, char *buf, size_t cap)
{
    const struct order_change *change = &effect->serial;
    const struct buffer_desc *buffer = &p->buffers[change->buffer];
    const char *writer = p->plan->pipeline.tasks[change->writer].name;
    const char *verb = change->reads ? "reads" : "writes";
    int64_t lag = change->serial - change->found;
    int line = line_of(p, p->ops[effect->op].task), other_line = line_of(p, change->writer);
    if (lag > 0 && change->reads && buffer->scope == SCOPE_SHARED)
        snprintf(buf, cap,
                 "%s (line %d) reads buffer %s %" PRId64
                 " iteration%s old; serial: 0, after %s(%" PRId64 ") (line %d)",
                 subject, line, buffer->name, lag, lag == 1 ? "" : "s", writer, change->serial - 1,
                 other_line);
    else if (lag > 0)
        snprintf(buf, cap,
                 "%s (line %d) %s buffer %s before %s(%" PRId64
                 ") (line %d) writes it; serial: after it",
                 subject, line, verb, buffer->name, writer, change->found, other_line);
    else if (lag < 0)
        snprintf(buf, cap,
                 "%s (line %d) %s buffer %s after %s(%" PRId64
                 ") (line %d) has written it; serial: "
                 "before it",
                 subject, line, verb, buffer->name, writer, change->found - 1, other_line);
    else
        snprintf(buf, cap, "%s (line %d) reads buffer %s older than %s (line %d) has left it",
                 subject, line, buffer->name, writer, other_line);
}

/* The action that reads `buffer` in an operation: each of a group's sends reads one. */
static const struct listed_action *find_reader(const struct program *p, const struct op *op,
                                               int buffer)
{
    uint32_t listed = op->listed;
    int reads = 0;
    for (int i = 0; i < op->access_count; i++) {
        const struct access *access = &p->accesses[op->access_first + i];
        if (!access->write && access->buffer == buffer)
            break;
        reads += !access->write;
    }
    for (int i = 0; i < op->part_count; i++) {
        const struct part *part = &p->parts[op->part_first + i];
        if (part->send && reads-- == 0)
            listed = part->listed;
    }
    const struct tensor *tensor = &p->plan->buffers[p->buffers[buffer].plan_buffer].holds;
    return listed ? listed_reader(p->plan, listed - 1, tensor) : NULL;
}

static bool is_written(const struct program *p, int buffer)
{
    bool written = false;
    const struct buffer_desc *desc = &p->buffers[buffer];
    for (int i = desc->record_first; i < desc->record_first + desc->record_count; i++)
        written |= p->records[i].write;
    return written;
}

/* "1B2 (row 2, column 7) has no 1F2", "row 1 has no 0F3". */
static void describe_listed(const struct program *p, const struct listed_action *reader, int buffer,
                            char *buf, size_t cap)
{
    char name[NAME], provider[NAME], place[NAME] = "";
    const struct tensor *tensor = &p->plan->buffers[p->buffers[buffer].plan_buffer].holds;
    if (reader->column > 0)
        snprintf(place, sizeof place, " (row %d, column %d)", reader->row,
                 reader->in_file > 0 ? reader->in_file : reader->column);
    snprintf(buf, cap, "%s%s %s %s", listed_name(reader, name, sizeof name), place,
             is_written(p, buffer) ? "comes before" : "has no",
             listed_provider(p->plan, tensor, reader->row, provider, sizeof provider));
}

static void describe_unwritten(const struct program *p, const struct effect *effect,
                               const char *subject, char *buf, size_t cap)
{
    const struct listed_action *reader =
        effect->op >= 0 ? find_reader(p, &p->ops[effect->op], effect->unwritten) : NULL;
    if (reader)
        describe_listed(p, reader, effect->unwritten, buf, cap);
    else
        snprintf(buf, cap, "%s reads buffer %s, which nothing has written", subject,
                 p->buffers[effect->unwritten].name);
}

const char *machine_describe_violation(const struct program *p, enum property property,
                                       const struct effect *effect, char *buf, size_t cap)
{
    char subject[NAME] = "a driver", other[NAME] = "another operation",
         agent[NAME] = "an earlier operation";
    if (effect->op >= 0)
        program_op_subject(p, &p->ops[effect->op], effect->iteration, subject, sizeof subject);
    if (effect->other_op >= 0)
        program_op_subject(p, &p->ops[effect->other_op], effect->other_iteration, other,
                           sizeof other);
    if (effect->other_agent >= 0)
        program_agent_name(p, effect->other_agent, agent, sizeof agent);
    switch (property) {
    case PROPERTY_RACE:
        snprintf(buf, cap, "%s accesses buffer %s, which %s%s%s %s without an order between them",
                 subject, p->buffers[effect->buffer].name, effect->other_op >= 0 ? other : "",
                 effect->other_op >= 0 ? " of " : "", agent,
                 effect->other_write ? "writes" : "reads");
        break;
    case PROPERTY_LIFETIME:
        if (effect->early)
            snprintf(
                buf, cap,
                "%s uses buffer %s without an order behind its allocation on %s: its memory may "
                "still be in use there",
                subject, p->buffers[effect->buffer].name, agent);
        else
            snprintf(buf, cap, "memory of buffer %s is %s", p->buffers[effect->buffer].name,
                     effect->other_agent >= 0 ? "reused while another stream still uses it"
                                              : "used after it was freed");
        break;
    case PROPERTY_VALUE: describe_unwritten(p, effect, subject, buf, cap); break;
    case PROPERTY_SERIAL: describe_order(p, effect, subject, buf, cap); break;
    case PROPERTY_MISMATCH:
        snprintf(buf, cap, "%s meets %s at the same position", subject, other);
        describe_difference(p, effect, buf, cap);
        break;
    case PROPERTY_SLOT:
        snprintf(buf, cap,
                 "%s looks for iteration %" PRId64 " in a slot that belongs to iteration %" PRId64,
                 subject, effect->wanted, effect->found);
        break;
    case PROPERTY_BOUND:
        snprintf(buf, cap,
                 effect->bytes ? "%" PRId64 " bytes are in use, machine.memory allows %" PRId64
                               : "%" PRId64 " iterations are in flight, the plan allows %" PRId64,
                 effect->found, effect->wanted);
        break;
    case PROPERTY_DEADLOCK: snprintf(buf, cap, "no step is possible and work remains"); break;
    case PROPERTY_DRAIN:
        if (effect->other_op >= 0)
            snprintf(buf, cap,
                     "after the drain the message of %s is left without a receive: the next fill "
                     "would receive it",
                     other);
        else
            snprintf(buf, cap, "after the end of the data an iteration never retires");
        break;
    case PROPERTY_FAULTS: snprintf(buf, cap, "after a fault an agent is never woken"); break;
    default: snprintf(buf, cap, "%s", property_key(property)); break;
    }
    return buf;
}
