/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_comm.c - communicators of the host device: channels, handles, turns.
 *
 * A *channel* is one communicator, shared by the handles of its members. Within a rank its
 * operations have turns, given when they are pushed: the hidden order NCCL puts across streams. A
 * collective also has a position, counted among the collectives only; the members meet there in a
 * *meeting*. The last member to arrive moves the data of all, so in-place operations need no care
 * about the order of reads. Sends and receives of started groups wait in `unmatched` until their
 * partner starts; the second to come moves the data.
 *
 * Data moves without the lock. Its memory stays alive: no member leaves a meeting while `moving`,
 * no group ends while one of its parts is `moving`, not even when the run is aborted.
 *
 * In a world of several processes (host_link.c) each has a copy of every channel it is a member of.
 * Members elsewhere are present as guests. Of a meeting the process moves the data of all that is the first to claim it
 * once all are there, in common memory; where some share none, that of the first member. In a large one each member
 * moves what it gets itself, and adds a share of the sums that all get (host_collective.c); of a small one each takes what
 * it gets from the desks of the others (host_desk.c). A send's data is moved by the receiver's process. A copy stays until
 * the world ends: positions go on where they were when a communicator is opened again.
 */
#include "host_comm.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#include "link_message.h"

enum { MOST_SPARE = 64 }; /* meetings of a channel */

/* ---- open and close -------------------------------------------------------------------------- */

static void free_meetings(struct host_comm_channel *channel)
{
    for (int list = 0; list < MEETING_LISTS; list++)
        while (channel->meetings[list]) {
            struct meeting *meeting = channel->meetings[list];
            channel->meetings[list] = meeting->next;
            for (int place = 0; place < channel->count; place++)
                if (meeting->arrived[place] && !meeting->arrived[place]->entry)
                    guest_free(guest_of(meeting->arrived[place]));
            free(meeting);
        }
    while (channel->spare) {
        struct meeting *meeting = channel->spare;
        channel->spare = meeting->next;
        free(meeting);
    }
}

static void channel_free(struct host_comm_channel *channel)
{
    if (!channel)
        return;
    free_meetings(channel);
    while (channel->unmatched) { /* only guests are left */
        struct host_part *part = channel->unmatched;
        channel->unmatched = part->next;
        guest_free(guest_of_part(part));
    }
    free(channel->name);
    free(channel->members);
    free(channel->open);
    free(channel->positions);
    seats_close(channel);
    free(channel);
}

static struct host_comm_channel *channel_find(struct host_world *world, const char *name,
                                              const int *members, int count)
{
    for (struct host_comm_channel *at = world->channels; at; at = at->next)
        if (at->count == count && strcmp(at->name, name) == 0 &&
            memcmp(at->members, members, (size_t)count * sizeof *members) == 0)
            return at;
    return NULL;
}

static struct host_comm_channel *channel_new(struct host_world *world, const char *name,
                                             const int *members, int count, struct diag *diag)
{
    struct host_comm_channel *channel = calloc(1, sizeof *channel);
    if (!channel) {
        diag_no_memory(diag);
        return NULL;
    }
    size_t size = (size_t)count;
    channel->name = strdup(name);
    channel->members = calloc(size, sizeof *channel->members);
    channel->open = calloc(size, sizeof *channel->open);
    channel->positions = calloc(size, sizeof *channel->positions);
    channel->count = count;
    channel->unmatched_end = &channel->unmatched;
    channel->world = world;
    bool complete = channel->name && channel->members && channel->open && channel->positions &&
                    (!world->link || seats_open(channel));
    if (!complete)
        diag_no_memory(diag);
    if (!complete || world_init_condition(world, &channel->changed, diag) != STATUS_OK) {
        channel_free(channel);
        return NULL;
    }
    memcpy(channel->members, members, size * sizeof *members);
    for (int i = 0; world->link && i < count; i++)
        channel->here += link_is_here(world->link, members[i]);
    channel->ring.condition = &channel->changed;
    channel->hash =
        hash_mix(hash_bytes(name, strlen(name)) ^ hash_bytes(members, size * sizeof *members));
    channel->next = world->channels;
    world->channels = channel;
    if (world->link) {
        link_settle_channel(world->link, channel);
        link_introduce(world->link, channel);
    }
    return channel;
}

