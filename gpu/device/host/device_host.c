/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_host.c - the host device: worlds, ranks, memory, events, and the table of its functions.
 *
 * Ranks are objects in this process, streams are served by threads (host_server.c), communicators are where
 * they meet (host_comm.c); host.h says how it is locked.
 */
#include "host.h"

#include "gpu/net/rendezvous.h"
#include "base/system_words.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGNMENT = 64, MAPPED_BYTES = 128 << 10 };

/* ---- world ----------------------------------------------------------------------------------- */

static enum status init_locking(struct host_world *world, struct diag *diag)
{
    pthread_mutexattr_t attributes;
    int failed = pthread_mutexattr_init(&attributes);
    if (failed)
        goto fail;
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP); /* its sections are short */
    failed = pthread_mutex_init(&world->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    if (failed)
        goto fail;
    failed = pthread_condattr_init(&world->clock);
    if (!failed)
        failed = pthread_condattr_setclock(&world->clock, CLOCK_MONOTONIC);
    if (!failed)
        return STATUS_OK;
    pthread_mutex_destroy(&world->lock);
fail:
    return diag_error(diag, STATUS_SYSTEM, "cannot make a lock: %s", system_words(failed));
}

static enum status open_slots(struct host_world *world, struct diag *diag)
{
    const struct device_config *config = &world->base.config;
    world->slots = calloc((size_t)config->ranks, sizeof *world->slots);
    if (!world->slots)
        return diag_no_memory(diag);
    for (int rank = 0; rank < config->ranks; rank++)
        world->slots[rank].free = config->sm_slots > 0 ? config->sm_slots : INT32_MAX;
    return STATUS_OK;
}

static enum status device_host_world_open(const struct device_config *config,
                                          struct device_world **out, struct diag *diag)
{
    struct host_world *world = calloc(1, sizeof *world);
    if (!world)
        return diag_no_memory(diag);
    enum status status = STATUS_SYSTEM;
    world->devices = calloc((size_t)config->ranks, sizeof(struct host_device *));
    if (!world->devices) {
        diag_no_memory(diag);
        goto fail_devices;
    }
    status = init_locking(world, diag);
    if (status)
        goto fail_locking;
    world->base = (struct device_world){
        .ops = &device_host_ops, .config = *config, .base_ns = device_clock_ns()};
    cores_divide(config->rendezvous ? rendezvous_size(config->rendezvous) : 1);
    status = open_slots(world, diag);
    if (status)
        goto fail_slots;
    if (config->rendezvous)
        status = link_open(world, diag);
    if (status)
        goto fail_link;
    *out = &world->base;
    return STATUS_OK;

fail_link:
    free(world->slots);
fail_slots:
    pthread_condattr_destroy(&world->clock);
    pthread_mutex_destroy(&world->lock);
fail_locking:
    free(world->devices);
fail_devices:
    free(world);
    return status;
}

static void device_host_world_close(struct device_world *base)
{
    struct host_world *world = (struct host_world *)base;
    for (int rank = 0; rank < base->config.ranks; rank++)
        assert(!world->devices[rank] && "a device is still open");
    if (world->link)
        link_close(world->link);
    assert(!world->channels && "a communicator is still open");
    free(world->slots);
    world_free_waiters(world);
    pthread_condattr_destroy(&world->clock);
    pthread_mutex_destroy(&world->lock);
    free(world->devices);
    free(world);
}

static struct host_stream *streams_of(const struct host_world *world, int rank)
{
    return world->devices[rank] ? world->devices[rank]->streams : NULL;
}

void world_fail_all(struct host_world *world, const char *why)
{
    if (world->aborted)
        return;
    world->aborted = true;
    /* Report what every stream waited for before the end; without memory, no report. */
    char text[WAIT_TEXT];
    for (int rank = 0; rank < world->base.config.ranks; rank++)
        for (struct host_stream *at = streams_of(world, rank); at; at = at->next)
            if (stream_explain(at, text))
                at->last_words = strdup(text);
    if (!world->failure.status) {
        world->failure.status = STATUS_VIOLATED;
        snprintf(world->failure.text, sizeof world->failure.text, "aborted: %s", why);
    }
    for (int rank = 0; rank < world->base.config.ranks; rank++)
        for (struct host_stream *at = streams_of(world, rank); at; at = at->next)
            stream_fail(at, STATUS_VIOLATED, "aborted: %s", why);
}

