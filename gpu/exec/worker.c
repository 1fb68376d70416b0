/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.c - a thread executes operations: what blocks the host and what the host alone does.
 *
 * Each operation is one step of the machine. Its time is taken where it takes effect: under the lock
 * for what the host side decides, around the call for what the device decides.
 *
 * A worker with a thread waits in its operation until that can take effect. One without (pump.c) is asked before, and left
 * at its operation; so the same operations follow, without a wait in them.
 */
#include "graph.h"
#include "run.h"

#include <assert.h>
#include <time.h>

#include "base/assert_index.h"
#include "base/hash.h"
#include "base/units.h"
#include "gpu/device/nvtx.h"

static int index_of(const struct run *run, const struct op *op)
{
    return (int)(op - run->program->ops);
}

/* A host step without a push; the lock may be held. */
static bool worker_note_op(struct run_thread *self, const struct op *op, int64_t iteration,
                           int64_t begin_ns, int64_t at_ns)
{
    return run_note(self, LOG_OP, index_of(self->run, op), iteration, begin_ns, at_ns);
}

/* ---- limits of waiting ----------------------------------------------------------------------- */

static int64_t wait_deadline(const struct run *run)
{
    return run->config.wait_ns ? device_deadline(run_now(run), run->config.wait_ns)
                               : DEVICE_FOREVER;
}

/* Without the lock; always false. */
static bool waited_too_long(struct run_thread *self, const struct op *op, int64_t iteration)
{
    struct run *run = self->run;
    char subject[160], what[320], others[640], limit[UNITS_TEXT];
    program_op_subject(run->program, op, iteration, subject, sizeof subject);
    units_show_time((double)run->config.wait_ns, limit);
    waits_for(run, self->rank, op, iteration, what, sizeof what);
    waits_of_others(self, others, sizeof others);
    run_fail(run, STATUS_LIMIT, "rank %d: %s waited longer than %s for %s%s", self->rank, subject,
             limit, what, others);
    return false;
}

/* ---- flags ----------------------------------------------------------------------------------- */

/* True if the operation has something to wait for. In host programs always. Where it asks the driver, with the lock held. */
static bool depends(const struct run *run, int rank, const struct op *op, int64_t iteration)
{
    return !run->policy || policy_dependence_applies(run->policy, rank, op, iteration);
}

/* True if what it depends on may be skipped, by how far the driver is. */
static bool asks_driver(const struct run *run, const struct op *op)
{
    return run->policy && op_dependence(op) > 0 &&
           run->program->plan->pipeline.retired_dep == RETIRED_DEP_SKIP;
}

/* True if the flag has the value that the operation waits for. */
static bool worker_flag_suffices(const struct run *run, const struct op *op, int64_t iteration)
{
    const int value = atomic_load(&run->flags[run_instance(run, op, iteration)]);
    return op->flag_rule == FLAG_EQUALS ? value == op->value : value >= op->value;
}

static bool worker_flag_lets_pass(const struct run *run, int rank, const struct op *op,
                                  int64_t iteration)
{
    return !depends(run, rank, op, iteration) || worker_flag_suffices(run, op, iteration);
}

/* A thread that takes a part of the value leaves the rest to others. */
static bool flag_is_able(const struct run_thread *thread, struct run_used *used)
{
    const struct run *run = thread->run;
    const struct op *op = thread->awaiting;
    const int64_t iteration = thread->awaiting_iteration;
    if (op->kind != OP_ACQUIRE || op->flag_rule != FLAG_TAKES)
        return worker_flag_lets_pass(run, thread->rank, op, iteration);
    const int value = atomic_load(&run->flags[run_instance(run, op, iteration)]);
    const bool able = value - used->taken >= op->value;
    used->taken += able ? op->value : 0;
    return able;
}

/* Until the object is woken for this operation, the run stops or the deadline has passed, which is false. */
static bool block_before(struct run_thread *self, const struct op *op, int64_t iteration,
                         const void *object, int64_t deadline_ns)
{
    self->awaiting = op;
    self->awaiting_iteration = iteration;
    const bool in_time = run_block_until(self, object, deadline_ns);
    self->awaiting = NULL;
    return in_time;
}

/* With the lock held. */
static void worker_change_flag(struct run *run, const struct op *op, int64_t iteration)
{
    atomic_int *flag = &run->flags[run_instance(run, op, iteration)];
    int value = op->value;
    if (op->flag_rule != FLAG_SETS)
        value = atomic_load(flag) + (op->flag_rule == FLAG_TAKES ? -op->value : op->value);
    atomic_store_explicit(flag, value, memory_order_release);
    run_wake_able(run, flag, flag_is_able);
}

/* The flag was set at the first look, without the lock: it was some time from before the look until now. Or there is none
   to wait for. */
