/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_wait.c - how threads of the host device wait, and are woken: one condition a thread that waits for a count.
 *
 * Who has to be woken is noted while the lock is held, and signalled when it is given back. So a condition may be signalled
 * after its thread has gone on: a waiter is never freed before the world closes, and a wait that ends early looks again.
 */
#include "host.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "base/system_words.h"

enum {
    SPIN_NS = 5000, /* about the cost of a sleep and a wake of a busy core */
    LOOK_NS = 1000000
};

/* ---- rings --------------------------------------------------------------------------------------- */

/* Those to be signalled as soon as the lock is free; a few at a time. */
static int take_rings(struct host_world *world, pthread_cond_t **out, int most)
{
    int count = 0;
    for (; count < most && world->calls; world->calls = world->calls->next_call)
        out[count++] = &world->calls->work;
    for (; count < most && world->rings; world->rings = world->rings->next) {
        assert(world->rings->rung);
        out[count++] = world->rings->condition;
        world->rings->rung = false;
    }
    return count;
}

void world_ring(struct host_world *world, struct host_ring *ring)
{
    if (ring->rung)
        return;
    ring->rung = true;
    ring->next = world->rings;
    world->rings = ring;
}

void world_settle(struct host_world *world)
{
    while (atomic_load(&world->waking) > 0)
        sched_yield();
}

void world_unlock_and_wake(struct host_world *world)
{
    enum { MOST = 16 };
    pthread_cond_t *conditions[MOST];
    int count = take_rings(world, conditions, MOST);
    bool more = world->rings || world->calls;
    if (count > 0)
        atomic_fetch_add(&world->waking, 1);
    pthread_mutex_unlock(&world->lock);
    for (int i = 0; i < count; i++)
        pthread_cond_broadcast(conditions[i]);
    if (count > 0)
        atomic_fetch_sub(&world->waking, 1);
    if (more) {
        pthread_mutex_lock(&world->lock);
        world_unlock(world);
    }
}

/* Before a thread sleeps it wakes others, and then looks again. */
static bool has_rung(struct host_world *world)
{
    if (!world->rings && !world->calls)
        return false;
    world_unlock(world);
    pthread_mutex_lock(&world->lock);
    return true;
}

/* Until it is signalled, or the deadline if there is one; then it returns ETIMEDOUT. */
static int sleep_on(struct host_world *world, pthread_cond_t *condition,
                    const struct timespec *until)
{
    assert(!world->rings && !world->calls); /* they would wait for this thread */
    cores_sleep();
    int result = until ? pthread_cond_timedwait(condition, &world->lock, until)
                       : pthread_cond_wait(condition, &world->lock);
    cores_wake();
    return result;
}

void world_wait(struct host_world *world, pthread_cond_t *condition)
{
    if (!has_rung(world))
        sleep_on(world, condition, NULL);
}

/* Until it is signalled; false: the deadline is over. */
static bool host_sleep_until(struct host_world *world, pthread_cond_t *condition,
                             int64_t deadline_ns)
{
    int64_t until_ns, apart_ns = device_clock_ns() - device_now(&world->base);
    if (__builtin_add_overflow(apart_ns, deadline_ns, &until_ns)) {
        sleep_on(world, condition, NULL);
        return true;
    }
    if (until_ns < 0)
        until_ns = 0;
    struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
    return sleep_on(world, condition, &until) != ETIMEDOUT;
}

void world_spin(struct host_world *world, struct spin *spin, const atomic_uint *word, unsigned seen)
{
    bool free = cores_are_free();
    if ((!free && (world->spins || !cores_are_several())) || !spin_is_due(spin))
        return;
    assert(free || !world->spins);
    world->spins |= !free;
    world_unlock(world);
    bool found = spin_on(word, seen, free ? 0 : SPIN_NS);
    pthread_mutex_lock(&world->lock);
    if (!free)
        world->spins = false;
    spin_ended(spin, found);
}

enum status world_init_condition(struct host_world *world, pthread_cond_t *condition,
                                 struct diag *diag)
{
    int failed = pthread_cond_init(condition, &world->clock);
    if (failed)
        return diag_error(diag, STATUS_SYSTEM, "cannot make a condition: %s", system_words(failed));
    return STATUS_OK;
}

/* ---- waiters ------------------------------------------------------------------------------------ */

/* NULL: no memory. */
static struct host_waiter *take_waiter(struct host_world *world)
{
    struct host_waiter *waiter = world->spare;
    if (waiter) {
        world->spare = waiter->next;
        return waiter;
    }
    waiter = calloc(1, sizeof *waiter);
    if (!waiter || pthread_cond_init(&waiter->condition, &world->clock) != 0) {
        free(waiter);
        return NULL;
    }
    waiter->ring.condition = &waiter->condition;
    return waiter;
}

void world_free_waiters(struct host_world *world)
{
    world_settle(world);
    while (world->spare) {
        struct host_waiter *waiter = world->spare;
        world->spare = waiter->next;
        pthread_cond_destroy(&waiter->condition);
        free(waiter);
    }
}

/* Counts mostly come in order, so its place is looked for from the end. */
static void enlist(struct host_waiters *list, struct host_waiter *waiter, uint64_t count)
{
    struct host_waiter *before = list->last;
    while (before && before->count > count)
        before = before->before;
    waiter->list = list;
    waiter->count = count;
    waiter->before = before;
    waiter->next = before ? before->next : list->first;
    *(before ? &before->next : &list->first) = waiter;
    *(waiter->next ? &waiter->next->before : &list->last) = waiter;
}

static void delist(struct host_waiter *waiter)
{
    struct host_waiters *list = waiter->list;
    assert(list && list->first && list->last);
    *(waiter->before ? &waiter->before->next : &list->first) = waiter->next;
    *(waiter->next ? &waiter->next->before : &list->last) = waiter->before;
    waiter->list = NULL;
}

bool world_await(struct host_world *world, struct host_waiters *list, uint64_t count,
                 int64_t deadline_ns, struct host_waiter **me)
{
    if (has_rung(world))
        return true;
    struct host_waiter *waiter = take_waiter(world);
    if (!waiter) { /* without memory the thread looks again and again */
        pthread_mutex_unlock(&world->lock);
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
        pthread_mutex_lock(&world->lock);
        return true;
    }
    enlist(list, waiter, count);
    if (me)
        *me = waiter;
    bool in_time = host_sleep_until(world, &waiter->condition, deadline_ns);
    if (me)
        *me = NULL;
    if (waiter->list)
        delist(waiter);
    waiter->next = world->spare;
    world->spare = waiter;
    return in_time;
}

static void call_first(struct host_world *world, struct host_waiters *list)
{
    struct host_waiter *first = list->first;
    delist(first);
    world_ring(world, &first->ring);
}

void world_reach(struct host_world *world, struct host_waiters *list, uint64_t reached)
{
    while (list->first && list->first->count <= reached)
        call_first(world, list);
}

void world_offer(struct host_world *world, struct host_waiters *list, uint64_t amount)
{
    while (list->first && list->first->count <= amount) {
        amount -= list->first->count;
        call_first(world, list);
    }
}
