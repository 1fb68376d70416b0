/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataflow.c - the data-flow driver: an instance is fired when
 *
 *     1. it has not been fired,              2. fewer than max_depth instances of its task are
 * pending
 *     3. its iteration has a context,        4. its intra-iteration dependences are submitted,
 *     5. its inter-iteration dependences are submitted,
 *     6. its turn has come, if it is globally ordered (`ticket_at: pipelined`).
 *
 * Condition 2 follows from 3, since at most max_depth iterations have a context, and has no test of
 * its own.
 *
 * Turns go round: round r has one of each ordered task T, for iteration r - turn_stage[T]. RANK_SERVED is the number of the turn
 * that has come: round times tasks plus position. It is over when its instance is submitted, or when there is no such iteration.
 */
#include "driver.h"

/* ---- turns ----------------------------------------------------------------------------------- */

static int turn_task(const struct program *p, int rank, int64_t turn)
{
    return p->turn_task[rank * p->tasks + (int)(turn % p->ordered_tasks[rank])];
}

static int64_t turn_iteration(const struct program *p, int rank, int64_t turn)
{
    return turn / p->ordered_tasks[rank] - p->turn_stage[turn_task(p, rank, turn)];
}

static int64_t turn_of(const struct program *p, int rank, int task, int64_t iteration)
{
    return (iteration + p->turn_stage[task]) * p->ordered_tasks[rank] +
           p->ticket_position[rank * p->tasks + task];
}

/* True if the turn has come of an iteration that does not exist, and that is not behind the last one. */
static bool turn_is_void(const struct program *p, int32_t *c, int rank)
{
    const int32_t *state = rank_cells(p, c, rank);
    const int64_t turn = state[RANK_SERVED], end = state[RANK_END];
    if (!program_fires_by_turn(p) || p->ordered_tasks[rank] == 0 ||
        (end >= 0 && turn / p->ordered_tasks[rank] >= end + p->last_turn_stage))
        return false;
    const int64_t iteration = turn_iteration(p, rank, turn);
    return iteration < 0 || (end >= 0 && iteration >= end);
}

static void pass_void_turns(struct work_state *w, int rank)
{
    while (turn_is_void(w->p, w->c, rank))
        rank_cells(w->p, w->c, rank)[RANK_SERVED]++;
}

bool dataflow_has_void_turn(const struct program *p, int32_t *c, int rank)
{
    const int32_t *state = rank_cells(p, c, rank);
    return state[RANK_END] >= 0 && state[RANK_ADMITTED] >= state[RANK_END] &&
           turn_is_void(p, c, rank);
}

int machine_turn(const struct program *p, const struct state *state, int rank, int64_t *iteration)
{
    const int32_t *rank_state = rank_cells(p, state->cells, rank);
    const int64_t turn = rank_state[RANK_SERVED], end = rank_state[RANK_END];
    if (!program_fires_by_turn(p) || p->ordered_tasks[rank] == 0)
        return -1;
    *iteration = turn_iteration(p, rank, turn);
    return end >= 0 && *iteration >= end ? -1 : turn_task(p, rank, turn);
}

/* ---- firing ---------------------------------------------------------------------------------- */

/* True if `task` of an iteration has been submitted, as far as the driver remembers. */
static bool submitted(const struct program *p, int32_t *c, int rank, int task, int64_t iteration)
{
    const int32_t *state = rank_cells(p, c, rank);
    if (iteration < 0)
        return true; /* no dependence reaches before the first iteration */
    if (iteration >= state[RANK_ADMITTED])
        return false;
    if (iteration < state[RANK_OLDEST]) {
        if (p->plan->pipeline.forget_done == FORGET_AT_RETIRE)
            return false;
        if (iteration + p->window < state[RANK_ADMITTED])
            return true;
    }
    return *fired_cell(p, c, rank, task, iteration) & DONE;
}

/* True if all dependences of an instance are submitted. One that is not is often next to one that has just been, so they are
   looked at from that place outwards: a task that waits for a thousand others is not a look at each when each ends. */