static bool note_look(struct run_thread *self, const struct op *op, int64_t iteration,
                      int64_t begin_ns, int64_t looked_ns)
{
    struct log_entry *entry =
        run_log(self, LOG_OP, index_of(self->run, op), iteration, begin_ns, looked_ns);
    if (!entry)
        return !self->log;
    entry->end_ns = run_step_ns(self);
    log_commit(self->log);
    return true;
}

static bool worker_await_flag(struct run_thread *self, const struct op *op, int64_t iteration)
{
    struct run *run = self->run;
    int64_t looked_ns = run_step_ns(self), deadline_ns = wait_deadline(run);
    int64_t begin_ns = self->pumped.came_ns ? self->pumped.came_ns : looked_ns;
    bool in_time = true;
    if (!asks_driver(run, op) && !run->program->flag_counts[op->object] &&
        worker_flag_lets_pass(run, self->rank, op, iteration))
        return !run_stopped(run) && note_look(self, op, iteration, begin_ns, looked_ns);
    pthread_mutex_lock(&run->lock);
    while (!run_stopped(run) && in_time && !worker_flag_lets_pass(run, self->rank, op, iteration))
        in_time = block_before(self, op, iteration, &run->flags[run_instance(run, op, iteration)],
                               deadline_ns);
    bool done = !run_stopped(run) && in_time;
    if (done && op->kind == OP_ACQUIRE)
        worker_change_flag(run, op, iteration);
    done = done && worker_note_op(self, op, iteration, begin_ns, run_step_ns(self));
    run_unlock(run);
    return in_time ? done : waited_too_long(self, op, iteration);
}

/* With the lock held. */
static bool set_flag(struct run_thread *self, const struct op *op, int64_t iteration)
{
    struct run *run = self->run;
    int64_t now_ns = run_step_ns(self);
    worker_change_flag(run, op, iteration);
    return worker_note_op(self, op, iteration, now_ns, now_ns);
}

/* The stream comes to a write: the flag is set. */
static void worker_write(void *arg)
{
    struct run_op *step = arg;
    struct run *run = step->thread->run;
    pthread_mutex_lock(&run->lock);
    step->acted_ns = run_now(run);
    worker_change_flag(run, &run->program->ops[step - run->ops], step->body);
    run_unlock(run);
}

/* Is the flag set, and when? */
static bool finds_flag_set(struct run_op *step)
{
    struct run *run = step->thread->run;
    const struct op *op = &run->program->ops[step - run->ops];
    if (!worker_flag_suffices(run, op, step->body))
        return false;
    pthread_mutex_lock(&run->lock);
    if (worker_flag_suffices(run, op, step->body))
        step->acted_ns = run_now(run);
    run_unlock(run);
    return step->acted_ns != 0;
}

enum { FIRST_LOOK_NS = 1000, LAST_LOOK_NS = 500000 };

/* The stream comes to a wait for a flag. Who sets one wakes threads of the run, and this is one of the device; so it looks
   again and again, at times that grow. */
static void worker_wait_flag(void *arg)
{
    struct run_op *step = arg;
    struct run *run = step->thread->run;
    const int64_t deadline_ns = wait_deadline(run);
    for (int64_t pause_ns = FIRST_LOOK_NS; !finds_flag_set(step) && !run_stopped(run);) {
        nanosleep(&(struct timespec){0, (long)pause_ns}, NULL);
        pause_ns = pause_ns < LAST_LOOK_NS ? 2 * pause_ns : LAST_LOOK_NS;
        if (run->config.wait_ns && run_now(run) > deadline_ns && !finds_flag_set(step)) {
            waited_too_long(step->thread, &run->program->ops[step - run->ops], step->body);
            return;
        }
    }
}

/* ---- locks, queues, tickets ------------------------------------------------------------------ */

/* True if the operation can take effect. With the lock held. */
static bool may_proceed(const struct run_thread *self, const struct op *op)
{
    const struct run *run = self->run;
    if (op->kind == OP_LOCK)
        return run->holders[op->object] < 0;
    if (op->kind == OP_PUT)
        return run->queued[op->object] < run->program->queue_caps[op->object];
    if (op->kind == OP_GET)
        return run->queued[op->object] > 0;
    return op->kind != OP_TICKET ||
           run->ranks[self->rank].served == (op->ticket >= 0 ? op->ticket : self->current.ticket);
}

/* One thread has a lock, and as many go on at a queue as there are items, or places. */
static bool turn_is_able(const struct run_thread *thread, struct run_used *used)
{
    const struct run *run = thread->run;
    const struct op *op = thread->awaiting;
    if (op->kind == OP_LOCK)
        return may_proceed(thread, op) && used->taken++ == 0;
    if (op->kind == OP_GET)
        return run->queued[op->object] - used->taken > 0 && ++used->taken;
    if (op->kind == OP_PUT)
        return run->queued[op->object] + used->put < run->program->queue_caps[op->object] &&
               ++used->put;
    return may_proceed(thread, op);
}