/* A channel without handles goes, where no other process has a copy of it. */
static void channel_release(struct host_world *world, struct host_comm_channel *channel)
{
    if (channel->handles > 0 || world->link)
        return;
    assert(channel->handles == 0 && !channel->unmatched);
    struct host_comm_channel **link = &world->channels;
    while (*link != channel)
        link = &(*link)->next;
    *link = channel->next;
    world_unlock(world); /* rings for it, if that has not been done */
    pthread_mutex_lock(&world->lock);
    world_settle(world);
    pthread_cond_destroy(&channel->changed);
    channel_free(channel);
}

void comm_forget_channels(struct host_world *world)
{
    while (world->channels) {
        struct host_comm_channel *channel = world->channels;
        world->channels = channel->next;
        pthread_cond_destroy(&channel->changed);
        channel_free(channel);
    }
}

uint64_t comm_channel_name(const struct host_comm_channel *channel)
{
    return channel->hash;
}

const int *comm_channel_members(const struct host_comm_channel *channel, int *count)
{
    *count = channel->count;
    return channel->members;
}

int64_t comm_claim(const struct host_comm_channel *channel)
{
    return channel->claim_at;
}

bool comm_has_claim(const struct host_comm_channel *channel)
{
    return channel->claim;
}

void comm_set_claim(struct host_comm_channel *channel, _Atomic uint64_t *claim, int64_t at)
{
    channel->claim = claim;
    channel->claim_at = at;
}

void comm_set_near(struct host_comm_channel *channel)
{
    channel->near = true;
}

int comm_place_of(const struct host_comm_channel *channel, int rank)
{
    for (int place = 0; place < channel->count; place++)
        if (channel->members[place] == rank)
            return place;
    return -1;
}

struct host_comm_channel *comm_channel_find(struct host_world *world, uint64_t name)
{
    for (struct host_comm_channel *at = world->channels; at; at = at->next)
        if (at->hash == name)
            return at;
    return NULL;
}

static enum status join_channel(struct host_comm *comm, struct host_world *world, const char *name,
                                const int *members, int count, struct diag *diag)
{
    struct host_comm_channel *channel = channel_find(world, name, members, count);
    if (!channel)
        channel = channel_new(world, name, members, count, diag);
    if (!channel)
        return STATUS_SYSTEM;
    comm->base.name = channel->name;
    comm->base.members = channel->members;
    comm->base.count = count;
    int me = device_comm_place(&comm->base, comm->base.device->rank);
    assert(me >= 0 && channel->handles >= 0);
    if (channel->open[me])
        return diag_error(diag, STATUS_INPUT, "rank %d has communicator %s open already",
                          comm->base.device->rank, name);
    comm->base.me = me;
    comm->channel = channel;
    channel->open[me] = true;
    channel->handles++;
    return STATUS_OK;
}

enum status host_comm_open(struct device *base, const char *name, const int *members, int count,
                           struct device_comm **out, struct diag *diag)
{
    struct host_device *device = (struct host_device *)base;
    struct host_comm *comm = calloc(1, sizeof *comm);
    if (!comm)
        return diag_no_memory(diag);
    comm->base.device = base;
    pthread_mutex_lock(&device->world->lock);
    enum status status = join_channel(comm, device->world, name, members, count, diag);
    if (status) {
        free(comm);
    } else {
        comm->next = device->comms;
        device->comms = comm;
        *out = &comm->base;
    }
    world_unlock(device->world);
    return status;
}

