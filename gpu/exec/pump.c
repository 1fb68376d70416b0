/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pump.c - the calling thread takes the workers' steps (RUN_ON_CALLER).
 *
 * The workers of the plan are there as ever, each with its queue and its order, but without threads: the thread that
 * drives the run takes their steps, one worker after the other, each as far as it can go on. One whose next operation
 * cannot take effect is left there (worker_go_on), for a flag, a turn, a lock, room in a launch queue or the end of device
 * work. So the steps are those of a run with threads in one of its interleavings: a step is taken only when the machine
 * allows it, and none is held back by one that it does not allow. The log, and what is said of it, is that of any run.
 *
 *     caller   fill ---------------- progress ------------------- ...
 *              enqueue, pump         retire: pump until it is over; enqueue, pump
 *
 * Where the caller waits, it pumps: for an iteration on the host side, for an event of the device, for other ranks. Only
 * when no worker can go on it sleeps: on the one thing of the device that is waited for, or, if there are several, on one
 * of them for SLICE_NS at a time. If nothing of the device is waited for either, no step will ever follow, and the run
 * fails at once.
 *
 * Nothing of this needs the run's lock but what else is under it: there is no other thread.
 */
#include "run.h"

#include <assert.h>
#include <stdlib.h>

#define SLICE_NS INT64_C(50000)

/* The workers of a rank stand behind its driver. */
static int first_worker(const struct program *p, int rank)
{
    return p->driver_thread[rank] + 1;
}
static bool is_worker_of(const struct program *p, int thread, int rank)
{
    return thread < p->thread_count && p->threads[thread].rank == rank &&
           p->threads[thread].kind == THREAD_WORKER;
}

/* All workers here: for (w = worker_after(run, NULL); w; w = worker_after(run, w)) */
static struct run_thread *worker_after(const struct run *run, const struct run_thread *worker)
{
    const struct program *p = run->program;
    const ptrdiff_t next =
        worker ? worker - run->threads + 1 : 0; /* a run that did not open has no index */
    for (ptrdiff_t t = next; t < p->thread_count; t++)
        if (p->threads[t].kind == THREAD_WORKER && run_has(run, p->threads[t].rank))
            return &run->threads[t];
    return NULL;
}

/* ---- open and close -------------------------------------------------------------------------- */

static bool host_waits(const struct program *p)
{
    for (size_t i = 0; i < p->op_count; i++)
        if (p->ops[i].kind == OP_SYNC && !op_may_sync(&p->ops[i]))
            return true;
    return false;
}

static int stream_count(const struct run *run, const struct run_thread *worker)
{
    return run->program->rank_first[worker->rank + 1] - run->program->rank_first[worker->rank];
}

static enum status open_marks(struct run *run, struct run_thread *worker, struct diag *diag)
{
    int count = stream_count(run, worker);
    enum status status = STATUS_OK;
    assert(!worker->pumped.marks && count > 0);
    worker->pumped.marks = calloc((size_t)count, sizeof(struct device_event *));
    if (!worker->pumped.marks)
        return diag_no_memory(diag);
    for (int i = 0; i < count && !status; i++)
        status = device_event_open(run->ranks[worker->rank].device, &worker->pumped.marks[i], diag);
    return status;
}

enum status pump_open(struct run *run, struct diag *diag)
{
    enum status status = STATUS_OK;
    if (!run_is_on_caller(run) || !host_waits(run->program))
        return STATUS_OK;
    for (struct run_thread *w = worker_after(run, NULL); w && !status; w = worker_after(run, w))
        status = open_marks(run, w, diag);
    return status;
}

void pump_close(struct run *run)
{
    for (int t = 0; run->threads && t < run->program->thread_count; t++) {
        struct device_event **marks = run->threads[t].pumped.marks;
        for (int i = 0; marks && i < stream_count(run, &run->threads[t]); i++)
            if (marks[i])
                device_event_close(marks[i]);
        free(marks);
    }
}

/* ---- hooks of workers ------------------------------------------------------------------------ */

void pump_begin(struct run *run)
{
    const struct run_functions *functions = run->config.functions;
    for (struct run_thread *w = worker_after(run, NULL); w; w = worker_after(run, w)) {
        assert(!w->started && !w->pumped.begun && !w->pumped.in_instance);
        w->loops = true;
        w->pumped.begun = functions->begin_thread(functions->arg, w);
        if (!w->pumped.begun)
            return;
    }
}

void pump_end(struct run *run)
{
    const struct run_functions *functions = run->config.functions;
    for (struct run_thread *w = worker_after(run, NULL); w; w = worker_after(run, w)) {
        if (w->pumped.begun)
            functions->end_thread(functions->arg, w);
        w->pumped.begun = false;
    }
}

/* ---- steps ----------------------------------------------------------------------------------- */

static bool has_work(const struct run_thread *worker)
{
    return worker->pumped.in_instance || worker->has_taken || worker->queue_count > 0;
}

static bool rank_has_work(const struct run *run, int rank)
{
    for (int t = first_worker(run->program, rank); is_worker_of(run->program, t, rank); t++)
        if (has_work(&run->threads[t]))
            return true;
    return false;
}

