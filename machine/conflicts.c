/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conflicts.c - which steps conflict: what follows from the uses of objects (uses.h), and why.
 *
 * Two steps of different agents are independent if neither disables the other and both orders lead
 * to one state and show the same violations. (That one *enables* the other is no conflict:
 * what a step waits for is in enablers.c.) The ways in which operations use their objects stand in
 * operand_table (uses.c). The facts behind them, each local to one object:
 *
 *   - A stream is a FIFO: its push at the tail and its start or finish at the head commute. Two
 *     threads that push to one stream do not commute; nor does a push with another thread's sync.
 *   - The same for communicators (issue order), hardware queues, bounded queues and worker queues.
 *   - Most flags are only ever set, and only the first that sets one gives knowledge: those that give a flag
 *     conflict with each other, be they steps of threads or of streams. An enabled step that takes a flag
 *     conflicts with none, since nothing clears the flag, and what it carries is settled. That holds for
 *     flags that are only ever set to 1, from 0 (not program->flag_counts). Of the others a change may end what was
 *     awaited, and is what a wait learns: waits conflict with changes, and a set with all; additions
 *     commute, in the value and in what the flag carries. Who acquires waits and adds.
 *   - An event is set by record, and wait and sync look at it. That a stream reaches a record commutes
 *     with both: a wait that comes before is released by it, one that comes after finds its trace.
 *   - Events and flags of tasks are re-armed when an iteration is admitted, but with slots >= depth
 *     + distance never while a thread may look at them (program->slots_safe): re-arming (T, j) for
 *     iteration i >= j + slots needs iteration i - depth >= j + distance to be retired, so all that
 *     could look at (T, j) has been submitted. And a thread that waits for the event of (T, j) has
 *     awaited its flag, which is set after the record.
 *   - Where dependences on retired iterations are skipped, what an await learns depends on whether
 *     the driver has retired yet.
 *   - Tickets of pipelines are numbered in advance (clock, or data-flow by iteration), each once, so
 *     turns do not depend on timing. Numbered at firing time, the firings conflict. A host program
 *     may number its tickets as it likes: there a turn conflicts with serving.
 *   - Releasing a lock only enables others, if its holder releases it.
 *   - Under data-flow the end of a submission may put instances into worker queues. By the order
 *     lemma (doc/checker.md) instances of one task come in iteration order, whichever agent puts them there;
 *     instances of different tasks that share a worker may come in either order.
 *
 * What a pushed operation does when its stream comes to it is done by one of two agents.
 *
 *   - A mark takes effect at once, in the step that brings it to the head: a push, a finish, the end of a
 *     collective on another rank. No table of uses could name that step, so a mark may do nothing there
 *     that another step notices: its ways at the stream are all WAY_NOTHING (uses.c asserts it).
 *   - All else begins with a step of its stream. That start uses what the row says for the moment
 *     AT_STREAM, and residency slots (uses_of_start). It is not free where it conflicts: a write, whose
 *     start sets a flag, conflicts with every signal and every write of that flag on another stream, and a
 *     wait for a flag starts no sooner than it is set, so its start conflicts with no step.
 *   - A thread that aborts a communicator conflicts with all that starts on it, on whatever rank, and with the
 *     completion of its collectives: it makes one impossible and drops what waits for a partner. That a stream finishes an
 *     operation of a communicator conflicts with no abort: it finishes in the same way matched or aborted, and what is matched
 *     is not dropped.
 *   - Starts that take residency slots conflict with each other. A finish gives slots to greedy kernels that run, and what
 *     is left to those that wait: it leaves no fewer free, and the kernels have the same at last in any order of finishes.
 *   - Who asks what the device of a rank has come to notices the end of its work, and a start that lets others of its hardware
 *     queue go on. A program without such questions has no object for that, and its ends conflict with nothing. Whatever else
 *     an operation with branches asks for, or tries, conflicts with all that changes the answer.
 *   - Finishing device work only enables others. So whatever a pushed operation gives or takes, it does
 *     so at its start.
 *
 * Happens-before knowledge is carried along exactly these objects, so it commutes where they do.
 *
 * A step is *free* if it conflicts with nothing any other agent ever does.
 */