/* The word a thread waits on, and the word that changes when the operation takes effect. */
static const void *worker_object_of(const struct run_thread *self, const struct op *op)
{
    const struct run *run = self->run;
    enum op_operand kind = op_operand(op->kind);
    return kind == OPERAND_LOCK    ? (const void *)&run->holders[op->object]
           : kind == OPERAND_QUEUE ? (const void *)&run->queued[op->object]
                                   : (const void *)&run->ranks[self->rank].served;
}

static void worker_pass(struct run_thread *self, const struct op *op)
{
    struct run *run = self->run;
    enum op_operand kind = op_operand(op->kind);
    assert(may_proceed(self, op));
    if (kind == OPERAND_LOCK)
        run->holders[op->object] = op_takes(op->kind) ? self->index : -1;
    else if (kind == OPERAND_QUEUE)
        run->queued[op->object] += op_takes(op->kind) ? -1 : 1;
    else if (op->kind == OP_SERVE) {
        run->ranks[self->rank].served++;
        choose_changed(run, self->rank);
    }
    assert(kind != OPERAND_QUEUE ||
           (run->queued[op->object] >= 0 &&
            run->queued[op->object] <= run->program->queue_caps[op->object]));
}

static bool worker_take_turn(struct run_thread *self, const struct op *op, int64_t iteration)
{
    struct run *run = self->run;
    const void *object = worker_object_of(self, op);
    int64_t begin_ns = run_come_ns(self), deadline_ns = wait_deadline(run);
    bool in_time = true;
    pthread_mutex_lock(&run->lock);
    while (!run_stopped(run) && in_time && !may_proceed(self, op))
        in_time = block_before(self, op, iteration, object, deadline_ns);
    bool done = !run_stopped(run) && in_time;
    if (done) {
        worker_pass(self, op);
        run_wake_able(run, object, turn_is_able);
        done = worker_note_op(self, op, iteration, begin_ns, run_step_ns(self));
    }
    run_unlock(run);
    return in_time ? done : waited_too_long(self, op, iteration);
}

/* ---- the host waits for the device ----------------------------------------------------------- */

static bool worker_has_turn(const struct run_thread *self)
{
    struct gate *gate = self->run->config.gate;
    return gate && gate_turn(gate) == program_thread_agent(self->run->program, self->index);
}

static bool note_call(struct run_thread *self, const struct op *op, int64_t iteration)
{
    int64_t now_ns = run_step_ns(self);
    if (!worker_note_op(self, op, iteration, now_ns, now_ns))
        return false;
    run_end_step(self);
    run_begin_step(self);
    return true;
}

/* Wait for what the stream, the device or the event has at the call; the call is a step of its own where others may push
   or record behind it (machine/snapshot.h). The device does not tell when it looks: behind the step, so it waits for no
   less. A witness may have pushes between the call and the end: at its turn the work waited for is over. */
static bool sync_work(struct run_thread *self, const struct op *op, int64_t iteration,
                      struct diag *diag)
{
    struct run *run = self->run;
    if (op->snapshot && !note_call(self, op, iteration))
        return false;
    if (op->snapshot && worker_has_turn(self))
        return true;
    if (op->sync == SYNC_STREAM)
        return run_check(
            run, device_stream_sync(run->streams[op->stream].handle, DEVICE_FOREVER, diag), diag);
    if (op->sync == SYNC_EVENT)
        return run_check(
            run,
            device_event_sync(run->events[run_instance(run, op, iteration)], DEVICE_FOREVER, diag),
            diag);
    int rank = program_sync_rank(run->program, self->index, op);
    return run_check(run, device_sync(run->ranks[rank].device, DEVICE_FOREVER, diag), diag);
}

/* True if this kernel has been loaded on this rank. Then it is, from now on. */
static bool is_loaded(struct run_thread *self, const struct op *op)
{
    struct run *run = self->run;
    pthread_mutex_lock(&run->lock);
    int rank = program_sync_rank(run->program, self->index, op);
    bool *loaded = &run->loaded[rank * run->program->kernel_count + op->object], was = *loaded;
    *loaded = true;
    run_unlock(run);
    return was;
}