/* One turn of the rank's workers. A worker before in the turn may have been chosen by one behind it. */
static bool pump_take_turns(struct run *run, int rank)
{
    bool moved = false;
    for (int t = first_worker(run->program, rank); is_worker_of(run->program, t, rank); t++)
        if (has_work(&run->threads[t]) && worker_go_on(&run->threads[t]))
            moved = true;
    return moved || run->ranks[rank].choice.chosen;
}

bool pump_rank(struct run *run, int rank)
{
    if (!run_is_on_caller(run) || !rank_has_work(run, rank))
        return false;
    int64_t begin_ns = run_now(run);
    bool moved = false;
    while (!run_stopped(run) && pump_take_turns(run, rank))
        moved = true;
    if (moved) {
        assert(run_now(run) >= begin_ns);
        run->pumped_ns += run_now(run) - begin_ns;
        run->idle_since_ns = 0;
    }
    return moved;
}

bool pump_all(struct run *run)
{
    bool moved = false;
    for (int rank = run_first_rank(run); rank < run_last_rank(run); rank++)
        moved = pump_rank(run, rank) || moved;
    return moved;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* The workers that cannot go on. */
struct held {
    int by_device, by_choice;
    struct device_event *event;  /* that one of them is to wait for */
    struct run_thread *by_other; /* one that waits for another worker */
};

static struct held find_held(const struct run *run)
{
    struct held held = {0};
    for (struct run_thread *w = worker_after(run, NULL); w; w = worker_after(run, w)) {
        if (!w->pumped.in_instance)
            held.by_choice += has_work(w);
        else if (!w->pumped.on)
            held.by_other = w;
        else if (held.by_device++ == 0)
            held.event = w->pumped.on;
    }
    return held;
}

/* Always false. */
static bool refuse_to_wait(struct run_thread *driver, const struct held *held)
{
    struct run *run = driver->run;
    char places[sizeof run->failure_text];
    waits_of_others(driver, places, sizeof places);
    run_fail(run, STATUS_LIMIT,
             "rank %d waits for ever: no task can go on, and none waits for the device%s%s",
             driver->rank, places, held->by_choice ? "; the policy lets ready tasks wait" : "");
    return false;
}

/* No worker can go on. */
static bool pump_wait_for_device(struct run_thread *driver, const struct held *held,
                                 int64_t deadline_ns)
{
    struct run *run = driver->run;
    assert(held->by_device > 0 && held->event);
    int64_t now_ns = run_now(run), until_ns = run_real_deadline(run, deadline_ns);
    int64_t patience_ns = DEVICE_FOREVER;
    if (run->idle_since_ns == 0)
        run->idle_since_ns = now_ns;
    if (held->by_other && run->config.wait_ns)
        patience_ns = device_deadline(run->idle_since_ns, run->config.wait_ns);
    if (now_ns >= patience_ns)
        return worker_is_late(held->by_other);
    if (now_ns >= until_ns)
        return false;
    if (held->by_device > 1 && until_ns > now_ns + SLICE_NS)
        until_ns = now_ns + SLICE_NS;
    if (until_ns > patience_ns)
        until_ns = patience_ns;
    struct diag diag;
    diag_init(&diag);
    enum status status = device_event_sync(held->event, until_ns, &diag);
    bool goes_on = status == STATUS_LIMIT || run_check(run, status, &diag);
    diag_fini(&diag);
    return goes_on;
}

bool pump_or_wait(struct run_thread *driver, int64_t deadline_ns)
{
    if (pump_all(driver->run))
        return true;
    struct held held = find_held(driver->run);
    if (held.by_device)
        return pump_wait_for_device(driver, &held, deadline_ns);
    return !driver->yields && refuse_to_wait(driver, &held);
}

bool pump_is_held(const struct run *run)
{
    return run_is_on_caller(run) && find_held(run).by_device == 0;
}

static bool any_has_work(const struct run *run)
{
    bool any = false;
    for (int rank = run_first_rank(run); rank < run_last_rank(run) && !any; rank++)
        any = rank_has_work(run, rank);
    return any;
}

bool pump_through(struct run_thread *driver, int64_t deadline_ns)
{
    bool in_time = true;
    while (in_time && run_is_on_caller(driver->run) && !run_stopped(driver->run) &&
           any_has_work(driver->run))
        in_time = pump_or_wait(driver, deadline_ns);
    return in_time && !run_stopped(driver->run);
}

enum status pump_event(struct run *run, struct device_event *event, int64_t deadline_ns,
                       struct diag *diag)
{
    bool reached = false;
    if (!run_is_on_caller(run))
        return device_event_sync(event, deadline_ns, diag);
    if (device_event_query(event, &reached, NULL) == STATUS_OK && reached)
        return STATUS_OK;
    for (;;) {
        (void)pump_all(run);
        int64_t until_ns = run_real_deadline(run, deadline_ns), now_ns = run_now(run);
        struct held held = find_held(run);
        if (held.by_device == 0 || until_ns <= now_ns + SLICE_NS)
            return device_event_sync(event, until_ns, diag);
        enum status status = device_event_sync(event, now_ns + SLICE_NS, NULL);
        if (status != STATUS_LIMIT)
            return status == STATUS_OK ? status : device_event_sync(event, until_ns, diag);
    }
}
