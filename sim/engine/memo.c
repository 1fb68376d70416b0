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

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "lone_ranks.h"

enum { BUCKETS = 1 << 12, HASHED_WORDS = 4, CACHE_LINE = 64 };

/* An end of the data so far away that it makes no difference. */
static const int32_t FAR = INT32_C(1) << 30;
#ifdef SWSIM_CHECKS
static const size_t MOST_BYTES = (size_t)64 << 10; /* so that tests see it used up */
#else
static const size_t MOST_BYTES = (size_t)64 << 20;
#endif
/* Of an iteration: else none of its states is met again before all are forgotten. */
static const size_t MOST_BYTES_OF_ITERATION = (size_t)4 << 20;
/* Learning must be rarer than one event in so many, or it does not pay; in the first trial it may be more. */
enum { TRIAL_EVENTS = 4096, FIRST_SHARE = 2, LATER_SHARE = 4 };

struct memo_node {
    uint64_t hash;
    struct memo_node *next; /* of its bucket */
    char *key;              /* a snapshot */
    struct memo_edge *
        *edges; /* per place: of the only event of its time, of another; NULL: not known */
};

struct memo {
    struct simulation *sim;  /* the first: the counts of forgotten edges are its */
    struct memo_walk *walks; /* of all simulations that it serves */
    size_t key_bytes, bytes; /* of a key; in all */
    size_t key_words;        /* of a key, with zeros behind it */
    int edge_count;          /* of a node */
    uint64_t *scratch;
    struct memo_node **buckets;
    struct recording recording;
    int64_t last; /* iteration up to which the memo is used */
    int64_t events, learned;
    int64_t trial_events, trial_learned; /* as they were at the last trial */
    int places;                          /* of events when the edges were made */
    bool over;                           /* it does not pay */
};

struct memo_walk {
    struct memo *memo;
    struct memo_walk *next; /* of the memo */
    struct simulation *sim;
    struct memo_node *node;  /* where the simulation is; NULL: not known */
    bool present;            /* the simulation's state is that of the node */
    struct memo_edge *at;    /* what was taken last; NULL: the memo ends here */
    struct memo_edge origin; /* stands for what led to the first node */
};

/* ---- recordings ------------------------------------------------------------------------------ */

/* The records of an edge, in the order it keeps them, those with pointers first. */
#define KIND_LIST(X) X(draw) X(start) X(hold) X(change) X(iteration)

