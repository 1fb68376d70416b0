/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.c - see order.h.
 *
 * The period-local graph has an edge on -> task for a dependence of distance d exactly when both
 * are enqueued in the same period: stage(on) == stage(task) + d. Others reach into an earlier
 * period and cost nothing, or into a later one and hang whatever the order is.
 */
#include "order.h"
#include "base/sort.h"

#include <stdlib.h>
#include <string.h>

typedef bool edge_filter(const struct task *, const struct dep *);

static bool is_period_local(const struct task *tasks, const struct dep *dep)
{
    return tasks[dep->on].stage == tasks[dep->task].stage + dep->distance;
}

static bool is_intra(const struct task *tasks, const struct dep *dep)
{
    (void)tasks;
    return dep->distance == 0;
}

/* True if the task's stream waits for another one, in the middle of a period. */
static bool stalls(const struct task *tasks, const struct dep *dep, edge_filter *filter)
{
    return filter(tasks, dep) && tasks[dep->on].stream != tasks[dep->task].stream;
}

int order_stall_cost(const struct plan *plan, int rank, int task)
{
    const struct pipeline *pipeline = &plan->pipeline;
    const struct task *tasks = plan_tasks(plan, rank);
    int cost = 0;
    for (size_t i = 0; i < pipeline->dep_count; i++) {
        const struct dep *dep = &pipeline->deps[i];
        cost += dep->task == task && stalls(tasks, dep, is_period_local);
    }
    return cost;
}

/* The state of a sort. Tasks are compared by their precedence: the least (cost, name) is 0. */
struct sorting {
    const struct pipeline *pipeline;
    const struct task *tasks; /* as the rank has them */
    edge_filter *filter;
    const int *wanted;               /* the precedence that is asked for; NULL: by cost and name */
    int *precedence, *by_precedence; /* of a task; the task that has it */
    int *missing;                    /* of a task: dependences on tasks that are not ordered yet */
    int *first, *next;               /* the dependences on a task, as a list; -1 ends it */
    int *heap, ready;                /* precedences of the ready tasks, the least one first */
};

struct ranked {
    int cost, task;
    const char *name;
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return compare_then(compare_int(x->cost, y->cost),
                        compare_then(strcmp(x->name, y->name), compare_int(x->task, y->task)));
}

static enum status find_precedences(struct sorting *sorting, bool by_stall_cost, struct diag *diag)
{
    const struct pipeline *pipeline = sorting->pipeline;
    struct ranked *ranked = calloc(pipeline->task_count + 1, sizeof *ranked);
    if (!ranked)
        return diag_no_memory(diag);
    for (int t = 0; t < (int)pipeline->task_count; t++)
        ranked[t] = (struct ranked){0, t, sorting->tasks[t].name};
    for (int i = 0; sorting->wanted && i < (int)pipeline->task_count; i++)
        ranked[sorting->wanted[i]].cost = i;
    for (size_t i = 0; by_stall_cost && i < pipeline->dep_count; i++)
        ranked[pipeline->deps[i].task].cost +=
            stalls(sorting->tasks, &pipeline->deps[i], sorting->filter);
    SORT(ranked, pipeline->task_count, compare_ranked);
    for (int i = 0; i < (int)pipeline->task_count; i++) {
        sorting->by_precedence[i] = ranked[i].task;
        sorting->precedence[ranked[i].task] = i;
    }
    free(ranked);
    return STATUS_OK;
}