#include "conflicts.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "uses.h"

/* ---- sets ------------------------------------------------------------------------------------ */

bool agent_set_init(struct agent_set *set, int agent_count)
{
    *set = (struct agent_set){.now = 1};
    set->members = calloc((size_t)agent_count + 1, sizeof *set->members);
    set->stamp = calloc((size_t)agent_count + 1, sizeof *set->stamp);
    return set->members && set->stamp;
}

void agent_set_fini(struct agent_set *set)
{
    free(set->members);
    free(set->stamp);
}

void agent_set_clear(struct agent_set *set, int agent_count)
{
    set->count = 0;
    if (set->now++ < UINT_MAX)
        return;
    memset(set->stamp, 0, ((size_t)agent_count + 1) * sizeof *set->stamp);
    set->now = 1;
}

/* ---- free steps ------------------------------------------------------------------------------ */

/* A step of an agent that is compared with the uses of all others. */
struct step {
    const struct program *program;
    int agent;
    bool free;
    int at; /* of a host thread: the operation of its body, whose order counts; -1: whatever order there is */
};

static void conflicts_compare(void *arg, int object, enum way way, int tag)
{
    struct step *step = arg;
    const struct program *p = step->program;
    if (!(p->uses->ways[object] & way_conflicts(way)))
        return;
    for (int u = p->uses->first[object]; step->free && u >= 0;) {
        const struct use *use = &p->uses->items[u];
        bool own = use->agent == step->agent;
        step->free =
            own || !use_conflicts(way, tag, use) ||
            (step->at >= 0 && !use_may_meet(p, p->agents[step->agent].index, step->at, use, 0));
        u = own ? use->other : use->next;
    }
}

static bool op_is_free(const struct program *program, const struct op *op, int thread, int at)
{
    struct step step = {program, program_thread_agent(program, thread), true, at};
    uses_of_op(program, op, thread, conflicts_compare, &step);
    return step.free && !op_may_sync(op) && op->kind != OP_CHOOSE;
}

/* Work that takes residency slots is never free, also where no other takes any. */
static bool start_is_free(const struct program *program, const struct op *op)
{
    if (!op_pushes(op->kind))
        return false;
    struct step step = {program, program_stream_agent(program, op->stream), true, -1};
    uses_of_start(program, op->stream, op, conflicts_compare, &step);
    return step.free && (program->plan->machine.sm_slots == 0 || op->sm == 0);
}

static void find_free_thread_steps(struct program *program, int thread)
{
    const struct thread_desc *desc = &program->threads[thread];
    const struct step none = {program, program_thread_agent(program, thread), true, -1};
    struct step admit = none, retire = none, take = none;
    if (desc->kind == THREAD_WORKER)
        uses_of_take(program, thread, conflicts_compare, &take);
    if (desc->kind == THREAD_DRIVER) {
        uses_of_admit(program, desc->rank, conflicts_compare, &admit);
        uses_of_retire(program, desc->rank, conflicts_compare, &retire);
    }
    program->admit_free &= admit.free;
    program->retire_free &= retire.free;
    program->take_free &= take.free;
}

static void find_free_steps(struct program *program, const struct body *body,
                            struct uses_memo *memo)
{
    const bool ordered = program->uses->order && program->threads[body->thread].kind == THREAD_HOST;
    for (int i = 0; i < body->count; i++) {
        struct op *op = &program->ops[body->first + i];
        struct uses_kept *kept = uses_place(memo, program, body, op);
        if (!kept->op || !uses_alike(program, kept->op, op))
            *kept = (struct uses_kept){.op = op,
                                       .free = op_is_free(program, op, body->thread, -1),
                                       .starts_free = start_is_free(program, op)};
        op->free = kept->free || (ordered && op_is_free(program, op, body->thread, i));
        op->starts_free = kept->starts_free;
    }
}

