/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traffic.c - see traffic.h.
 *
 * Submission: gap(X, Y) is the least g for which X(i) is submitted before Y(i + g), whatever happens.
 *
 * Waiting: on the device of a rank Y(j) may wait for X(i) only if j - i is at least
 *
 *     d                  for a dependence of Y on X of distance d
 *     1 - gap(Y, X)      for two tasks of one stream, or of one communicator: for a smaller j - i, Y(j)
 *                        comes first
 *
 * and, over several waits, the sum: the shortest path. Lengths may be negative, so these paths are
 * Bellman's and Ford's.
 */
#include "traffic.h"
#include "base/sort.h"

#include <stdlib.h>

#include "gaps.h"
#include "base/array.h"

/* A stream has room for two iterations more than have a context: lower_pipeline.c. */
enum { MOST_EDGES = 1 << 20, SPARE_ITERATIONS = 2 };

struct traffic_wait_edge {
    int from, to, length;
};

struct traffic_traffic {
    const struct program *program;
    struct search_watch *watch;
    struct gaps gaps; /* of submission */
    struct arena arena;
    int *place;                      /* of every task in the enqueue order */
    int *topological;                /* all tasks, as one worker would submit them */
    int *callers, caller_count;      /* those that communicate, in this order */
    int *ordered, ordered_count;     /* those that take tickets, in the order of these */
    int *list;                       /* room for some of them */
    struct traffic_wait_edge *edges; /* at last sorted by `from` */
    size_t edge_cap;
    int *first, edge_count;     /* of a task: edges[first[task] .. first[task + 1]) */
    int *path, *visits, *queue; /* per task: of a search for paths */
    bool *queued;
};

static const struct task *traffic_task_of(const struct traffic_traffic *traffic, int task)
{
    return plan_task(traffic->program->plan, 0, task);
}

/* ---- order of submission ----------------------------------------------------------------------- */

/* The gap of submission between two tasks, or a bound of it that is at most `enough`. */
static enum status find_gap(struct traffic_traffic *traffic, int from, int to, int enough, int *out,
                            struct diag *diag)
{
    int queued;
    if (gaps_between(&traffic->gaps, from, to, enough, out) != STATUS_OK)
        return diag_no_memory(diag);
    if (*out <= enough)
        return STATUS_OK;
    enum status status = gaps_in_queue(&traffic->gaps, from, to, &queued, diag);
    *out = min_int(*out, queued);
    return status;
}

/* Find out whether all instances of these tasks are submitted in one order: that of iterations, and within one the
   order of the list. Gaps compose, so neighbours tell. */
static enum status is_chain(struct traffic_traffic *traffic, const int *tasks, int count,
                            bool *chain, struct diag *diag)
{
    enum status status = STATUS_OK;
    *chain = true;
    for (int k = 0; k < count && count > 1 && *chain && status == STATUS_OK; k++) {
        bool last = k + 1 == count;
        int gap = 0;
        status = find_gap(traffic, tasks[k], tasks[last ? 0 : k + 1], last, &gap, diag);
        *chain = gap <= last;
    }
    return status;
}

/* ---- waiting ----------------------------------------------------------------------------------- */

static bool traffic_add_edge(struct traffic_traffic *traffic, int from, int to, int length)
{
    if (!ARENA_GROW(&traffic->arena, traffic->edges, traffic->edge_count, traffic->edge_cap))
        return false;
    traffic->edges[traffic->edge_count++] = (struct traffic_wait_edge){from, to, length};
    return true;
}

static enum status add_chain(struct traffic_traffic *traffic, const int *tasks, int count,
                             struct diag *diag)
{
    bool added = true;
    for (int k = 0; k < count && count > 1 && added; k++)
        added = traffic_add_edge(traffic, tasks[k], tasks[(k + 1) % count], k + 1 == count);
    return added ? STATUS_OK : diag_no_memory(diag);
}

static enum status add_pairs(struct traffic_traffic *traffic, const int *tasks, int count,
                             struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int y = 0; y < count && status == STATUS_OK; y++)
        for (int x = 0; x < count && status == STATUS_OK; x++) {
            int gap = 0;
            if (x == y)
                continue;
            status = find_gap(traffic, tasks[y], tasks[x], 0, &gap, diag);
            if (status == STATUS_OK && !traffic_add_edge(traffic, tasks[x], tasks[y], 1 - gap))
                status = diag_no_memory(diag);
        }
    return status;
}

