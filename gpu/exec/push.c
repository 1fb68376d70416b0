/* SPDX-License-Identifier: Apache-2.0 */
/*
 * push.c - an operation goes to its stream.
 *
 * One operation of the program may be several of the device: what makes data checkable goes before
 * the work, events for retirement and for the launch queue after it. A stream's gate keeps them
 * together. The stamp, and with it the number that orders pushes in the replay, is that of the
 * operation proper.
 *
 * Of a period that is given to the device as a graph every push is logged and counted as any other, but the
 * device has it already.
 */
#include "graph.h"
#include "run.h"

#include <assert.h>

/* One push under way. */
struct push {
    struct run_thread *self;
    struct run_stream *stream;
    const struct op *op;
    int64_t iteration, begin_ns;
    struct log_entry *entry; /* NULL: not recorded */
    struct stamp *stamp;
    struct diag diag;
};

/* Wait for room in the launch queue: for what was pushed `cap` operations ago, or the first mark behind it. */
static bool push_await_room(struct run *run, int index, struct diag *diag)
{
    struct run_stream *stream = &run->streams[index];
    int64_t before = stream->items - stream->cap, mark = before / stream->marked;
    if (!stream->room || before < 0 || mark < stream->passed)
        return true;
    /* the mark has not been recorded again since */
    assert(mark < stream->items / stream->marked &&
           mark + stream->room_marks >= stream->items / stream->marked);
    struct device_event *event = stream->room[mark % stream->room_marks];
    stream->passed = mark + 1;
    /* the calling thread has a limit of its own (pump.c); here it waits in a function */
    int64_t deadline_ns = run_is_on_caller(run) && run->config.wait_ns
                              ? device_deadline(run_now(run), run->config.wait_ns)
                              : DEVICE_FOREVER;
    return run_check(run, device_event_sync(event, deadline_ns, diag), diag);
}

/* The mark that the last of `count` pushes will wait for; no more than have marks now. */
struct device_event *push_obstacle(struct run *run, int index, int count)
{
    struct run_stream *stream = &run->streams[index];
    int most = stream->cap - stream->marked + 1;
    int64_t before = stream->items - stream->cap + (count < most ? count : most) - 1;
    int64_t mark = before / stream->marked;
    struct diag diag;
    bool passed = false;
    if (!stream->room || before < 0 || mark < stream->passed)
        return NULL;
    struct device_event *event = stream->room[mark % stream->room_marks];
    diag_init(&diag);
    bool known = run_check(run, device_event_query(event, &passed, &diag), &diag);
    diag_fini(&diag);
    if (passed)
        stream->passed = mark + 1;
    return known && !passed ? event : NULL;
}

bool push_enter(struct run_thread *self, const struct op *op, bool takes_room, struct diag *diag)
{
    struct run *run = self->run;
    if (run->streams[op->stream].shared)
        pthread_mutex_lock(&run->streams[op->stream].gate);
    return !run_stopped(run) && (!takes_room || push_await_room(run, op->stream, diag));
}

/* Enter the gate of the stream and get a record. Ended with push_end in any case. */
static bool push_op_begin(struct push *push, struct run_thread *self, const struct op *op,
                          int64_t iteration)
{
    struct run *run = self->run;
    *push = (struct push){.self = self,
                          .stream = &run->streams[op->stream],
                          .op = op,
                          .iteration = iteration,
                          .begin_ns = run_come_ns(self)};
    diag_init(&push->diag);
    if (!push_enter(self, op, true, &push->diag))
        return false;
    push->entry = run_log(self, LOG_OP, (int)(op - run->program->ops), iteration, push->begin_ns,
                          push->begin_ns);
    push->stamp = push->entry ? &push->entry->stamp : NULL;
    return push->entry || !self->log;
}

static bool mark_room(struct run *run, int index, struct diag *diag)
{
    struct run_stream *stream = &run->streams[index];
    int64_t items = ++stream->items, mark = items / stream->marked - 1;
    if (!stream->room || items % stream->marked != 0)
        return true;
    struct device_event *event = stream->room[mark % stream->room_marks];
    return run_check(run, device_record(stream->handle, event, NULL, diag), diag);
}

bool push_leave(struct run_thread *self, const struct op *op, bool takes_room, bool done,
                struct diag *diag)
{
    struct run *run = self->run;
    done = done && (!takes_room || mark_room(run, op->stream, diag));
    if (run->streams[op->stream].shared)
        pthread_mutex_unlock(&run->streams[op->stream].gate);
    return done;
}

/* Leave the gate; `done`: the operation proper is in the stream. */
static bool push_op_end(struct push *push, bool done)
{
    if (done && push->entry) {
        push->entry->at_ns = push->entry->end_ns = run_now(push->self->run);
        log_commit(push->self->log);
    }
    done = push_leave(push->self, push->op, true, done, &push->diag);
    diag_fini(&push->diag);
    return done;
}

/* True if a graph brings this push. Then it has got its number. */
static bool is_in_graph(struct push *push)
{
    struct run *run = push->self->run;
    if (!graph_replays(run, push->self->rank))
        return false;
    graph_count(run, push->self->rank, push->stamp);
    return true;
}

static bool push_op(struct push *push, const struct device_op *op)
{
    if (is_in_graph(push))
        return true;
    enum status status = device_push(push->stream->handle, op, push->stamp, &push->diag);
    return run_check(push->self->run, status, &push->diag);
}

/* ---- work ------------------------------------------------------------------------------------ */

