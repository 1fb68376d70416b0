/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_collective.c - collectives of the host device: the members of a channel meet, one of them moves the data.
 *
 *     arrive ... arrive, all here --> complete (without the lock): deliver --> adjourn --> leave ... leave
 *
 * or, between processes and of much data, each of them
 *
 *     arrive ... arrive, all here --> take_own (without the lock): take --> all took: adjourn --> leave ... leave
 *
 * or, of little data, without a thread for each (in one process), or from desk to desk (between processes: host_desk.c).
 * host_comm.c has the rules.
 */
#include <assert.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/net/rendezvous.h"

#include "host_comm.h"

/* ---- the data -------------------------------------------------------------------------------- */

/*
 * Sums, and blocks from member to member, by memory and places only.
 *
 * All of it at once, in pieces of at most DELIVERY_PIECE bytes, in any order and by any number of threads: none reads what
 * another one writes. Or each member takes what it gets; of sums that all get, its share or, alone, all of them.
 */
enum { DELIVERY_PIECE = 64 << 10 };

/* The arguments of all members at one position; all that moving the data reads. */
struct delivery {
    char *const *sent, *const *received; /* by place */
    const bool *kept;                    /* by place: its block for itself is there already */
    int count, root;                     /* the root's place */
    int taker;                           /* its memory is `own_sent` and `own_received`; -1: none */
    bool alone;                          /* it adds all sums itself, for itself only */
    const char *own_sent;
    char *own_received;
    enum collective_kind kind;
    enum number number;
    size_t bytes;
};

/* The pieces of one delivery, for all threads that help. */
struct piecework {
    const struct delivery *all;
    size_t count;
    atomic_size_t next;
    int helpers; /* with the world's lock */
};

struct host_delivery_interval {
    size_t begin, end;
};

static const char *sent_by(const struct delivery *all, int place)
{
    return place == all->taker ? all->own_sent : all->sent[place];
}

static char *received_by(const struct delivery *all, int place)
{
    return place == all->taker ? all->own_received : all->received[place];
}

/* Sums of f32, of two members in a pass: half as many passes over the sums. */
static void add_up_singles(const struct delivery *all, size_t offset, size_t count, float *sums)
{
    const float *x[2];
    int from = 0;
    if (all->count == 1)
        memset(sums, 0, count * sizeof *sums);
    while (from < all->count) {
        const int first = from, pair = from + 1 < all->count ? 2 : 1;
        for (int i = 0; i < pair; i++)
            x[i] = (const float *)(const void *)(sent_by(all, from++) + offset);
        if (pair == 1)
            host_add(sums, x[0], count);
        else if (first == 0)
            host_sum_two(sums, x[0], x[1], count);
        else
            host_add_two(sums, x[0], x[1], count);
    }
}

/* The sums over all members of `count` numbers at `offset`, in order of place: the same on every
 * run. */
static void host_delivery_add_up(const struct delivery *all, size_t offset, size_t count,
                                 union number_sums *sums)
{
    if (all->number == NUMBER_F32) {
        add_up_singles(all, offset, count, sums->real);
        return;
    }
    memset(sums, 0, sizeof *sums);
    for (int from = 0; from < all->count; from++)
        number_add(all->number, sums, sent_by(all, from) + offset, count);
}

/* Sums of bytes [begin, end) of what was sent, to `first` .. `last` members, at the same place less
   `shift`. In place is safe: a piece is read from all before it is written to any. */
static void host_delivery_reduce(const struct delivery *all, size_t begin, size_t end, int first,
                                 int last, size_t shift)
{
    union number_sums sums;
    size_t size = (size_t)number_bytes(all->number), most = NUMBER_SUMS * size;
    for (size_t at = begin; at < end; at += most) {
        size_t bytes = end - at < most ? end - at : most;
        host_delivery_add_up(all, at, bytes / size, &sums);
        for (int to = first; to <= last; to++)
            number_store(all->number, &sums, received_by(all, to) + (at - shift), bytes / size);
    }
}

/* Of so many bytes, which move together. */
static size_t pieces_of(size_t bytes)
{
    return (bytes + DELIVERY_PIECE - 1) / DELIVERY_PIECE;
}

/* Bytes that lie together: the block from one member for another one, or all. */
static size_t stretch_bytes(const struct delivery *all)
{
    bool blocks = all->kind == COLLECTIVE_ALL_TO_ALL || all->kind == COLLECTIVE_ALL_GATHER;
    return all->bytes / (blocks ? (size_t)all->count : 1);
}

