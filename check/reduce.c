/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce.c - see reduce.h.
 *
 * Order of free steps: in pipelines host threads before streams, ranks that lag first; in host
 * programs the device first, and threads in turns of TURN_STEPS.
 */
#include "reduce.h"

#include <stdlib.h>

#include "base/assert_index.h"

enum { TURN_STEPS = 64 };

/* ---- agents with a free step ----------------------------------------------------------------- */

static int reduce_place(const struct free_queue *queue, int k)
{
    int at = queue->first + k;
    return at < queue->size ? at : at - queue->size;
}

static int peek(const struct free_queue *queue, int k)
{
    return queue->agents[reduce_place(queue, k)];
}

/* Takes out the k-th: those before it move up by one, or those behind it down. */
static int take_out(struct free_queue *queue, int k)
{
    int agent = peek(queue, k);
    bool from_front = k < queue->count / 2;
    for (; from_front && k > 0; k--)
        queue->agents[reduce_place(queue, k)] = peek(queue, k - 1);
    for (; !from_front && k < queue->count - 1; k++)
        queue->agents[reduce_place(queue, k)] = peek(queue, k + 1);
    if (from_front)
        queue->first = reduce_place(queue, 1);
    queue->count--;
    return agent;
}

/* The one that has waited longest; -1: there is none. */
static int take_oldest(struct free_queue *queue)
{
    if (queue->count == 0)
        return -1;
    int agent = queue->agents[queue->first];
    queue->first = reduce_place(queue, 1);
    queue->count--;
    return agent;
}

static void reduce_drop(struct free_queue *queue, int agent)
{
    for (int k = 0; k < queue->count; k++)
        if (peek(queue, k) == agent) {
            take_out(queue, k);
            return;
        }
}

/* A free step stays possible until it is taken, so its agent stays in its queue. */
static void queue_news(struct reducer *reducer)
{
    const struct ready_set *ready = &reducer->ready;
    for (int i = 0; i < ready->news_count; i++) {
        int agent = ready->news[i];
        if (ready->readiness[agent] != READY_FREE)
            continue;
        bool host = reducer->program->agents[agent].kind == AGENT_THREAD;
        struct free_queue *queue = host ? &reducer->hosts : &reducer->devices;
        queue->agents[reduce_place(queue, queue->count++)] = agent;
    }
}

/* ---- components ------------------------------------------------------------------------------ */

static int component_of(const struct reducer *reducer, int agent)
{
    if (!reducer->has_components)
        return 0;
    const struct program *p = reducer->program;
    ASSERT_INDEX(agent, p->agent_count);
    const struct agent *desc = &p->agents[agent];
    int rank = desc->kind == AGENT_COMM ? p->comms[desc->index].members[0] : desc->rank;
    return reducer->component[rank];
}

/* Whether an agent of the component can step and, if none can, whether there is work left. */
struct activity {
    bool enabled, busy;
};

static struct activity reduce_look_at(const struct reducer *reducer, const struct state *state,
                                      int component)
{
    const struct program *p = reducer->program;
    struct activity activity = {false, false};
    for (int agent = 1; agent < p->agent_count && !activity.enabled; agent++) {
        if (component_of(reducer, agent) != component)
            continue;
        activity.enabled = machine_agent_enabled(p, state, agent) > 0;
        activity.busy |= !machine_agent_idle(p, state, agent);
    }
    return activity;
}

enum { NO_COMPONENT = -1, HUNG_COMPONENT = -2 };

/* The next component to step: of those that can, the one that lags most. So their distance is bounded,
   and the graph closes. If one hangs, the run is over, even if others could step. The steps of one
   component are a persistent set. */
