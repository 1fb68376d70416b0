/* SPDX-License-Identifier: Apache-2.0 */
/*
 * certify_structure.c - numbers and paths of a pipeline.
 *
 * The number of a task is its place: in the enqueue order of a period under the clock, in the topological order of an
 * iteration under data-flow. The paths from a task to all others are shortest ones (Dijkstra) and found on demand. If the order
 * in which tasks are fired (gaps.h) orders two tasks, the hop is written, with the paths before and behind it.
 */
#include "certify_structure.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert_index.h"
#include "base/text_stream.h"

enum { MOST_TASKS = 1024 };

static bool certify_structure_is_clock(const struct pipeline_writer *w)
{
    return w->p->driver == DRIVER_CLOCK;
}

static bool certify_structure_is_host(const struct pipeline_writer *w, int task)
{
    return w->tasks[task].work.kind == WORK_HOST;
}

static bool certify_structure_same_place(const struct pipeline_writer *w, int a, int b)
{
    if (certify_structure_is_host(w, a) || certify_structure_is_host(w, b))
        return certify_structure_is_host(w, a) && certify_structure_is_host(w, b) &&
               w->tasks[a].group == w->tasks[b].group;
    return w->tasks[a].stream == w->tasks[b].stream;
}

/* ---- shortest paths ------------------------------------------------------------------------------ */

bool pipeline_make_row(struct pipeline_writer *w, struct row *row)
{
    size_t n = (size_t)w->p->tasks;
    row->length = ARENA_ARRAY(&w->arena, n, int);
    row->before = ARENA_ARRAY(&w->arena, n, int);
    row->hop = ARENA_ARRAY(&w->arena, n, enum hop);
    return !w->arena.failed;
}

static void certify_structure_relax(struct row *row, int from, int to, int length, enum hop hop)
{
    if (row->length[from] + length >= row->length[to])
        return;
    row->length[to] = row->length[from] + length;
    row->before[to] = from;
    row->hop[to] = hop;
}

static bool certify_structure_share_queue(const struct pipeline_writer *w, int a, int b)
{
    return certify_structure_is_clock(w) && !certify_structure_is_host(w, a) &&
           !certify_structure_is_host(w, b) && w->tasks[a].group == w->tasks[b].group &&
           w->tasks[a].stream == w->tasks[b].stream;
}

static void relax_all(const struct pipeline_writer *w, struct row *row, int from)
{
    ASSERT_INDEX(from, w->p->tasks);
    const struct edge_list *fires = &w->p->fires[from];
    for (int k = 0; k < fires->count; k++)
        certify_structure_relax(row, from, fires->items[k].task, fires->items[k].distance, HOP_ON);
    for (int to = 0; to < w->p->tasks; to++) {
        int keys = w->tasks[from].stage - w->tasks[to].stage + (w->place[from] >= w->place[to]);
        if (to != from && certify_structure_share_queue(w, from, to))
            certify_structure_relax(row, from, to, keys > 0 ? keys : 0, HOP_QUEUE);
        if (to != from && row->submission && w->p->driver == DRIVER_DATAFLOW &&
            w->tasks[from].group == w->tasks[to].group && gaps_fired_at_admission(w->p, from))
            certify_structure_relax(row, from, to, w->place[from] >= w->place[to], HOP_FIRED);
    }
}

void pipeline_fill_row(const struct pipeline_writer *w, struct row *row, int from, bool seen)
{
    const int tasks = w->p->tasks;
    for (int t = 0; t < tasks; t++) {
        row->length[t] = seen
                             ? w->p->depth - (certify_structure_is_clock(w) ? w->tasks[t].stage : 0)
                             : CERTIFY_FAR;
        row->before[t] = from;
        row->hop[t] = HOP_RETIRED;
        w->done[t] = false;
    }
    if (from >= 0) {
        row->length[from] = 0;
        row->hop[from] = HOP_NONE;
    }
    for (int k = 0; k < tasks; k++) {
        int nearest = -1;
        for (int t = 0; t < tasks; t++)
            if (!w->done[t] && (nearest < 0 || row->length[t] < row->length[nearest]))
                nearest = t;
        w->done[nearest] = true;
        if (row->length[nearest] < CERTIFY_FAR)
            relax_all(w, row, nearest);
    }
}