/* A report names the ranks that did not come: not one whose arrival no thread has looked for yet. */
static void hear_arrivals(struct host_world *world)
{
    if (!world->link || world->aborted)
        return;
    link_look(world->link);
    for (int rank = 0; rank < world->base.config.ranks; rank++)
        for (struct host_stream *at = streams_of(world, rank); at; at = at->next)
            if (at->head)
                comm_hear(at->head);
}

static void device_host_world_abort(struct device_world *base, const char *why)
{
    struct host_world *world = (struct host_world *)base;
    pthread_mutex_lock(&world->lock);
    hear_arrivals(world);
    bool first = !world->aborted;
    world_fail_all(world, why);
    if (first && world->link)
        link_abort(world->link, why);
    world_unlock(world);
}

static enum status device_host_world_status(struct device_world *base, struct diag *diag)
{
    struct host_world *world = (struct host_world *)base;
    pthread_mutex_lock(&world->lock);
    enum status status = world->failure.status;
    if (status)
        diag_error(diag, status, "%s", world->failure.text);
    world_unlock(world);
    return status;
}

static void device_host_world_explain(struct device_world *base, struct diag *diag)
{
    struct host_world *world = (struct host_world *)base;
    char text[WAIT_TEXT];
    pthread_mutex_lock(&world->lock);
    hear_arrivals(world);
    for (int rank = 0; rank < base->config.ranks; rank++)
        for (struct host_stream *at = streams_of(world, rank); at; at = at->next)
            if (stream_explain(at, text))
                diag_note(diag, "%s", text);
            else if (at->last_words)
                diag_note(diag, "%s", at->last_words);
    world_unlock(world);
}

/* ---- device ---------------------------------------------------------------------------------- */

static enum status device_host_open_device(struct device_world *base, int rank, struct device **out,
                                           struct diag *diag)
{
    struct host_world *world = (struct host_world *)base;
    struct host_device *device = calloc(1, sizeof *device);
    if (!device)
        return diag_no_memory(diag);
    const int *shared = base->config.share_device;
    device->slots = &world->slots[shared ? shared[rank] : rank];
    device->base = (struct device){.ops = &device_host_ops, .world = base, .rank = rank};
    device->world = world;
    snprintf(device->base.description, sizeof device->base.description, "host: %s",
             world->link ? "processes of this machine, a thread a stream"
                         : "threads of this process, one a stream");

    pthread_mutex_lock(&world->lock);
    bool taken = world->devices[rank];
    if (!taken)
        world->devices[rank] = device;
    world_unlock(world);
    if (taken) {
        free(device);
        return diag_error(diag, STATUS_INPUT, "rank %d is open already", rank);
    }
    *out = &device->base;
    return STATUS_OK;
}

