/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_server.c - the threads of a rank of the host device, which serve its streams; host.h has the protocol.
 *
 * A thread that looks is counted (`looking`) from the end of one entry, or from the call that wakes it, until it has a
 * stream or sleeps. As long as one looks no other is called: it finds every stream that is ready, and calls another
 * thread if it leaves one behind.
 */
#include "host.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "gpu/device/nvtx.h"
#include "base/quiet_thread.h"
#include "base/system_words.h"

enum { TIMER_SLACK_NS = 1000, MOST_WAYS = 3 /* the driver may come before the worker */ };

/* ---- ready, and called ------------------------------------------------------------------------- */

bool entry_waits(const struct entry *entry)
{
    const struct place *place = &entry->awaited;
    return entry->op.kind == DEVICE_OP_WAIT && !entry->op.turn.gate && !entry->injected &&
           place->stream && place->stream->finished < place->count &&
           !stream_failed(place->stream) && place->stream->device == entry->stream->device;
}

static bool host_server_is_ready(const struct host_stream *stream)
{
    const struct entry *head = stream->head;
    return head && !stream->served &&
           (stream_failed(stream) || (!entry_waits(head) && !head->meets));
}

/* If all are at work, each looks when it is done. */
static void call_server(struct host_device *device)
{
    struct host_server *server = device->servers;
    while (server && !server->asleep)
        server = server->next;
    if (!server)
        return;
    server->asleep = false;
    way_found(&device->way);
    device->looking++;
    server->next_call = device->world->calls;
    device->world->calls = server;
}

void stream_kick(struct host_stream *stream)
{
    struct entry *head = stream->head;
    if (!head || stream->served)
        return;
    if (!host_server_is_ready(stream) && head->meets)
        return; /* the last member that comes takes it out */
    if (!host_server_is_ready(stream)) {
        struct host_stream *other = head->awaited.stream;
        assert(other && other != stream && other->device == stream->device);
        if (head->awaited.count < other->goal)
            other->goal = head->awaited.count;
        stream_kick(other);
    } else if (stream->device->looking > 0) {
        way_found(&stream->device->way);
        atomic_store_explicit(&stream->device->wanted, 1, memory_order_relaxed);
    } else {
        call_server(stream->device);
    }
}

/* ---- a thread ---------------------------------------------------------------------------------- */

/* `last` if it can go on, because its memory is near; else any. */
static struct host_stream *find_ready(struct host_device *device, struct host_stream *last)
{
    if (last && host_server_is_ready(last))
        return last;
    for (struct host_stream *at = device->streams; at; at = at->next)
        if (host_server_is_ready(at))
            return at;
    return NULL;
}

/* Until it is called; false: the device closes. */
static bool sleep_until_called(struct host_server *self)
{
    struct host_device *device = self->device;
    assert(!self->asleep && device->looking > 0);
    self->asleep = true;
    device->looking--;
    while (self->asleep && !device->closing)
        world_wait(device->world, &self->work);
    return !device->closing;
}

/* Nothing is ready: a thread gives way to those on its core, one of which pushes, then it spins. False: it has done both. */
static bool look_longer(struct host_device *device, int *ways, bool *spun)
{
    struct host_world *world = device->world;
    if (*ways < MOST_WAYS && way_is_due(&device->way)) {
        world_unlock(world);
        const bool in_time = way_give(&device->way);
        pthread_mutex_lock(&world->lock);
        way_ended(&device->way, in_time);
    } else if (!*spun) {
        *spun = true;
        atomic_store_explicit(&device->wanted, 0, memory_order_relaxed);
        world_spin(world, &device->spin, &device->wanted, 0);
    } else {
        return false;
    }
    ++*ways;
    return true;
}

static void *serve(void *arg)
{
    struct host_server *self = arg;
    struct host_device *device = self->device;
    struct host_stream *stream = NULL, *last = NULL;
    char name[16]; /* what the kernel keeps */
    snprintf(name, sizeof name, "r%d.device", device->base.rank);
    pthread_setname_np(pthread_self(), name);
    nvtx_name_thread(name);
    prctl(PR_SET_TIMERSLACK, (unsigned long)TIMER_SLACK_NS, 0UL, 0UL, 0UL);
    cores_join();
    pthread_mutex_lock(&device->world->lock);
    device->looking++;
    bool awake = true, has_spun = true;
    int ways = MOST_WAYS; /* that it has given since it served a stream */
    while (awake) {
        stream = find_ready(device, last);
        if (stream) {
            assert(!stream->served && device->looking > 0);
            stream->served = true;
            device->looking--;
            /* Where no thread looks any more, another is called for a stream that is ready. */
            struct host_stream *rest = device->looking == 0 ? find_ready(device, NULL) : NULL;
            if (rest)
                stream_kick(rest);
            stream_serve(stream); /* this thread looks again */
            last = stream;
            has_spun = false;
            ways = 0;
        } else if (!look_longer(device, &ways, &has_spun)) {
            awake = sleep_until_called(self);
        }
    }
    world_unlock(device->world);
    cores_leave();
    return NULL;
}

/* ---- open and close ---------------------------------------------------------------------------- */

enum status host_server_start(struct host_device *device, struct diag *diag)
{
    struct host_server *server = calloc(1, sizeof *server);
    if (!server)
        return diag_no_memory(diag);
    server->device = device;
    enum status status = world_init_condition(device->world, &server->work, diag);
    int failed = status ? 0 : quiet_thread_start(&server->thread, serve, server);
    if (failed) {
        pthread_cond_destroy(&server->work);
        status = diag_error(diag, STATUS_SYSTEM, "rank %d: cannot start a thread for a stream: %s",
                            device->base.rank, system_words(failed));
    }
    if (status) {
        free(server);
        return status;
    }
    server->next = device->servers;
    device->servers = server;
    device->server_count++;
    return STATUS_OK;
}

void host_servers_join(struct host_device *device)
{
    pthread_mutex_lock(&device->world->lock);
    device->closing = true;
    for (struct host_server *at = device->servers; at; at = at->next)
        pthread_cond_signal(&at->work);
    world_unlock(device->world);
    for (struct host_server *at = device->servers; at; at = at->next)
        pthread_join(at->thread, NULL);
}

void host_servers_free(struct host_device *device)
{
    while (device->servers) {
        struct host_server *server = device->servers;
        device->servers = server->next;
        pthread_cond_destroy(&server->work);
        free(server);
    }
}
