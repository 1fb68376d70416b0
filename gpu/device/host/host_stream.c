/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_stream.c - a stream of the host device: a FIFO; and how a thread serves it.
 *
 * The head entry is at work. It takes three steps: `admit` waits for its preconditions (its turn on
 * the communicator, residency slots), `perform` does its work, `finish` counts it, frees it and wakes
 * the waiting threads. When the stream has failed, at any point, the entry is dropped instead of
 * counted, and so are all behind it: `finished` stands still for good, which its waiters notice.
 */
#include "host.h"

#include "gpu/device/gate.h"
#include "base/units.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* The end of a timed operation is waited for by looking at the clock, because a sleeping thread
       wakes some tens of microseconds late; the rest it sleeps, there being more streams than
       cores. */
    SPIN_TAIL_NS = 30000,
    MOST_SPARE = 64
};

/* ---- what is true of a stream and an event ------------------------------------------------------ */

/* With checks: the FIFO has what was pushed and has not finished, as long as the stream has not failed; then entries are
   dropped and `finished` stands still. With the lock held, between two changes. */
#ifdef SWSIM_CHECKS
enum { MOST_CHECKED = 4096 }; /* entries: a longer FIFO is not walked at each push */

static void stream_check(const struct host_stream *stream)
{
    uint64_t queued = 0, unfinished = stream->pushed - stream->finished;
    size_t spare = 0;
    const struct entry *last = NULL;
    assert(stream->finished <= stream->pushed && stream->earlier <= stream->pushed);
    assert((stream->head == NULL) == (stream->tail == NULL));
    assert(!stream->served || stream->head);
    assert(stream_failed(stream) || !stream->waiters.first ||
           stream->waiters.first->count > stream->finished);
    if (unfinished > MOST_CHECKED)
        return;
    for (const struct entry *at = stream->head; at; at = at->next, queued++) {
        assert(at->stream == stream && at->number >= 0);
        assert(!at->meets || at == stream->head); /* what is behind it waits for its turn */
        last = at;
    }
    assert(last == stream->tail && queued <= unfinished);
    assert(stream_failed(stream) || queued == unfinished);
    for (const struct entry *at = stream->spare; at; at = at->next)
        spare++;
    assert(spare == stream->spare_count && spare <= MOST_SPARE);
}
#else
static void stream_check(const struct host_stream *stream)
{
    (void)stream;
}
#endif

/* ---- failing --------------------------------------------------------------------------------- */

void stream_fail(struct host_stream *stream, enum status status, const char *format, ...)
{
    assert(status != STATUS_OK);
    if (stream_failed(stream))
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(stream->failure.text, sizeof stream->failure.text, format, args);
    va_end(args);
    stream->failure.status = status;
    atomic_store(&stream->stop, true);
    if (stream->world->failure.status == STATUS_OK)
        stream->world->failure = stream->failure;
    world_reach(stream->world, &stream->waiters, UINT64_MAX);
    stream_rouse(stream);
    stream_kick(stream);
    comm_wake_all(stream->device);
}

enum status stream_report(const struct host_stream *stream, struct diag *diag)
{
    return diag_error(diag, stream->failure.status, "%s", stream->failure.text);
}

/* ---- the thread that serves it sleeps ------------------------------------------------------------ */

void stream_sleep(struct host_stream *stream, struct host_waiters *list, uint64_t count,
                  int64_t deadline_ns)
{
    assert(stream->served && !stream->sleeper);
    world_await(stream->world, list, count, deadline_ns, &stream->sleeper);
}

void stream_rouse(struct host_stream *stream)
{
    if (stream->sleeper)
        world_ring(stream->world, &stream->sleeper->ring);
}

/* ---- turns, in a run that is forced into an order ---------------------------------------------- */

static void host_stream_await_turn(struct entry *entry, int agent)
{
    struct gate *gate = entry->op.turn.gate;
    if (!gate)
        return;
    world_unlock(entry->stream->world);
    gate_wait(gate, agent);
    pthread_mutex_lock(&entry->stream->world->lock);
}

