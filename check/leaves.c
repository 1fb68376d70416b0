/* SPDX-License-Identifier: Apache-2.0 */
/* leaves.c - see leaves.h. */
#include "leaves.h"
#include "base/sort.h"

#include <stdlib.h>
#include <string.h>

/* Within a rank. */
enum group { GROUP_DRIVER, GROUP_THREADS = 1, GROUP_STREAMS = 1 << 20, GROUP_TASKS = 2 << 20 };

/* An object extends from `at`, in bytes, to the next object. */
struct object {
    size_t at;
    int rank, group;
};

struct objects {
    const struct program *program;
    struct object *items;
    size_t count;
};

/* The leaves of an object, which are next to each other. */
struct leaves_run {
    uint32_t first, count;
    int rank, group;
};

static void leaves_add(struct objects *objects, size_t at, int rank, int group)
{
    objects->items[objects->count++] = (struct object){at, rank, group};
}

static void add_cell(struct objects *objects, int cell, int rank, int group)
{
    leaves_add(objects, (size_t)cell * sizeof(int32_t), rank, group);
}

static void leaves_add_row(struct objects *objects, int index, int rank, int group)
{
    const struct layout *at = &objects->program->at;
    leaves_add(objects, at->rows_at + (size_t)index * (size_t)at->row_words * sizeof(uint64_t),
               rank, group);
}

/* Objects of equal size, `per_rank` for each of the ranks. */
static void add_families(struct objects *objects, void (*add_one)(struct objects *, int, int, int),
                         int first, int end, int families)
{
    const struct program *p = objects->program;
    int per_rank = families / p->ranks ? families / p->ranks : 1;
    for (int f = 0; f < families; f++)
        add_one(objects, first + (int)((int64_t)(end - first) * f / families),
                f / per_rank < p->ranks ? f / per_rank : p->ranks - 1,
                GROUP_TASKS + (p->tasks ? f % per_rank : 0));
}

static void add_cells(struct objects *objects)
{
    const struct program *p = objects->program;
    const struct layout *at = &p->at;
    int after_events = at->flags, after_flags = at->queues;
    for (int rank = 0; rank < p->ranks; rank++) {
        add_cell(objects, at->ranks + (at->windows - at->ranks) / p->ranks * rank, rank,
                 GROUP_DRIVER);
        add_cell(objects, at->windows + (at->fired - at->windows) / p->ranks * rank, rank,
                 GROUP_DRIVER);
        add_cell(objects, at->fired + p->tasks * p->window * rank, rank, GROUP_DRIVER);
    }
    for (int t = 0; t < p->thread_count; t++)
        add_cell(objects, at->threads[t], p->threads[t].rank, GROUP_THREADS + t);
    for (int s = 0; s < p->stream_count; s++)
        add_cell(objects, at->streams[s], p->streams[s].rank, GROUP_STREAMS + s);
    add_cell(objects, at->members, 0, GROUP_DRIVER);
    add_families(objects, add_cell, at->events, after_events, p->event_families);
    add_families(objects, add_cell, at->flags, after_flags, p->flag_families);
    add_cell(objects, at->queues, 0, GROUP_DRIVER);
}

static void add_rows(struct objects *objects)
{
    const struct program *p = objects->program;
    const struct layout *at = &p->at;
    if (at->rows == 0)
        return;
    for (int t = 0; t < p->thread_count; t++) {
        leaves_add_row(objects, at->row_threads + t, p->threads[t].rank, GROUP_THREADS + t);
        leaves_add_row(objects, at->row_entries[t], p->threads[t].rank, GROUP_THREADS + t);
    }
    for (int s = 0; s < p->stream_count; s++) {
        leaves_add_row(objects, at->row_streams + s, p->streams[s].rank, GROUP_STREAMS + s);
        leaves_add_row(objects, at->row_items[s], p->streams[s].rank, GROUP_STREAMS + s);
    }
    add_families(objects, leaves_add_row, at->row_events, at->row_flags, p->event_families);
    add_families(objects, leaves_add_row, at->row_flags, at->row_locks, p->flag_families);
    leaves_add_row(objects, at->row_locks, 0, GROUP_DRIVER);
    for (int rank = 0; rank < p->ranks; rank++) {
        leaves_add_row(objects, at->row_tickets + rank, rank, GROUP_DRIVER);
        leaves_add_row(objects, at->row_done + rank * p->window, rank, GROUP_DRIVER);
        leaves_add_row(objects, at->row_admit + rank * p->window, rank, GROUP_DRIVER);
    }
}

static int compare_objects(const void *a, const void *b)
{
    const struct object *x = a, *y = b;
    return compare_size(x->at, y->at);
}

static int leaves_compare_runs(const void *a, const void *b)
{
    const struct leaves_run *x = a, *y = b;
    return compare_then(
        compare_int(x->rank, y->rank),
        compare_then(compare_int(x->group, y->group), compare_u64(x->first, y->first)));
}