struct device_turn push_turn(const struct run *run, const struct op *op)
{
    const struct program *p = run->program;
    int stream = program_stream_agent(p, op->stream);
    bool collective = op->kind == OP_COLLECTIVE; /* which its communicator completes */
    return (struct device_turn){.gate = run->config.gate,
                                .start = stream,
                                .finish = collective ? program_comm_agent(p, op->comm) : stream,
                                .enters = true,
                                .leaves = true};
}

bool push_work(struct run_thread *self, const struct op *op, int64_t iteration)
{
    struct run *run = self->run;
    struct push push;
    bool done = push_op_begin(&push, self, op, iteration);
    if (done && is_in_graph(&push))
        work_refresh(run, op, iteration);
    else if (done)
        done = run_check(run, work_push(run, op, iteration, push.stamp, &push.diag), &push.diag);
    return push_op_end(&push, done);
}

static void run_callback(void *arg)
{
    const struct run_op *callback = arg;
    callback_run(callback->thread, callback->body, 0);
}

/* Only host programs have callbacks, and they execute each operation once. */
bool push_callback(struct run_thread *self, const struct op *op, int64_t iteration)
{
    struct run *run = self->run;
    struct run_op *callback = &run->ops[op - run->program->ops];
    struct push push;
    callback->thread = &run->threads[op->callback];
    callback->body = op->object;
    bool done =
        push_op_begin(&push, self, op, iteration) &&
        push_op(&push, &(struct device_op){.kind = DEVICE_OP_CALLBACK,
                                           .label = run->program->names.items[op->name],
                                           .sm = op->sm,
                                           .time_ns = run_is_timed(run) ? op->time_ns : 0,
                                           .turn = push_turn(run, op),
                                           .callback = {.run = run_callback, .arg = callback}});
    return push_op_end(&push, done);
}

/* Host programs alone have such steps, and execute each operation once: `body` is free for the iteration. */
bool push_step(struct run_thread *self, const struct op *op, int64_t iteration,
               void (*step)(void *arg))
{
    struct run *run = self->run;
    struct run_op *given = &run->ops[op - run->program->ops];
    struct push push;
    given->thread = self;
    given->body = (int)iteration;
    bool done = push_op_begin(&push, self, op, iteration) &&
                push_op(&push, &(struct device_op){.kind = DEVICE_OP_CALLBACK,
                                                   .label = op_key(op->kind),
                                                   .turn = push_turn(run, op),
                                                   .callback = {step, given, &given->acted_ns}});
    return push_op_end(&push, done);
}

/* ---- events ---------------------------------------------------------------------------------- */

struct device_event *push_done_event(struct run *run, int rank, int task, int64_t iteration)
{
    const struct program *p = run->program;
    int family = rank * p->tasks + task;
    if (run->done)
        return run->done[family * p->window + (int)(iteration % p->window)];
    return run->events[family * run->slots + (int)(iteration % run->slots)];
}

void push_count_record(struct run *run, int task, struct run_in_flight *state)
{
    assert(state->record_left > 0);
    state->record_left--;
    state->last_recorded = state->last_recorded || task == run->program->last_task;
    if (drive_is_ready(run, state))
        run_wake(run, state);
}

/* In a run that is forced into an order the driver may have its turn before the task's next step; in others that
   step counts the record as well. */
static void count_forced(struct run *run, int rank, const struct op *op, int64_t iteration)
{
    if (!run_is_forced(run))
        return;
    pthread_mutex_lock(&run->lock);
    push_count_record(run, op->task, run_iteration(run, rank, iteration));
    run_unlock(run);
}

bool push_record(struct run_thread *self, const struct op *op, int64_t iteration)
{
    struct run *run = self->run;
    int instance = run_instance(run, op, iteration);
    bool of_task = run->program->tasks && op->task >= 0;
    struct push push;
    atomic_store_explicit(&run->recorded[instance], true,
                          memory_order_release); /* early: a wait now finds the event as it was */
    bool done = push_op_begin(&push, self, op, iteration) &&
                push_op(&push, &(struct device_op){.kind = DEVICE_OP_RECORD,
                                                   .event = run->events[instance]});
    if (done && of_task && run->done)
        done = run_check(run,
                         device_record(push.stream->handle,
                                       push_done_event(run, self->rank, op->task, iteration), NULL,
                                       &push.diag),
                         &push.diag);
    done = push_op_end(&push, done);
    if (done && of_task)
        count_forced(run, self->rank, op, iteration);
    return done;
}

/* A wait for nothing is pushed only where the run is recorded or forced into an order. */
bool push_wait(struct run_thread *self, const struct op *op, int64_t iteration)
{
    struct push push;
    if (self->run->ops[op - self->run->program->ops].vain && !self->log &&
        !run_is_forced(self->run))
        return !run_stopped(self->run);
    /* An armed slot means "never recorded", whatever its event was used for before. */
    struct run *run = self->run;
    int instance = run_instance(run, op, iteration);
    bool recorded = run->program->tasks == 0 || atomic_load(&run->recorded[instance]);
    struct device_event *event =
        recorded ? run->events[instance] : run->ranks[run->program->streams[op->stream].rank].never;
    bool done = push_op_begin(&push, self, op, iteration) &&
                push_op(&push, &(struct device_op){.kind = DEVICE_OP_WAIT, .event = event});
    return push_op_end(&push, done);
}

bool push_mark(struct run_thread *self, const struct op *op, int64_t iteration)
{
    struct push push;
    bool done =
        push_op_begin(&push, self, op, iteration) &&
        push_op(&push, &(struct device_op){.kind = DEVICE_OP_RECORD, .event = push.stream->mark});
    return push_op_end(&push, done);
}