void entry_started(struct entry *entry)
{
    if (entry->op.turn.leaves)
        gate_leave(entry->op.turn.gate, entry->op.turn.start);
}

/* ---- the three steps ------------------------------------------------------------------------- */

static void give_slots(struct host_stream *stream)
{
    struct host_slots *slots = stream->device->slots;
    assert(slots->free >= 0);
    world_offer(stream->world, &slots->waiters, (uint64_t)slots->free);
}

/* Slots that were offered to it, and that it does not take, are offered to others. */
static void await_slots(struct entry *entry)
{
    struct host_stream *stream = entry->stream;
    struct host_slots *slots = stream->device->slots;
    while (entry->op.sm > slots->free && !stream_failed(stream)) {
        stream_sleep(stream, &slots->waiters, (uint64_t)entry->op.sm, DEVICE_FOREVER);
        if (entry->op.sm > slots->free || stream_failed(stream))
            give_slots(stream);
    }
}

static void host_stream_admit(struct entry *entry)
{
    struct host_stream *stream = entry->stream;
    struct host_device *device = stream->device;
    struct host_comm *comm = (struct host_comm *)device_op_comm(&entry->op);
    assert(entry == stream->head && stream->served);
    entry->phase = PHASE_TURN;
    while (comm && comm->done != entry->turn && !comm->broken && !stream_failed(stream))
        stream_sleep(stream, &comm->waiters, entry->turn, DEVICE_FOREVER);
    if (comm && comm->broken)
        stream_fail(stream, STATUS_VIOLATED,
                    "rank %d, stream %s: an earlier operation on communicator %s failed",
                    device->base.rank, stream->base.name, comm->base.name);
    entry->phase = PHASE_SLOTS;
    await_slots(entry);
}

/* The stream is to come so far. */
static void want(struct host_stream *stream, uint64_t count)
{
    if (count < stream->goal)
        stream->goal = count;
    stream_kick(stream);
}

static void await_event(struct entry *entry)
{
    struct host_stream *stream = entry->stream, *other = entry->awaited.stream;
    if (!other)
        return;
    entry->phase = PHASE_EVENT;
    while (other->finished < entry->awaited.count && !stream_failed(other) &&
           !stream_failed(stream)) {
        want(other, entry->awaited.count);
        stream_sleep(stream, &other->waiters, entry->awaited.count, DEVICE_FOREVER);
    }
    if (other->finished < entry->awaited.count && stream_failed(other))
        stream_fail(stream, other->failure.status, "%s", other->failure.text);
}

/* Work that needs no lock. */
static void perform_alone(struct entry *entry)
{
    struct host_world *world = entry->stream->world;
    world_unlock(world);
    if (entry->op.kind == DEVICE_OP_CALLBACK)
        entry->op.callback.run(entry->op.callback.arg);
    else
        host_compute(&entry->op, &entry->stream->stop);
    pthread_mutex_lock(&world->lock);
}

/* Let the operation last until `end_ns`. */
static void stretch(struct entry *entry, int64_t end_ns)
{
    struct host_stream *stream = entry->stream;
    struct host_world *world = stream->world;
    while (!stream_failed(stream) && device_now(&world->base) < end_ns - SPIN_TAIL_NS)
        stream_sleep(stream, &(struct host_waiters){0}, 0, end_ns - SPIN_TAIL_NS);
    world_unlock(world);
    while (device_now(&world->base) < end_ns && !atomic_load(&stream->stop))
        continue;
    pthread_mutex_lock(&world->lock);
}

