/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memo.c - see memo.h.
 *
 *     node   key: a snapshot   edges: [place 0, alone] [place 0, not alone] [place 1, alone] ...
 *              ^                          |
 *              |                          v
 *              +------------- to ------- edge ---- likely ---> edge ---- likely ---> ...
 *
 * Memory is bounded: when it is used up everything is forgotten and learned again; when that does
 * not pay any more, the plain engine goes on.
 */
#include "memo.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { BUCKETS = 1 << 12, HASHED_WORDS = 4 };

/* An end of the data so far away that it makes no difference. */
static const int32_t FAR = INT32_C(1) << 30;
static const size_t MOST_BYTES = (size_t)64 << 20;
/* Learning must be rarer than one event in so many, or it does not pay. */
enum { LEARNED_SHARE = 4, TRIAL_EVENTS = 4096, TRIAL_SHARE = 2 };

struct memo_node {
    uint64_t hash;
    struct memo_node *next; /* of its bucket */
    char *key;              /* a snapshot */
    struct memo_edge *
        *edges; /* per place: of the only event of its time, of another; NULL: not known */
};

struct memo {
    struct simulation *sim;
    size_t key_bytes, bytes; /* of a key; in all */
    size_t key_words;        /* of a key, with zeros behind it */
    int edge_count;          /* of a node */
    uint64_t *scratch;
    struct memo_node **buckets;
    struct recording recording;
    struct memo_node *node;  /* where the simulation is */
    bool present;            /* the simulation's state is that of the node */
    struct memo_edge origin; /* stands for what led to the first node */
    int64_t last;            /* iteration up to which the memo is used */
    int64_t events, learned;
    int places; /* of events when the edges were made */
    bool tried;
};

/* ---- snapshots ------------------------------------------------------------------------------- */

struct transfer {
    enum transfer_mode { MEASURE, SAVE, LOAD } mode;
    char *key;
    size_t bytes; /* of it, so far */
};

static inline __attribute__((always_inline)) void move(struct transfer *transfer, void *data,
                                                       size_t bytes)
{
    if (transfer->mode == SAVE)
        memcpy(transfer->key + transfer->bytes, data, bytes);
    else if (transfer->mode == LOAD)
        memcpy(data, transfer->key + transfer->bytes, bytes);
    transfer->bytes += bytes;
}

/* The one list of what a state consists of. Returns its size. */
static size_t move_all(struct simulation *sim, enum transfer_mode mode, char *key)
{
    const struct program *p = sim->program;
    struct marks *marks = &sim->marks;
    struct stalls *stalls = &sim->stalls;
    size_t agents = (size_t)p->agent_count, streams = (size_t)p->stream_count,
           ranks = (size_t)p->ranks, tasks = ranks * (size_t)p->tasks;
    struct transfer transfer = {mode, key, 0};
    move(&transfer, sim->state->cells, p->at.bytes);
    move(&transfer, sim->pipeline.hands, (size_t)p->thread_count * sizeof *sim->pipeline.hands);
    move(&transfer, sim->pipeline.submitted, tasks * sizeof *sim->pipeline.submitted);
    move(&transfer, marks->dirty, (size_t)marks->dirty_words * sizeof *marks->dirty);
    move(&transfer, sim->clocks.member_streams,
         (size_t)p->member_count * sizeof *sim->clocks.member_streams);
    for (size_t s = 0; s < streams; s++)
        move(&transfer, &stalls->lanes[s].blame, sizeof stalls->lanes[s].blame);
    for (int i = 0; i < stalls->common_count; i++)
        move(&transfer, &stalls->commons[i].value, sizeof stalls->commons[i].value);
    move(&transfer, marks->touched, ranks * sizeof *marks->touched);
    move(&transfer, marks->touched_streams, streams * sizeof *marks->touched_streams);
    move(&transfer, stalls->chained, streams * sizeof *stalls->chained);
    move(&transfer, &stalls->chain_moved, sizeof stalls->chain_moved);
    move(&transfer, sim->clocks.timers, agents * sizeof *sim->clocks.timers);
    return transfer.bytes;
}

/* The simulation as it was at the node, but for clocks and lanes, which are up to date. */
static void restore(struct memo *memo)
{
    struct simulation *sim = memo->sim;
    if (memo->present)
        return;
    move_all(sim, LOAD, memo->node->key);
    sim->marks.dirty_first = 0;
    sim->marks.touched_count = 0;
    for (int rank = 0; rank < sim->program->ranks; rank++)
        if (sim->marks.touched[rank])
            sim->marks.touched_ranks[sim->marks.touched_count++] = rank;
    account_derive(sim);
    memo->present = true;
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
        sim->pipeline.hands[t].iteration =
            sim->pipeline.hands[t].task < 0 ? 0 : sim->pipeline.hands[t].iteration - by;
    for (int i = 0; i < p->ranks * p->tasks; i++)
        sim->pipeline.submitted[i] -= by;
    sim->base += by;
    if (by != 0)
        account_derive(sim);
    return by;
}

