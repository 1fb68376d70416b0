/* SPDX-License-Identifier: Apache-2.0 */
/* failure.c - see failure.h. */
#include "failure.h"

#include <string.h>

#include "driver.h"
#include "happens_before.h"

/* ---- faults ---------------------------------------------------------------------------------- */

/* CPU work can fail, and so can a call that gives work to the device or allocates. */
static bool can_fail(enum op_kind kind)
{
    return op_is_work(kind) || kind == OP_ALLOC;
}

/* A task fails where its next step would be its work. */
static bool task_can_fail(const struct program *p, int32_t *c, int thread)
{
    const struct op *op = machine_thread_op(p, c, thread);
    return op && can_fail(op->kind) && machine_thread_can_step(p, c, thread);
}

/* The rank is about to admit an iteration for which it finds no data. */
static bool data_can_end(const struct program *p, int32_t *c, int rank)
{
    const int32_t *state = rank_cells(p, c, rank);
    int64_t admitted = state[RANK_ADMITTED];
    return thread_cells(p, c, p->driver_thread[rank])[THREAD_PC] == PHASE_ADMIT &&
           driver_next(p, state) == admitted && (state[RANK_END] < 0 || admitted < state[RANK_END]);
}

/* The death of a rank at its end has no consequence. */
static bool rank_can_die(const struct program *p, int32_t *c, int rank)
{
    const struct state state = {.cells = c};
    for (int agent = 0; agent < p->agent_count; agent++)
        if (p->agents[agent].rank >= 0 && program_same_process(p, p->agents[agent].rank, rank) &&
            !machine_agent_idle(p, &state, agent))
            return true;
    return false;
}

/* An operation of the member has been called and is not over. */
static bool time_can_run_out(const struct program *p, int32_t *c, int comm, int rank)
{
    const int member = p->comms[comm].first_member + program_member(p, comm, rank);
    const int32_t *cells = c + p->at.members + member * MEMBER_CELLS;
    return cells[MEMBER_ISSUED] != cells[MEMBER_FINISHED];
}

bool failure_can_happen(const struct program *p, int32_t *c, const struct fault *fault)
{
    if (failure_happened(p, c))
        return false;
    switch (fault->kind) {
    case FAULT_TASK: return task_can_fail(p, c, fault->index);
    case FAULT_DATA: return data_can_end(p, c, fault->index);
    case FAULT_RANK: return rank_can_die(p, c, fault->index);
    case FAULT_TIME: return time_can_run_out(p, c, fault->index, fault->rank);
    }
    return false;
}

/* ---- consequences ---------------------------------------------------------------------------- */

/* End the thread's body and its instance. */
static void end_body(struct work_state *w, int thread)
{
    int32_t *state = thread_cells(w->p, w->c, thread);
    state[THREAD_PC] = state[THREAD_ITER] = state[THREAD_TICKET] = 0;
    state[THREAD_BODY] = -1;
}

/* An error releases the locks of its thread. */
static void release_locks(struct work_state *w, int thread)
{
    for (int lock = 0; lock < w->p->lock_count; lock++)
        if (w->c[w->p->at.locks + lock] == thread + 1)
            w->c[w->p->at.locks + lock] = 0;
}

static void forget_queue(struct work_state *w, int thread)
{
    int32_t *state = thread_cells(w->p, w->c, thread);
    for (int k = 0; k < state[THREAD_COUNT]; k++) {
        memset(entry_cells(w->p, w->c, thread, k), 0, ENTRY_CELLS * sizeof(int32_t));
        hb_clear(w, w->p->at.row_entries[thread] + k);
    }
    state[THREAD_COUNT] = state[THREAD_FIRST] = 0;
}

/* The driver ends, queues are cleared. Threads within a body go on until they are at a wait
   (failure_gives_up) or at their end. */
static void stop_one(struct work_state *w, int rank)
{
    const struct program *p = w->p;
    if (*fate_cell(p, w->c, rank) != FATE_RUNS)
        return;
    *fate_cell(p, w->c, rank) = FATE_STOPPED;
    for (int t = 0; t < p->thread_count; t++) {
        if (p->threads[t].rank != rank)
            continue;
        if (p->threads[t].kind == THREAD_DRIVER)
            thread_cells(p, w->c, t)[THREAD_PC] = PHASE_END;
        forget_queue(w, t);
    }
}

/* With those in its process. */
static void stop_rank(struct work_state *w, int rank)
{
    for (int other = 0; other < w->p->ranks; other++)
        if (program_same_process(w->p, rank, other))
            stop_one(w, other);
}

static void kill_rank(struct work_state *w, int rank)
{
    const struct program *p = w->p;
    stop_rank(w, rank);
    for (int other = 0; other < p->ranks; other++)
        if (program_same_process(p, rank, other))
            *fate_cell(p, w->c, other) = FATE_DEAD;
    for (int t = 0; t < p->thread_count; t++)
        if (program_same_process(p, rank, p->threads[t].rank) &&
            p->threads[t].kind != THREAD_DRIVER)
            end_body(w, t);
}

