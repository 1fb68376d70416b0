/* SPDX-License-Identifier: Apache-2.0 */
/*
 * certify_traffic.c - the order of collectives under data-flow, as check/proof/proof_traffic.c reads it.
 *
 * Levels of forward collectives are the least solution of a system of differences: a task may wait only for what is not higher,
 * collectives are in an order that their waits allow, and nothing is too late. Bellman and Ford find it.
 */
#include "certify_structure.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert_index.h"
#include "base/text_stream.h"
#include "base/array.h"

enum { MOST_EDGES = 1 << 20, SPARE_ITERATIONS = 2 };

/* Task `to` may wait for `from`, so many iterations later and more. */
struct certify_traffic_wait_edge {
    int from, to, length;
};

struct certify_traffic_traffic {
    struct pipeline_writer *writer;
    const struct program *p;
    struct certify_traffic_wait_edge *edges;
    size_t edge_count, edge_cap;
    int *callers, count; /* at last in the order of their levels */
    int64_t *level, weight;
    int *waits;  /* per two callers: the least sum of lengths from one to the other */
    bool failed; /* memory is exhausted */
};

/* ---- chains ------------------------------------------------------------------------------------ */

/* Writes the path that shows by how many iterations `to` must come later to be submitted behind `from`. Returns this number. */
static int write_submission(struct pipeline_writer *w, int from, int to)
{
    int queued;
    pipeline_fill_row(w, &w->submission, from, true);
    const int length = w->submission.length[to];
    w->arena.failed |=
        length > 0 && gaps_in_queue(&w->gaps, from, to, &queued, w->diag) != STATUS_OK;
    if (w->arena.failed)
        return CERTIFY_FAR;
    if (length <= 0 || queued >= length || queued > PLAN_MAX_DEPTH) {
        pipeline_write_path(w, &w->submission, to);
        return length;
    }
    return pipeline_write_firings(w, from, to, queued, GAPS_DEEP) ? queued : CERTIFY_FAR;
}

/* False: they need not come in this order. */
static bool write_chain(struct pipeline_writer *w, const int *tasks, int count)
{
    for (int k = 0; count > 1 && k < count; k++)
        if (write_submission(w, tasks[k], tasks[(k + 1) % count]) > (k + 1 == count))
            return false;
    return true;
}

/* ---- waits ------------------------------------------------------------------------------------- */

static void certify_traffic_add_edge(struct certify_traffic_traffic *traffic, int from, int to,
                                     int length)
{
    if (!ARENA_GROW(&traffic->writer->arena, traffic->edges, traffic->edge_count,
                    traffic->edge_cap)) {
        traffic->failed = true;
        return;
    }
    traffic->edges[traffic->edge_count++] = (struct certify_traffic_wait_edge){from, to, length};
}

/* The tasks of a communicator, in topological order. False: they need not come in it. */
static bool certify_traffic_write_comm(struct certify_traffic_traffic *traffic, int comm)
{
    struct pipeline_writer *w = traffic->writer;
    int *tasks = ARENA_ARRAY(&w->arena, (size_t)traffic->p->tasks, int), count = 0;
    ASSERT_INDEX(comm, traffic->p->comm_count);
    int member = traffic->p->comms[comm].members[0];
    for (int k = 0; tasks && k < traffic->p->tasks; k++) {
        const struct task *task = plan_task(traffic->p->plan, member, w->topological[k]);
        if (task->work.kind == WORK_COLLECTIVE && task->work.comm == comm)
            tasks[count++] = w->topological[k];
    }
    for (int k = 0; count > 1 && k < count; k++)
        certify_traffic_add_edge(traffic, tasks[k], tasks[(k + 1) % count], k + 1 == count);
    return tasks && write_chain(w, tasks, count);
}

static void certify_traffic_write_stream(struct certify_traffic_traffic *traffic, int stream)
{
    struct pipeline_writer *w = traffic->writer;
    for (int y = 0; y < traffic->p->tasks; y++) {
        if (w->tasks[y].stream != stream)
            continue;
        for (int x = 0; x < traffic->p->tasks; x++)
            if (x != y && w->tasks[x].stream == stream)
                certify_traffic_add_edge(traffic, x, y, 1 - write_submission(w, y, x));
    }
}

