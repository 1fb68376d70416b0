/*
 * order.c - see order.h.
 *
 * The period-local graph has an edge on -> task for a dependence of distance d exactly when both
 * are enqueued in the same period: stage(on) == stage(task) + d. Others reach into an earlier
 * period and cost nothing, or into a later one and hang whatever the order is.
 */
#include "order.h"

#include <stdlib.h>
#include <string.h>

static bool is_period_local(const struct pipeline *pipeline, const struct dep *dep)
{
    return pipeline->tasks[dep->on].stage == pipeline->tasks[dep->task].stage + dep->distance;
}

static bool is_intra(const struct pipeline *pipeline, const struct dep *dep)
{
    (void)pipeline;
    return dep->distance == 0;
}

typedef bool edge_filter(const struct pipeline *, const struct dep *);

int order_stall_cost(const struct plan *plan, int task)
{
    const struct pipeline *pipeline = &plan->pipeline;
    int cost = 0;
    for (size_t i = 0; i < pipeline->dep_count; i++) {
        const struct dep *dep = &pipeline->deps[i];
        cost += dep->task == task && is_period_local(pipeline, dep) &&
                pipeline->tasks[dep->on].stream != pipeline->tasks[task].stream;
    }
    return cost;
}

/* Kahn's algorithm; among the ready tasks the one with the least (cost, name) is next. Returns how
   many tasks were ordered: fewer than all if the filtered graph has a cycle. */
static size_t sort_ready_first(const struct plan *plan, edge_filter *filter, const int *cost,
                               int *missing, int *out)
{
    const struct pipeline *pipeline = &plan->pipeline;
    size_t ordered = 0;
    for (size_t t = 0; t < pipeline->task_count; t++)
        missing[t] = 0;
    for (size_t i = 0; i < pipeline->dep_count; i++)
        missing[pipeline->deps[i].task] += filter(pipeline, &pipeline->deps[i]);
    for (;;) {
        int best = -1;
        for (int t = 0; t < (int)pipeline->task_count; t++) {
            if (missing[t] != 0)
                continue;
            if (best < 0 || cost[t] < cost[best] ||
                (cost[t] == cost[best] &&
                 strcmp(pipeline->tasks[t].name, pipeline->tasks[best].name) < 0))
                best = t;
        }
        if (best < 0)
            return ordered;
        missing[best] = -1;
        out[ordered++] = best;
        for (size_t i = 0; i < pipeline->dep_count; i++)
            if (pipeline->deps[i].on == best && filter(pipeline, &pipeline->deps[i]))
                missing[pipeline->deps[i].task]--;
    }
}

/* Stable insertion sort by stage; `sign` 1 ascending, -1 descending. */
static void sort_by_stage(const struct pipeline *pipeline, int *tasks, size_t count, int sign)
{
    for (size_t i = 1; i < count; i++) {
        int task = tasks[i];
        size_t j = i;
        for (; j > 0; j--) {
            int before = pipeline->tasks[tasks[j - 1]].stage;
            if (sign * before <= sign * pipeline->tasks[task].stage)
                break;
            tasks[j] = tasks[j - 1];
        }
        tasks[j] = task;
    }
}

static enum status sorted(const struct plan *plan, edge_filter *filter, bool by_stall_cost,
                          int *out, struct diag *diag)
{
    size_t count = plan->pipeline.task_count;
    int *cost = calloc(2 * count + 1, sizeof *cost);
    if (!cost)
        return diag_no_memory(diag);
    int *missing = cost + count;
    for (size_t t = 0; by_stall_cost && t < count; t++)
        cost[t] = order_stall_cost(plan, (int)t);
    size_t ordered = sort_ready_first(plan, filter, cost, missing, out);
    size_t rest = ordered;
    for (size_t t = 0; t < count; t++)
        if (missing[t] > 0)
            out[rest++] = (int)t;
    sort_by_stage(&plan->pipeline, out + ordered, count - ordered, -1);
    free(cost);
    return STATUS_OK;
}

enum status order_topological(const struct plan *plan, int *out, struct diag *diag)
{
    return sorted(plan, is_intra, false, out, diag);
}

enum status order_stage_descending(const struct plan *plan, int *out, struct diag *diag)
{
    enum status status = order_topological(plan, out, diag);
    if (status == STATUS_OK)
        sort_by_stage(&plan->pipeline, out, plan->pipeline.task_count, -1);
    return status;
}

enum status order_enqueue(const struct plan *plan, int rank, int *out, struct diag *diag)
{
    const struct order_spec *order = plan_order(plan, rank);
    enum status status;
    switch (order->kind) {
    case ORDER_EXPLICIT:
        memcpy(out, order->tasks.items, order->tasks.count * sizeof *out);
        return STATUS_OK;
    case ORDER_STAGE_DESCENDING: return order_stage_descending(plan, out, diag);
    case ORDER_STAGE_ASCENDING:
        status = order_topological(plan, out, diag);
        if (status == STATUS_OK)
            sort_by_stage(&plan->pipeline, out, plan->pipeline.task_count, 1);
        return status;
    case ORDER_READY_FIRST: break;
    }
    return sorted(plan, is_period_local, true, out, diag);
}
