/* SPDX-License-Identifier: Apache-2.0 */
/* shortcut.c - a task's results, kept and put back instead of running it; see swpipe_impl.h. */
#include "swpipe_impl.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static int shortcut_refuse(struct swpipe_context *context, struct diag *diag, const char *what)
{
    int failed = swpipe_fail(context, "%s: %s", what, diag_first_text(diag));
    diag_fini(diag);
    return failed;
}

/* ---- keeping --------------------------------------------------------------------------------- */

static struct kept *shortcut_grow(struct shortcut *shortcut)
{
    if (!ARRAY_GROW(shortcut->kept, shortcut->count, shortcut->cap))
        return NULL;
    assert(shortcut->count < shortcut->cap && !shortcut->saved);
    struct kept *kept = &shortcut->kept[shortcut->count++];
    *kept = (struct kept){.buffer = -1};
    return kept;
}

static enum status copy_on_device(struct device_stream *stream, struct device_buffer *from,
                                  struct device_buffer *to, size_t bytes, struct diag *diag)
{
    if (bytes == 0)
        return STATUS_OK;
    struct device_op op = {.kind = DEVICE_OP_COPY,
                           .label = "shortcut",
                           .copy = {DIRECTION_D2D, {from, 0}, {to, 0}, (int64_t)bytes}};
    return device_push(stream, &op, NULL, diag);
}

static enum status shortcut_keep_memory(struct kept *kept, struct swpipe_context *context,
                                        struct device_buffer *from, size_t bytes, struct diag *diag)
{
    struct device *device = context->self->run->ranks[context->self->rank].device;
    enum status status = device_alloc_beside(device, bytes, &kept->copy, diag);
    kept->bytes = bytes;
    return status ? status : copy_on_device(context_stream(context), from, kept->copy, bytes, diag);
}

static enum status shortcut_keep_value(struct shortcut *shortcut, struct swpipe_context *context,
                                       const struct named_value *value, struct diag *diag)
{
    struct kept *kept = shortcut_grow(shortcut);
    if (!kept || !(kept->name = strdup(value->name)))
        return diag_no_memory(diag);
    if (value->memory)
        return shortcut_keep_memory(kept, context, value->memory->buffer, value->memory->bytes,
                                    diag);
    const struct swpipe_kind *kind = value->content ? value->kind : NULL;
    if (kind && kind->release && !kind->clone)
        return diag_error(diag, STATUS_USAGE, "value %s cannot be copied: its kind has no clone",
                          value->name);
    bool copied = kind && kind->clone;
    kept->content = copied ? kind->clone(value->content, kind->arg) : value->content;
    kept->kind = copied ? kind : NULL;
    return copied && !kept->content ? diag_no_memory(diag) : STATUS_OK;
}

static enum status keep_values(struct shortcut *shortcut, struct swpipe_context *context,
                               struct diag *diag)
{
    struct iteration *iteration = context->iteration;
    enum status status = STATUS_OK;
    pthread_mutex_lock(&iteration->lock);
    for (struct named_value *value = iteration->values; value && !status; value = value->next)
        if (value->setter == context->task)
            status = shortcut_keep_value(shortcut, context, value, diag);
    pthread_mutex_unlock(&iteration->lock);
    return status;
}

static enum status keep_buffers(struct shortcut *shortcut, struct swpipe_context *context,
                                struct diag *diag)
{
    const struct run *run = context->self->run;
    const struct program *p = run->program;
    const struct task *task = plan_task(p->plan, context->self->rank, context->task);
    int first = p->buffer_count / p->ranks * context->self->rank;
    enum status status = STATUS_OK;
    for (size_t k = 0; k < task->writes.count && !status; k++) {
        struct kept *kept = shortcut_grow(shortcut);
        if (!kept)
            return diag_no_memory(diag);
        kept->buffer = first + task->writes.items[k];
        struct device_ref from = data_buffer(run, kept->buffer, context->self->current.iteration);
        status = shortcut_keep_memory(kept, context, from.buffer, run->buffers[kept->buffer].bytes,
                                      diag);
    }
    return status;
}

