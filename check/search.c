/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.c - see search.h.
 *
 *     states      0 1 2 3 4 5 | 6 7 8 9 | 10 11 12 13 | 14 15 ...
 *                 committed     batch 1   batch 2       not yet taken
 *                               expanded  expanded
 *                               by one    by another
 *                               thread    thread
 *
 * The numbers of the states are the queue. A thread takes the next few nodes as a batch and expands
 * them alone (explore.h); the tree of states is shared without locks. The results are committed, by
 * any thread, in the order of the nodes: only then do new states get their numbers and violations
 * count. So any number of threads gives the result of one. The work under the lock is one lookup
 * in a table for each transition, little beside the cost of finding the transition.
 *
 * One thread finds the first states, in a tree ordered by rank and agent (leaves.h); then the tree
 * is laid out anew by a sample of these states, and they are moved into it.
 */
#include "search.h"

#include <pthread.h>
#include <stdlib.h>

#include "leaves.h"
#include "bitstate.h"
#include "cycle.h"
#include "explore.h"
#include "paths.h"
#include "base/array.h"

#include <assert.h>
#include "base/assert_index.h"
#include "base/hash.h"

/* ---- a few long walks, for violations that lie deep ------------------------------------------ */

/*
 * A breadth-first search of many ranks passes all combinations of their first choices before it sees the second
 * ones. A walk takes one choice after the other, by a fixed sequence of pseudo-random numbers, with the same steps
 * and chains as the search, and looks at all successors of the states it passes. It proves nothing; what it finds
 * is a run of the machine.
 */

enum { WALK_NODES = 1 << 12 };

struct probe {
    struct explorer *explorer;
    struct batch *batch;
    struct search_result *result;
    struct search_path choices; /* of this walk */
    size_t choice_cap;
    uint64_t draws;
};

/* The witness of a violation: the choices of the walk, then the one that shows it. */
static enum status probe_keep(struct probe *probe, const struct violation *seen)
{
    struct search_result *result = probe->result;
    enum status status = STATUS_OK;
    const size_t taken = probe->choices.count;
    if (seen->stepped && !search_path_push(&probe->choices, &probe->choice_cap, seen->choice))
        return STATUS_SYSTEM;
    size_t count = probe->choices.count;
    probe->choices.count = taken;
    for (int p = 0; p < PROPERTY_COUNT && status == STATUS_OK; p++)
        if (seen->violated & ~result->found & 1u << p)
            status = path_replay(probe->explorer->program, probe->explorer->options,
                                 probe->choices.steps, count, seen->chain, &result->witness[p]);
    if (status == STATUS_OK)
        result->found |= seen->violated;
    return status;
}

/* One of the successors, seldom the end of the data. */
static const struct successor *probe_choose(struct probe *probe)
{
    const struct batch *batch = probe->batch;
    const struct successor *chosen = NULL;
    for (int tries = 0; tries < 4; tries++) {
        uint64_t draw = hash_mix(++probe->draws * UINT64_C(0x9e3779b97f4a7c15));
        chosen = &batch->successors[draw % batch->successor_count];
        if (chosen->by.agent != 0 || chosen->by.choice == 0)
            break;
    }
    return chosen;
}

/* Expand the node; its violations end the walk. */
static enum status probe_look(struct probe *probe, uint64_t root)
{
    struct batch *batch = probe->batch;
    batch->first = 0;
    batch->count = 1;
    batch->roots[0] = root;
    explorer_expand(probe->explorer, batch);
    probe->result->transitions += batch->nodes[0].transitions;
    enum status status = batch->status;
    for (size_t i = 0; i < batch->violation_count && status == STATUS_OK; i++)
        status = probe_keep(probe, &batch->violations[i]);
    return status;
}

static enum status probe_walk(struct probe *probe, uint64_t root, uint64_t until)
{
    const struct batch *batch = probe->batch;
    probe->choices.count = 0;
    for (int node = 0; node < WALK_NODES && probe->result->transitions < until; node++) {
        enum status status = probe_look(probe, root);
        if (status != STATUS_OK || batch->violation_count > 0 || batch->successor_count == 0 ||
            watch_over(probe->explorer->watch))
            return status;
        const struct successor *next = probe_choose(probe);
        root = next->root;
        if (!search_path_push(&probe->choices, &probe->choice_cap, next->by))
            return STATUS_SYSTEM;
    }
    return STATUS_OK;
}

/* Walk from the node `root` until one of `properties` is violated or `steps` machine steps are taken. Adds
   to the counts, to `found` and to the witnesses of `result`. `batch` is room for the work. */
