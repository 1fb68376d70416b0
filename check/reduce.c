/*
 * reduce.c - see reduce.h.
 *
 * Order of free steps: host threads before streams, ranks that lag first; see `enum pace` for when
 * it matters.
 */
#include "check/reduce.h"

#include <stdlib.h>

/* Ranks with the oldest iteration first: no rank runs away from the others. */
static void sort_ranks(const struct program *p, const struct state *state, int *order)
{
    for (int i = 0; i < p->ranks; i++) {
        int j = i;
        int64_t oldest = machine_oldest(p, state, i);
        for (; j > 0 && machine_oldest(p, state, order[j - 1]) > oldest; j--)
            order[j] = order[j - 1];
        order[j] = i;
    }
}

/* Which ranks can ever notice each other: those of a communicator, and so on. Ranks of different
   components share nothing but the answer of the data loader. */
static void find_components(const struct program *p, int *component)
{
    for (int rank = 0; rank < p->ranks; rank++)
        component[rank] = p->tasks ? rank : 0;
    for (bool again = p->tasks > 0; again;) {
        again = false;
        for (int c = 0; c < p->comm_count; c++)
            for (int m = 1; m < p->comms[c].count; m++) {
                int *a = &component[p->comms[c].members[m - 1]];
                int *b = &component[p->comms[c].members[m]];
                again |= *a != *b;
                *a = *b = *a < *b ? *a : *b;
            }
    }
}

static int component_of(const struct reducer *reducer, int agent)
{
    const struct agent *who = &reducer->program->agents[agent];
    int rank = who->kind == AGENT_COMM ? reducer->program->comms[who->index].members[0] : who->rank;
    return reducer->component[rank];
}

/* What a component can do: some agent can step; or none can, and there is work left. */
struct activity {
    bool enabled, busy;
};

