/* SPDX-License-Identifier: Apache-2.0 */
/* policy.c - see policy.h, swpipe_policy.h. */
#include "policy.h"

#include <stdlib.h>

#include "engine.h"
#include "swpipe_impl.h"

enum status policy_take(struct swpipe *pipe, const struct swpipe_policy *given)
{
    pipe->policy = *given;
    if (!given->choose)
        return STATUS_OK;
    if (pipe->driver != DRIVER_DATAFLOW)
        return diag_error(
            &pipe->diag, STATUS_USAGE,
            "a policy needs the data-flow driver: the clock driver's order is the plan's");
    if (pipe->plan.groups.count < 2)
        return diag_error(&pipe->diag, STATUS_INPUT,
                          "%s: a policy chooses among thread groups, and this plan has one",
                          pipe->plan.file);
    return STATUS_OK;
}

static int choose(void *arg, int rank, const struct run_choice *choice)
{
    struct policy_words *words = arg;
    const struct engine *engine = words->engine;
    const struct program *p = engine->program;
    struct swpipe_ready *ready = words->ready + rank * p->thread_count;
    for (int i = 0; i < choice->count; i++) {
        const struct run_offer *offer = &choice->offers[i];
        const struct task *task = plan_task(p->plan, rank, offer->task);
        ready[i] = (struct swpipe_ready){.task = task->name,
                                         .stream = p->plan->streams.items[task->stream],
                                         .thread_group = p->threads[offer->thread].name,
                                         .iteration = offer->iteration};
    }
    const struct swpipe_choice asked = {.rank = rank,
                                        .ready = ready,
                                        .ready_count = choice->count,
                                        .running = choice->running,
                                        .in_flight = choice->in_flight,
                                        .max_in_flight = p->depth,
                                        .oldest = choice->oldest,
                                        .may_wait = choice->may_wait};
    return engine->pipe->policy.choose(engine->pipe->policy.arg, &asked);
}

enum status policy_words_open(struct policy_words *words, struct engine *engine,
                              const struct run_chooser **out, struct diag *diag)
{
    const struct program *p = engine->program;
    *words = (struct policy_words){.chooser = {choose, words}, .engine = engine};
    *out = NULL;
    if (!engine->pipe->policy.choose)
        return STATUS_OK;
    words->ready = calloc((size_t)p->ranks * (size_t)p->thread_count, sizeof *words->ready);
    *out = &words->chooser;
    return words->ready ? STATUS_OK : diag_no_memory(diag);
}

void policy_words_fini(struct policy_words *words)
{
    free(words->ready);
}
