/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_host_link.c - a rank of the host device, and another process that answers it nonsense: the collective fails with a
 * sentence, nothing outside of the ranks' memory is touched, and the device closes.
 *
 * The other process is a thread here, a member of the rendezvous without a device. It keeps the first message that
 * the rank sends it, that the rank came to an all_reduce, and sends it back as its own arrival: honest, or with one
 * thing changed. Of a small one it says where its desk is, and puts there what lies on the rank's.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/device/device.h"
#include "gpu/device/host/link_message.h"
#include "gpu/net/mail.h"
#include "gpu/net/rendezvous.h"
#include "tests/tap.h"

enum { BYTES = 16 << 10, SMALL_BYTES = 64, PATIENCE_MS = 10000 };

static int64_t in_ms(int64_t ms)
{
    return mail_clock_ns() + ms * 1000000;
}

/* ---- the other process ------------------------------------------------------------------------- */

struct answer {
    size_t keep; /* bytes of it that are sent, one at least */
    void (*change)(struct link_message *message);
    void (*put)(struct desk_slot *slot); /* of a small collective */
    bool small, twice, leaves;
};

struct other {
    const char *place;
    const struct answer *answer;
    struct rendezvous *rendezvous;
    atomic_bool answered, over;
    pthread_t thread;
};

/* The first message. The listener may not send, so the answer waits until it has returned. */
struct heard {
    pthread_mutex_t lock;
    char data[1024];
    size_t bytes;
};

static void hear(void *arg, int from, const void *data, size_t bytes)
{
    struct heard *heard = arg;
    (void)from;
    pthread_mutex_lock(&heard->lock);
    if (heard->bytes == 0 && bytes <= sizeof heard->data) {
        memcpy(heard->data, data, bytes);
        heard->bytes = bytes;
    }
    pthread_mutex_unlock(&heard->lock);
}

/* The rank's desk, as the other's: at an address that all know. */
static int64_t copy_desk(const struct other *other, int64_t from)
{
    struct diag diag;
    int64_t offset = 0;
    diag_init(&diag);
    struct desk *desk = rendezvous_alloc(other->rendezvous, sizeof *desk, &offset, &diag);
    struct desk *theirs = rendezvous_map(other->rendezvous, from, sizeof *theirs);
    if (!desk || !theirs)
        abort();
    while (atomic_load(&theirs->slots[0].number) != 1)
        usleep(1000);
    desk->slots[0].head = theirs->slots[0].head;
    memcpy(desk->slots[0].data, theirs->slots[0].data, sizeof desk->slots[0].data);
    if (other->answer->put)
        other->answer->put(&desk->slots[0]);
    atomic_store(&desk->slots[0].number, other->answer->leaves ? (unsigned)1 - DESK_SLOTS : 1);
    diag_fini(&diag);
    return offset;
}

static void say_leave(const struct other *other, const struct link_message *desk)
{
    static const char text[] = "the other gave up";
    struct link_message message = *desk;
    char packet[sizeof message + sizeof text + 1] = {0};
    message.word = WORD_LEAVE;
    message.status = STATUS_VIOLATED;
    message.position = 0;
    memcpy(packet, &message, sizeof message);
    memcpy(packet + sizeof message, text, sizeof text);
    rendezvous_send(other->rendezvous, 0, packet, sizeof packet);
}

static void answer(struct other *other, struct heard *heard)
{
    struct link_message message;
    memcpy(&message, heard->data, sizeof message);
    message.rank = 1;
    if (message.word == WORD_DESK)
        message.claim = copy_desk(other, message.claim);
    if (other->answer->change)
        other->answer->change(&message);
    memcpy(heard->data, &message, sizeof message);
    size_t bytes = other->answer->keep < heard->bytes ? other->answer->keep : heard->bytes;
    atomic_store(&other->answered, rendezvous_send(other->rendezvous, 0, heard->data, bytes));
    if (other->answer->twice)
        rendezvous_send(other->rendezvous, 0, heard->data, bytes);
    if (other->answer->leaves)
        say_leave(other, &message);
}

