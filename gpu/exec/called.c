/* SPDX-License-Identifier: Apache-2.0 */
/*
 * called.c - a function of the user in place of a task's work.
 *
 * Only its author knows the device work of a function. Where the run is recorded the function works
 * between two marks on the task's stream, each with a stamp:
 *
 *     thread   | function ------------------------------- |
 *     stream   waits |      | since |   its pushes   | stamp | the task's event
 *
 * `since` is pushed right before the function's first push, so that host time until then is no device
 * time; `stamp` after its last. In the log this is one entry in place of the plan's device work, which
 * starts when `since` has passed and ends when `stamp` has: the machine takes it for the plan's. A
 * function without a push takes no device time. During the function its thread logs nothing else: the
 * plan's own work (swpipe_work) is part of it.
 *
 * The function is called in the place of the device work: under the locks that the plan's push is made under, and behind
 * the first use of its communicator. The CPU work that the plan gives such a task, before that place or behind it
 * (host_after), is part of the function; its step is taken in its own place, without time. Where the plan has nothing else
 * for the task (work: host), its last CPU work lasts as long as the function.
 */
#include "run.h"

#include <assert.h>

/* The last operation of the task of either kind; NULL: there is none. */
static const struct op *called_find(const struct program *p, const struct body *body, bool device)
{
    const struct op *found = NULL;
    for (int i = 0; i < body->count; i++) {
        const struct op *op = &p->ops[body->first + i];
        if (op->task >= 0 && (device ? op_is_device_work(op->kind) : op_is_cpu_work(op->kind)))
            found = op;
    }
    return found;
}

static bool push_mark_stamped(struct run_thread *self, struct stamp *stamp, struct diag *diag)
{
    struct run *run = self->run;
    assert(!self->log && self->call.log); /* its thread logs nothing meanwhile */
    struct run_stream *stream = &run->streams[self->call.op->stream];
    return run_check(run, device_record(stream->handle, stream->mark, stamp, diag), diag);
}

bool called_pushes(struct run_thread *self)
{
    struct call *call = &self->call;
    struct diag diag;
    if (!call->entry || call->marked)
        return true;
    call->marked = true;
    diag_init(&diag);
    bool done = push_mark_stamped(self, &call->entry->since, &diag);
    diag_fini(&diag);
    return done;
}

/* The function has returned: the second mark, and the entry is complete. In a launch queue the two are one operation, the
   plan's: where the function has pushed that, the mark takes no room of its own. */
static bool end_device_part(struct run_thread *self)
{
    struct call *call = &self->call;
    struct diag diag;
    diag_init(&diag);
    bool done = push_enter(self, call->op, !call->worked, &diag) &&
                push_mark_stamped(self, &call->entry->stamp, &diag);
    if (done) {
        call->entry->at_ns = call->entry->end_ns = run_now(self->run);
        log_commit(call->log);
    }
    done = push_leave(self, call->op, !call->worked, done, &diag);
    diag_fini(&diag);
    return done;
}

static bool call(struct run_thread *self, int task, int64_t iteration)
{
    const struct run_functions *functions = self->run->config.functions;
    assert(run_has_function(self->run, task));
    return functions->call(functions->arg, self, task, iteration);
}

static bool call_host_part(struct run_thread *self, const struct op *op, int64_t iteration)
{
    struct run *run = self->run;
    int64_t begin_ns = run_now(run);
    struct log *log = self->log;
    self->log = NULL;
    bool done = call(self, op->task, iteration);
    self->log = log;
    return done &&
           run_note(self, LOG_OP, (int)(op - run->program->ops), iteration, begin_ns, run_now(run));
}

static bool call_device_part(struct run_thread *self, const struct op *op, int64_t iteration)
{
    struct run *run = self->run;
    int64_t now_ns = run_now(run);
    struct log_entry *entry =
        run_log(self, LOG_CALL, (int)(op - run->program->ops), iteration, now_ns, now_ns);
    if (!entry)
        return false;
    self->call = (struct call){.op = op, .log = self->log, .entry = entry};
    self->log = NULL;
    bool done = call(self, op->task, iteration) && end_device_part(self);
    self->log = self->call.log;
    self->call = (struct call){0};
    return done;
}

void called_open(struct run *run)
{
    const struct program *p = run->program;
    for (int body = 0; p->tasks && body < p->ranks * p->tasks; body++) {
        const struct op *device = called_find(p, &p->bodies[body], true);
        const struct op *op = device ? device : called_find(p, &p->bodies[body], false);
        if (op)
            run->ops[op - p->ops].is_call = true;
    }
}

bool called_run(struct run_thread *self, const struct op *op, int64_t iteration)
{
    const struct run *run = self->run;
    if (!run->ops[op - run->program->ops].is_call) {
        const int64_t now_ns = run_step_ns(self);
        return !self->log || op->task < 0 || !op_is_cpu_work(op->kind) ||
               run_note(self, LOG_OP, (int)(op - run->program->ops), iteration, now_ns, now_ns);
    }
    if (!self->log)
        return call(self, op->task, iteration);
    return op_is_cpu_work(op->kind) ? call_host_part(self, op, iteration)
                                    : call_device_part(self, op, iteration);
}
