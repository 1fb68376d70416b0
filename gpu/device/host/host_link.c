/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_link.c - the host device across processes: messages between the copies of a communicator.
 *
 * Device memory lies in the rendezvous' file, where every process can map it. So only messages travel, most of
 * them through common memory, too.
 *
 *     ARRIVE, LEAVE      to the members: one came to a meeting, with these buffers; left it too early
 *     DELIVERED          to the members: the data of all has moved
 *     TOOK               to the members: one has got what it gets, of a meeting where each takes its own
 *     SEND, WITHDRAW     to the receiver's process: a send waits; does not any more
 *     RECEIVED, UNFIT    to the sender's process: its data has moved; size or tag differ
 *     DESK               to the members: where one puts what it gives to small collectives (host_desk.c)
 *     ABORT              to all
 *
 * Every process keeps its own copy of each meeting, so mismatches and missing members are known
 * everywhere. Mail of one process arrives in order; messages about a communicator that is not open here yet
 * wait in `early`.
 *
 * A thread that waits for a message looks for those in common memory itself, spins, and sleeps on the process' bell. Mail
 * comes on the rendezvous' thread. Both take the world's lock to hear a message; neither moves data then.
 */
#include "host.h"
#include "link_message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/net/rendezvous.h"

struct host_link_early {
    struct host_link_early *next;
    int from;
    char data[];
};

/* Claims of channels whose first member is here. */
enum { CLAIM_BYTES = 4096 };
struct claim_page {
    struct claim_page *next;
    _Atomic uint64_t *words;
    int64_t offset;
    size_t used;
};

struct host_link {
    struct host_world *world;
    struct rendezvous *rendezvous;
    int32_t number;                             /* of the world among those of its rendezvous */
    struct host_link_early *early, **early_end; /* under the world's lock, like next_id */
    uint64_t next_id;
    struct claim_page *claims;
};

/* ---- telling --------------------------------------------------------------------------------- */

/* One that does not wake is heard by a thread that is about to wait. */
static bool host_link_tell(const struct host_link *link, int to, const struct link_message *message,
                           const char *first, const char *second, bool wakes)
{
    size_t a = strlen(first) + 1, b = strlen(second) + 1, bytes = sizeof *message + a + b;
    char *packet = malloc(bytes);
    if (!packet)
        return false;
    struct link_message numbered = *message;
    numbered.world = link->number;
    memcpy(packet, &numbered, sizeof numbered);
    memcpy(packet + sizeof *message, first, a);
    memcpy(packet + sizeof *message + a, second, b);
    bool told = to == TO_ALL ? rendezvous_send(link->rendezvous, to, packet, bytes)
                             : rendezvous_pass(link->rendezvous, to, packet, bytes, wakes);
    free(packet);
    return told;
}

static int host_link_process_of(const struct host_link *link, int rank)
{
    return rank / link->world->base.config.local_ranks;
}

/* Every other process that has members; they ascend, so each process is met once. */
static bool tell_members(const struct host_link *link, const struct host_comm_channel *channel,
                         const struct link_message *message, const char *first, const char *second,
                         bool wakes)
{
    int count, here = rendezvous_rank(link->rendezvous);
    const int *members = comm_channel_members(channel, &count);
    bool all = true;
    for (int i = 0, last = -1; i < count; i++) {
        int process = host_link_process_of(link, members[i]);
        if (process != here && process != last)
            all = host_link_tell(link, process, message, first, second, wakes) && all;
        last = process;
    }
    return all;
}

static struct far_ref far_of(struct device_ref ref)
{
    const struct host_buffer *buffer = (const struct host_buffer *)ref.buffer;
    if (!buffer || buffer->offset <= 0) /* a wrapped one has 0, where the board is */
        return (struct far_ref){0};
    return (struct far_ref){buffer->offset, (int64_t)buffer->base.bytes, (int64_t)ref.offset};
}

