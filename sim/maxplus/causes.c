/*
 * causes.c - see causes.h.
 *
 * Most agents need not be asked after a step whether they can go on: nothing has changed for them.
 *
 *     can step, and the step is free (machine_step_free)   nobody else changes that
 *     can step                                             asked after every step
 *     an empty stream                                      asked when something is pushed to it
 *     cannot step, few could help (machine_enablers)       watches those: asked when one has acted
 *     a driver, or many could help                         asked after every step
 *     has nothing to do ever again                         nobody could help
 *
 * Watches are links, a few per agent, each in the ring of the agent that is watched:
 *
 *     ring of thread 0:  [head] <-> [2nd link of stream 4] <-> [1st link of thread 7] <-> ...
 *
 * Why an agent could not step is asked of the state before the step, which is a second machine that takes
 * each step one later. With --enable-checks all are asked after every step, to see that none was forgotten.
 */
#include "causes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "machine/conflicts.h"
#include "plan/ops.h"

enum { NOBODY = -1, FIRST_STEPS = 1024, FEW = 4 };

/* What an agent can do next. */
struct readiness {
    bool enabled;
    int64_t from, since_ns; /* who enabled it, when */
    struct wait wait;
    int64_t last, last_ns; /* its last step */
    int watched;           /* links in use */
    int place;             /* among those who are asked after every step; NOBODY */
};

struct link {
    int next, previous;
};

struct causes {
    struct program lean; /* without the happens-before rows, which nobody asks for */
    const struct program *program;
    struct state *state;  /* after the last step */
    struct state *before; /* and before it; NULL: nobody asks for reasons */
    struct readiness *agents;
    struct link *links;         /* agent's k-th: agent * FEW + k; the heads of rings behind them */
    int *always, always_count;  /* agents that are asked after every step */
    struct agent_set due, whom; /* to be asked now; whom somebody waits for */
    struct cause_step *steps;   /* steps[n - first] is number n */
    int64_t first, count;       /* count: of all, with those that are forgotten */
    size_t cap;
};

static const struct wait no_wait = {.cause = CAUSE_NONE, .agent = NOBODY, .task = NOBODY};

/* The loader and faults have no part in a simulation. */
static bool takes_part(const struct program *p, int agent)
{
    enum agent_kind kind = p->agents[agent].kind;
    return kind == AGENT_THREAD || kind == AGENT_STREAM || kind == AGENT_COMM;
}

/* ---- who is asked when ----------------------------------------------------------------------- */

static int ring_of(const struct causes *causes, int agent)
{
    return causes->program->agent_count * FEW + agent;
}

static void watch(struct causes *causes, int agent, int whom)
{
    const int link = agent * FEW + causes->agents[agent].watched++, head = ring_of(causes, whom);
    struct link *links = causes->links;
    links[link] = (struct link){links[head].next, head};
    links[links[head].next].previous = link;
    links[head].next = link;
}

static void ask_always(struct causes *causes, int agent)
{
    causes->agents[agent].place = causes->always_count;
    causes->always[causes->always_count++] = agent;
}

/* It is not asked any more. */
static void let_go(struct causes *causes, int agent)
{
    struct readiness *ready = &causes->agents[agent];
    while (ready->watched > 0) {
        const struct link *link = &causes->links[agent * FEW + --ready->watched];
        causes->links[link->previous].next = link->next;
        causes->links[link->next].previous = link->previous;
    }
    if (ready->place == NOBODY)
        return;
    const int last = causes->always[--causes->always_count];
    causes->always[ready->place] = last;
    causes->agents[last].place = ready->place;
    ready->place = NOBODY;
}

static bool is_driver(const struct program *p, int agent)
{
    return p->agents[agent].kind == AGENT_THREAD &&
           p->threads[p->agents[agent].index].kind == THREAD_DRIVER;
}

static bool is_empty_stream(const struct causes *causes, int agent)
{
    const struct agent *who = &causes->program->agents[agent];
    return who->kind == AGENT_STREAM &&
           machine_stream_queued(causes->program, causes->state, who->index) == 0;
}

