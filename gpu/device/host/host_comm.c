/*
 * host_comm.c - communicators of the host device: turns, collectives, groups.
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
 * Members elsewhere are present as guests. Of a meeting the stream of the first member moves the data of
 * all; of a send and a receive the receiver's. A copy stays until the world ends: positions go on where
 * they were when a communicator is opened again.
 */
#include "host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/hash.h"
#include "net/rendezvous.h"

enum { SUM_FLOATS = 1024 };

/* One position of a communicator, from the first push there until the last member has left. */
struct meeting {
    struct meeting *next;
    uint64_t position;
    struct presence **arrived; /* [channel->count], by place; NULL: not yet, or left */
    int arrivals, leavings;
    bool moving, done;
    int unreached;          /* the rank whose data cannot be had; -1: none */
    struct failure failure; /* a mismatch: later arrivals fail with it, too */
};

struct channel {
    struct channel *next;
    char *name;
    int *members;
    int count;
    struct host_world *world;
    uint64_t hash;       /* its name for other processes */
    int handles;         /* open ones */
    bool *open;          /* [count] */
    uint64_t *positions; /* [count] collectives pushed by each member */
    struct meeting *meetings;
    struct part *unmatched, **unmatched_end;
    pthread_cond_t changed;
};

/* ---- open and close -------------------------------------------------------------------------- */

static struct guest *guest_of(struct presence *presence)
{
    return (struct guest *)presence; /* its first member; only where there is no entry */
}

static void meeting_free(struct meeting *meeting, int count)
{
    for (int place = 0; meeting->arrived && place < count; place++)
        if (meeting->arrived[place] && !meeting->arrived[place]->entry)
            guest_free(guest_of(meeting->arrived[place]));
    free(meeting->arrived);
    free(meeting);
}

static struct guest *guest_of_part(struct part *part)
{
    return (struct guest *)((char *)part - offsetof(struct guest, part));
}

static void channel_free(struct channel *channel)
{
    if (!channel)
        return;
    while (channel->meetings) {
        struct meeting *meeting = channel->meetings;
        channel->meetings = meeting->next;
        meeting_free(meeting, channel->count);
    }
    while (channel->unmatched) { /* only guests are left */
        struct part *part = channel->unmatched;
        channel->unmatched = part->next;
        guest_free(guest_of_part(part));
    }
    free(channel->name);
    free(channel->members);
    free(channel->open);
    free(channel->positions);
    free(channel);
}

static struct channel *channel_find(struct host_world *world, const char *name, const int *members,
                                    int count)
{
    for (struct channel *at = world->channels; at; at = at->next)
        if (at->count == count && strcmp(at->name, name) == 0 &&
            memcmp(at->members, members, (size_t)count * sizeof *members) == 0)
            return at;
    return NULL;
}

static struct channel *channel_new(struct host_world *world, const char *name, const int *members,
                                   int count, struct diag *diag)
{
    struct channel *channel = calloc(1, sizeof *channel);
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
    bool complete = channel->name && channel->members && channel->open && channel->positions;
    if (!complete)
        diag_no_memory(diag);
    if (!complete || world_init_condition(world, &channel->changed, diag) != STATUS_OK) {
        channel_free(channel);
        return NULL;
    }
    memcpy(channel->members, members, size * sizeof *members);
    channel->world = world;
    channel->hash =
        hash_mix(hash_bytes(name, strlen(name)) ^ hash_bytes(members, size * sizeof *members));
    channel->next = world->channels;
    world->channels = channel;
    if (world->link)
        link_introduce(world->link, channel);
    return channel;
}

/* A channel without handles goes, where no other process has a copy of it. */
static void channel_release(struct host_world *world, struct channel *channel)
{
    if (channel->handles > 0 || world->link)
        return;
    struct channel **link = &world->channels;
    while (*link != channel)
        link = &(*link)->next;
    *link = channel->next;
    pthread_cond_destroy(&channel->changed);
    channel_free(channel);
}