static size_t delivery_pieces(const struct delivery *all)
{
    const size_t count = (size_t)all->count, pieces = pieces_of(stretch_bytes(all));
    if (all->bytes == 0)
        return 0;
    switch (all->kind) {
    case COLLECTIVE_ALL_TO_ALL:
    case COLLECTIVE_ALL_GATHER: return count * count * pieces;
    case COLLECTIVE_BROADCAST: return count * pieces;
    case COLLECTIVE_ALL_REDUCE: return pieces;
    case COLLECTIVE_REDUCE_SCATTER: return count; /* blocks */
    case COLLECTIVE_BARRIER: break;
    }
    return 0;
}

/* A block from one member to another; one that a member has kept is where it belongs. */
static void move_block(const struct delivery *all, int from, int to, size_t at, size_t bytes)
{
    const size_t block = all->bytes / (size_t)all->count;
    if (from != to || !all->kept[from])
        host_comm_move_bytes(received_by(all, to) + (size_t)from * block + at,
                             sent_by(all, from) + (size_t)to * block + at, bytes);
}

static void deliver_piece(const struct delivery *all, size_t piece)
{
    const size_t stretch = stretch_bytes(all), pieces = pieces_of(stretch);
    const size_t block = all->bytes / (size_t)all->count;
    const size_t at = piece % pieces * DELIVERY_PIECE, pair = piece / pieces;
    const size_t bytes = stretch - at < DELIVERY_PIECE ? stretch - at : DELIVERY_PIECE;
    int to = (int)(pair / (size_t)all->count), from = (int)(pair % (size_t)all->count);
    switch (all->kind) {
    case COLLECTIVE_ALL_TO_ALL: move_block(all, from, to, at, bytes); break;
    case COLLECTIVE_ALL_GATHER:
        host_comm_move_bytes(all->received[to] + (size_t)from * block + at, all->sent[from] + at,
                             bytes);
        break;
    case COLLECTIVE_BROADCAST:
        host_comm_move_bytes(all->received[pair] + at, all->sent[all->root] + at, bytes);
        break;
    case COLLECTIVE_ALL_REDUCE:
        host_delivery_reduce(all, at, at + bytes, 0, all->count - 1, 0);
        break;
    case COLLECTIVE_REDUCE_SCATTER:
        to = (int)piece;
        host_delivery_reduce(all, piece * block, (piece + 1) * block, to, to, piece * block);
        break;
    case COLLECTIVE_BARRIER: break;
    }
}

/* True if there are pieces that no thread moves yet. Then move them, one after the other. */
static bool delivery_goes_on(const struct piecework *work)
{
    return atomic_load_explicit(&work->next, memory_order_relaxed) < work->count;
}

static void delivery_move_pieces(struct piecework *work)
{
    size_t piece;
    while ((piece = atomic_fetch_add_explicit(&work->next, 1, memory_order_relaxed)) < work->count)
        deliver_piece(work->all, piece);
}

/* How many bytes a member gives, and gets. */
static size_t delivery_given(const struct delivery *all, int place)
{
    size_t bytes = all->bytes, block = bytes / (size_t)all->count;
    switch (all->kind) {
    case COLLECTIVE_ALL_TO_ALL:
    case COLLECTIVE_REDUCE_SCATTER: return block * (size_t)all->count;
    case COLLECTIVE_ALL_GATHER: return block;
    case COLLECTIVE_ALL_REDUCE: return bytes;
    case COLLECTIVE_BROADCAST: return place == all->root ? bytes : 0;
    case COLLECTIVE_BARRIER: break;
    }
    return 0;
}

static size_t delivery_got(const struct delivery *all)
{
    size_t bytes = all->bytes, block = bytes / (size_t)all->count;
    switch (all->kind) {
    case COLLECTIVE_ALL_TO_ALL:
    case COLLECTIVE_ALL_GATHER: return block * (size_t)all->count;
    case COLLECTIVE_REDUCE_SCATTER: return block;
    case COLLECTIVE_ALL_REDUCE:
    case COLLECTIVE_BROADCAST: return bytes;
    case COLLECTIVE_BARRIER: break;
    }
    return 0;
}

/* The share that the member at `place` adds of sums of so many bytes. */
static struct host_delivery_interval delivery_share(size_t bytes, int members, int place)
{
    enum { LINE = 64 }; /* bytes of a cache line, which one member writes */
    const size_t lines = (bytes + LINE - 1) / LINE, count = (size_t)members;
    const size_t share = (lines + count - 1) / count * LINE, begin = (size_t)place * share;
    if (begin >= bytes)
        return (struct host_delivery_interval){bytes, bytes};
    return (struct host_delivery_interval){begin, begin + share < bytes ? begin + share : bytes};
}

/* Of sums that all get, one member's share, for all of them: no other one reads or writes these bytes. */
static void delivery_add_share(const struct delivery *all, int place)
{
    const struct host_delivery_interval share = delivery_share(all->bytes, all->count, place);
    if (share.begin < share.end)
        host_delivery_reduce(all, share.begin, share.end, 0, all->count - 1, 0);
}

