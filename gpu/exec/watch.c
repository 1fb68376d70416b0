/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.c - the calling thread of a run looks around every WATCH_TICK_MS until it is over.
 *
 * A run hangs when neither a thread executed an operation nor the device finished one for the time
 * limit. The limit is prolonged by the longest single operation of the plan, which is silent while it
 * runs. With ranks in other processes each has a watchdog of its own: progress is that of all of them,
 * and one that dies ends the run. Everything that waits, waits without a limit of its own; stopping the run wakes all of it.
 */
#include "run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/integers.h"
#include "base/units.h"

enum { WATCH_TICK_MS = 20 };
#define DRAIN_NS  INT64_C(1000000000)
#define SETTLE_NS INT64_C(100000000)
#define SILENT_NS INT64_C(250000000)

struct watch_watch {
    struct run *run;
    struct diag *diag;
    int64_t limit_ns;
    int64_t progress, progress_ns; /* how much there was, and since when it is no more */
    int64_t peer_died_ns;          /* since when another process is known to be gone; 0: none is */
    bool drained;                  /* it is agreed where to end */
    int64_t abort_ns;              /* a drain ends here; DEVICE_FOREVER: no drain */
};

static int64_t longest_operation(const struct run *run)
{
    int64_t longest_ns = 0;
    for (size_t i = 0; i < run->program->op_count && run_is_timed(run); i++)
        if (run->program->ops[i].time_ns > longest_ns)
            longest_ns = run->program->ops[i].time_ns;
    return longest_ns;
}

/* ---- what may have happened ------------------------------------------------------------------ */

static bool has_failed(struct watch_watch *watch)
{
    struct run *run = watch->run;
    struct diag diag;
    if (run_stopped(run))
        return true;
    diag_init(&diag);
    bool failed = !run_check(run, device_world_status(run->world, &diag), &diag);
    if (!failed && run->journal)
        failed = !run_check(run, journal_status(run->journal, &diag), &diag);
    diag_fini(&diag);
    return failed;
}

static bool watch_is_interrupted(struct watch_watch *watch)
{
    struct run *run = watch->run;
    int wish = run->config.stop ? atomic_load(run->config.stop) : RUNTIME_GO;
    if (wish == RUNTIME_DRAIN && watch->abort_ns == DEVICE_FOREVER) {
        watch->abort_ns = run_now(run) + DRAIN_NS;
        watch->drained = !run->policy;
    }
    if (wish == RUNTIME_DRAIN && !watch->drained)
        watch->drained = drive_drain(run);
    if (wish != RUNTIME_ABORT && run_now(run) < watch->abort_ns)
        return false;
    run_stop(run, "interrupted");
    return true;
}

/* Waiting for a rank that makes progress is no hang; so the progress of all ranks counts. */
static int64_t progress_of_all(const struct run *run, int64_t own)
{
    struct board *board = rendezvous_board(run->config.rendezvous);
    int me = rendezvous_rank(run->config.rendezvous),
        size = rendezvous_size(run->config.rendezvous);
    int64_t sum = 0;
    atomic_store(&board->members[me].progress, own);
    atomic_store(&board->members[me].beat_ns, board->base_ns + run_now(run));
    for (int rank = 0; rank < size; rank++)
        sum += atomic_load(&board->members[rank].progress);
    return sum;
}

static bool makes_progress(struct watch_watch *watch)
{
    struct run *run = watch->run;
    int64_t progress = run->journal ? journal_finished(run->journal) : 0;
    for (int t = 0; t < run->program->thread_count; t++)
        progress += atomic_load(&run->threads[t].steps);
    if (run->config.rendezvous)
        progress = progress_of_all(run, progress);
    if (progress == watch->progress)
        return run_now(run) - watch->progress_ns < watch->limit_ns;
    watch->progress = progress;
    watch->progress_ns = run_now(run);
    return true;
}

/* A process without a live watchdog is stopped, or starves. */
static void report_silent(struct watch_watch *watch)
{
    struct rendezvous *rendezvous = watch->run->config.rendezvous;
    char time[UNITS_TEXT];
    for (int rank = 0; rendezvous && rank < rendezvous_size(rendezvous); rank++) {
        const struct board *board = rendezvous_board(rendezvous);
        int64_t beat_ns = atomic_load(&board->members[rank].beat_ns);
        int64_t silent_ns = board->base_ns + run_now(watch->run) - beat_ns;
        if (beat_ns == 0 || silent_ns < SILENT_NS)
            continue;
        units_show_time((double)silent_ns, time);
        diag_note(watch->diag, "rank %d: its process has not been heard of for %s", rank, time);
    }
}

/* The watchdog of another process found no progress on any rank and aborted. */
static bool hangs_with_others(struct watch_watch *watch)
{
    struct run *run = watch->run;
    if (!run->config.rendezvous || !atomic_load(&rendezvous_board(run->config.rendezvous)->hung) ||
        device_world_status(run->world, NULL) == STATUS_OK)
        return false;
    device_world_explain(run->world, watch->diag);
    run_stop(run, "the run hangs");
    return true;
}