static void host_stream_perform(struct entry *entry, int64_t start_ns)
{
    if (entry->injected) {
        char text[OP_TEXT];
        stream_fail(entry->stream, entry->injected,
                    "rank %d, stream %s: injected failure of operation %lld, %s",
                    entry->stream->device->base.rank, entry->stream->base.name,
                    (long long)entry->number, device_op_text(&entry->op, text));
        return;
    }
    entry->phase = PHASE_RUNNING;
    switch (entry->op.kind) {
    case DEVICE_OP_SPIN:
    case DEVICE_OP_RECORD: break;
    case DEVICE_OP_WAIT: await_event(entry); break;
    case DEVICE_OP_COLLECTIVE: comm_perform_collective(entry); break;
    case DEVICE_OP_GROUP: comm_perform_group(entry); break;
    default: perform_alone(entry); break;
    }
    entry->phase = PHASE_RUNNING;
    if (entry->op.time_ns > 0)
        stretch(entry, start_ns + entry->op.time_ns);
}

/* Admit, perform and stamp one entry of a stream that has not failed. */
static void host_stream_run(struct entry *entry)
{
    struct host_stream *stream = entry->stream;
    const int64_t latency_ns = stream->world->base.config.launch_latency_ns;
    if (latency_ns > 0 && device_op_is_work(&entry->op))
        stretch(entry, entry->pushed_ns + latency_ns);
    if (entry->op.turn.enters)
        host_stream_await_turn(entry, entry->op.turn.start);
    host_stream_admit(entry);
    if (stream_failed(stream))
        return;
    stream->device->slots->free -= entry->op.sm;
    int64_t start_ns = entry->begun_ns;
    if (start_ns == 0 && (entry->stamp || entry->op.time_ns > 0))
        start_ns = device_now(&stream->world->base);
    const int64_t *acted_ns =
        entry->op.kind == DEVICE_OP_CALLBACK ? entry->op.callback.acted_ns : NULL;
    if (entry->stamp && !acted_ns) {
        entry->stamp->start_ns = start_ns;
        entry->stamp->started = true;
    }
    assert(stream->device->slots->free >= 0);
    if (!device_op_comm(&entry->op)) /* those have started when their peers can see it */
        entry_started(entry);
    host_stream_perform(entry, start_ns);
    if (entry->op.turn.leaves)
        host_stream_await_turn(entry, entry->op.turn.finish);
    stream->device->slots->free += entry->op.sm;
    if (entry->op.sm > 0)
        give_slots(stream);
    if (entry->stamp && !stream_failed(stream) && !(acted_ns && *acted_ns == 0)) {
        if (acted_ns) { /* in a run that is forced, others go on from its turn on */
            entry->stamp->start_ns = entry->op.turn.gate ? start_ns : *acted_ns;
            entry->stamp->started = true;
        }
        entry->stamp->end_ns = device_now(&stream->world->base);
        entry->stamp->valid = true;
    }
}

void entry_free(struct entry *entry)
{
    if (!entry)
        return;
    free(entry->parts);
    free(entry->copies);
    free(entry);
}

/* Keep it for a later push of its stream. */
static void entry_retire(struct entry *entry)
{
    struct host_stream *stream = entry->stream;
    if (entry->parts || entry->copies || stream->spare_count == MOST_SPARE) {
        entry_free(entry);
        return;
    }
    entry->next = stream->spare;
    stream->spare = entry;
    stream->spare_count++;
}

/* A wait begins when it becomes the head: no thread serves it before it is over. */
static void begin_wait(struct entry *entry, int64_t now_ns)
{
    assert(entry == entry->stream->head && !entry->stream->served);
    entry->phase = entry_waits(entry) ? PHASE_EVENT : PHASE_QUEUED;
    entry->begun_ns = now_ns;
    if (entry->stamp) {
        entry->stamp->start_ns = now_ns;
        entry->stamp->started = true;
    }
}

/* The head, a collective, arrives, and no thread is woken for it. */
static void begin_meeting(struct entry *entry)
{
    if (entry->stamp) {
        entry->stamp->start_ns = device_now(&entry->stream->world->base);
        entry->stamp->started = true;
    }
    comm_meet(entry);
}