/* The tasks of one stream, in topological order. False in *few: there are too many waits to follow. */
static enum status traffic_add_stream(struct traffic_traffic *traffic, const int *tasks, int count,
                                      bool *few, struct diag *diag)
{
    bool chain;
    enum status status = is_chain(traffic, tasks, count, &chain, diag);
    if (status != STATUS_OK)
        return status;
    if (chain)
        return add_chain(traffic, tasks, count, diag);
    *few = (int64_t)traffic->edge_count + (int64_t)count * count < MOST_EDGES &&
           !watch_own_watch_look(traffic->watch);
    return *few ? add_pairs(traffic, tasks, count, diag) : STATUS_OK;
}

static enum status traffic_add_streams(struct traffic_traffic *traffic, bool *few,
                                       struct diag *diag)
{
    const struct program *p = traffic->program;
    enum status status = STATUS_OK;
    for (int s = 0; s < (int)p->plan->streams.count && *few && status == STATUS_OK; s++) {
        int count = 0;
        for (int k = 0; k < p->tasks; k++)
            if (traffic_task_of(traffic, traffic->topological[k])->stream == s)
                traffic->list[count++] = traffic->topological[k];
        status = traffic_add_stream(traffic, traffic->list, count, few, diag);
    }
    return status;
}

/* The tasks of each communicator: they must be a chain, or ranks issue them in different orders. */
static enum status add_comms(struct traffic_traffic *traffic, bool *ordered, struct diag *diag)
{
    const struct program *p = traffic->program;
    enum status status = STATUS_OK;
    for (int c = 0; c < p->comm_count && *ordered && status == STATUS_OK; c++) {
        int count = 0, member = p->comms[c].members[0];
        for (int k = 0; k < traffic->caller_count; k++)
            if (plan_task(p->plan, member, traffic->callers[k])->work.comm == c)
                traffic->list[count++] = traffic->callers[k];
        status = is_chain(traffic, traffic->list, count, ordered, diag);
        if (status == STATUS_OK && *ordered)
            status = add_chain(traffic, traffic->list, count, diag);
    }
    return status;
}

static enum status traffic_add_dependences(struct traffic_traffic *traffic, struct diag *diag)
{
    const struct program *p = traffic->program;
    bool added = true;
    for (int task = 0; task < p->tasks; task++)
        for (int k = 0; k < p->depends[task].count && added; k++)
            added = traffic_add_edge(traffic, p->depends[task].items[k].task, task,
                                     p->depends[task].items[k].distance);
    return added ? STATUS_OK : diag_no_memory(diag);
}

/* Sort the edges by their task. */
static enum status index_edges(struct traffic_traffic *traffic, struct diag *diag)
{
    const int tasks = traffic->program->tasks;
    struct traffic_wait_edge *sorted =
        ARENA_ARRAY(&traffic->arena, (size_t)traffic->edge_count + 1, struct traffic_wait_edge);
    int *first = ARENA_ARRAY(&traffic->arena, (size_t)tasks + 2, int);
    if (!sorted || !first)
        return diag_no_memory(diag);
    for (int i = 0; i < traffic->edge_count; i++)
        first[traffic->edges[i].from + 2]++;
    for (int t = 2; t <= tasks + 1; t++)
        first[t] += first[t - 1];
    for (int i = 0; i < traffic->edge_count; i++)
        sorted[first[traffic->edges[i].from + 1]++] = traffic->edges[i];
    traffic->edges = sorted;
    traffic->first = first;
    return STATUS_OK;
}

/* The shortest paths from a task to all others; false: some are shorter than any number. */
static bool find_paths(struct traffic_traffic *traffic, int from)
{
    const int tasks = traffic->program->tasks;
    int head = 0, waiting = 0;
    for (int t = 0; t < tasks; t++) {
        traffic->path[t] = GAP_FAR;
        traffic->visits[t] = traffic->queued[t] = 0;
    }
    traffic->path[from] = 0;
    traffic->queue[waiting++] = from;
    while (waiting > 0) {
        int task = traffic->queue[head];
        head = (head + 1) % tasks;
        waiting--;
        traffic->queued[task] = false;
        if (traffic->visits[task]++ > tasks)
            return false;
        for (int i = traffic->first[task]; i < traffic->first[task + 1]; i++) {
            const struct traffic_wait_edge *edge = &traffic->edges[i];
            if (traffic->path[task] + edge->length >= traffic->path[edge->to])
                continue;
            traffic->path[edge->to] = traffic->path[task] + edge->length;
            if (!traffic->queued[edge->to])
                traffic->queue[(head + waiting++) % tasks] = edge->to;
            traffic->queued[edge->to] = true;
        }
    }
    return true;
}