/* Move to the member at place `to` what it gets; of common sums add its share. */
static void delivery_take(const struct delivery *all, int to)
{
    const size_t block = all->bytes / (size_t)all->count, mine = (size_t)to * block;
    char *out = received_by(all, to);
    switch (all->kind) {
    case COLLECTIVE_ALL_TO_ALL:
        for (int from = 0; from < all->count; from++)
            move_block(all, from, to, 0, block);
        break;
    case COLLECTIVE_ALL_GATHER:
        for (int from = 0; from < all->count; from++)
            host_comm_move_bytes(out + (size_t)from * block, sent_by(all, from), block);
        break;
    case COLLECTIVE_BROADCAST:
        host_comm_move_bytes(out, sent_by(all, all->root), all->bytes);
        break;
    case COLLECTIVE_REDUCE_SCATTER:
        host_delivery_reduce(all, mine, mine + block, to, to, mine);
        break;
    case COLLECTIVE_ALL_REDUCE:
        if (all->alone)
            host_delivery_reduce(all, 0, all->bytes, to, to, 0);
        else
            delivery_add_share(all, to);
        break;
    case COLLECTIVE_BARRIER: break;
    }
}

/* ---- the data -------------------------------------------------------------------------------- */

static struct delivery delivery_of(const struct host_comm_channel *channel,
                                   const struct meeting *meeting,
                                   const struct device_collective *what)
{
    return (struct delivery){.sent = meeting->sent,
                             .received = meeting->received,
                             .kept = meeting->kept,
                             .count = channel->count,
                             .root = comm_place_of(channel, what->root),
                             .taker = -1,
                             .kind = what->kind,
                             .number = what->number,
                             .bytes = (size_t)what->bytes};
}

/* The addresses, in this process, of what a member gives and gets. Results go directly to memory of the user's own, if there is
   such memory; data is read from there only if the operation has no buffer. */
static void find_data(struct meeting *meeting, int place)
{
    const struct device_collective *what = &meeting->arrived[place]->op->collective;
    meeting->sent[place] =
        what->send.buffer ? ref_address(what->send) : (char *)(uintptr_t)what->staging.from;
    meeting->received[place] =
        what->staging.to_bytes > 0 ? what->staging.to : ref_address(what->recv);
}

/* Find the data of members of other processes. Returns the first rank whose buffers are too small for what it says, -1:
   there is none. */
static int find_guests(struct meeting *meeting, const struct delivery *all)
{
    for (int place = 0; place < all->count; place++) {
        struct presence *from = meeting->arrived[place];
        if (from->entry)
            continue;
        if (!guest_has_bytes(guest_of(from), delivery_given(all, place), delivery_got(all)))
            return from->rank;
        find_data(meeting, place);
    }
    return -1;
}

/* ---- the meeting ----------------------------------------------------------------------------- */

static bool host_collective_same_collective(const struct device_collective *a,
                                            const struct device_collective *b)
{
    return a->kind == b->kind && a->bytes == b->bytes && a->number == b->number &&
           same_tag(a->tag, b->tag) && same_iteration(a->iteration, b->iteration) &&
           (a->kind != COLLECTIVE_BROADCAST || a->root == b->root);
}

/* For threads that look without the lock. */
static void meeting_changed(struct meeting *meeting)
{
    atomic_fetch_add_explicit(&meeting->changes, 1, memory_order_relaxed);
}

static void fail_meeting(struct meeting *meeting, int count)
{
    meeting_changed(meeting);
    for (int place = 0; place < count; place++)
        if (meeting->arrived[place] && meeting->arrived[place]->entry)
            stream_fail(meeting->arrived[place]->entry->stream, meeting->failure.status, "%s",
                        meeting->failure.text);
}

/* "rank 1 has all_gather 'Sum' of 48 bytes of f32": the operation, and all in which it may differ. */
static void add_presence(const struct presence *presence, char *out, size_t cap)
{
    char text[OP_TEXT], root[32] = "", iteration[ITERATION_TEXT];
    const struct device_collective *what = &presence->op->collective;
    size_t used = strlen(out);
    if (what->kind == COLLECTIVE_BROADCAST)
        snprintf(root, sizeof root, " from rank %d", what->root);
    snprintf(out + used, cap - used, "rank %d has %s of %lld bytes of %s%s%s", presence->rank,
             device_op_text(presence->op, text), (long long)what->bytes, number_key(what->number),
             root, iteration_text(what->iteration, iteration));
}

/* Two members disagree about what happens at this position. */
static void mismatch(const struct host_comm_channel *channel, struct meeting *meeting,
                     const struct presence *a, const struct presence *b)
{
    const size_t cap = sizeof meeting->failure.text;
    char *text = meeting->failure.text;
    meeting->failure.status = STATUS_VIOLATED;
    snprintf(text, cap, "collective mismatch on communicator %s, position %llu: ", channel->name,
             (unsigned long long)meeting->position);
    add_presence(a, text, cap);
    strncat(text, ", ", cap - strlen(text) - 1);
    add_presence(b, text, cap);
}

