/*
 * automaton.c - see automaton.h.
 *
 * Code is a list of numbers, in the order of what happened:
 *
 *     CODE_START     agent, priority, count, { operation, iteration } ...
 *     CODE_LANE      stream, place in its blames
 *     CODE_COMMON    common reason, cause, whom it names
 *     CODE_ADMITTED  rank, iteration, in flight
 *     CODE_RETIRED   rank, iteration
 *
 * Memory is bounded: when it is used up everything is forgotten and learned again; when that does
 * not pay any more, the plain engine goes on.
 */
#include "sim/automaton.h"

#include <stdlib.h>
#include <string.h>

#include "core/hash.h"

enum { NONE = -1, FIRST_CODE = 1024, FIRST_NODES = 256, BUCKETS = 1 << 16 };
enum { CODE_START, CODE_LANE, CODE_COMMON, CODE_ADMITTED, CODE_RETIRED };

/* So far away is the end of the data that it makes no difference. */
static const int32_t FAR = INT32_C(1) << 30;
static const size_t MOST_BYTES = (size_t)64 << 20;
/* Learning must be rarer than one event in so many, or it does not pay. */
enum { LEARNED_SHARE = 4, TRIAL_EVENTS = 4096 };

struct path {
    int node;  /* where it leads */
    int shift; /* by which iteration numbers became smaller */
    int steps, tasks;
    unsigned violated;
    int first, count; /* code */
};

struct node {
    uint64_t hash;
    int next;   /* of its bucket */
    char *key;  /* a snapshot */
    int *edges; /* per agent: of a last event of its time, of another; NONE: not known */
};

struct automaton {
    struct simulation *sim;
    size_t key_bytes, bytes; /* of a key; in all */
    char *scratch;
    struct node *nodes;
    int node_count, node_cap;
    struct path *paths; /* the edges known */
    int path_count, path_cap;
    int *buckets;
    struct recording code; /* of all edges */
    int node;              /* where the simulation is */
    bool present;          /* the simulation's state is that of the node */
    int64_t events, learned;
};

/* ---- recordings ------------------------------------------------------------------------------ */

static void put(struct recording *recording, int64_t value)
{
    if (recording->count == recording->cap) {
        size_t cap = recording->cap ? 2 * recording->cap : FIRST_CODE;
        int32_t *code = realloc(recording->code, cap * sizeof *code);
        if (!code) {
            recording->failed = true;
            return;
        }
        recording->code = code;
        recording->cap = cap;
    }
    recording->code[recording->count++] = (int32_t)value;
}

void recording_start(struct recording *recording, int agent, int priority,
                     const struct timed_op *ops, int count)
{
    put(recording, CODE_START);
    put(recording, agent);
    put(recording, priority);
    put(recording, count);
    for (int i = 0; i < count; i++) {
        put(recording, ops[i].op);
        put(recording, ops[i].iteration);
    }
}

void recording_lane(struct recording *recording, int stream, int blame)
{
    put(recording, CODE_LANE);
    put(recording, stream);
    put(recording, blame);
}

void recording_common(struct recording *recording, int number, const struct stall *value)
{
    put(recording, CODE_COMMON);
    put(recording, number);
    put(recording, value->cause);
    put(recording, value->who);
}

void recording_admitted(struct recording *recording, int rank, int64_t iteration, int64_t in_flight)
{
    put(recording, CODE_ADMITTED);
    put(recording, rank);
    put(recording, iteration);
    put(recording, in_flight);
}

void recording_retired(struct recording *recording, int rank, int64_t iteration)
{
    put(recording, CODE_RETIRED);
    put(recording, rank);
    put(recording, iteration);
}

static const int32_t *play_start(struct simulation *sim, const int32_t *code)
{
    int agent = code[0], priority = code[1], count = code[2];
    int64_t longest_ns = 0;
    code += 3;
    for (int i = 0; i < count; i++, code += 2) {
        int64_t ns = simulation_draw(sim, code[0], code[1] + sim->base);
        longest_ns = ns > longest_ns ? ns : longest_ns;
    }
    simulation_start(sim, agent, priority, longest_ns);
    return code;
}

