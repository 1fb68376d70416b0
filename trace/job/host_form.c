/* SPDX-License-Identifier: Apache-2.0 */
/* host_form.c - see host_form.h. */
#include "host_form.h"

enum status host_form(struct job *job, struct plan *out, struct diag *diag)
{
    struct plan *plan = &job->plan;
    job_check(job);
    plan->form = FORM_THREADS;
    plan->threads = ARENA_ARRAY(&plan->arena, job->thread_count + 1, struct host_thread);
    if (!plan->threads)
        return diag_no_memory(diag);
    for (size_t i = 0; i < job->thread_count; i++)
        if (job->threads[i]->host.op_count > 0 || job->threads[i]->is_rank)
            plan->threads[plan->thread_count++] = job->threads[i]->host;
    *out = *plan;
    plan_init(plan);
    return STATUS_OK;
}