/* ---- nodes and edges ------------------------------------------------------------------------- */

static void free_node(struct simulation *sim, struct memo_node *node, int edge_count)
{
    for (int i = 0; node->edges && i < edge_count; i++) {
        const struct memo_edge *edge = node->edges[i];
        sim->result.steps += edge ? edge->taken * edge->steps : 0;
        sim->result.tasks += edge ? edge->taken * edge->tasks : 0;
        free(node->edges[i]);
    }
    free(node->edges);
    free(node->key);
    free(node);
}

/* The counts of the edges go into the result. */
static void forget(struct memo *memo)
{
    for (int b = 0; b < BUCKETS; b++)
        for (struct memo_node *node = memo->buckets[b], *next; node; node = next) {
            next = node->next;
            free_node(memo->sim, node, memo->edge_count);
        }
    memset(memo->buckets, 0, BUCKETS * sizeof *memo->buckets);
    memo->node = NULL;
    memo->origin.likely = NULL;
    memo->bytes = 0;
    memo->events = memo->learned = 0;
    memo->places = memo->sim->clocks.events.cap;
    memo->tried = false;
}

static struct memo_node *add_node(struct memo *memo, uint64_t hash)
{
    struct memo_node **bucket = &memo->buckets[hash % BUCKETS], *node = malloc(sizeof *node);
    if (!node)
        return NULL;
    *node = (struct memo_node){hash, *bucket, malloc(memo->key_bytes),
                               calloc((size_t)memo->edge_count, sizeof(struct memo_edge *))};
    if (!node->key || !node->edges) {
        free_node(memo->sim, node, memo->edge_count);
        return NULL;
    }
    memcpy(node->key, memo->scratch, memo->key_bytes);
    memo->bytes +=
        memo->key_bytes + (size_t)memo->edge_count * sizeof(struct memo_edge *) + sizeof *node;
    return *bucket = node;
}

/* The node of the simulation's present state, new or old; NULL: memory is exhausted. */
static struct memo_node *find_node(struct memo *memo)
{
    move_all(memo->sim, SAVE, (char *)memo->scratch);
    uint64_t hash = hash_words(memo->scratch, memo->key_words);
    for (struct memo_node *node = memo->buckets[hash % BUCKETS]; node; node = node->next)
        if (node->hash == hash && memcmp(node->key, memo->scratch, memo->key_bytes) == 0)
            return node;
    return add_node(memo, hash);
}

/* The machine's steps at the next event, recorded. NULL: memory is exhausted. */
static struct memo_edge *make_edge(struct memo *memo, bool alone)
{
    struct simulation *sim = memo->sim;
    const int64_t steps = sim->result.steps, tasks = sim->result.tasks;
    struct event event;
    int64_t shift = 0;
    size_t bytes;
    restore(memo);
    events_pop(&sim->clocks.events, &event);
    sim->now_ns = event.time_ns;
    sim->recording = &memo->recording;
    simulation_event(sim, event.agent);
    if (alone) {
        simulation_instant(sim);
        shift = rebase(sim);
    }
    struct memo_edge *edge = memo_edge_make(sim, event.agent, &bytes);
    sim->recording = NULL;
    if (!edge)
        return NULL;
    edge->settles = alone;
    edge->shift = (int)shift;
    edge->steps = (int)(sim->result.steps - steps);
    edge->tasks = (int)(sim->result.tasks - tasks);
    memo->bytes += bytes;
    return edge;
}

/* ---- the run --------------------------------------------------------------------------------- */

/* All is forgotten. false: memory is exhausted. */
static bool start_again(struct memo *memo)
{
    restore(memo);
    forget(memo);
    memo->node = find_node(memo);
    return memo->node;
}

/* Is memory used up, or will it be, as a trial shows? */
static bool is_full(struct memo *memo)
{
    bool on_trial = !memo->tried && memo->events >= TRIAL_EVENTS;
    memo->tried |= on_trial;
    return memo->bytes > MOST_BYTES || (on_trial && memo->learned * TRIAL_SHARE > memo->events);
}

static bool pays(const struct memo *memo)
{
    return memo->learned * LEARNED_SHARE < memo->events;
}