static bool shortcut_capture(struct shortcut *shortcut, const struct swpipe_task *task)
{
    shortcut->captured = calloc(task->io_count + 1, sizeof(void *));
    bool captured = shortcut->captured;
    for (size_t i = 0; i < task->io_count && captured; i++) {
        shortcut->captured[i] = task->io[i].capture(task->io[i].arg);
        captured = shortcut->captured[i];
    }
    return captured;
}

int shortcut_save(struct shortcut *shortcut, struct swpipe_context *context,
                  const struct swpipe_task *task)
{
    struct diag diag;
    diag_init(&diag);
    enum status status =
        called_pushes(context->self) ? keep_values(shortcut, context, &diag) : STATUS_SYSTEM;
    if (!status)
        status = keep_buffers(shortcut, context, &diag);
    if (!status && !shortcut_capture(shortcut, task))
        status = diag_error(&diag, STATUS_SYSTEM, "capture failed");
    if (status) {
        shortcut_forget(shortcut, task);
        return shortcut_refuse(context, &diag, "cannot keep the results for a short-cut");
    }
    diag_fini(&diag);
    shortcut->saved = true;
    return 0;
}

/* ---- putting back ---------------------------------------------------------------------------- */

static enum status shortcut_put_value(const struct kept *kept, struct swpipe_context *context,
                                      struct diag *diag)
{
    struct iteration *iteration = context->iteration;
    struct device_stream *stream = context_stream(context);
    if (kept->copy) {
        struct block *block =
            iteration_alloc(iteration, kept->name, kept->bytes, context->task, stream, diag);
        return block ? copy_on_device(stream, kept->copy, block->buffer, kept->bytes, diag)
                     : STATUS_SYSTEM;
    }
    void *content = kept->kind ? kept->kind->clone(kept->content, kept->kind->arg) : kept->content;
    if (kept->kind && !content)
        return diag_no_memory(diag);
    if (iteration_set(iteration, kept->name, content, kept->kind, context->task, stream))
        return STATUS_OK;
    if (kept->kind && kept->kind->release)
        kept->kind->release(content, kept->kind->arg);
    return diag_no_memory(diag);
}

static enum status put_buffer(const struct kept *kept, struct swpipe_context *context,
                              struct diag *diag)
{
    struct device_ref to =
        data_buffer(context->self->run, kept->buffer, context->self->current.iteration);
    return copy_on_device(context_stream(context), kept->copy, to.buffer, kept->bytes, diag);
}

int shortcut_restore(const struct shortcut *shortcut, struct swpipe_context *context,
                     const struct swpipe_task *task)
{
    struct diag diag;
    assert(shortcut->on && shortcut->saved);
    enum status status = called_pushes(context->self) ? STATUS_OK : STATUS_SYSTEM;
    diag_init(&diag);
    for (size_t k = 0; k < shortcut->count && !status; k++)
        status = shortcut->kept[k].name ? shortcut_put_value(&shortcut->kept[k], context, &diag)
                                        : put_buffer(&shortcut->kept[k], context, &diag);
    for (size_t i = 0; i < task->io_count && !status; i++)
        if (task->io[i].restore(shortcut->captured[i], task->io[i].arg) != 0)
            status = diag_error(&diag, STATUS_SYSTEM, "restore failed");
    if (status)
        return shortcut_refuse(context, &diag, "cannot put back the results of a short-cut");
    diag_fini(&diag);
    return 0;
}

void shortcut_forget(struct shortcut *shortcut, const struct swpipe_task *task)
{
    for (size_t k = 0; k < shortcut->count; k++) {
        struct kept *kept = &shortcut->kept[k];
        if (kept->kind && kept->kind->release && kept->content)
            kept->kind->release(kept->content, kept->kind->arg);
        device_free(kept->copy);
        free(kept->name);
    }
    for (size_t i = 0; shortcut->captured && i < task->io_count; i++)
        if (shortcut->captured[i] && task->io[i].release)
            task->io[i].release(shortcut->captured[i], task->io[i].arg);
    free(shortcut->captured);
    free(shortcut->kept);
    *shortcut = (struct shortcut){.on = shortcut->on};
}