static bool certify_structure_is_seen(const struct pipeline_writer *w, int task)
{
    return certify_structure_is_host(w, task) || w->p->plan->pipeline.retire == RETIRE_DEVICE;
}

/* NULL: memory is exhausted. To host work from device work a path begins with the driver. */
static const struct row *certify_structure_row_of(struct pipeline_writer *w, int from, int to)
{
    bool by_driver = certify_structure_is_host(w, to) && !certify_structure_is_host(w, from) &&
                     certify_structure_is_seen(w, from);
    struct row *row = by_driver ? &w->retired : &w->rows[from];
    if (!row->length) {
        if (!pipeline_make_row(w, row))
            return NULL;
        pipeline_fill_row(w, row, by_driver ? -1 : from, certify_structure_is_seen(w, from));
    }
    return row;
}

/* ---- paths ------------------------------------------------------------------------------------- */

/* The hops of the path, the last first, in w->list. */
static int collect_hops(struct pipeline_writer *w, const struct row *row, int to)
{
    int count = 0;
    for (int task = to; task >= 0 && row->hop[task] != HOP_NONE; task = row->before[task])
        w->list[count++] = task;
    return count;
}

void pipeline_write_path(struct pipeline_writer *w, const struct row *row, int to)
{
    if (row->length[to] >= CERTIFY_FAR) {
        fputs("none\n", w->out);
        return;
    }
    int count = collect_hops(w, row, to);
    fprintf(w->out, "path %d", count);
    while (count-- > 0) {
        int task = w->list[count], before = row->before[task];
        if (row->hop[task] == HOP_ON)
            fprintf(w->out, " on %d %d", task, row->length[task] - row->length[before]);
        else if (row->hop[task] == HOP_FIRED)
            fprintf(w->out, " fired %d %d", task, row->length[task] - row->length[before]);
        else
            fprintf(w->out, " %s %d", row->hop[task] == HOP_QUEUE ? "queue" : "retired", task);
    }
    fputc('\n', w->out);
}

bool pipeline_write_firings(struct pipeline_writer *w, int from, int to, int length, int deep)
{
    ASSERT_INDEX(from, w->p->tasks);
    const struct edge_list *firsts = &w->p->depends[from];
    if (program_ends_turn(w->p, 0, from)) {
        fprintf(w->out, "path 1 queue %d\n", to);
        return true;
    }
    fprintf(w->out, "path 1 fired %d %d%s", to, length, firsts->count > 0 ? "" : "\n");
    for (int i = 0; i < firsts->count; i++) {
        const struct edge *first = &firsts->items[i];
        int which, gap;
        w->arena.failed |= gaps_of_firing(&w->gaps, first, to, deep, &which, &gap) != STATUS_OK;
        if (w->arena.failed)
            return false;
        const struct edge *second = &w->p->depends[to].items[which];
        int between = length + first->distance - second->distance;
        fprintf(w->out, " %d%s", which, first->task == second->task ? "\n" : " ");
        if (first->task == second->task)
            continue;
        pipeline_fill_row(w, &w->submission, first->task, true);
        if (w->submission.length[second->task] <= between)
            pipeline_write_path(w, &w->submission, second->task);
        else if (!pipeline_write_firings(w, first->task, second->task, between, deep - 1))
            return false;
    }
    return true;
}

