/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.c - the clock-driven driver: period p hands out (t, p - stage(t)) for every task t in
 * enqueue order. Fill enqueues periods 0 .. depth-1; then every retired iteration is followed by
 * one period.
 */
#include "driver.h"

/* The youngest iteration the next period touches. */
int64_t clock_newest(const struct program *p, const int32_t *rank_state)
{
    return rank_state[RANK_PERIOD] - p->min_stage;
}

void clock_enqueue(struct work_state *w, int rank)
{
    const struct program *p = w->p;
    int32_t *state = rank_cells(p, w->c, rank);
    int64_t newest = clock_newest(p, state);
    bool exists = state[RANK_END] < 0 || newest < state[RANK_END];
    if (exists && newest >= state[RANK_ADMITTED])
        driver_admit(w, rank, newest);
    for (int k = 0; k < p->tasks; k++) {
        int task = p->order[rank][k];
        int64_t iteration = state[RANK_PERIOD] - plan_task(p->plan, rank, task)->stage;
        if (iteration < 0 || iteration >= state[RANK_ADMITTED])
            continue;
        bool ordered = p->ticket_position[rank * p->tasks + task] >= 0;
        driver_hand_out(w, rank, task, iteration, ordered ? state[RANK_NEXT_TICKET]++ : 0);
    }
    w->e->iteration = state[RANK_PERIOD]++;
    if (state[RANK_PERIOD] >= p->periods)
        thread_cells(p, w->c, p->driver_thread[rank])[THREAD_PC] = PHASE_RETIRE;
}