static bool sync_host(struct run_thread *self, const struct op *op, int64_t iteration)
{
    struct diag diag;
    int64_t begin_ns = run_come_ns(self);
    bool done = true;
    diag_init(&diag);
    switch (self->pumped.sync == op ? SYNC_RETRY : op->sync) {
    case SYNC_STREAM:
    case SYNC_EVENT:
    case SYNC_DEVICE: done = sync_work(self, op, iteration, &diag); break;
    case SYNC_RETRY:
    case SYNC_STAGED:
        break; /* the memory of a run is there from its start; the wait of a copy is the next
                  operation; or the wait is over */
    case SYNC_LOAD: done = is_loaded(self, op) || sync_work(self, op, iteration, &diag); break;
    }
    self->pumped.sync = NULL;
    diag_fini(&diag);
    return done && worker_note_op(self, op, iteration, begin_ns, run_step_ns(self));
}

/* ---- branches -------------------------------------------------------------------------------- */

/* Asks whether the event, or all work of the stream or the rank, is over. False where the run failed. */
static bool ask_device(struct run_thread *self, const struct op *op, int64_t iteration, bool *yes)
{
    struct run *run = self->run;
    const int rank = program_sync_rank(run->program, self->index, op);
    enum status status;
    struct diag diag;
    diag_init(&diag);
    if (op->sync == SYNC_EVENT)
        status = device_event_query(run->events[run_instance(run, op, iteration)], yes, &diag);
    else {
        const int64_t now_ns = run_now(run); /* a deadline that is over: no wait */
        status = op->sync == SYNC_STREAM
                     ? device_stream_sync(run->streams[op->stream].handle, now_ns, &diag)
                     : device_sync(run->ranks[rank].device, now_ns, &diag);
        *yes = status == STATUS_OK;
        status = status == STATUS_LIMIT ? STATUS_OK : status;
    }
    const bool asked = run_check(run, status, &diag);
    diag_fini(&diag);
    return asked;
}

/* A witness says which branch it has taken; else the seed. */
static bool choose_branch(const struct run_thread *self, const struct op *op)
{
    const struct run *run = self->run;
    const int64_t drawn[] = {run->config.seed, index_of(run, op)};
    const int choice = run->config.gate ? gate_choice(run->config.gate) : -1;
    return choice >= 0 ? choice == 0 : hash_bytes(drawn, sizeof drawn) % 2 == 0;
}

/* The answer of the host's own objects; what can be done is done. With the lock held. */
static bool try_host(struct run_thread *self, const struct op *op, int64_t iteration)
{
    struct run *run = self->run;
    if (op->kind == OP_QUERY_QUEUE)
        return run->queued[op->object] > 0;
    if (op_operand(op->kind) == OPERAND_FLAG) {
        const bool yes = worker_flag_suffices(run, op, iteration);
        if (yes && op->kind == OP_ACQUIRE)
            worker_change_flag(run, op, iteration);
        return yes;
    }
    if (!may_proceed(self, op))
        return false;
    worker_pass(self, op);
    run_wake_able(run, worker_object_of(self, op), turn_is_able);
    return true;
}

/* Asks, or tries. False when the run stopped or failed. */
static bool worker_ask(struct run_thread *self, const struct op *op, int64_t iteration, bool *yes)
{
    struct run *run = self->run;
    const int64_t begin_ns = run_come_ns(self);
    if (op->kind == OP_QUERY && !ask_device(self, op, iteration, yes))
        return false;
    if (op->kind == OP_CHOOSE)
        *yes = choose_branch(self, op);
    pthread_mutex_lock(&run->lock);
    bool done = !run_stopped(run);
    if (done && op->kind != OP_QUERY && op->kind != OP_CHOOSE)
        *yes = try_host(self, op, iteration);
    done = done && run_note(self, *yes ? LOG_OP : LOG_NO, index_of(run, op), iteration, begin_ns,
                            run_step_ns(self));
    run_unlock(run);
    return done;
}

/* ---- the rest -------------------------------------------------------------------------------- */

static bool worker_spend(struct run_thread *self, const struct op *op, int64_t iteration)
{
    struct run *run = self->run;
    int64_t begin_ns = run_step_ns(self);
    if (run_is_timed(run) && !run_spend(run, op->time_ns))
        return false;
    return worker_note_op(self, op, iteration, begin_ns, run_step_ns(self));
}

/* With the lock held. */
static bool count_complete(struct run_thread *self, const struct op *op, int64_t iteration)
{
    struct run *run = self->run;
    struct run_in_flight *state = run_iteration(run, self->rank, iteration);
    int64_t now_ns = run_step_ns(self);
    assert(state->submit_left > 0 && run->ranks[self->rank].handed_out > 0);
    state->submit_left--;
    if (--run->ranks[self->rank].handed_out == 0 &&
        (run->ranks[self->rank].graphs ||
         run->program->plan->pipeline.retire == RETIRE_LAST_TASK)) /* its driver waits for it */
        run_wake(run, &run->ranks[self->rank].handed_out);
    policy_complete(run->policy, self->rank, op->task, iteration);
    choose_submitted(self);
    if (drive_is_ready(run, state))
        run_wake(run, state);
    return worker_note_op(self, op, iteration, now_ns, now_ns);
}