static void play(struct simulation *sim, const int32_t *code, int count)
{
    for (const int32_t *end = code + count; code < end;)
        switch (*code++) {
        case CODE_START: code = play_start(sim, code); break;
        case CODE_LANE:
            account_switch(sim, code[0], code[1]);
            code += 2;
            break;
        case CODE_COMMON:
            account_common(sim, code[0], (struct stall){(enum stall_cause)code[1], code[2]});
            code += 3;
            break;
        case CODE_ADMITTED:
            simulation_admitted(sim, code[0], code[1] + sim->base, code[2]);
            code += 3;
            break;
        default:
            simulation_retired(sim, code[0], code[1] + sim->base);
            code += 2;
            break;
        }
}

/* ---- snapshots ------------------------------------------------------------------------------- */

struct transfer {
    char *at;
    bool save;
};

static void move(struct transfer *transfer, void *data, size_t bytes)
{
    if (transfer->save)
        memcpy(transfer->at, data, bytes);
    else
        memcpy(data, transfer->at, bytes);
    transfer->at += bytes;
}

/* The one list of what a state consists of. */
static void move_all(struct simulation *sim, char *key, bool save)
{
    const struct program *p = sim->program;
    struct transfer transfer = {key, save};
    move(&transfer, sim->state->cells, p->at.bytes);
    move(&transfer, sim->hands, (size_t)p->thread_count * sizeof *sim->hands);
    move(&transfer, sim->submitted, (size_t)p->ranks * (size_t)p->tasks * sizeof *sim->submitted);
    move(&transfer, sim->dirty, (size_t)sim->dirty_words * sizeof *sim->dirty);
    move(&transfer, sim->member_streams, (size_t)p->member_count * sizeof *sim->member_streams);
    for (int s = 0; s < p->stream_count; s++)
        move(&transfer, &sim->lanes[s].blame, sizeof sim->lanes[s].blame);
    for (int i = 0; i < sim->common_count; i++)
        move(&transfer, &sim->commons[i].value, sizeof sim->commons[i].value);
    move(&transfer, sim->touched, (size_t)p->ranks * sizeof *sim->touched);
    move(&transfer, sim->touched_streams, (size_t)p->stream_count * sizeof *sim->touched_streams);
    move(&transfer, sim->chained, (size_t)p->stream_count * sizeof *sim->chained);
    move(&transfer, &sim->chain_moved, sizeof sim->chain_moved);
    move(&transfer, sim->timers, (size_t)p->agent_count * sizeof *sim->timers);
}

static size_t key_bytes(const struct simulation *sim)
{
    const struct program *p = sim->program;
    return p->at.bytes + (size_t)p->thread_count * sizeof *sim->hands +
           (size_t)p->ranks * (size_t)p->tasks * sizeof *sim->submitted +
           (size_t)sim->dirty_words * sizeof *sim->dirty +
           (size_t)p->member_count * sizeof *sim->member_streams +
           (size_t)p->stream_count * sizeof sim->lanes[0].blame +
           (size_t)sim->common_count * sizeof sim->commons[0].value +
           (size_t)p->stream_count * (sizeof *sim->touched_streams + sizeof *sim->chained) +
           sizeof sim->chain_moved + (size_t)p->ranks * sizeof *sim->touched +
           (size_t)p->agent_count * sizeof *sim->timers;
}

/* The simulation as it was at the node; clocks and lanes have gone on without it. */
static void restore(struct automaton *a)
{
    struct simulation *sim = a->sim;
    if (a->present)
        return;
    move_all(sim, a->nodes[a->node].key, false);
    sim->dirty_first = 0;
    sim->touched_count = 0;
    for (int rank = 0; rank < sim->program->ranks; rank++)
        if (sim->touched[rank])
            sim->touched_ranks[sim->touched_count++] = rank;
    account_derive(sim);
    a->present = true;
}

