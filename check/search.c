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
 */
#include "search.h"

#include <stdlib.h>
#include <string.h>

#include "pack.h"
#include "check/reduce.h"
#include "check/stopwatch.h"
#include "visited.h"

enum { MAX_CHAIN = 1 << 20, PROGRESS_EVERY = 1 << 10 };

struct search {
    const struct program *program;
    const struct search_options *options;
    struct search_result *result;
    struct diag *diag;
    struct visited *visited;
    struct state *node, *work; /* the node being expanded, a successor */
    struct reducer reducer;
    struct transition *choices;
    unsigned char *packed;
    uint32_t *edges; /* pairs from, to; kept only for an endless search */
    size_t edge_count, edge_cap;
    struct timespec start;
    double last_progress;
    enum status status;
    bool stop;
    bool given_up; /* some run was not followed to its end */
};

/* ---- choices --------------------------------------------------------------------------------- */

/* The transitions to explore at the node. */
static int list_choices(struct search *search)
{
    int count = search->options->reduction
                    ? reducer_choices(&search->reducer, search->node, search->choices)
                    : machine_enabled(search->program, search->node, search->choices);
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
            int agent = reducer_next_free(&search->reducer, state);
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

/* A state where nothing can go on: the end, or a deadlock. */
static unsigned judge_end(struct search *search, const struct state *state)
{
    const struct program *p = search->program;
    if (machine_done(p, state)) {
        search->result->ends_well = true;
        return 0;
    }
    unsigned violated =
        1u << (reducer_data_ended(&search->reducer, state) ? PROPERTY_DRAIN : PROPERTY_DEADLOCK);
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

/* Let the one who asked look at search->work: the state after `choice` and `chain` free steps. */
static void visit(struct search *search, uint32_t id, const struct transition *choice, size_t chain)
{
    const struct search_options *options = search->options;
    if (options->visit && options->visit(options->visit_arg, search->work))
        found(search, 1u << PROPERTY_FAULTS, id, choice, chain);
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
    visit(search, id, choice, 0);
    for (size_t k = 1; search->options->reduction && !anchored && k < MAX_CHAIN && !search->stop;
         k++) {
        int agent = reducer_next_free(&search->reducer, search->work);
        if (agent < 0)
            break;
        anchored = machine_retires(p, search->work, agent);
        machine_step(p, search->work, (struct transition){agent, 0}, &effect);
        search->result->transitions++;
        if (effect.violated)
            found(search, effect.violated, id, choice, k);
        if (effect.violated & bad)
            return;
        visit(search, id, choice, k);
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

/* Programs built with `faults`: what is judged is who is blocked after a fault, and nothing else. True
   if there is nothing to expand here. */
static bool judge_fault(struct search *search, uint32_t id, int choices)
{
    const unsigned faults = 1u << PROPERTY_FAULTS;
    if (!machine_never_woken(search->program, search->node)) {
        search->result->ends_well |= choices == 0 && machine_failed(search->program, search->node);
        return choices == 0;
    }
    machine_copy(search->program, search->work, search->node);
    found(search, faults, id, NULL, MAX_CHAIN);
    return choices == 0 || search->options->cut_at & faults;
}

static void expand(struct search *search, uint32_t id)
{
    const struct program *p = search->program;
    pack_expand(p, visited_state(search->visited, id), search->node);
    int count = list_choices(search);
    if (p->options.faults && judge_fault(search, id, count))
        return;
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

static enum pace pace_for(const struct program *program, const struct search_options *options)
{
    unsigned bound = 1u << PROPERTY_BOUND;
    if (!program->tasks || program->plan->pipeline.retire == RETIRE_DEVICE ||
        !(options->properties & bound))
        return PACE_ANY; /* then the number in flight is bounded by construction */
    return options->cut_at & bound ? PACE_LATE_ADMISSION : PACE_LATE_DEVICE;
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
    return search->visited && search->node && search->work && search->choices && search->packed &&
           reducer_init(&search->reducer, p, pace_for(p, search->options));
}

static void release(struct search *search)
{
    visited_close(search->visited);
    machine_free(search->node);
    machine_free(search->work);
    free(search->choices);
    free(search->packed);
    reducer_fini(&search->reducer);
    free(search->edges);
}

enum status search_run(const struct program *program, const struct search_options *options,
                       struct search_result *out, struct diag *diag)
{
    *out = (struct search_result){0};
    struct search search = {.program = program, .options = options, .result = out, .diag = diag};
    search.start = stopwatch_start();
    if (!allocate(&search)) {
        release(&search);
        return diag_no_memory(diag);
    }
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