static int current_component(const struct reducer *reducer, const struct state *state)
{
    const struct program *p = reducer->program;
    int current = NO_COMPONENT;
    int64_t least = 0;
    for (int rank = 0; rank < p->ranks; rank++) {
        int64_t oldest = machine_oldest(p, state, rank);
        if (reducer->component[rank] != rank)
            continue; /* the first rank stands for its component, whose ranks stay close together */
        struct activity activity = reduce_look_at(reducer, state, rank);
        if (!activity.enabled && activity.busy)
            return HUNG_COMPONENT;
        if (activity.enabled && (current < 0 || oldest < least)) {
            current = rank;
            least = oldest;
        }
    }
    return current;
}

/* Where one component is asked about, the others are left out of the program. */
static bool has_components(const struct reducer *reducer)
{
    if (reducer->program->options.part)
        return false;
    for (int rank = 0; rank < reducer->program->ranks; rank++)
        if (reducer->component[rank] != 0)
            return true;
    return false;
}

/* ---- free steps ------------------------------------------------------------------------------ */

/* True if this free step may be taken first, although threads count what is in flight. */
static bool keeps_pace(struct reducer *reducer, const struct state *state, int agent)
{
    const struct program *p = reducer->program;
    switch (reducer->pace) {
    case PACE_LATE_ADMISSION: return machine_counted_rank(p, state, agent) < 0;
    case PACE_LATE_DEVICE:
        agent_set_clear(&reducer->closure, p->agent_count);
        machine_counting_threads(p, state, agent, &reducer->closure);
        return reducer->closure.count == 0;
    case PACE_ANY: break;
    }
    return true;
}

/* In host programs a thread goes on for a while, which makes a story easy to follow, and then lets
   others have a turn, which keeps streams short. -1: no thread has the turn. */
static int reduce_take_turn(struct reducer *reducer, struct free_queue *queue)
{
    int last = queue->count - 1; /* the agent that has just acted */
    if (last < 0 || peek(queue, last) != reducer->turn || reducer->turn_left == 0)
        return -1;
    reducer->turn_left--;
    return take_out(queue, last);
}

/* Pipelines: of the agents of the current component, the first of those whose rank lags most. Taken out; -1: none is
   ready. */
static int reduce_take_first(struct reducer *reducer, const struct state *state,
                             struct free_queue *queue)
{
    const struct program *p = reducer->program;
    int first = -1;
    int64_t least = 0;
    for (int k = 0; k < queue->count; k++) {
        int agent = peek(queue, k), rank = p->agents[agent].rank;
        if (component_of(reducer, agent) != reducer->current || !keeps_pace(reducer, state, agent))
            continue;
        int64_t oldest = rank < 0 ? INT64_MAX : machine_oldest(p, state, rank);
        if (first < 0 || oldest < least) {
            first = k;
            least = oldest;
        }
    }
    return first < 0 ? -1 : take_out(queue, first);
}

/* Host programs have no iterations, and are one component: the agent that has waited longest goes first. They let the
   device go first: then little is queued. Where memory is counted the order is that of pipelines. */
static int take_free(struct reducer *reducer, const struct state *state)
{
    struct free_queue *hosts = &reducer->hosts, *devices = &reducer->devices;
    if (reducer->program->tasks > 0 || reducer->pace != PACE_ANY) {
        int agent = reduce_take_first(reducer, state, hosts);
        return agent >= 0 ? agent : reduce_take_first(reducer, state, devices);
    }
    int agent = take_oldest(devices);
    if (agent < 0)
        agent = reduce_take_turn(reducer, hosts);
    if (agent >= 0)
        return agent;
    reducer->turn = take_oldest(hosts);
    reducer->turn_left = TURN_STEPS;
    return reducer->turn;
}

/* ---- stubborn sets --------------------------------------------------------------------------- */

/* Add the agents that belong in a set with this enabled step because of what is in flight: see `enum pace`. */
static void add_paced(struct reducer *reducer, const struct state *state, int agent)
{
    const struct program *p = reducer->program;
    const int rank =
        reducer->pace == PACE_LATE_ADMISSION ? machine_counted_rank(p, state, agent) : -1;
    if (reducer->pace == PACE_LATE_DEVICE)
        machine_counting_threads(p, state, agent, &reducer->closure);
    else if (rank >= 0)
        machine_finishers(p, rank, &reducer->closure);
}