enum status program_find_conflicts(struct program *program, struct diag *diag)
{
    enum status status = uses_build(program, diag);
    if (status != STATUS_OK)
        return status;
    program->admit_free = program->retire_free = program->take_free = true;
    for (int t = 0; program->tasks && t < program->thread_count; t++)
        find_free_thread_steps(program, t);
    struct step data = {program, 0, true, -1};
    uses_of_data(program, conflicts_compare, &data);
    program->data_free = data.free;
    struct uses_memo memo = {0};
    for (size_t b = 0; b < program->body_count; b++)
        find_free_steps(program, &program->bodies[b], &memo);
    return STATUS_OK;
}

/* ---- conflicts in a state -------------------------------------------------------------------- */

/* A step of an agent in a state, and the set that collects the others. */
struct conflicts_query {
    const struct program *p;
    int32_t *c;
    int agent;
    struct agent_set *set;
    int at; /* as in struct step */
};

static bool may_meet(const struct conflicts_query *q, const struct use *other)
{
    if (!use_is_ahead(q->p, q->c, other))
        return false;
    const struct agent *agent = &q->p->agents[other->agent];
    return q->at < 0 || agent->kind != AGENT_THREAD ||
           use_may_meet(q->p, q->p->agents[q->agent].index, q->at, other,
                        thread_cells(q->p, q->c, agent->index)[THREAD_PC]);
}

static void add_conflicting(void *arg, int object, enum way way, int tag)
{
    const struct conflicts_query *q = arg;
    const struct use_table *uses = q->p->uses;
    for (int u = uses->first[object]; u >= 0; u = uses->items[u].next) {
        const struct use *other = &uses->items[u];
        if (other->agent != q->agent && use_conflicts(way, tag, other) && may_meet(q, other))
            agent_set_add(q->set, other->agent);
    }
}

static void driver_conflicts(struct conflicts_query *q, int rank)
{
    if (thread_cells(q->p, q->c, q->p->driver_thread[rank])[THREAD_PC] == PHASE_RETIRE)
        uses_of_retire(q->p, rank, add_conflicting, q);
    else
        uses_of_admit(q->p, rank, add_conflicting, q);
}

void machine_conflicts(const struct program *p, const struct state *state, int agent,
                       struct agent_set *set)
{
    struct conflicts_query q = {p, state->cells, agent, set, -1};
    const struct agent *desc = &p->agents[agent];
    if (desc->kind == AGENT_STREAM && stream_cells(p, q.c, desc->index)[STREAM_RUNNING])
        uses_of_finish(p, desc->index, add_conflicting, &q);
    else if (desc->kind == AGENT_STREAM)
        uses_of_start(p, desc->index, head_op(p, q.c, desc->index), add_conflicting, &q);
    if (desc->kind == AGENT_COMM)
        uses_of_completion(p, desc->index, add_conflicting, &q);
    if (desc->kind == AGENT_DATA)
        uses_of_data(p, add_conflicting, &q);
    if (desc->kind != AGENT_THREAD)
        return;
    const struct op *op = machine_thread_op(p, q.c, desc->index);
    if (p->threads[desc->index].kind == THREAD_HOST)
        q.at = thread_cells(p, q.c, desc->index)[THREAD_PC];
    if (p->threads[desc->index].kind == THREAD_DRIVER)
        driver_conflicts(&q, desc->rank);
    else if (op)
        uses_of_op(p, op, desc->index, add_conflicting, &q);
    else
        uses_of_take(p, desc->index, add_conflicting, &q);
}

/* ---- what is in flight ----------------------------------------------------------------------- */

/* As long as a task of an iteration that was retired is unfinished on the device, so is that task of
   all later ones: its stream is a FIFO. So submissions matter only where iterations are retired
   before, or where bytes are counted, which may be too many without a retired iteration. */
