/* causes.c - see causes.h. */
#include "sim/causes.h"

#include <stdlib.h>
#include <string.h>

enum { NOBODY = -1, FIRST_STEPS = 1024 };

/* What an agent can do next. */
struct readiness {
    bool enabled;
    int64_t from, since_ns; /* who enabled it, when */
    struct wait wait;
    int64_t last, last_ns; /* its last step */
};

struct causes {
    struct program lean; /* without the happens-before rows, which nobody asks for */
    const struct program *program;
    struct state *state,
        *before; /* after and before the last step; NULL: nobody asks for reasons */
    struct readiness *agents;
    struct cause_step *steps; /* steps[n - first] is number n */
    int64_t first, count;     /* count: of all, with those that are forgotten */
    size_t cap;
};

static const struct wait no_wait = {.cause = CAUSE_NONE, .agent = NOBODY, .task = NOBODY};

/* The loader and faults have no part in a simulation. */
static bool takes_part(const struct program *p, int agent)
{
    enum agent_kind kind = p->agents[agent].kind;
    return kind == AGENT_THREAD || kind == AGENT_STREAM || kind == AGENT_COMM;
}

struct causes *causes_open(const struct program *program, bool reasons)
{
    struct causes *causes = calloc(1, sizeof *causes);
    if (!causes)
        return NULL;
    causes->lean = *program;
    causes->lean.at.row_words = 0;
    causes->lean.at.rows = 0;
    causes->lean.at.bytes = causes->lean.at.rows_at;
    const struct program *p = causes->program = &causes->lean;
    causes->state = machine_state(p);
    causes->before = reasons ? machine_state(p) : NULL;
    causes->agents = calloc((size_t)p->agent_count, sizeof *causes->agents);
    if (!causes->state || (reasons && !causes->before) || !causes->agents) {
        causes_close(causes);
        return NULL;
    }
    for (int agent = 0; agent < p->agent_count; agent++) {
        bool enabled = takes_part(p, agent) && machine_agent_enabled(p, causes->state, agent);
        causes->agents[agent] = (struct readiness){enabled, NOBODY, 0, no_wait, NOBODY, 0};
    }
    return causes;
}

void causes_close(struct causes *causes)
{
    if (!causes)
        return;
    machine_free(causes->state);
    machine_free(causes->before);
    free(causes->agents);
    free(causes->steps);
    free(causes);
}

static bool add_step(struct causes *causes, const struct cause_step *step)
{
    size_t kept = (size_t)(causes->count - causes->first);
    if (kept == causes->cap) {
        size_t cap = causes->cap ? 2 * causes->cap : FIRST_STEPS;
        struct cause_step *steps = realloc(causes->steps, cap * sizeof *steps);
        if (!steps)
            return false;
        causes->steps = steps;
        causes->cap = cap;
    }
    causes->steps[kept] = *step;
    causes->count++;
    return true;
}

void causes_forget(struct causes *causes, int64_t before)
{
    int64_t gone = before - causes->first;
    if (gone <= (int64_t)causes->cap / 2)
        return; /* moving the others is for later */
    memmove(causes->steps, causes->steps + gone,
            (size_t)(causes->count - before) * sizeof *causes->steps);
    causes->first = before;
}

/* All members of a communicator have started: had one to wait for the last? */
static struct wait peers_wait(const struct causes *causes, int comm, int last, int64_t now_ns)
{
    const struct program *p = causes->program;
    for (int s = 0; s < p->stream_count; s++) {
        int agent = program_stream_agent(p, s);
        int64_t iteration;
        int op = machine_current_op(p, causes->state, agent, &iteration);
        if (op < 0 || p->ops[op].comm != comm || !machine_stream_running(p, causes->state, s))
            continue;
        if (causes->agents[agent].last_ns < now_ns)
            return (struct wait){.cause = CAUSE_PEER, .agent = last, .task = NOBODY};
    }
    return no_wait;
}

/* The step `number`, of `actor`, has been taken: who can step now that could not before? */
static void look_at(struct causes *causes, int agent, int actor, int64_t number, int64_t now_ns)
{
    const struct program *p = causes->program;
    struct readiness *ready = &causes->agents[agent];
    bool enabled = takes_part(p, agent) && machine_agent_enabled(p, causes->state, agent);
    bool news = enabled && (!ready->enabled || agent == actor);
    ready->enabled = enabled;
    if (!news)
        return;
    ready->from = number;
    ready->since_ns = now_ns;
    ready->wait = no_wait;
    if (p->agents[agent].kind == AGENT_COMM && causes->before)
        ready->wait = peers_wait(causes, p->agents[agent].index, actor, now_ns);
    else if (agent != actor && causes->before)
        machine_why(p, causes->before, agent, &ready->wait);
}

/* A callback whose own time is longer than its body ends when that is over. */
static void end_of_callback(const struct causes *causes, struct cause_step *step)
{
    const struct program *p = causes->program;
    if (step->op < 0 || p->ops[step->op].kind != OP_CALLBACK || step->kind != EFFECT_FINISH ||
        step->time_ns == step->enabled_ns)
        return;
    step->from = causes->agents[step->agent].last;
    step->enabled_ns = causes->agents[step->agent].last_ns;
    step->wait = no_wait;
}

bool causes_take(struct causes *causes, int64_t time_ns, struct transition transition)
{
    const struct program *p = causes->program;
    struct readiness *ready = &causes->agents[transition.agent];
    struct effect effect;
    if (causes->before)
        machine_copy(p, causes->before, causes->state);
    machine_step(p, causes->state, transition, &effect);
    struct cause_step step = {.time_ns = time_ns,
                              .enabled_ns = ready->since_ns,
                              .from = ready->from,
                              .agent = transition.agent,
                              .op = effect.op,
                              .kind = effect.kind,
                              .iteration = effect.iteration,
                              .violated = effect.violated,
                              .wait = ready->wait};
    end_of_callback(causes, &step);
    int64_t number = causes->count;
    if (!add_step(causes, &step))
        return false;
    ready->last = number;
    ready->last_ns = time_ns;
    for (int agent = 0; agent < p->agent_count; agent++)
        look_at(causes, agent, transition.agent, number, time_ns);
    return true;
}

int64_t causes_count(const struct causes *causes)
{
    return causes->count;
}

const struct cause_step *causes_step(const struct causes *causes, int64_t number)
{
    return &causes->steps[number - causes->first];
}

const struct state *causes_state(const struct causes *causes)
{
    return causes->state;
}

int64_t causes_enabled_since(const struct causes *causes, int agent)
{
    const struct program *p = causes->program;
    const struct readiness *ready = &causes->agents[agent];
    if (p->agents[agent].kind == AGENT_STREAM && ready->last != NOBODY &&
        machine_stream_running(p, causes->state, p->agents[agent].index))
        return ready->last_ns;
    return ready->enabled ? ready->since_ns : -1;
}

int64_t causes_enabled_by(const struct causes *causes, int agent)
{
    return causes->agents[agent].enabled ? causes->agents[agent].from : NOBODY;
}

const struct program *causes_program(const struct causes *causes)
{
    return causes->program;
}