/* There is a new head, and a thread that looks or takes out what has met. */
static void host_stream_advance(struct host_stream *stream)
{
    struct entry *head = stream->head;
    if (stream_failed(stream))
        return;
    if (comm_meets_at_once(head)) {
        begin_meeting(head);
        return;
    }
    if (!entry_waits(head))
        return;
    begin_wait(head, head->stamp ? device_now(&stream->world->base) : 0);
    if (head->next || head->stamp ||
        stream->goal != UINT64_MAX) /* a host thread awaits it, or what is behind it */
        stream_kick(stream);
}

/* One more is finished; what it did is seen by who sees that. With the lock held, as all changes. */
static void host_stream_count(struct host_stream *stream)
{
    const uint64_t finished = atomic_load_explicit(&stream->finished, memory_order_relaxed);
    atomic_store_explicit(&stream->finished, finished + 1, memory_order_release);
}

/* Take the head out of the FIFO: finished, or dropped because the stream has failed. */
static void host_stream_finish(struct host_stream *stream)
{
    struct entry *entry = stream->head;
    assert(entry && !stream->served && stream->finished < stream->pushed);
    struct host_comm *comm = (struct host_comm *)device_op_comm(&entry->op);
    stream->head = entry->next;
    if (!stream->head)
        stream->tail = NULL;
    if (!stream_failed(stream))
        host_stream_count(stream);
    if (comm)
        comm_retire(comm, !stream_failed(stream));
    if (stream->finished >= stream->goal || stream_failed(stream)) {
        /* Others may go on: threads that wait, and streams of the device whose head is a wait. */
        world_reach(stream->world, &stream->waiters,
                    stream_failed(stream) ? UINT64_MAX : stream->finished);
        stream->goal = stream->waiters.first ? stream->waiters.first->count : UINT64_MAX;
        for (struct host_stream *at = stream->device->streams; at; at = at->next)
            if (at != stream)
                stream_kick(at);
    }
    if (entry->op.turn.leaves && !stream_failed(stream))
        gate_leave(entry->op.turn.gate, entry->op.turn.finish);
    entry_retire(entry);
    stream_check(stream);
    if (stream->head)
        host_stream_advance(stream);
}

void stream_serve(struct host_stream *stream)
{
    assert(stream->head && stream->served);
    if (stream->head->meets)
        comm_part(stream->head);
    else if (!stream_failed(stream))
        host_stream_run(stream->head);
    stream->served = false;
    stream->device->looking++;
    host_stream_finish(stream);
    stream_settle(stream->world);
}

/* A record, or a wait for what is reached. */
static bool is_instant(const struct entry *entry)
{
    return entry->op.time_ns == 0 && !entry->op.turn.gate && !entry->injected &&
           (entry->op.kind == DEVICE_OP_RECORD ||
            (entry->op.kind == DEVICE_OP_WAIT && place_is_reached(entry->awaited)));
}

/* Operations behind a collective that take no time end with it: no thread is woken for them, and the log of a run, where the
   end of a function is such a mark, has it before the host goes on. */
static void finish_instants(struct host_stream *stream)
{
    while (stream->head && !stream_failed(stream) && is_instant(stream->head)) {
        struct stamp *stamp = stream->head->stamp;
        if (stamp) {
            stamp->end_ns = device_now(&stream->world->base);
            stamp->start_ns = stamp->started ? stamp->start_ns : stamp->end_ns;
            stamp->started = stamp->valid = true;
        }
        host_stream_finish(stream);
    }
}