/* A large collective is worth the second message that it costs if each member takes its own. */
bool comm_may_take(const struct host_comm_channel *channel, const struct device_collective *what)
{
    enum { LEAST_BYTES = 32 << 10 };
    return channel->near && what->bytes >= LEAST_BYTES;
}

/* True if each member adds a share of the sums that all get. Known as soon as it arrives. */
static bool adds_share(const struct host_comm_channel *channel,
                       const struct device_collective *what)
{
    return what->kind == COLLECTIVE_ALL_REDUCE && comm_may_take(channel, what);
}

/* True if each member takes what it gets, in its own process, and of common sums its share. What it takes is read from
   memory that no member writes to, so each has memory of its user's own besides the common one. All members come to the
   same answer. None has left. */
static bool each_takes(const struct host_comm_channel *channel, const struct meeting *meeting)
{
    const struct device_collective *what = &meeting->arrived[0]->op->collective;
    bool own = true;
    for (int place = 0; place < channel->count; place++) {
        struct presence *at = meeting->arrived[place];
        own = own && (at->entry ? at->op->collective.staging.to_bytes > 0 : guest_of(at)->staged);
    }
    return comm_may_take(channel, what) && (own || adds_share(channel, what));
}

/* Shares of sums go to memory that all reach, where each copies them from behind. */
static void share_sums(const struct host_comm_channel *channel, struct meeting *meeting)
{
    meeting->adds = true;
    for (int place = 0; place < channel->count; place++)
        meeting->received[place] = ref_address(meeting->arrived[place]->op->collective.recv);
}

/* Of an all_to_all the block of a member for itself goes from one memory of its user's own to the other at once. */
bool comm_keeps_block(const struct device_collective *what)
{
    const struct device_staging *own = &what->staging;
    const char *from = own->from, *to = own->to;
    return what->kind == COLLECTIVE_ALL_TO_ALL && what->send.buffer && own->from_bytes > 0 &&
           own->to_bytes > 0 &&
           (from == to || from + own->from_bytes <= to || to + own->to_bytes <= from);
}

/* The bytes of both sides that no other member reads or writes: they stay in memory of the user's own. */
static struct host_delivery_interval kept_of(const struct entry *entry)
{
    const struct device_collective *what = &entry->op.collective;
    const struct host_comm *comm = host_comm_of(entry);
    const size_t bytes = (size_t)what->bytes, block = bytes / (size_t)comm->channel->count;
    if (comm_keeps_block(what))
        return (struct host_delivery_interval){(size_t)comm->base.me * block,
                                               (size_t)(comm->base.me + 1) * block};
    if (adds_share(comm->channel, what))
        return delivery_share(bytes, comm->channel->count, comm->base.me);
    return (struct host_delivery_interval){0, 0};
}

void meeting_arrive(struct host_comm_channel *channel, struct meeting *meeting,
                    struct presence *presence)
{
    const struct presence *other = NULL;
    for (int place = 0; place < channel->count && !other; place++)
        other = meeting->arrived[place];
    int place = comm_place_of(channel, presence->rank);
    assert(place >= 0 && !meeting->arrived[place] && meeting->arrivals < channel->count);
    meeting->arrived[place] = presence;
    meeting->came[place] = true;
    meeting->desks = channel->world->link && desk_takes(channel, &presence->op->collective);
    if (!presence->entry)
        desk_came(channel, place, meeting->position);
    meeting->kept[place] = presence->entry
                               ? !meeting->desks && comm_keeps_block(&presence->op->collective)
                               : guest_of(presence)->kept;
    find_data(meeting, place);
    if (++meeting->arrivals == channel->count && channel->world->link) {
        meeting->takes = !meeting->done && !meeting->failure.status && each_takes(channel, meeting);
        if (meeting->takes && presence->op->collective.kind == COLLECTIVE_ALL_REDUCE)
            share_sums(channel, meeting);
        if (!meeting->desks || channel->here > 1)
            channel_change(channel); /* for those that may move the data */
    }
    if (other && !meeting->failure.status &&
        !host_collective_same_collective(&other->op->collective, &presence->op->collective))
        mismatch(channel, meeting, other, presence);
    if (meeting->failure.status)
        fail_meeting(meeting, channel->count);
}

/* The last to leave closes the meeting. A member that leaves before the end has failed and leaves the reason
   behind: later arrivals fail with it instead of reading buffers that are gone. Returns whether it was the
   last. */
