/*
 * automaton.c - see automaton.h.
 *
 *     node   key: a snapshot   reflexes: [place 0, alone] [place 0, not alone] [place 1, alone] ...
 *              ^                           |
 *              |                           v
 *              +------------- to ------- reflex ---- likely ---> reflex ---- likely ---> ...
 *
 * Memory is bounded: when it is used up everything is forgotten and learned again; when that does
 * not pay any more, the plain engine goes on.
 */
#include "automaton.h"

#include <stdlib.h>
#include <string.h>

#include "plan/hash.h"
#include "reflex.h"

enum { BUCKETS = 1 << 12, HASHED_WORDS = 4 };

/* So far away is the end of the data that it makes no difference. */
static const int32_t FAR = INT32_C(1) << 30;
static const size_t MOST_BYTES = (size_t)64 << 20;
/* Learning must be rarer than one event in so many, or it does not pay. */
enum { LEARNED_SHARE = 4, TRIAL_EVENTS = 4096, TRIAL_SHARE = 2 };

struct node {
    uint64_t hash;
    struct node *next; /* of its bucket */
    char *key;         /* a snapshot */
    struct reflex *
        *reflexes; /* per place: of the only event of its time, of another; NULL: not known */
};

struct automaton {
    struct simulation *sim;
    size_t key_bytes, bytes; /* of a key; in all */
    size_t key_words;        /* of a key, with zeros behind it */
    int reflex_count;        /* of a node */
    uint64_t *scratch;
    struct node **buckets;
    struct recording recording;
    struct node *node;    /* where the simulation is */
    bool present;         /* the simulation's state is that of the node */
    struct reflex origin; /* stands for what led to the first node */
    int64_t last;         /* iteration up to which the automaton goes */
    int64_t events, learned;
    int places; /* there were for events when the reflexes were made */
    bool tried;
};

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
    move(&transfer, sim->pipeline.hands, (size_t)p->thread_count * sizeof *sim->pipeline.hands);
    move(&transfer, sim->pipeline.submitted,
         (size_t)p->ranks * (size_t)p->tasks * sizeof *sim->pipeline.submitted);
    move(&transfer, sim->marks.dirty, (size_t)sim->marks.dirty_words * sizeof *sim->marks.dirty);
    move(&transfer, sim->clocks.member_streams,
         (size_t)p->member_count * sizeof *sim->clocks.member_streams);
    for (int s = 0; s < p->stream_count; s++)
        move(&transfer, &sim->stalls.lanes[s].blame, sizeof sim->stalls.lanes[s].blame);
    for (int i = 0; i < sim->stalls.common_count; i++)
        move(&transfer, &sim->stalls.commons[i].value, sizeof sim->stalls.commons[i].value);
    move(&transfer, sim->marks.touched, (size_t)p->ranks * sizeof *sim->marks.touched);
    move(&transfer, sim->marks.touched_streams,
         (size_t)p->stream_count * sizeof *sim->marks.touched_streams);
    move(&transfer, sim->stalls.chained, (size_t)p->stream_count * sizeof *sim->stalls.chained);
    move(&transfer, &sim->stalls.chain_moved, sizeof sim->stalls.chain_moved);
    move(&transfer, sim->clocks.timers, (size_t)p->agent_count * sizeof *sim->clocks.timers);
}

static size_t key_bytes(const struct simulation *sim)
{
    const struct program *p = sim->program;
    return p->at.bytes + (size_t)p->thread_count * sizeof *sim->pipeline.hands +
           (size_t)p->ranks * (size_t)p->tasks * sizeof *sim->pipeline.submitted +
           (size_t)sim->marks.dirty_words * sizeof *sim->marks.dirty +
           (size_t)p->member_count * sizeof *sim->clocks.member_streams +
           (size_t)p->stream_count * sizeof sim->stalls.lanes[0].blame +
           (size_t)sim->stalls.common_count * sizeof sim->stalls.commons[0].value +
           (size_t)p->stream_count *
               (sizeof *sim->marks.touched_streams + sizeof *sim->stalls.chained) +
           sizeof sim->stalls.chain_moved + (size_t)p->ranks * sizeof *sim->marks.touched +
           (size_t)p->agent_count * sizeof *sim->clocks.timers;
}

