/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - see run.h: all parts of a run are opened before its first thread starts and closed after its
 * last one ended, so opening and closing need no locks.
 */
#include "graph.h"
#include "layers.h"
#include "run.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu/device/nvtx.h"
#include "base/assert_index.h"
#include "base/quiet_thread.h"
#include "base/system_words.h"

enum { SPIN_TAIL_NS = 100000, SLICE_NS = 10000000 };

/* ---- waiting and waking ---------------------------------------------------------------------- */

/* Give way, and spin, before sleeping; with the lock held, except meanwhile. */
static bool is_woken_soon(struct run_thread *self)
{
    struct run *run = self->run;
    const int64_t most_ns = run->config.spin_ns;
    unsigned before = atomic_load_explicit(&self->woken, memory_order_relaxed);
    if (most_ns >= 0 && !run_stopped(run) && way_is_due(&self->way)) {
        run_unlock(run);
        const bool in_time = way_give(&self->way);
        pthread_mutex_lock(&run->lock);
        way_ended(&self->way, in_time);
        if (atomic_load_explicit(&self->woken, memory_order_relaxed) != before)
            return true;
    }
    if (most_ns < 0 || run_stopped(run) ||
        (most_ns == 0 && !(cores_are_free() && spin_is_due(&self->spin))))
        return false;
    run_unlock(run);
    spin_ended(&self->spin, spin_on(&self->woken, before, most_ns));
    pthread_mutex_lock(&run->lock);
    return atomic_load_explicit(&self->woken, memory_order_relaxed) != before;
}

/* With the lock held. */
static void run_wake_thread(struct run_thread *thread)
{
    struct run *run = thread->run;
    assert(thread->awaits);
    way_found(&thread->way);
    atomic_fetch_add_explicit(&thread->woken, 1, memory_order_relaxed);
    if (thread->is_called)
        return;
    thread->is_called = true;
    thread->next_called = run->called;
    run->called = thread;
}

/* With --enable-checks, under the lock: who is blocked awaits something, who is called is in the list once, and a worker's
   queue is a ring, of instances that are not submitted. */
static void run_check_threads(const struct run *run)
{
#ifdef SWSIM_CHECKS
    int64_t queued = 0, handed_out = 0;
    int blocked = 0, called = 0;
    for (int t = 0; t < run->program->thread_count; t++) {
        const struct run_thread *thread = &run->threads[t];
        blocked += thread->awaits != NULL;
        called += thread->is_called;
        queued += thread->queue_count;
        assert(!thread->is_called || thread->awaits);
        assert(thread->queue_count >= 0 && thread->queue_count <= thread->queue_cap);
        assert(thread->queue_first >= 0 && thread->queue_first <= thread->queue_cap);
    }
    assert(blocked == run->blocked);
    for (int rank = 0; rank < run->program->ranks; rank++) {
        assert(run->ranks[rank].handed_out >= 0 && run->ranks[rank].choice.running >= 0);
        handed_out += run->ranks[rank].handed_out;
    }
    assert(queued <= handed_out); /* what is queued is not submitted yet */
    for (const struct run_thread *at = run->called; at; at = at->next_called) {
        assert(at->is_called && at->run == run);
        called--;
    }
    assert(called == 0);
#else
    (void)run;
#endif
}

/* A thread that is not in the list any more may be woken again at any time: the list is read under the lock. */
static void unlock_and_wake(struct run *run)
{
    enum { MOST = 16 };
    struct run_thread *called[MOST];
    int count = 0;
    for (; run->called && count < MOST; run->called = run->called->next_called) {
        called[count++] = run->called;
        run->called->is_called = false;
    }
    bool more = run->called;
    pthread_mutex_unlock(&run->lock);
    for (int i = 0; i < count; i++)
        pthread_cond_signal(&called[i]->wake);
    if (more) {
        pthread_mutex_lock(&run->lock);
        run_unlock(run);
    }
}