static bool host_collective_leave(struct host_comm_channel *channel, struct meeting *meeting,
                                  int place, const struct failure *failure)
{
    if (meeting->arrived[place] && !meeting->arrived[place]->entry)
        guest_free(guest_of(meeting->arrived[place]));
    meeting->arrived[place] = NULL;
    if (!meeting->done && !meeting->failure.status && failure->status)
        meeting->failure = *failure;
    assert(meeting->leavings < meeting->arrivals);
    if (++meeting->leavings < channel->count)
        return false;
    meeting_close(channel, meeting);
    return true;
}

/* The data has moved: guests leave at once, as far as this copy knows, our own as they wake up, for which the caller sees
   to. */
static void adjourn(struct host_comm_channel *channel, struct meeting *meeting)
{
    meeting->moving = false;
    meeting->done = true;
    meeting_changed(meeting);
    /* Those that no thread serves are to be taken out of their streams. */
    struct host_world *world = channel->world;
    for (int place = 0; place < channel->count; place++) {
        struct entry *entry = meeting->arrived[place] ? meeting->arrived[place]->entry : NULL;
        if (!entry || !entry->meets || entry->stream->served)
            continue;
        entry->stream->next_met = world->met;
        world->met = entry->stream;
    }
    for (int place = 0; place < channel->count; place++)
        if (meeting->arrived[place] && !meeting->arrived[place]->entry &&
            host_collective_leave(channel, meeting, place, NULL))
            return;
}

/* A member's data is out of reach. If it is dead or has failed the watchdog ends the run, and until then this stream
   waits for it, as any other would; else it has failed. */
static void strand(struct meeting *meeting, struct host_stream *stream, int rank)
{
    const char *how;
    meeting->moving = false;
    meeting->unreached = rank;
    if (rendezvous_lost(stream->world->base.config.rendezvous, &how) < 0)
        stream_fail(stream, STATUS_VIOLATED, "the data of rank %d cannot be reached", rank);
}

/* Not of a reduce_scatter whose results lie where another block was sent from. */
static bool is_worth_help(const struct delivery *all)
{
    enum { FEW = 4 };
    return delivery_pieces(all) >= FEW && all->bytes >= (size_t)FEW * DELIVERY_PIECE &&
           all->kind != COLLECTIVE_REDUCE_SCATTER;
}

/* Without the lock. The other members that are here and wait take pieces, too. */
static void host_collective_deliver(struct host_comm_channel *channel, struct meeting *meeting,
                                    const struct delivery *all)
{
    pthread_mutex_t *lock = &channel->world->lock;
    struct piecework work = {.all = all, .count = delivery_pieces(all)};
    if (!is_worth_help(all)) {
        delivery_move_pieces(&work);
        return;
    }
    pthread_mutex_lock(lock);
    meeting->shared = &work;
    meeting_changed(meeting);
    channel_change(channel);
    world_unlock(channel->world);
    delivery_move_pieces(&work);
    pthread_mutex_lock(lock);
    meeting->shared = NULL;
    while (work.helpers > 0) { /* each with its last piece */
        world_unlock(channel->world);
        sched_yield();
        pthread_mutex_lock(lock);
    }
    world_unlock(channel->world);
}

/* All members are here: move the data of all. */
static void host_collective_complete(struct host_comm_channel *channel, struct meeting *meeting,
                                     struct host_stream *stream)
{
    struct host_world *world = channel->world;
    const struct delivery all = delivery_of(channel, meeting, &meeting->arrived[0]->op->collective);
    assert(!meeting->moving && !meeting->done && !meeting->takes);
    meeting->moving = meeting->moved_here = true;
    world_unlock(world);
    int unreached = find_guests(meeting, &all);
    if (unreached < 0)
        host_collective_deliver(channel, meeting, &all);
    pthread_mutex_lock(&world->lock);
    if (unreached >= 0) {
        strand(meeting, stream, unreached);
        return;
    }
    if (world->link)
        link_delivered(world->link, channel, meeting->position);
    adjourn(channel, meeting);
    channel_change(channel);
    stream_settle(world);
}

/* True if all are here, and their data where it was. */
static bool can_move(const struct host_comm_channel *channel, const struct meeting *meeting)
{
    return meeting->arrivals == channel->count && !meeting->moving && !meeting->done &&
           meeting->unreached < 0 && !meeting->failure.status;
}

/* True if it is this member's turn to move the data. */
static bool host_collective_can_complete(const struct host_comm_channel *channel,
                                         const struct meeting *meeting, int place)
{
    return can_move(channel, meeting) && !meeting->takes && !meeting->desks &&
           (!channel->world->link || channel->claim || place == 0);
}

/* ---- or each takes its own ------------------------------------------------------------------- */

static void took(struct host_comm_channel *channel, struct meeting *meeting, int place)
{
    assert(!meeting->took[place] && meeting->takings < channel->count);
    meeting->took[place] = true;
    if (++meeting->takings < channel->count)
        return;
    adjourn(channel, meeting);
    channel_change(channel);
}

