/* SPDX-License-Identifier: Apache-2.0 */
/* waits.c - who waits for whom, in words: of the threads of a run that has waited too long. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "run.h"

void waits_for(const struct run *run, const struct op *op, int64_t iteration, char *out,
               size_t bytes)
{
    const struct program *p = run->program;
    if (op->kind == OP_AWAIT && p->tasks && op->distance >= 0)
        snprintf(out, bytes, "the CPU part of %s(%" PRId64 ")",
                 p->plan->pipeline.tasks[op->object % p->tasks].name, iteration - op->distance);
    else
        snprintf(out, bytes, "%s", op->kind == OP_TICKET ? "its turn" : op_key(op->kind));
}

/* "; thread dense: LoadParams(1) waits for the CPU part of StoreParams(0)" */
static void add_place(const struct run *run, const struct run_thread *thread, int64_t at, char *out,
                      size_t bytes)
{
    const struct program *p = run->program;
    const struct op *op = &p->ops[at >> 32];
    int64_t iteration = at & INT32_MAX;
    char name[160], subject[160], what[160];
    program_agent_name(p, program_thread_agent(p, thread->index), name, sizeof name);
    program_op_subject(p, op, iteration, subject, sizeof subject);
    waits_for(run, op, iteration, what, sizeof what);
    if (op->kind == OP_AWAIT || op->kind == OP_TICKET)
        snprintf(out, bytes, "; %s: %s waits for %s", name, subject, what);
    else
        snprintf(out, bytes, "; %s is at %s", name, subject);
}

void waits_of_others(const struct run_thread *self, char *out, size_t bytes)
{
    const struct run *run = self->run;
    const struct program *p = run->program;
    size_t used = 0;
    *out = '\0';
    for (int t = 0; t < p->thread_count && used + 1 < bytes; t++) {
        const struct run_thread *thread = &run->threads[t];
        int64_t at = atomic_load(&thread->at);
        if (at < 0 || thread == self || p->threads[t].kind == THREAD_DRIVER ||
            !run_has(run, thread->rank))
            continue;
        add_place(run, thread, at, out + used, bytes - used);
        used += strlen(out + used);
    }
}
