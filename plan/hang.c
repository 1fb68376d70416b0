/* SPDX-License-Identifier: Apache-2.0 */
/* hang.c - see hang.h. */
#include "hang.h"

#include <stdlib.h>

#include "order.h"

/* By how many periods an instance comes before the one that it needs. */
static int periods_early(const struct task *tasks, const struct dep *dep)
{
    return tasks[dep->on].stage - tasks[dep->task].stage - dep->distance;
}

bool hang_is_later(const struct plan *plan, int rank, const struct dep *dep)
{
    return periods_early(plan_tasks(plan, rank), dep) > 0;
}

bool hang_is_certain(const struct plan *plan, int rank, const struct dep *dep, const int *place)
{
    const struct task *tasks = plan_tasks(plan, rank);
    int early = periods_early(tasks, dep);
    bool before = early > 0 || (early == 0 && place[dep->task] <= place[dep->on]);
    return before && tasks[dep->task].group == tasks[dep->on].group;
}

/* `cells`: room for the order and the places of all tasks. */
static enum status find_on_rank(const struct plan *plan, int rank, int *cells,
                                const struct dep **out, struct diag *diag)
{
    const struct pipeline *pipeline = &plan->pipeline;
    int *order = cells, *place = cells + pipeline->task_count;
    enum status status = order_enqueue(plan, rank, order, diag);
    if (status != STATUS_OK)
        return status;
    for (int k = 0; k < (int)pipeline->task_count; k++)
        place[order[k]] = k;
    for (size_t i = 0; i < pipeline->dep_count && !*out; i++)
        if (hang_is_certain(plan, rank, &pipeline->deps[i], place))
            *out = &pipeline->deps[i];
    return STATUS_OK;
}

enum status hang_find(const struct plan *plan, int ranks, const struct dep **out, struct diag *diag)
{
    int *cells = calloc(2 * plan->pipeline.task_count + 1, sizeof *cells);
    if (!cells)
        return diag_no_memory(diag);
    enum status status = STATUS_OK;
    *out = NULL;
    for (int rank = 0; rank < ranks && status == STATUS_OK && !*out; rank++)
        status = find_on_rank(plan, rank, cells, out, diag);
    free(cells);
    return status;
}