/* All members are here: take what this one gets. What it reads stays, here because none leaves while `taking`, elsewhere
   because it stays mapped. */
static void take_own(struct host_comm_channel *channel, struct meeting *meeting,
                     struct host_stream *stream, int place)
{
    struct host_world *world = channel->world;
    const struct device_staging *own = &meeting->arrived[place]->op->collective.staging;
    struct delivery all = delivery_of(channel, meeting, &meeting->arrived[0]->op->collective);
    if (meeting->adds) {
        all.taker = place;
        all.own_sent = own->from_bytes > 0 ? own->from : all.sent[place];
        all.own_received = own->to_bytes > 0 ? own->to : all.received[place];
    }
    int unreached = meeting->found ? -1 : find_guests(meeting, &all);
    if (unreached >= 0) {
        strand(meeting, stream, unreached);
        return;
    }
    meeting->found = true; /* other members here read what was found, without the lock */
    meeting->taking++;
    world_unlock(world);
    delivery_take(&all, place);
    pthread_mutex_lock(&world->lock);
    assert(meeting->taking > 0);
    meeting->taking--;
    link_took(world->link, channel, meeting->position, stream->device->base.rank);
    took(channel, meeting, place);
}

/* A claim is a number: 1 + the last position that was claimed, above the place of the member that moves its data. */
enum { CLAIM_PLACE_BITS = 16 };
static_assert(RENDEZVOUS_MAX_MEMBERS <= 1 << CLAIM_PLACE_BITS, "the bits of a place");

/* Of several processes one moves the data: the first that claims it. */
static bool claims(const struct host_comm_channel *channel, struct meeting *meeting, int place)
{
    const uint64_t claimed = (meeting->position + 1) << CLAIM_PLACE_BITS;
    if (!channel->claim)
        return true;
    if (meeting->claimed)
        return false;
    meeting->claimed = true;
    uint64_t now = atomic_load(channel->claim);
    while (now != 0 && now < claimed)
        if (atomic_compare_exchange_weak(channel->claim, &now, claimed | (uint64_t)place))
            return true;
    return false;
}

int meeting_mover(const struct host_comm_channel *channel, const struct meeting *meeting)
{
    if (!channel->claim)
        return channel->members[0];
    const uint64_t now = atomic_load(channel->claim);
    const uint64_t place = now & ((1U << CLAIM_PLACE_BITS) - 1);
    bool claimed = now >> CLAIM_PLACE_BITS == meeting->position + 1;
    return claimed && place < (uint64_t)channel->count ? channel->members[place] : -1;
}

/* Between memory of this process and memory that all processes reach; large amounts without the lock. */
static void copy_staged(struct host_world *world, void *to, const void *from, size_t bytes)
{
    bool long_copy = bytes > DELIVERY_PIECE / 8;
    if (bytes == 0)
        return;
    if (long_copy)
        world_unlock(world);
    host_comm_move_bytes(to, from, bytes);
    if (long_copy)
        pthread_mutex_lock(&world->lock);
}

static void copy_rest(struct host_world *world, char *to, const char *from, size_t bytes,
                      struct host_delivery_interval kept)
{
    if (bytes == 0)
        return;
    copy_staged(world, to, from, kept.begin);
    copy_staged(world, to + kept.end, from + kept.end, bytes - kept.end);
}

static void stage_send(struct entry *entry)
{
    const struct device_collective *what = &entry->op.collective;
    const struct device_staging *own = &what->staging;
    const struct host_delivery_interval kept = kept_of(entry);
    struct host_world *world = entry->stream->world;
    if (!what->send.buffer)
        return; /* it is read from there */
    copy_rest(world, ref_address(what->send), own->from, own->from_bytes, kept);
}

/* Behind its arrival, while the others come: they do not look at it. */
static void keep_block(struct entry *entry)
{
    const struct device_collective *what = &entry->op.collective;
    const struct device_staging *own = &what->staging;
    const struct host_delivery_interval kept = kept_of(entry);
    struct host_world *world = entry->stream->world;
    if (comm_keeps_block(what))
        copy_staged(world, (char *)own->to + kept.begin, (const char *)own->from + kept.begin,
                    kept.end - kept.begin);
}

/* ---- or from desk to desk -------------------------------------------------------------------- */

static struct delivery desk_delivery(const struct host_comm_channel *channel,
                                     const struct meeting *meeting,
                                     const struct device_collective *what, int me)
{
    const struct device_staging *own = &what->staging;
    struct delivery all = delivery_of(channel, meeting, what);
    all.taker = me;
    all.alone = true;
    all.own_sent = own->from_bytes > 0 ? own->from : ref_address(what->send);
    all.own_received = own->to_bytes > 0 ? own->to : ref_address(what->recv);
    return all;
}

