/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words.c - the machine in words: the steps of agents, and what they wait for.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "uses.h"
#include "driver.h"
#include "failure.h"
#include "snapshot.h"
#include "plan/schedules/listed.h"
#include "base/units.h"

/* ---- sentences ------------------------------------------------------------------------------- */

enum { NAME = MACHINE_NAME };

/* The object of an operation: "CPU signal of Forward(3)", "m"; of a sync, what it waits for. */
static const char *words_object_name(const struct program *p, const struct op *op,
                                     int64_t iteration, char *buf)
{
    enum op_operand kind = op_operand(op->kind);
    bool instance = kind == OPERAND_EVENT || kind == OPERAND_FLAG;
    const char *name = program_object_name(p, op);
    const char *to_load = op->sync == SYNC_LOAD ? " to load a kernel" : "";
    if (name && instance && p->tasks && op->distance >= 0)
        snprintf(buf, NAME, "%s(%" PRId64 ")", name, iteration - op->distance);
    else if (kind == OPERAND_FLAG)
        program_flag_words(p, op, buf, NAME);
    else if (name)
        snprintf(buf, NAME, "%s", name);
    else if (kind == OPERAND_EVENT && op->sync == SYNC_STREAM)
        snprintf(buf, NAME, "stream %s", p->streams[op->stream].full_name);
    else if (p->is_crossed)
        snprintf(buf, NAME, "the device of rank %d%s", op->device, to_load);
    else
        snprintf(buf, NAME, "the device%s", to_load);
    return buf;
}

/* Its subject begins with the word that stands before it. */
static bool is_unnamed_copy(const struct op *op)
{
    return op->kind == OP_COPY && op->name < 0 && op->task < 0;
}