/* The gap that the order of a thread's queue gives two accesses in one place; far where it gives none. */
static bool find_queued(struct pipeline_writer *w, int from, int to, int *queued)
{
    *queued = CERTIFY_FAR;
    if (certify_structure_is_clock(w) || !certify_structure_same_place(w, from, to))
        return true;
    w->arena.failed |= gaps_in_queue(&w->gaps, from, to, queued, w->diag) != STATUS_OK;
    return !w->arena.failed;
}

/* The gap from one access to another, and its path. */
static bool write_gap(struct pipeline_writer *w, int from, int to, int *gap)
{
    int queued;
    const struct row *row = certify_structure_row_of(w, from, to);
    if (!row || !find_queued(w, from, to, &queued))
        return false;
    bool hidden = certify_structure_is_host(w, to) && !certify_structure_is_host(w, from) &&
                  !certify_structure_is_seen(w, from);
    *gap = hidden ? CERTIFY_FAR : row->length[to];
    if (queued < *gap && queued <= PLAN_MAX_DEPTH) {
        *gap = queued;
        return pipeline_write_firings(w, from, to, queued, GAPS_DEEP);
    }
    if (hidden)
        fputs("none\n", w->out);
    else
        pipeline_write_path(w, row, to);
    return true;
}

/* ---- numbers ----------------------------------------------------------------------------------- */

static void certify_structure_write_numbers(struct pipeline_writer *w)
{
    const int *order = certify_structure_is_clock(w) ? w->p->order[0] : w->topological,
              shift = w->p->tasks;
    for (int k = 0; k < w->p->tasks; k++) {
        w->place[w->p->order[0][k]] = k;
        w->number[order[k]] = k;
    }
    for (int t = 0; t < w->p->tasks; t++)
        fprintf(w->out, "task %d\n",
                w->number[t] + (certify_structure_is_clock(w) ? shift * w->tasks[t].stage : 0));
}

/* ---- accesses ---------------------------------------------------------------------------------- */

enum { READS = 1, WRITES = 2 };

static void certify_structure_drop(struct pipeline_writer *w, enum property property)
{
    w->proves &= ~(1u << property);
}

/* swcheck asks for these paths, for each two tasks. */
static bool write_pair(struct pipeline_writer *w, int buffer, const int *uses, int lag, int a,
                       int b)
{
    ASSERT_INDEX(buffer, w->p->plan->buffer_count);
    const int period = buffer_period(&w->p->plan->buffers[buffer]);
    const int *serial = w->p->serial_place;
    int there, back, writer = uses[b] & WRITES ? b : a, other = a + b - writer;
    fprintf(w->out, "pair %d %d %d\n", buffer, a, b);
    if (!write_gap(w, a, b, &there) || !write_gap(w, b, a, &back))
        return false;
    w->fed[b] |= uses[a] & WRITES && there <= 0;
    w->fed[a] |= uses[b] & WRITES && back <= 0;
    if (!buffer_gaps_order(period, there, back) && !certify_structure_same_place(w, a, b))
        certify_structure_drop(w, PROPERTY_RACE);
    int later = serial[writer] < serial[other];
    int forth = other == a ? there : back, home = other == a ? back : there;
    if (period ? forth > later * period || home > (1 - later + lag) * period
               : (later ? home > 0 : forth > 0))
        certify_structure_drop(w, PROPERTY_SERIAL);
    return true;
}

static bool certify_structure_write_buffer(struct pipeline_writer *w, int buffer, const int *uses)
{
    const int tasks = w->p->tasks;
    int writers = 0;
    memset(w->fed, 0, (size_t)tasks * sizeof *w->fed);
    for (int t = 0; t < tasks; t++)
        writers += (uses[t] & WRITES) != 0;
    ASSERT_INDEX(buffer, w->p->plan->buffer_count);
    int lag = writers == 1 ? w->p->plan->buffers[buffer].staleness : 0;
    for (int a = 0; a < tasks; a++)
        for (int b = a + 1; uses[a] && b < tasks; b++)
            if (uses[b] && (uses[a] | uses[b]) & WRITES && !write_pair(w, buffer, uses, lag, a, b))
                return false;
    for (int t = 0; t < tasks; t++)
        if (uses[t] & READS && !w->fed[t] && !w->p->buffers[buffer].initialised)
            certify_structure_drop(w, PROPERTY_VALUE);
    return true;
}