void comm_forget_channels(struct host_world *world)
{
    while (world->channels) {
        struct channel *channel = world->channels;
        world->channels = channel->next;
        pthread_cond_destroy(&channel->changed);
        channel_free(channel);
    }
}

uint64_t comm_channel_name(const struct channel *channel)
{
    return channel->hash;
}

const int *comm_channel_members(const struct channel *channel, int *count)
{
    *count = channel->count;
    return channel->members;
}

struct channel *comm_channel_find(struct host_world *world, uint64_t name)
{
    for (struct channel *at = world->channels; at; at = at->next)
        if (at->hash == name)
            return at;
    return NULL;
}

static enum status join_channel(struct host_comm *comm, struct host_world *world, const char *name,
                                const int *members, int count, struct diag *diag)
{
    struct channel *channel = channel_find(world, name, members, count);
    if (!channel)
        channel = channel_new(world, name, members, count, diag);
    if (!channel)
        return STATUS_SYSTEM;
    comm->base.name = channel->name;
    comm->base.members = channel->members;
    comm->base.count = count;
    int me = device_comm_place(&comm->base, comm->base.device->rank);
    if (channel->open[me])
        return diag_error(diag, STATUS_INPUT, "rank %d has communicator %s open already",
                          comm->base.device->rank, name);
    enum status status = world_init_condition(world, &comm->changed, diag);
    if (status) {
        channel_release(world, channel);
        return status;
    }
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
    pthread_mutex_unlock(&device->world->lock);
    return status;
}

void host_comm_close(struct device_comm *base)
{
    struct host_comm *comm = (struct host_comm *)base;
    struct host_device *device = (struct host_device *)base->device;
    pthread_mutex_lock(&device->world->lock);
    while (comm->gone < comm->issued)
        world_wait(device->world, &comm->changed);
    struct host_comm **link = &device->comms;
    while (*link != comm)
        link = &(*link)->next;
    *link = comm->next;
    comm->channel->open[base->me] = false;
    comm->channel->handles--;
    channel_release(device->world, comm->channel);
    pthread_mutex_unlock(&device->world->lock);
    pthread_cond_destroy(&comm->changed);
    free(comm);
}

/* ---- turns ----------------------------------------------------------------------------------- */

static struct host_comm *comm_of(const struct entry *entry)
{
    return (struct host_comm *)device_op_comm(&entry->op);
}

static struct meeting *meeting_find(const struct channel *channel, uint64_t position)
{
    for (struct meeting *at = channel->meetings; at; at = at->next)
        if (at->position == position)
            return at;
    return NULL;
}

/* The meeting at a position; made when this is the first to speak of it. NULL: no memory. */
static struct meeting *meeting_at(struct channel *channel, uint64_t position)
{
    struct meeting *meeting = meeting_find(channel, position);
    if (meeting)
        return meeting;
    meeting = calloc(1, sizeof *meeting);
    if (!meeting)
        return NULL;
    meeting->unreached = -1;
    meeting->arrived = calloc((size_t)channel->count, sizeof(struct presence *));
    if (!meeting->arrived) {
        free(meeting);
        return NULL;
    }
    meeting->position = position;
    meeting->next = channel->meetings;
    channel->meetings = meeting;
    return meeting;
}

enum status comm_issue(struct entry *entry, struct diag *diag)
{
    struct host_comm *comm = comm_of(entry);
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
    comm->gone++;
    if (finished)
        comm->done++;
    else
        comm->broken = true;
    pthread_cond_broadcast(&comm->changed);
}

void comm_wake_all(struct host_device *device)
{
    for (struct host_comm *comm = device->comms; comm; comm = comm->next) {
        pthread_cond_broadcast(&comm->changed);
        pthread_cond_broadcast(&comm->channel->changed);
    }
}

/* ---- collectives: the data ------------------------------------------------------------------- */

/* The arguments of all members at one position; all that moving the data reads. */
struct delivery {
    struct presence **arrived;            /* by place */
    int count, root;                      /* the root's place */
    const struct device_collective *what; /* of place 0; equal everywhere but for the buffers */
};

