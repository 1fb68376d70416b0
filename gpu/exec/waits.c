/* SPDX-License-Identifier: Apache-2.0 */
/* waits.c - who waits for whom, in words: of the threads of a run that has waited too long. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "run.h"

/* The instance with the ticket in a queue; NULL: none is waiting there. With the lock held. */
static const struct instance *queued_with(const struct run *run, int rank, int64_t ticket,
                                          const struct run_thread **owner)
{
    const struct program *p = run->program;
    for (int t = 0; t < p->thread_count; t++) {
        const struct run_thread *thread = &run->threads[t];
        for (int i = 0; thread->rank == rank && i < thread->queue_count; i++) {
            const struct instance *one =
                &thread->queue[(thread->queue_first + i) % thread->queue_cap];
            *owner = thread;
            if (one->ticket == ticket && p->ticket_position[rank * p->tasks + one->task] >= 0)
                return one;
        }
    }
    return NULL;
}

/* The instance whose turn it is, where it stands in a queue: a thread that is at it tells its own place. */
static void turn_behind(struct run *run, int rank, char *out, size_t bytes)
{
    const struct program *p = run->program;
    const struct run_thread *owner = NULL;
    char name[160];
    snprintf(out, bytes, "its turn");
    if (!p->tasks)
        return;
    pthread_mutex_lock(&run->lock);
    const struct instance *first = queued_with(run, rank, run->ranks[rank].served, &owner);
    const struct instance found = first ? *first : (struct instance){.task = -1};
    run_unlock(run);
    if (found.task < 0)
        return;
    program_agent_name(p, program_thread_agent(p, owner->index), name, sizeof name);
    snprintf(out, bytes, "its turn behind %s(%" PRId64 "), which is in the queue of %s",
             p->plan->pipeline.tasks[found.task].name, found.iteration, name);
}

void waits_for(struct run *run, int rank, const struct op *op, int64_t iteration, char *out,
               size_t bytes)
{
    const struct program *p = run->program;
    if (op->kind == OP_TICKET) {
        turn_behind(run, rank, out, bytes);
        return;
    }
    if (op->kind == OP_AWAIT && p->tasks && op->distance >= 0)
        snprintf(out, bytes, "the CPU part of %s(%" PRId64 ")",
                 p->plan->pipeline.tasks[op->object % p->tasks].name, iteration - op->distance);
    else
        snprintf(out, bytes, "%s", op_key(op->kind));
}

/* "; thread dense: LoadParams(1) waits for the CPU part of StoreParams(0)" */
static void add_place(struct run *run, const struct run_thread *thread, int64_t at, char *out,
                      size_t bytes)
{
    const struct program *p = run->program;
    const struct op *op = &p->ops[at >> 32];
    int64_t iteration = at & INT32_MAX;
    char name[160], subject[160], what[320];
    program_agent_name(p, program_thread_agent(p, thread->index), name, sizeof name);
    program_op_subject(p, op, iteration, subject, sizeof subject);
    waits_for(run, thread->rank, op, iteration, what, sizeof what);
    if (op->kind == OP_AWAIT || op->kind == OP_TICKET)
        snprintf(out, bytes, "; %s: %s waits for %s", name, subject, what);
    else
        snprintf(out, bytes, "; %s is at %s", name, subject);
}

void waits_of_others(const struct run_thread *self, char *out, size_t bytes)
{
    struct run *run = self->run;
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
