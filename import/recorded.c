/* SPDX-License-Identifier: Apache-2.0 */
/* recorded.c - see recorded.h. */
#include "recorded_internal.h"

#include <stdlib.h>

/* Ranks that are told have their order; others that of their process numbers. */
static int by_rank(const void *left, const void *right)
{
    const struct tapes *a = &((const struct recorded_process *)left)->tapes,
                       *b = &((const struct recorded_process *)right)->tapes;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

static enum status read_all(struct recorded_job *job, const char *const *paths, size_t count)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        job->processes[i] = (struct recorded_process){0};
        status = tapes_read(paths[i], job->arena, &job->processes[i].tapes, job->diag);
    }
    job->process_count = count;
    if (status == STATUS_OK && count > 1)
        qsort(job->processes, count, sizeof *job->processes, by_rank);
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        status = recorded_walk(job, &job->processes[i]);
    return status;
}

enum status recorded_plan(const char *const *paths, size_t count,
                          const struct recorded_options *options, struct plan *out,
                          struct diag *diag)
{
    struct plan plan;
    plan_init(&plan);
    struct recorded_job job = {
        .plan = &plan, .arena = &plan.arena, .diag = diag, .options = options};
    job.processes = ARENA_ARRAY(job.arena, count, struct recorded_process);
    enum status status = job.processes ? read_all(&job, paths, count) : diag_no_memory(diag);
    if (status == STATUS_OK && !recorded_write(&job))
        status = diag_no_memory(diag);
    if (status == STATUS_OK)
        *out = plan;
    else
        plan_fini(&plan);
    return status;
}