void run_unlock(struct run *run)
{
    run_check_threads(run);
    if (run->called)
        unlock_and_wake(run);
    else
        pthread_mutex_unlock(&run->lock);
}

/* Before a thread sleeps it wakes others, and then looks again. */
static bool run_has_called(struct run *run)
{
    if (!run->called)
        return false;
    run_unlock(run);
    pthread_mutex_lock(&run->lock);
    return true;
}

/* False if the deadline has passed. With the lock held, except while asleep. */
static bool sleep_until(struct run_thread *self, int64_t deadline_ns)
{
    if (deadline_ns == DEVICE_FOREVER)
        return pthread_cond_wait(&self->wake, &self->run->lock) == 0;
    int64_t left_ns = deadline_ns - run_now(self->run);
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    left_ns = left_ns > 0 ? left_ns + until.tv_nsec : until.tv_nsec;
    until.tv_sec += left_ns / 1000000000;
    until.tv_nsec = left_ns % 1000000000;
    return pthread_cond_timedwait(&self->wake, &self->run->lock, &until) != ETIMEDOUT;
}

void run_block(struct run_thread *self, const void *object)
{
    (void)run_block_until(self, object, DEVICE_FOREVER);
}

bool run_block_until(struct run_thread *self, const void *object, int64_t deadline_ns)
{
    struct run *run = self->run;
    if (run_is_on_caller(run)) { /* it takes the workers' steps, and waits for one of them */
        run_unlock(run);
        bool in_time = pump_or_wait(self, deadline_ns);
        pthread_mutex_lock(&run->lock);
        return in_time;
    }
    if (run_has_called(run))
        return true;
    assert(!self->awaits && !self->is_called);
    self->awaits = object;
    run->blocked++;
    bool woken = is_woken_soon(self);
    if (!woken) {
        cores_sleep();
        woken = sleep_until(self, deadline_ns);
        cores_wake();
    }
    assert(run->blocked > 0 && self->awaits == object);
    run->blocked--;
    self->awaits = NULL;
    return woken;
}

void run_wake(struct run *run, const void *object)
{
    for (int t = 0, left = run->blocked; left > 0 && t < run->program->thread_count; t++)
        if (run->threads[t].awaits && left-- && run->threads[t].awaits == object)
            run_wake_thread(&run->threads[t]);
}

void run_wake_able(struct run *run, const void *object, run_able *able)
{
    struct run_used used = {0};
    for (int t = 0, left = run->blocked; left > 0 && t < run->program->thread_count; t++) {
        struct run_thread *thread = &run->threads[t];
        left -= thread->awaits != NULL;
        if (thread->awaits == object && (!thread->awaiting || able(thread, &used)))
            run_wake_thread(thread);
    }
}

void run_wake_dependents(struct run *run, int rank)
{
    const atomic_int *end = run->flags + (size_t)run->program->flag_families * (size_t)run->slots;
    for (int t = 0, left = run->blocked; left > 0 && t < run->program->thread_count; t++) {
        struct run_thread *thread = &run->threads[t];
        const char *object = thread->awaits;
        left -= object != NULL;
        if (thread->rank == rank && object >= (const char *)run->flags &&
            object < (const char *)end)
            run_wake_thread(thread);
    }
}