/* The paths from collective `from`, one that ends in itself apart: it comes in iteration order. `back`
   tells which collectives found a path of no length to it; each of two must not wait for the other. */
static bool paths_are_forward(struct traffic_traffic *traffic, int from, bool *level)
{
    const struct program *p = traffic->program;
    const int least = p->plan->pipeline.retire == RETIRE_DEVICE ? 1 - p->depth : -SPARE_ITERATIONS;
    const size_t row = (size_t)from * (size_t)traffic->caller_count;
    for (int t = 0; t < p->tasks; t++)
        if (traffic->path[t] < least)
            return false;
    for (int k = 0; k < traffic->caller_count; k++) {
        int length = traffic->path[traffic->callers[k]];
        if (k != from && length < 0)
            return false;
        level[row + (size_t)k] = k != from && length == 0;
    }
    return true;
}

static enum status waits_are_forward(struct traffic_traffic *traffic, bool *forward,
                                     struct diag *diag)
{
    const size_t n = (size_t)traffic->caller_count;
    bool *level = ARENA_ARRAY(&traffic->arena, n * n, bool);
    if (!level)
        return diag_no_memory(diag);
    for (int k = 0; k < traffic->caller_count && *forward; k++)
        *forward = !watch_own_watch_look(traffic->watch) &&
                   find_paths(traffic, traffic->callers[k]) && paths_are_forward(traffic, k, level);
    for (size_t a = 0; a < n && *forward; a++)
        for (size_t b = 0; b < a && *forward; b++)
            *forward = !(level[a * n + b] && level[b * n + a]);
    return STATUS_OK;
}

/* ---- the host ---------------------------------------------------------------------------------- */

/* True if a worker waits for nothing that the device does, but for room in a stream. */
static bool traffic_host_runs_ahead(const struct program *p)
{
    bool ahead = true;
    for (size_t i = 0; i < p->op_count && ahead; i++)
        ahead = op_runs_ahead(p->ops[i].kind);
    return ahead;
}

/* Find out whether a full stream holds all iterations that have a context, and with `retire: submit` some more. */
static enum status traffic_find_room(const struct program *p, bool *roomy, struct diag *diag)
{
    bool submit = p->plan->pipeline.retire != RETIRE_DEVICE;
    const int64_t iterations = p->depth + (submit ? SPARE_ITERATIONS : 0);
    int64_t *pushes = calloc((size_t)p->stream_count + 1, sizeof *pushes);
    if (!pushes)
        return diag_no_memory(diag);
    for (size_t i = 0; i < p->op_count; i++)
        if (op_pushes(p->ops[i].kind))
            pushes[p->ops[i].stream]++;
    *roomy = true;
    for (int s = 0; s < p->stream_count && *roomy; s++)
        *roomy = p->streams[s].hw_queue < 0 && p->streams[s].cap >= pushes[s] * iterations;
    free(pushes);
    return STATUS_OK;
}

/* ---- the whole --------------------------------------------------------------------------------- */

/* A member of a communicator uses it in the same tasks as every other. */
static enum status traffic_members_agree(const struct program *p, bool *agree, struct diag *diag)
{
    int *uses = calloc((size_t)p->comm_count + 1, sizeof *uses);
    if (!uses)
        return diag_no_memory(diag);
    for (int t = 0; t < p->tasks && *agree; t++) {
        if (plan_task(p->plan, 0, t)->work.kind != WORK_COLLECTIVE)
            continue;
        for (int rank = 0; rank < p->ranks; rank++)
            uses[plan_task(p->plan, rank, t)->work.comm]++;
        for (int rank = 0; rank < p->ranks; rank++) {
            int comm = plan_task(p->plan, rank, t)->work.comm;
            *agree &= uses[comm] == 0 || uses[comm] == p->comms[comm].count;
            uses[comm] = 0;
        }
    }
    free(uses);
    return STATUS_OK;
}