/* Memory itself is there for the whole run; what counts is the order, which the log keeps. */
static bool mark_buffer(struct run_thread *self, const struct op *op, int64_t iteration)
{
    int64_t now_ns = run_step_ns(self);
    return worker_note_op(self, op, iteration, now_ns, now_ns);
}

typedef bool worker_step(struct run_thread *self, const struct op *op, int64_t iteration);

static bool worker_locked(struct run_thread *self, const struct op *op, int64_t iteration,
                          worker_step *step)
{
    pthread_mutex_lock(&self->run->lock);
    bool done = step(self, op, iteration);
    run_unlock(self->run);
    return done;
}

/* True if the operation has no effect, as there is nothing to wait for. A lock that was taken for a wait is released in any
   case; an await looks itself. With the lock held where it asks the driver, and for an unlock. */
static bool worker_has_no_effect(const struct run_thread *self, const struct op *op,
                                 int64_t iteration)
{
    if (op->kind == OP_UNLOCK)
        return self->run->holders[op->object] != self->index;
    return !depends(self->run, self->rank, op, iteration);
}

/* A wait that does not apply is no push at all, and takes no lock. */
static bool note_without_effect(struct run_thread *self, const struct op *op, int64_t iteration,
                                bool *skipped)
{
    struct run *run = self->run;
    const bool locked = op->kind == OP_UNLOCK || asks_driver(run, op);
    bool done = true;
    if (locked)
        pthread_mutex_lock(&run->lock);
    *skipped = worker_has_no_effect(self, op, iteration);
    int64_t now_ns = run_step_ns(self);
    if (*skipped)
        done = worker_note_op(self, op, iteration, now_ns, now_ns);
    if (locked)
        run_unlock(run);
    return done;
}

/* False when the run stopped or failed. */
static bool worker_execute(struct run_thread *self, const struct op *op, int64_t iteration)
{
    bool skipped = false;
    if (self->run->policy && op_dependence(op) > 0 && op->kind != OP_AWAIT) {
        const bool done = note_without_effect(self, op, iteration, &skipped);
        if (skipped)
            return done;
    }
    switch (op->kind) {
    case OP_HOST:
    case OP_COMPUTE: return worker_spend(self, op, iteration);
    case OP_LAUNCH:
    case OP_COPY:
    case OP_COLLECTIVE:
    case OP_GROUP: return push_work(self, op, iteration);
    case OP_CALLBACK: return push_callback(self, op, iteration);
    case OP_WRITE: return push_step(self, op, iteration, worker_write);
    case OP_WAIT_FLAG: return push_step(self, op, iteration, worker_wait_flag);
    case OP_RECORD: return push_record(self, op, iteration);
    case OP_WAIT: return push_wait(self, op, iteration);
    case OP_ALLOC: return push_mark(self, op, iteration);
    case OP_HOST_ALLOC:
    case OP_FREE:
    case OP_RECORD_STREAM: return mark_buffer(self, op, iteration);
    case OP_SYNC: return sync_host(self, op, iteration);
    case OP_SIGNAL: return worker_locked(self, op, iteration, set_flag);
    case OP_AWAIT:
    case OP_ACQUIRE: return worker_await_flag(self, op, iteration);
    case OP_LOCK:
    case OP_UNLOCK:
    case OP_PUT:
    case OP_GET:
    case OP_TICKET:
    case OP_SERVE: return worker_take_turn(self, op, iteration);
    case OP_COMPLETE: return worker_locked(self, op, iteration, count_complete);
    case OP_QUERY:
    case OP_QUERY_FLAG:
    case OP_QUERY_QUEUE:
    case OP_CHOOSE:
    case OP_ELSE:
    case OP_END:
    case OP_CLEAR:
    case OP_ABORT: /* refused: runtime.c */
    case OP_BARRIER: break;
    }
    assert(0 && "an operation that is lowered to others");
    return false;
}

bool worker_is_work(const struct op *op)
{
    if (op->kind == OP_SYNC)
        return op->sync == SYNC_LOAD;
    return op->task >= 0 && op_is_work(op->kind);
}

bool worker_own_work(struct run_thread *self, int task, int64_t iteration)
{
    const struct program *p = self->run->program;
    const struct body *what = &p->bodies[self->rank * p->tasks + task];
    bool done = true;
    self->call.worked = true;
    for (int i = 0; i < what->count && done; i++)
        if (worker_is_work(&p->ops[what->first + i]))
            done = worker_execute(self, &p->ops[what->first + i], iteration);
    return done;
}

/* ---- what a profiler sees ---------------------------------------------------------------------- */

/* The range of a task's work begins at its first operation and ends with its last. In other forms of
   plan each operation has its own. */
