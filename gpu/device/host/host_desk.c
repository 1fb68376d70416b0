/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_desk.c - small collectives between processes: what each member gives lies on its desk, in common memory.
 *
 *     desk of rank 0   | slot 0: number, head, data | slot 1: number, head, data |   rank 0 writes, all read
 *     desk of rank 1   | slot 0: number, head, data | slot 1: number, head, data |   rank 1 writes, all read
 *
 *     rank 0    put p in slot p % 2    see p on desk 1    take     put p + 1    see p + 1    take     put p + 2 ...
 *     rank 1       put p in slot p % 2    see p on desk 0    take         put p + 1    see p + 1    take ...
 *
 * The number of a slot is 1 + the position whose data it has. It is the whole message: a member that has seen the number on all
 * desks compares the heads, and takes what it gets from the slots. Nothing tells that it has done so, because two slots
 * are enough: slot p % 2 is written again for p + 2, when its owner has seen all others at p + 1, where each comes after
 * it has taken what it gets of p.
 *
 * A member waits for one number at a time, by looking at it, then asleep on the bell of its process (gpu/net/rendezvous.h). The writer
 * of a number rings only where a thread sleeps. A member that fails takes its number back before it tells so.
 *
 * A desk is another process's memory: heads are copied before they are checked.
 */
#include "host_comm.h"
#include "link_message.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A member of another process at a position: as it sits there. */
struct sitter {
    struct guest guest;
    struct desk_head head;
};

struct host_desk_seat {
    struct desk *desk;      /* NULL: there is none yet */
    int64_t offset;         /* of a desk of this process: where it is for all */
    uint64_t seen;          /* 1 + the last position at which the member has arrived */
    struct sitter *sitters; /* [DESK_SLOTS]; NULL: a member of this process */
};

static unsigned host_desk_number_of(uint64_t position)
{
    return (unsigned)(position + 1);
}

static struct desk_slot *host_desk_slot_of(const struct host_desk_seat *seat, uint64_t position)
{
    return &seat->desk->slots[position % DESK_SLOTS];
}

/* With checks: each slot has numbers of its own positions, and only members of other processes sit. */
static void desk_check(const struct host_comm_channel *channel)
{
#ifdef SWSIM_CHECKS
    for (int place = 0; place < channel->count; place++) {
        const struct host_desk_seat *seat = &channel->seats[place];
        const bool here = link_is_here(channel->world->link, channel->members[place]);
        assert(!seat->sitters || (seat->desk && !here));
        for (unsigned slot = 0; slot < DESK_SLOTS && seat->desk && here; slot++) {
            const unsigned number = atomic_load(&seat->desk->slots[slot].number);
            assert(number == 0 || number % DESK_SLOTS == (slot + 1) % DESK_SLOTS);
        }
    }
#else
    (void)channel;
#endif
}

bool seats_open(struct host_comm_channel *channel)
{
    channel->seats = calloc((size_t)channel->count, sizeof *channel->seats);
    return channel->seats;
}

void seats_close(struct host_comm_channel *channel)
{
    for (int place = 0; channel->seats && place < channel->count; place++) {
        const struct host_desk_seat *seat = &channel->seats[place];
        if (seat->desk && !seat->sitters)
            link_close_desk(channel->world->link, seat->desk, seat->offset);
        free(seat->sitters);
    }
    free(channel->seats);
}

bool desk_introduce(struct host_comm_channel *channel, int rank, void *desk)
{
    struct host_desk_seat *seat = &channel->seats[comm_place_of(channel, rank)];
    if (seat->desk)
        return false;
    seat->sitters = calloc(DESK_SLOTS, sizeof *seat->sitters);
    seat->desk = seat->sitters ? desk : NULL;
    return seat->desk;
}

bool desk_takes(const struct host_comm_channel *channel, const struct device_collective *what)
{
    return channel->near && what->bytes <= DESK_BYTES &&
           (!what->tag || strlen(what->tag) < DESK_TEXT);
}

void desk_came(struct host_comm_channel *channel, int place, uint64_t position)
{
    channel->seats[place].seen = position + 1;
}

bool desk_has_come(const struct host_comm_channel *channel, int place, uint64_t position)
{
    return channel->seats[place].seen > position;
}

/* ---- putting --------------------------------------------------------------------------------- */

static void host_desk_copy_text(char to[DESK_TEXT], const char *from)
{
    size_t bytes = strnlen(from, DESK_TEXT - 1);
    memcpy(to, from, bytes);
    to[bytes] = '\0';
}

static void fill_head(struct desk_head *head, const struct device_op *op)
{
    const struct device_collective *what = &op->collective;
    head->kind = (int32_t)what->kind;
    head->root = what->root;
    head->number = (int32_t)what->number;
    head->bytes = what->bytes;
    head->iteration = what->iteration;
    head->tagged = what->tag != NULL;
    head->labelled = op->label != NULL;
    if (what->tag)
        host_desk_copy_text(head->tag, what->tag);
    if (op->label)
        host_desk_copy_text(head->label, op->label);
}