static enum status open_traffic(struct traffic_traffic *traffic, struct diag *diag)
{
    const struct program *p = traffic->program;
    const size_t n = (size_t)p->tasks;
    struct arena *arena = &traffic->arena;
    traffic->place = ARENA_ARRAY(arena, n, int);
    traffic->topological = ARENA_ARRAY(arena, n, int);
    traffic->callers = ARENA_ARRAY(arena, n, int);
    traffic->ordered = ARENA_ARRAY(arena, n, int);
    traffic->list = ARENA_ARRAY(arena, n, int);
    traffic->path = ARENA_ARRAY(arena, n, int);
    traffic->visits = ARENA_ARRAY(arena, n, int);
    traffic->queue = ARENA_ARRAY(arena, n, int);
    traffic->queued = ARENA_ARRAY(arena, n, bool);
    if (arena->failed || !gaps_open(&traffic->gaps, p, traffic->place, GAPS_OF_SUBMISSION))
        return diag_no_memory(diag);
    gaps_firing_order(p, traffic->list, traffic->topological);
    for (int k = 0; k < p->tasks; k++) {
        traffic->place[p->order[0][k]] = k;
        int task = traffic->topological[k];
        if (traffic_task_of(traffic, task)->work.kind == WORK_COLLECTIVE)
            traffic->callers[traffic->caller_count++] = task;
        if (p->ticket_position[task] >= 0)
            traffic->ordered[p->ticket_position[task]] = task;
    }
    traffic->ordered_count = p->ordered_tasks[0];
    return STATUS_OK;
}

static enum status waits_are_plain(struct traffic_traffic *traffic, bool *plain, struct diag *diag)
{
    enum status status = add_comms(traffic, plain, diag);
    if (status == STATUS_OK && *plain)
        status = traffic_add_streams(traffic, plain, diag);
    if (status == STATUS_OK && *plain)
        status = traffic_add_dependences(traffic, diag);
    if (status == STATUS_OK && *plain)
        status = index_edges(traffic, diag);
    if (status == STATUS_OK && *plain)
        status = waits_are_forward(traffic, plain, diag);
    return status;
}

static enum status dataflow_is_plain(struct traffic_traffic *traffic, bool *plain,
                                     struct diag *diag)
{
    const struct program *p = traffic->program;
    const bool by_turn = program_fires_by_turn(p);
    bool tickets = true, one_order = true, roomy = false;
    enum status status = open_traffic(traffic, diag);
    if (status == STATUS_OK && !by_turn)
        status = is_chain(traffic, traffic->ordered, traffic->ordered_count, &tickets, diag);
    if (status == STATUS_OK)
        status = is_chain(traffic, traffic->callers, traffic->caller_count, &one_order, diag);
    if (status == STATUS_OK)
        status = traffic_find_room(p, &roomy, diag);
    const bool ahead = by_turn && p->ordered_tasks[0] > 0 && p->last_turn_stage > 0;
    *plain = tickets && (one_order || (roomy && !ahead && traffic_host_runs_ahead(p) &&
                                       !p->plan->machine.launch_order_implicit));
    if (status == STATUS_OK && *plain && !one_order)
        status = waits_are_plain(traffic, plain, diag);
    return status;
}

struct counts {
    int ordered, callers;
    bool by_ticket, by_thread; /* all communicating tasks are ordered, are on one thread */
};

static struct counts count_tasks(const struct program *p)
{
    struct counts counts = {.by_ticket = true, .by_thread = true};
    int group = -1;
    for (int t = 0; t < p->tasks; t++) {
        const struct task *task = plan_task(p->plan, 0, t);
        counts.ordered += task->globally_ordered;
        if (task->work.kind != WORK_COLLECTIVE)
            continue;
        counts.callers++;
        counts.by_ticket &= task->globally_ordered;
        counts.by_thread &= group < 0 || group == task->group;
        group = task->group;
    }
    return counts;
}

enum status traffic_is_plain(const struct program *p, struct search_watch *watch, bool *plain,
                             struct diag *diag)
{
    struct counts counts = count_tasks(p);
    *plain =
        counts.callers <= 1 || p->plan->machine.sm_slots == 0; /* else two may hold slots that each
                                                                        other's peers need */
    enum status status = *plain ? traffic_members_agree(p, plain, diag) : STATUS_OK;
    if (status != STATUS_OK || !*plain)
        return status;
    if (p->driver == DRIVER_CLOCK) {
        *plain = counts.callers <= 1 || counts.by_ticket || counts.by_thread;
        return STATUS_OK;
    }
    if (program_fires_by_turn(p) && !program_turns_come(p))
        *plain = false;
    if (!*plain || (counts.callers <= 1 && (program_fires_by_turn(p) || counts.ordered <= 1)) ||
        (program_fires_by_turn(p) && counts.by_ticket))
        return STATUS_OK;
    struct traffic_traffic traffic = {.program = p, .watch = watch};
    status = dataflow_is_plain(&traffic, plain, diag);
    gaps_close(&traffic.gaps);
    arena_fini(&traffic.arena);
    return status;
}
