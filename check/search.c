/*
 * search.c - see search.h.
 *
 * One node is expanded like this:
 *
 *     node --choice--> state --free step--> state ... --free step--> state = next node
 *
 * where the chain of free steps ends at a state with a real choice, at an end, or after an
 * iteration was retired (so that every infinite run passes infinitely many nodes and the graph can
 * close). The chain is deterministic, so a parent and a choice are enough to find it again.
 *
 * Order of free steps: host threads before streams, ranks that lag first; see `enum pace` for when
 * it matters.
 */
#include "search.h"

#include <stdlib.h>
#include <string.h>

#include "pack.h"
#include "check/stopwatch.h"
#include "visited.h"

enum { MAX_CHAIN = 1 << 20, PROGRESS_EVERY = 1 << 10 };

/* Who goes first among the free steps matters only for the number of iterations in flight, which is
   looked at whenever an iteration is admitted: finishing work lowers it. Is the question whether it
   can be too high, the device must be as late as it can be; is the question whether a run can keep
   it low, admitting must be. */
enum pace { PACE_ANY, PACE_LATE_DEVICE, PACE_LATE_ADMISSION };

struct search {
    const struct program *program;
    const struct search_options *options;
    struct search_result *result;
    struct diag *diag;
    struct visited *visited;
    struct state *node, *work; /* the node being expanded, a successor */
    struct transition *choices;
    unsigned char *packed;
    int *rank_order;
    int *component; /* per rank: the first rank of its component */
    bool has_components;
    int current;     /* the component that goes on */
    uint32_t *edges; /* pairs from, to; kept only for an endless search */
    size_t edge_count, edge_cap;
    struct timespec start;
    double last_progress;
    enum pace pace;
    enum status status;
    bool stop;
    bool given_up; /* some run was not followed to its end */
};

/* ---- which step next ------------------------------------------------------------------------- */

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

static int component_of(const struct search *search, int agent)
{
    const struct agent *who = &search->program->agents[agent];
    int rank = who->kind == AGENT_COMM ? search->program->comms[who->index].members[0] : who->rank;
    return search->component[rank];
}

/* What a component can do: some agent can step; or none can, and there is work left. */
struct activity {
    bool enabled, busy;
};