/* Where another process is gone the watchdog says which one, and ends the run. */
static bool is_cut_off(const struct host_link *link)
{
    const char *how;
    return rendezvous_lost(link->rendezvous, &how) >= 0;
}

static void untold(const struct host_link *link, struct host_stream *stream)
{
    if (is_cut_off(link))
        return;
    stream_fail(stream, STATUS_SYSTEM, "rank %d, stream %s: the other processes cannot be told",
                stream->device->base.rank, stream->base.name);
}

static const char *host_link_text_of(const char *text)
{
    return text ? text : "";
}

void link_arrive(struct host_link *link, const struct host_comm_channel *channel, uint64_t position,
                 const struct entry *entry)
{
    const struct device_collective *what = &entry->op.collective;
    struct link_message message = {.word = WORD_ARRIVE,
                                   .rank = entry->stream->device->base.rank,
                                   .kind = (int32_t)what->kind,
                                   .root = what->root,
                                   .number = (int32_t)what->number,
                                   .tagged = what->tag != NULL,
                                   .labelled = entry->op.label != NULL,
                                   .staged = what->staging.to_bytes > 0,
                                   .kept = comm_keeps_block(what),
                                   .channel = comm_channel_name(channel),
                                   .position = position,
                                   .bytes = what->bytes,
                                   .iteration = what->iteration,
                                   .claim = comm_claim(channel),
                                   .send = far_of(what->send),
                                   .recv = far_of(what->recv)};
    /* Else the last to arrive moves the data of all. */
    bool wakes = !comm_has_claim(channel) || comm_may_take(channel, what);
    if (!tell_members(link, channel, &message, host_link_text_of(what->tag),
                      host_link_text_of(entry->op.label), wakes))
        untold(link, entry->stream);
}

void link_leave(struct host_link *link, const struct host_comm_channel *channel, uint64_t position,
                int rank, const struct failure *failure)
{
    struct link_message message = {.word = WORD_LEAVE,
                                   .rank = rank,
                                   .status = (int32_t)failure->status,
                                   .channel = comm_channel_name(channel),
                                   .position = position};
    (void)tell_members(link, channel, &message, failure->text, "", true);
}

void link_delivered(struct host_link *link, const struct host_comm_channel *channel,
                    uint64_t position)
{
    struct link_message message = {
        .word = WORD_DELIVERED, .channel = comm_channel_name(channel), .position = position};
    (void)tell_members(link, channel, &message, "", "", true);
}

void link_took(struct host_link *link, const struct host_comm_channel *channel, uint64_t position,
               int rank)
{
    struct link_message message = {.word = WORD_TOOK,
                                   .rank = rank,
                                   .channel = comm_channel_name(channel),
                                   .position = position};
    (void)tell_members(link, channel, &message, "", "", true);
}

void link_send(struct host_link *link, const struct host_comm_channel *channel,
               const struct host_part *part)
{
    struct link_message message = {.word = WORD_SEND,
                                   .rank = part->from,
                                   .peer = part->to,
                                   .tagged = part->what->tag != NULL,
                                   .channel = comm_channel_name(channel),
                                   .position = part->id,
                                   .bytes = part->what->bytes,
                                   .iteration = part->what->iteration,
                                   .send = far_of(part->what->data)};
    if (!host_link_tell(link, host_link_process_of(link, part->to), &message,
                        host_link_text_of(part->what->tag), "", true))
        untold(link, part->entry->stream);
}

void link_withdraw(struct host_link *link, const struct host_comm_channel *channel,
                   const struct host_part *part)
{
    struct link_message message = {.word = WORD_WITHDRAW,
                                   .rank = part->from,
                                   .channel = comm_channel_name(channel),
                                   .position = part->id};
    (void)host_link_tell(link, host_link_process_of(link, part->to), &message, "", "", true);
}

void link_received(struct host_link *link, const struct host_comm_channel *channel,
                   const struct host_part *part, const struct failure *failure)
{
    struct link_message message = {.word = failure ? WORD_UNFIT : WORD_RECEIVED,
                                   .rank = part->to,
                                   .status = failure ? (int32_t)failure->status : 0,
                                   .channel = comm_channel_name(channel),
                                   .position = part->id};
    (void)host_link_tell(link, host_link_process_of(link, part->from), &message,
                         failure ? failure->text : "", "", true);
}

