/* SPDX-License-Identifier: Apache-2.0 */
/* own.c - see swpipe_own.h: what is the program's own, for the device (struct device_own) and in functions. */
#include "swpipe_impl.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/exec/graph.h"

/* ---- for the device -------------------------------------------------------------------------- */

static struct own_thing *own_find(struct own_thing *things, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(things[i].name, name) == 0)
            return &things[i];
    return NULL;
}

static void *own_stream_of(void *arg, int rank, const char *name)
{
    const struct own *own = arg;
    const struct own_thing *found = own_find(own->streams, own->stream_count, name);
    (void)rank;
    return found ? found->handle : NULL;
}

static void *own_comm_of(void *arg, int rank, const char *name)
{
    const struct own *own = arg;
    const struct own_thing *found = own_find(own->comms, own->comm_count, name);
    (void)rank;
    return found ? found->handle : NULL;
}

static void comm_lost(void *arg, int rank, const char *name)
{
    struct own *own = arg;
    struct own_thing *found = own_find(own->comms, own->comm_count, name);
    (void)rank;
    if (found)
        atomic_store(&found->lost, true);
}

/* ---- open ------------------------------------------------------------------------------------ */

static bool names_stream(const struct plan *plan, const char *name)
{
    for (size_t s = 0; s < plan->streams.count; s++)
        if (strcmp(plan->streams.items[s], name) == 0)
            return true;
    return false;
}

static bool names_comm(const struct plan *plan, const char *name)
{
    for (size_t c = 0; c < plan->comm_count; c++)
        if (strcmp(plan->comms[c].name, name) == 0)
            return true;
    return false;
}

static enum status own_take(struct swpipe *pipe, const char *what, const char *name, void *handle,
                            bool known, struct own_thing *things, size_t *count)
{
    if (!name || !handle || !known)
        return diag_error(&pipe->diag, STATUS_INPUT, "%s has no %s '%s' for a handle",
                          pipe->plan.file, what, name ? name : "");
    if (own_find(things, *count, name))
        return diag_error(&pipe->diag, STATUS_INPUT, "%s '%s' is given twice", what, name);
    char *copy = arena_strdup(&pipe->plan.arena, name);
    if (!copy)
        return diag_no_memory(&pipe->diag);
    things[(*count)++] = (struct own_thing){.name = copy, .handle = handle};
    return STATUS_OK;
}

static enum status own_check_device(struct swpipe *pipe, const struct swpipe_own *given)
{
    if (pipe->device != DEVICE_KIND_HOST)
        return STATUS_OK;
    if (given->stream_count || given->comm_count)
        return diag_error(&pipe->diag, STATUS_INPUT,
                          "the host device has no streams and communicators of a program's own");
    if (given->allocator.alloc && pipe->group)
        return diag_error(&pipe->diag, STATUS_INPUT,
                          "the host device cannot have memory of a program's own in a group: other "
                          "processes must reach it");
    return STATUS_OK;
}

enum status own_open(struct swpipe *pipe, const struct swpipe_own *given)
{
    struct own *own = &pipe->own;
    struct arena *arena = &pipe->plan.arena;
    enum status status = own_check_device(pipe, given);
    if (status)
        return status;
    own->streams = ARENA_ARRAY(arena, given->stream_count + 1, struct own_thing);
    own->comms = ARENA_ARRAY(arena, given->comm_count + 1, struct own_thing);
    if (!own->streams || !own->comms)
        return diag_no_memory(&pipe->diag);
    for (size_t i = 0; i < given->stream_count && !status; i++)
        status =
            own_take(pipe, "stream", given->streams[i].name, given->streams[i].handle,
                     given->streams[i].name && names_stream(&pipe->plan, given->streams[i].name),
                     own->streams, &own->stream_count);
    for (size_t i = 0; i < given->comm_count && !status; i++)
        status = own_take(pipe, "communicator", given->comms[i].name, given->comms[i].handle,
                          given->comms[i].name && names_comm(&pipe->plan, given->comms[i].name),
                          own->comms, &own->comm_count);
    own->device = (struct device_own){
        .stream = own_stream_of, .comm = own_comm_of, .comm_lost = comm_lost, .arg = own};
    own->memory = given->allocator;
    return status;
}

static void *own_alloc(void *arg, int rank, size_t bytes)
{
    const struct own *own = arg;
    return own->memory.alloc(own->memory.arg, rank, bytes);
}

static void own_release(void *arg, int rank, void *address, size_t bytes)
{
    const struct own *own = arg;
    if (own->memory.release)
        own->memory.release(own->memory.arg, rank, address, bytes);
}

const struct device_own *own_for_device(struct own *own)
{
    own->device.alloc = own->memory.alloc ? own_alloc : NULL;
    own->device.release = own->memory.alloc ? own_release : NULL;
    return own->stream_count || own->comm_count || own->memory.alloc ? &own->device : NULL;
}

enum status own_check(struct swpipe *pipe)
{
    for (size_t i = 0; i < pipe->own.comm_count; i++)
        if (atomic_load(&pipe->own.comms[i].lost))
            return diag_error(
                &pipe->diag, STATUS_USAGE,
                "communicator %s was the program's own, and a failure has aborted it: "
                "open the pipeline anew, with another",
                pipe->own.comms[i].name);
    return STATUS_OK;
}