static char *sent_by(const struct delivery *all, int place)
{
    return ref_address(all->arrived[place]->op->collective.send);
}

static char *received_by(const struct delivery *all, int place)
{
    return ref_address(all->arrived[place]->op->collective.recv);
}

static void move(char *to, const char *from, size_t bytes)
{
    if (bytes > 0 && to != from)
        memmove(to, from, bytes);
}

/* The sums over all members of `count` floats at `offset`, in order of place: the same on every
 * run. */
static void add_up(const struct delivery *all, size_t offset, size_t count, float *sum)
{
    memset(sum, 0, count * sizeof *sum);
    for (int from = 0; from < all->count; from++)
        host_add(sum, (const float *)(void *)(sent_by(all, from) + offset), count);
}

/* Sums of bytes [begin, end) of what was sent, to `first` .. `last` members, at the same place less
   `shift`. In place is safe: a piece is read from all before it is written to any. */
static void reduce(const struct delivery *all, size_t begin, size_t end, int first, int last,
                   size_t shift)
{
    float sum[SUM_FLOATS];
    for (size_t at = begin; at < end; at += sizeof sum) {
        size_t bytes = end - at < sizeof sum ? end - at : sizeof sum;
        add_up(all, at, bytes / sizeof *sum, sum);
        for (int to = first; to <= last; to++)
            memcpy(received_by(all, to) + (at - shift), sum, bytes);
    }
}

static void deliver(const struct delivery *all)
{
    size_t bytes = (size_t)all->what->bytes, block = bytes / (size_t)all->count;
    switch (all->what->kind) {
    case COLLECTIVE_ALL_TO_ALL:
        for (int to = 0; to < all->count; to++)
            for (int from = 0; from < all->count; from++)
                move(received_by(all, to) + (size_t)from * block,
                     sent_by(all, from) + (size_t)to * block, block);
        break;
    case COLLECTIVE_ALL_GATHER:
        for (int to = 0; to < all->count; to++)
            for (int from = 0; from < all->count; from++)
                move(received_by(all, to) + (size_t)from * block, sent_by(all, from), block);
        break;
    case COLLECTIVE_ALL_REDUCE: reduce(all, 0, bytes, 0, all->count - 1, 0); break;
    case COLLECTIVE_REDUCE_SCATTER:
        for (int to = 0; to < all->count; to++)
            reduce(all, (size_t)to * block, (size_t)(to + 1) * block, to, to, (size_t)to * block);
        break;
    case COLLECTIVE_BROADCAST:
        for (int to = 0; to < all->count; to++)
            move(received_by(all, to), sent_by(all, all->root), bytes);
        break;
    case COLLECTIVE_BARRIER: break;
    }
}

/* How many bytes a member gives, and gets. */
static size_t given_by(const struct delivery *all, int place)
{
    size_t bytes = (size_t)all->what->bytes, block = bytes / (size_t)all->count;
    switch (all->what->kind) {
    case COLLECTIVE_ALL_TO_ALL:
    case COLLECTIVE_REDUCE_SCATTER: return block * (size_t)all->count;
    case COLLECTIVE_ALL_GATHER: return block;
    case COLLECTIVE_ALL_REDUCE: return bytes;
    case COLLECTIVE_BROADCAST: return place == all->root ? bytes : 0;
    case COLLECTIVE_BARRIER: break;
    }
    return 0;
}

static size_t got_by(const struct delivery *all)
{
    size_t bytes = (size_t)all->what->bytes, block = bytes / (size_t)all->count;
    switch (all->what->kind) {
    case COLLECTIVE_ALL_TO_ALL:
    case COLLECTIVE_ALL_GATHER: return block * (size_t)all->count;
    case COLLECTIVE_REDUCE_SCATTER: return block;
    case COLLECTIVE_ALL_REDUCE:
    case COLLECTIVE_BROADCAST: return bytes;
    case COLLECTIVE_BARRIER: break;
    }
    return 0;
}

/* Fetch from, or store to, members whose memory is not here: before and after the data moves. Returns the
   rank that could not be reached, -1: none. */