/* All members are here. The last of this process ends it there. */
static void take_from_desks(struct host_comm_channel *channel, struct meeting *meeting,
                            const struct delivery *all, int me)
{
    assert(!meeting->took[me] && meeting->takings < channel->here);
    delivery_take(all, me);
    meeting->took[me] = true;
    if (++meeting->takings == channel->here)
        adjourn(channel, meeting);
}

/* See host_desk.c. */
static void meet_at_desks(struct entry *entry)
{
    struct host_stream *stream = entry->stream;
    struct host_comm_channel *channel = host_comm_of(entry)->channel;
    struct meeting *meeting = entry->meeting;
    struct host_link *link = stream->world->link;
    const int me = host_comm_of(entry)->base.me;
    const struct delivery all = desk_delivery(channel, meeting, &entry->op.collective, me);
    meeting_arrive(channel, meeting, &entry->presence);
    entry_started(entry);
    bool put = desk_put(channel, meeting, entry, all.own_sent, delivery_given(&all, me));
    while (put && !meeting->took[me] && !stream_failed(stream)) {
        desk_look(channel, meeting);
        if (can_move(channel, meeting))
            take_from_desks(channel, meeting, &all, me);
        else if (!stream_failed(stream))
            desk_wait(channel, meeting);
    }
    if (!meeting->took[me]) {
        desk_withdraw(channel, meeting, me);
        link_leave(link, channel, meeting->position, host_comm_rank_of(entry), &stream->failure);
    }
    host_collective_leave(channel, meeting, me, &stream->failure);
}

void comm_hear(const struct entry *entry)
{
    struct meeting *meeting = entry->meeting;
    if (entry->phase == PHASE_PEERS && meeting && meeting->desks && !meeting->done &&
        !meeting->failure.status)
        desk_look(host_comm_of(entry)->channel, meeting);
}

void comm_perform_collective(struct entry *entry)
{
    struct host_stream *stream = entry->stream;
    struct host_comm *comm = host_comm_of(entry);
    struct host_comm_channel *channel = comm->channel;
    struct meeting *meeting = entry->meeting;
    struct host_link *link = stream->world->link;
    entry->phase = PHASE_PEERS;
    bool has_spun = link; /* link_wait does */
    entry->presence = (struct presence){entry, &entry->op, host_comm_rank_of(entry)};
    if (link && desk_takes(channel, &entry->op.collective)) {
        meet_at_desks(entry);
        return;
    }
    stage_send(entry);
    if (link)
        link_look(link);
    meeting_arrive(channel, meeting, &entry->presence);
    entry_started(entry);
    if (link)
        link_arrive(link, channel, meeting->position, entry);
    keep_block(entry);
    const int me = comm->base.me;
    while (meeting->moving || meeting->taking > 0 || (!meeting->done && !stream_failed(stream)))
        if (host_collective_can_complete(channel, meeting, me) && claims(channel, meeting, me))
            host_collective_complete(channel, meeting, stream);
        else if (meeting->takes && !meeting->took[me] && can_move(channel, meeting))
            take_own(channel, meeting, stream, me);
        else if (meeting->shared && delivery_goes_on(meeting->shared)) {
            struct piecework *work = meeting->shared;
            assert(meeting->moving && work->helpers >= 0);
            work->helpers++;
            world_unlock(channel->world);
            delivery_move_pieces(work);
            pthread_mutex_lock(&channel->world->lock);
            work->helpers--;
            has_spun = link;
        } else if (!has_spun) {
            has_spun = true;
            world_spin(stream->world, &channel->spin, &meeting->changes,
                       atomic_load_explicit(&meeting->changes, memory_order_relaxed));
        } else
            channel_wait(channel);
    if (link && !meeting->done)
        link_leave(link, channel, meeting->position, host_comm_rank_of(entry), &stream->failure);
    bool elsewhere = link && !meeting->moved_here && (!meeting->takes || meeting->adds);
    host_collective_leave(channel, meeting, me, &stream->failure);
    if (elsewhere) {
        /* Behind a collective that another process has moved, or has moved a part of. */
        const struct device_collective *what = &entry->op.collective;
        if (!stream_failed(entry->stream))
            copy_rest(entry->stream->world, what->staging.to, ref_address(what->recv),
                      what->staging.to_bytes, kept_of(entry));
    }
}

/* ---- without a thread ------------------------------------------------------------------------ */

/* To wake a thread for a member, and have it wait, costs more than to move a few bytes. So a small one arrives as soon as
   it is the head of its stream, by the thread that pushes it or has finished what was before it, and the last that
   arrives moves the data and takes all of them out:

       rank 0    push 1: arrives    push 2, push 3: queued                 |  2 is the head: arrives
       rank 1                                                push 1: last: moves the data, takes 1 out of both streams

   It waits for nothing else then: for no turn, slot or time. The lock is held meanwhile, so what moves is bounded. */
