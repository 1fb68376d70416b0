/* SPDX-License-Identifier: Apache-2.0 */
/* ready.c - see ready.h. */
#include "ready.h"

#include <assert.h>
#include <stdlib.h>

#include "machine_internal.h"

enum { NONE = -1, WATCHES_PER_AGENT = 4 }; /* most agents wait for one other */

/* ---- watching -------------------------------------------------------------------------------- */

/* False: all places are taken. */
static bool ready_watch(struct ready_set *set, int watcher, int watched)
{
    int at = set->unused;
    if (at < 0)
        return false;
    struct watching *watch = &set->watches[at];
    set->unused = watch->next_own;
    *watch = (struct watching){watcher, watched, set->head[watched], NONE, set->own[watcher]};
    if (watch->next >= 0)
        set->watches[watch->next].previous = at;
    set->head[watched] = set->own[watcher] = at;
    return true;
}

static void ask_always(struct ready_set *set, int agent)
{
    set->place[agent] = set->always_count;
    set->always[set->always_count++] = agent;
}

/* The agent watches no other, and is not asked after every step. */
static void unwatch_all(struct ready_set *set, int agent)
{
    while (set->own[agent] >= 0) {
        int at = set->own[agent];
        struct watching *watch = &set->watches[at];
        if (watch->previous >= 0)
            set->watches[watch->previous].next = watch->next;
        else
            set->head[watch->watched] = watch->next;
        if (watch->next >= 0)
            set->watches[watch->next].previous = watch->previous;
        set->own[agent] = watch->next_own;
        watch->next_own = set->unused;
        set->unused = at;
    }
    if (set->place[agent] >= 0) {
        int last = set->always[--set->always_count];
        set->always[set->place[agent]] = last;
        set->place[last] = set->place[agent];
        set->place[agent] = NONE;
    }
}

/* A communicator comes to be able to step only where a stream starts a collective on it: started_on asks it then. So it watches
   nobody, unless it may be aborted. */
static bool is_told(const struct ready_set *set, int agent)
{
    return set->program->agents[agent].kind == AGENT_COMM && !set->program->has_aborts;
}

/* The communicator of the collective that the agent, a stream, is in; NONE: it is in none. */
static int started_on(const struct ready_set *set, const struct state *state, int agent)
{
    const struct program *p = set->program;
    const struct agent *desc = &p->agents[agent];
    int64_t iteration;
    if (desc->kind != AGENT_STREAM || !machine_stream_running(p, state, desc->index))
        return NONE;
    const struct op *op = &p->ops[machine_current_op(p, state, agent, &iteration)];
    return op_ends_together(op->kind) ? program_comm_agent(p, op->comm) : NONE;
}