bool desk_put(struct host_comm_channel *channel, struct meeting *meeting, const struct entry *entry,
              const void *data, size_t bytes)
{
    struct host_link *link = channel->world->link;
    const int me = host_comm_of(entry)->base.me;
    struct host_desk_seat *seat = &channel->seats[me];
    if (!seat->desk)
        seat->desk = link_open_desk(link, channel, host_comm_rank_of(entry), &seat->offset);
    if (!seat->desk)
        return false;
    struct desk_slot *slot = host_desk_slot_of(seat, meeting->position);
    assert(bytes <= DESK_BYTES &&
           (int)(host_desk_number_of(meeting->position) - atomic_load(&slot->number)) > 0);
    fill_head(&slot->head, &entry->op);
    if (bytes > 0)
        memcpy(slot->data, data, bytes);
    meeting->sent[me] = slot->data; /* for the others here: this member may leave before them */
    atomic_store(&slot->number, host_desk_number_of(meeting->position));
    desk_check(channel);
    link_rouse(link, channel);
    return true;
}

void desk_withdraw(struct host_comm_channel *channel, const struct meeting *meeting, int place)
{
    const struct host_desk_seat *seat = &channel->seats[place];
    if (seat->desk)
        atomic_store(&host_desk_slot_of(seat, meeting->position)->number,
                     host_desk_number_of(meeting->position) - DESK_SLOTS);
}

/* ---- looking --------------------------------------------------------------------------------- */

#define ONE(...) +1
enum { KINDS = 0 COLLECTIVE_LIST(ONE), NUMBERS = 0 NUMBER_LIST(ONE) };
#undef ONE

/* NULL: it makes no sense. */
static struct guest *seat_guest(const struct host_comm_channel *channel, int place,
                                uint64_t position)
{
    const struct host_desk_seat *seat = &channel->seats[place];
    struct desk_slot *slot = host_desk_slot_of(seat, position);
    struct sitter *sitter = &seat->sitters[position % DESK_SLOTS];
    struct desk_head *head = &sitter->head;
    *head = slot->head;
    if (head->kind < 0 || head->kind >= KINDS || head->number < 0 || head->number >= NUMBERS ||
        head->bytes < 0 || head->bytes > DESK_BYTES)
        return NULL;
    head->tag[DESK_TEXT - 1] = head->label[DESK_TEXT - 1] = '\0';
    struct guest *guest = &sitter->guest;
    guest->op = (struct device_op){.kind = DEVICE_OP_COLLECTIVE,
                                   .label = head->labelled ? head->label : NULL,
                                   .collective = {.kind = (enum collective_kind)head->kind,
                                                  .tag = head->tagged ? head->tag : NULL,
                                                  .root = head->root,
                                                  .number = (enum number)head->number,
                                                  .bytes = head->bytes,
                                                  .iteration = head->iteration,
                                                  .staging = {.from = slot->data}}};
    guest->presence = (struct presence){.op = &guest->op, .rank = channel->members[place]};
    guest->sits = true;
    return guest;
}

static bool host_desk_is_there(const struct host_desk_seat *seat, uint64_t position)
{
    return atomic_load(&host_desk_slot_of(seat, position)->number) == host_desk_number_of(position);
}

/* The number of the first member that has not come and that this process can look at; NULL: there is none. */
static const atomic_uint *awaited_number(const struct host_comm_channel *channel,
                                         const struct meeting *meeting)
{
    for (int place = 0; place < channel->count; place++)
        if (!meeting->came[place] && channel->seats[place].sitters)
            return &host_desk_slot_of(&channel->seats[place], meeting->position)->number;
    return NULL;
}

void desk_look(struct host_comm_channel *channel, struct meeting *meeting)
{
    for (int place = 0; place < channel->count; place++) {
        const struct host_desk_seat *seat = &channel->seats[place];
        if (meeting->came[place] || !seat->sitters || !host_desk_is_there(seat, meeting->position))
            continue;
        struct guest *guest = seat_guest(channel, place, meeting->position);
        if (!guest) {
            link_fail(channel->world->link,
                      "the data that another rank gives to a collective are not valid");
            return;
        }
        meeting_arrive(channel, meeting, &guest->presence);
    }
}

void desk_wait(struct host_comm_channel *channel, const struct meeting *meeting)
{
    const atomic_uint *number = awaited_number(channel, meeting);
    const unsigned now = number ? atomic_load(number) : 0;
    if (!number || now != host_desk_number_of(meeting->position))
        link_wait(channel->world->link, &channel->spin, number, now);
}