static bool certify_structure_write_buffers(struct pipeline_writer *w)
{
    const int tasks = w->p->tasks;
    int *uses = ARENA_ARRAY(&w->arena, (size_t)tasks, int);
    for (int buffer = 0; uses && buffer < (int)w->p->plan->buffer_count; buffer++) {
        memset(uses, 0, (size_t)tasks * sizeof *uses);
        for (int t = 0; t < tasks; t++) {
            const struct task *task = &w->tasks[t];
            for (size_t i = 0; i < task->reads.count; i++)
                uses[t] |= task->reads.items[i] == buffer ? READS : 0;
            for (size_t i = 0; i < task->writes.count; i++)
                uses[t] |= task->writes.items[i] == buffer ? WRITES : 0;
        }
        if (!certify_structure_write_buffer(w, buffer, uses))
            return false;
    }
    return uses != NULL;
}

enum { OF_ACCESSES = 1u << PROPERTY_RACE | 1u << PROPERTY_VALUE | 1u << PROPERTY_SERIAL };

/* The pairs are left out where they prove nothing. */
static void certify_structure_add_buffers(struct pipeline_writer *w)
{
    FILE *out = w->out;
    struct text_stream stream;
    char *text = NULL;
    bool opened = gaps_open(&w->gaps, w->p, w->place, GAPS_OF_WORK);
    if (opened && text_open(&stream)) {
        w->out = stream.out;
        certify_structure_write_buffers(w);
        w->out = out;
        text = text_close(&stream, true, NULL);
    }
    gaps_close(&w->gaps);
    w->arena.failed |= !text;
    if (!w->arena.failed && w->proves & OF_ACCESSES)
        fputs(text, out);
    free(text);
}

/* ---- the whole --------------------------------------------------------------------------------- */

static bool open_writer(struct pipeline_writer *w)
{
    size_t n = (size_t)w->p->tasks;
    w->place = ARENA_ARRAY(&w->arena, n, int);
    w->topological = ARENA_ARRAY(&w->arena, n, int);
    w->number = ARENA_ARRAY(&w->arena, n, int);
    w->list = ARENA_ARRAY(&w->arena, n, int);
    w->done = ARENA_ARRAY(&w->arena, n, bool);
    w->fed = ARENA_ARRAY(&w->arena, n, bool);
    w->rows = ARENA_ARRAY(&w->arena, n, struct row);
    return !w->arena.failed;
}

enum status certify_structure(const struct certifier *certifier, struct diag *diag)
{
    const struct program *p = certifier->program;
    struct pipeline_writer w = {.certifier = certifier,
                                .p = p,
                                .tasks = plan_tasks(p->plan, 0),
                                .out = certifier->out,
                                .diag = diag,
                                .proves = certifier->asked & proof_structure_covers(p)};
    enum status status = STATUS_OK;
    if (p->tasks > MOST_TASKS) {
        certify_why_not(certifier, "there are too many tasks for paths between them");
        return STATUS_OK;
    }
    if (!open_writer(&w))
        status = diag_no_memory(diag);
    if (status == STATUS_OK) {
        gaps_firing_order(p, w.list, w.topological);
        certify_structure_write_numbers(&w);
        if (!certify_structure_is_clock(&w) && !pipeline_write_calls(&w, &status, diag)) {
            certify_why_not(certifier, "threads may call collectives in different orders");
            w.proves = 0;
        } else if (w.proves & OF_ACCESSES) {
            certify_structure_add_buffers(&w);
        }
        *certifier->proves = w.proves;
    }
    if (w.arena.failed)
        status = diag_no_memory(diag);
    arena_fini(&w.arena);
    return status;
}