static bool a_peer_is_gone(const struct run *run)
{
    return run->config.rendezvous && rendezvous_gone(run->config.rendezvous) >= 0;
}

/* Another process died, or could not go on: what was waited for is said, then it is over. Work that did not need the dead one
   goes on for a moment, until it does. */
static bool peer_is_lost(struct watch_watch *watch)
{
    struct run *run = watch->run;
    const char *how;
    int gone = run->config.rendezvous ? rendezvous_lost(run->config.rendezvous, &how) : -1;
    char why[40] = "the launcher of the ranks has ended";
    if (gone < 0)
        return false;
    if (watch->peer_died_ns == 0)
        watch->peer_died_ns = run_now(run);
    if (run_now(run) - watch->peer_died_ns < SETTLE_NS &&
        device_world_status(run->world, NULL) == STATUS_OK)
        return false;
    if (gone < run->program->ranks)
        snprintf(why, sizeof why, "rank %d %s", gone, how);
    run_stop(run, why);
    diag_error(watch->diag, STATUS_VIOLATED, "%s", why);
    device_world_explain(run->world, watch->diag);
    return true;
}

/* Look around; true when the run is over before its time, *end says how. The cause comes before its effects: a process that
   died is the cause of failures here, but one that left after a failure told why, or left because of a failure here. */
static bool watch_own_look(struct watch_watch *watch, enum watch_end *end)
{
    if (a_peer_is_gone(watch->run) && peer_is_lost(watch)) {
        *end = WATCH_BEREFT;
        return true;
    }
    if (hangs_with_others(watch)) {
        *end = WATCH_HUNG;
        return true;
    }
    if (has_failed(watch)) {
        *end = WATCH_FAILED;
        return true;
    }
    if (peer_is_lost(watch)) {
        *end = WATCH_BEREFT;
        return true;
    }
    if (watch_is_interrupted(watch)) {
        *end = WATCH_INTERRUPTED;
        return true;
    }
    if (makes_progress(watch))
        return false;
    char time[UNITS_TEXT];
    units_show_time((double)(run_now(watch->run) - watch->progress_ns), time);
    diag_error(watch->diag, STATUS_VIOLATED, "the run hangs: no progress for %s", time);
    if (watch->run->config.rendezvous)
        atomic_store(&rendezvous_board(watch->run->config.rendezvous)->hung, true);
    report_silent(watch);
    device_world_explain(watch->run->world, watch->diag);
    run_stop(watch->run, "the run hangs");
    *end = WATCH_HUNG;
    return true;
}

/* ---- until the end --------------------------------------------------------------------------- */

/* A tick, or the end of the last thread. Returns whether threads are left. */
static bool await_threads(struct run *run)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += WATCH_TICK_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&run->lock);
    int error = 0;
    while (run->alive > 0 && !run_stopped(run) && !error)
        error = pthread_cond_timedwait(&run->watch, &run->lock, &until);
    bool left = run->alive > 0;
    run_unlock(run);
    return left;
}

/* A tick, or the time when the device has nothing left to do. Returns whether it has. A failure is
   found by the next look. */
static bool await_device(struct run *run)
{
    int64_t deadline_ns = run_now(run) + WATCH_TICK_MS * INT64_C(1000000);
    for (int rank = run_first_rank(run); rank < run_last_rank(run); rank++)
        if (device_sync(run->ranks[rank].device, deadline_ns, NULL))
            return true;
    return false;
}

enum watch_end watch_run(struct run *run, struct diag *diag)
{
    struct watch_watch watch = {.run = run,
                                .diag = diag,
                                .limit_ns =
                                    integers_sum(run->config.timeout_ns, longest_operation(run)),
                                .progress_ns = run_now(run),
                                .abort_ns = DEVICE_FOREVER};
    enum watch_end end = WATCH_FINISHED;
    while (await_threads(run))
        if (watch_own_look(&watch, &end))
            goto over;
    while (await_device(run))
        if (watch_own_look(&watch, &end))
            goto over;
    drive_done(run);
    if (has_failed(&watch))
        end = WATCH_FAILED;
    else if (watch.abort_ns != DEVICE_FOREVER)
        end = WATCH_INTERRUPTED;
over:
    if (end == WATCH_FAILED)
        diag_error(diag, run->failure, "%s", run->failure_text);
    return end;
}

/* ---- who waits for whom, in words ------------------------------------------------------------ */

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
static void watch_add_place(struct run *run, const struct run_thread *thread, int64_t at, char *out,
                            size_t bytes)
{
    const struct program *p = run->program;
    const struct op *op = &p->ops[at >> 32];
    int64_t iteration = at & INT32_MAX;
    char name[160], subject[160], what[320];
    program_agent_name(p, program_thread_agent(p, thread->index), name, sizeof name);
    program_op_subject(p, op, iteration, subject, sizeof subject);
    waits_for(run, thread->rank, op, iteration, what, sizeof what);
    if (op->kind == OP_AWAIT || op->kind == OP_ACQUIRE || op->kind == OP_TICKET)
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
        watch_add_place(run, thread, at, out + used, bytes - used);
        used += strlen(out + used);
    }
}