static size_t most_objects(const struct program *p)
{
    return (size_t)p->ranks * 6 + (size_t)p->thread_count * 3 + (size_t)p->stream_count * 3 +
           (size_t)p->event_families * 2 + (size_t)p->flag_families * 2 + 4;
}

/* A leaf belongs to the object at its middle. */
static void leaves_find_runs(struct objects *objects, struct leaves_run *runs, size_t leaves)
{
    size_t first = 0;
    SORT(objects->items, objects->count, compare_objects);
    for (size_t i = 0; i < objects->count; i++) {
        size_t end = leaves;
        if (i + 1 < objects->count) {
            size_t next = objects->items[i + 1].at, half = TREE_LEAF_BYTES / 2;
            end = next > half ? (next - half + TREE_LEAF_BYTES - 1) / TREE_LEAF_BYTES : 0;
            end = end < first ? first : end > leaves ? leaves : end;
        }
        runs[i] = (struct leaves_run){(uint32_t)first, (uint32_t)(end - first),
                                      objects->items[i].rank, objects->items[i].group};
        first = end;
    }
}

static void sort_leaves(struct objects *objects, struct leaves_run *runs, struct tree_order *order)
{
    size_t placed = 0;
    leaves_find_runs(objects, runs, order->count);
    SORT(runs, objects->count, leaves_compare_runs);
    for (size_t i = 0; i < objects->count; i++)
        for (uint32_t k = 0; k < runs[i].count; k++)
            order->leaves[placed++] = runs[i].first + k;
    order->first_half = order->count / 2;
}

enum status leaves_by_agent(const struct program *program, struct budget *budget,
                            struct tree_order *order)
{
    struct objects objects = {.program = program};
    size_t object_bytes = most_objects(program) * sizeof *objects.items;
    size_t run_bytes = most_objects(program) * sizeof(struct leaves_run);
    struct leaves_run *runs = NULL;
    *order = (struct tree_order){.count = tree_leaves(program)};
    enum status status = budget_alloc(budget, order->count * sizeof *order->leaves, &order->leaves);
    if (status == STATUS_OK)
        status = budget_alloc(budget, object_bytes, &objects.items);
    if (status == STATUS_OK)
        status = budget_alloc(budget, run_bytes, &runs);
    if (status == STATUS_OK) {
        add_cell(&objects, 0, 0, GROUP_DRIVER);
        add_cells(&objects);
        add_rows(&objects);
        sort_leaves(&objects, runs, order);
    }
    budget_free(budget, runs, run_bytes);
    budget_free(budget, objects.items, object_bytes);
    return status;
}

void leaves_free(struct tree_order *order, struct budget *budget)
{
    budget_free(budget, order->leaves, order->count * sizeof *order->leaves);
    *order = (struct tree_order){0};
}

enum { SAMPLE = 1024, TABLE = 4 * SAMPLE, MAX_PASSES = 8 };

/* A hash for each state of the sample: of one leaf, or of all leaves of a half (their exclusive or,
   from which a leaf can be removed again). */
struct leaves_column {
    uint64_t hash[SAMPLE];
};

struct division {
    struct budget *budget;
    size_t leaves, sample;
    struct leaves_column *columns; /* one a leaf */
    struct leaves_column *halves;  /* two */
    bool *second;                  /* one a leaf: is in the second half */
    uint32_t *changes; /* one a leaf: states of the sample in which it is not its parent's */
    uint64_t *seen;    /* an open-addressed table of hashes, */
    uint32_t *times;   /* and how often each was seen */
};

/* Pairs of states in the sample that agree in a half after a leaf was added to it or removed. */
static uint64_t agreeing_pairs(struct division *d, const struct leaves_column *half,
                               const struct leaves_column *leaf)
{
    uint64_t pairs = 0;
    memset(d->times, 0, TABLE * sizeof *d->times);
    for (size_t i = 0; i < d->sample; i++) {
        uint64_t hash = half->hash[i] ^ leaf->hash[i];
        size_t at = hash % TABLE;
        while (d->times[at] && d->seen[at] != hash)
            at = (at + 1) % TABLE;
        d->seen[at] = hash;
        pairs += d->times[at]++;
    }
    return pairs;
}

/* The estimated number of values of both halves, up to a factor. */
static double cost(uint64_t pairs, uint64_t pairs_too)
{
    return 1 / ((double)pairs + 0.5) + 1 / ((double)pairs_too + 0.5);
}

static void toggle(struct division *d, int half, size_t leaf)
{
    for (size_t i = 0; i < d->sample; i++)
        d->halves[half].hash[i] ^= d->columns[leaf].hash[i];
}

