/* SPDX-License-Identifier: Apache-2.0 */
/*
 * in_task.c - the calls of a task's function, with its context (swpipe.h). Without a context each does nothing, and its
 * result says so.
 */
#include "gpu/exec/graph.h"
#include "swpipe_impl.h"

#include <stdarg.h>
#include <stdio.h>

int64_t swpipe_iteration(const struct swpipe_context *context)
{
    return context ? context->iteration->number : -1;
}

int swpipe_rank(const struct swpipe_context *context)
{
    return context ? context->self->rank : -1;
}

/* Not from the release of a value: its iteration is locked. */
static bool may_call(struct swpipe_context *context, const char *function)
{
    if (!context)
        return false;
    if (!iteration_is_releasing(context->iteration))
        return true;
    swpipe_fail(context, "%s: the release of a value cannot use its iteration", function);
    return false;
}

void swpipe_set_result(struct swpipe_context *context, void *result)
{
    if (!may_call(context, "swpipe_set_result"))
        return;
    pthread_mutex_lock(&context->iteration->lock);
    context->iteration->result = result;
    pthread_mutex_unlock(&context->iteration->lock);
}

void *swpipe_batch(const struct swpipe_context *context)
{
    return context ? context->iteration->batch : NULL;
}

int swpipe_fail(struct swpipe_context *context, const char *format, ...)
{
    va_list args;
    if (!context || !format)
        return -1;
    va_start(args, format);
    vsnprintf(context->why, sizeof context->why, format, args);
    va_end(args);
    return -1;
}

int swpipe_set(struct swpipe_context *context, const char *name, void *value,
               const struct swpipe_kind *kind)
{
    if (!may_call(context, "swpipe_set"))
        return -1;
    if (!name)
        return swpipe_fail(context, "swpipe_set: the name is NULL");
    return iteration_set(context->iteration, name, value, kind, context->task,
                         context_stream(context))
               ? 0
               : -1;
}

void *swpipe_get(struct swpipe_context *context, const char *name)
{
    return name && may_call(context, "swpipe_get") ? iteration_get(context->iteration, name) : NULL;
}

void swpipe_unset(struct swpipe_context *context, const char *name)
{
    if (name && may_call(context, "swpipe_unset"))
        iteration_unset(context->iteration, name, context_stream(context));
}

void *swpipe_alloc(struct swpipe_context *context, const char *name, size_t bytes)
{
    struct diag diag;
    if (!may_call(context, "swpipe_alloc"))
        return NULL;
    if (!name || graph_captures(context->self->run, context->self->rank)) {
        swpipe_fail(context, name ? "a device_only function cannot allocate"
                                  : "swpipe_alloc: the name is NULL");
        return NULL;
    }
    diag_init(&diag);
    struct block *block = iteration_alloc(context->iteration, name, bytes ? bytes : 1,
                                          context->task, context_stream(context), &diag);
    if (!block)
        swpipe_fail(context, "%s", diag_first_text(&diag));
    diag_fini(&diag);
    return block ? device_address(block->buffer) : NULL;
}

void *swpipe_buffer(struct swpipe_context *context, const char *name, size_t *bytes)
{
    if (!context)
        return NULL;
    const struct run *run = context->self->run;
    const struct program *p = run->program;
    for (int b = 0; b < p->buffer_count && name; b++) {
        if (p->buffers[b].rank != context->self->rank || strcmp(p->buffers[b].name, name) != 0 ||
            run->buffers[b].count == 0)
            continue;
        if (bytes)
            *bytes = run->buffers[b].bytes;
        return device_address(data_buffer(run, b, context->self->current.iteration).buffer);
    }
    return NULL;
}

void *swpipe_stream(struct swpipe_context *context)
{
    return context && called_pushes(context->self) ? device_stream_handle(context_stream(context))
                                                   : NULL;
}

int swpipe_launch(struct swpipe_context *context, void (*function)(void *arg), void *arg)
{
    if (!context || !function)
        return swpipe_fail(context, "swpipe_launch: the function is NULL");
    const struct task *task = &context->engine->program->plan->pipeline.tasks[context->task];
    struct device_op op = {
        .kind = DEVICE_OP_CALLBACK, .label = task->name, .callback = {.run = function, .arg = arg}};
    struct diag diag;
    diag_init(&diag);
    bool pushed = called_pushes(context->self) &&
                  device_push(context_stream(context), &op, NULL, &diag) == STATUS_OK;
    if (!pushed)
        swpipe_fail(context, "%s", diag_first_text(&diag));
    diag_fini(&diag);
    return pushed ? 0 : -1;
}

int swpipe_work(struct swpipe_context *context)
{
    if (context && called_pushes(context->self) &&
        worker_own_work(context->self, context->task, context->self->current.iteration))
        return 0;
    return swpipe_fail(context, "the plan's work could not be pushed");
}