static bool dependences_are_submitted(const struct program *p, int32_t *c, int rank, int task,
                                      int64_t iteration, int place)
{
    const struct edge_list *depends = &p->depends[task];
    const struct edge *up = &depends->items[place], *down = up;
    const struct edge *end = &depends->items[depends->count];
    while (up < end || down > depends->items) {
        if (up < end && !submitted(p, c, rank, up->task, iteration - up->distance))
            return false;
        up += up < end;
        if (down > depends->items &&
            !submitted(p, c, rank, down[-1].task, iteration - down[-1].distance))
            return false;
        down -= down > depends->items;
    }
    return true;
}

/* `place`: of the dependence that was submitted last, among the task's. */
static void try_fire(struct work_state *w, int rank, int task, int64_t iteration, int place)
{
    const struct program *p = w->p;
    int32_t *state = rank_cells(p, w->c, rank);
    if (iteration < state[RANK_OLDEST] || iteration >= state[RANK_ADMITTED])
        return;
    int32_t *fired = fired_cell(p, w->c, rank, task, iteration);
    if (*fired & FIRED)
        return;
    const int position = p->ticket_position[rank * p->tasks + task];
    const bool by_turn = position >= 0 && program_fires_by_turn(p);
    if (by_turn && state[RANK_SERVED] != turn_of(p, rank, task, iteration))
        return;
    if (!dependences_are_submitted(p, w->c, rank, task, iteration, place))
        return;
    *fired |= FIRED;
    int64_t ticket = 0;
    if (by_turn)
        ticket = turn_of(p, rank, task, iteration);
    else if (position >= 0)
        ticket = p->plan->pipeline.ticket_at == TICKET_AT_FIRE
                     ? state[RANK_NEXT_TICKET]++
                     : iteration * p->ordered_tasks[rank] + position;
    driver_hand_out(w, rank, task, iteration, ticket);
}

static void sweep(struct work_state *w, int rank, int64_t iteration)
{
    for (int k = 0; k < w->p->tasks; k++)
        try_fire(w, rank, w->p->order[rank][k], iteration, 0);
}

/* The instance whose turn has come, if all else allows. */
static void fire_turn(struct work_state *w, int rank)
{
    pass_void_turns(w, rank);
    const int64_t turn = rank_cells(w->p, w->c, rank)[RANK_SERVED];
    const int64_t iteration = turn_iteration(w->p, rank, turn);
    if (iteration >= 0)
        try_fire(w, rank, turn_task(w->p, rank, turn), iteration, 0);
}

void dataflow_admit(struct work_state *w, int rank)
{
    const int32_t *state = rank_cells(w->p, w->c, rank);
    const int64_t iteration = w->e->iteration = state[RANK_ADMITTED];
    if (state[RANK_END] >= 0 && iteration >= state[RANK_END]) {
        fire_turn(w, rank);
        return;
    }
    driver_admit(w, rank, iteration);
    pass_void_turns(w, rank);
    sweep(w, rank, iteration);
}

/* The instance whose turn it is has been submitted. */
static void end_turn(struct work_state *w, int rank)
{
    const struct program *p = w->p;
    int32_t *state = rank_cells(p, w->c, rank);
    const int64_t turn = state[RANK_SERVED]++;
    pass_void_turns(w, rank);
    const int passed = (int)(state[RANK_SERVED] - turn), ordered = p->ordered_tasks[rank];
    const int followers = p->turn_followers[rank * p->tasks + (int)(turn % ordered)];
    assert(
        passed <= followers || followers == ordered ||
        (state[RANK_END] >= 0 && turn_iteration(p, rank, state[RANK_SERVED]) >= state[RANK_END]));
    (void)passed, (void)followers;
}

void dataflow_complete(struct work_state *w, int rank, int task, int64_t iteration)
{
    *fired_cell(w->p, w->c, rank, task, iteration) |= DONE;
    assert(!program_ends_turn(w->p, rank, task) ||
           rank_cells(w->p, w->c, rank)[RANK_SERVED] == turn_of(w->p, rank, task, iteration));
    if (program_ends_turn(w->p, rank, task))
        end_turn(w, rank);
    const struct edge_list *fires = &w->p->fires[task];
    for (int i = 0; i < fires->count; i++)
        try_fire(w, rank, fires->items[i].task, iteration + fires->items[i].distance,
                 fires->items[i].place);
    if (program_ends_turn(w->p, rank, task))
        fire_turn(w, rank);
}