/* A list, not calls of calls: a head that is taken out may let the next one meet, and so on. */
void stream_settle(struct host_world *world)
{
    if (world->settles || !world->met)
        return;
    world->settles = true;
    while (world->met) {
        struct host_stream *stream = world->met;
        struct stamp *stamp = stream->head->stamp;
        world->met = stream->next_met;
        assert(stream->head->meets && !stream->served); /* a thread would take it out itself */
        if (stamp && !stream_failed(stream)) {
            stamp->end_ns = device_now(&world->base);
            stamp->valid = true;
        }
        comm_part(stream->head);
        host_stream_finish(stream);
        finish_instants(stream);
        world->settled++;
        if (stream->head && !entry_waits(stream->head))
            stream_kick(stream); /* no thread looks, perhaps */
    }
    world->settles = false;
    world->settled = 0;
}

/* A device takes records, and waits for events that are over, at once; here a thread does that later. So they are taken out of the
   stream, and of the streams that it waits for, before somebody looks at it. */
void stream_look(struct host_stream *stream)
{
    uint64_t finished;
    do {
        finished = stream->finished;
        const struct entry *head = stream->head;
        if (!head || stream->served || stream_failed(stream))
            return;
        if (head->op.kind == DEVICE_OP_WAIT && !is_instant(head) && head->awaited.stream)
            stream_look(head->awaited.stream);
        finish_instants(stream);
        stream_settle(stream->world); /* a collective behind them */
    } while (stream->finished > finished);
    stream_kick(stream);
}

/* ---- open and close -------------------------------------------------------------------------- */

static struct host_stream *stream_new(struct host_device *device, struct diag *diag)
{
    struct host_stream *stream = calloc(1, sizeof *stream);
    if (!stream) {
        diag_no_memory(diag);
        return NULL;
    }
    stream->device = device;
    stream->world = device->world;
    stream->closing = true;
    return stream;
}

/* With the lock held: a stream that was closed, or a new one, with a thread to serve it. It goes on to count. */
static enum status open_one(struct host_device *device, struct host_stream **out, struct diag *diag)
{
    enum status status = STATUS_OK;
    if (!device->closed)
        device->closed = stream_new(device, diag);
    if (!device->closed)
        return STATUS_SYSTEM;
    if (device->server_count == device->stream_count)
        status = host_server_start(device, diag);
    if (status)
        return status;
    assert(device->server_count > device->stream_count); /* a ready stream never lacks a thread */
    *out = device->closed;
    device->closed = device->closed->next_closed;
    return STATUS_OK;
}

enum status host_stream_open(struct device *device, const char *name, struct device_stream **out,
                             struct diag *diag)
{
    struct host_device *owner = (struct host_device *)device;
    struct host_stream *stream;
    char *copy = strdup(name);
    if (!copy)
        return diag_no_memory(diag);
    pthread_mutex_lock(&owner->world->lock);
    enum status status = open_one(owner, &stream, diag);
    if (status) {
        world_unlock(owner->world);
        free(copy);
        return status;
    }
    free(stream->base.name);
    stream->base = (struct device_stream){.device = device, .name = copy};
    stream->goal = UINT64_MAX;
    stream->earlier = stream->pushed;
    stream->closing = false;
    owner->stream_count++;
    stream->next = owner->streams;
    owner->streams = stream;
    if (owner->world->aborted)
        stream_fail(stream, owner->world->failure.status, "%s", owner->world->failure.text);
    world_unlock(owner->world);
    *out = &stream->base;
    return STATUS_OK;
}

void host_stream_close(struct device_stream *base)
{
    struct host_stream *stream = (struct host_stream *)base;
    pthread_mutex_lock(&stream->world->lock);
    stream->closing = true;
    while (stream->head)
        stream_wait(stream, stream->pushed, DEVICE_FOREVER);
    assert(stream->device->stream_count > 0);
    stream->device->stream_count--;
    if (!stream_failed(stream)) {
        /* A failed stream tells until the device closes for which work it waited; events behind that are not reached. */
        struct host_stream **link = &stream->device->streams;
        while (*link != stream)
            link = &(*link)->next;
        *link = stream->next;
        stream->next_closed = stream->device->closed;
        stream->device->closed = stream;
    }
    world_unlock(stream->world);
}