/* False: the tasks of a communicator have no order, or there are too many waits to follow. */
static bool certify_traffic_write_waits(struct certify_traffic_traffic *traffic)
{
    const struct program *p = traffic->p;
    for (int t = 0; t < p->tasks; t++)
        for (int k = 0; k < p->depends[t].count; k++) {
            const struct edge *edge = &p->depends[t].items[k];
            certify_traffic_add_edge(traffic, edge->task, t, edge->distance);
        }
    for (int comm = 0; comm < traffic->p->comm_count; comm++)
        if (!certify_traffic_write_comm(traffic, comm))
            return false;
    for (int s = 0; s < (int)traffic->p->plan->streams.count; s++) {
        if (traffic->edge_count > MOST_EDGES ||
            watch_own_watch_look(traffic->writer->certifier->watch))
            return false;
        certify_traffic_write_stream(traffic, s);
    }
    return !traffic->failed;
}

/* ---- levels ------------------------------------------------------------------------------------ */

/* Tasks that may wait for a caller have a level, others -1. */
static void mark_waiting(struct certify_traffic_traffic *traffic)
{
    for (int t = 0; t < traffic->p->tasks; t++)
        traffic->level[t] = -1;
    for (int k = 0; k < traffic->count; k++)
        traffic->level[traffic->callers[k]] = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < traffic->edge_count; i++) {
            const struct certify_traffic_wait_edge *edge = &traffic->edges[i];
            if (traffic->level[edge->from] < 0 || traffic->level[edge->to] == 0)
                continue;
            traffic->level[edge->to] = 0;
            changed = true;
        }
    }
}

static bool raise(int64_t *level, int64_t least)
{
    if (*level >= least)
        return false;
    *level = least;
    return true;
}

/* The least waits from one caller to all others. False: they have no least. */
static bool certify_traffic_find_waits(struct certify_traffic_traffic *traffic, int k, int *path)
{
    const int tasks = traffic->p->tasks;
    for (int t = 0; t < tasks; t++)
        path[t] = CERTIFY_FAR;
    path[traffic->callers[k]] = 0;
    bool changed = true;
    for (int pass = 0; changed && pass <= tasks; pass++) {
        changed = false;
        for (size_t i = 0; i < traffic->edge_count; i++) {
            const struct certify_traffic_wait_edge *edge = &traffic->edges[i];
            int length = path[edge->from] + edge->length;
            if (path[edge->from] >= CERTIFY_FAR || length >= path[edge->to])
                continue;
            path[edge->to] = length;
            changed = true;
        }
    }
    for (int other = 0; other < traffic->count; other++)
        traffic->waits[k * traffic->count + other] = path[traffic->callers[other]];
    return !changed;
}

/* Callers in an order in which none waits, within an iteration, for a later one. */
static bool order_callers(struct certify_traffic_traffic *traffic)
{
    const int n = traffic->count;
    int *path = ARENA_ARRAY(&traffic->writer->arena, (size_t)traffic->p->tasks, int);
    int *order = ARENA_ARRAY(&traffic->writer->arena, (size_t)n, int);
    bool *placed = ARENA_ARRAY(&traffic->writer->arena, (size_t)n, bool);
    traffic->waits = ARENA_ARRAY(&traffic->writer->arena, (size_t)n * (size_t)n, int);
    if (traffic->writer->arena.failed)
        return false;
    for (int k = 0; k < n; k++)
        if (!certify_traffic_find_waits(traffic, k, path) ||
            watch_own_watch_look(traffic->writer->certifier->watch))
            return false;
    for (int at = 0; at < n; at++) {
        int next = -1;
        for (int k = 0; k < n && next < 0; k++) {
            bool free = !placed[k];
            for (int other = 0; other < n && free; other++)
                free = placed[other] || other == k || traffic->waits[other * n + k] > 0;
            next = free ? k : -1;
        }
        if (next < 0)
            return false;
        placed[next] = true;
        order[at] = traffic->callers[next];
    }
    memcpy(traffic->callers, order, (size_t)n * sizeof *order);
    return true;
}