static struct activity look_at(const struct search *search, const struct state *state,
                               int component)
{
    const struct program *p = search->program;
    struct activity activity = {false, false};
    for (int agent = 1; agent < p->agent_count && !activity.enabled; agent++) {
        if (component_of(search, agent) != component)
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
static int current_component(const struct search *search, const struct state *state)
{
    const struct program *p = search->program;
    int current = NO_COMPONENT;
    int64_t least = 0;
    for (int rank = 0; rank < p->ranks; rank++) {
        int64_t oldest = machine_oldest(p, state, rank);
        if (search->component[rank] != rank)
            continue; /* its first rank speaks for it: the ranks of a component keep together */
        struct activity activity = look_at(search, state, rank);
        if (!activity.enabled && activity.busy)
            return HUNG_COMPONENT;
        if (activity.enabled && (current < 0 || oldest < least)) {
            current = rank;
            least = oldest;
        }
    }
    return current;
}

static bool has_components(const struct search *search)
{
    for (int rank = 0; rank < search->program->ranks; rank++)
        if (search->component[rank] != 0)
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

static int free_agent(const struct search *search, const struct state *state, struct range range,
                      int rank, bool admit)
{
    const struct program *p = search->program;
    for (int agent = range.first; agent < range.first + range.count; agent++)
        if ((rank < 0 || p->agents[agent].rank == rank) &&
            component_of(search, agent) == search->current &&
            machine_agent_enabled(p, state, agent) && machine_step_free(p, state, agent) &&
            (admit || !machine_admits(p, state, agent)))
            return agent;
    return -1;
}

/* The ranks that lag go first. */
static int free_thread(const struct search *search, const struct state *state, bool admit)
{
    const struct program *p = search->program;
    int agent = -1;
    for (int i = 0; agent < 0 && i < p->ranks; i++)
        agent = free_agent(search, state, threads_of(p), search->rank_order[i], admit);
    return agent;
}

static int free_device(const struct search *search, const struct state *state)
{
    const struct program *p = search->program;
    int agent = -1;
    for (int i = 0; agent < 0 && i < p->ranks; i++)
        agent = free_agent(search, state, streams_of(p), search->rank_order[i], true);
    return agent >= 0 ? agent : free_agent(search, state, comms_of(p), -1, true);
}

static bool threads_are_idle(const struct search *search, const struct state *state)
{
    const struct program *p = search->program;
    for (int agent = 1; agent <= p->thread_count; agent++)
        if (component_of(search, agent) == search->current && !machine_agent_idle(p, state, agent))
            return false;
    return true;
}

/* Can anybody do anything but admit an iteration? */
static bool other_enabled(const struct search *search, const struct state *state)
{
    const struct program *p = search->program;
    for (int agent = 1; agent < p->agent_count; agent++)
        if (component_of(search, agent) == search->current &&
            machine_agent_enabled(p, state, agent) && !machine_admits(p, state, agent))
            return true;
    return false;
}

/* The free step to take alone, or -1: there is a choice, or nothing to do. Sets search->current. */
static int next_free(struct search *search, const struct state *state)
{
    const struct program *p = search->program;
    if (machine_agent_enabled(p, state, 0))
        return -1; /* the data loader is asked: both answers are explored before anything else */
    search->current = search->has_components ? current_component(search, state) : 0;
    if (search->current < 0)
        return -1;
    sort_ranks(p, state, search->rank_order);
    int agent;
    if (search->pace == PACE_LATE_ADMISSION) {
        agent = free_device(search, state);
        if (agent < 0)
            agent = free_thread(search, state, false);
        return agent >= 0 || other_enabled(search, state) ? agent
                                                          : free_thread(search, state, true);
    }
    agent = free_thread(search, state, true);
    if (agent >= 0 || (search->pace == PACE_LATE_DEVICE && !threads_are_idle(search, state)))
        return agent; /* which stream goes on is a choice: one may be waited for, another be late */
    return free_device(search, state);
}

/* All that can be done, by the current component if it is to go on alone. */
static int list_all(struct search *search, bool alone)
{
    int count = machine_enabled(search->program, search->node, search->choices), kept = 0;
    for (int i = 0; i < count; i++)
        if (!alone || component_of(search, search->choices[i].agent) == search->current)
            search->choices[kept++] = search->choices[i];
    return kept;
}

/* The choices to explore at a node. */
static int list_choices(struct search *search)
{
    const struct program *p = search->program;
    int data = machine_agent_enabled(p, search->node, 0), count = 0;
    if (!search->options->reduction) {
        count = list_all(search, false);
    } else if (data) {
        for (int choice = 0; choice < data; choice++)
            search->choices[count++] = (struct transition){0, choice};
    } else {
        int agent = next_free(search, search->node);
        if (agent >= 0)
            search->choices[count++] = (struct transition){agent, 0};
        else
            count = list_all(search, true);
    }
    if (!search->options->endless)
        return count;
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (search->choices[i].agent != 0 || search->choices[i].choice == 0)
            search->choices[kept++] = search->choices[i];
    return kept;
}

/* ---- paths ----------------------------------------------------------------------------------- */

static bool path_append(struct search_path *path, size_t *cap, struct transition step)
{
    if (path->count == *cap) {
        size_t grown = *cap ? 2 * *cap : 64;
        struct transition *steps = realloc(path->steps, grown * sizeof *steps);
        if (!steps)
            return false;
        path->steps = steps;
        *cap = grown;
    }
    path->steps[path->count++] = step;
    return true;
}

/* Replay `choices` (count of them) and the chains between, the last chain only up to `last_chain`
   steps; the transitions are appended to `path`. */
static bool replay(struct search *search, const struct transition *choices, size_t count,
                   size_t last_chain, struct search_path *path)
{
    const struct program *p = search->program;
    size_t cap = 0;
    struct state *state = search->work;
    machine_reset(p, state);
    for (size_t i = 0; i <= count; i++) {
        bool anchored = false;
        if (i > 0) {
            anchored = machine_retires(p, state, choices[i - 1].agent);
            if (!path_append(path, &cap, choices[i - 1]))
                return false;
            machine_step(p, state, choices[i - 1], NULL);
        }
        size_t limit = i == count ? last_chain : MAX_CHAIN;
        for (size_t k = 0; search->options->reduction && !anchored && k < limit; k++) {
            int agent = next_free(search, state);
            if (agent < 0)
                break;
            anchored = machine_retires(p, state, agent);
            if (!path_append(path, &cap, (struct transition){agent, 0}))
                return false;
            machine_step(p, state, (struct transition){agent, 0}, NULL);
        }
    }
    return true;
}

/* The path to node `id`, then `choice` (if any), then `chain` free steps. */
static void keep_witness(struct search *search, enum property property, uint32_t id,
                         const struct transition *choice, size_t chain)
{
    size_t depth = choice ? 1 : 0;
    for (uint32_t at = id;
         at != VISITED_NONE && visited_parent(search->visited, at) != VISITED_NONE;
         at = visited_parent(search->visited, at))
        depth++;
    struct transition *choices = calloc(depth + 1, sizeof *choices);
    struct state *saved = machine_state(search->program);
    if (!choices || !saved) {
        search->status = diag_no_memory(search->diag);
        free(choices);
        machine_free(saved);
        return;
    }
    size_t k = depth;
    if (choice)
        choices[--k] = *choice;
    for (uint32_t at = id; k > 0; at = visited_parent(search->visited, at))
        choices[--k] = visited_transition(search->visited, at);
    machine_copy(search->program, saved, search->work);
    if (!replay(search, choices, depth, chain, &search->result->witness[property]))
        search->status = diag_no_memory(search->diag);
    machine_copy(search->program, search->work, saved);
    machine_free(saved);
    free(choices);
}

/* ---- violations ------------------------------------------------------------------------------ */

static void found(struct search *search, unsigned violated, uint32_t id,
                  const struct transition *choice, size_t chain)
{
    violated &= search->options->properties & ~search->result->found;
    search->result->found |= violated;
    for (int property = 0; property < PROPERTY_COUNT; property++)
        if (violated & 1u << property)
            keep_witness(search, (enum property)property, id, choice, chain);
    unsigned all = search->options->stop_when_all;
    if (search->result->found & search->options->stop_at ||
        (all && (search->result->found & all) == all))
        search->stop = true;
}

/* Have the ranks that hang admitted all there is data for? */
static bool data_ended(const struct search *search, const struct state *state)
{
    const struct program *p = search->program;
    for (int rank = 0; search->has_components && rank < p->ranks; rank++) {
        struct activity activity = look_at(search, state, search->component[rank]);
        if (!activity.enabled && activity.busy && !machine_data_ended(p, state, rank))
            return false;
    }
    for (int rank = 0; !search->has_components && rank < p->ranks; rank++)
        if (!machine_data_ended(p, state, rank))
            return false;
    return p->tasks > 0;
}

/* A state where nothing can go on: the end, or a deadlock. */
static unsigned judge_end(struct search *search, const struct state *state)
{
    const struct program *p = search->program;
    if (machine_done(p, state)) {
        search->result->ends_well = true;
        return 0;
    }
    unsigned violated = 1u << (data_ended(search, state) ? PROPERTY_DRAIN : PROPERTY_DEADLOCK);
    int64_t wanted, other;
    for (int agent = 0; agent < p->agent_count; agent++)
        if (machine_stale_wait(p, state, agent, &wanted, &other))
            violated |= 1u << PROPERTY_SLOT;
    return violated;
}

/* ---- the search ------------------------------------------------------------------------------ */

static bool keep_edge(struct search *search, uint32_t from, uint32_t to)
{
    if (search->edge_count == search->edge_cap) {
        size_t cap = search->edge_cap ? 2 * search->edge_cap : 256;
        uint32_t *edges = realloc(search->edges, 2 * cap * sizeof *edges);
        if (!edges)
            return false;
        search->edges = edges;
        search->edge_cap = cap;
    }
    search->edges[2 * search->edge_count] = from;
    search->edges[2 * search->edge_count++ + 1] = to;
    return true;
}

/* Is there an infinite run? Take away nodes without successors until none is left, or a cycle is.
 */
static bool has_cycle(const struct search *search, bool *out)
{
    size_t nodes = visited_count(search->visited), left = nodes;
    uint32_t *out_degree = calloc(nodes + 1, sizeof *out_degree);
    if (!out_degree)
        return false;
    for (size_t e = 0; e < search->edge_count; e++)
        if (search->edges[2 * e] != VISITED_NONE)
            out_degree[search->edges[2 * e]]++;
    bool again = true;
    while (again) {
        again = false;
        for (size_t e = search->edge_count; e-- > 0;) { /* most edges lead to later nodes */
            uint32_t from = search->edges[2 * e], to = search->edges[2 * e + 1];
            if (from == VISITED_NONE || out_degree[to] != 0 || out_degree[from] == 0)
                continue;
            search->edges[2 * e] = VISITED_NONE; /* this way comes to an end */
            again |= --out_degree[from] == 0;
        }
    }
    for (size_t i = 0; i < nodes; i++)
        left -= out_degree[i] == 0;
    free(out_degree);
    *out = left > 0;
    return true;
}

static void store(struct search *search, uint32_t parent, struct transition by)
{
    machine_canonical(search->program, search->work);
    size_t length = pack_state(search->program, search->work, search->packed);
    uint32_t id;
    bool is_new;
    enum status status =
        visited_insert(search->visited, search->packed, length, parent, by, &id, &is_new);
    if (status == STATUS_LIMIT) {
        search->result->limit = "memory";
        search->stop = true;
    } else if (status != STATUS_OK ||
               (search->options->endless && !keep_edge(search, parent, id))) {
        search->status = diag_no_memory(search->diag);
    }
}

/* Do the chosen step and the chain of free steps behind it; store the node it leads to. */
static void follow(struct search *search, uint32_t id, const struct transition *choice)
{
    const struct program *p = search->program;
    struct effect effect;
    bool anchored = false;
    unsigned bad = search->options->cut_at | 1u << PROPERTY_MISMATCH;
    if (choice) {
        anchored = machine_retires(p, search->work, choice->agent);
        machine_step(p, search->work, *choice, &effect);
        search->result->transitions++;
        if (effect.violated)
            found(search, effect.violated, id, choice, 0);
        if (effect.violated & bad)
            return;
    }
    for (size_t k = 1; search->options->reduction && !anchored && k < MAX_CHAIN && !search->stop;
         k++) {
        int agent = next_free(search, search->work);
        if (agent < 0)
            break;
        anchored = machine_retires(p, search->work, agent);
        machine_step(p, search->work, (struct transition){agent, 0}, &effect);
        search->result->transitions++;
        if (effect.violated)
            found(search, effect.violated, id, choice, k);
        if (effect.violated & bad)
            return;
    }
    store(search, id, choice ? *choice : (struct transition){0, 0});
}

static void report_progress(struct search *search)
{
    const struct search_limits *limits = &search->options->limits;
    double seconds = stopwatch_seconds(&search->start);
    if (limits->time_ns && seconds * 1e9 > (double)limits->time_ns) {
        search->result->limit = "time";
        search->stop = true;
    }
    if (!search->options->progress || seconds - search->last_progress < 0.5)
        return;
    search->last_progress = seconds;
    struct search_progress progress = {visited_count(search->visited), search->result->transitions,
                                       visited_bytes(search->visited), seconds};
    search->options->progress(search->options->progress_arg, &progress);
}

static void expand(struct search *search, uint32_t id)
{
    const struct program *p = search->program;
    pack_expand(p, visited_state(search->visited, id), search->node);
    int count = list_choices(search);
    if (count == 0) {
        machine_copy(p, search->work, search->node);
        unsigned violated = judge_end(search, search->node);
        if (violated)
            found(search, violated, id, NULL, MAX_CHAIN);
        search->given_up |= machine_enabled(p, search->node, search->choices) > 0 &&
                            !(violated & search->options->cut_at);
    }
    for (int i = 0; i < count && !search->stop && search->status == STATUS_OK; i++) {
        machine_copy(p, search->work, search->node);
        struct transition choice = search->choices[i];
        follow(search, id, &choice);
    }
}

static void breadth_first(struct search *search)
{
    const struct search_limits *limits = &search->options->limits;
    machine_reset(search->program, search->work);
    follow(search, VISITED_NONE, NULL);
    for (uint32_t id = 0; id < visited_count(search->visited); id++) {
        if (search->stop || search->status != STATUS_OK)
            return;
        expand(search, id);
        if (limits->states && visited_count(search->visited) > limits->states) {
            search->result->limit = "states";
            search->stop = true;
        }
        if (id % PROGRESS_EVERY == 0)
            report_progress(search);
    }
}

static bool allocate(struct search *search)
{
    const struct program *p = search->program;
    size_t limit = search->options->limits.mem_bytes;
    search->visited = visited_open(limit ? limit : SEARCH_DEFAULT_MEMORY);
    search->node = machine_state(p);
    search->work = machine_state(p);
    search->choices = calloc((size_t)p->agent_count + 1, sizeof *search->choices);
    search->packed = malloc(pack_bound(p));
    search->rank_order = calloc((size_t)p->ranks, sizeof *search->rank_order);
    search->component = calloc((size_t)p->ranks, sizeof *search->component);
    return search->visited && search->node && search->work && search->choices && search->packed &&
           search->rank_order && search->component;
}

static void release(struct search *search)
{
    visited_close(search->visited);
    machine_free(search->node);
    machine_free(search->work);
    free(search->choices);
    free(search->packed);
    free(search->rank_order);
    free(search->component);
    free(search->edges);
}

static enum pace pace_for(const struct program *program, const struct search_options *options)
{
    unsigned bound = 1u << PROPERTY_BOUND;
    if (!program->tasks || program->plan->pipeline.retire == RETIRE_DEVICE ||
        !(options->properties & bound))
        return PACE_ANY; /* then the number in flight is bounded by construction */
    return options->cut_at & bound ? PACE_LATE_ADMISSION : PACE_LATE_DEVICE;
}

enum status search_run(const struct program *program, const struct search_options *options,
                       struct search_result *out, struct diag *diag)
{
    *out = (struct search_result){0};
    struct search search = {.program = program, .options = options, .result = out, .diag = diag};
    search.start = stopwatch_start();
    search.pace = pace_for(program, options);
    if (!allocate(&search)) {
        release(&search);
        return diag_no_memory(diag);
    }
    find_components(program, search.component);
    search.has_components = has_components(&search);
    breadth_first(&search);
    bool cycle = false;
    if (options->endless && search.status == STATUS_OK && !has_cycle(&search, &cycle))
        search.status = diag_no_memory(diag);
    out->ends_well |= cycle;
    out->complete = search.status == STATUS_OK && !search.stop && !search.given_up;
    out->states = visited_count(search.visited);
    out->peak_bytes = visited_bytes(search.visited) + 2 * program->at.bytes;
    out->seconds = stopwatch_seconds(&search.start);
    release(&search);
    if (search.status != STATUS_OK)
        search_result_fini(out);
    return search.status;
}

void search_result_fini(struct search_result *result)
{
    for (int property = 0; property < PROPERTY_COUNT; property++) {
        free(result->witness[property].steps);
        result->witness[property] = (struct search_path){0};
    }
}
