/* SPDX-License-Identifier: Apache-2.0 */
/* policy.c - see policy.h. */
#include "policy.h"

#include <stdlib.h>
#include <string.h>

#include "driver.h"

struct policy {
    const struct program *program;
    struct state *state;
    policy_hand_out *hand_out;
    void *arg;
};

struct policy *policy_open(const struct program *program, policy_hand_out *hand_out, void *arg)
{
    struct policy *policy = malloc(sizeof *policy);
    struct state *state = machine_state(program);
    if (!policy || !state) {
        free(policy);
        machine_free(state);
        return NULL;
    }
    *policy = (struct policy){program, state, hand_out, arg};
    return policy;
}

void policy_close(struct policy *policy)
{
    if (!policy)
        return;
    machine_free(policy->state);
    free(policy);
}

enum policy_next policy_next(const struct policy *policy, int rank, int64_t *iteration)
{
    const struct program *p = policy->program;
    int32_t *c = policy->state->cells;
    switch (thread_cells(p, c, p->driver_thread[rank])[THREAD_PC]) {
    case PHASE_ADMIT:
        *iteration = c[0];
        return driver_asks_for_data(p, c, rank) ? POLICY_FETCH : POLICY_ENQUEUE;
    case PHASE_RETIRE: *iteration = rank_cells(p, c, rank)[RANK_OLDEST]; return POLICY_RETIRE;
    default: return POLICY_END;
    }
}

bool policy_dependence_applies(const struct policy *policy, int rank, const struct op *op,
                               int64_t iteration)
{
    return dependence_applies(policy->program, policy->state->cells, rank, op, iteration);
}

int64_t policy_admitted(const struct policy *policy, int rank)
{
    return rank_cells(policy->program, policy->state->cells, rank)[RANK_ADMITTED];
}

int64_t policy_oldest(const struct policy *policy, int rank)
{
    return rank_cells(policy->program, policy->state->cells, rank)[RANK_OLDEST];
}

void policy_has_data(struct policy *policy)
{
    policy->state->cells[0]++;
}

void policy_end_data(struct policy *policy, int rank, int64_t iterations)
{
    machine_end_data(policy->program, policy->state, rank, iterations);
}

/* Move new instances from a worker's queue in the state to that of the runtime. */
static void policy_deliver(struct policy *policy, int worker)
{
    const struct program *p = policy->program;
    int32_t *c = policy->state->cells;
    int32_t *thread = thread_cells(p, c, worker);
    for (int k = 0; k < thread[THREAD_COUNT]; k++) {
        const int32_t *entry = entry_cells(p, c, worker, k);
        policy->hand_out(policy->arg, worker, entry[ENTRY_TASK], entry[ENTRY_ITER],
                         entry[ENTRY_TICKET]);
    }
    thread[THREAD_COUNT] = thread[THREAD_FIRST] = 0;
}

/* Of all workers of a rank, which stand behind its driver. */
static void deliver_all(struct policy *policy, int rank)
{
    const struct program *p = policy->program;
    for (int t = p->driver_thread[rank] + 1;
         t < p->thread_count && p->threads[t].rank == rank && p->threads[t].kind == THREAD_WORKER;
         t++)
        policy_deliver(policy, t);
}

static void driver_acts(struct policy *policy, int rank)
{
    struct effect effect = {0};
    struct work_state w = {policy->program, policy->state->cells, &effect, NULL};
    driver_step(&w, rank);
    deliver_all(policy, rank);
}

void policy_enqueue(struct policy *policy, int rank)
{
    driver_acts(policy, rank);
}

void policy_retire(struct policy *policy, int rank)
{
    const struct program *p = policy->program;
    int32_t *c = policy->state->cells;
    int32_t *window = window_cells(p, c, rank, rank_cells(p, c, rank)[RANK_OLDEST]);
    memset(window, 0, WINDOW_CELLS * sizeof *window);
    driver_acts(policy, rank);
}

void policy_complete(struct policy *policy, int rank, int task, int64_t iteration)
{
    struct effect effect = {0};
    struct work_state w = {policy->program, policy->state->cells, &effect, NULL};
    if (policy->program->driver != DRIVER_DATAFLOW)
        return;
    dataflow_complete(&w, rank, task, iteration);
    for (int k = 0, fired; (fired = program_may_fire(policy->program, rank, task, k)) >= 0; k++)
        policy_deliver(policy, policy->program->worker[rank * policy->program->tasks + fired]);
}