static void *be_other(void *arg)
{
    struct other *other = arg;
    struct heard heard = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct diag diag;
    diag_init(&diag);
    if (rendezvous_find(other->place, 1, in_ms(PATIENCE_MS), &other->rendezvous, &diag))
        abort();
    rendezvous_listen(other->rendezvous, hear, &heard);
    if (rendezvous_barrier(other->rendezvous, in_ms(PATIENCE_MS), &diag))
        abort();
    while (!atomic_load(&other->over)) {
        rendezvous_look(other->rendezvous);
        pthread_mutex_lock(&heard.lock);
        bool ready = heard.bytes > 0 && !atomic_load(&other->answered);
        pthread_mutex_unlock(&heard.lock);
        if (ready)
            answer(other, &heard);
        usleep(1000);
    }
    rendezvous_listen(other->rendezvous, NULL, NULL);
    rendezvous_leave(other->rendezvous);
    diag_fini(&diag);
    return NULL;
}

/* ---- the rank ---------------------------------------------------------------------------------- */

struct rank {
    struct device_world *world;
    struct device *device;
    struct device_stream *stream;
    struct device_comm *comm;
    struct device_buffer *send, *recv;
};

static void open_rank(struct rank *rank, struct rendezvous *rendezvous, struct diag *diag)
{
    static const int members[] = {0, 1};
    const struct device_config config = {.kind = DEVICE_KIND_HOST,
                                         .ranks = 2,
                                         .first_rank = 0,
                                         .local_ranks = 1,
                                         .rendezvous = rendezvous};
    if (device_world_open(&config, &rank->world, diag) ||
        device_open(rank->world, 0, &rank->device, diag) ||
        device_stream_open(rank->device, "main", &rank->stream, diag) ||
        device_comm_open(rank->device, "dp", members, 2, &rank->comm, diag) ||
        device_alloc(rank->device, MEMORY_DEVICE, BYTES, &rank->send, diag) ||
        device_alloc(rank->device, MEMORY_DEVICE, BYTES, &rank->recv, diag)) {
        tap_note("%s", diag->count ? diag->messages[0].text : "?");
        abort();
    }
}

static void close_rank(struct rank *rank)
{
    device_world_abort(rank->world, "the test is over");
    device_comm_close(rank->comm);
    device_stream_close(rank->stream);
    device_free(rank->send);
    device_free(rank->recv);
    device_close(rank->device);
    device_world_close(rank->world);
}

static enum status meet(struct rank *rank, bool small, struct diag *diag)
{
    const struct device_op op = {.kind = DEVICE_OP_COLLECTIVE,
                                 .collective = {.comm = rank->comm,
                                                .kind = COLLECTIVE_ALL_REDUCE,
                                                .bytes = small ? SMALL_BYTES : BYTES,
                                                .tag = "sum",
                                                .send = {rank->send, 0},
                                                .recv = {rank->recv, 0}}};
    enum status status = device_push(rank->stream, &op, NULL, diag);
    return status
               ? status
               : device_stream_sync(rank->stream,
                                    device_now(rank->world) + PATIENCE_MS * INT64_C(1000000), diag);
}