void host_stream_free(struct host_stream *stream)
{
    assert(!stream->head);
    while (stream->spare) {
        struct entry *next = stream->spare->next;
        entry_free(stream->spare);
        stream->spare = next;
    }
    assert(!stream->waiters.first && !stream->sleeper);
    free(stream->base.name);
    free(stream->last_words);
    free(stream);
}

/* ---- push ------------------------------------------------------------------------------------ */

/* The caller's parts may be gone when the group starts. */
static bool host_stream_copy_parts(struct entry *entry)
{
    struct device_group *group = &entry->op.group;
    if (group->count == 0)
        return true;
    entry->copies = calloc(group->count, sizeof *entry->copies);
    entry->parts = calloc(group->count, sizeof *entry->parts);
    if (!entry->copies || !entry->parts)
        return false;
    memcpy(entry->copies, group->parts, group->count * sizeof *entry->copies);
    group->parts = entry->copies;
    return true;
}

static void host_stream_fill(struct entry *entry, struct host_stream *stream,
                             const struct device_op *op, struct stamp *stamp)
{
    *entry = (struct entry){.stream = stream, .op = *op, .stamp = stamp, .number = -1};
}

struct entry *entry_new(struct host_stream *stream, const struct device_op *op, struct stamp *stamp)
{
    struct entry *entry = malloc(sizeof *entry);
    if (!entry)
        return NULL;
    host_stream_fill(entry, stream, op, stamp);
    if (op->kind == DEVICE_OP_GROUP && !host_stream_copy_parts(entry)) {
        entry_free(entry);
        return NULL;
    }
    return entry;
}

/* One that was used before, or a new one. With the lock held. */
static struct entry *host_stream_take_entry(struct host_stream *stream, const struct device_op *op,
                                            struct stamp *stamp)
{
    struct entry *entry = stream->spare;
    if (!entry || op->kind == DEVICE_OP_GROUP)
        return entry_new(stream, op, stamp);
    stream->spare = entry->next;
    stream->spare_count--;
    host_stream_fill(entry, stream, op, stamp);
    return entry;
}

/* Wait for room in the launch queue. */
static enum status host_stream_await_room(struct host_stream *stream, struct diag *diag)
{
    uint64_t limit = (uint64_t)stream->world->base.config.launch_queue;
    while (limit > 0 && stream->pushed - stream->finished >= limit && !stream_failed(stream))
        stream_wait(stream, stream->pushed - limit + 1, DEVICE_FOREVER);
    return stream_failed(stream) ? stream_report(stream, diag) : STATUS_OK;
}

static void host_stream_append(struct entry *entry)
{
    struct host_stream *stream = entry->stream;
    bool numbered = entry->number >= 0; /* by a graph, and its stamp as well */
    if (!numbered)
        entry->number = stream->device->pushes++;
    entry->injected = injection_take(&stream->device->injections, entry->number);
    if (entry->stamp || stream->world->base.config.launch_latency_ns > 0)
        entry->pushed_ns = device_now(&stream->world->base);
    if (entry->stamp && !numbered) {
        entry->stamp->number = entry->number;
        entry->stamp->pushed_from_ns = entry->stamp->pushed_by_ns = entry->pushed_ns;
    }
    if (stream->tail)
        stream->tail->next = entry;
    else
        stream->head = entry;
    stream->tail = entry;
    stream->pushed++;
    stream_check(stream);
    if (stream->head == entry && comm_meets_at_once(entry))
        begin_meeting(entry);
    else if (entry->op.kind != DEVICE_OP_WAIT || entry->op.turn.gate)
        stream_kick(stream);
    else if (stream->head == entry)
        begin_wait(entry, entry->pushed_ns);
}