static bool raise_all(struct certify_traffic_traffic *traffic)
{
    const int n = traffic->count, *callers = traffic->callers;
    const bool device = traffic->p->plan->pipeline.retire == RETIRE_DEVICE;
    const int64_t late = device ? traffic->p->depth : 1 + SPARE_ITERATIONS;
    int64_t *level = traffic->level, weight = traffic->weight;
    bool changed = false;
    for (size_t i = 0; i < traffic->edge_count; i++) {
        const struct certify_traffic_wait_edge *edge = &traffic->edges[i];
        if (level[edge->from] >= 0)
            changed |= raise(&level[edge->to], level[edge->from] - weight * edge->length);
    }
    for (int k = 1; k < n; k++)
        changed |= raise(&level[callers[k]], level[callers[k - 1]] + 1);
    changed |= raise(&level[callers[0]], level[callers[n - 1]] - weight + 1);
    for (int t = 0; t < traffic->p->tasks; t++)
        if (level[t] >= 0)
            changed |= raise(&level[callers[0]], level[t] - weight * late + 1);
    return changed;
}

static bool find_levels(struct certify_traffic_traffic *traffic)
{
    const int tasks = traffic->p->tasks;
    traffic->weight = tasks + traffic->count + 2;
    traffic->level = ARENA_ARRAY(&traffic->writer->arena, (size_t)tasks, int64_t);
    if (!traffic->level || !order_callers(traffic))
        return false;
    mark_waiting(traffic);
    for (int pass = 0; pass <= tasks + traffic->count; pass++)
        if (!raise_all(traffic))
            return true;
    return false;
}

/* The waits are found before the levels and written behind them. */
static bool certify_traffic_write_forward(struct pipeline_writer *w, int *callers, int count)
{
    struct certify_traffic_traffic traffic = {
        .writer = w, .p = w->p, .callers = callers, .count = count};
    FILE *out = w->out;
    struct text_stream stream;
    char *text = NULL;
    bool good = false;
    if (text_open(&stream)) {
        w->out = stream.out;
        good = certify_traffic_write_waits(&traffic);
        w->out = out;
        text = text_close(&stream, true, NULL);
    }
    if (good && text && find_levels(&traffic)) {
        fprintf(out, "forward %lld\n", (long long)traffic.weight);
        for (int t = 0; t < w->p->tasks; t++)
            fprintf(out, "level %lld\n", (long long)traffic.level[t]);
        for (int k = 0; k < count; k++)
            fprintf(out, "call %d\n", callers[k]);
        fputs(text, out);
    } else {
        good = false;
    }
    w->arena.failed |= !text;
    free(text);
    return good;
}

/* ---- the whole --------------------------------------------------------------------------------- */

/* False: they need not come in one order, and nothing is written. */
static bool write_one_order(struct pipeline_writer *w, const int *callers, int count)
{
    FILE *out = w->out;
    struct text_stream stream;
    char *text = NULL;
    bool good = false;
    if (text_open(&stream)) {
        w->out = stream.out;
        good = write_chain(w, callers, count);
        w->out = out;
        text = text_close(&stream, true, NULL);
    }
    w->arena.failed |= !text;
    if (good && !w->arena.failed)
        fputs(text, out);
    free(text);
    return good;
}

bool pipeline_write_calls(struct pipeline_writer *w, enum status *status, struct diag *diag)
{
    const struct program *p = w->p;
    int *ordered = ARENA_ARRAY(&w->arena, (size_t)p->tasks, int), ordered_count = 0, count = 0;
    int *callers = ARENA_ARRAY(&w->arena, (size_t)p->tasks, int);
    if (w->arena.failed || !pipeline_make_row(w, &w->submission)) {
        *status = diag_no_memory(diag);
        return false;
    }
    w->submission.submission = true;
    for (int k = 0; k < p->tasks; k++) {
        int task = w->topological[k];
        if (p->ticket_position[task] >= 0) {
            ordered[p->ticket_position[task]] = task;
            ordered_count++;
        }
        if (w->tasks[task].work.kind == WORK_COLLECTIVE)
            callers[count++] = task;
    }
    bool all_ordered = program_fires_by_turn(p);
    for (int k = 0; k < count; k++)
        all_ordered &= p->ticket_position[callers[k]] >= 0;
    w->arena.failed |= !gaps_open(&w->gaps, p, w->place, GAPS_OF_SUBMISSION);
    bool written =
        all_ordered ||
        ((program_fires_by_turn(p) || write_chain(w, ordered, ordered_count)) &&
         (write_one_order(w, callers, count) || certify_traffic_write_forward(w, callers, count)));
    gaps_close(&w->gaps);
    return written;
}
