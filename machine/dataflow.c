/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dataflow.c - the data-flow driver: an instance is fired when
 *
 *     1. it has not been fired,              2. fewer than max_depth instances of its task are
 * pending
 *     3. its iteration has a context,        4. its intra-iteration dependences are submitted,
 *     5. its inter-iteration dependences are submitted.
 *
 * Condition 2 follows from 3, since at most max_depth iterations have a context, and has no test of
 * its own. Stages are ignored.
 */
#include "driver.h"

/* Has `task` of an iteration been submitted, as far as the driver remembers? */
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

static void try_fire(struct work_state *w, int rank, int task, int64_t iteration)
{
    const struct program *p = w->p;
    int32_t *state = rank_cells(p, w->c, rank);
    if (iteration < state[RANK_OLDEST] || iteration >= state[RANK_ADMITTED])
        return;
    int32_t *fired = fired_cell(p, w->c, rank, task, iteration);
    if (*fired & FIRED)
        return;
    const struct edge_list *depends = &p->depends[task];
    for (int i = 0; i < depends->count; i++)
        if (!submitted(p, w->c, rank, depends->items[i].task,
                       iteration - depends->items[i].distance))
            return;
    *fired |= FIRED;
    int64_t ticket = 0;
    int position = p->ticket_position[rank * p->tasks + task];
    if (position >= 0)
        ticket = p->plan->pipeline.ticket_at == TICKET_AT_FIRE
                     ? state[RANK_NEXT_TICKET]++
                     : iteration * p->ordered_tasks[rank] + position;
    driver_hand_out(w, rank, task, iteration, ticket);
}

static void sweep(struct work_state *w, int rank, int64_t iteration)
{
    for (int k = 0; k < w->p->tasks; k++)
        try_fire(w, rank, w->p->order[rank][k], iteration);
}

void dataflow_admit(struct work_state *w, int rank)
{
    int64_t iteration = rank_cells(w->p, w->c, rank)[RANK_ADMITTED];
    driver_admit(w, rank, iteration);
    w->e->iteration = iteration;
    sweep(w, rank, iteration);
}

void dataflow_complete(struct work_state *w, int rank, int task, int64_t iteration)
{
    *fired_cell(w->p, w->c, rank, task, iteration) |= DONE;
    const struct edge_list *fires = &w->p->fires[task];
    for (int i = 0; i < fires->count; i++)
        try_fire(w, rank, fires->items[i].task, iteration + fires->items[i].distance);
}

void dataflow_retired(struct work_state *w, int rank)
{
    const int32_t *state = rank_cells(w->p, w->c, rank);
    for (int64_t i = state[RANK_OLDEST]; i < state[RANK_ADMITTED]; i++)
        sweep(w, rank, i);
}