static int last_work(const struct program *p, const struct body *body)
{
    int last = -1;
    for (int i = 0; i < body->count; i++)
        if (worker_is_work(&p->ops[body->first + i]))
            last = i;
    return last;
}

/* Before operation `i` of the body. */
static void begin_range(struct run_thread *self, struct range *range, const struct body *body,
                        int i, int64_t iteration)
{
    const struct run *run = self->run;
    const struct program *p = run->program;
    const struct run_functions *functions = run->config.functions;
    const struct op *op = &p->ops[body->first + i];
    char subject[160];
    if (range->open || !(p->tasks ? op->task >= 0 && worker_is_work(op) : op_is_work(op->kind)))
        return;
    bool skipped = functions && functions->skips(functions->arg, self->rank, op->task);
    if (p->tasks)
        nvtx_begin(run->config.serial, p->plan->pipeline.tasks[op->task].name, iteration, skipped);
    else
        nvtx_begin(false, program_op_subject(p, op, 0, subject, sizeof subject), -1, false);
    *range = (struct range){p->tasks ? last_work(p, body) : i, true};
}

static void end_range(struct range *range)
{
    if (range->open)
        nvtx_end();
    range->open = false;
}

/* ---- bodies ------------------------------------------------------------------------------------ */

/* The oldest instance of the queue becomes the current one; false where there is none. With the lock held. */
static bool worker_take_first(struct run_thread *self)
{
    assert(self->queue_first < self->queue_cap && self->queue_count <= self->queue_cap);
    if (run_stopped(self->run) || self->queue_count == 0)
        return false;
    self->current = self->queue[self->queue_first];
    self->queue_first = (self->queue_first + 1) % self->queue_cap;
    self->queue_count--;
    return true;
}

/* The current instance is taken: a step. With the lock held. */
static bool note_taken(struct run_thread *self, int64_t begin_ns)
{
    struct run *run = self->run;
    if (run->program->plan->pipeline.slot_reset == SLOT_RESET_SUBMIT)
        drive_arm_slot(run, self->rank, self->current.task, self->current.iteration);
    return run_note(self, LOG_TAKE, self->current.task, self->current.iteration, begin_ns,
                    run_step_ns(self));
}

/* The last steps of a task, and the taking of the next one if it is there, in one section of the lock: SIGNAL and
   COMPLETE follow each other. */
static bool end_task(struct run_thread *self, const struct op *signal, int64_t iteration)
{
    struct run *run = self->run;
    const struct op *completed = signal + 1;
    assert(signal->kind == OP_SIGNAL && completed->kind == OP_COMPLETE && !self->has_taken);
    pthread_mutex_lock(&run->lock);
    push_count_record(run, completed->task, run_iteration(run, self->rank, iteration));
    bool done = set_flag(self, signal, iteration) && count_complete(self, completed, iteration);
    if (done && self->loops && !run->config.chooser && worker_take_first(self))
        self->has_taken = done = note_taken(self, run_step_ns(self));
    run_unlock(run);
    return done;
}

/* A function stands for all the work of its task. The loading of a kernel belongs to none: it is the launch's. */
static bool is_by_function(const struct run *run, const struct op *op)
{
    return run->ops[op - run->program->ops].works && run_has_function(run, op->task);
}

static void note_place(struct run_thread *self, const struct op *op, int64_t iteration)
{
    atomic_store_explicit(&self->at, (int64_t)index_of(self->run, op) << 32 | iteration,
                          memory_order_relaxed);
}

/* Execute the operation at this place, and go past it. */
static bool execute_next(struct run_thread *self, const struct body *what, struct run_place *place,
                         int64_t iteration)
{
    struct run *run = self->run;
    assert(place->next < what->count);
    const struct op *op = &run->program->ops[what->first + place->next];
    bool by_function = is_by_function(run, op), done = true, yes = true;
    note_place(self, op, iteration);
    run_begin_step(self);
    if (run->watched)
        begin_range(self, &place->range, what, place->next, iteration);
    if (by_function && graph_replays(run, self->rank)) /* the graph has what the function pushed */
        work_refresh(run, op, iteration);
    else if (by_function)
        done = called_run(self, op, iteration);
    else if (run->ops[what->first + place->next].ends)
        done = end_task(self, op, iteration), place->next++;
    else if (op_has_branches(op))
        done = worker_ask(self, op, iteration, &yes);
    else
        done = worker_execute(self, op, iteration);
    run_end_step(self);
    if (self->log && !run->program->tasks)
        journal_throttle(run->journal);
    if (op->kind == OP_SYNC && op->sync == SYNC_RETRY)
        place->next++; /* past the sync */
    if (place->range.open && place->next == place->range.last)
        end_range(&place->range);
    place->next = program_behind(run->program, what, place->next, yes ? 1 : op->otherwise);
    return done;
}