/* Decisions of the host at the time of the call: turns, snapshots, the meaning of an event. */
static enum status host_stream_issue(struct entry *entry, struct diag *diag)
{
    struct host_stream *stream = entry->stream;
    enum status status = STATUS_OK;
    if (device_op_comm(&entry->op))
        status = comm_issue(entry, diag);
    if (status)
        return status;
    if (entry->op.kind == DEVICE_OP_WAIT)
        entry->awaited = event_place((struct host_event *)entry->op.event);
    if (entry->op.kind == DEVICE_OP_RECORD)
        event_set_place((struct host_event *)entry->op.event, stream, stream->pushed + 1);
    if (entry->op.kind == DEVICE_OP_WAIT || entry->op.kind == DEVICE_OP_RECORD) {
        /* An event means a place that its stream has come to, or comes to with its next push. */
        const struct place place = event_place((const struct host_event *)entry->op.event);
        assert(!place.stream || place.count <= place.stream->pushed + 1);
        (void)place;
    }
    host_stream_append(entry);
    stream_settle(stream->world); /* the entry is used again, perhaps */
    return STATUS_OK;
}

enum status entry_push(struct entry *entry, struct diag *diag)
{
    struct host_stream *stream = entry->stream;
    enum status status = host_stream_await_room(stream, diag);
    if (!status)
        return host_stream_issue(entry, diag);
    if (entry->op.kind == DEVICE_OP_RECORD) /* then the event stands for work that never finishes */
        event_set_place((struct host_event *)entry->op.event, stream, stream->pushed + 1);
    return status;
}

/* ---- at once --------------------------------------------------------------------------------- */

/* True if the place that a wait is for is reached. */
static bool is_reached(const struct device_op *wait)
{
    return place_is_reached(event_place((const struct host_event *)wait->event));
}

/* True if it changes nothing in the stream. Without a stamp a record is a name for the place behind what was pushed,
   and a wait for a place that is reached, or lies in the same stream, waits for nothing. */
static bool needs_no_entry(const struct host_stream *stream, const struct device_op *op,
                           const struct stamp *stamp)
{
    if (stamp || stream->closing || stream_failed(stream) || stream->device->injections ||
        stream->world->base.config.launch_queue > 0 || op->turn.gate || op->time_ns > 0)
        return false;
    if (op->kind == DEVICE_OP_RECORD)
        return true;
    return op->kind == DEVICE_OP_WAIT &&
           (event_place((const struct host_event *)op->event).stream == stream || is_reached(op));
}

/* True if the operation is over as soon as it is in the stream. */
static bool takes_no_time(const struct host_stream *stream, const struct device_op *op)
{
    if (stream->head || stream->closing || stream_failed(stream) || stream->device->injections ||
        op->turn.gate || op->time_ns > 0)
        return false;
    return op->kind == DEVICE_OP_RECORD || (op->kind == DEVICE_OP_WAIT && is_reached(op));
}

/* Instead of a thread of the device, which is not woken for it. */
static void host_stream_pass(struct host_stream *stream, const struct device_op *op,
                             struct stamp *stamp)
{
    int64_t number = stream->device->pushes++;
    assert(stream->pushed == stream->finished); /* it is idle */
    stream->pushed++;
    if (op->kind == DEVICE_OP_RECORD)
        event_set_place((struct host_event *)op->event, stream, stream->pushed);
    if (stamp) {
        int64_t now_ns = device_now(&stream->world->base);
        stamp->number = number;
        stamp->pushed_from_ns = stamp->pushed_by_ns = now_ns;
        stamp->start_ns = stamp->end_ns = now_ns;
        stamp->started = stamp->valid = true;
    }
    host_stream_count(stream);
}

static bool host_stream_blocks_host(const struct device_op *op)
{
    return op->kind == DEVICE_OP_COPY && op->copy.bytes > 0 &&
           (op->copy.from.buffer->memory == MEMORY_PAGEABLE ||
            op->copy.to.buffer->memory == MEMORY_PAGEABLE);
}