static enum status probe_run(struct explorer *explorer, struct batch *batch, uint64_t root,
                             unsigned properties, uint64_t steps, struct search_result *result)
{
    struct probe probe = {.explorer = explorer, .batch = batch, .result = result};
    uint64_t until = result->transitions + steps;
    enum status status = STATUS_OK;
    unsigned before = result->found;
    while (status == STATUS_OK && result->found == before && result->transitions < until &&
           !watch_over(explorer->watch)) {
        batch->properties = properties;
        uint64_t from = result->transitions;
        status = probe_walk(&probe, root, until);
        if (result->transitions == from)
            break;
    }
    free(probe.choices.steps);
    return status;
}

const char SEARCH_BEHIND[] = "steps behind a violation";

enum { BATCHES_A_THREAD = 4, PREFETCH_AHEAD = 8 };

#ifdef SWSIM_CHECKS
enum { PROBE_STATES = 50, LEARN_STATES = 100 };
#else
enum { PROBE_STATES = 1 << 11, LEARN_STATES = 1 << 14 };
#endif

struct search_worker {
    struct exact_search *search;
    struct explorer explorer;
    pthread_t thread;
};

struct exact_search {
    const struct program *program;
    const struct search_options *options;
    struct search_result *result;
    struct budget budget;
    struct search_watch watch;
    struct tree tree;
    struct states states;
    struct edges edges; /* only for an endless search */
    struct tree_order order;
    double last_progress;
    uint64_t found_at; /* transitions when the first violation was found */

    pthread_mutex_t lock; /* protects the fields below, states and result */
    pthread_cond_t changed;
    struct search_worker *workers;
    int threads;
    uint32_t pause_at;     /* the workers return when there are so many states */
    struct batch *batches; /* a ring: batch n is at n mod ring */
    bool *ready;           /* of each: true if it is expanded */
    uint64_t taken, committed, ring;
    uint32_t next; /* the first node in no batch */
    enum status status;
    bool stop;
    bool given_up; /* some run was not followed to its end */
};

/* ---- committing a batch ---------------------------------------------------------------------- */

static void end_search(struct exact_search *search, const char *limit)
{
    if (!search->stop)
        search->result->limit = limit;
    search->stop = true;
}

/* A refused request for memory ends the search, which keeps its results. */
static void search_refuse(struct exact_search *search, enum status status)
{
    if (status == STATUS_OK)
        return;
    search->result->no_memory |= status == STATUS_SYSTEM;
    end_search(search, status == STATUS_SYSTEM ? "no more memory in the system" : "memory");
}

static void stop_if_found(struct exact_search *search)
{
    if (search_has_enough(search->options, search->result->found))
        end_search(search, NULL);
}

static void judge_violation(struct exact_search *search, const struct violation *seen)
{
    struct search_result *result = search->result;
    const struct search_options *options = search->options;
    unsigned violated = seen->violated & ~result->found;
    for (int p = 0; p < PROPERTY_COUNT; p++)
        if (violated & 1u << p) {
            enum status status =
                path_to(search->program, options, &search->states, seen->id,
                        seen->stepped ? &seen->choice : NULL, seen->chain, &result->witness[p]);
            search->status = search->status == STATUS_OK ? status : search->status;
        }
    if (!result->found)
        search->found_at = result->transitions;
    result->found |= violated;
    stop_if_found(search);
}

static void search_keep_successor(struct exact_search *search, uint32_t parent,
                                  const struct successor *found)
{
    uint32_t id;
    bool is_new;
    enum status status =
        states_insert(&search->states, found->root, parent, found->by, &id, &is_new);
    if (status == STATUS_OK && search->options->endless && parent != STATES_NONE)
        status = edges_add(&search->edges, id);
    search_refuse(search, status);
}

/* True if the search has taken more than `steps` since it had taken `from`. 0 steps: no limit. */
static bool search_is_far(const struct exact_search *search, uint64_t from, uint64_t steps)
{
    return steps && search->result->transitions > from + steps;
}