static struct activity look_at(const struct reducer *reducer, const struct state *state,
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

/* The component that goes on: the one that lags most of those that can. So none runs away from the
   others, and the graph closes. If one hangs, the run is over, whatever others may still do. The
   steps of one component are a persistent set. */
static int current_component(const struct reducer *reducer, const struct state *state)
{
    const struct program *p = reducer->program;
    int current = NO_COMPONENT;
    int64_t least = 0;
    for (int rank = 0; rank < p->ranks; rank++) {
        int64_t oldest = machine_oldest(p, state, rank);
        if (reducer->component[rank] != rank)
            continue; /* its first rank speaks for it: the ranks of a component keep together */
        struct activity activity = look_at(reducer, state, rank);
        if (!activity.enabled && activity.busy)
            return HUNG_COMPONENT;
        if (activity.enabled && (current < 0 || oldest < least)) {
            current = rank;
            least = oldest;
        }
    }
    return current;
}

static bool has_components(const struct reducer *reducer)
{
    for (int rank = 0; rank < reducer->program->ranks; rank++)
        if (reducer->component[rank] != 0)
            return true;
    return false;
}

/* A range of agents. */
struct range {
    int first, count;
};

static struct range threads_of(const struct program *p)
{
    return (struct range){1, p->thread_count};
}

static struct range streams_of(const struct program *p)
{
    return (struct range){1 + p->thread_count, p->stream_count};
}

static struct range comms_of(const struct program *p)
{
    return (struct range){1 + p->thread_count + p->stream_count, p->comm_count};
}

static int free_agent(const struct reducer *reducer, const struct state *state, struct range range,
                      int rank, bool admit)
{
    const struct program *p = reducer->program;
    for (int agent = range.first; agent < range.first + range.count; agent++)
        if ((rank < 0 || p->agents[agent].rank == rank) &&
            component_of(reducer, agent) == reducer->current &&
            machine_agent_enabled(p, state, agent) && machine_step_free(p, state, agent) &&
            (admit || !machine_admits(p, state, agent)))
            return agent;
    return -1;
}

/* The ranks that lag go first. */
static int free_thread(const struct reducer *reducer, const struct state *state, bool admit)
{
    const struct program *p = reducer->program;
    int agent = -1;
    for (int i = 0; agent < 0 && i < p->ranks; i++)
        agent = free_agent(reducer, state, threads_of(p), reducer->rank_order[i], admit);
    return agent;
}

static int free_device(const struct reducer *reducer, const struct state *state)
{
    const struct program *p = reducer->program;
    int agent = -1;
    for (int i = 0; agent < 0 && i < p->ranks; i++)
        agent = free_agent(reducer, state, streams_of(p), reducer->rank_order[i], true);
    return agent >= 0 ? agent : free_agent(reducer, state, comms_of(p), -1, true);
}

static bool threads_are_idle(const struct reducer *reducer, const struct state *state)
{
    const struct program *p = reducer->program;
    for (int agent = 1; agent <= p->thread_count; agent++)
        if (component_of(reducer, agent) == reducer->current &&
            !machine_agent_idle(p, state, agent))
            return false;
    return true;
}

/* Can anybody do anything but admit an iteration? */
static bool other_enabled(const struct reducer *reducer, const struct state *state)
{
    const struct program *p = reducer->program;
    for (int agent = 1; agent < p->agent_count; agent++)
        if (component_of(reducer, agent) == reducer->current &&
            machine_agent_enabled(p, state, agent) && !machine_admits(p, state, agent))
            return true;
    return false;
}

/* Sets reducer->current. */
int reducer_next_free(struct reducer *reducer, const struct state *state)
{
    const struct program *p = reducer->program;
    if (machine_agent_enabled(p, state, 0))
        return -1; /* the data loader is asked: both answers are explored before anything else */
    reducer->current = reducer->has_components ? current_component(reducer, state) : 0;
    if (reducer->current < 0)
        return -1;
    sort_ranks(p, state, reducer->rank_order);
    int agent;
    if (reducer->pace == PACE_LATE_ADMISSION) {
        agent = free_device(reducer, state);
        if (agent < 0)
            agent = free_thread(reducer, state, false);
        return agent >= 0 || other_enabled(reducer, state) ? agent
                                                           : free_thread(reducer, state, true);
    }
    agent = free_thread(reducer, state, true);
    if (agent >= 0 || (reducer->pace == PACE_LATE_DEVICE && !threads_are_idle(reducer, state)))
        return agent; /* which stream goes on is a choice: one may be waited for, another be late */
    return free_device(reducer, state);
}

/* Have the ranks that hang admitted all there is data for? */
bool reducer_data_ended(const struct reducer *reducer, const struct state *state)
{
    const struct program *p = reducer->program;
    for (int rank = 0; reducer->has_components && rank < p->ranks; rank++) {
        struct activity activity = look_at(reducer, state, reducer->component[rank]);
        if (!activity.enabled && activity.busy && !machine_data_ended(p, state, rank))
            return false;
    }
    for (int rank = 0; !reducer->has_components && rank < p->ranks; rank++)
        if (!machine_data_ended(p, state, rank))
            return false;
    return p->tasks > 0;
}

int reducer_choices(struct reducer *reducer, const struct state *state, struct transition *out)
{
    const struct program *p = reducer->program;
    int data = machine_agent_enabled(p, state, 0), kept = 0;
    for (int choice = 0; choice < data; choice++)
        out[kept++] = (struct transition){0, choice};
    if (data)
        return kept;
    int agent = reducer_next_free(reducer, state);
    if (agent >= 0) {
        out[0] = (struct transition){agent, 0};
        return 1;
    }
    int count = machine_enabled(p, state, out);
    for (int i = 0; i < count; i++) /* the current component goes on alone */
        if (component_of(reducer, out[i].agent) == reducer->current)
            out[kept++] = out[i];
    return kept;
}

bool reducer_init(struct reducer *reducer, const struct program *program, enum pace pace)
{
    *reducer = (struct reducer){.program = program, .pace = pace};
    reducer->rank_order = calloc((size_t)program->ranks, sizeof *reducer->rank_order);
    reducer->component = calloc((size_t)program->ranks, sizeof *reducer->component);
    if (!reducer->rank_order || !reducer->component)
        return false;
    find_components(program, reducer->component);
    reducer->has_components = has_components(reducer);
    return true;
}

void reducer_fini(struct reducer *reducer)
{
    free(reducer->rank_order);
    free(reducer->component);
}