/* One world in which the other process gives this answer. `wanted`: part of what the failure says; NULL: there is none. */
static void try(const char *name, const struct answer *given, const char *wanted)
{
    static int number;
    char place[64];
    struct broker *broker = NULL;
    struct rendezvous *rendezvous = NULL;
    struct rank rank;
    struct diag diag;
    diag_init(&diag);
    snprintf(place, sizeof place, "t_host_link-%ld-%d", (long)getpid(), number++);
    if (broker_open(2, &broker, &diag) || broker_listen(broker, place, &diag) ||
        broker_start(broker, &diag))
        abort();
    struct other other = {.place = place, .answer = given};
    pthread_create(&other.thread, NULL, be_other, &other);
    if (rendezvous_find(place, 0, in_ms(PATIENCE_MS), &rendezvous, &diag))
        abort();
    open_rank(&rank, rendezvous, &diag);
    enum status status = meet(&rank, given->small, &diag);
    const char *text = diag.count ? diag.messages[diag.count - 1].text : "";
    close_rank(&rank);
    atomic_store(&other.over, true);
    pthread_join(other.thread, NULL);
    tap_ok(atomic_load(&other.answered) &&
               (wanted ? status != STATUS_OK && strstr(text, wanted) : status == STATUS_OK),
           "%s%s%s", name, wanted ? ": " : "", wanted ? wanted : "");
    if (wanted ? !strstr(text, wanted) : status != STATUS_OK)
        tap_note("status %d, '%s'", (int)status, text);
    rendezvous_leave(rendezvous);
    broker_close(broker);
    diag_fini(&diag);
}

/* ---- what it may say --------------------------------------------------------------------------- */

static void from_the_asked(struct link_message *message)
{
    message->rank = 0;
}
static void from_nobody(struct link_message *message)
{
    message->rank = 2;
}
static void from_far_below(struct link_message *message)
{
    message->rank = INT32_MIN;
}
static void of_a_kind_too_many(struct link_message *message)
{
    message->kind = 1000;
}
static void of_no_kind(struct link_message *message)
{
    message->kind = -1;
}
static void of_a_type_too_many(struct link_message *message)
{
    message->number = 1000;
}
static void of_negative_size(struct link_message *message)
{
    message->bytes = -1;
}
static void of_another_size(struct link_message *message)
{
    message->bytes *= 2;
}
static void with_a_word_too_many(struct link_message *message)
{
    message->word = 1000;
}
static void with_no_status(struct link_message *message)
{
    message->word = WORD_LEAVE;
}
static void with_a_status_too_many(struct link_message *message)
{
    message->word = WORD_LEAVE;
    message->status = 1000;
}
static void to_nobody(struct link_message *message)
{
    message->word = WORD_SEND;
    message->peer = 7;
}
static void from_outside(struct link_message *message)
{
    message->send.buffer_offset = INT64_C(1) << 50;
}
static void to_outside(struct link_message *message)
{
    message->recv.offset = INT64_MAX - 8;
}
static void to_before(struct link_message *message)
{
    message->recv.offset = -4096;
}
static void to_a_small_buffer(struct link_message *message)
{
    message->recv.buffer_bytes = 8;
}

static void not_to_its_desk(struct link_message *message)
{
    message->word = WORD_ARRIVE;
    message->bytes = SMALL_BYTES;
}
static void with_a_desk_outside(struct link_message *message)
{
    message->claim = INT64_C(1) << 50;
}
static void with_a_desk_astride(struct link_message *message)
{
    message->claim += 64;
}
static void put_a_kind_too_many(struct desk_slot *slot)
{
    slot->head.kind = 1000;
}
static void put_no_kind(struct desk_slot *slot)
{
    slot->head.kind = -1;
}
static void put_a_type_too_many(struct desk_slot *slot)
{
    slot->head.number = 1000;
}
static void put_too_much(struct desk_slot *slot)
{
    slot->head.bytes = DESK_BYTES + 4;
}
static void put_less_than_nothing(struct desk_slot *slot)
{
    slot->head.bytes = -4;
}
static void put_another_size(struct desk_slot *slot)
{
    slot->head.bytes *= 2;
}
static void put_another_tag(struct desk_slot *slot)
{
    slot->head.tag[0] = 'r';
}
static void put_no_tag(struct desk_slot *slot)
{
    slot->head.tagged = 0;
}
static void put_texts_without_end(struct desk_slot *slot)
{
    memset(slot->head.tag, 'x', sizeof slot->head.tag);
    memset(slot->head.label, 'x', sizeof slot->head.label);
    slot->head.labelled = 1;
}

