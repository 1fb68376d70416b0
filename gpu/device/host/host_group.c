/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_group.c - groups of the host device: each part, a send or a receive, finds its partner or waits for it
 * in `unmatched`; the second of the two moves the data. See host_comm.c for the rules.
 */
#include "host_comm.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

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
    channel_change(channel);
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
        channel_wait(channel);
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