void link_abort(struct host_link *link, const char *why)
{
    struct link_message message = {.word = WORD_ABORT};
    (void)host_link_tell(link, TO_ALL, &message, why, "", true);
}

void link_fail(struct host_link *link, const char *why)
{
    if (!link->world->aborted)
        link_abort(link, why);
    world_fail_all(link->world, why);
}

/* ---- desks ----------------------------------------------------------------------------------- */

struct desk *link_open_desk(struct host_link *link, const struct host_comm_channel *channel,
                            int rank, int64_t *offset)
{
    struct diag diag;
    diag_init(&diag);
    struct desk *desk = rendezvous_alloc(link->rendezvous, sizeof *desk, offset, &diag);
    diag_fini(&diag);
    const struct link_message message = {
        .word = WORD_DESK, .rank = rank, .channel = comm_channel_name(channel), .claim = *offset};
    if (!desk)
        link_fail(link, "no memory for small collectives");
    else if (!tell_members(link, channel, &message, "", "", true) && !is_cut_off(link))
        link_fail(link, "the other processes cannot be told");
    return desk;
}

void link_close_desk(struct host_link *link, struct desk *desk, int64_t offset)
{
    rendezvous_free_late(link->rendezvous, desk, sizeof *desk, offset);
}

void link_rouse(struct host_link *link, const struct host_comm_channel *channel)
{
    int count, here = rendezvous_rank(link->rendezvous);
    const int *members = comm_channel_members(channel, &count);
    for (int i = 0, last = -1; i < count; i++) {
        int process = host_link_process_of(link, members[i]);
        if (process != here && process != last)
            rendezvous_rouse(link->rendezvous, process);
        last = process;
    }
}

bool link_is_here(const struct host_link *link, int rank)
{
    return host_link_process_of(link, rank) == rendezvous_rank(link->rendezvous);
}

/* ---- guests ---------------------------------------------------------------------------------- */

void guest_free(struct guest *guest)
{
    if (guest->sits)
        return;
    free(guest->tag);
    free(guest->label);
    free(guest);
}

static bool host_link_bring(const struct host_link *link, struct far_ref from,
                            struct device_buffer *buffer, struct device_ref *to)
{
    *to = (struct device_ref){NULL, 0};
    if (from.buffer_bytes <= 0)
        return true;
    buffer->bytes = (size_t)from.buffer_bytes;
    buffer->address =
        rendezvous_map(link->rendezvous, from.buffer_offset, (size_t)from.buffer_bytes);
    *to = (struct device_ref){buffer, (size_t)from.offset};
    return buffer->address;
}

/* True if the buffer has so many bytes there. Offset and size are what another process says. */
static bool host_link_has_bytes(struct device_ref ref, size_t bytes)
{
    return bytes == 0 || (ref.buffer && ref.offset <= ref.buffer->bytes &&
                          bytes <= ref.buffer->bytes - ref.offset);
}

bool guest_has_bytes(const struct guest *guest, size_t send_bytes, size_t recv_bytes)
{
    return host_link_has_bytes(guest->op.collective.send, send_bytes) &&
           host_link_has_bytes(guest->op.collective.recv, recv_bytes);
}

