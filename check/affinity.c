/* SPDX-License-Identifier: Apache-2.0 */
/* affinity.c - see affinity.h. */
#include "affinity.h"

#include <stdlib.h>

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
struct run {
    uint32_t first, count;
    int rank, group;
};

static void add(struct objects *objects, size_t at, int rank, int group)
{
    objects->items[objects->count++] = (struct object){at, rank, group};
}

static void add_cell(struct objects *objects, int cell, int rank, int group)
{
    add(objects, (size_t)cell * sizeof(int32_t), rank, group);
}

static void add_row(struct objects *objects, int index, int rank, int group)
{
    const struct layout *at = &objects->program->at;
    add(objects, at->rows_at + (size_t)index * (size_t)at->row_words * sizeof(uint64_t), rank,
        group);
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
        add_row(objects, at->row_threads + t, p->threads[t].rank, GROUP_THREADS + t);
        add_row(objects, at->row_entries[t], p->threads[t].rank, GROUP_THREADS + t);
    }
    for (int s = 0; s < p->stream_count; s++) {
        add_row(objects, at->row_streams + s, p->streams[s].rank, GROUP_STREAMS + s);
        add_row(objects, at->row_items[s], p->streams[s].rank, GROUP_STREAMS + s);
    }
    add_families(objects, add_row, at->row_events, at->row_flags, p->event_families);
    add_families(objects, add_row, at->row_flags, at->row_locks, p->flag_families);
    add_row(objects, at->row_locks, 0, GROUP_DRIVER);
    for (int rank = 0; rank < p->ranks; rank++) {
        add_row(objects, at->row_tickets + rank, rank, GROUP_DRIVER);
        add_row(objects, at->row_done + rank * p->window, rank, GROUP_DRIVER);
        add_row(objects, at->row_admit + rank * p->window, rank, GROUP_DRIVER);
    }
}

static int compare_objects(const void *a, const void *b)
{
    const struct object *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static int compare_runs(const void *a, const void *b)
{
    const struct run *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

static size_t most_objects(const struct program *p)
{
    return (size_t)p->ranks * 6 + (size_t)p->thread_count * 3 + (size_t)p->stream_count * 3 +
           (size_t)p->event_families * 2 + (size_t)p->flag_families * 2 + 4;
}

/* A leaf belongs to the object at its middle. */
static void find_runs(struct objects *objects, struct run *runs, size_t leaves)
{
    size_t first = 0;
    qsort(objects->items, objects->count, sizeof *objects->items, compare_objects);
    for (size_t i = 0; i < objects->count; i++) {
        size_t end = leaves;
        if (i + 1 < objects->count) {
            size_t next = objects->items[i + 1].at, half = TREE_LEAF_BYTES / 2;
            end = next > half ? (next - half + TREE_LEAF_BYTES - 1) / TREE_LEAF_BYTES : 0;
            end = end < first ? first : end > leaves ? leaves : end;
        }
        runs[i] = (struct run){(uint32_t)first, (uint32_t)(end - first), objects->items[i].rank,
                               objects->items[i].group};
        first = end;
    }
}

static void sort_leaves(struct objects *objects, struct run *runs, struct tree_order *order)
{
    size_t placed = 0;
    find_runs(objects, runs, order->count);
    qsort(runs, objects->count, sizeof *runs, compare_runs);
    for (size_t i = 0; i < objects->count; i++)
        for (uint32_t k = 0; k < runs[i].count; k++)
            order->leaves[placed++] = runs[i].first + k;
    order->first_half = order->count / 2;
}

enum status affinity_order(const struct program *program, struct budget *budget,
                           struct tree_order *order)
{
    struct objects objects = {.program = program};
    size_t object_bytes = most_objects(program) * sizeof *objects.items;
    size_t run_bytes = most_objects(program) * sizeof(struct run);
    struct run *runs = NULL;
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

void affinity_free(struct tree_order *order, struct budget *budget)
{
    budget_free(budget, order->leaves, order->count * sizeof *order->leaves);
    *order = (struct tree_order){0};
}