static bool execute_body(struct run_thread *self, int body, int64_t iteration)
{
    ASSERT_INDEX(body, self->run->program->body_count);
    const struct body *what = &self->run->program->bodies[body];
    struct run_place place = {.next = 0};
    bool done = true;
    while (place.next < what->count && done)
        done = execute_next(self, what, &place, iteration);
    end_range(&place.range); /* it may have failed in between */
    if (done)
        atomic_store_explicit(&self->at, -1, memory_order_relaxed);
    return done;
}

/* ---- threads --------------------------------------------------------------------------------- */

void host_thread_run(struct run_thread *self)
{
    execute_body(self, self->run->program->threads[self->index].body, 0);
}

void callback_run(struct run_thread *self, int body, int64_t iteration)
{
    execute_body(self, body, iteration);
}

/* False at the end. With the lock held. */
static bool wait_for_instance(struct run_thread *self)
{
    struct run *run = self->run;
    if (run->config.chooser)
        return choose_wait(self) && worker_take_first(self);
    while (!run_is_on_caller(run) && !run_stopped(run) && self->queue_count == 0 &&
           !run->ranks[self->rank].driver_done)
        run_block(self, self->queue);
    return worker_take_first(self);
}

static bool worker_take(struct run_thread *self)
{
    struct run *run = self->run;
    run_begin_step(self);
    pthread_mutex_lock(&run->lock);
    int64_t begin_ns = run_come_ns(self);
    bool taken = wait_for_instance(self);
    if (taken) {
        taken = note_taken(self, begin_ns);
        run_end_step(self);
    }
    run_unlock(run);
    return taken;
}

static int current_body(const struct run_thread *self)
{
    return self->rank * self->run->program->tasks + self->current.task;
}

static bool execute_current(struct run_thread *self)
{
    return execute_body(self, current_body(self), self->current.iteration);
}

bool worker_submit(struct run_thread *self)
{
    struct run *run = self->run;
    self->pumped.came_ns = 0;
    pthread_mutex_lock(&run->lock);
    bool taken = note_taken(self, run_step_ns(self));
    run_unlock(run);
    return taken && execute_current(self);
}

void worker_run(struct run_thread *self)
{
    struct run *run = self->run;
    self->loops = true;
    while (self->has_taken || worker_take(self)) {
        self->has_taken = false;
        if (!execute_current(self))
            return;
        if (run->journal)
            journal_throttle(run->journal);
    }
}

/* ---- without a thread ------------------------------------------------------------------------ */

/* True if what other workers do lets the operation take effect. No other thread changes it, here and below. */
static bool others_allow(const struct run_thread *self, const struct op *op, int64_t iteration)
{
    if (op_waits(op->kind) != WAITS_THREADS || !depends(self->run, self->rank, op, iteration))
        return true;
    return op_operand(op->kind) == OPERAND_FLAG
               ? worker_flag_lets_pass(self->run, self->rank, op, iteration)
               : may_proceed(self, op);
}

/* True if a wait of a stream is a push. Not one that is left out. */
static bool is_pushed(const struct run_thread *self, const struct op *op, int64_t iteration)
{
    const struct run *run = self->run;
    if (!op_pushes(op->kind) ||
        (op->kind == OP_WAIT && run->ops[index_of(run, op)].vain && !self->log))
        return false;
    return depends(run, self->rank, op, iteration);
}

/* The room that the function of a task may need (swpipe_work): that of the plan's work. */
static struct device_event *lacking_for_function(struct run *run, const struct body *what)
{
    int pushes = 0, stream = -1;
    for (int i = 0; i < what->count; i++) {
        const struct op *op = &run->program->ops[what->first + i];
        if (!worker_is_work(op) || !op_pushes(op->kind))
            continue;
        pushes++;
        stream = op->stream;
    }
    return pushes ? push_obstacle(run, stream, pushes) : NULL;
}

/* The room that is lacking for the operation; NULL: none. */
static struct device_event *lacking_room(struct run_thread *self, const struct body *what,
                                         const struct op *op, int64_t iteration)
{
    struct run *run = self->run;
    if (!is_pushed(self, op, iteration) && !op_is_cpu_work(op->kind))
        return NULL;
    if (is_by_function(run, op))
        return run->ops[index_of(run, op)].is_call ? lacking_for_function(run, what) : NULL;
    return op_pushes(op->kind) ? push_obstacle(run, op->stream, 1) : NULL;
}

/* The streams that a wait of the host is for: those of the rank [*first, *last). */
static void worker_find_streams(const struct run_thread *self, const struct op *op, int *first,
                                int *last)
{
    const struct program *p = self->run->program;
    int begin = p->rank_first[self->rank], end = p->rank_first[self->rank + 1];
    *first = begin;
    *last = end;
    while (op->sync == SYNC_STREAM && p->rank_streams[*first] != op->stream)
        ++*first;
    if (op->sync == SYNC_STREAM)
        *last = *first + 1;
}

