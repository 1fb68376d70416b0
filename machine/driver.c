/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c - the common part of the clock-driven and the data-flow driver; see driver.h. */
#include "driver.h"

#include "happens_before.h"

bool driver_unfinished(const struct program *p, int32_t *c, int rank, int64_t iteration)
{
    const int32_t *window = window_cells(p, c, rank, iteration);
    return window[WINDOW_SUBMIT_LEFT] > 0 || window[WINDOW_DEVICE_LEFT] > 0;
}

/* True if the oldest iteration may be retired, by the plan's rule. */
bool machine_iteration_over(const struct program *p, int32_t *c, int rank, int64_t iteration)
{
    const int32_t *window = window_cells(p, c, rank, iteration);
    switch (p->plan->pipeline.retire) {
    case RETIRE_SUBMIT: return window[WINDOW_SUBMIT_LEFT] == 0;
    case RETIRE_LAST_TASK: return window[WINDOW_LAST_LEFT] == 0;
    case RETIRE_DEVICE: break;
    }
    return window[WINDOW_SUBMIT_LEFT] == 0 && window[WINDOW_DEVICE_LEFT] == 0;
}

bool driver_awaits_submission(const struct program *p)
{
    return p->plan->pipeline.retire != RETIRE_LAST_TASK;
}

bool driver_awaits_event(const struct program *p, int task)
{
    return p->plan->pipeline.retire == RETIRE_DEVICE ||
           (p->plan->pipeline.retire == RETIRE_LAST_TASK && task == p->last_task);
}

void driver_finish(struct work_state *w, int rank)
{
    int32_t *state = rank_cells(w->p, w->c, rank);
    while (state[RANK_FINISHED] < state[RANK_ADMITTED] &&
           !driver_unfinished(w->p, w->c, rank, state[RANK_FINISHED]))
        state[RANK_FINISHED]++;
}

static void report_bound(struct work_state *w, int64_t wanted, int64_t found, bool bytes)
{
    w->e->violated |= 1u << PROPERTY_BOUND;
    w->e->wanted = wanted;
    w->e->found = found;
    w->e->bytes = bytes;
}

/* A violation: more iterations with unfinished work than `max_in_flight`, or more bytes than
   `machine: {memory}`, where the plan has them. */
static void check_bound(struct work_state *w, int rank, int64_t newest)
{
    const struct program *p = w->p;
    if (!program_asks_bound(p))
        return;
    int64_t in_flight = newest + 1 - rank_cells(p, w->c, rank)[RANK_FINISHED];
    int64_t bytes = program_bytes(p, in_flight);
    int64_t memory = machine_memory(&p->plan->machine, rank);
    if (memory && bytes > memory)
        report_bound(w, memory, bytes, true);
    int most = p->plan->pipeline.max_in_flight;
    if (most && in_flight > most)
        report_bound(w, most, in_flight, false);
}

void driver_arm_slot(struct work_state *w, int rank, int task, int64_t iteration)
{
    const struct program *p = w->p;
    int instance = (rank * p->tasks + task) * p->slots + (int)(iteration % p->slots);
    int32_t *event = event_cells(p, w->c, instance), *flag = flag_cells(p, w->c, instance);
    event[EVENT_STREAM] = -1;
    event[EVENT_POS] = 0;
    event[EVENT_OWNER] = flag[FLAG_OWNER] = (int32_t)iteration;
    flag[FLAG_VALUE] = 0;
    hb_clear(w, p->at.row_events + instance);
    hb_clear(w, p->at.row_flags + instance);
}

void driver_admit(struct work_state *w, int rank, int64_t iteration)
{
    ASSERT_INDEX(rank, w->p->ranks);
    const struct program *p = w->p;
    int32_t *window = window_cells(p, w->c, rank, iteration);
    window[WINDOW_SUBMIT_LEFT] = window[WINDOW_DEVICE_LEFT] = p->tasks;
    window[WINDOW_LAST_LEFT] = 1;
    for (int task = 0; task < p->tasks; task++) {
        *fired_cell(p, w->c, rank, task, iteration) = 0;
        if (p->plan->pipeline.slot_reset == SLOT_RESET_ADMIT)
            driver_arm_slot(w, rank, task, iteration);
    }
    int at = rank * p->window + (int)(iteration % p->window);
    hb_forget_iteration(w, rank, iteration);
    hb_clear(w, p->at.row_done + at);
    hb_copy(w, p->at.row_admit + at, p->at.row_threads + p->driver_thread[rank]);
    rank_cells(p, w->c, rank)[RANK_ADMITTED] = (int32_t)iteration + 1;
    check_bound(w, rank, iteration);
}

/* The knowledge of an instance when it is handed out. A period knows what its driver knows by then. Under
   data-flow a worker may fire, and which one must not matter: what the driver knew at the admission. */