/* Iteration numbers as small as can be. Returns by how much they have become smaller. */
static int64_t rebase(struct simulation *sim)
{
    const struct program *p = sim->program;
    int64_t admitted = machine_admitted(p, sim->state, 0);
    machine_canonical(p, sim->state);
    int64_t by = admitted - machine_admitted(p, sim->state, 0);
    for (int rank = 0; rank < p->ranks; rank++)
        machine_end_data(p, sim->state, rank, FAR);
    for (int t = 0; t < p->thread_count; t++)
        sim->hands[t].iteration = sim->hands[t].task < 0 ? 0 : sim->hands[t].iteration - by;
    for (int i = 0; i < p->ranks * p->tasks; i++)
        sim->submitted[i] -= by;
    sim->base += by;
    if (by != 0)
        account_derive(sim);
    return by;
}

/* ---- nodes and edges ------------------------------------------------------------------------- */

static void forget(struct automaton *a)
{
    for (int n = 0; n < a->node_count; n++) {
        free(a->nodes[n].key);
        free(a->nodes[n].edges);
    }
    for (int b = 0; b < BUCKETS; b++)
        a->buckets[b] = NONE;
    a->node_count = a->path_count = 0;
    a->code.count = 0;
    a->bytes = 0;
}

static int add_node(struct automaton *a, uint64_t hash)
{
    size_t agents = (size_t)a->sim->program->agent_count;
    if (a->node_count == a->node_cap) {
        int cap = a->node_cap ? 2 * a->node_cap : FIRST_NODES;
        struct node *nodes = realloc(a->nodes, (size_t)cap * sizeof *nodes);
        if (!nodes)
            return NONE;
        a->nodes = nodes;
        a->node_cap = cap;
    }
    int *bucket = &a->buckets[hash % BUCKETS];
    struct node *node = &a->nodes[a->node_count];
    *node = (struct node){hash, *bucket, malloc(a->key_bytes),
                          malloc(2 * agents * sizeof *node->edges)};
    if (!node->key || !node->edges) {
        free(node->key);
        free(node->edges);
        return NONE;
    }
    memcpy(node->key, a->scratch, a->key_bytes);
    memset(node->edges, 0xff, 2 * agents * sizeof *node->edges);
    a->bytes += a->key_bytes + 2 * agents * sizeof *node->edges + sizeof *node;
    return *bucket = a->node_count++;
}

/* The node of the simulation's present state, new or old; NONE: memory is exhausted. */
static int find_node(struct automaton *a)
{
    move_all(a->sim, a->scratch, true);
    uint64_t hash = hash_bytes(a->scratch, a->key_bytes);
    for (int n = a->buckets[hash % BUCKETS]; n != NONE; n = a->nodes[n].next)
        if (a->nodes[n].hash == hash && memcmp(a->nodes[n].key, a->scratch, a->key_bytes) == 0)
            return n;
    return add_node(a, hash);
}

static int add_edge(struct automaton *a, int node, int agent, bool more, const struct path *edge)
{
    if (a->path_count == a->path_cap) {
        int cap = a->path_cap ? 2 * a->path_cap : FIRST_NODES;
        struct path *edges = realloc(a->paths, (size_t)cap * sizeof *edges);
        if (!edges)
            return NONE;
        a->paths = edges;
        a->path_cap = cap;
    }
    a->paths[a->path_count] = *edge;
    a->nodes[node].edges[2 * agent + more] = a->path_count;
    a->bytes += sizeof *edge + (size_t)edge->count * sizeof *a->code.code;
    return a->path_count++;
}

/* The machine does it, and it is written down. false: memory is exhausted. */
static bool learn(struct automaton *a, int agent, bool more)
{
    struct simulation *sim = a->sim;
    int from = a->node;
    restore(a);
    struct path edge = {.first = (int)a->code.count, .violated = 0};
    const int64_t steps = sim->result.steps, tasks = sim->result.tasks;
    const unsigned violated = sim->result.violated;
    sim->result.violated = 0;
    sim->recording = &a->code;
    simulation_event(sim, agent);
    if (!more) {
        simulation_instant(sim);
        edge.shift = (int)rebase(sim);
    }
    sim->recording = NULL;
    edge.violated = sim->result.violated;
    sim->result.violated |= violated;
    edge.steps = (int)(sim->result.steps - steps);
    edge.tasks = (int)(sim->result.tasks - tasks);
    edge.count = (int)a->code.count - edge.first;
    a->learned++;
    a->node = edge.node = find_node(a);
    return !a->code.failed && edge.node != NONE && add_edge(a, from, agent, more, &edge) != NONE;
}