static void watch_enablers(struct ready_set *set, const struct state *state, int agent)
{
    bool watched = true;
    if (is_told(set, agent))
        return;
    agent_set_clear(&set->enablers, set->program->agent_count);
    machine_watched(set->program, state, agent, &set->enablers);
    for (int i = 0; watched && i < set->enablers.count; i++)
        if (set->enablers.members[i] != agent)
            watched = ready_watch(set, agent, set->enablers.members[i]);
    if (watched)
        return;
    unwatch_all(set, agent);
    ask_always(set, agent);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static enum readiness ready_ask(const struct ready_set *set, const struct state *state, int agent)
{
    const struct program *p = set->program;
    const struct agent *desc = &p->agents[agent];
    if (machine_agent_enabled(p, state, agent))
        return machine_step_free(p, state, agent) ? READY_FREE : READY_CHOICE;
    return desc->kind == AGENT_STREAM && machine_stream_queued(p, state, desc->index) == 0
               ? READY_EMPTY
               : READY_BLOCKED;
}

/* A stream that has moved on: those that watch it are asked as well. It may have moved by a step of another agent. */
static void pass_on(struct ready_set *set, const struct state *state, int agent)
{
    const struct agent *desc = &set->program->agents[agent];
    if (desc->kind != AGENT_STREAM)
        return;
    int32_t done = machine_stream_done(set->program, state, desc->index);
    if (done == set->done[agent])
        return;
    set->done[agent] = done;
    for (int at = set->head[agent]; at >= 0; at = set->watches[at].next)
        agent_set_add(&set->due, set->watches[at].watcher);
}

static void ready_look_at(struct ready_set *set, const struct state *state, int agent)
{
    pass_on(set, state, agent);
    enum readiness before = set->readiness[agent], now = ready_ask(set, state, agent);
    set->readiness[agent] = now;
    if (now >= READY_CHOICE && (before < READY_CHOICE || agent == set->acting))
        set->news[set->news_count++] = agent;
    if (set->place[agent] >= 0 && now == before)
        return;
    if (set->own[agent] >= 0 || set->place[agent] >= 0)
        unwatch_all(set, agent);
    if (now == READY_BLOCKED)
        watch_enablers(set, state, agent);
    if (now == READY_CHOICE && !set->free_only)
        ask_always(set, agent);
}

void ready_begin(struct ready_set *set, const struct state *state)
{
    const struct program *p = set->program;
    int places = WATCHES_PER_AGENT * p->agent_count;
    for (int agent = 0; agent < p->agent_count; agent++) {
        set->head[agent] = set->own[agent] = set->place[agent] = NONE;
        set->readiness[agent] = READY_BLOCKED;
        set->done[agent] = 0;
    }
    agent_set_clear(&set->due, p->agent_count);
    for (int at = 0; at < places; at++)
        set->watches[at].next_own = at + 1 < places ? at + 1 : NONE;
    set->unused = set->always_count = set->news_count = 0;
    set->acting = NONE;
    for (int agent = 1; agent < p->agent_count; agent++)
        ready_look_at(set, state, agent);
}

void ready_acts(struct ready_set *set, const struct state *state, int agent)
{
    const struct program *p = set->program;
    const struct agent *desc = &p->agents[agent];
    const struct op *op =
        desc->kind == AGENT_THREAD ? machine_thread_op(p, state->cells, desc->index) : NULL;
    set->acting = agent;
    set->gives = !op || op->kind != OP_AWAIT || p->threads[desc->index].kind != THREAD_HOST;
    set->fed = op && op_pushes(op->kind) ? op->stream : NONE;
}

#ifdef SWSIM_CHECKS
static bool is_true(const struct ready_set *set, const struct state *state)
{
    for (int agent = 1; agent < set->program->agent_count; agent++)
        if (!(set->free_only && set->readiness[agent] == READY_CHOICE) &&
            set->readiness[agent] != ready_ask(set, state, agent))
            return false;
    return true;
}
#endif

void ready_acted(struct ready_set *set, const struct state *state)
{
    const struct program *p = set->program;
    const int stream = set->fed < 0 ? NONE : program_stream_agent(p, set->fed),
              comm = started_on(set, state, set->acting);
    agent_set_clear(&set->due, p->agent_count);
    for (int at = set->gives ? set->head[set->acting] : NONE; at >= 0; at = set->watches[at].next)
        agent_set_add(&set->due, set->watches[at].watcher);
    if (stream >= 0 && set->readiness[stream] == READY_EMPTY)
        agent_set_add(&set->due, stream);
    if (comm >= 0)
        agent_set_add(&set->due, comm);
    for (int i = 0; i < set->always_count; i++)
        if (set->always[i] != set->acting)
            agent_set_add(&set->due, set->always[i]);
    agent_set_add(&set->due, set->acting);
    set->news_count = 0;
    for (int i = 0; i < set->due.count; i++)
        ready_look_at(set, state, set->due.members[i]);
#ifdef SWSIM_CHECKS
    assert(is_true(set, state));
#endif
}

/* ---- memory ---------------------------------------------------------------------------------- */

bool ready_init(struct ready_set *set, const struct program *program, bool free_only)
{
    size_t agents = (size_t)program->agent_count;
    *set = (struct ready_set){.program = program, .free_only = free_only};
    set->readiness = calloc(agents, sizeof *set->readiness);
    set->news = calloc(agents, sizeof *set->news);
    set->done = calloc(agents, sizeof *set->done);
    set->watches = calloc(WATCHES_PER_AGENT * agents, sizeof *set->watches);
    set->head = calloc(agents, sizeof *set->head);
    set->own = calloc(agents, sizeof *set->own);
    set->always = calloc(agents, sizeof *set->always);
    set->place = calloc(agents, sizeof *set->place);
    bool sets = agent_set_init(&set->due, program->agent_count);
    sets &= agent_set_init(&set->enablers, program->agent_count);
    return sets && set->readiness && set->news && set->done && set->watches && set->head &&
           set->own && set->always && set->place;
}

void ready_fini(struct ready_set *set)
{
    free(set->readiness);
    free(set->news);
    free(set->done);
    free(set->watches);
    free(set->head);
    free(set->own);
    free(set->always);
    free(set->place);
    agent_set_fini(&set->due);
    agent_set_fini(&set->enablers);
}