static void fail_task(struct work_state *w, int thread)
{
    end_body(w, thread);
    if (w->p->plan->on_failure == ON_FAILURE_NONE)
        return;
    release_locks(w, thread);
    stop_rank(w, w->p->threads[thread].rank);
}

static void failure_end_data(struct work_state *w, int rank)
{
    int32_t *state = rank_cells(w->p, w->c, rank);
    w->e->iteration = state[RANK_ADMITTED];
    state[RANK_END] = state[RANK_ADMITTED];
    driver_settle(w->p, w->c, rank);
}

/* Its watchdog ends the process, or what it does at any failure begins with this communicator. */
static void run_out_of_time(struct work_state *w, int comm, int rank)
{
    const enum on_failure rule = w->p->plan->on_failure;
    if (rule == ON_FAILURE_NONE || rule == ON_FAILURE_WAKE)
        kill_rank(w, rank);
    else
        failure_abort(w, comm, rank);
}

void failure_happens(struct work_state *w, const struct fault *fault)
{
    w->c[w->p->at.faults] = (int32_t)(fault - w->p->faults) + 1;
    switch (fault->kind) {
    case FAULT_TASK: fail_task(w, fault->index); break;
    case FAULT_DATA: failure_end_data(w, fault->index); break;
    case FAULT_RANK: kill_rank(w, fault->index); break;
    case FAULT_TIME: run_out_of_time(w, fault->index, fault->rank); break;
    }
}

bool failure_has_ended(const struct program *p, const int32_t *c, int thread)
{
    if (!failure_happened(p, c) || p->threads[thread].kind != THREAD_WORKER)
        return false;
    const struct fault *fault = &p->faults[c[p->at.faults] - 1];
    return fault->kind == FAULT_TASK && fault->index == thread;
}

void failure_give_up(struct work_state *w, int thread)
{
    release_locks(w, thread);
    end_body(w, thread);
}

/* ---- the watchdog ---------------------------------------------------------------------------- */

static bool is_missing(const struct program *p, int32_t *c, int rank)
{
    const struct fault *fault = &p->faults[c[p->at.faults] - 1];
    return *fate_cell(p, c, rank) != FATE_RUNS ||
           (fault->kind == FAULT_DATA && fault->index == rank);
}

int failure_abort_waits(const struct program *p, int32_t *c, int rank)
{
    bool waits =
        p->options.faults && !failure_is_dead(p, c, rank) && !machine_device_idle(p, c, rank);
    return waits ? *aborting_cell(p, c, rank) - 1 : -1;
}

bool failure_can_abort(const struct program *p, int32_t *c, int comm, int rank)
{
    const struct comm_desc *desc = &p->comms[comm];
    bool missing = false, left = false;
    if (!failure_happened(p, c) ||
        (rank >= 0 && (failure_is_dead(p, c, rank) || failure_abort_waits(p, c, rank) >= 0)))
        return false;
    for (int m = 0; m < desc->count; m++) {
        missing |= is_missing(p, c, desc->members[m]);
        left |= (rank < 0 || desc->members[m] == rank) && !failure_is_aborted(p, c, comm, m);
    }
    return missing && left;
}

void failure_abort(struct work_state *w, int comm, int rank)
{
    const struct comm_desc *desc = &w->p->comms[comm];
    for (int m = 0; m < desc->count; m++)
        if (rank < 0 || desc->members[m] == rank) {
            failure_abort_member(w, comm, m);
            stop_rank(w, desc->members[m]);
        }
    if (rank >= 0)
        *aborting_cell(w->p, w->c, rank) = comm + 1;
}

/* ---- aborts ---------------------------------------------------------------------------------- */

/* Its sends or receives in a channel that have not met a partner. */
static void drop_posts(struct work_state *w, int channel)
{
    int32_t *cells = w->c + w->p->at.channels[channel];
    const int count = cells[0] < 0 ? -cells[0] : cells[0];
    for (int k = 0; k < count; k++)
        hb_clear(w, w->p->at.row_channels[channel] + k);
    memset(cells, 0, (size_t)(1 + count * MESSAGE_CELLS) * sizeof *cells);
}

void failure_abort_member(struct work_state *w, int comm, int member)
{
    const struct program *p = w->p;
    const int rank = p->comms[comm].members[member];
    *aborted_cell(p, w->c, comm, member) = 1;
    for (int i = 0; i < p->channel_count; i++) {
        const int posted = w->c[p->at.channels[i]];
        if (p->channels[i].comm == comm && ((p->channels[i].from == rank && posted > 0) ||
                                            (p->channels[i].to == rank && posted < 0)))
            drop_posts(w, i);
    }
}