/* When is the agent to be asked again? */
static void hold_on(struct causes *causes, int agent)
{
    const struct program *p = causes->program;
    let_go(causes, agent);
    if (causes->agents[agent].enabled) {
        if (!machine_step_free(p, causes->state, agent))
            ask_always(causes, agent);
        return;
    }
    if (!takes_part(p, agent) || is_empty_stream(causes, agent))
        return;
    if (is_driver(p, agent)) {
        ask_always(causes, agent);
        return;
    }
    agent_set_clear(&causes->whom, p->agent_count);
    machine_enablers(p, causes->state, agent, &causes->whom);
    if (causes->whom.count > FEW)
        ask_always(causes, agent);
    for (int i = 0; causes->whom.count <= FEW && i < causes->whom.count; i++)
        watch(causes, agent, causes->whom.members[i]);
}

/* Whom may the step have concerned? */
static void collect(struct causes *causes, const struct cause_step *step)
{
    const struct program *p = causes->program;
    const struct op *op = step->op < 0 ? NULL : &p->ops[step->op];
    const int head = ring_of(causes, step->agent);
    agent_set_clear(&causes->due, p->agent_count);
    agent_set_add(&causes->due, step->agent);
    for (int link = causes->links[head].next; link != head; link = causes->links[link].next)
        agent_set_add(&causes->due, link / FEW);
    for (int i = 0; i < causes->always_count; i++)
        agent_set_add(&causes->due, causes->always[i]);
    if (op && step->kind == EFFECT_HOST && op_pushes(op->kind))
        agent_set_add(&causes->due, program_stream_agent(p, op->stream));
}

/* ---- opening and closing --------------------------------------------------------------------- */

static bool allocate(struct causes *causes, bool reasons)
{
    const struct program *p = causes->program;
    const size_t agents = (size_t)p->agent_count;
    causes->state = machine_state(p);
    causes->before = reasons ? machine_state(p) : NULL;
    causes->agents = calloc(agents, sizeof *causes->agents);
    causes->links = calloc(agents * (FEW + 1), sizeof *causes->links);
    causes->always = calloc(agents, sizeof *causes->always);
    bool due = agent_set_init(&causes->due, p->agent_count);
    bool whom = agent_set_init(&causes->whom, p->agent_count);
    return causes->state && (!reasons || causes->before) && causes->agents && causes->links &&
           causes->always && due && whom;
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
    if (!allocate(causes, reasons)) {
        causes_close(causes);
        return NULL;
    }
    for (int agent = 0; agent < p->agent_count; agent++) {
        const int head = ring_of(causes, agent);
        bool enabled = takes_part(p, agent) && machine_agent_enabled(p, causes->state, agent);
        causes->links[head] = (struct link){head, head};
        causes->agents[agent] = (struct readiness){
            .enabled = enabled, .from = NOBODY, .wait = no_wait, .last = NOBODY, .place = NOBODY};
    }
    for (int agent = 0; agent < p->agent_count; agent++)
        hold_on(causes, agent);
    return causes;
}

void causes_close(struct causes *causes)
{
    if (!causes)
        return;
    machine_free(causes->state);
    machine_free(causes->before);
    free(causes->agents);
    free(causes->links);
    free(causes->always);
    agent_set_fini(&causes->due);
    agent_set_fini(&causes->whom);
    free(causes->steps);
    free(causes);
}

/* ---- steps ----------------------------------------------------------------------------------- */

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
    const bool changed = enabled != ready->enabled;
    ready->enabled = enabled;
    if (changed || agent == actor || ready->place == NOBODY)
        hold_on(causes, agent);
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

#ifdef SWSIM_CHECKS
static bool nobody_forgotten(const struct causes *causes)
{
    const struct program *p = causes->program;
    for (int agent = 0; agent < p->agent_count; agent++)
        if (takes_part(p, agent) &&
            causes->agents[agent].enabled != (machine_agent_enabled(p, causes->state, agent) > 0))
            return false;
    return true;
}
#endif

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
    collect(causes, &step);
    for (int i = 0; i < causes->due.count; i++)
        look_at(causes, causes->due.members[i], transition.agent, number, time_ns);
#ifdef SWSIM_CHECKS
    assert(nobody_forgotten(causes));
#endif
    if (causes->before)
        machine_step(p, causes->before, transition, NULL);
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

bool causes_can_step(const struct causes *causes, int agent)
{
    return causes->agents[agent].enabled;
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