/* The text for a letter of an operation's words in ops.h. */
static const char *spell(const struct program *p, const struct op *op, int64_t iteration,
                         char letter, char *buf)
{
    switch (letter) {
    case 'o': return words_object_name(p, op, iteration, buf);
    case 's': return p->streams[op->stream].full_name;
    case 'c': return p->comms[op->comm].name;
    default:
        program_op_subject(p, op, iteration, buf, NAME);
        return is_unnamed_copy(op) ? buf + strlen(op_key(op->kind)) + 1 : buf;
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
    return p->tasks && op_dependence(op) > iteration;
}

static void describe_op(const struct program *p, const struct op *op, int64_t iteration, char *buf,
                        size_t cap)
{
    if (!waits_for_nothing(p, op, iteration)) {
        put_words(p, op, iteration, op_words(op->is_kernel ? OP_LAUNCH : op->kind), buf, cap);
        const size_t length = strlen(buf);
        if (op->at > 0)
            snprintf(buf + length, cap - length, " (%s)", p->names.items[op->at - 1]);
        return;
    }
    if (op->kind != OP_AWAIT && !(op->kind == OP_WAIT && op->distance >= 0)) {
        char object[NAME];
        snprintf(buf, cap, "has nothing to wait for, and no use for %s",
                 words_object_name(p, op, iteration, object));
        return;
    }
    const char *task = p->plan->pipeline.tasks[op->object % p->tasks].name;
    const int64_t earlier = iteration - op->distance;
    if (op->kind == OP_AWAIT)
        snprintf(buf, cap, "goes on without waiting: %s has no iteration %" PRId64, task, earlier);
    else
        snprintf(buf, cap, "makes stream %s wait for nothing: %s has no iteration %" PRId64,
                 p->streams[op->stream].full_name, task, earlier);
}

static void describe_driver(const struct program *p, int32_t *c, int rank, char *buf, size_t cap)
{
    const int32_t *state = rank_cells(p, c, rank);
    if (thread_cells(p, c, p->driver_thread[rank])[THREAD_PC] == PHASE_RETIRE)
        snprintf(buf, cap, "retires iteration %d", state[RANK_OLDEST]);
    else if (p->driver == DRIVER_CLOCK)
        snprintf(buf, cap, "enqueues period %d", state[RANK_PERIOD]);
    else if (dataflow_has_void_turn(p, c, rank))
        snprintf(buf, cap, "passes the turns of iterations that do not exist");
    else
        snprintf(buf, cap, "admits iteration %d", state[RANK_ADMITTED]);
}

/* "task Forward(1) of rank 0 fails", "rank 1 dies". */
static void words_describe_fault(const struct program *p, int32_t *c, const struct fault *fault,
                                 char *buf, size_t cap)
{
    char subject[NAME], rank[32] = "";
    if (fault->kind == FAULT_RANK) {
        snprintf(buf, cap, "rank %d dies", fault->index);
        return;
    }
    if (fault->kind == FAULT_TIME) {
        snprintf(buf, cap, "an operation of communicator %s on rank %d exceeds its time limit",
                 p->comms[fault->index].name, fault->rank);
        return;
    }
    if (fault->kind == FAULT_DATA) {
        snprintf(buf, cap, "rank %d runs out of data before iteration %d", fault->index,
                 rank_cells(p, c, fault->index)[RANK_ADMITTED]);
        return;
    }
    const struct thread_desc *thread = &p->threads[fault->index];
    const struct op *op = machine_thread_op(p, c, fault->index);
    program_op_title(p, op, thread_cells(p, c, fault->index)[THREAD_ITER], subject, sizeof subject);
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
           failure_is_aborted(p, c, op->comm, op->member);
}

/* What an operation with branches finds; `yes`: it is done, or so. */
static void describe_branching(const struct program *p, const struct op *op, int64_t iteration,
                               bool yes, char *buf, size_t cap)
{
    char object[NAME];
    const char *queue = op_operand(op->kind) == OPERAND_QUEUE ? p->queue_names[op->object] : "";
    words_object_name(p, op, iteration, object);
    if (op->kind == OP_QUERY)
        snprintf(buf, cap,
                 op->sync == SYNC_EVENT ? yes ? "asks for %s, which has happened"
                                              : "asks for %s, which has not happened yet"
                 : yes                  ? "asks for %s, which is idle"
                                        : "asks for %s, which has work left",
                 object);
    else if (op->kind == OP_QUERY_FLAG)
        snprintf(buf, cap, yes ? "asks for %s, and finds it" : "asks for %s, which is not yet so",
                 object);
    else if (op->kind == OP_QUERY_QUEUE)
        snprintf(buf, cap, yes ? "finds an item in queue %s" : "finds queue %s empty", queue);
    else if (op->kind == OP_GET)
        snprintf(buf, cap, "finds queue %s empty, and does not wait", queue);
    else if (op->kind == OP_PUT)
        snprintf(buf, cap, "finds queue %s full, and does not wait", queue);
    else if (op->kind == OP_LOCK)
        snprintf(buf, cap, "finds lock %s held, and does not wait", p->lock_names[op->object]);
    else if (op->kind == OP_ACQUIRE)
        snprintf(buf, cap, "cannot acquire %s, and does not wait", object);
    else {
        program_op_subject(p, op, iteration, object, NAME);
        snprintf(buf, cap, "%s: the %s branch", object, yes ? "first" : "other");
    }
}

/* The next step of a thread; on a stopped rank it gives up instead of waiting. */
static void describe_thread(const struct program *p, int32_t *c, int thread, const struct op *op,
                            int choice, char *buf, size_t cap)
{
    char object[NAME];
    const int64_t iteration = thread_cells(p, c, thread)[THREAD_ITER];
    const bool yes = op_has_branches(op) && choice == 0 && machine_says_yes(p, c, thread, op);
    if (op_has_branches(op) && !(yes && op_may_try(op->kind)))
        describe_branching(p, op, iteration, yes, buf, cap);
    else if (failure_gives_up(p, c, thread, op))
        snprintf(buf, cap, "is woken and gives up");
    else if (op->kind == OP_SYNC && op->sync == SYNC_RETRY)
        snprintf(buf, cap,
                 choice ? "lacks memory, and is about to free what the allocator caches"
                        : "finds memory that the allocator caches");
    else if (op->kind == OP_SYNC && op->sync == SYNC_STAGED)
        snprintf(buf, cap,
                 choice ? "is back from the call of the copy, which may not have ended"
                        : "is to wait for the copy of pageable memory");
    else if (snapshot_is_needed(p, c, thread, op) && !snapshot_is_taken(p, c, thread))
        snprintf(buf, cap, "calls the wait for %s", words_object_name(p, op, iteration, object));
    else
        describe_op(p, op, iteration, buf, cap);
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
        program_op_title(p, head_op(p, c, desc->index), item_cells(p, c, desc->index, 0)[ITEM_ITER],
                         subject, sizeof subject);
        snprintf(buf, cap, "%s %s%s",
                 stream_cells(p, c, desc->index)[STREAM_RUNNING] ? "finishes" : "starts", subject,
                 ends_with_error(p, c, desc->index) ? " with an error" : "");
        break;
    case AGENT_COMM: {
        int stream =
            c[p->at.members + p->comms[desc->index].first_member * MEMBER_CELLS + MEMBER_ACTIVE] -
            1;
        program_op_title(p, head_op(p, c, stream), item_cells(p, c, stream, 0)[ITEM_ITER], subject,
                         sizeof subject);
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
    case AGENT_FAULT: words_describe_fault(p, c, &p->faults[desc->index], buf, cap); break;
    case AGENT_WATCHDOG:
        snprintf(buf, cap, "aborts communicator %s: %s", p->comms[desc->index].name,
                 desc->rank < 0 ? "its ranks stop" : "the rank stops");
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
    program_op_title(p, op, iteration, out->subject, sizeof out->subject);
    if (!op_pushes(op->kind) || failure_gives_up(p, c, thread, op) ||
        waits_for_nothing(p, op, iteration))
        return;
    out->stream = p->streams[op->stream].name;
    put_words(p, op, iteration, op_pushed(op->is_kernel ? OP_LAUNCH : op->kind), out->pushed,
              sizeof out->pushed);
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
        program_op_title(p, head_op(p, c, desc->index), item_cells(p, c, desc->index, 0)[ITEM_ITER],
                         out->subject, sizeof out->subject);
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
                 words_object_name(p, op, iteration, object));
        break;
    case OPERAND_EVENT:
        if (op->sync == SYNC_EVENT)
            snprintf(buf, cap, "is at %s, waits on the host for %s", subject,
                     words_object_name(p, op, iteration, object));
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
    case OPERAND_SUBMISSION:
    case OPERAND_BARRIER:
    case OPERAND_COMM:
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

/* " (row 1, column 3)": the place in its list of the first message of a group that rank programs have. */
static const char *words_describe_place(const struct program *p, const struct op *op, char *buf,
                                        size_t cap)
{
    uint32_t at = op->part_count > 0 ? p->parts[op->part_first].listed : 0;
    buf[0] = '\0';
    if (at)
        snprintf(buf, cap, " (row %d, column %d)", p->plan->listed[at - 1].row,
                 p->plan->listed[at - 1].column);
    return buf;
}

/* Of a collective that an action of rank programs makes: the action's place in its list, and the ranks it is among. */
static const char *describe_among(const struct program *p, const struct op *op, char *buf,
                                  size_t cap)
{
    const struct comm_desc *comm = &p->comms[op->comm];
    if (op->kind == OP_GROUP)
        return words_describe_place(p, op, buf, cap);
    buf[0] = '\0';
    if (op->kind != OP_COLLECTIVE || op->listed == 0 || p->plan->listed[op->listed - 1].column == 0)
        return buf;
    const struct listed_action *listed = &p->plan->listed[op->listed - 1];
    char place[NAME];
    listed_place(listed, place, sizeof place);
    size_t used = (size_t)snprintf(buf, cap, "%.*s; ranks", (int)strlen(place) - 1, place);
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
    program_op_title(p, op, iteration, subject, sizeof subject);
    if (wait->agent >= 0)
        program_agent_name(p, wait->agent, other, sizeof other);
    switch (wait->cause) {
    case CAUSE_DEPENDENCE:
        words_object_name(p, op, iteration, object);
        if (op_stream_waits(op->kind) && wait->agent < 0)
            snprintf(buf, cap, "waits for %s", object);
        else
            snprintf(buf, cap, "waits for %s on %s", object, other);
        break;
    case CAUSE_PEER:
        if (op_calls_host(op->kind))
            snprintf(buf, cap, "runs %s %s", op->is_kernel ? "kernel" : "callback", subject);
        else
            snprintf(buf, cap, "is in %s of communicator %s%s, waits for %s", subject,
                     p->comms[op->comm].name, describe_among(p, op, among, sizeof among), other);
        break;
    case CAUSE_COMM_ORDER:
        snprintf(buf, cap, "cannot start %s before communicator %s has finished on %s", subject,
                 p->comms[op->comm].name, other);
        break;
    case CAUSE_HW_QUEUE:
        snprintf(buf, cap, "cannot start %s: its hardware queue is held by %s", subject, other);
        break;
    case CAUSE_ISSUE:
        snprintf(buf, cap,
                 "cannot start %s before the collective issued before it, on any communicator, has "
                 "started on %s",
                 subject, other);
        break;
    default:
        if (op->sm > p->plan->machine.sm_slots)
            snprintf(buf, cap, "can never start %s: it needs %d residency slot%s, a device has %d",
                     subject, op->sm, units_plural((size_t)op->sm), p->plan->machine.sm_slots);
        else
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
    else if (desc->kind == AGENT_WATCHDOG) {
        char busy[NAME];
        snprintf(buf, cap, "has aborted it, waits for the device: %s",
                 program_agent_name(p, wait.agent, busy, sizeof busy));
    } else if (desc->kind == AGENT_STREAM)
        describe_stream_wait(p, state->cells, desc->index, &wait, buf, cap);
    else if (p->threads[desc->index].kind == THREAD_DRIVER)
        describe_driver_wait(p, &wait, buf, cap);
    else
        describe_thread_wait(p, state->cells, desc->index, &wait, buf, cap);
    return buf;
}
