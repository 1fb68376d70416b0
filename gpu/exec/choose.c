/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choose.c - the policy of the program: which of the tasks that are ready begins next.
 *
 * A worker without a chooser takes the oldest instance of its queue as soon as it is idle. With one it waits until that
 * instance is chosen: the oldest ones of all idle workers of the rank are offered, without those whose turn has not come. So
 * a run with a policy is a run of the machine in which workers take later than they could. Every change that may add
 * an offer asks anew (`asks`); the answer comes on the thread of a worker that waits, without the lock, one at a time
 * for a rank.
 */
#include "run.h"

#include <assert.h>
#include <string.h>

static bool choose_has_turn(const struct run *run, const struct run_thread *worker)
{
    const struct program *p = run->program;
    const struct instance *first = &worker->queue[worker->queue_first];
    const bool ordered = p->ticket_position[worker->rank * p->tasks + first->task] >= 0;
    return !ordered || program_fires_by_turn(p) || run->ranks[worker->rank].served == first->ticket;
}

static bool is_offered(const struct run *run, const struct run_thread *worker, int rank)
{
    return worker->rank == rank && worker->queue_count > 0 && worker->idle &&
           choose_has_turn(run, worker);
}

/* The older iteration first, of one iteration in the order of the plan. */
static bool choose_comes_before(const struct run_offer *a, const struct run_offer *b)
{
    return a->iteration != b->iteration ? a->iteration < b->iteration : a->task < b->task;
}

/* With the lock held. */
static int list_offers(const struct run *run, int rank, struct run_offer *out)
{
    int count = 0;
    for (int t = 0; t < run->program->thread_count; t++) {
        const struct run_thread *worker = &run->threads[t];
        if (!is_offered(run, worker, rank))
            continue;
        const struct instance *first = &worker->queue[worker->queue_first];
        const struct run_offer offer = {first->task, t, first->iteration};
        int place = count++;
        for (; place > 0 && choose_comes_before(&offer, &out[place - 1]); place--)
            out[place] = out[place - 1];
        out[place] = offer;
    }
    return count;
}

void choose_changed(struct run *run, int rank)
{
    struct rank_choice *choice = &run->ranks[rank].choice;
    if (!run->config.chooser)
        return;
    choice->asks = true;
    for (int t = 0; t < run->program->thread_count; t++)
        if (is_offered(run, &run->threads[t], rank) && run->threads[t].awaits) {
            run_wake(run, run->threads[t].queue);
            return;
        }
}

/* Something else will ask again: a task under way that ends, or the oldest iteration, which is all submitted. */
static bool choose_may_wait(struct run *run, int rank)
{
    const int64_t oldest = policy_oldest(run->policy, rank);
    return run->ranks[rank].choice.running > 0 ||
           run_iteration(run, rank, oldest)->submit_left == 0;
}

/* Without the lock; always false. */
static bool choose_refuse(struct run *run, int rank, int answer, const struct run_choice *choice)
{
    if (answer == RUN_WAITS)
        run_fail(run, STATUS_VIOLATED,
                 "rank %d: the policy chose none of %d ready tasks, and nothing else is under way",
                 rank, choice->count);
    else
        run_fail(run, STATUS_VIOLATED, "rank %d: the policy chose number %d of %d ready tasks",
                 rank, answer, choice->count);
    return false;
}

/* Ask, and keep the answer. Entered and left with the lock held; false when the run has failed. */
static bool choose_ask(struct run_thread *self)
{
    struct run *run = self->run;
    const struct run_chooser *chooser = run->config.chooser;
    struct rank_choice *state = &run->ranks[self->rank].choice;
    const int64_t oldest = policy_oldest(run->policy, self->rank);
    struct run_choice choice = {.offers = state->offers,
                                .count = list_offers(run, self->rank, state->offers),
                                .running = state->running,
                                .in_flight =
                                    (int)(policy_admitted(run->policy, self->rank) - oldest),
                                .oldest = oldest,
                                .may_wait = choose_may_wait(run, self->rank)};
    assert(!state->asking && state->chosen == 0);
    state->asks = false;
    if (choice.count == 0)
        return true;
    state->asking = true;
    run_unlock(run);
    const int answer = chooser->choose(chooser->arg, self->rank, &choice);
    const bool good = (answer >= 0 && answer < choice.count) ||
                      (answer == RUN_WAITS && choice.may_wait) || run_stopped(run) ||
                      choose_refuse(run, self->rank, answer, &choice);
    pthread_mutex_lock(&run->lock);
    assert(state->asking && state->chosen == 0); /* nobody else has asked meanwhile */
    state->asking = false;
    if (!good || answer == RUN_WAITS)
        return good;
    state->chosen = state->offers[answer].thread + 1;
    run_wake(run, run->threads[state->chosen - 1].queue);
    return true;
}

bool choose_wait(struct run_thread *self)
{
    struct run *run = self->run;
    struct run_rank *rank = &run->ranks[self->rank];
    struct rank_choice *choice = &rank->choice;
    bool goes_on = true;
    if (self->queue_count > 0 && !run_is_on_caller(run))
        choice->asks = true;
    while (goes_on && !run_stopped(run) && choice->chosen != self->index + 1 &&
           (self->queue_count > 0 || !rank->driver_done)) {
        if (choice->asks && !choice->asking && choice->chosen == 0 && self->queue_count > 0)
            goes_on = choose_ask(self);
        else if (run_is_on_caller(run))
            return false;
        else
            run_block(self, self->queue);
    }
    if (!goes_on || run_stopped(run) || choice->chosen != self->index + 1)
        return false;
    assert(self->queue_count > 0 && self->idle && choice->running >= 0);
    choice->chosen = 0;
    choice->running++;
    self->idle = false;
    choose_changed(run, self->rank);
    return true;
}

void choose_submitted(struct run_thread *self)
{
    if (!self->run->config.chooser)
        return;
    assert(!self->idle && self->run->ranks[self->rank].choice.running > 0);
    self->idle = true;
    self->run->ranks[self->rank].choice.running--;
    choose_changed(self->run, self->rank);
}