static void device_host_close_device(struct device *base)
{
    struct host_device *device = (struct host_device *)base;
    assert(!device->comms && "a communicator is still open");
    assert(!device->base.capture && device->stream_count == 0);
    pthread_mutex_lock(&device->world->lock);
    device->world->devices[base->rank] = NULL;
    world_unlock(device->world);
    host_servers_join(device);
    world_settle(device->world);
    host_servers_free(device);
    while (device->streams) {
        struct host_stream *stream = device->streams;
        assert(stream->closing && "a stream is still open");
        device->streams = stream->next;
        host_stream_free(stream);
    }
    while (device->closed) {
        struct host_stream *stream = device->closed;
        device->closed = stream->next_closed;
        host_stream_free(stream);
    }
    injection_free_all(device->injections);
    free(device);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Device memory of a program with an allocator. */
static const struct device_own *allocator_of(const struct device_buffer *buffer)
{
    const struct device_own *own = buffer->device->world->config.own;
    return buffer->memory == MEMORY_DEVICE && own && own->alloc ? own : NULL;
}

static bool is_mapped(size_t bytes)
{
    return bytes >= MAPPED_BYTES;
}

/* Zeroed. A page of a large block takes memory once it is used: many ranks have more of them than the machine. */
static void *alloc_zeros(size_t bytes)
{
    size_t rounded = (bytes + (ALIGNMENT - 1)) / ALIGNMENT * ALIGNMENT;
    if (is_mapped(bytes)) {
        void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return pages == MAP_FAILED ? NULL : pages;
    }
    void *block = aligned_alloc(ALIGNMENT, rounded);
    return block ? memset(block, 0, bytes) : NULL;
}

static enum status alloc_own(struct device_buffer *buffer, struct diag *diag)
{
    const struct device_own *own = allocator_of(buffer);
    size_t bytes = buffer->bytes;
    if (own)
        buffer->address = own->alloc(own->arg, buffer->device->rank, bytes);
    else
        buffer->address = alloc_zeros(bytes);
    if (!buffer->address)
        return diag_error(diag, STATUS_SYSTEM, "rank %d: no memory for a buffer of %zu bytes",
                          buffer->device->rank, bytes);
    if (own && (uintptr_t)buffer->address % DEVICE_OWN_ALIGN) {
        void *address = buffer->address;
        if (own->release)
            own->release(own->arg, buffer->device->rank, address, bytes);
        return diag_error(
            diag, STATUS_SYSTEM,
            "rank %d: the program's allocator gave %p, expected an address aligned to "
            "%d bytes",
            buffer->device->rank, address, DEVICE_OWN_ALIGN);
    }
    if (own)
        memset(buffer->address, 0, bytes);
    return STATUS_OK;
}

/* Device memory is what other ranks may have to reach. */
static enum status device_host_alloc_buffer(struct device *device, enum device_memory memory,
                                            size_t bytes, struct device_buffer **out,
                                            struct diag *diag)
{
    struct host_link *link = ((struct host_device *)device)->world->link;
    struct host_buffer *buffer = calloc(1, sizeof *buffer);
    enum status status = STATUS_OK;
    if (!buffer)
        return diag_no_memory(diag);
    buffer->base = (struct device_buffer){.device = device, .memory = memory, .bytes = bytes};
    buffer->offset = -1;
    if (bytes > 0)
        status = link && memory == MEMORY_DEVICE ? link_alloc(link, buffer, diag)
                                                 : alloc_own(&buffer->base, diag);
    if (status)
        free(buffer);
    else
        *out = &buffer->base;
    return status;
}

static void device_host_give_back(struct device_buffer *buffer)
{
    const struct device_own *own = allocator_of(buffer);
    if (!own && is_mapped(buffer->bytes))
        munmap(buffer->address, buffer->bytes);
    else if (!own)
        free(buffer->address);
    else if (own->release && buffer->address)
        own->release(own->arg, buffer->device->rank, buffer->address, buffer->bytes);
}

static void free_buffer(struct device_buffer *base)
{
    struct host_buffer *buffer = (struct host_buffer *)base;
    struct host_device *device = (struct host_device *)base->device;
    pthread_mutex_lock(&device->world->lock);
    for (struct host_stream *at = device->streams; at; at = at->next)
        while (at->head)
            stream_wait(at, at->pushed, DEVICE_FOREVER);
    world_unlock(device->world);
    if (buffer->offset >= 0)
        link_free(device->world->link, buffer);
    else
        device_host_give_back(base);
    free(buffer);
}

/* ---- events ---------------------------------------------------------------------------------- */

static enum status open_event(struct device *device, struct device_event **out, struct diag *diag)
{
    struct host_event *event = calloc(1, sizeof *event);
    if (!event)
        return diag_no_memory(diag);
    event->base.device = device;
    *out = &event->base;
    return STATUS_OK;
}

static void close_event(struct device_event *event)
{
    free(event);
}

/* ---- the host looks and waits ---------------------------------------------------------------- */

static enum status query_event(struct device_event *base, bool *done, struct diag *diag)
{
    struct host_device *device = (struct host_device *)base->device;
    enum status status = STATUS_OK;
    if (event_is_over((struct host_event *)base)) {
        *done = true;
        return STATUS_OK;
    }
    pthread_mutex_lock(&device->world->lock);
    const struct place place = event_place((struct host_event *)base);
    if (place.stream && place.stream->finished < place.count)
        stream_look(place.stream);
    const bool reached = !place.stream || place.stream->finished >= place.count;
    if (!reached && stream_failed(place.stream))
        status = stream_report(place.stream, diag);
    else
        *done = reached;
    world_unlock(device->world);
    return status;
}

/* Wait for everything pushed to the stream so far; a failed stream never succeeds. */
static enum status device_host_drain(struct host_stream *stream, uint64_t pushed,
                                     int64_t deadline_ns, struct diag *diag)
{
    enum status status = host_await((struct place){stream, pushed}, deadline_ns, diag);
    if (!status && stream_failed(stream))
        status = stream_report(stream, diag);
    return status;
}

static enum status device_host_sync_stream(struct device_stream *base, int64_t deadline_ns,
                                           struct diag *diag)
{
    struct host_stream *stream = (struct host_stream *)base;
    pthread_mutex_lock(&stream->world->lock);
    enum status status = device_host_drain(stream, stream->pushed, deadline_ns, diag);
    world_unlock(stream->world);
    return status;
}

static enum status sync_event(struct device_event *base, int64_t deadline_ns, struct diag *diag)
{
    struct host_device *device = (struct host_device *)base->device;
    if (event_is_over((struct host_event *)base))
        return STATUS_OK;
    pthread_mutex_lock(&device->world->lock);
    enum status status = host_await(event_place((struct host_event *)base), deadline_ns, diag);
    world_unlock(device->world);
    return status;
}

/* The pushes of each stream at the time of the call; later ones do not count. */
static enum status sync_device(struct device *base, int64_t deadline_ns, struct diag *diag)
{
    struct host_device *device = (struct host_device *)base;
    enum status status = STATUS_OK;
    size_t count = 0;
    pthread_mutex_lock(&device->world->lock);
    for (struct host_stream *at = device->streams; at; at = at->next)
        count++;
    struct place *places = calloc(count + 1, sizeof *places);
    if (!places)
        status = diag_no_memory(diag);
    else
        count = 0;
    for (struct host_stream *at = places ? device->streams : NULL; at; at = at->next)
        places[count++] = (struct place){at, at->pushed};
    for (size_t i = 0; i < count && !status; i++)
        status = device_host_drain(places[i].stream, places[i].count, deadline_ns, diag);
    world_unlock(device->world);
    free(places);
    return status;
}

/* Stamps are written as operations finish; passing the lock makes them visible to the caller. */
static enum status device_host_collect(struct device *base, struct diag *diag)
{
    struct host_device *device = (struct host_device *)base;
    (void)diag;
    pthread_mutex_lock(&device->world->lock);
    for (struct host_stream *at = device->streams; at; at = at->next)
        stream_kick(at);
    world_unlock(device->world);
    return STATUS_OK;
}

static enum status device_host_inject(struct device *base, int64_t number, enum status status,
                                      struct diag *diag)
{
    struct host_device *device = (struct host_device *)base;
    struct injection *injection = injection_new(number, status);
    if (!injection)
        return diag_no_memory(diag);
    pthread_mutex_lock(&device->world->lock);
    injection->next = device->injections;
    device->injections = injection;
    world_unlock(device->world);
    return STATUS_OK;
}

const struct device_ops device_host_ops = {
    .world_open = device_host_world_open,
    .world_close = device_host_world_close,
    .world_abort = device_host_world_abort,
    .world_status = device_host_world_status,
    .world_explain = device_host_world_explain,
    .open = device_host_open_device,
    .close = device_host_close_device,
    .alloc = device_host_alloc_buffer,
    .free = free_buffer,
    .buffer_size = sizeof(struct host_buffer),
    .stream_open = host_stream_open,
    .stream_close = host_stream_close,
    .event_open = open_event,
    .event_close = close_event,
    .comm_open = host_comm_open,
    .comm_close = host_comm_close,
    .comm_takes_own = host_comm_takes_own,
    .push = host_push,
    .graph_begin = host_graph_begin,
    .graph_end = host_graph_end,
    .graph_arm = host_graph_arm,
    .graph_launch = host_graph_launch,
    .graph_close = host_graph_close,
    .event_query = query_event,
    .stream_sync = device_host_sync_stream,
    .event_sync = sync_event,
    .sync = sync_device,
    .collect = device_host_collect,
    .inject = device_host_inject,
};