/* NULL: no memory, or its data cannot be reached. */
static struct guest *guest_new(const struct host_link *link, const struct link_message *message,
                               const char *tag, const char *label)
{
    struct guest *guest = calloc(1, sizeof *guest);
    struct device_ref send, recv;
    if (!guest)
        return NULL;
    guest->staged = message->staged != 0;
    guest->kept = message->kept != 0;
    guest->tag = message->tagged ? strdup(tag) : NULL;
    guest->label = message->labelled ? strdup(label) : NULL;
    if ((message->tagged && !guest->tag) || (message->labelled && !guest->label) ||
        !host_link_bring(link, message->send, &guest->send, &send) ||
        !host_link_bring(link, message->recv, &guest->recv, &recv)) {
        guest_free(guest);
        return NULL;
    }
    guest->op = (struct device_op){.kind = DEVICE_OP_COLLECTIVE,
                                   .label = guest->label,
                                   .collective = {.kind = (enum collective_kind)message->kind,
                                                  .tag = guest->tag,
                                                  .root = message->root,
                                                  .number = (enum number)message->number,
                                                  .bytes = message->bytes,
                                                  .iteration = message->iteration,
                                                  .send = send,
                                                  .recv = recv}};
    guest->presence = (struct presence){.op = &guest->op, .rank = message->rank};
    guest->what = (struct device_p2p){.send = true,
                                      .peer = message->peer,
                                      .tag = guest->tag,
                                      .bytes = message->bytes,
                                      .iteration = message->iteration,
                                      .data = send};
    guest->part = (struct host_part){
        .what = &guest->what, .from = message->rank, .to = message->peer, .id = message->position};
    return guest;
}

/* ---- hearing --------------------------------------------------------------------------------- */

/* The first member's process tells where the claim is. Without it that process moves the data. */
static void hear_claim(struct host_link *link, struct host_comm_channel *channel,
                       const struct link_message *message)
{
    int count;
    const int64_t within = message->claim % CLAIM_BYTES;
    if (message->claim <= 0 || within % (int64_t)sizeof(uint64_t) != 0 || comm_has_claim(channel) ||
        comm_channel_members(channel, &count)[0] != message->rank)
        return;
    char *page = rendezvous_map(link->rendezvous, message->claim - within, CLAIM_BYTES);
    if (page)
        comm_set_claim(channel, (_Atomic uint64_t *)(void *)(page + within), message->claim);
}

static void hear_guest(struct host_link *link, struct host_comm_channel *channel,
                       const struct link_message *message, const char *first, const char *second)
{
    struct guest *guest = guest_new(link, message, first, second);
    if (!guest)
        link_fail(link, "what another rank sent cannot be reached, or there is no memory for it");
    else if (message->word == WORD_SEND)
        comm_guest_sends(channel, guest);
    else {
        hear_claim(link, channel, message);
        comm_guest_arrives(channel, message->position, guest);
    }
}

static void hear_desk(struct host_link *link, struct host_comm_channel *channel,
                      const struct link_message *message)
{
    char *desk = rendezvous_map(link->rendezvous, message->claim, sizeof(struct desk));
    if (!desk || !desk_introduce(channel, message->rank, desk))
        link_fail(link, "what another rank gives to small collectives cannot be reached");
    else
        link_ring(link); /* something may lie there */
}

#define ONE(...) +1
enum {
    KINDS = 0 COLLECTIVE_LIST(ONE),
    NUMBERS = 0 NUMBER_LIST(ONE),
    STATUSES = 0 STATUS_LIST(ONE)
};
#undef ONE

static void senseless(struct host_link *link, int from)
{
    char text[WAIT_TEXT];
    snprintf(text, sizeof text, "process %d sent a message that is not valid", from);
    link_fail(link, text);
}

/* True if it is about members of the channel, and of a process' own. */
static bool is_sound(const struct host_link *link, const struct host_comm_channel *channel,
                     int from, const struct link_message *message)
{
    const bool fails = message->word == WORD_LEAVE || message->word == WORD_UNFIT;
    if (message->word < 0 || message->word >= WORDS)
        return false;
    if (message->word == WORD_DELIVERED)
        return true;
    return comm_place_of(channel, message->rank) >= 0 &&
           host_link_process_of(link, message->rank) == from &&
           (message->word != WORD_SEND || comm_place_of(channel, message->peer) >= 0) &&
           message->kind >= 0 && message->kind < KINDS && message->number >= 0 &&
           message->number < NUMBERS && message->bytes >= 0 && message->status < STATUSES &&
           message->status >= (fails ? 1 : 0);
}