static bool counts_submissions(const struct program *p)
{
    return p->plan->pipeline.retire == RETIRE_LAST_TASK || machine_has_memory(&p->plan->machine);
}

/* True if this enabled step may finish work of an iteration, or bring a stream past a free, so that less is in
   flight. */
static bool may_finish(const struct program *p, const struct state *state, int agent)
{
    const struct agent *desc = &p->agents[agent];
    switch (desc->kind) {
    case AGENT_STREAM: /* the start of one may let others of its hardware queue go on */
        return machine_stream_running(p, state, desc->index) ||
               p->streams[desc->index].hw_queue >= 0;
    case AGENT_COMM: return true;
    case AGENT_THREAD: {
        const struct op *op = machine_thread_op(p, state->cells, desc->index);
        return op && op_ends_submission(op->kind) && counts_submissions(p);
    }
    case AGENT_DATA:
    case AGENT_FAULT:
    case AGENT_WATCHDOG: break;
    }
    return false;
}

/* Those that may still allocate on the rank: who frees or marks memory is among them, which costs states only. */
static void add_allocating_threads(const struct program *p, int32_t *c, int rank,
                                   struct agent_set *set)
{
    const struct use_table *uses = p->uses;
    for (int u = uses->first[uses_use_object(p, OBJECT_MEMORY, rank)]; u >= 0;
         u = uses->items[u].next)
        if (uses->items[u].way == WAY_WRITE && use_is_ahead(p, c, &uses->items[u]))
            agent_set_add(set, uses->items[u].agent);
}

static void add_counting_threads(const struct program *p, int32_t *c, int rank,
                                 struct agent_set *set)
{
    if (p->tasks == 0) {
        add_allocating_threads(p, c, rank, set);
        return;
    }
    int driver = p->driver_thread[rank];
    if (thread_cells(p, c, driver)[THREAD_PC] != PHASE_END)
        agent_set_add(set, program_thread_agent(p, driver));
}

void machine_counting_threads(const struct program *p, const struct state *state, int agent,
                              struct agent_set *set)
{
    const struct agent *desc = &p->agents[agent];
    if (!may_finish(p, state, agent))
        return;
    for (int rank = 0; p->is_crossed && rank < p->ranks;
         rank++) /* they wait for each other's events */
        add_counting_threads(p, state->cells, rank, set);
    if (desc->kind != AGENT_COMM)
        add_counting_threads(p, state->cells, desc->rank, set);
    for (int m = 0; desc->kind == AGENT_COMM && m < p->comms[desc->index].count; m++)
        add_counting_threads(p, state->cells, p->comms[desc->index].members[m], set);
}

int machine_counted_rank(const struct program *p, const struct state *state, int agent)
{
    const struct agent *desc = &p->agents[agent];
    if (p->tasks > 0)
        return machine_admits(p, state, agent) ? desc->rank : -1;
    const struct op *op =
        desc->kind == AGENT_THREAD ? machine_thread_op(p, state->cells, desc->index) : NULL;
    return op && op->kind == OP_ALLOC ? p->buffers[op->object].rank : -1;
}

void machine_finishers(const struct program *p, int rank, struct agent_set *set)
{
    const int first = p->is_crossed ? 0 : p->rank_first[rank],
              end = p->is_crossed ? p->stream_count : p->rank_first[rank + 1];
    for (int i = first; i < end; i++)
        agent_set_add(set, program_stream_agent(p, p->rank_streams[i]));
    for (int c = 0; c < p->comm_count; c++)
        for (int m = 0; m < p->comms[c].count; m++)
            if (p->is_crossed || p->comms[c].members[m] == rank)
                agent_set_add(set, program_comm_agent(p, c));
    for (int t = p->tasks ? p->driver_thread[rank] + 1 : p->thread_count;
         counts_submissions(p) && program_is_worker(p, t); t++)
        agent_set_add(set, program_thread_agent(p, t));
}