/* With the lock held. */
static enum status host_stream_push(struct host_stream *stream, const struct device_op *op,
                                    struct stamp *stamp, struct diag *diag)
{
    struct entry *entry = host_stream_take_entry(stream, op, stamp);
    if (!entry)
        return diag_no_memory(diag);
    enum status status = entry_push(entry, diag);
    if (status)
        entry_free(entry);
    else if (host_stream_blocks_host(op))
        status = host_await((struct place){stream, stream->pushed}, DEVICE_FOREVER, diag);
    return status;
}

enum status host_push(struct device_stream *base, const struct device_op *op, struct stamp *stamp,
                      struct diag *diag)
{
    struct host_stream *stream = (struct host_stream *)base;
    if (base->capture)
        return host_graph_keep(stream, op, stamp, diag);
    enum status status = STATUS_OK;
    pthread_mutex_lock(&stream->world->lock);
    if (needs_no_entry(stream, op, stamp)) {
        stream->device->pushes++;
        if (op->kind == DEVICE_OP_RECORD)
            event_set_place((struct host_event *)op->event, stream, stream->pushed);
    } else if (takes_no_time(stream, op))
        host_stream_pass(stream, op, stamp);
    else
        status = host_stream_push(stream, op, stamp, diag);
    world_unlock(stream->world);
    return status;
}

/* ---- waiting, and saying for what ------------------------------------------------------------ */

bool stream_wait(struct host_stream *stream, uint64_t count, int64_t deadline_ns)
{
    want(stream, count);
    return world_await(stream->world, &stream->waiters, count, deadline_ns, NULL);
}

enum status host_await(struct place place, int64_t deadline_ns, struct diag *diag)
{
    struct host_stream *stream = place.stream;
    if (!stream)
        return STATUS_OK;
    /* else nothing would end the wait */
    assert(place.count <= stream->pushed || stream_failed(stream));
    while (stream->finished < place.count) {
        if (stream_failed(stream))
            return stream_report(stream, diag);
        if (deadline_ns <= device_now(&stream->world->base)) /* a look, with the lock held */
            stream_look(stream);
        else if (stream_wait(stream, place.count, deadline_ns))
            continue;
        if (stream->finished >= place.count || stream_failed(stream))
            continue;
        char text[WAIT_TEXT] = "";
        stream_explain(stream, text);
        return diag_error(diag, STATUS_LIMIT, "time limit: %s", text);
    }
    return STATUS_OK;
}

bool stream_explain(const struct host_stream *stream, char out[WAIT_TEXT])
{
    const struct entry *entry = stream->head;
    char name[OP_TEXT], head[WAIT_TEXT / 2], what[WAIT_TEXT / 2];
    if (!entry || stream_failed(stream))
        return false;
    snprintf(head, sizeof head, "rank %d, stream %s: %s", stream->device->base.rank,
             stream->base.name, device_op_text(&entry->op, name));
    const struct device_comm *comm = device_op_comm(&entry->op);
    switch (entry->phase) {
    case PHASE_QUEUED: snprintf(what, sizeof what, "is about to start"); break;
    case PHASE_TURN:
        snprintf(what, sizeof what, "waits for the previous operation of communicator %s",
                 comm ? comm->name : "?");
        break;
    case PHASE_SLOTS:
        snprintf(what, sizeof what, "waits for %d residency slot%s, %d are free", entry->op.sm,
                 units_plural((size_t)entry->op.sm), stream->device->slots->free);
        break;
    case PHASE_EVENT:
        snprintf(
            what, sizeof what, "waits for operation %llu of stream %s, which has finished %llu",
            (unsigned long long)(entry->awaited.count - entry->awaited.stream->earlier),
            entry->awaited.stream->base.name,
            (unsigned long long)(entry->awaited.stream->finished - entry->awaited.stream->earlier));
        break;
    case PHASE_PEERS: comm_explain(entry, what, sizeof what); break;
    case PHASE_RUNNING: snprintf(what, sizeof what, "is running"); break;
    }
    snprintf(out, WAIT_TEXT, "%s %s", head, what);
    return true;
}