/* The smallest closed set with `seed`: with an agent that can step, all whose steps may conflict with
   that step; with one that cannot, all of whom one must act before. Returns how many of them can step,
   or `enough` if there are as many. */
static int close_set(struct reducer *reducer, const struct state *state, int seed, int enough)
{
    const struct program *p = reducer->program;
    struct agent_set *set = &reducer->closure;
    int enabled = 0;
    agent_set_clear(set, p->agent_count);
    agent_set_add(set, seed);
    for (int i = 0; i < set->count && enabled < enough; i++)
        if (machine_agent_enabled(p, state, set->members[i])) {
            enabled++;
            machine_conflicts(p, state, set->members[i], set);
            add_paced(reducer, state, set->members[i]);
        } else {
            machine_enablers(p, state, set->members[i], set);
        }
    return enabled;
}

/* How far the rank of an agent is; a communicator comes behind all ranks. Host programs have no iterations. */
static int64_t reduce_iterations_of(const struct reducer *reducer, const struct state *state,
                                    int agent)
{
    const struct program *p = reducer->program;
    if (p->tasks == 0)
        return 0;
    ASSERT_INDEX(agent, p->agent_count);
    return p->agents[agent].rank < 0 ? INT64_MAX : machine_oldest(p, state, p->agents[agent].rank);
}

/* The stubborn set of the current component, in reducer->best, around an agent whose rank lags most: one that runs ahead
   leaves its choices in streams, which wait for the others. Of these sets the one with the fewest steps, and a set with
   one step before all. Returns the number of its steps; 0: the component has nothing to do. */
static int find_stubborn(struct reducer *reducer, const struct state *state)
{
    const struct program *p = reducer->program;
    int least = p->agent_count + 1;
    int64_t lag = INT64_MAX;
    for (int seed = 1; seed < p->agent_count && least > 1; seed++) {
        if (component_of(reducer, seed) != reducer->current ||
            !machine_agent_enabled(p, state, seed))
            continue;
        int64_t iterations = reduce_iterations_of(reducer, state, seed);
        int enough = iterations < lag ? p->agent_count + 1 : iterations == lag ? least : 2;
        int enabled = close_set(reducer, state, seed, enough);
        if (enabled >= enough)
            continue;
        least = enabled;
        lag = iterations;
        struct agent_set spare = reducer->best;
        reducer->best = reducer->closure;
        reducer->closure = spare;
    }
    return least > p->agent_count ? 0 : least;
}

static int take_only_choice(struct reducer *reducer, const struct state *state)
{
    int agent = -1;
    if (find_stubborn(reducer, state) == 1)
        for (int i = 0; agent < 0; i++)
            if (machine_agent_enabled(reducer->program, state, reducer->best.members[i]))
                agent = reducer->best.members[i];
    if (agent >= 0 && machine_agent_enabled(reducer->program, state, agent) > 1) {
        if (reducer->waits == STAGED_EITHER ||
            !machine_wait_is_idle(reducer->program, state, agent))
            return -1; /* what it does is a choice */
        reducer->choice = reducer->waits == STAGED_LEAST ? MACHINE_GOES_PAST : MACHINE_WAITS;
    }
    if (agent >= 0) { /* it may be in a queue, kept back by keeps_pace */
        reduce_drop(&reducer->hosts, agent);
        reduce_drop(&reducer->devices, agent);
    }
    return agent;
}

/* ---- the contract ---------------------------------------------------------------------------- */

void reducer_begin(struct reducer *reducer, const struct state *state)
{
    reducer->last = reducer->turn = -1;
    reducer->current = reducer->has_components ? current_component(reducer, state) : 0;
    reducer->hosts.count = reducer->devices.count = 0;
    ready_begin(&reducer->ready, state);
    queue_news(reducer);
}