/* The simulation as it was at the node; clocks and lanes have gone on without it. */
static void restore(struct automaton *a)
{
    struct simulation *sim = a->sim;
    if (a->present)
        return;
    move_all(sim, a->node->key, false);
    sim->marks.dirty_first = 0;
    sim->marks.touched_count = 0;
    for (int rank = 0; rank < sim->program->ranks; rank++)
        if (sim->marks.touched[rank])
            sim->marks.touched_ranks[sim->marks.touched_count++] = rank;
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

static void free_node(struct simulation *sim, struct node *node, int reflex_count)
{
    for (int i = 0; node->reflexes && i < reflex_count; i++) {
        const struct reflex *reflex = node->reflexes[i];
        sim->result.steps += reflex ? reflex->taken * reflex->steps : 0;
        sim->result.tasks += reflex ? reflex->taken * reflex->tasks : 0;
        free(node->reflexes[i]);
    }
    free(node->reflexes);
    free(node->key);
    free(node);
}

/* What was counted goes into the result. */
static void forget(struct automaton *a)
{
    for (int b = 0; b < BUCKETS; b++)
        for (struct node *node = a->buckets[b], *next; node; node = next) {
            next = node->next;
            free_node(a->sim, node, a->reflex_count);
        }
    memset(a->buckets, 0, BUCKETS * sizeof *a->buckets);
    a->node = NULL;
    a->origin.likely = NULL;
    a->bytes = 0;
    a->events = a->learned = 0;
    a->places = a->sim->clocks.events.cap;
    a->tried = false;
}

static struct node *add_node(struct automaton *a, uint64_t hash)
{
    struct node **bucket = &a->buckets[hash % BUCKETS], *node = malloc(sizeof *node);
    if (!node)
        return NULL;
    *node = (struct node){hash, *bucket, malloc(a->key_bytes),
                          calloc((size_t)a->reflex_count, sizeof(struct reflex *))};
    if (!node->key || !node->reflexes) {
        free_node(a->sim, node, a->reflex_count);
        return NULL;
    }
    memcpy(node->key, a->scratch, a->key_bytes);
    a->bytes += a->key_bytes + (size_t)a->reflex_count * sizeof(struct reflex *) + sizeof *node;
    return *bucket = node;
}

/* The node of the simulation's present state, new or old; NULL: memory is exhausted. */
static struct node *find_node(struct automaton *a)
{
    move_all(a->sim, (char *)a->scratch, true);
    uint64_t hash = hash_words(a->scratch, a->key_words);
    for (struct node *node = a->buckets[hash % BUCKETS]; node; node = node->next)
        if (node->hash == hash && memcmp(node->key, a->scratch, a->key_bytes) == 0)
            return node;
    return add_node(a, hash);
}

/* The machine does it, and it is written down. NULL: memory is exhausted. */
static struct reflex *make_reflex(struct automaton *a, bool alone)
{
    struct simulation *sim = a->sim;
    const int64_t steps = sim->result.steps, tasks = sim->result.tasks;
    struct event event;
    int64_t shift = 0;
    size_t bytes;
    restore(a);
    events_pop(&sim->clocks.events, &event);
    sim->now_ns = event.time_ns;
    sim->recording = &a->recording;
    simulation_event(sim, event.agent);
    if (alone) {
        simulation_instant(sim);
        shift = rebase(sim);
    }
    struct reflex *reflex = reflex_make(sim, event.agent, &bytes);
    sim->recording = NULL;
    if (!reflex)
        return NULL;
    reflex->settles = alone;
    reflex->shift = (int)shift;
    reflex->steps = (int)(sim->result.steps - steps);
    reflex->tasks = (int)(sim->result.tasks - tasks);
    a->bytes += bytes;
    return reflex;
}

/* ---- the run --------------------------------------------------------------------------------- */

/* All is forgotten. false: memory is exhausted. */
static bool start_again(struct automaton *a)
{
    restore(a);
    forget(a);
    a->node = find_node(a);
    return a->node;
}

/* Has memory been used up, or does it look as if it would be, and would the plain engine be as fast? */
static bool is_full(struct automaton *a)
{
    bool on_trial = !a->tried && a->events >= TRIAL_EVENTS;
    a->tried |= on_trial;
    return a->bytes > MOST_BYTES || (on_trial && a->learned * TRIAL_SHARE > a->events);
}

static bool pays(const struct automaton *a)
{
    return a->learned * LEARNED_SHARE < a->events;
}

/* Of the event that is next. The reflex that was done; NULL: the automaton ends here. */
static struct reflex *learn(struct automaton *a, struct reflex *last)
{
    struct simulation *sim = a->sim;
    bool alone;
    int place = events_first(&sim->clocks.events, &alone);
    if (place < 0)
        return NULL;
    struct reflex *reflex = make_reflex(a, alone);
    struct reflex **known = &a->node->reflexes[2 * place + !alone];
    struct node *to = reflex ? find_node(a) : NULL;
    if (!to) {
        free(reflex);
        simulation_fail(sim, diag_no_memory(sim->diag));
        return NULL;
    }
    *known = reflex;
    if (alone)
        last->likely = reflex;
    a->node = reflex->to = to;
    a->events++;
    a->learned++;
    bool full = is_full(a), goes_on = !full || pays(a);
    if (!full && a->places == sim->clocks.events.cap)
        return reflex;
    return start_again(a) && goes_on ? &a->origin : NULL;
}

/* What is known to follow; NULL: nothing. */
static struct reflex *look_up(struct automaton *a, struct reflex *last)
{
    bool alone;
    int place = events_first(&a->sim->clocks.events, &alone);
    struct reflex *reflex = place < 0 ? NULL : a->node->reflexes[2 * place + !alone];
    if (reflex && alone)
        last->likely = reflex;
    return reflex;
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
    struct simulation *sim = a->sim;
    a->key_bytes = key_bytes(sim);
    a->reflex_count = 2 * sim->program->agent_count;
    a->last = last_iteration(sim->program);
    a->key_words = (a->key_bytes / sizeof *a->scratch / HASHED_WORDS + 1) * HASHED_WORDS;
    a->scratch = calloc(a->key_words, sizeof *a->scratch);
    a->buckets = calloc(BUCKETS, sizeof *a->buckets);
    if (!a->scratch || !a->buckets)
        return false;
    forget(a);
    rebase(sim);
    a->present = true;
    a->node = find_node(a);
    return a->node;
}

static bool may_go_on(const struct automaton *a)
{
    return a->sim->status == STATUS_OK && a->sim->pipeline.newest < a->last;
}

/* `next`, and what followed last time, as long as that comes again. Returns the last one done. */
static struct reflex *follow(struct automaton *a, struct reflex *next)
{
    struct simulation *sim = a->sim;
    struct reflex *last;
    int64_t events = 0;
    do {
        last = next;
        reflex_do(sim, last);
        events++;
        next = last->likely;
    } while (next && events_leads(&sim->clocks.events, &next->seat) &&
             (last->plain || may_go_on(a)));
    a->node = last->to;
    a->present = false;
    a->events += events;
    return last;
}

static void go(struct automaton *a)
{
    struct reflex *last = &a->origin, *next;
    while (last && may_go_on(a)) {
        next = look_up(a, last);
        last = next ? follow(a, next) : learn(a, last);
    }
    if (a->node)
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
    return sim->program->tasks > 0 && !watched &&
           last_iteration(sim->program) > sim->pipeline.newest;
}

void automaton_run(struct simulation *sim)
{
    struct automaton a = {.sim = sim};
    if (!applies(sim))
        return;
    if (begin(&a)) {
        go(&a);
        end(sim);
    } else {
        simulation_fail(sim, diag_no_memory(sim->diag));
    }
    if (a.buckets)
        forget(&a);
    free(a.buckets);
    free(a.scratch);
    recording_fini(&a.recording);
}