/* A new edge for the next event. The edge that was taken; NULL: the memo ends here. */
static struct memo_edge *learn(struct memo *memo, struct memo_edge *last)
{
    struct simulation *sim = memo->sim;
    bool alone;
    int place = events_first(&sim->clocks.events, &alone);
    if (place < 0)
        return NULL;
    struct memo_edge *edge = make_edge(memo, alone);
    struct memo_edge **known = &memo->node->edges[2 * place + !alone];
    struct memo_node *to = edge ? find_node(memo) : NULL;
    if (!to) {
        free(edge);
        simulation_fail(sim, diag_no_memory(sim->diag));
        return NULL;
    }
    *known = edge;
    if (alone)
        last->likely = edge;
    memo->node = edge->to = to;
    memo->events++;
    memo->learned++;
    bool full = is_full(memo), goes_on = !full || pays(memo);
    if (!full && memo->places == sim->clocks.events.cap)
        return edge;
    return start_again(memo) && goes_on ? &memo->origin : NULL;
}

/* The edge of the next event; NULL: it is not known yet. */
static struct memo_edge *look_up(struct memo *memo, struct memo_edge *last)
{
    bool alone;
    int place = events_first(&memo->sim->clocks.events, &alone);
    struct memo_edge *edge = place < 0 ? NULL : memo->node->edges[2 * place + !alone];
    if (edge && alone)
        last->likely = edge;
    return edge;
}

/* The last iteration that does not depend on the end of the data. */
static int64_t last_iteration(const struct program *p)
{
    int64_t end = p->ends[0];
    for (int rank = 1; rank < p->ranks; rank++)
        end = p->ends[rank] < end ? p->ends[rank] : end;
    return end - p->window - p->periods - p->depth - 2;
}

static bool begin(struct memo *memo)
{
    struct simulation *sim = memo->sim;
    memo->key_bytes = move_all(sim, MEASURE, NULL);
    memo->edge_count = 2 * sim->program->agent_count;
    memo->last = last_iteration(sim->program);
    memo->key_words = (memo->key_bytes / sizeof *memo->scratch / HASHED_WORDS + 1) * HASHED_WORDS;
    memo->scratch = calloc(memo->key_words, sizeof *memo->scratch);
    memo->buckets = calloc(BUCKETS, sizeof *memo->buckets);
    if (!memo->scratch || !memo->buckets)
        return false;
    forget(memo);
    rebase(sim);
    memo->present = true;
    memo->node = find_node(memo);
    return memo->node;
}

static bool may_go_on(const struct memo *memo)
{
    return memo->sim->status == STATUS_OK && memo->sim->pipeline.newest < memo->last &&
           !simulate_interrupted(memo->sim->options);
}

/* Take `next`, then likely successors as long as they come. Returns the last edge taken. */
static struct memo_edge *follow(struct memo *memo, struct memo_edge *next)
{
    struct simulation *sim = memo->sim;
    struct memo_edge *last;
    int64_t events = 0;
    do {
        last = next;
        memo_edge_take(sim, last);
        events++;
        next = last->likely;
    } while (next && events_leads(&sim->clocks.events, &next->seat) &&
             (last->plain || may_go_on(memo)));
    memo->node = last->to;
    memo->present = false;
    memo->events += events;
    return last;
}

static void go(struct memo *memo)
{
    struct memo_edge *last = &memo->origin, *next;
    while (last && may_go_on(memo)) {
        next = look_up(memo, last);
        last = next ? follow(memo, next) : learn(memo, last);
    }
    if (memo->node)
        restore(memo);
}

/* Tell the state again where the data ends. */
static void end(struct simulation *sim)
{
    for (int rank = 0; rank < sim->program->ranks; rank++)
        machine_end_data(sim->program, sim->state, rank, sim->program->ends[rank] - sim->base);
}

static bool applies(const struct simulation *sim)
{
    const struct simulate_observer *observer = sim->options->observer;
    bool watched = observer && (observer->span || observer->work || observer->step);
    return sim->program->tasks > 0 && !watched &&
           last_iteration(sim->program) > sim->pipeline.newest;
}

void memo_run(struct simulation *sim)
{
    struct memo memo = {.sim = sim};
    if (!applies(sim))
        return;
    if (begin(&memo)) {
        go(&memo);
        end(sim);
    } else {
        simulation_fail(sim, diag_no_memory(sim->diag));
    }
    if (memo.buckets)
        forget(&memo);
    free(memo.buckets);
    free(memo.scratch);
    recording_fini(&memo.recording);
}