#define ADD(recording, kind, ...)                                                                  \
    do {                                                                                           \
        if (ARRAY_GROW((recording)->kind##s, (recording)->kind##_count, (recording)->kind##_cap))  \
            (recording)->kind##s[(recording)->kind##_count++] = (struct memo_##kind){__VA_ARGS__}; \
        else                                                                                       \
            (recording)->failed = true;                                                            \
    } while (0)

void recording_fini(struct recording *recording)
{
#define X(kind) free(recording->kind##s);
    KIND_LIST(X)
#undef X
}

void recording_start(struct simulation *sim, int agent, int priority, const struct timed_op *ops,
                     int count)
{
    for (int i = 0; i < count; i++) {
        const struct op_time *time = &sim->timing->ops[ops[i].op];
        ADD(sim->recording, draw, time->draw, time->mean_ns, ops[i].op, (int)ops[i].iteration);
    }
    ADD(sim->recording, start, {.place = sim->clocks.events.places[agent]}, events_order(priority),
        count, sim->lone && sim->program->agents[agent].kind == AGENT_COMM);
}

void recording_hold(struct simulation *sim, int op)
{
    ADD(sim->recording, hold, op);
}

void recording_lane(struct simulation *sim, int stream, int from, int to)
{
    ADD(sim->recording, change, .number = stream, .from = from, .to = to);
}

void recording_common(struct simulation *sim, int number, const struct stall *value)
{
    ADD(sim->recording, change, .number = ~number, .value = *value);
}

void recording_admitted(struct simulation *sim, int rank, int64_t iteration, int64_t in_flight)
{
    ADD(sim->recording, iteration, rank, (int)iteration, (int)in_flight);
}

void recording_finished(struct simulation *sim, int rank, int64_t iteration)
{
    ADD(sim->recording, iteration, rank, (int)iteration, ENDS);
}

/* ---- edges ----------------------------------------------------------------------------------- */

/* The next of the edge's lists begins at *at and is a copy. */
static void *copy_list(char **at, const void *items, int count, size_t size)
{
    char *copy = *at;
    if (count)
        memcpy(copy, items, (size_t)count * size);
    *at += (size_t)count * size;
    return copy;
}

static size_t edge_bytes(const struct recording *r)
{
    size_t bytes = sizeof(struct memo_edge);
#define X(kind) bytes += (size_t)r->kind##_count * sizeof *r->kind##s;
    KIND_LIST(X)
#undef X
    return (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

/* The recording's lists move behind the edge. */
static void move_lists(struct memo_edge *edge, struct recording *r)
{
    char *at = (char *)(edge + 1);
#define X(kind)                                                                                    \
    edge->kind##s = copy_list(&at, r->kind##s, r->kind##_count, sizeof *r->kind##s);               \
    edge->kind##_count = r->kind##_count;                                                          \
    r->kind##_count = 0;
    KIND_LIST(X)
#undef X
}

/* An edge of what was recorded, which is forgotten. free() ends it; NULL: memory is exhausted.
   *bytes: its size. */
static struct memo_edge *copy_recording(struct simulation *sim, int agent, size_t *bytes)
{
    *bytes = edge_bytes(sim->recording);
    struct memo_edge *edge = sim->recording->failed ? NULL : aligned_alloc(CACHE_LINE, *bytes);
    if (!edge)
        return NULL;
    *edge = (struct memo_edge){0};
    move_lists(edge, sim->recording);
    /* Recorded events have agents; they have seats once each agent has a place. */
    edge->seat = events_seat(&sim->clocks.events, sim->clocks.events.places[agent]);
    for (int i = 0; i < edge->start_count; i++)
        edge->starts[i].seat = events_seat(&sim->clocks.events, edge->starts[i].seat.place);
    edge->plain = edge->start_count == 1 && edge->draw_count == 1 && !edge->starts->lone &&
                  !edge->change_count && !edge->iteration_count && !sim->clocks.sharing;
    if (edge->plain) {
        edge->draw = edge->draws[0];
        edge->order = edge->starts->order;
    }
    edge->again = edge->plain && edge->starts->seat.place == edge->seat.place;
    return edge;
}

static inline void start_recorded(struct simulation *sim, const struct memo_start *start,
                                  const struct memo_draw *draws)
{
    int64_t longest_ns = memo_draw_ns(sim, draws);
    for (int i = 1; i < start->draws; i++) {
        int64_t ns = memo_draw_ns(sim, &draws[i]);
        longest_ns = ns > longest_ns ? ns : longest_ns;
    }
    events_put(&sim->clocks.events, &start->seat, sim->now_ns + longest_ns, start->order);
    if (start->lone)
        lone_rank_comes(sim, draws->op, draws->iteration + sim->base, longest_ns);
}

/* The same for sharing.h: ends, waits and starts. */
static void share_recorded(struct simulation *sim, const struct memo_edge *edge)
{
    const int *agents = sim->clocks.events.agents;
    const struct memo_draw *draws = edge->draws;
    sharing_finish(sim->clocks.sharing, agents[edge->seat.place], sim->now_ns);
    for (int i = 0; i < edge->hold_count; i++)
        sharing_hold(sim->clocks.sharing, edge->holds[i].op);
    for (int i = 0; i < edge->start_count; draws += edge->starts[i++].draws) {
        const struct memo_start *start = &edge->starts[i];
        for (int k = 0; k < start->draws; k++)
            sharing_start(sim->clocks.sharing, agents[start->seat.place], draws[k].op,
                          sim->clocks.events.times_ns[start->seat.node] - sim->now_ns, sim->now_ns);
    }
    if (edge->settles)
        sharing_settle(sim->clocks.sharing, sim->now_ns, &sim->clocks.events);
}

void memo_edge_take_all(struct simulation *sim, const struct memo_edge *edge)
{
    const struct memo_draw *draws = edge->draws;
    events_take(&sim->clocks.events, &edge->seat);
    for (int i = 0; i < edge->start_count; draws += edge->starts[i++].draws)
        start_recorded(sim, &edge->starts[i], draws);
    if (sim->clocks.sharing)
        share_recorded(sim, edge);
    if (edge->change_count)
        account_apply(sim, edge->changes, edge->change_count);
    if (edge->iteration_count)
        simulation_iterations(sim, edge->iterations, edge->iteration_count);
    sim->base += edge->shift;
}

/* ---- snapshots ------------------------------------------------------------------------------- */

struct transfer {
    enum transfer_mode { MEASURE, SAVE, LOAD } mode;
    char *key;
    size_t bytes; /* of it, so far */
};

static inline __attribute__((always_inline)) void memo_move_bytes(struct transfer *transfer,
                                                                  void *data, size_t bytes)
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
    memo_move_bytes(&transfer, sim->state->cells, p->at.bytes);
    memo_move_bytes(&transfer, sim->pipeline.hands,
                    (size_t)p->thread_count * sizeof *sim->pipeline.hands);
    memo_move_bytes(&transfer, sim->pipeline.submitted, tasks * sizeof *sim->pipeline.submitted);
    memo_move_bytes(&transfer, marks->dirty, (size_t)marks->dirty_words * sizeof *marks->dirty);
    memo_move_bytes(&transfer, sim->clocks.member_streams,
                    (size_t)p->member_count * sizeof *sim->clocks.member_streams);
    for (size_t s = 0; s < streams; s++)
        memo_move_bytes(&transfer, &stalls->lanes[s].blame, sizeof stalls->lanes[s].blame);
    for (int i = 0; i < stalls->common_count; i++)
        memo_move_bytes(&transfer, &stalls->commons[i].value, sizeof stalls->commons[i].value);
    memo_move_bytes(&transfer, marks->touched, ranks * sizeof *marks->touched);
    memo_move_bytes(&transfer, marks->touched_streams, streams * sizeof *marks->touched_streams);
    memo_move_bytes(&transfer, marks->stirred, (size_t)p->thread_count * sizeof *marks->stirred);
    memo_move_bytes(&transfer, stalls->chained, streams * sizeof *stalls->chained);
    memo_move_bytes(&transfer, &stalls->chain_moved, sizeof stalls->chain_moved);
    memo_move_bytes(&transfer, sim->clocks.timers, agents * sizeof *sim->clocks.timers);
    return transfer.bytes;
}

/* The simulation as it was at the node, but for clocks and lanes, which are up to date. */
static void memo_restore(struct memo_walk *walk)
{
    struct simulation *sim = walk->sim;
    if (walk->present)
        return;
    move_all(sim, LOAD, walk->node->key);
    sim->marks.dirty_first = 0;
    sim->marks.touched_count = 0;
    for (int rank = 0; rank < sim->program->ranks; rank++)
        if (sim->marks.touched[rank])
            sim->marks.touched_ranks[sim->marks.touched_count++] = rank;
    account_derive(sim);
    walk->present = true;
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

#ifdef SWSIM_CHECKS
/* True if every node is in its bucket, alone with its key, and each of its edges starts at the place where it is kept
   and leads to a node. */
static bool memo_check(const struct memo *memo)
{
    for (int b = 0; b < BUCKETS; b++)
        for (const struct memo_node *node = memo->buckets[b]; node; node = node->next) {
            if ((int)(node->hash % BUCKETS) != b)
                return false;
            for (const struct memo_node *other = node->next; other; other = other->next)
                if (memcmp(node->key, other->key, memo->key_bytes) == 0)
                    return false;
            for (int i = 0; i < memo->edge_count; i++)
                if (node->edges[i] && (node->edges[i]->seat.place != i / 2 || !node->edges[i]->to))
                    return false;
        }
    return true;
}
#endif

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
static void memo_forget(struct memo *memo)
{
#ifdef SWSIM_CHECKS
    assert(memo_check(memo));
#endif
    for (int b = 0; b < BUCKETS; b++)
        for (struct memo_node *node = memo->buckets[b], *next; node; node = next) {
            next = node->next;
            free_node(memo->sim, node, memo->edge_count);
        }
    memset(memo->buckets, 0, BUCKETS * sizeof *memo->buckets);
    for (struct memo_walk *walk = memo->walks; walk; walk = walk->next) {
        walk->node = NULL;
        walk->origin.likely = NULL;
        walk->at = memo->over ? NULL : &walk->origin;
    }
    memo->bytes = 0;
    memo->events = memo->learned = 0;
    memo->places = memo->sim->clocks.events.cap;
    memo->trial_events = memo->trial_learned = 0;
}

static struct memo_node *memo_add_node(struct memo *memo, uint64_t hash)
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
static struct memo_node *find_node(struct memo_walk *walk)
{
    struct memo *memo = walk->memo;
    move_all(walk->sim, SAVE, (char *)memo->scratch);
    uint64_t hash = hash_words(memo->scratch, memo->key_words);
    for (struct memo_node *node = memo->buckets[hash % BUCKETS]; node; node = node->next)
        if (node->hash == hash && memcmp(node->key, memo->scratch, memo->key_bytes) == 0)
            return node;
    return memo_add_node(memo, hash);
}

/* The machine's steps at the next event, recorded. NULL: memory is exhausted. */
static struct memo_edge *make_edge(struct memo_walk *walk, bool alone)
{
    struct simulation *sim = walk->sim;
    struct memo *memo = walk->memo;
    const int64_t steps = sim->result.steps, tasks = sim->result.tasks;
    struct event event;
    int64_t shift = 0;
    size_t bytes;
    memo_restore(walk);
    events_pop(&sim->clocks.events, &event);
    sim->now_ns = event.time_ns;
    sim->recording = &memo->recording;
    simulation_event(sim, event.agent);
    if (alone) {
        simulation_instant(sim);
        shift = rebase(sim);
    }
    struct memo_edge *edge = copy_recording(sim, event.agent, &bytes);
    sim->recording = NULL;
    if (!edge)
        return NULL;
    assert(edge->start_count <= edge->draw_count && edge->seat.place >= 0);
    edge->settles = alone;
    edge->shift = (int)shift;
    edge->steps = (int)(sim->result.steps - steps);
    edge->tasks = (int)(sim->result.tasks - tasks);
    memo->bytes += bytes;
    return edge;
}

/* ---- the run --------------------------------------------------------------------------------- */

/* All is forgotten. */
static void start_again(struct memo *memo)
{
    for (struct memo_walk *walk = memo->walks; walk; walk = walk->next)
        if (walk->node)
            memo_restore(walk);
    memo_forget(memo);
}

/* True if too much is learned for what is met again. To learn takes several times as long as to ask the machine. At
   first all is new; then it is looked again after twice as many events, at those since. */
static bool fails_trial(struct memo *memo)
{
    const int64_t events = memo->events - memo->trial_events;
    const int64_t learned = memo->learned - memo->trial_learned;
    if (events < TRIAL_EVENTS || events < memo->trial_events)
        return false;
    const int64_t share = memo->trial_events ? LATER_SHARE : FIRST_SHARE;
    memo->trial_events = memo->events;
    memo->trial_learned = memo->learned;
    return learned * share > events;
}

/* A new edge for the next event is taken; if there is one. */
static void memo_learn(struct memo_walk *walk)
{
    struct simulation *sim = walk->sim;
    struct memo *memo = walk->memo;
    bool alone;
    int place = events_first(&sim->clocks.events, &alone);
    struct memo_edge *edge = place < 0 ? NULL : make_edge(walk, alone), *last = walk->at;
    walk->at = edge;
    if (place < 0)
        return;
    struct memo_edge **known = &walk->node->edges[2 * place + !alone];
    struct memo_node *to = edge ? find_node(walk) : NULL;
    assert(!*known);
    if (!to) {
        free(edge);
        simulation_fail(sim, diag_no_memory(sim->diag));
        return;
    }
    *known = edge;
    if (alone)
        last->likely = edge;
    walk->node = edge->to = to;
    memo->events++;
    memo->learned++;
    bool full = memo->bytes > MOST_BYTES;
    memo->over = fails_trial(memo) || (full && memo->learned * LATER_SHARE > memo->events);
    if (memo->over || full || memo->places != sim->clocks.events.cap)
        start_again(memo);
}

/* The edge of the next event; NULL: it is not known yet. */
static struct memo_edge *look_up(struct memo_walk *walk)
{
    bool alone;
    int place = events_first(&walk->sim->clocks.events, &alone);
    struct memo_edge *edge = place < 0 ? NULL : walk->node->edges[2 * place + !alone];
    if (edge && alone)
        walk->at->likely = edge;
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

/* True if the states of an iteration would fit. At least one is met for each instance of a task. */
static bool memo_fits(struct memo *memo)
{
    const struct program *p = memo->sim->program;
    memo->key_bytes = move_all(memo->sim, MEASURE, NULL);
    memo->edge_count = 2 * p->agent_count;
    const size_t node = memo->key_bytes + (size_t)memo->edge_count * sizeof(struct memo_edge *);
    return node <= MOST_BYTES_OF_ITERATION / ((size_t)p->ranks * (size_t)p->tasks);
}

static bool may_go_on(const struct memo_walk *walk)
{
    const struct simulation *sim = walk->sim;
    return sim->status == STATUS_OK && sim->pipeline.newest < walk->memo->last &&
           !simulate_interrupted(sim->options);
}

/* Take `next`, then likely successors as long as they come. */
static void memo_follow(struct memo_walk *walk, struct memo_edge *next)
{
    struct simulation *sim = walk->sim;
    const struct events *clock = &sim->clocks.events;
    struct memo_edge *last;
    int64_t events = 0;
    do {
        last = next;
        memo_edge_take(sim, last);
#ifdef SWSIM_CHECKS
        assert(events_check(clock));
#endif
        events++;
        next = last->likely;
    } while (next && events_leads(clock, &next->seat) &&
             clock->times_ns[next->seat.node] < sim->horizon_ns &&
             (last->plain || (may_go_on(walk) && sim->pipeline.newest < sim->most)));
    assert(last->to);
    walk->at = last;
    walk->node = last->to;
    walk->present = false;
    walk->memo->events += events;
}

static bool memo_applies(const struct simulation *sim)
{
    const struct simulate_observer *observer = sim->options->observer;
    bool watched = observer && (observer->span || observer->work || observer->step);
    return sim->program->tasks > 0 && !watched &&
           last_iteration(sim->program) > sim->pipeline.newest;
}

static void memo_free(struct memo *memo)
{
    if (memo->buckets)
        memo_forget(memo);
    free(memo->buckets);
    free(memo->scratch);
    recording_fini(&memo->recording);
    free(memo);
}

/* NULL: memory is exhausted, or it cannot pay. */
static struct memo *memo_make(struct simulation *sim)
{
    struct memo *memo = calloc(1, sizeof *memo);
    if (!memo) {
        simulation_fail(sim, diag_no_memory(sim->diag));
        return NULL;
    }
    memo->sim = sim;
    if (!memo_fits(memo)) {
        free(memo);
        return NULL;
    }
    memo->last = last_iteration(sim->program);
    memo->key_words = (memo->key_bytes / sizeof *memo->scratch / HASHED_WORDS + 1) * HASHED_WORDS;
    memo->scratch = calloc(memo->key_words, sizeof *memo->scratch);
    memo->buckets = calloc(BUCKETS, sizeof *memo->buckets);
    if (memo->scratch && memo->buckets) {
        memo_forget(memo);
        return memo;
    }
    simulation_fail(sim, diag_no_memory(sim->diag));
    memo_free(memo);
    return NULL;
}

void memo_open(struct simulation *sim, const struct simulation *fellow)
{
    if (!memo_applies(sim))
        return;
    struct memo *memo = fellow ? fellow->memo ? fellow->memo->memo : NULL : memo_make(sim);
    if (!memo)
        return;
    struct memo_walk *walk = sim->memo = calloc(1, sizeof *walk);
    if (!walk) {
        simulation_fail(sim, diag_no_memory(sim->diag));
        if (!fellow)
            memo_free(memo);
        return;
    }
    *walk = (struct memo_walk){
        .memo = memo, .next = memo->walks, .sim = sim, .present = true, .at = &walk->origin};
    memo->walks = walk;
    rebase(sim);
}

void memo_go_on(struct simulation *sim)
{
    struct memo_walk *walk = sim->memo;
    while (walk && walk->at && may_go_on(walk) && !simulation_pauses(sim)) {
        if (!walk->node)
            walk->node = find_node(walk);
        if (!walk->node) {
            simulation_fail(sim, diag_no_memory(sim->diag));
            break;
        }
        struct memo_edge *next = look_up(walk);
        if (next)
            memo_follow(walk, next);
        else
            memo_learn(walk);
    }
    if (!walk || (walk->at && may_go_on(walk)))
        return;
    if (walk->node)
        memo_restore(walk);
    /* Tell the state again where the data ends. */
    for (int rank = 0; rank < sim->program->ranks; rank++)
        machine_end_data(sim->program, sim->state, rank, sim->program->ends[rank] - sim->base);
    memo_close(sim);
}

void memo_close(struct simulation *sim)
{
    struct memo_walk *walk = sim->memo;
    struct memo *memo = walk->memo;
    struct memo_walk **at = &memo->walks;
    while (*at != walk)
        at = &(*at)->next;
    *at = walk->next;
    free(walk);
    sim->memo = NULL;
    if (!memo->walks)
        memo_free(memo);
}