static void follow(struct automaton *a, const struct path *edge)
{
    struct simulation *sim = a->sim;
    play(sim, a->code.code + edge->first, edge->count);
    sim->base += edge->shift;
    sim->result.steps += edge->steps;
    sim->result.tasks += edge->tasks;
    sim->result.violated |= edge->violated;
    a->node = edge->node;
    a->present = false;
}

/* ---- the run --------------------------------------------------------------------------------- */

/* false: the plain engine would be as fast. */
static bool still_pays(struct automaton *a)
{
    bool pays = a->learned * LEARNED_SHARE < a->events;
    restore(a);
    forget(a);
    a->events = a->learned = 0;
    a->node = find_node(a);
    return pays && a->node != NONE;
}

/* The iteration up to which no driver and no stream asks where the data ends. */
static int64_t last_iteration(const struct program *p)
{
    int64_t end = p->ends[0];
    for (int rank = 1; rank < p->ranks; rank++)
        end = p->ends[rank] < end ? p->ends[rank] : end;
    return end - p->window - p->periods - p->depth - 2;
}

static bool begin(struct automaton *a)
{
    a->key_bytes = key_bytes(a->sim);
    a->scratch = malloc(a->key_bytes);
    a->buckets = malloc(BUCKETS * sizeof *a->buckets);
    if (!a->scratch || !a->buckets)
        return false;
    forget(a);
    rebase(a->sim);
    a->present = true;
    a->node = find_node(a);
    return a->node != NONE;
}

static void go(struct automaton *a)
{
    struct simulation *sim = a->sim;
    const int64_t last = last_iteration(sim->program);
    struct event event;
    while (sim->status == STATUS_OK && sim->newest < last && events_pop(&sim->events, &event)) {
        sim->now_ns = event.time_ns;
        const struct event *next = events_next(&sim->events);
        bool more = next && next->time_ns == event.time_ns;
        int known = a->nodes[a->node].edges[2 * event.agent + more];
        a->events++;
        if (known != NONE)
            follow(a, &a->paths[known]);
        else if (!learn(a, event.agent, more))
            simulation_fail(sim, diag_no_memory(sim->diag));
        else if ((a->bytes > MOST_BYTES ||
                  (a->events == TRIAL_EVENTS && a->learned * 2 > a->events)) &&
                 !still_pays(a))
            break;
    }
    if (a->node != NONE)
        restore(a);
}

/* The state, which does not know where the data ends, learns it again. */
static void end(struct simulation *sim)
{
    for (int rank = 0; rank < sim->program->ranks; rank++)
        machine_end_data(sim->program, sim->state, rank, sim->program->ends[rank] - sim->base);
}

static bool applies(const struct simulation *sim)
{
    const struct simulate_observer *observer = sim->options->observer;
    bool watched = observer && (observer->span || observer->step);
    return sim->program->tasks > 0 && !watched && !sim->sharing && last_iteration(sim->program) > sim->newest;
}

void automaton_run(struct simulation *sim)
{
    struct automaton a = {.sim = sim, .node = NONE};
    if (!applies(sim))
        return;
    if (begin(&a)) {
        go(&a);
        end(sim);
    } else {
        simulation_fail(sim, diag_no_memory(sim->diag));
    }
    for (int n = 0; n < a.node_count; n++) {
        free(a.nodes[n].key);
        free(a.nodes[n].edges);
    }
    free(a.nodes);
    free(a.paths);
    free(a.buckets);
    free(a.scratch);
    free(a.code.code);
}