/* The call of a wait: a mark goes behind what each stream has now. */
static bool begin_sync(struct run_thread *self, const struct op *op, int64_t iteration)
{
    struct run *run = self->run;
    const struct program *p = run->program;
    int first, last;
    bool done = !op->snapshot || note_call(self, op, iteration);
    struct diag diag;
    diag_init(&diag);
    worker_find_streams(self, op, &first, &last);
    for (int k = first; k < last && done; k++) {
        struct device_event *mark = self->pumped.marks[k - p->rank_first[self->rank]];
        done = run_check(
            run, device_record(run->streams[p->rank_streams[k]].handle, mark, NULL, &diag), &diag);
    }
    diag_fini(&diag);
    return done;
}

/* The first mark that is not reached; NULL: there is none, or the run has failed. */
static struct device_event *mark_ahead(struct run_thread *self, const struct op *op)
{
    struct run *run = self->run;
    int first, last, base = run->program->rank_first[self->rank];
    struct diag diag;
    bool reached = true;
    diag_init(&diag);
    worker_find_streams(self, op, &first, &last);
    int k = first;
    while (k < last && reached &&
           run_check(run, device_event_query(self->pumped.marks[k - base], &reached, &diag), &diag))
        k += reached;
    diag_fini(&diag);
    return reached ? NULL : self->pumped.marks[k - base];
}

/* The event that the host must wait for before it goes on; NULL: none, or the run has failed. */
static struct device_event *sync_obstacle(struct run_thread *self, const struct op *op,
                                          int64_t iteration)
{
    if (op_may_sync(op))
        return NULL;
    if (!self->pumped.sync) {
        self->pumped.sync = op;
        if ((op->sync == SYNC_LOAD && is_loaded(self, op)) || !begin_sync(self, op, iteration))
            return NULL;
    }
    return mark_ahead(self, op);
}

/* True if the operation can take effect now. Else pumped.on says which event it is for, if it is one. */
static bool can_execute(struct run_thread *self, const struct body *what, const struct op *op)
{
    int64_t iteration = self->current.iteration;
    self->pumped.on = op->kind == OP_SYNC ? sync_obstacle(self, op, iteration)
                                          : lacking_room(self, what, op, iteration);
    return !self->pumped.on && others_allow(self, op, iteration) && !run_stopped(self->run);
}

/* Left where it is. Always false. */
static bool worker_leave(struct run_thread *self)
{
    if (self->pumped.came_ns == 0)
        self->pumped.came_ns = run_step_ns(self);
    end_range(&self->pumped.place.range);
    return false;
}

static bool begin_instance(struct run_thread *self)
{
    if (!self->has_taken && (self->queue_count == 0 || !worker_take(self)))
        return worker_leave(self);
    assert(!self->pumped.in_instance && !self->pumped.sync);
    self->has_taken = false;
    self->pumped.in_instance = true;
    self->pumped.place = (struct run_place){.next = 0};
    self->pumped.came_ns = 0;
    return true;
}

static bool go_on_in_instance(struct run_thread *self)
{
    const struct run *run = self->run;
    const struct body *what = &run->program->bodies[current_body(self)];
    struct run_place *place = &self->pumped.place;
    assert(run_is_on_caller(run) && place->next < what->count);
    const struct op *op = &run->program->ops[what->first + place->next];
    if (!can_execute(self, what, op)) {
        note_place(self, op, self->current.iteration);
        return worker_leave(self);
    }
    bool last = place->next + (run->ops[what->first + place->next].ends ? 2 : 1) >= what->count;
    int64_t iteration = self->current.iteration; /* the last operation takes the next instance */
    bool done = execute_next(self, what, place, iteration);
    self->pumped.came_ns = 0;
    if (!done)
        return worker_leave(self);
    if (!last)
        return true;
    self->pumped.in_instance = false;
    atomic_store_explicit(&self->at, -1, memory_order_relaxed);
    if (run->journal)
        journal_throttle(run->journal);
    return true;
}

bool worker_go_on(struct run_thread *self)
{
    bool moved = false, goes_on = true;
    while (goes_on && !run_stopped(self->run)) {
        goes_on = self->pumped.in_instance ? go_on_in_instance(self) : begin_instance(self);
        moved = moved || goes_on;
    }
    return moved;
}

bool worker_is_late(struct run_thread *self)
{
    const struct program *p = self->run->program;
    const struct op *op = &p->ops[p->bodies[current_body(self)].first + self->pumped.place.next];
    return waited_too_long(self, op, self->current.iteration);
}