/* Move leaves as long as the cost decreases. */
static void leaves_improve(struct division *d)
{
    static const struct leaves_column nothing;
    double best = cost(agreeing_pairs(d, &d->halves[0], &nothing),
                       agreeing_pairs(d, &d->halves[1], &nothing));
    bool again = true;
    for (int pass = 0; pass < MAX_PASSES && again; pass++) {
        again = false;
        for (size_t leaf = 0; leaf < d->leaves; leaf++) {
            if (!d->changes[leaf])
                continue;
            double moved = cost(agreeing_pairs(d, &d->halves[0], &d->columns[leaf]),
                                agreeing_pairs(d, &d->halves[1], &d->columns[leaf]));
            if (moved >= best)
                continue;
            best = moved;
            again = true;
            toggle(d, 0, leaf);
            toggle(d, 1, leaf);
            d->second[leaf] = !d->second[leaf];
        }
    }
}

static void take_state(struct division *d, size_t i, const struct tree *tree,
                       const struct cursor *state, const struct cursor *parent)
{
    for (size_t leaf = 0; leaf < d->leaves; leaf++) {
        uint64_t number = state->numbers[tree->leaf_slot[leaf]];
        d->columns[leaf].hash[i] = hash_mix((leaf + 1) << 32 ^ number);
        d->changes[leaf] += number != parent->numbers[tree->leaf_slot[leaf]];
    }
}

static enum status take_sample(struct division *d, struct tree *tree, const struct states *states)
{
    struct cursor state, parent;
    enum status status = cursor_open(&state, tree), opened = cursor_open(&parent, tree);
    status = status == STATUS_OK ? opened : status;
    for (size_t i = 0; i < d->sample && status == STATUS_OK; i++) {
        uint32_t id = 1 + (uint32_t)((uint64_t)(states_count(states) - 1) * i / d->sample);
        cursor_load(&state, states_root(states, id));
        cursor_load(&parent, states_root(states, states_parent(states, id)));
        take_state(d, i, tree, &state, &parent);
    }
    cursor_close(&state);
    cursor_close(&parent);
    return status;
}

static enum status open_division(struct division *d)
{
    enum status status = budget_alloc(d->budget, d->leaves * sizeof *d->columns, &d->columns);
    if (status == STATUS_OK)
        status = budget_alloc(d->budget, 2 * sizeof *d->halves, &d->halves);
    if (status == STATUS_OK)
        status = budget_alloc(d->budget, d->leaves * sizeof *d->second, &d->second);
    if (status == STATUS_OK)
        status = budget_alloc(d->budget, d->leaves * sizeof *d->changes, &d->changes);
    if (status == STATUS_OK)
        status = budget_alloc(d->budget, TABLE * sizeof *d->seen, &d->seen);
    if (status == STATUS_OK)
        status = budget_alloc(d->budget, TABLE * sizeof *d->times, &d->times);
    return status;
}

static void close_division(struct division *d)
{
    budget_free(d->budget, d->columns, d->leaves * sizeof *d->columns);
    budget_free(d->budget, d->halves, 2 * sizeof *d->halves);
    budget_free(d->budget, d->second, d->leaves * sizeof *d->second);
    budget_free(d->budget, d->changes, d->leaves * sizeof *d->changes);
    budget_free(d->budget, d->seen, TABLE * sizeof *d->seen);
    budget_free(d->budget, d->times, TABLE * sizeof *d->times);
}

/* The leaves of one half, the most often changed first; equals keep their order. */
static size_t leaves_gather(const struct division *d, const uint32_t *leaves, bool second,
                            uint32_t *out)
{
    size_t count = 0;
    for (size_t i = 0; i < d->leaves; i++) {
        size_t at = count;
        if (d->second[leaves[i]] != second)
            continue;
        for (; at > 0 && d->changes[out[at - 1]] < d->changes[leaves[i]]; at--)
            out[at] = out[at - 1];
        out[at] = leaves[i];
        count++;
    }
    return count;
}

static enum status reorder(const struct division *d, struct tree_order *order)
{
    uint32_t *leaves;
    enum status status = budget_alloc(d->budget, d->leaves * sizeof *leaves, &leaves);
    if (status != STATUS_OK)
        return status;
    order->first_half = leaves_gather(d, order->leaves, false, leaves);
    leaves_gather(d, order->leaves, true, leaves + order->first_half);
    memcpy(order->leaves, leaves, d->leaves * sizeof *leaves);
    order->ranked = true;
    budget_free(d->budget, leaves, d->leaves * sizeof *leaves);
    return STATUS_OK;
}

enum status leaves_divide(struct tree *tree, const struct states *states, struct tree_order *order)
{
    struct division d = {.budget = tree->budget, .leaves = order->count, .sample = SAMPLE};
    if (states_count(states) <= d.sample)
        d.sample = states_count(states) - 1;
    enum status status = open_division(&d);
    if (status == STATUS_OK)
        status = take_sample(&d, tree, states);
    if (status == STATUS_OK) {
        for (size_t i = 0; i < d.leaves; i++) {
            d.second[order->leaves[i]] = i >= order->first_half;
            toggle(&d, i >= order->first_half, order->leaves[i]);
        }
        leaves_improve(&d);
        status = reorder(&d, order);
    }
    close_division(&d);
    return status;
}