bool comm_meets_at_once(const struct entry *entry)
{
    enum { MOST_BYTES = 32 << 10, MOST_HEADS = 64 };
    const struct host_world *world = entry->stream->world;
    if (entry->op.kind != DEVICE_OP_COLLECTIVE || world->link || world->settled >= MOST_HEADS)
        return false;
    const struct host_comm *comm = host_comm_of(entry);
    return entry->op.collective.bytes <= MOST_BYTES / comm->channel->count &&
           !stream_failed(entry->stream) && comm->done == entry->turn && !comm->broken &&
           !entry->injected && !entry->op.turn.gate && entry->op.sm == 0 &&
           entry->op.time_ns == 0 && world->base.config.launch_latency_ns == 0;
}

void comm_meet(struct entry *entry)
{
    struct host_comm_channel *channel = host_comm_of(entry)->channel;
    struct meeting *meeting = entry->meeting;
    assert(entry == entry->stream->head && !entry->stream->served && !entry->meets);
    entry->phase = PHASE_PEERS;
    entry->meets = true;
    entry->presence = (struct presence){entry, &entry->op, host_comm_rank_of(entry)};
    meeting_arrive(channel, meeting, &entry->presence);
    if (!can_move(channel, meeting))
        return;
    const struct delivery all = delivery_of(channel, meeting, &entry->op.collective);
    struct piecework work = {.all = &all, .count = delivery_pieces(&all)};
    delivery_move_pieces(&work);
    adjourn(channel, meeting);
    channel_change(channel); /* for members that threads serve */
}

void comm_part(struct entry *entry)
{
    struct host_comm *comm = host_comm_of(entry);
    assert(entry->meets && entry == entry->stream->head);
    while (entry->meeting->moving) /* a member that a thread serves is at it */
        channel_wait(comm->channel);
    host_collective_leave(comm->channel, entry->meeting, comm->base.me, &entry->stream->failure);
}

/* ---- members in other processes -------------------------------------------------------------- */

void comm_guest_arrives(struct host_comm_channel *channel, uint64_t position, struct guest *guest)
{
    struct meeting *meeting = meeting_at(channel, position);
    if (!meeting) {
        guest_free(guest);
        link_fail(channel->world->link, "no memory for a collective");
        return;
    }
    if (desk_takes(channel, &guest->op.collective)) {
        guest_free(guest);
        link_fail(channel->world->link, "a rank of another process sent no data for a collective");
        return;
    }
    if (meeting->came[comm_place_of(channel, guest->presence.rank)]) {
        guest_free(guest);
        link_fail(channel->world->link, "a rank of another process came twice to a collective");
        return;
    }
    meeting_arrive(channel, meeting, &guest->presence);
    if (meeting->done) /* another process has told so before */
        host_collective_leave(channel, meeting, comm_place_of(channel, guest->presence.rank), NULL);
}

/* It has come to its desk and taken that back, before it was seen there. */
static void leave_unseen(struct host_comm_channel *channel, uint64_t position, int place,
                         const struct failure *failure)
{
    struct meeting *meeting = meeting_at(channel, position);
    if (!meeting) {
        link_fail(channel->world->link, "no memory for a collective");
        return;
    }
    desk_came(channel, place, position);
    meeting->came[place] = true;
    meeting->arrivals++;
    if (!meeting->failure.status)
        meeting->failure = *failure;
    fail_meeting(meeting, channel->count);
    host_collective_leave(channel, meeting, place, failure);
}

void comm_guest_leaves(struct host_comm_channel *channel, uint64_t position, int rank,
                       const struct failure *failure)
{
    struct meeting *meeting = meeting_find(channel, position);
    int place = comm_place_of(channel, rank);
    if (!desk_has_come(channel, place, position)) {
        leave_unseen(channel, position, place, failure);
        return;
    }
    if (!meeting || meeting->moving || !meeting->arrived[place])
        return; /* it is over, or about to be: then the data was there in time */
    host_collective_leave(channel, meeting, place, failure);
}

void comm_guest_took(struct host_comm_channel *channel, uint64_t position, int rank)
{
    struct meeting *meeting = meeting_find(channel, position);
    int place = comm_place_of(channel, rank);
    if (!meeting)
        return; /* it has failed here */
    if (meeting->took[place] || !meeting->arrived[place])
        link_fail(channel->world->link, "a rank of another process took twice from a collective");
    else
        took(channel, meeting, place);
}

void comm_delivered(struct host_comm_channel *channel, uint64_t position)
{
    struct meeting *meeting = meeting_find(channel, position);
    if (!meeting)
        return;
    adjourn(channel, meeting);
    channel_change(channel);
}
