/* SPDX-License-Identifier: Apache-2.0 */
/* group_run.c - see group.h: one run on all ranks of a group, its end and its failures. */
#include "group.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "gpu/device/device_impl.h"
#include "gpu/net/mail.h"
#include "base/quiet_thread.h"
#include "base/system_words.h"

enum { WATCH_NS = 20000000, SPIN_NS = 50000, NAP_NS = 50000 };
#define EPOCH     (INT64_C(1) << 40)
#define SETTLE_NS INT64_C(100000000) /* until the reason of an end has come */

/* ---- the end of the data --------------------------------------------------------------------- */

static _Atomic int64_t *count_of(const struct swpipe_group *group, int rank)
{
    return &rendezvous_board(group->rendezvous)->members[rank].wanted;
}

void group_new_world(struct swpipe_group *group)
{
    group->base = ++group->worlds * EPOCH;
}

enum status group_begin_run(struct swpipe_group *group, struct diag *diag)
{
    return rendezvous_barrier(group->rendezvous, group_deadline(group), diag);
}

void group_end_run(struct swpipe_group *group, int64_t most)
{
    group->base += most + 1;
}

enum word { SILENT, HAS_ONE, HAS_ENDED };

/* A rank's word on a batch of this run. */
static enum word word_of(const struct swpipe_group *group, int rank, int64_t number)
{
    int64_t said = atomic_load(count_of(group, rank)), batches = said / 2 - group->base;
    if (batches > number)
        return HAS_ONE;
    return said % 2 && batches >= 0 ? HAS_ENDED : SILENT;
}

/* Spin first: the ranks come to an iteration at about the same time. They may wait for steps of this thread's workers. */
static bool await_word(struct swpipe_group *group, struct run *run, int rank, int64_t number,
                       enum word *word)
{
    int64_t since_ns = device_clock_ns();
    while ((*word = word_of(group, rank, number)) == SILENT && !run_stopped(run))
        if (!pump_all(run) && device_clock_ns() - since_ns > SPIN_NS)
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    return *word != SILENT;
}

void group_say(struct swpipe_group *group, int64_t batches, bool ended)
{
    atomic_store(count_of(group, group->rank), 2 * (group->base + batches) + ended);
}

bool group_hear(struct swpipe_group *group, struct run *run, int64_t number, bool *all)
{
    *all = true;
    for (int rank = 0; rank < group->size; rank++) {
        enum word word;
        if (!await_word(group, run, rank, number, &word))
            return false;
        *all = *all && word == HAS_ONE;
    }
    return true;
}

int64_t group_most(const struct swpipe_group *group)
{
    int64_t most = 0;
    for (int rank = 0; rank < group->size; rank++) {
        int64_t said = atomic_load(count_of(group, rank)),
                words = said / 2 - group->base + said % 2;
        most = words > most ? words : most;
    }
    return most;
}

/* ---- failures elsewhere ---------------------------------------------------------------------- */

/* The ranks that have ended; the broker is rank 0's. */
static void say_end(struct group_watch *watch, int rank, const char *how)
{
    run_fail(watch->run, STATUS_VIOLATED, "rank %d %s", rank < watch->group->size ? rank : 0, how);
}

/* The device first: a rank that fails says why before it goes. */
static void look(struct group_watch *watch, int64_t *ended_ns)
{
    struct run *run = watch->run;
    struct diag diag;
    int gone = rendezvous_gone(watch->group->rendezvous),
        left = rendezvous_left(watch->group->rendezvous);
    diag_init(&diag);
    enum status status = device_world_status(run->world, &diag);
    if (status)
        (void)run_check(run, status, &diag);
    diag_fini(&diag);
    if (status || (gone < 0 && left < 0))
        return;
    if (*ended_ns == 0)
        *ended_ns = device_clock_ns();
    if (device_clock_ns() - *ended_ns < SETTLE_NS)
        return;
    say_end(watch, gone >= 0 ? gone : left, gone >= 0 ? "is gone" : "has left the group");
}

static void *watch_main(void *arg)
{
    struct group_watch *watch = arg;
    int64_t ended_ns = 0;
    pthread_mutex_lock(&watch->lock);
    while (!watch->ending && !run_stopped(watch->run)) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += WATCH_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&watch->changed, &watch->lock, &until);
        if (watch->ending)
            break;
        pthread_mutex_unlock(&watch->lock);
        look(watch, &ended_ns);
        pthread_mutex_lock(&watch->lock);
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

enum status watch_open(struct group_watch *watch, struct swpipe_group *group, struct run *run,
                       struct diag *diag)
{
    *watch = (struct group_watch){.group = group, .run = run};
    int failed = pthread_mutex_init(&watch->lock, NULL);
    if (!failed && (failed = mail_init_condition(&watch->changed)) != 0)
        pthread_mutex_destroy(&watch->lock);
    if (!failed && (failed = quiet_thread_start(&watch->thread, watch_main, watch)) != 0) {
        pthread_cond_destroy(&watch->changed);
        pthread_mutex_destroy(&watch->lock);
    }
    watch->started = !failed;
    return failed
               ? diag_error(diag, STATUS_SYSTEM, "cannot start a thread: %s", system_words(failed))
               : STATUS_OK;
}

void watch_close(struct group_watch *watch)
{
    if (!watch->started)
        return;
    pthread_mutex_lock(&watch->lock);
    watch->ending = true;
    pthread_cond_signal(&watch->changed);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    pthread_cond_destroy(&watch->changed);
    pthread_mutex_destroy(&watch->lock);
    watch->started = false;
}
