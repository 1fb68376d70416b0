/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.c - see gate.h: a list, a place in it, and a condition an agent: a step wakes the threads of the agent whose turn is
 * next.
 */
#include "gate.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "machine/machine.h"
#include "base/assert_index.h"

struct turn {
    int agent, choice;
    int parties; /* that must leave before it is over */
};

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t *moved; /* [agents] */
    int agents;
    struct turn *turns;
    size_t count, at; /* at == count: open */
    int left;         /* parties that have left turns[at] */
    bool released;
};

/* ---- open and close -------------------------------------------------------------------------- */

static int parties_of(const struct program *p, int agent)
{
    ASSERT_INDEX(agent, p->agent_count);
    const struct agent *desc = &p->agents[agent];
    return desc->kind == AGENT_COMM ? p->comms[desc->index].count : 1;
}

/* True if the machine could take this step now. */
static bool gate_is_possible(const struct program *p, const struct state *state,
                             struct transition step)
{
    return step.agent > 0 && step.agent < p->agent_count &&
           machine_agent_enabled(p, state, step.agent) > 0;
}

/* True if it is the choice of an allocator, or of a copy, other than that of a run. A branch may be chosen. */
static bool is_never_chosen(const struct program *p, const struct state *state,
                            struct transition step)
{
    int64_t iteration;
    const int op = step.choice ? machine_current_op(p, state, step.agent, &iteration) : -1;
    return op >= 0 && op_may_sync(&p->ops[op]);
}

/* Take the steps through the machine once: what it cannot do, no device shall be forced to. */
static enum status gate_list_turns(struct gate *gate, const struct program *p, struct state *state,
                                   const struct transition *steps, size_t count, struct diag *diag)
{
    for (size_t i = 0; i < count; i++) {
        if (steps[i].agent == 0) /* the data loader */
            continue;
        if (!gate_is_possible(p, state, steps[i]))
            return diag_error(diag, STATUS_INPUT,
                              "the witness is no run of %s: its step %zu is not possible there",
                              p->plan->name, i + 1);
        if (is_never_chosen(p, state, steps[i]))
            return diag_error(diag, STATUS_USAGE,
                              "%s: a witness in which an allocation waits for the device, or a "
                              "copy with pageable memory is back before it has ended, cannot be "
                              "replayed: swrun allocates before the run, and waits for such copies",
                              p->plan->name);
        machine_step(p, state, steps[i], NULL);
        gate->turns[gate->count++] =
            (struct turn){steps[i].agent, steps[i].choice, parties_of(p, steps[i].agent)};
    }
    return STATUS_OK;
}

enum status gate_open(const struct program *program, const struct transition *steps, size_t count,
                      struct gate **out, struct diag *diag)
{
    struct gate *gate = calloc(1, sizeof *gate);
    struct state *state = machine_state(program);
    struct turn *turns = calloc(count + 1, sizeof *turns);
    pthread_cond_t *moved = calloc((size_t)program->agent_count, sizeof *moved);
    if (!gate || !state || !turns || !moved) {
        free(gate);
        free(moved);
        free(turns);
        machine_free(state);
        return diag_no_memory(diag);
    }
    gate->turns = turns;
    gate->moved = moved;
    gate->agents = program->agent_count;
    pthread_mutex_init(&gate->lock, NULL); /* with default attributes these cannot fail */
    for (int agent = 0; agent < gate->agents; agent++)
        pthread_cond_init(&gate->moved[agent], NULL);
    enum status status = gate_list_turns(gate, program, state, steps, count, diag);
    machine_free(state);
    if (status)
        gate_close(gate);
    else
        *out = gate;
    return status;
}

void gate_close(struct gate *gate)
{
    if (!gate)
        return;
    for (int agent = 0; agent < gate->agents; agent++)
        pthread_cond_destroy(&gate->moved[agent]);
    pthread_mutex_destroy(&gate->lock);
    free(gate->moved);
    free(gate->turns);
    free(gate);
}

/* ---- turns ----------------------------------------------------------------------------------- */

static bool gate_is_open(const struct gate *gate)
{
    return gate->released || gate->at == gate->count;
}

static void wake_all(struct gate *gate)
{
    for (int agent = 0; agent < gate->agents; agent++)
        pthread_cond_broadcast(&gate->moved[agent]);
}

void gate_wait(struct gate *gate, int agent)
{
    ASSERT_INDEX(agent, gate->agents);
    pthread_mutex_lock(&gate->lock);
    while (!gate_is_open(gate) && gate->turns[gate->at].agent != agent)
        pthread_cond_wait(&gate->moved[agent], &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

void gate_pass(struct gate *gate, int agent)
{
    pthread_mutex_lock(&gate->lock);
    assert(gate->at <= gate->count);
    assert(gate->at == gate->count || gate->left < gate->turns[gate->at].parties);
    if (!gate_is_open(gate) && gate->turns[gate->at].agent == agent &&
        ++gate->left == gate->turns[gate->at].parties) {
        gate->left = 0;
        gate->at++;
        if (gate->at == gate->count)
            wake_all(gate);
        else /* the members of a communicator wait for its turn together */
            pthread_cond_broadcast(&gate->moved[gate->turns[gate->at].agent]);
    }
    pthread_mutex_unlock(&gate->lock);
}

void gate_release(struct gate *gate)
{
    if (!gate)
        return;
    pthread_mutex_lock(&gate->lock);
    gate->released = true;
    wake_all(gate);
    pthread_mutex_unlock(&gate->lock);
}

size_t gate_taken(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    size_t taken = gate->at;
    pthread_mutex_unlock(&gate->lock);
    return taken;
}

size_t gate_steps(const struct gate *gate)
{
    return gate->count;
}

int gate_choice(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    int choice = gate->at == gate->count ? -1 : gate->turns[gate->at].choice;
    pthread_mutex_unlock(&gate->lock);
    return choice;
}

int gate_turn(struct gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    int agent = gate->at == gate->count ? -1 : gate->turns[gate->at].agent;
    pthread_mutex_unlock(&gate->lock);
    return agent;
}