static void hear_word(struct host_link *link, struct host_comm_channel *channel, int from,
                      const struct link_message *message, const char *first, const char *second)
{
    if (!is_sound(link, channel, from, message)) {
        senseless(link, from);
        return;
    }
    struct failure failure = {.status = (enum status)message->status};
    snprintf(failure.text, sizeof failure.text, "%s", first);
    switch ((enum word)message->word) {
    case WORD_ARRIVE:
    case WORD_SEND: hear_guest(link, channel, message, first, second); break;
    case WORD_LEAVE: comm_guest_leaves(channel, message->position, message->rank, &failure); break;
    case WORD_DELIVERED: comm_delivered(channel, message->position); break;
    case WORD_TOOK: comm_guest_took(channel, message->position, message->rank); break;
    case WORD_DESK: hear_desk(link, channel, message); break;
    case WORD_WITHDRAW: comm_guest_withdraws(channel, message->rank, message->position); break;
    case WORD_RECEIVED: comm_sent(channel, message->position, NULL); break;
    case WORD_UNFIT: comm_sent(channel, message->position, &failure); break;
    case WORD_ABORT:
    case WORDS: break;
    }
}

static void keep_early(struct host_link *link, int from, const char *data, size_t bytes)
{
    struct host_link_early *early = malloc(sizeof *early + bytes);
    if (!early) {
        link_fail(link, "no memory for a message of another rank");
        return;
    }
    early->next = NULL;
    early->from = from;
    memcpy(early->data, data, bytes);
    *link->early_end = early;
    link->early_end = &early->next;
}

/* A message is whole when both its texts end in it. */
static bool host_link_is_whole(const char *data, size_t bytes)
{
    if (bytes < sizeof(struct link_message) + 2 || data[bytes - 1] != '\0')
        return false;
    return memchr(data + sizeof(struct link_message), '\0',
                  bytes - sizeof(struct link_message) - 1);
}

static void hear(void *arg, int from, const void *data, size_t bytes)
{
    struct host_link *link = arg;
    struct host_world *world = link->world;
    struct link_message message;
    if (!host_link_is_whole(data, bytes)) {
        pthread_mutex_lock(&world->lock);
        senseless(link, from);
        world_unlock(world);
        return;
    }
    memcpy(&message, data, sizeof message);
    if (message.world != link->number)
        return;
    const char *first = (const char *)data + sizeof message, *second = first + strlen(first) + 1;
    pthread_mutex_lock(&world->lock);
    struct host_comm_channel *channel = comm_channel_find(world, message.channel);
    if (message.word == WORD_ABORT)
        world_fail_all(world, first);
    else if (channel)
        hear_word(link, channel, from, &message, first, second);
    else
        keep_early(link, from, data, bytes);
    world_unlock(world);
}

void link_introduce(struct host_link *link, struct host_comm_channel *channel)
{
    struct host_link_early **at = &link->early;
    while (*at) {
        struct host_link_early *early = *at;
        struct link_message message;
        memcpy(&message, early->data, sizeof message);
        if (message.channel != comm_channel_name(channel)) {
            at = &early->next;
            continue;
        }
        const char *first = early->data + sizeof message;
        hear_word(link, channel, early->from, &message, first, first + strlen(first) + 1);
        *at = early->next;
        free(early);
    }
    link->early_end = at;
}

uint64_t link_next_id(struct host_link *link)
{
    return ++link->next_id;
}

/* ---- waiting for messages -------------------------------------------------------------------- */

enum {
    LOOK_NS = 100000000
}; /* no wake is missed; a bell that another process broke costs this much */

void link_ring(struct host_link *link)
{
    rendezvous_ring(link->rendezvous);
}

void link_look(struct host_link *link)
{
    world_unlock(link->world);
    rendezvous_look(link->rendezvous);
    pthread_mutex_lock(&link->world->lock);
}

