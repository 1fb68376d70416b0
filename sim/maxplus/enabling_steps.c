/* SPDX-License-Identifier: Apache-2.0 */
/*
 * enabling_steps.c - see enabling_steps.h. The ready set (machine/ready.h) tells which agents a step has
 * enabled.
 *
 * Why an agent could not step is asked of the state before the step, which is a second machine that takes
 * each step one later.
 */
#include "enabling_steps.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "machine/ready.h"
#include "plan/ops.h"

enum { NONE = -1 };

/* When an agent became able to step, and its last step. */
struct agent_record {
    int64_t from, since_ns;
    struct wait wait;
    int64_t last, last_ns;
};

struct enabling_steps {
    struct program lean; /* without the happens-before rows, which are not needed */
    const struct program *program;
    struct state *state;  /* after the last step */
    struct state *before; /* and before it; NULL: without reasons */
    struct ready_set ready;
    struct agent_record *agents;
    struct enabled_step *steps; /* steps[n - first] is number n */
    int64_t first, count;       /* count: of all, with those that are forgotten */
    size_t cap;
};

static const struct wait no_wait = {.cause = CAUSE_NONE, .agent = NONE, .task = NONE};

/* ---- opening and closing --------------------------------------------------------------------- */

struct enabling_steps *enabling_steps_open(const struct program *program, bool reasons)
{
    struct enabling_steps *run = calloc(1, sizeof *run);
    if (!run)
        return NULL;
    run->lean = *program;
    layout_leave_out_rows(&run->lean.at);
    const struct program *p = run->program = &run->lean;
    run->state = machine_state(p);
    run->before = reasons ? machine_state(p) : NULL;
    run->agents = calloc((size_t)p->agent_count, sizeof *run->agents);
    bool ready = ready_init(&run->ready, p, false);
    if (!run->state || (reasons && !run->before) || !run->agents || !ready) {
        enabling_steps_close(run);
        return NULL;
    }
    for (int agent = 0; agent < p->agent_count; agent++)
        run->agents[agent] = (struct agent_record){.from = NONE, .wait = no_wait, .last = NONE};
    ready_begin(&run->ready, run->state);
    return run;
}

void enabling_steps_close(struct enabling_steps *run)
{
    if (!run)
        return;
    machine_free(run->state);
    machine_free(run->before);
    free(run->agents);
    ready_fini(&run->ready);
    free(run->steps);
    free(run);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static bool enabling_steps_add_step(struct enabling_steps *run, const struct enabled_step *step)
{
    size_t kept = (size_t)(run->count - run->first);
    if (!ARRAY_GROW(run->steps, kept, run->cap))
        return false;
    run->steps[kept] = *step;
    run->count++;
    return true;
}

void enabling_steps_forget(struct enabling_steps *run, int64_t before)
{
    int64_t gone = before - run->first;
    assert(before <= run->count);
    if (gone <= (int64_t)run->cap / 2)
        return; /* the others are moved in larger pieces */
    memmove(run->steps, run->steps + gone, (size_t)(run->count - before) * sizeof *run->steps);
    run->first = before;
}

/* All members of a communicator have started: the wait of one of them for the last. */
static struct wait peers_wait(const struct enabling_steps *run, int comm, int last, int64_t now_ns)
{
    const struct program *p = run->program;
    for (int s = 0; s < p->stream_count; s++) {
        int agent = program_stream_agent(p, s);
        int64_t iteration;
        int op = machine_current_op(p, run->state, agent, &iteration);
        if (op < 0 || p->ops[op].comm != comm || !machine_stream_running(p, run->state, s))
            continue;
        if (run->agents[agent].last_ns < now_ns)
            return (struct wait){.cause = CAUSE_PEER, .agent = last, .task = NONE};
    }
    return no_wait;
}

/* The step `number`, of `actor`, has made the agent able to step. */
static void note_enabled(struct enabling_steps *run, int agent, int actor, int64_t number,
                         int64_t now_ns)
{
    const struct program *p = run->program;
    struct agent_record *record = &run->agents[agent];
    assert(number > record->from && now_ns >= record->since_ns);
    record->from = number;
    record->since_ns = now_ns;
    record->wait = no_wait;
    if (p->agents[agent].kind == AGENT_COMM && run->before)
        record->wait = peers_wait(run, p->agents[agent].index, actor, now_ns);
    else if (agent != actor && run->before)
        machine_why(p, run->before, agent, &record->wait);
}

/* A callback whose own time is longer than its body ends when that is over. */
static void end_of_callback(const struct enabling_steps *run, struct enabled_step *step)
{
    const struct program *p = run->program;
    if (step->op < 0 || !op_calls_host(p->ops[step->op].kind) || step->kind != EFFECT_FINISH ||
        step->time_ns == step->enabled_ns)
        return;
    step->from = run->agents[step->agent].last;
    step->enabled_ns = run->agents[step->agent].last_ns;
    step->wait = no_wait;
}

bool enabling_steps_take(struct enabling_steps *run, int64_t time_ns, struct transition transition)
{
    const struct program *p = run->program;
    struct agent_record *record = &run->agents[transition.agent];
    struct effect effect;
    ready_acts(&run->ready, run->state, transition.agent);
    machine_step(p, run->state, transition, &effect);
    struct enabled_step step = {.time_ns = time_ns,
                                .enabled_ns = record->since_ns,
                                .from = record->from,
                                .agent = transition.agent,
                                .op = effect.op,
                                .kind = effect.kind,
                                .iteration = effect.iteration,
                                .violated = effect.violated,
                                .wait = record->wait};
    end_of_callback(run, &step);
    assert(step.enabled_ns <= time_ns && step.from < run->count);
    int64_t number = run->count;
    if (!enabling_steps_add_step(run, &step))
        return false;
    record->last = number;
    record->last_ns = time_ns;
    ready_acted(&run->ready, run->state);
    for (int i = 0; i < run->ready.news_count; i++)
        note_enabled(run, run->ready.news[i], transition.agent, number, time_ns);
    if (run->before)
        machine_step(p, run->before, transition, NULL);
    return true;
}

int64_t enabling_steps_count(const struct enabling_steps *run)
{
    return run->count;
}

const struct enabled_step *enabling_steps_step(const struct enabling_steps *run, int64_t number)
{
    assert(number >= run->first && number < run->count);
    return &run->steps[number - run->first];
}

const struct state *enabling_steps_state(const struct enabling_steps *run)
{
    return run->state;
}

bool enabling_steps_can_step(const struct enabling_steps *run, int agent)
{
    return run->ready.readiness[agent] >= READY_CHOICE;
}

int64_t enabling_steps_enabled_since(const struct enabling_steps *run, int agent)
{
    const struct program *p = run->program;
    const struct agent_record *record = &run->agents[agent];
    if (p->agents[agent].kind == AGENT_STREAM && record->last != NONE &&
        machine_stream_running(p, run->state, p->agents[agent].index))
        return record->last_ns;
    return enabling_steps_can_step(run, agent) ? record->since_ns : -1;
}

int64_t enabling_steps_enabled_by(const struct enabling_steps *run, int agent)
{
    return enabling_steps_can_step(run, agent) ? run->agents[agent].from : NONE;
}

const struct program *enabling_steps_program(const struct enabling_steps *run)
{
    return run->program;
}