void host_comm_close(struct device_comm *base)
{
    struct host_comm *comm = (struct host_comm *)base;
    struct host_device *device = (struct host_device *)base->device;
    pthread_mutex_lock(&device->world->lock);
    while (comm->gone < comm->issued)
        world_await(device->world, &comm->waiters, comm->issued, DEVICE_FOREVER, NULL);
    struct host_comm **link = &device->comms;
    while (*link != comm)
        link = &(*link)->next;
    *link = comm->next;
    assert(comm->gone == comm->issued && comm->channel->open[base->me]);
    comm->channel->open[base->me] = false;
    comm->channel->handles--;
    channel_release(device->world, comm->channel);
    world_unlock(device->world);
    free(comm);
}

bool host_comm_takes_own(const struct device_comm *comm, size_t bytes)
{
    const struct host_comm_channel *channel = ((const struct host_comm *)comm)->channel;
    return !channel->world->link || (channel->near && bytes <= DESK_BYTES);
}

/* ---- turns ----------------------------------------------------------------------------------- */

static size_t list_at(uint64_t position)
{
    return position % MEETING_LISTS;
}

struct meeting *meeting_find(const struct host_comm_channel *channel, uint64_t position)
{
    for (struct meeting *at = channel->meetings[list_at(position)]; at; at = at->next)
        if (at->position == position)
            return at;
    return NULL;
}

/* One that is over, or a new one, with nothing in it. */
static struct meeting *meeting_new(struct host_comm_channel *channel)
{
    const size_t count = (size_t)channel->count,
                 bytes = sizeof(struct meeting) + count * (sizeof(struct presence *) +
                                                           2 * sizeof(char *) + 3 * sizeof(bool));
    struct meeting *meeting = channel->spare;
    if (meeting) {
        channel->spare = meeting->next;
        channel->spares--;
    } else {
        meeting = malloc(bytes);
    }
    if (!meeting)
        return NULL;
    memset(meeting, 0, bytes);
    meeting->sent = (char **)(void *)(meeting->arrived + count);
    meeting->received = meeting->sent + count;
    meeting->came = (bool *)(meeting->received + count);
    meeting->took = meeting->came + count;
    meeting->kept = meeting->took + count;
    return meeting;
}

struct meeting *meeting_at(struct host_comm_channel *channel, uint64_t position)
{
    struct meeting *meeting = meeting_find(channel, position);
    if (meeting)
        return meeting;
    meeting = meeting_new(channel);
    if (!meeting)
        return NULL;
    meeting->unreached = -1;
    meeting->position = position;
    meeting->next = channel->meetings[list_at(position)];
    channel->meetings[list_at(position)] = meeting;
    return meeting;
}

void meeting_close(struct host_comm_channel *channel, struct meeting *meeting)
{
    assert(meeting->leavings == channel->count && meeting->arrivals == channel->count);
    assert(!meeting->moving && meeting->taking == 0 && !meeting->shared);
    struct meeting **link = &channel->meetings[list_at(meeting->position)];
    while (*link != meeting)
        link = &(*link)->next;
    *link = meeting->next;
    if (channel->spares == MOST_SPARE) {
        free(meeting);
        return;
    }
    meeting->next = channel->spare;
    channel->spare = meeting;
    channel->spares++;
}

enum status comm_issue(struct entry *entry, struct diag *diag)
{
    struct host_comm *comm = host_comm_of(entry);
    if (entry->op.kind == DEVICE_OP_COLLECTIVE) {
        uint64_t *position = &comm->channel->positions[comm->base.me];
        entry->meeting = meeting_at(comm->channel, *position);
        if (!entry->meeting)
            return diag_no_memory(diag);
        ++*position;
    }
    entry->turn = comm->issued++;
    return STATUS_OK;
}

void comm_retire(struct host_comm *comm, bool finished)
{
    assert(comm->done <= comm->gone && comm->gone < comm->issued);
    comm->gone++;
    if (finished)
        comm->done++;
    else
        comm->broken = true;
    world_reach(comm->channel->world, &comm->waiters, comm->broken ? UINT64_MAX : comm->done);
}

void channel_change(struct host_comm_channel *channel)
{
    if (channel->world->link)
        link_ring(channel->world->link);
    else
        world_ring(channel->world, &channel->ring);
}