int swpipe_comm_is_lost(const struct swpipe *pipe, const char *comm)
{
    const struct own_thing *found =
        pipe && comm ? own_find(pipe->own.comms, pipe->own.comm_count, comm) : NULL;
    return found && atomic_load(&found->lost);
}

/* ---- events ---------------------------------------------------------------------------------- */

struct swpipe_event {
    struct swpipe_event *next;
    struct swpipe *pipe;
    int rank;
    struct device_event *handle; /* NULL: the device is closed; it is opened again with it */
};

enum status own_open_events(struct swpipe *pipe)
{
    enum status status = STATUS_OK;
    for (struct swpipe_event *at = pipe->own.events; at && !status; at = at->next)
        if (!at->handle)
            status = device_event_open(pipe->devices[at->rank], &at->handle, &pipe->diag);
    return status;
}

void own_close_events(struct swpipe *pipe)
{
    for (struct swpipe_event *at = pipe->own.events; at; at = at->next) {
        device_event_close(at->handle);
        at->handle = NULL;
    }
}

static enum status event_open(struct swpipe *pipe, int rank, struct swpipe_event **out)
{
    enum status status = swpipe_must_be_open(pipe);
    if (!status && !out)
        status = diag_error(&pipe->diag, STATUS_USAGE, "the place for the event is NULL");
    if (!status && (rank < pipe->first_rank || rank >= pipe->first_rank + pipe->local_ranks))
        status = diag_error(&pipe->diag, STATUS_USAGE, "rank %d is not in this process", rank);
    if (status)
        return status;
    struct swpipe_event *event = calloc(1, sizeof *event);
    if (!event)
        return diag_no_memory(&pipe->diag);
    *event = (struct swpipe_event){.next = pipe->own.events, .pipe = pipe, .rank = rank};
    if (pipe->world)
        status = device_event_open(pipe->devices[rank], &event->handle, &pipe->diag);
    if (status) {
        free(event);
        return status;
    }
    *out = pipe->own.events = event;
    return STATUS_OK;
}

enum swpipe_status swpipe_event_open(struct swpipe *pipe, int rank, struct swpipe_event **out)
{
    if (!pipe_enter(pipe))
        return SWPIPE_USAGE;
    return swpipe_finish(pipe, event_open(pipe, rank, out));
}

void swpipe_event_close(struct swpipe_event *event)
{
    if (!event)
        return;
    struct swpipe_event **link = &event->pipe->own.events;
    while (*link && *link != event)
        link = &(*link)->next;
    assert(*link && "the event is one of its pipeline's");
    *link = event->next;
    device_event_close(event->handle);
    free(event);
}

void own_forget_events(struct swpipe *pipe)
{
    while (pipe->own.events)
        swpipe_event_close(pipe->own.events);
}

typedef enum status push_function(struct device_stream *stream, struct device_event *event,
                                  struct stamp *stamp, struct diag *diag);

static int push_event(struct swpipe_context *context, struct swpipe_event *event,
                      push_function *push)
{
    struct diag diag;
    if (!context)
        return -1;
    int rank = context->self->rank;
    if (!event)
        return swpipe_fail(context, "the event is NULL");
    if (event->pipe != context->engine->pipe)
        return swpipe_fail(context, "the event is of another pipeline");
    if (event->rank != rank || !event->handle)
        return swpipe_fail(context, "the event is of rank %d, the task of rank %d", event->rank,
                           rank);
    if (graph_captures(context->self->run, rank))
        return swpipe_fail(context, "a device_only function cannot use events of its own");
    diag_init(&diag);
    bool pushed =
        called_pushes(context->self) && push(engine_stream(context->engine, rank, context->task),
                                             event->handle, NULL, &diag) == STATUS_OK;
    if (!pushed)
        swpipe_fail(context, "%s", diag_first_text(&diag));
    diag_fini(&diag);
    return pushed ? 0 : -1;
}

int swpipe_event_record(struct swpipe_context *context, struct swpipe_event *event)
{
    return push_event(context, event, device_record);
}

int swpipe_event_wait(struct swpipe_context *context, struct swpipe_event *event)
{
    return push_event(context, event, device_wait);
}

int swpipe_event_done(struct swpipe_event *event)
{
    bool done = true;
    struct device_caller caller;
    if (!event)
        return -1;
    device_note_caller(event->pipe->device, event->pipe->world, &caller);
    enum status status =
        event->handle ? device_event_query(event->handle, &done, NULL) : STATUS_VIOLATED;
    device_restore_caller(event->pipe->device, &caller);
    return status ? -1 : done;
}

enum swpipe_status swpipe_event_sync(struct swpipe_event *event, long long limit_ns)
{
    struct device_caller caller;
    if (!event)
        return SWPIPE_USAGE;
    const struct swpipe *pipe = event->pipe;
    if (!event->handle)
        return SWPIPE_FAILED;
    device_note_caller(pipe->device, pipe->world, &caller);
    enum status status = device_event_sync(
        event->handle,
        limit_ns < 0 ? DEVICE_FOREVER : device_deadline(device_now(pipe->world), limit_ns), NULL);
    device_restore_caller(pipe->device, &caller);
    return status_for_caller(status);
}