static void add_ready(struct sorting *sorting, int precedence)
{
    int *heap = sorting->heap, at = sorting->ready++;
    for (; at > 0 && heap[(at - 1) / 2] > precedence; at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = precedence;
}

static int take_ready(struct sorting *sorting)
{
    int *heap = sorting->heap, least = heap[0], last = heap[--sorting->ready], at = 0;
    for (int child; (child = 2 * at + 1) < sorting->ready; at = child) {
        child += child + 1 < sorting->ready && heap[child + 1] < heap[child];
        if (heap[child] >= last)
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return sorting->by_precedence[least];
}

static void list_dependences(struct sorting *sorting)
{
    const struct pipeline *pipeline = sorting->pipeline;
    for (size_t t = 0; t < pipeline->task_count; t++)
        sorting->first[t] = -1;
    for (int i = 0; i < (int)pipeline->dep_count; i++) {
        const struct dep *dep = &pipeline->deps[i];
        if (!sorting->filter(sorting->tasks, dep))
            continue;
        sorting->missing[dep->task]++;
        sorting->next[i] = sorting->first[dep->on];
        sorting->first[dep->on] = i;
    }
}

/* Kahn's algorithm; the ready task of the least precedence is next. Returns how many tasks were
   ordered: fewer than all if the filtered graph has a cycle. */
static size_t sort_ready_first(struct sorting *sorting, int *out)
{
    const struct pipeline *pipeline = sorting->pipeline;
    size_t ordered = 0;
    list_dependences(sorting);
    for (int t = 0; t < (int)pipeline->task_count; t++)
        if (sorting->missing[t] == 0)
            add_ready(sorting, sorting->precedence[t]);
    while (sorting->ready > 0) {
        int task = out[ordered++] = take_ready(sorting);
        for (int i = sorting->first[task]; i >= 0; i = sorting->next[i])
            if (--sorting->missing[pipeline->deps[i].task] == 0)
                add_ready(sorting, sorting->precedence[pipeline->deps[i].task]);
    }
    return ordered;
}

struct staged {
    int stage, at, task;
};

static int compare_staged(const void *a, const void *b)
{
    const struct staged *x = a, *y = b;
    return compare_then(compare_int(x->stage, y->stage), compare_int(x->at, y->at));
}

/* Tasks of one stage keep their order; `sign` 1 ascending, -1 descending. */
static enum status sort_by_stage(const struct task *tasks, int *order, size_t count, int sign,
                                 struct diag *diag)
{
    struct staged *staged = calloc(count + 1, sizeof *staged);
    if (!staged)
        return diag_no_memory(diag);
    for (size_t i = 0; i < count; i++)
        staged[i] = (struct staged){sign * tasks[order[i]].stage, (int)i, order[i]};
    SORT(staged, count, compare_staged);
    for (size_t i = 0; i < count; i++)
        order[i] = staged[i].task;
    free(staged);
    return STATUS_OK;
}

/* Behind those that are ordered the tasks on cycles, by descending stage. */
static enum status sorted_with(struct sorting *sorting, int *out, struct diag *diag)
{
    size_t count = sorting->pipeline->task_count, ordered = sort_ready_first(sorting, out);
    size_t rest = ordered;
    for (size_t t = 0; t < count; t++)
        if (sorting->missing[t] > 0)
            out[rest++] = (int)t;
    return sort_by_stage(sorting->tasks, out + ordered, count - ordered, -1, diag);
}

static enum status sort_tasks(const struct plan *plan, const struct task *tasks,
                              edge_filter *filter, bool by_stall_cost, const int *wanted, int *out,
                              struct diag *diag)
{
    size_t count = plan->pipeline.task_count;
    int *cells = calloc(5 * count + plan->pipeline.dep_count + 1, sizeof *cells);
    if (!cells)
        return diag_no_memory(diag);
    struct sorting sorting = {&plan->pipeline,
                              tasks,
                              filter,
                              wanted,
                              cells,
                              cells + count,
                              cells + 2 * count,
                              cells + 3 * count,
                              cells + 5 * count,
                              cells + 4 * count,
                              0};
    enum status status = find_precedences(&sorting, by_stall_cost, diag);
    if (!status)
        status = sorted_with(&sorting, out, diag);
    free(cells);
    return status;
}

static enum status sorted(const struct plan *plan, int rank, edge_filter *filter,
                          bool by_stall_cost, const int *wanted, int *out, struct diag *diag)
{
    return sort_tasks(plan, plan_tasks(plan, rank), filter, by_stall_cost, wanted, out, diag);
}

enum status order_topological(const struct plan *plan, int *out, struct diag *diag)
{
    return sorted(plan, 0, is_intra, false, NULL, out, diag);
}

static enum status order_by_stage(const struct plan *plan, int rank, int sign, int *out,
                                  struct diag *diag)
{
    enum status status = order_topological(plan, out, diag);
    if (status == STATUS_OK)
        status = sort_by_stage(plan_tasks(plan, rank), out, plan->pipeline.task_count, sign, diag);
    return status;
}

enum status order_stage_descending(const struct plan *plan, int rank, int *out, struct diag *diag)
{
    return order_by_stage(plan, rank, -1, out, diag);
}

enum status order_enqueue(const struct plan *plan, int rank, int *out, struct diag *diag)
{
    const struct order_spec *order = plan_order(plan, rank);
    switch (order->kind) {
    case ORDER_EXPLICIT:
        memcpy(out, order->tasks.items, order->tasks.count * sizeof *out);
        return STATUS_OK;
    case ORDER_STAGE_DESCENDING: return order_by_stage(plan, rank, -1, out, diag);
    case ORDER_STAGE_ASCENDING: return order_by_stage(plan, rank, 1, out, diag);
    case ORDER_READY_FIRST: break;
    }
    return sorted(plan, rank, is_period_local, true, NULL, out, diag);
}

enum status order_dataflow(const struct plan *plan, int rank, int *out, struct diag *diag)
{
    switch (plan_order(plan, rank)->kind) {
    case ORDER_EXPLICIT: return order_enqueue(plan, rank, out, diag);
    case ORDER_STAGE_DESCENDING:
    case ORDER_STAGE_ASCENDING: return order_topological(plan, out, diag);
    case ORDER_READY_FIRST: break;
    }
    return sorted(plan, rank, is_intra, true, NULL, out, diag);
}

enum status order_behind_dependences(const struct plan *plan, const int *order, int *out,
                                     struct diag *diag)
{
    return sorted(plan, 0, is_intra, false, order, out, diag);
}

/* ---- the order of a software pipeline -------------------------------------------------------- */

/* Tasks and dependences, with the components of tasks that depend on each other over iterations (Tarjan 1972). */
struct pipelining {
    const struct pipeline *pipeline;
    const struct task *tasks; /* as rank 0 has them */
    int last;                 /* the last stage that there may be */
    int *stage;
    int *first, *next; /* the dependences on a task, as a list; -1 ends it */
    int *component;    /* of a task; -1: not known yet */
    int *number, *low; /* of a task: when it was found, 0: not yet; the first that it leads to */
    int *stack, depth; /* tasks without a component */
    bool *waits;       /* of a task: it has to be looked at again */
    int found, components;
    bool chains; /* the stages follow from chains of dependences */
};

static void find_component(struct pipelining *p, int task)
{
    p->number[task] = p->low[task] = ++p->found;
    p->stack[p->depth++] = task;
    for (int i = p->first[task]; i >= 0; i = p->next[i]) {
        const int to = p->pipeline->deps[i].task;
        if (!p->number[to])
            find_component(p, to);
        if (p->component[to] < 0 && p->low[to] < p->low[task])
            p->low[task] = p->low[to];
    }
    if (p->low[task] < p->number[task])
        return;
    while (p->component[task] < 0)
        p->component[p->stack[--p->depth]] = p->components;
    p->components++;
}

/* How many stages the task must be behind the one that it depends on, besides the distance. */
static int stages_behind(const struct pipelining *p, const struct dep *dep)
{
    return p->chains && dep->distance == 0 && p->component[dep->on] != p->component[dep->task] &&
           p->tasks[dep->on].stream != p->tasks[dep->task].stream;
}

/* Every task as late as its dependences ask for: longest paths. No cycle is longer than 0, and a stage has a last value. */
static void push_stages(struct pipelining *p)
{
    const int count = (int)p->pipeline->task_count;
    int *ring = p->stack, head = 0, length = count; /* those that wait, each once */
    for (int t = 0; t < count; t++) {
        ring[t] = t;
        p->waits[t] = true;
    }
    while (length > 0) {
        const int task = ring[head];
        head = (head + 1) % count;
        length--;
        p->waits[task] = false;
        for (int i = p->first[task]; i >= 0; i = p->next[i]) {
            const struct dep *dep = &p->pipeline->deps[i];
            int least = p->stage[task] + stages_behind(p, dep) - dep->distance;
            least = least < p->last ? least : p->last;
            if (least <= p->stage[dep->task])
                continue;
            p->stage[dep->task] = least;
            if (!p->waits[dep->task])
                ring[(head + length++) % count] = dep->task;
            p->waits[dep->task] = true;
        }
    }
}

/* Stages of the plan, or by chains; to `stage`. */
static void find_turn_stages(struct pipelining *p)
{
    const int count = (int)p->pipeline->task_count;
    p->chains = true;
    for (int t = 0; t < count; t++) {
        p->chains &= p->tasks[t].stage == 0;
        p->stage[t] = p->tasks[t].stage < p->last ? p->tasks[t].stage : p->last;
        p->first[t] = p->component[t] = -1;
    }
    for (int i = 0; i < (int)p->pipeline->dep_count; i++) {
        p->next[i] = p->first[p->pipeline->deps[i].on];
        p->first[p->pipeline->deps[i].on] = i;
    }
    for (int t = 0; t < count; t++)
        if (!p->number[t])
            find_component(p, t);
    push_stages(p);
}

enum status order_pipelined(const struct plan *plan, int max_depth, int *stage, int *out,
                            struct diag *diag)
{
    const size_t count = plan->pipeline.task_count, deps = plan->pipeline.dep_count;
    int *cells = calloc(6 * count + deps + 1, sizeof *cells);
    bool *waits = calloc(count + 1, sizeof *waits);
    struct task *tasks = malloc((count + 1) * sizeof *tasks);
    enum status status = STATUS_OK;
    if (cells && waits && tasks) {
        struct pipelining pipelining = {.pipeline = &plan->pipeline,
                                        .tasks = plan_tasks(plan, 0),
                                        .last = max_depth - 1,
                                        .stage = stage,
                                        .first = cells,
                                        .component = cells + count,
                                        .number = cells + 2 * count,
                                        .low = cells + 3 * count,
                                        .stack = cells + 4 * count,
                                        .next = cells + 5 * count,
                                        .waits = waits};
        find_turn_stages(&pipelining);
        memcpy(tasks, pipelining.tasks, count * sizeof *tasks);
        for (size_t t = 0; t < count; t++)
            tasks[t].stage = stage[t];
        int *wanted = cells;
        status = order_enqueue(plan, 0, wanted, diag);
        if (status == STATUS_OK)
            status = sort_tasks(plan, tasks, is_period_local, false, wanted, out, diag);
    } else {
        status = diag_no_memory(diag);
    }
    free(cells);
    free(waits);
    free(tasks);
    return status;
}