void channel_wait(struct host_comm_channel *channel)
{
    if (channel->world->link)
        link_wait(channel->world->link, &channel->spin, NULL, 0);
    else
        world_wait(channel->world, &channel->changed);
}

void comm_wake_all(struct host_device *device)
{
    for (struct host_comm *comm = device->comms; comm; comm = comm->next)
        channel_change(comm->channel);
}

/* ---- in words -------------------------------------------------------------------------------- */

/* Append to a text of limited size; what does not fit is cut. */
static void host_comm_append(char *out, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void host_comm_append(char *out, size_t size, const char *format, ...)
{
    size_t used = strlen(out);
    va_list args;
    va_start(args, format);
    vsnprintf(out + used, size - used, format, args);
    va_end(args);
}

static void explain_group(const struct entry *entry, char *out, size_t size)
{
    const char *between = "";
    for (const struct host_part *part = host_comm_of(entry)->channel->unmatched; part;
         part = part->next) {
        if (part->entry != entry)
            continue;
        const char *tag = part->what->tag;
        host_comm_append(out, size, "%s%s%s%s%s %s rank %d", between,
                         part->what->send ? "send" : "receive", tag ? " '" : "", tag ? tag : "",
                         tag ? "'" : "", part->what->send ? "to" : "from", part->what->peer);
        between = ", ";
    }
}

/* All members are there; their data has not moved. */
static void explain_data(const struct host_comm_channel *channel, const struct meeting *meeting,
                         char *out, size_t size)
{
    int mover = meeting_mover(channel, meeting), from = meeting->unreached;
    if (from >= 0)
        host_comm_append(out, size, "the data of rank %d", from);
    else if (meeting->takes) {
        /* Those that have not taken what they get. */
        const char *between = "rank ";
        for (int place = 0; place < channel->count; place++)
            if (!meeting->took[place]) {
                host_comm_append(out, size, "%s%d", between, channel->members[place]);
                between = ", ";
            }
        host_comm_append(out, size, " to copy the data");
    } else if (meeting->moving)
        host_comm_append(out, size, "the data to be copied");
    else if (mover >= 0)
        host_comm_append(out, size, "rank %d to move the data", mover);
    else
        host_comm_append(out, size, "a rank to move the data");
}

void comm_explain(const struct entry *entry, char *out, size_t size)
{
    const struct host_comm_channel *channel = host_comm_of(entry)->channel;
    snprintf(out, size, "on communicator %s waits for ", channel->name);
    if (entry->op.kind == DEVICE_OP_GROUP) {
        explain_group(entry, out, size);
        return;
    }
    const char *between = "rank ";
    for (int place = 0; place < channel->count; place++)
        if (!entry->meeting->came[place]) {
            host_comm_append(out, size, "%s%d", between, channel->members[place]);
            between = ", ";
        }
    if (entry->meeting->arrivals == channel->count)
        explain_data(channel, entry->meeting, out, size);
    host_comm_append(out, size, " at position %llu", (unsigned long long)entry->meeting->position);
}

/*
 * Groups of the host device: each part, a send or a receive, finds its partner or waits for it
 * in `unmatched`; the second of the two moves the data. See host_comm.c for the rules.
 */

/* The oldest part that waits for this one: same way, other end. Taken out of `unmatched`. */
static struct host_part *take_partner(struct host_comm_channel *channel,
                                      const struct host_part *part)
{
    for (struct host_part **link = &channel->unmatched; *link; link = &(*link)->next) {
        struct host_part *other = *link;
        if (other->from != part->from || other->to != part->to ||
            other->what->send == part->what->send)
            continue;
        *link = other->next;
        if (channel->unmatched_end == &other->next)
            channel->unmatched_end = link;
        return other;
    }
    return NULL;
}

static void wait_for_partner(struct host_comm_channel *channel, struct host_part *part)
{
    part->next = NULL;
    *channel->unmatched_end = part;
    channel->unmatched_end = &part->next;
}

/* True if one of the two ends is in another process. */
static bool crosses(const struct host_world *world, const struct host_part *part)
{
    return !device_world_has(&world->base, part->from) || !device_world_has(&world->base, part->to);
}

/* A failed group withdraws its unmatched parts. */
static void host_group_take_back(struct host_comm_channel *channel, const struct entry *entry)
{
    struct host_part **link = &channel->unmatched;
    while (*link) {
        struct host_part *part = *link;
        if (part->entry != entry) {
            link = &part->next;
            continue;
        }
        if (part->id)
            link_withdraw(channel->world->link, channel, part);
        *link = part->next;
    }
    channel->unmatched_end = link;
}

/* 'x', or "a message": that of a function has no tag. */
#define TAG_FORMAT "%s%s%s"
#define TAG_PIECES(what)                                                                           \
    (what)->tag ? "'" : "", (what)->tag ? (what)->tag : "a message", (what)->tag ? "'" : ""

/* Tell both ends that they do not fit; a guest's part is gone then. */
static void fail_pair(struct host_comm_channel *channel, struct host_part *a, struct host_part *b)
{
    struct host_part *parts[] = {a, b};
    struct failure failure;
    const struct host_part *send = a->what->send ? a : b, *receive = a->what->send ? b : a;
    char sent[ITERATION_TEXT] = "", received[ITERATION_TEXT] = "";
    if (!same_iteration(send->what->iteration, receive->what->iteration)) {
        iteration_text(send->what->iteration, sent);
        iteration_text(receive->what->iteration, received);
    }
    failure.status = STATUS_VIOLATED;
    snprintf(failure.text, sizeof failure.text,
             "point-to-point mismatch on communicator %s: rank %d sends " TAG_FORMAT
             " of %lld bytes%s, rank %d receives " TAG_FORMAT " of %lld bytes%s",
             channel->name, send->from, TAG_PIECES(send->what), (long long)send->what->bytes, sent,
             send->to, TAG_PIECES(receive->what), (long long)receive->what->bytes, received);
    for (int i = 0; i < 2; i++)
        if (parts[i]->entry) {
            stream_fail(parts[i]->entry->stream, failure.status, "%s", failure.text);
        } else {
            link_received(channel->world->link, channel, parts[i], &failure);
            guest_free(guest_of_part(parts[i]));
        }
}

/* Match two parts; the poster of `receiver` moves the data. */
static void match(struct host_comm_channel *channel, struct host_part *part,
                  struct host_part *partner)
{
    if (part->what->bytes != partner->what->bytes ||
        !same_tag(part->what->tag, partner->what->tag) ||
        !same_iteration(part->what->iteration, partner->what->iteration)) {
        fail_pair(channel, part, partner);
        return;
    }
    assert(!part->partner && !partner->partner && part->from == partner->from);
    part->partner = partner;
    if (partner->entry)
        partner->entry->moving++;
}

/* Post all parts of a group at once: each either finds its partner or waits for it. A partner found
   is held, so that its group cannot end before the data has moved. */
static void post(struct entry *entry)
{
    struct host_comm_channel *channel = host_comm_of(entry)->channel;
    struct host_world *world = channel->world;
    for (size_t i = 0; i < entry->op.group.count; i++) {
        struct host_part *part = &entry->parts[i];
        int me = host_comm_rank_of(entry), peer = entry->copies[i].peer;
        bool send = entry->copies[i].send;
        *part = (struct host_part){.entry = entry, .what = &entry->copies[i]};
        part->from = send ? me : peer;
        part->to = send ? peer : me;
        struct host_part *partner = take_partner(channel, part);
        if (partner) {
            match(channel, part, partner);
            continue;
        }
        if (send && crosses(world, part))
            part->id = link_next_id(world->link);
        wait_for_partner(channel, part);
        if (part->id)
            link_send(world->link, channel, part);
    }
}

/* The data of a part and its partner has moved. */
static void host_group_release(struct host_comm_channel *channel, struct host_part *part)
{
    struct host_part *other = part->partner;
    part->partner = NULL;
    assert(part->entry->unfinished > 0);
    part->entry->unfinished--;
    if (other->entry) {
        assert(other->entry->unfinished > 0 && other->entry->moving > 0);
        other->entry->unfinished--;
        other->entry->moving--;
    } else {
        link_received(channel->world->link, channel, other, NULL);
        guest_free(guest_of_part(other));
    }
    if (channel->world->link)
        link_ring(channel->world->link);
    else
        stream_rouse(other->entry->stream);
}

/* Move the data of the parts that have found their partner. Returns whether there were any. */
static bool host_group_exchange(struct entry *entry)
{
    struct host_world *world = entry->stream->world;
    bool any = false;
    for (size_t i = 0; i < entry->op.group.count; i++) {
        struct host_part *part = &entry->parts[i], *other = part->partner;
        if (!other)
            continue;
        const struct host_part *send = part->what->send ? part : other;
        const struct host_part *receive = part->what->send ? other : part;
        any = true;
        world_unlock(world);
        size_t bytes = (size_t)send->what->bytes;
        bool here = send->entry || guest_has_bytes(guest_of_part(other), bytes, 0);
        if (here)
            host_comm_move_bytes(ref_address(receive->what->data), ref_address(send->what->data),
                                 bytes);
        pthread_mutex_lock(&world->lock);
        if (!here)
            stream_fail(entry->stream, STATUS_VIOLATED,
                        "the data that rank %d sends cannot be reached", send->from);
        host_group_release(host_comm_of(entry)->channel, part);
    }
    return any;
}

/* A waiting part may find its partner while other data moves, so the loop looks for partners until the end. */
void comm_perform_group(struct entry *entry)
{
    struct host_stream *stream = entry->stream;
    struct host_comm_channel *channel = host_comm_of(entry)->channel;
    entry->phase = PHASE_PEERS;
    entry->unfinished = entry->op.group.count;
    if (stream->world->link)
        link_look(stream->world->link);
    post(entry);
    entry_started(entry);
    for (;;) {
        while (host_group_exchange(entry))
            continue;
        if (entry->moving == 0 && (entry->unfinished == 0 || stream_failed(stream)))
            break;
        if (channel->world->link)
            channel_wait(channel);
        else
            stream_sleep(stream, &(struct host_waiters){0}, 0, DEVICE_FOREVER);
    }
    host_group_take_back(channel, entry);
}

/* ---- the other end in another process -------------------------------------------------------- */

void comm_guest_sends(struct host_comm_channel *channel, struct guest *guest)
{
    struct host_part *receive = take_partner(channel, &guest->part);
    if (!receive)
        wait_for_partner(channel, &guest->part);
    else
        match(channel, receive, &guest->part);
    channel_change(channel);
}

/* Take a part out of `unmatched`: of ours (`rank` -1) or of a guest, by its number. NULL: it is not
   there. */
static struct host_part *take_numbered(struct host_comm_channel *channel, int rank, uint64_t id)
{
    for (struct host_part **link = &channel->unmatched; *link; link = &(*link)->next) {
        struct host_part *part = *link;
        if (part->id != id || (rank < 0 ? !part->entry : part->entry || part->from != rank))
            continue;
        *link = part->next;
        if (channel->unmatched_end == &part->next)
            channel->unmatched_end = link;
        return part;
    }
    return NULL;
}

void comm_guest_withdraws(struct host_comm_channel *channel, int rank, uint64_t id)
{
    struct host_part *part = take_numbered(channel, rank, id);
    if (part)
        guest_free(guest_of_part(part));
}

void comm_sent(struct host_comm_channel *channel, uint64_t id, const struct failure *failure)
{
    struct host_part *part = take_numbered(channel, -1, id);
    if (!part)
        return; /* taken back meanwhile */
    if (failure)
        stream_fail(part->entry->stream, failure->status, "%s", failure->text);
    else {
        assert(part->entry->unfinished > 0);
        part->entry->unfinished--;
    }
    channel_change(channel);
}