static int reduce_take(struct reducer *reducer, const struct state *state)
{
    return reducer->current < 0 ? -1 : take_free(reducer, state);
}

int reducer_next_free(struct reducer *reducer, const struct state *state)
{
    if (reducer->last >= 0) {
        ready_acted(&reducer->ready, state);
        queue_news(reducer);
    }
    reducer->last = -1;
    reducer->choice = 0;
    if (reducer->program->tasks && machine_agent_enabled(reducer->program, state, 0))
        return -1; /* the data loader is asked: both answers are explored before anything else */
    int agent = reduce_take(reducer, state);
    if (agent < 0 && reducer->has_components) { /* the next one that can go on */
        reducer->current = current_component(reducer, state);
        agent = reduce_take(reducer, state);
    }
    if (agent < 0 && reducer->current >= 0)
        agent = take_only_choice(reducer, state);
    if (agent >= 0)
        ready_acts(&reducer->ready, state, agent);
    reducer->last = agent;
    return agent;
}

bool reducer_data_ended(const struct reducer *reducer, const struct state *state)
{
    const struct program *p = reducer->program;
    for (int rank = 0; reducer->has_components && rank < p->ranks; rank++) {
        struct activity activity = reduce_look_at(reducer, state, reducer->component[rank]);
        if (!activity.enabled && activity.busy && !machine_data_ended(p, state, rank))
            return false;
    }
    for (int rank = 0; !reducer->has_components && rank < p->ranks; rank++)
        if (!machine_data_ended(p, state, rank))
            return false;
    return p->tasks > 0;
}

static int reduce_list_choices(struct reducer *reducer, const struct state *state,
                               struct transition *out)
{
    const struct program *p = reducer->program;
    int count = 0;
    if (find_stubborn(reducer, state) == 0)
        return 0;
    for (int agent = 1; agent < p->agent_count; agent++) /* in the order of their numbers */
        for (int choice = 0; agent_set_has(&reducer->best, agent) &&
                             choice < machine_agent_enabled(p, state, agent);
             choice++)
            out[count++] = (struct transition){agent, choice};
    return count;
}

int reducer_choices(struct reducer *reducer, const struct state *state, struct transition *out)
{
    int answers = machine_agent_enabled(reducer->program, state, 0);
    for (int choice = 0; choice < answers; choice++)
        out[choice] = (struct transition){0, choice};
    if (answers && reducer->program->data_free)
        return answers;
    if (answers) /* an answer may pass turns: everything is explored beside it */
        return machine_enabled(reducer->program, state, out);
    reducer_begin(reducer, state);
    int agent = reducer_next_free(reducer, state);
    if (agent < 0)
        return reducer->current < 0 ? 0 : reduce_list_choices(reducer, state, out);
    out[0] = (struct transition){agent, reducer->choice};
    return 1;
}

static bool queue_init(struct free_queue *queue, int size)
{
    *queue = (struct free_queue){calloc((size_t)size, sizeof *queue->agents), 0, 0, size};
    return queue->agents;
}

bool reducer_init(struct reducer *reducer, const struct program *program, enum pace pace,
                  enum staged_waits waits)
{
    *reducer = (struct reducer){.program = program, .pace = pace, .waits = waits, .last = -1};
    reducer->component = program->fellows;
    bool queues = queue_init(&reducer->hosts, program->agent_count);
    queues &= queue_init(&reducer->devices, program->agent_count);
    bool ready = ready_init(&reducer->ready, program, true);
    bool closure = agent_set_init(&reducer->closure, program->agent_count);
    bool best = agent_set_init(&reducer->best, program->agent_count);
    if (!queues || !ready || !closure || !best)
        return false;
    reducer->has_components = has_components(reducer);
    return true;
}

void reducer_fini(struct reducer *reducer)
{
    free(reducer->hosts.agents);
    free(reducer->devices.agents);
    ready_fini(&reducer->ready);
    agent_set_fini(&reducer->closure);
    agent_set_fini(&reducer->best);
}