static void commit_node(struct exact_search *search, const struct batch *batch, size_t node)
{
    ASSERT_INDEX(node, batch->count);
    const struct expansion *now = &batch->nodes[node];
    size_t violation = node ? batch->nodes[node - 1].violations : 0;
    size_t successor = node ? batch->nodes[node - 1].successors : 0;
    bool first = batch->first == STATES_NONE;
    uint32_t id = first ? STATES_NONE : batch->first + (uint32_t)node;
    search->result->transitions += now->transitions;
    search->result->ends_well |= now->ends_well;
    search->result->avoided |= now->avoids;
    search->given_up |= now->given_up;
    if (search->options->endless && !first)
        search_refuse(search, edges_begin(&search->edges));
    for (; violation < now->violations; violation++)
        judge_violation(search, &batch->violations[violation]);
    for (; successor < now->successors && !search->stop; successor++) {
        if (successor + PREFETCH_AHEAD < batch->successor_count)
            states_prefetch(&search->states, batch->successors[successor + PREFETCH_AHEAD].root);
        search_keep_successor(search, id, &batch->successors[successor]);
    }
    const struct search_limits *limits = &search->options->limits;
    if (limits->states && states_count(&search->states) > limits->states)
        end_search(search, "states");
    if (search_is_far(search, 0, limits->steps))
        end_search(search, "steps");
    if (search->result->found && search_is_far(search, search->found_at, limits->steps_behind))
        end_search(search, SEARCH_BEHIND);
}

static void search_commit(struct exact_search *search, const struct batch *batch)
{
    for (size_t node = 0; node < batch->done && !search->stop; node++)
        commit_node(search, batch, node);
    if (!search->stop)
        search_refuse(search, batch->status);
    if (!search->stop && watch_over(&search->watch))
        end_search(search, watch_interrupted(&search->watch) ? "interrupted" : "time");
}