void link_wait(struct host_link *link, struct spin *spin, const atomic_uint *word, unsigned value)
{
    struct host_world *world = link->world;
    const atomic_uint *bell = rendezvous_bell(link->rendezvous);
    unsigned seen = atomic_load(bell);
    if (word) {
        world_spin(world, spin, word, value);
        if (atomic_load(word) != value || atomic_load(bell) != seen)
            return;
    }
    link_look(link); /* what it hears rings, if it matters to a thread that waits */
    if (!word && atomic_load(bell) == seen)
        world_spin(world, spin, bell, seen);
    if (atomic_load(bell) != seen)
        return;
    world_unlock(world);
    cores_sleep();
    rendezvous_sleep(link->rendezvous, seen, LOOK_NS, word, value);
    cores_wake();
    pthread_mutex_lock(&world->lock);
}

/* ---- claims ---------------------------------------------------------------------------------- */

/* NULL: no memory, or none that all could map. */
static struct claim_page *page_for_claim(struct host_link *link)
{
    struct claim_page *page = link->claims;
    struct diag diag;
    if (page && page->used < CLAIM_BYTES / sizeof *page->words)
        return page;
    page = calloc(1, sizeof *page);
    if (!page)
        return NULL;
    diag_init(&diag);
    page->words = rendezvous_alloc(link->rendezvous, CLAIM_BYTES, &page->offset, &diag);
    diag_fini(&diag);
    if (!page->words) {
        free(page);
        return NULL;
    }
    page->next = link->claims;
    link->claims = page;
    return page;
}

static void make_claim(struct host_link *link, struct host_comm_channel *channel)
{
    struct claim_page *page = page_for_claim(link);
    if (!page)
        return;
    _Atomic uint64_t *word = &page->words[page->used++];
    atomic_store(word, 1);
    comm_set_claim(channel, word, page->offset + (int64_t)((char *)word - (char *)page->words));
}

void link_settle_channel(struct host_link *link, struct host_comm_channel *channel)
{
    int count, here = rendezvous_rank(link->rendezvous);
    const int *members = comm_channel_members(channel, &count);
    bool alone = true;
    for (int i = 0; i < count; i++)
        alone = alone && host_link_process_of(link, members[i]) == here;
    if (alone)
        return;
    comm_set_near(channel);
    if (host_link_process_of(link, members[0]) == here)
        make_claim(link, channel);
}

/* ---- memory ---------------------------------------------------------------------------------- */

enum status link_alloc(struct host_link *link, struct host_buffer *buffer, struct diag *diag)
{
    buffer->base.address =
        rendezvous_alloc(link->rendezvous, buffer->base.bytes, &buffer->offset, diag);
    return buffer->base.address ? STATUS_OK : STATUS_SYSTEM;
}

void link_free(struct host_link *link, struct host_buffer *buffer)
{
    rendezvous_free(link->rendezvous, buffer->base.address, buffer->base.bytes, buffer->offset);
}

/* ---- open and close -------------------------------------------------------------------------- */

enum status link_open(struct host_world *world, struct diag *diag)
{
    struct host_link *link = calloc(1, sizeof *link);
    if (!link)
        return diag_no_memory(diag);
    link->world = world;
    link->rendezvous = world->base.config.rendezvous;
    link->number = rendezvous_count(link->rendezvous);
    link->early_end = &link->early;
    world->link = link;
    rendezvous_age(link->rendezvous); /* the world before the last is closed in all processes */
    rendezvous_listen(link->rendezvous, hear, link);
    return STATUS_OK;
}

void link_close(struct host_link *link)
{
    rendezvous_listen(link->rendezvous, NULL, NULL);
    comm_forget_channels(link->world);
    while (link->claims) {
        struct claim_page *page = link->claims;
        link->claims = page->next;
        rendezvous_free(link->rendezvous, (void *)page->words, CLAIM_BYTES, page->offset);
        free(page);
    }
    while (link->early) {
        struct host_link_early *early = link->early;
        link->early = early->next;
        free(early);
    }
    free(link);
}