int main(void)
{
    static const struct {
        const char *name;
        struct answer answer;
        const char *wanted;
    } cases[] = {
        {"an honest answer is a meeting", {.keep = SIZE_MAX}, NULL},
        {"one byte", {.keep = 1}, "not valid"},
        {"half a message", {.keep = sizeof(struct link_message) / 2}, "not valid"},
        {"a message without its texts", {.keep = sizeof(struct link_message)}, "not valid"},
        {"with one text", {.keep = sizeof(struct link_message) + 1}, "not valid"},
        {"in the name of the rank itself",
         {.keep = SIZE_MAX, .change = from_the_asked},
         "not valid"},
        {"of no member", {.keep = SIZE_MAX, .change = from_nobody}, "not valid"},
        {"of a negative rank", {.keep = SIZE_MAX, .change = from_far_below}, "not valid"},
        {"of an unknown collective", {.keep = SIZE_MAX, .change = of_a_kind_too_many}, "not valid"},
        {"of collective -1", {.keep = SIZE_MAX, .change = of_no_kind}, "not valid"},
        {"of an unknown type", {.keep = SIZE_MAX, .change = of_a_type_too_many}, "not valid"},
        {"of a negative size", {.keep = SIZE_MAX, .change = of_negative_size}, "not valid"},
        {"an unknown word", {.keep = SIZE_MAX, .change = with_a_word_too_many}, "not valid"},
        {"a failure that is none", {.keep = SIZE_MAX, .change = with_no_status}, "not valid"},
        {"an unknown failure", {.keep = SIZE_MAX, .change = with_a_status_too_many}, "not valid"},
        {"a send to no member", {.keep = SIZE_MAX, .change = to_nobody}, "not valid"},
        {"another size is a mismatch", {.keep = SIZE_MAX, .change = of_another_size}, "mismatch"},
        {"a buffer outside of all memory",
         {.keep = SIZE_MAX, .change = from_outside},
         "cannot be reached"},
        {"a place behind its buffer",
         {.keep = SIZE_MAX, .change = to_outside},
         "cannot be reached"},
        {"a place before its buffer", {.keep = SIZE_MAX, .change = to_before}, "cannot be reached"},
        {"a buffer that is too small",
         {.keep = SIZE_MAX, .change = to_a_small_buffer},
         "cannot be reached"},
#define SMALL .keep = SIZE_MAX, .small = true
        {"an honest desk is a meeting", {SMALL}, NULL},
        {"a desk outside of all memory", {SMALL, .change = with_a_desk_outside}, "be reached"},
        {"a desk astride a page", {SMALL, .change = with_a_desk_astride}, "be reached"},
        {"a desk of no member", {SMALL, .change = from_nobody}, "not valid"},
        {"a desk of the rank itself", {SMALL, .change = from_the_asked}, "not valid"},
        {"a second desk", {SMALL, .twice = true, .leaves = true}, "be reached"},
        {"a small one that comes by message", {SMALL, .change = not_to_its_desk}, "sent no data"},
        {"an unknown collective on a desk", {SMALL, .put = put_a_kind_too_many}, "not valid"},
        {"collective -1", {SMALL, .put = put_no_kind}, "not valid"},
        {"an unknown type", {SMALL, .put = put_a_type_too_many}, "not valid"},
        {"more than a desk can have", {SMALL, .put = put_too_much}, "not valid"},
        {"less than nothing", {SMALL, .put = put_less_than_nothing}, "not valid"},
        {"another size", {SMALL, .put = put_another_size}, "mismatch"},
        {"another tag", {SMALL, .put = put_another_tag}, "mismatch"},
        {"no tag", {SMALL, .put = put_no_tag}, "mismatch"},
        {"texts without an end", {SMALL, .put = put_texts_without_end}, "mismatch"},
        {"one that has left its desk", {SMALL, .leaves = true}, "the other gave up"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        try(cases[i].name, &cases[i].answer, cases[i].wanted);
    return tap_done();
}