static void search_report_progress(struct exact_search *search)
{
    double seconds = stopwatch_seconds(&search->watch.start);
    if (!search->options->progress || seconds - search->last_progress < 0.5)
        return;
    search->last_progress = seconds;
    uint32_t states = states_count(&search->states);
    struct search_progress progress = {.states = states,
                                       .transitions = search->result->transitions,
                                       .frontier = states - search->next,
                                       .bytes = atomic_load(&search->budget.used_bytes),
                                       .seconds = seconds};
    search->options->progress(search->options->progress_arg, &progress);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* With the lock held: the nodes of the batches that are taken and not committed follow each other, and end where the nodes
   that are in no batch begin. */
#ifdef SWSIM_CHECKS
static bool queue_check(const struct exact_search *search)
{
    uint32_t next = search->next;
    if (search->committed > search->taken || search->taken - search->committed > search->ring)
        return false;
    for (uint64_t number = search->taken; number-- > search->committed;) {
        const struct batch *batch = &search->batches[number % search->ring];
        if (batch->count == 0 || batch->first + batch->count != next)
            return false;
        next = batch->first;
    }
    return search->next <= states_count(&search->states);
}
#endif

static bool search_is_over(const struct exact_search *search)
{
    if (search->stop || search->status != STATUS_OK)
        return true;
    uint32_t states = states_count(&search->states);
    return search->taken == search->committed &&
           (search->next == states || states >= search->pause_at);
}

/* The next nodes as a batch, in *number; false: there are none now. Few nodes are shared among all
   threads. */
static bool take_batch(struct exact_search *search, uint64_t *number)
{
    uint32_t left = states_count(&search->states) - search->next;
    if (left == 0 || search->taken - search->committed == search->ring)
        return false;
    uint32_t share = left / (uint32_t)search->threads / 2;
    uint32_t wanted = search->threads == 1 ? left : share ? share : 1;
    struct batch *batch = &search->batches[search->taken % search->ring];
    batch->first = search->next;
    batch->count = wanted < BATCH_NODES ? wanted : BATCH_NODES;
    batch->properties = search->options->properties & ~search->result->found;
    for (uint32_t i = 0; i < batch->count; i++)
        batch->roots[i] = states_root(&search->states, batch->first + i);
    search->next += batch->count;
    *number = search->taken++;
    assert(!search->ready[*number % search->ring]);
#ifdef SWSIM_CHECKS
    assert(queue_check(search));
#endif
    return true;
}

static void commit_ready(struct exact_search *search)
{
    while (search->committed < search->taken && search->ready[search->committed % search->ring] &&
           !search->stop) {
        uint64_t at = search->committed++ % search->ring;
        search->ready[at] = false;
        search_commit(search, &search->batches[at]);
    }
    if (search->options->going_on && !search->stop)
        search->options->going_on(search->options->going_on_arg, search->result);
    search_report_progress(search);
}

static void *work(void *arg)
{
    struct search_worker *worker = arg;
    struct exact_search *search = worker->search;
    pthread_mutex_lock(&search->lock);
    while (!search_is_over(search)) {
        uint64_t number;
        if (!take_batch(search, &number)) {
            pthread_cond_wait(&search->changed, &search->lock);
            continue;
        }
        pthread_mutex_unlock(&search->lock);
        explorer_expand(&worker->explorer, &search->batches[number % search->ring]);
        pthread_mutex_lock(&search->lock);
        assert(number >= search->committed && number < search->taken);
        search->ready[number % search->ring] = true;
        commit_ready(search);
        pthread_cond_broadcast(&search->changed);
    }
    pthread_mutex_unlock(&search->lock);
    return NULL;
}

/* The caller is a worker, too. If the system refuses a thread, the search goes on with fewer. */
static void run_workers(struct exact_search *search)
{
    int started = 1, wanted = search->threads;
    while (started < wanted && pthread_create(&search->workers[started].thread, NULL, work,
                                              &search->workers[started]) == 0)
        started++;
    work(&search->workers[0]);
    for (int i = 1; i < started; i++)
        pthread_join(search->workers[i].thread, NULL);
}

/* ---- the search ------------------------------------------------------------------------------ */

static enum status open_workers(struct exact_search *search, int threads)
{
    size_t count = (size_t)threads;
    search->threads = threads;
    search->ring = count * BATCHES_A_THREAD;
    search->taken = search->committed = 0;
    struct budget *budget = &search->budget;
    enum status status = budget_alloc(budget, count * sizeof *search->workers, &search->workers);
    if (status == STATUS_OK)
        status = budget_alloc(budget, search->ring * sizeof *search->batches, &search->batches);
    if (status == STATUS_OK)
        status = budget_alloc(budget, search->ring * sizeof *search->ready, &search->ready);
    for (uint64_t i = 0; status == STATUS_OK && i < search->ring; i++)
        batch_open(&search->batches[i], budget);
    for (int i = 0; i < threads && status == STATUS_OK; i++) {
        search->workers[i].search = search;
        status = explorer_open(&search->workers[i].explorer, search->options, &search->tree,
                               &search->watch);
    }
    return status;
}

static void close_workers(struct exact_search *search)
{
    struct budget *budget = &search->budget;
    size_t count = (size_t)search->threads;
    for (size_t i = 0; search->workers && i < count; i++)
        explorer_close(&search->workers[i].explorer);
    for (uint64_t i = 0; search->batches && i < search->ring; i++)
        batch_close(&search->batches[i]);
    budget_free(budget, search->workers, count * sizeof *search->workers);
    budget_free(budget, search->batches, search->ring * sizeof *search->batches);
    budget_free(budget, search->ready, search->ring * sizeof *search->ready);
    search->workers = NULL;
    search->batches = NULL;
    search->ready = NULL;
}

/* True if the search has been told to end. Tables of a large state take seconds to fill. */
static bool is_told_to_end(struct exact_search *search)
{
    if (watch_own_watch_look(&search->watch))
        end_search(search, watch_interrupted(&search->watch) ? "interrupted" : "time");
    return search->stop;
}

/* Move all states into another tree; they keep their numbers. */
static enum status move_states(struct exact_search *search, struct tree *tree,
                               struct states *states)
{
    struct cursor from, to;
    enum status status = cursor_open(&from, &search->tree), opened = cursor_open(&to, tree);
    status = status == STATUS_OK ? opened : status;
    for (uint32_t id = 0;
         id < states_count(&search->states) && status == STATUS_OK && !is_told_to_end(search);
         id++) {
        uint64_t root;
        uint32_t same;
        bool is_new;
        cursor_load(&from, states_root(&search->states, id));
        machine_copy(search->program, &to.work, &from.node);
        status = cursor_store(&to, &root);
        if (status == STATUS_OK)
            status = states_insert(states, root, states_parent(&search->states, id),
                                   states_step(&search->states, id), &same, &is_new);
    }
    cursor_close(&from);
    cursor_close(&to);
    return status;
}

/* Lay the tree out anew; in the old order if there is no memory for finding a better one. */
static enum status search_learn(struct exact_search *search, bool shared)
{
    struct budget *budget = &search->budget;
    struct tree tree = {0};
    struct states states = {0};
    enum status status = leaves_divide(&search->tree, &search->states, &search->order);
    if (status != STATUS_SYSTEM)
        status = tree_open(&tree, search->program, &search->order, shared, budget);
    if (status == STATUS_OK)
        status = states_open(&states, search->program, budget);
    if (status == STATUS_OK)
        status = move_states(search, &tree, &states);
    if (status != STATUS_OK || search->stop) {
        states_close(&states);
        tree_close(&tree);
        return status;
    }
    states_close(&search->states);
    tree_close(&search->tree);
    search->states = states;
    search->tree = tree;
    return STATUS_OK;
}

static bool search_is_finished(const struct exact_search *search)
{
    return search->stop || search->status != STATUS_OK ||
           search->next == states_count(&search->states);
}

/* After the first states without a violation, look for one farther away. */
static void probe(struct exact_search *search)
{
    struct search_result *result = search->result;
    if (search->options->probe_steps == 0 || result->found || search_is_finished(search))
        return;
    search_refuse(search, probe_run(&search->workers[0].explorer, &search->batches[0],
                                    states_root(&search->states, 0), search->options->properties,
                                    search->options->probe_steps, result));
    search->found_at = result->transitions;
    stop_if_found(search);
}

/* One thread for the first states, then as many as asked for. */
static void breadth_first(struct exact_search *search)
{
    struct batch *batch = &search->batches[0];
    batch->properties = search->options->properties;
    explorer_begin(&search->workers[0].explorer, batch);
    search_commit(search, batch);
    search->pause_at = PROBE_STATES;
    if (!search->stop)
        run_workers(search);
    probe(search);
    search->pause_at = LEARN_STATES;
    if (!search->stop)
        run_workers(search);
    if (search_is_finished(search))
        return;
    int threads =
        search->options->threads > 1 && !search->options->visit ? search->options->threads : 1;
    close_workers(search);
    enum status status = search_learn(search, threads > 1);
    if (status == STATUS_OK)
        status = open_workers(search, threads);
    search_refuse(search, status);
    search->pause_at = UINT32_MAX;
    if (!search->stop)
        run_workers(search);
}

static void search_conclude(struct exact_search *search)
{
    bool cycle = false;
    if (search->options->endless && !search->stop)
        search_refuse(search,
                      edges_have_cycle(&search->edges, states_count(&search->states), &cycle));
    search->result->ends_well |= cycle;
    search->result->avoided |= cycle;
    search->result->complete = !search->stop && !search->given_up;
    search->result->states = states_count(&search->states);
}

static enum status search_open_tables(struct exact_search *search)
{
    struct budget *budget = &search->budget;
    enum status status = STATUS_OK;
    edges_open(&search->edges, budget);
    if (!is_told_to_end(search))
        status = leaves_by_agent(search->program, budget, &search->order);
    if (status == STATUS_OK && !is_told_to_end(search))
        status = tree_open(&search->tree, search->program, &search->order, false, budget);
    if (status == STATUS_OK && !is_told_to_end(search))
        status = states_open(&search->states, search->program, budget);
    return status == STATUS_OK && !is_told_to_end(search) ? open_workers(search, 1) : status;
}

static void search_exactly(struct exact_search *search)
{
    enum status status = search_open_tables(search);
    search_refuse(search, status);
    if (status == STATUS_OK && !search->stop) {
        breadth_first(search);
        search_conclude(search);
    }
    close_workers(search);
    edges_close(&search->edges);
    states_close(&search->states);
    tree_close(&search->tree);
    leaves_free(&search->order, &search->budget);
}

enum status search_run(const struct program *program, const struct search_options *options,
                       struct search_result *out, struct diag *diag)
{
    *out = (struct search_result){0};
    struct exact_search search = {.program = program, .options = options, .result = out};
    search.watch = (struct search_watch){.start = stopwatch_start(),
                                         .until_ns = options->limits.until_ns,
                                         .interrupted = options->interrupted};
    size_t limit = options->limits.mem_bytes;
    budget_init(&search.budget, limit ? limit : SEARCH_DEFAULT_MEMORY);
    pthread_mutex_init(&search.lock, NULL);
    pthread_cond_init(&search.changed, NULL);
    if (options->bitstate_bytes)
        search.status = bitstate_run(program, options, &search.budget, &search.watch, out);
    else
        search_exactly(&search);
    pthread_cond_destroy(&search.changed);
    pthread_mutex_destroy(&search.lock);
    out->peak_bytes = atomic_load(&search.budget.peak_bytes);
    out->seconds = stopwatch_seconds(&search.watch.start);
    if (out->no_memory || search.status != STATUS_OK)
        diag_no_memory(diag);
    if (search.status != STATUS_OK)
        search_result_fini(out);
    return search.status;
}

bool search_path_push(struct search_path *path, size_t *cap, struct transition step)
{
    if (!ARRAY_GROW(path->steps, path->count, *cap))
        return false;
    path->steps[path->count++] = step;
    return true;
}

void search_result_fini(struct search_result *result)
{
    for (int property = 0; property < PROPERTY_COUNT; property++) {
        free(result->witness[property].steps);
        result->witness[property] = (struct search_path){0};
    }
}