static int fetch_far(struct host_link *link, const struct delivery *all, const atomic_bool *stop)
{
    for (int place = 0; link && place < all->count; place++)
        if (!all->arrived[place]->entry && !link_fetch(link, guest_of(all->arrived[place]),
                                                       given_by(all, place), got_by(all), stop))
            return all->arrived[place]->rank;
    return -1;
}

static int store_far(struct host_link *link, const struct delivery *all)
{
    for (int place = 0; link && place < all->count; place++)
        if (!all->arrived[place]->entry &&
            !link_store(link, guest_of(all->arrived[place]), got_by(all)))
            return all->arrived[place]->rank;
    return -1;
}

/* ---- collectives: the meeting ---------------------------------------------------------------- */

static bool same_tag(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_collective(const struct device_collective *a, const struct device_collective *b)
{
    return a->kind == b->kind && a->bytes == b->bytes && same_tag(a->tag, b->tag) &&
           (a->kind != COLLECTIVE_BROADCAST || a->root == b->root);
}

static int rank_of(const struct entry *entry)
{
    return entry->stream->device->base.rank;
}

static void fail_meeting(struct meeting *meeting, int count)
{
    for (int place = 0; place < count; place++)
        if (meeting->arrived[place] && meeting->arrived[place]->entry)
            stream_fail(meeting->arrived[place]->entry->stream, meeting->failure.status, "%s",
                        meeting->failure.text);
}

/* Two members disagree about what happens at this position. */
static void mismatch(const struct channel *channel, struct meeting *meeting,
                     const struct presence *a, const struct presence *b)
{
    char text_a[OP_TEXT], text_b[OP_TEXT];
    meeting->failure.status = STATUS_VIOLATED;
    snprintf(meeting->failure.text, sizeof meeting->failure.text,
             "collective mismatch on communicator %s, position %llu: rank %d has %s of %lld bytes, "
             "rank %d has %s of %lld bytes",
             channel->name, (unsigned long long)meeting->position, a->rank,
             device_op_text(a->op, text_a), (long long)a->op->collective.bytes, b->rank,
             device_op_text(b->op, text_b), (long long)b->op->collective.bytes);
}

/* The place of a rank among the members, or -1. */
static int place_of(const struct channel *channel, int rank)
{
    for (int place = 0; place < channel->count; place++)
        if (channel->members[place] == rank)
            return place;
    return -1;
}

/* Arrive at the meeting and compare with one member there: all members there agree. */
static void arrive(struct channel *channel, struct meeting *meeting, struct presence *presence)
{
    const struct presence *other = NULL;
    for (int place = 0; place < channel->count && !other; place++)
        other = meeting->arrived[place];
    meeting->arrived[place_of(channel, presence->rank)] = presence;
    if (++meeting->arrivals == channel->count)
        pthread_cond_broadcast(&channel->changed); /* for the member that moves the data */
    if (other && !meeting->failure.status &&
        !same_collective(&other->op->collective, &presence->op->collective))
        mismatch(channel, meeting, other, presence);
    if (meeting->failure.status)
        fail_meeting(meeting, channel->count);
}

/* The last to leave closes the meeting. A member that leaves before the end has failed and leaves the reason
   behind: later arrivals fail with it instead of reading buffers that are gone. Returns whether it was the
   last. */
static bool leave(struct channel *channel, struct meeting *meeting, int place,
                  const struct failure *failure)
{
    if (meeting->arrived[place] && !meeting->arrived[place]->entry)
        guest_free(guest_of(meeting->arrived[place]));
    meeting->arrived[place] = NULL;
    if (!meeting->done && !meeting->failure.status)
        meeting->failure = *failure;
    if (++meeting->leavings < channel->count)
        return false;
    struct meeting **link = &channel->meetings;
    while (*link != meeting)
        link = &(*link)->next;
    *link = meeting->next;
    meeting_free(meeting, channel->count);
    return true;
}

/* The data has moved: guests leave at once, as far as this copy knows, our own as they wake up. */
static void adjourn(struct channel *channel, struct meeting *meeting)
{
    meeting->moving = false;
    meeting->done = true;
    pthread_cond_broadcast(&channel->changed);
    for (int place = 0; place < channel->count; place++)
        if (meeting->arrived[place] && !meeting->arrived[place]->entry &&
            leave(channel, meeting, place, NULL))
            return;
}

/* A member's data is out of reach. If it is dead the watchdog ends the run, and until then this stream
   waits for it, as any other would; else it has failed. */
static void strand(struct meeting *meeting, struct host_stream *stream, int rank)
{
    meeting->moving = false;
    meeting->unreached = rank;
    if (rendezvous_gone(stream->world->base.config.rendezvous) < 0)
        stream_fail(stream, STATUS_VIOLATED, "the data of rank %d cannot be reached", rank);
}

/* All members are here: move the data of all, on the stream of the first. */
static void complete(struct channel *channel, struct meeting *meeting, struct host_stream *stream)
{
    struct host_world *world = channel->world;
    const struct device_collective *what = &meeting->arrived[0]->op->collective;
    struct delivery all = {.arrived = meeting->arrived,
                           .count = channel->count,
                           .root = place_of(channel, what->root),
                           .what = what};
    meeting->moving = true;
    pthread_mutex_unlock(&world->lock);
    int unreached = fetch_far(world->link, &all, &stream->stop);
    if (unreached < 0) {
        deliver(&all);
        unreached = store_far(world->link, &all);
    }
    pthread_mutex_lock(&world->lock);
    if (unreached >= 0) {
        strand(meeting, stream, unreached);
        return;
    }
    if (world->link)
        link_delivered(world->link, channel, meeting->position);
    adjourn(channel, meeting);
}

/* Is it this member's turn to move the data? */
static bool can_complete(const struct channel *channel, const struct meeting *meeting, int place)
{
    return meeting->arrivals == channel->count && !meeting->moving && !meeting->done &&
           meeting->unreached < 0 && !meeting->failure.status &&
           (!channel->world->link || place == 0);
}

void comm_perform_collective(struct entry *entry)
{
    struct host_stream *stream = entry->stream;
    struct host_comm *comm = comm_of(entry);
    struct channel *channel = comm->channel;
    struct meeting *meeting = entry->meeting;
    struct host_link *link = stream->world->link;
    entry->phase = PHASE_PEERS;
    entry->presence = (struct presence){entry, &entry->op, rank_of(entry)};
    arrive(channel, meeting, &entry->presence);
    entry_started(entry);
    if (link)
        link_arrive(link, channel, meeting->position, entry);
    while (meeting->moving || (!meeting->done && !stream_failed(stream)))
        if (can_complete(channel, meeting, comm->base.me))
            complete(channel, meeting, stream);
        else
            world_wait(stream->world, &channel->changed);
    if (link && !meeting->done)
        link_leave(link, channel, meeting->position, rank_of(entry), &stream->failure);
    leave(channel, meeting, comm->base.me, &stream->failure);
}

/* ---- collectives: members in other processes ------------------------------------------------- */

void comm_guest_arrives(struct channel *channel, uint64_t position, struct guest *guest)
{
    struct meeting *meeting = meeting_at(channel, position);
    if (!meeting) {
        guest_free(guest);
        world_fail_all(channel->world, "no memory for a collective");
        return;
    }
    arrive(channel, meeting, &guest->presence);
}

void comm_guest_leaves(struct channel *channel, uint64_t position, int rank,
                       const struct failure *failure)
{
    struct meeting *meeting = meeting_find(channel, position);
    int place = place_of(channel, rank);
    if (!meeting || meeting->moving || !meeting->arrived[place])
        return; /* it is over, or about to be: then the data was there in time */
    leave(channel, meeting, place, failure);
}

void comm_delivered(struct channel *channel, uint64_t position)
{
    struct meeting *meeting = meeting_find(channel, position);
    if (meeting)
        adjourn(channel, meeting);
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* The oldest part that waits for this one: same way, other end. Taken out of `unmatched`. */
static struct part *take_partner(struct channel *channel, const struct part *part)
{
    for (struct part **link = &channel->unmatched; *link; link = &(*link)->next) {
        struct part *other = *link;
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

static void wait_for_partner(struct channel *channel, struct part *part)
{
    part->next = NULL;
    *channel->unmatched_end = part;
    channel->unmatched_end = &part->next;
}

static const char *tag_text(const struct device_p2p *what)
{
    return what->tag ? what->tag : "";
}

/* Is one of the two ends in another process? */
static bool crosses(const struct host_world *world, const struct part *part)
{
    return !device_world_has(&world->base, part->from) || !device_world_has(&world->base, part->to);
}

/* A failed group withdraws its unmatched parts. */
static void take_back(struct channel *channel, const struct entry *entry)
{
    struct part **link = &channel->unmatched;
    while (*link) {
        struct part *part = *link;
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

static void describe_pair(const struct channel *channel, const struct part *a, const struct part *b,
                          struct failure *out)
{
    const struct part *send = a->what->send ? a : b, *receive = a->what->send ? b : a;
    out->status = STATUS_VIOLATED;
    snprintf(out->text, sizeof out->text,
             "point-to-point mismatch on communicator %s: rank %d sends '%s' of %lld bytes, "
             "rank %d receives '%s' of %lld bytes",
             channel->name, send->from, tag_text(send->what), (long long)send->what->bytes,
             send->to, tag_text(receive->what), (long long)receive->what->bytes);
}

/* Tell both ends that they do not fit; a guest's part is gone then. */
static void fail_pair(struct channel *channel, struct part *a, struct part *b)
{
    struct part *parts[] = {a, b};
    struct failure failure;
    describe_pair(channel, a, b, &failure);
    for (int i = 0; i < 2; i++)
        if (parts[i]->entry) {
            stream_fail(parts[i]->entry->stream, failure.status, "%s", failure.text);
        } else {
            link_received(channel->world->link, channel, parts[i], &failure);
            guest_free(guest_of_part(parts[i]));
        }
}

/* Match two parts; the poster of `receiver` moves the data. */
static void match(struct channel *channel, struct part *part, struct part *partner)
{
    if (part->what->bytes != partner->what->bytes ||
        !same_tag(part->what->tag, partner->what->tag)) {
        fail_pair(channel, part, partner);
        return;
    }
    part->partner = partner;
    if (partner->entry)
        partner->entry->moving++;
}

/* Post all parts of a group at once: each either finds its partner or waits for it. A partner found
   is held, so that its group cannot end before the data has moved. */
static void post(struct entry *entry)
{
    struct channel *channel = comm_of(entry)->channel;
    struct host_world *world = channel->world;
    for (size_t i = 0; i < entry->op.group.count; i++) {
        struct part *part = &entry->parts[i];
        int me = rank_of(entry), peer = entry->copies[i].peer;
        bool send = entry->copies[i].send;
        *part = (struct part){.entry = entry, .what = &entry->copies[i]};
        part->from = send ? me : peer;
        part->to = send ? peer : me;
        struct part *partner = take_partner(channel, part);
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
static void release(struct channel *channel, struct part *part)
{
    struct part *other = part->partner;
    part->partner = NULL;
    part->entry->unfinished--;
    if (other->entry) {
        other->entry->unfinished--;
        other->entry->moving--;
    } else {
        link_received(channel->world->link, channel, other, NULL);
        guest_free(guest_of_part(other));
    }
    pthread_cond_broadcast(&channel->changed);
}

/* Move the data of the parts that have found their partner. Returns whether there were any. */
static bool exchange(struct entry *entry)
{
    struct host_world *world = entry->stream->world;
    bool any = false;
    for (size_t i = 0; i < entry->op.group.count; i++) {
        struct part *part = &entry->parts[i], *other = part->partner;
        if (!other)
            continue;
        const struct part *send = part->what->send ? part : other;
        const struct part *receive = part->what->send ? other : part;
        any = true;
        pthread_mutex_unlock(&world->lock);
        size_t bytes = (size_t)send->what->bytes;
        bool here = send->entry ||
                    link_fetch(world->link, guest_of_part(other), bytes, 0, &entry->stream->stop);
        if (here)
            move(ref_address(receive->what->data), ref_address(send->what->data), bytes);
        pthread_mutex_lock(&world->lock);
        if (!here)
            stream_fail(entry->stream, STATUS_VIOLATED,
                        "the data that rank %d sends cannot be reached", send->from);
        release(comm_of(entry)->channel, part);
    }
    return any;
}

/* What waits here may find its partner while something else moves, so it is looked for until the end. */
void comm_perform_group(struct entry *entry)
{
    struct host_stream *stream = entry->stream;
    struct channel *channel = comm_of(entry)->channel;
    entry->phase = PHASE_PEERS;
    entry->unfinished = entry->op.group.count;
    post(entry);
    entry_started(entry);
    for (;;) {
        while (exchange(entry))
            continue;
        if (entry->moving == 0 && (entry->unfinished == 0 || stream_failed(stream)))
            break;
        world_wait(stream->world, &channel->changed);
    }
    take_back(channel, entry);
}

/* ---- groups: the other end in another process ------------------------------------------------ */

void comm_guest_sends(struct channel *channel, struct guest *guest)
{
    struct part *receive = take_partner(channel, &guest->part);
    if (!receive)
        wait_for_partner(channel, &guest->part);
    else
        match(channel, receive, &guest->part);
    pthread_cond_broadcast(&channel->changed);
}

/* Take a part out of `unmatched`: of ours (`rank` -1) or of a guest, by its number. NULL: it is not
   there. */
static struct part *take_numbered(struct channel *channel, int rank, uint64_t id)
{
    for (struct part **link = &channel->unmatched; *link; link = &(*link)->next) {
        struct part *part = *link;
        if (part->id != id || (rank < 0 ? !part->entry : part->entry || part->from != rank))
            continue;
        *link = part->next;
        if (channel->unmatched_end == &part->next)
            channel->unmatched_end = link;
        return part;
    }
    return NULL;
}

void comm_guest_withdraws(struct channel *channel, int rank, uint64_t id)
{
    struct part *part = take_numbered(channel, rank, id);
    if (part)
        guest_free(guest_of_part(part));
}

void comm_sent(struct channel *channel, uint64_t id, const struct failure *failure)
{
    struct part *part = take_numbered(channel, -1, id);
    if (!part)
        return; /* taken back meanwhile */
    if (failure)
        stream_fail(part->entry->stream, failure->status, "%s", failure->text);
    else
        part->entry->unfinished--;
    pthread_cond_broadcast(&channel->changed);
}

/* ---- in words -------------------------------------------------------------------------------- */

/* Append to a text of limited size; what does not fit is cut. */
static void append(char *out, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void append(char *out, size_t size, const char *format, ...)
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
    for (const struct part *part = comm_of(entry)->channel->unmatched; part; part = part->next) {
        if (part->entry != entry)
            continue;
        append(out, size, "%s%s '%s' %s rank %d", between, part->what->send ? "send" : "receive",
               tag_text(part->what), part->what->send ? "to" : "from", part->what->peer);
        between = ", ";
    }
}

void comm_explain(const struct entry *entry, char *out, size_t size)
{
    const struct channel *channel = comm_of(entry)->channel;
    snprintf(out, size, "on communicator %s waits for ", channel->name);
    if (entry->op.kind == DEVICE_OP_GROUP) {
        explain_group(entry, out, size);
        return;
    }
    const char *between = "rank ";
    for (int place = 0; place < channel->count; place++)
        if (!entry->meeting->arrived[place]) {
            append(out, size, "%s%d", between, channel->members[place]);
            between = ", ";
        }
    if (entry->meeting->unreached >= 0)
        append(out, size, "the data of rank %d", entry->meeting->unreached);
    else if (entry->meeting->arrivals == channel->count && !entry->meeting->failure.status)
        append(out, size, "rank %d to move the data", channel->members[0]);
    append(out, size, " at position %llu", (unsigned long long)entry->meeting->position);
}