static int hand_out_row(const struct program *p, int rank, int64_t iteration)
{
    if (p->driver == DRIVER_CLOCK)
        return p->at.row_threads + p->driver_thread[rank];
    return p->at.row_admit + rank * p->window + (int)(iteration % p->window);
}

void driver_hand_out(struct work_state *w, int rank, int task, int64_t iteration, int64_t ticket)
{
    ASSERT_INDEX(rank, w->p->ranks);
    ASSERT_INDEX(task, w->p->tasks);
    const struct program *p = w->p;
    int worker = p->worker[rank * p->tasks + task];
    int32_t *thread = thread_cells(p, w->c, worker);
    int place = thread[THREAD_COUNT]++;
    assert(place < p->threads[worker].queue_cap);
    int32_t *entry = entry_cells(p, w->c, worker, place);
    entry[ENTRY_TASK] = task;
    entry[ENTRY_ITER] = (int32_t)iteration;
    entry[ENTRY_TICKET] = (int32_t)ticket;
    hb_copy(w, p->at.row_entries[worker] + place, hand_out_row(p, rank, iteration));
    if (program_ends_turn(p, rank, task))
        hb_join(w, p->at.row_entries[worker] + place, p->at.row_tickets + rank);
}

/* The next iteration needs a free place in the window, so the device lags at most a window behind.
   Hence all instances in a worker's queue belong to one window, and fit into it. */
static bool driver_has_room(const struct program *p, int32_t *c, int rank)
{
    int64_t next = rank_cells(p, c, rank)[RANK_ADMITTED];
    return next < p->window || !driver_unfinished(p, c, rank, next - p->window);
}

static bool is_dataflow(const struct program *p)
{
    return p->driver == DRIVER_DATAFLOW;
}

int64_t driver_next(const struct program *p, const int32_t *rank_state)
{
    return is_dataflow(p) ? rank_state[RANK_ADMITTED] : clock_newest(p, rank_state);
}

bool driver_asks_for_data(const struct program *p, int32_t *c, int rank)
{
    const int32_t *state = rank_cells(p, c, rank);
    int phase = thread_cells(p, c, p->driver_thread[rank])[THREAD_PC];
    if (phase != PHASE_ADMIT || state[RANK_END] >= 0)
        return false;
    return driver_next(p, state) >= c[0];
}

bool driver_can_step(const struct program *p, int32_t *c, int rank)
{
    ASSERT_INDEX(rank, p->ranks);
    const int32_t *state = rank_cells(p, c, rank);
    switch (thread_cells(p, c, p->driver_thread[rank])[THREAD_PC]) {
    case PHASE_ADMIT:
        return dataflow_has_void_turn(p, c, rank) ||
               (!driver_asks_for_data(p, c, rank) && driver_has_room(p, c, rank));
    case PHASE_RETIRE:
        return state[RANK_OLDEST] < state[RANK_ADMITTED] &&
               machine_iteration_over(p, c, rank, state[RANK_OLDEST]);
    default: return false;
    }
}

static void driver_retire(struct work_state *w, int rank)
{
    const struct program *p = w->p;
    int32_t *state = rank_cells(p, w->c, rank);
    int driver = p->driver_thread[rank];
    int64_t oldest = state[RANK_OLDEST]++;
    hb_join(w, p->at.row_threads + driver,
            p->at.row_done + rank * p->window + (int)(oldest % p->window));
    w->e->iteration = oldest;
    /* A retirement lets no instance fire that could not before. */
    thread_cells(p, w->c, driver)[THREAD_PC] = PHASE_ADMIT;
}

void driver_step(struct work_state *w, int rank)
{
    ASSERT_INDEX(rank, w->p->ranks);
    if (thread_cells(w->p, w->c, w->p->driver_thread[rank])[THREAD_PC] == PHASE_RETIRE)
        driver_retire(w, rank);
    else if (is_dataflow(w->p))
        dataflow_admit(w, rank);
    else
        clock_enqueue(w, rank);
    driver_settle(w->p, w->c, rank);
}

void driver_settle(const struct program *p, int32_t *c, int rank)
{
    const int32_t *state = rank_cells(p, c, rank);
    int32_t *phase = &thread_cells(p, c, p->driver_thread[rank])[THREAD_PC];
    int64_t end = state[RANK_END];
    bool no_more = end >= 0 && state[RANK_ADMITTED] >= end;
    /* Periods of the fill come with or without data: an end of the data and a step of the driver commute (reduce.c). */
    bool filling = !is_dataflow(p) && state[RANK_PERIOD] < p->periods;
    if (is_dataflow(p) && *phase == PHASE_ADMIT &&
        ((no_more && !dataflow_has_void_turn(p, c, rank)) ||
         (!no_more && state[RANK_ADMITTED] - state[RANK_OLDEST] >= p->depth)))
        *phase = PHASE_RETIRE;
    if (*phase != PHASE_END && no_more && !filling && state[RANK_OLDEST] >= end)
        *phase = PHASE_END;
}