void run_wake_rank(struct run *run, int rank)
{
    for (int t = 0; t < run->program->thread_count; t++)
        if (run->threads[t].awaits && run->threads[t].rank == rank)
            run_wake_thread(&run->threads[t]);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* The first to end the run says why; false for all others. */
static bool begin_end(struct run *run, enum status failure, const char *text)
{
    pthread_mutex_lock(&run->lock);
    bool first = !run->ending;
    assert(first || !run->failure || run->failure_text[0]); /* the first has said why */
    run->ending = true;
    if (first && failure) {
        run->failure = failure;
        snprintf(run->failure_text, sizeof run->failure_text, "%s", text);
    }
    run_unlock(run);
    return first;
}

/* The device first: no callback may come to a regular end because it was woken. */
static void stop_everybody(struct run *run, const char *why)
{
    device_world_abort(run->world, why);
    pthread_mutex_lock(&run->lock);
    atomic_store(&run->stopped, true);
    gate_release(run->config.gate);
    for (int t = 0; t < run->program->thread_count; t++) {
        atomic_fetch_add_explicit(&run->threads[t].woken, 1, memory_order_relaxed);
        pthread_cond_signal(&run->threads[t].wake);
    }
    pthread_cond_broadcast(&run->watch);
    run_unlock(run);
}

void run_fail(struct run *run, enum status status, const char *format, ...)
{
    char text[sizeof run->failure_text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (begin_end(run, status, text))
        stop_everybody(run, text);
}

void run_stop(struct run *run, const char *why)
{
    if (begin_end(run, STATUS_OK, why))
        stop_everybody(run, why);
}

static const char *first_error(const struct diag *diag)
{
    for (size_t i = 0; i < diag->count; i++)
        if (diag->messages[i].severity == SEVERITY_ERROR)
            return diag->messages[i].text;
    return diag->out_of_memory ? "out of memory" : "the device failed";
}

bool run_check(struct run *run, enum status status, struct diag *diag)
{
    struct diag cause;
    if (status == STATUS_OK)
        return true;
    if (run_stopped(run))
        return false;
    diag_init(&cause);
    enum status caused = device_world_status(run->world, &cause);
    run_fail(run, caused ? caused : status, "%s", first_error(caused ? &cause : diag));
    diag_fini(&cause);
    return false;
}

/* ---- time ------------------------------------------------------------------------------------ */

bool run_spend(struct run *run, int64_t ns)
{
    int64_t end_ns = run_now(run) + ns, left_ns = ns;
    while (left_ns > 0 && !run_stopped(run)) {
        int64_t nap_ns = left_ns - SPIN_TAIL_NS;
        if (nap_ns > SPIN_TAIL_NS) {
            nap_ns = nap_ns < SLICE_NS ? nap_ns : SLICE_NS;
            nanosleep(&(struct timespec){.tv_nsec = (long)nap_ns}, NULL); /* early is no matter */
        }
        left_ns = end_ns - run_now(run);
    }
    return !run_stopped(run);
}

/* ---- logging --------------------------------------------------------------------------------- */

struct log_entry *run_log_entry(struct run_thread *self, enum log_kind kind, int op,
                                int64_t iteration, int64_t begin_ns, int64_t at_ns)
{
    struct log_entry *entry = log_next(self->log);
    assert(begin_ns <= at_ns);
    if (entry)
        *entry = (struct log_entry){.kind = kind,
                                    .op = op,
                                    .iteration = iteration,
                                    .begin_ns = begin_ns,
                                    .at_ns = at_ns,
                                    .end_ns = at_ns,
                                    .stamp = {.number = -1},
                                    .since = {.number = -1}};
    return entry;
}

/* ---- what a run is made of ------------------------------------------------------------------- */

static void *array(size_t count, size_t size)
{
    return calloc(count ? count : 1, size);
}

/* The plan's slots; and where those are enough for it not to be seen, an event for each iteration that may be unfinished:
   then no second event need say when a task is over. */
static int size_slots(const struct program *p)
{
    bool more = p->tasks > 0 && p->slots_safe && p->plan->pipeline.retire != RETIRE_DEVICE;
    return more && p->window > p->slots ? p->window : p->slots;
}

static bool run_allocate(struct run *run)
{
    const struct program *p = run->program;
    size_t slots = (size_t)run->slots, window = (size_t)p->window, ranks = (size_t)p->ranks;
    run->ranks = array(ranks, sizeof *run->ranks);
    run->streams = array((size_t)p->stream_count, sizeof *run->streams);
    run->threads = array((size_t)p->thread_count, sizeof *run->threads);
    run->events = array((size_t)p->event_families * slots, sizeof(struct device_event *));
    run->comms = array((size_t)p->member_count, sizeof(struct device_comm *));
    run->in_flight = array(ranks * window, sizeof *run->in_flight);
    run->flags = array((size_t)p->flag_families * slots, sizeof *run->flags);
    run->recorded = array((size_t)p->event_families * slots, sizeof *run->recorded);
    run->holders = array((size_t)p->lock_count, sizeof *run->holders);
    run->queued = array((size_t)p->queue_count, sizeof *run->queued);
    run->loaded = array(ranks * (size_t)p->kernel_count, sizeof *run->loaded);
    for (int i = 0; run->flags && i < p->flag_families; i++)
        atomic_store(&run->flags[i * run->slots], p->flag_begins[i]);
    for (int i = 0; run->holders && i < p->lock_count; i++)
        run->holders[i] = -1;
    return run->ranks && run->streams && run->threads && run->events && run->comms &&
           run->in_flight && run->flags && run->recorded && run->holders && run->queued &&
           run->loaded;
}

static enum status open_locks(struct run *run, struct diag *diag)
{
    pthread_condattr_t clock;
    if (pthread_condattr_init(&clock))
        return diag_error(diag, STATUS_SYSTEM, "cannot make a condition");
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutexattr_t attributes;
    int failed = pthread_mutexattr_init(&attributes);
    if (!failed) {
        pthread_mutexattr_settype(&attributes,
                                  PTHREAD_MUTEX_ADAPTIVE_NP); /* its sections are short */
        failed = pthread_mutex_init(&run->lock, &attributes);
        pthread_mutexattr_destroy(&attributes);
    }
    failed = failed ? failed : pthread_cond_init(&run->watch, &clock);
    for (int t = 0; t < run->program->thread_count && !failed; t++)
        failed = pthread_cond_init(&run->threads[t].wake, &clock);
    for (int s = 0; s < run->program->stream_count && !failed; s++)
        failed = pthread_mutex_init(&run->streams[s].gate, NULL);
    pthread_condattr_destroy(&clock);
    if (failed)
        return diag_error(diag, STATUS_SYSTEM, "cannot make a lock: %s", system_words(failed));
    return STATUS_OK;
}

static enum status run_open_ranks(struct run *run, struct diag *diag)
{
    const struct program *p = run->program;
    struct device_config config = {.kind = run->config.device,
                                   .ranks = p->ranks,
                                   .first_rank = run_first_rank(run),
                                   .local_ranks = run_last_rank(run) - run_first_rank(run),
                                   .sm_slots = p->plan->machine.sm_slots,
                                   .launch_latency_ns = p->plan->machine.launch_latency_ns,
                                   .share_device = p->plan->machine.share_device ? p->device : NULL,
                                   .rendezvous = run->config.rendezvous,
                                   .own_process = true};
    const bool borrowed = run_is_driven(run);
    if (config.rendezvous && !borrowed) { /* left by the last run; not read before all are here */
        struct board_member *me =
            &rendezvous_board(config.rendezvous)->members[rendezvous_rank(config.rendezvous)];
        atomic_store(&me->wanted, 0);
        atomic_store(&me->beat_ns, 0);
    }
    run->world = run->config.world;
    enum status status = borrowed ? STATUS_OK : device_world_open(&config, &run->world, diag);
    for (int rank = 0; rank < p->ranks; rank++)
        run->ranks[rank].end = p->tasks ? p->ends[rank] : 0;
    for (int rank = run_first_rank(run); rank < run_last_rank(run) && !status; rank++) {
        struct run_rank *state = &run->ranks[rank];
        if (borrowed)
            state->device = run->config.devices[rank];
        else
            status = device_open(run->world, rank, &state->device, diag);
        if (!status)
            status = device_event_open(state->device, &state->never, diag);
    }
    return status;
}

/* A launch queue is a ring of events, each behind so many operations: a push waits for what was pushed `cap` operations
   ago. The device itself is not limited, because one operation of the program may be several of the device.
   A queue that the plan limits has an event behind each operation. Without a limit the queue holds the operations of two
   iterations more than are in flight (size_windows in machine/lower/lower_pipeline.c); an event an iteration will do, and a push
   waits for a little more than it must. On one rank that cannot hang: what is in a stream needs nothing that is pushed
   later. Ranks need what others push; there it is exact. */
static enum status open_room(struct run *run, struct run_stream *stream, struct device *device,
                             int cap, struct diag *diag)
{
    const struct plan *plan = run->program->plan;
    bool by_plan = plan->machine.launch_queue > 0;
    int iterations = run->program->depth + 2;
    stream->cap = cap;
    stream->marked = by_plan || run->program->ranks > 1 || cap < iterations ? 1 : cap / iterations;
    stream->room_marks = cap / stream->marked + 2;
    if (!by_plan && !(run->program->tasks && plan->pipeline.retire != RETIRE_DEVICE))
        return STATUS_OK;
    stream->room = array((size_t)stream->room_marks, sizeof(struct device_event *));
    if (!stream->room)
        return diag_no_memory(diag);
    enum status status = STATUS_OK;
    for (int i = 0; i < stream->room_marks && !status; i++)
        status = device_event_open(device, &stream->room[i], diag);
    return status;
}

static enum status open_streams(struct run *run, struct diag *diag)
{
    const struct program *p = run->program;
    enum status status = STATUS_OK;
    for (int s = 0; s < p->stream_count && !status; s++) {
        if (!run_has(run, p->streams[s].rank))
            continue;
        struct device *device = run->ranks[p->streams[s].rank].device;
        struct run_stream *stream = &run->streams[s];
        status = device_stream_open(device, p->streams[s].name, &stream->handle, diag);
        if (!status)
            status = device_event_open(device, &stream->mark, diag);
        if (!status)
            status = open_room(run, stream, device, p->streams[s].cap, diag);
    }
    return status;
}

/* An event of an iteration must be there until the iteration is over, or be taken down apart. */
static enum status open_done_events(struct run *run, struct diag *diag)
{
    const struct program *p = run->program;
    int least = p->plan->pipeline.retire == RETIRE_DEVICE ? p->depth : p->window;
    bool safe = run->slots >= least;
    size_t count = (size_t)(p->ranks * p->tasks) * (size_t)p->window;
    if (p->tasks == 0 || safe)
        return STATUS_OK;
    run->done = array(count, sizeof(struct device_event *));
    if (!run->done)
        return diag_no_memory(diag);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && !status; i++) {
        int rank = (int)(i / ((size_t)p->tasks * (size_t)p->window));
        if (run_has(run, rank))
            status = device_event_open(run->ranks[rank].device, &run->done[i], diag);
    }
    return status;
}

static enum status open_events(struct run *run, struct diag *diag)
{
    const struct program *p = run->program;
    enum status status = STATUS_OK;
    for (int e = 0; e < p->event_families * run->slots && !status; e++) {
        int rank = p->event_rank[e / run->slots];
        if (run_has(run, rank))
            status = device_event_open(run->ranks[rank].device, &run->events[e], diag);
    }
    return status ? status : open_done_events(run, diag);
}

static enum status open_comms(struct run *run, struct diag *diag)
{
    const struct program *p = run->program;
    enum status status = STATUS_OK;
    for (int c = 0; c < p->comm_count; c++)
        for (int m = 0; m < p->comms[c].count && !status; m++)
            if (run_has(run, p->comms[c].members[m]))
                status = device_comm_open(run->ranks[p->comms[c].members[m]].device,
                                          p->comms[c].name, p->comms[c].members, p->comms[c].count,
                                          &run->comms[p->comms[c].first_member + m], diag);
    return status;
}

static enum status open_choices(struct run *run, struct diag *diag)
{
    const struct program *p = run->program;
    for (int rank = 0; rank < p->ranks && run->config.chooser; rank++) {
        run->ranks[rank].choice.offers = array((size_t)p->thread_count, sizeof(struct run_offer));
        if (!run->ranks[rank].choice.offers)
            return diag_no_memory(diag);
    }
    return STATUS_OK;
}

static enum status open_threads(struct run *run, struct diag *diag)
{
    const struct program *p = run->program;
    for (int t = 0; t < p->thread_count; t++) {
        struct run_thread *thread = &run->threads[t];
        thread->run = run;
        thread->index = t;
        thread->rank = p->threads[t].rank;
        atomic_store(&thread->at, -1);
        if (p->threads[t].kind != THREAD_WORKER)
            continue;
        thread->idle = true;
        thread->queue_cap = p->threads[t].queue_cap;
        thread->queue = array((size_t)thread->queue_cap, sizeof *thread->queue);
        if (!thread->queue)
            return diag_no_memory(diag);
    }
    return STATUS_OK;
}

void run_give(struct run *run, int thread, const struct instance *instance)
{
    struct run_thread *worker = &run->threads[thread];
    assert(worker->queue_count >= 0 && worker->queue_count < worker->queue_cap);
    assert(run->program->threads[thread].kind == THREAD_WORKER);
    int place = (worker->queue_first + worker->queue_count++) % worker->queue_cap;
    worker->queue[place] = *instance;
    if (run->config.chooser)
        choose_changed(run, worker->rank);
    else if (worker->awaits == worker->queue)
        run_wake_thread(worker);
}

/* The policy's instances go to the workers' queues; called with the lock held. */
static void hand_out(void *arg, int thread, int task, int64_t iteration, int64_t ticket)
{
    struct run *run = arg;
    struct instance instance = {task, iteration, ticket};
    int rank = run->threads[thread].rank;
    assert(run_has(run, rank) && run->ranks[rank].handed_out >= 0);
    run->ranks[rank].handed_out++;
    assert(run->program->threads[thread].kind == THREAD_WORKER && task < run->program->tasks);
    if (!graph_keeps(run, rank, thread, &instance))
        run_give(run, thread, &instance);
}

/* The stream that a task's event is recorded in. */
static int stream_of_event(const struct program *p, int family)
{
    ASSERT_INDEX(family, p->body_count);
    const struct body *body = &p->bodies[family];
    for (int i = 0; i < body->count; i++)
        if (program_records_task(&p->ops[body->first + i]))
            return p->ops[body->first + i].stream;
    return -1;
}

/* Find the facts about operations that hold for the whole run. A stream does its work in order, so its wait for an event of its own
   is vain. */
static void describe_ops(struct run *run)
{
    const struct program *p = run->program;
    for (size_t i = 0; i < p->op_count; i++) {
        run->ops[i].works = worker_is_work(&p->ops[i]);
        run->ops[i].vain = p->tasks > 0 && p->ops[i].kind == OP_WAIT &&
                           p->ops[i].object < p->ranks * p->tasks &&
                           stream_of_event(p, p->ops[i].object) == p->ops[i].stream;
    }
    /* Not in a run that is forced into an order: there others have their turns in between. */
    for (size_t body = 0; body < p->body_count && !run_is_forced(run); body++) {
        const struct body *what = &p->bodies[body];
        for (int i = what->first; i + 1 < what->first + what->count; i++)
            run->ops[i].ends = p->ops[i].kind == OP_SIGNAL && p->ops[i + 1].kind == OP_COMPLETE;
    }
}

/* A stream of a pipeline's program is shared unless all tasks that push there are of one worker. */
static void find_shared_streams(struct run *run)
{
    const struct program *p = run->program;
    for (int s = 0; s < p->stream_count; s++)
        run->streams[s].shared = p->tasks == 0;
    for (int body = 0; body < p->ranks * p->tasks; body++)
        for (int i = 0; i < p->bodies[body].count; i++) {
            const struct op *op = &p->ops[p->bodies[body].first + i];
            if (!op_pushes(op->kind))
                continue;
            struct run_stream *stream = &run->streams[op->stream];
            const int pusher = p->worker[body] + 1;
            stream->shared |= stream->pusher && stream->pusher != pusher;
            stream->pusher = pusher;
        }
}

static enum status run_open_all(struct run *run, struct diag *diag)
{
    enum status status = STATUS_OK;
    if (!run_allocate(run))
        status = diag_no_memory(diag);
    if (!status)
        status = open_threads(run, diag);
    if (!status)
        status = open_choices(run, diag);
    if (!status)
        status = open_locks(run, diag);
    if (!status)
        status = run_open_ranks(run, diag);
    if (!status)
        status = open_streams(run, diag);
    if (!status)
        status = open_events(run, diag);
    if (!status)
        status = open_comms(run, diag);
    if (!status)
        status = graph_open(run, diag);
    if (!status)
        status = data_open(run, diag);
    if (!status) {
        describe_ops(run);
        find_shared_streams(run);
        called_open(run);
    }
    if (!status)
        status = pump_open(run, diag);
    if (!status)
        status = layers_open(run, diag);
    if (!status && run->program->tasks) {
        run->policy = policy_open(run->program, hand_out, run);
        if (!run->policy)
            status = diag_no_memory(diag);
    }
    return status;
}

/* A combination that the table of enum run_mode has. */
static void check_config(const struct run_config *config)
{
    const bool driven = run_mode_is_driven(config->mode), reference = config->mode == RUN_REFERENCE;
    assert(driven == (config->world != NULL) && driven == (config->devices != NULL));
    assert(driven == (config->functions != NULL));
    assert(driven || (!config->chooser && config->wait_ns == 0 && config->spin_ns == 0));
    assert(!driven || (!config->digest && !config->stop && config->timeout_ns == 0));
    assert((config->mode == RUN_FORCED) == (config->gate != NULL));
    assert(!reference || (config->serial && config->digest));
    assert(reference || config->instances == 0);
    assert(!config->serial || config->graph == RUNTIME_GRAPH_OFF);
    assert(!config->serial || config->mode != RUN_FORCED);
}

enum status run_open(struct run *run, const struct program *program,
                     const struct run_config *config, struct diag *diag)
{
    check_config(config);
    *run = (struct run){.program = program, .config = *config, .slots = size_slots(program)};
    run->watched = nvtx_open();
    enum status status = run_open_all(run, diag);
    if (run->watched)
        nvtx_end();
    return status;
}

/* ---- threads --------------------------------------------------------------------------------- */

static void run_worker(struct run_thread *self)
{
    const struct run_functions *functions = self->run->config.functions;
    if (functions && !functions->begin_thread(functions->arg, self))
        return;
    worker_run(self);
    if (functions)
        functions->end_thread(functions->arg, self);
}

static void *thread_main(void *arg)
{
    struct run_thread *self = arg;
    struct run *run = self->run;
    const struct thread_desc *desc = &run->program->threads[self->index];
    char name[16]; /* what the kernel keeps */
    snprintf(name, sizeof name, "r%d:%s", self->rank, desc->name);
    pthread_setname_np(pthread_self(), name);
    if (run->watched)
        nvtx_name_thread(name);
    cores_join();
    switch (desc->kind) {
    case THREAD_DRIVER: drive_run(self); break;
    case THREAD_WORKER: run_worker(self); break;
    case THREAD_HOST: host_thread_run(self); break;
    case THREAD_CALLBACK: break; /* the device's threads run these */
    }
    cores_leave();
    pthread_mutex_lock(&run->lock);
    assert(run->alive > 0 && !self->awaits);
    run->alive--;
    pthread_cond_broadcast(&run->watch);
    run_unlock(run);
    return NULL;
}

enum status run_start_threads(struct run *run, struct diag *diag)
{
    const struct program *p = run->program;
    int failed = 0;
    if (run_is_on_caller(run))
        pump_begin(run);
    for (int t = 0; t < p->thread_count && !failed; t++) {
        enum thread_kind kind = p->threads[t].kind;
        if (kind == THREAD_CALLBACK || (kind == THREAD_DRIVER && run_is_driven(run)) ||
            (kind == THREAD_WORKER && run_is_on_caller(run)) || !run_has(run, p->threads[t].rank))
            continue;
        assert(!run->threads[t].started);
        pthread_mutex_lock(&run->lock);
        failed = quiet_thread_start(&run->threads[t].id, thread_main, &run->threads[t]);
        run->threads[t].started = !failed;
        run->alive += !failed;
        run_unlock(run);
    }
    if (!failed)
        return STATUS_OK;
    run_stop(run, "a thread could not be started");
    return diag_error(diag, STATUS_SYSTEM, "cannot start a thread: %s", system_words(failed));
}

void run_join(struct run *run)
{
    for (int t = 0; t < run->program->thread_count; t++) {
        if (run->threads[t].started)
            pthread_join(run->threads[t].id, NULL);
        run->threads[t].started = false;
    }
    if (run_is_on_caller(run))
        pump_end(run);
}

/* ---- close ----------------------------------------------------------------------------------- */

static void close_events(struct device_event **events, size_t count)
{
    for (size_t i = 0; events && i < count; i++)
        if (events[i])
            device_event_close(events[i]);
    free(events);
}

static void close_streams(struct run *run)
{
    const struct program *p = run->program;
    for (int s = 0; run->streams && s < p->stream_count; s++) {
        struct run_stream *stream = &run->streams[s];
        close_events(stream->room, (size_t)stream->room_marks);
        if (stream->mark)
            device_event_close(stream->mark);
    }
    for (int s = 0; run->streams && s < p->stream_count; s++)
        device_stream_close(run->streams[s].handle);
}

static void run_close_device(struct run *run)
{
    const struct program *p = run->program;
    graph_close(run);
    pump_close(run);
    for (int m = 0; run->comms && m < p->member_count; m++)
        device_comm_close(run->comms[m]);
    close_events(run->events, (size_t)p->event_families * (size_t)run->slots);
    close_events(run->done, (size_t)(p->ranks * p->tasks) * (size_t)p->window);
    for (int rank = 0; run->ranks && rank < p->ranks; rank++)
        if (run->ranks[rank].never)
            device_event_close(run->ranks[rank].never);
    close_streams(run);
    layers_close(run);
    data_close(run);
    if (run_is_driven(run))
        return; /* the world and the devices are borrowed */
    for (int rank = 0; run->ranks && rank < p->ranks; rank++)
        device_close(run->ranks[rank].device);
    device_world_close(run->world);
}

void run_close(struct run *run)
{
    const struct program *p = run->program;
    run_close_device(run);
    assert(run->alive == 0 && run->blocked == 0 && !run->called); /* nor is a callback under way */
    policy_close(run->policy);
    for (int t = 0; run->threads && t < p->thread_count; t++) {
        pthread_cond_destroy(&run->threads[t].wake);
        free(run->threads[t].queue);
    }
    for (int s = 0; run->streams && s < p->stream_count; s++)
        pthread_mutex_destroy(&run->streams[s].gate);
    pthread_cond_destroy(&run->watch);
    pthread_mutex_destroy(&run->lock);
    for (int rank = 0; run->ranks && rank < p->ranks; rank++)
        free(run->ranks[rank].choice.offers);
    free(run->ranks);
    free(run->streams);
    free(run->threads);
    free(run->comms);
    free(run->in_flight);
    free(run->flags);
    free(run->recorded);
    free(run->holders);
    free(run->queued);
    free(run->loaded);
}
