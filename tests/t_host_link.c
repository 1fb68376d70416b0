/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_host_link.c - a rank of the host device, and another process that answers it nonsense: the collective fails with a
 * sentence, nothing outside of the ranks' memory is touched, and the device closes.
 *
 * The other process is a thread here, a member of the rendezvous without a device. It keeps the first message that
 * the rank sends it, that the rank came to an all_reduce, and sends it back as its own arrival: honest, or with one
 * thing changed.
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
#include "net/mail.h"
#include "net/rendezvous.h"
#include "tests/tap.h"

enum { BYTES = 64, PATIENCE_MS = 10000 };

static int64_t in_ms(int64_t ms)
{
    return mail_clock_ns() + ms * 1000000;
}

/* ---- the other process ------------------------------------------------------------------------- */

struct answer {
    size_t keep; /* bytes of it that are sent, one at least */
    void (*change)(struct message *message);
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

static void answer(struct other *other, struct heard *heard)
{
    struct message message;
    memcpy(&message, heard->data, sizeof message);
    message.rank = 1;
    if (other->answer->change)
        other->answer->change(&message);
    memcpy(heard->data, &message, sizeof message);
    size_t bytes = other->answer->keep < heard->bytes ? other->answer->keep : heard->bytes;
    atomic_store(&other->answered, rendezvous_send(other->rendezvous, 0, heard->data, bytes));
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

static enum status meet(struct rank *rank, struct diag *diag)
{
    const struct device_op op = {.kind = DEVICE_OP_COLLECTIVE,
                                 .collective = {.comm = rank->comm,
                                                .kind = COLLECTIVE_ALL_REDUCE,
                                                .bytes = BYTES,
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
    enum status status = meet(&rank, &diag);
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

static void from_the_asked(struct message *message)
{
    message->rank = 0;
}
static void from_nobody(struct message *message)
{
    message->rank = 2;
}
static void from_far_below(struct message *message)
{
    message->rank = INT32_MIN;
}
static void of_a_kind_too_many(struct message *message)
{
    message->kind = 1000;
}
static void of_no_kind(struct message *message)
{
    message->kind = -1;
}
static void of_a_type_too_many(struct message *message)
{
    message->number = 1000;
}
static void of_negative_size(struct message *message)
{
    message->bytes = -1;
}
static void of_another_size(struct message *message)
{
    message->bytes *= 2;
}
static void with_a_word_too_many(struct message *message)
{
    message->word = 1000;
}
static void with_no_status(struct message *message)
{
    message->word = WORD_LEAVE;
}
static void with_a_status_too_many(struct message *message)
{
    message->word = WORD_LEAVE;
    message->status = 1000;
}
static void to_nobody(struct message *message)
{
    message->word = WORD_SEND;
    message->peer = 7;
}
static void from_outside(struct message *message)
{
    message->send.buffer_offset = INT64_C(1) << 50;
}
static void to_outside(struct message *message)
{
    message->recv.offset = INT64_MAX - 8;
}
static void to_before(struct message *message)
{
    message->recv.offset = -4096;
}
static void to_a_small_buffer(struct message *message)
{
    message->recv.buffer_bytes = 8;
}

int main(void)
{
    static const struct {
        const char *name;
        struct answer answer;
        const char *wanted;
    } cases[] = {
        {"an honest answer is a meeting", {SIZE_MAX, NULL}, NULL},
        {"one byte", {1, NULL}, "makes no sense"},
        {"half a message", {sizeof(struct message) / 2, NULL}, "makes no sense"},
        {"a message without its texts", {sizeof(struct message), NULL}, "makes no sense"},
        {"with one text", {sizeof(struct message) + 1, NULL}, "makes no sense"},
        {"in the name of the rank itself", {SIZE_MAX, from_the_asked}, "makes no sense"},
        {"of no member", {SIZE_MAX, from_nobody}, "makes no sense"},
        {"of a negative rank", {SIZE_MAX, from_far_below}, "makes no sense"},
        {"of an unknown collective", {SIZE_MAX, of_a_kind_too_many}, "makes no sense"},
        {"of collective -1", {SIZE_MAX, of_no_kind}, "makes no sense"},
        {"of an unknown type", {SIZE_MAX, of_a_type_too_many}, "makes no sense"},
        {"of a negative size", {SIZE_MAX, of_negative_size}, "makes no sense"},
        {"an unknown word", {SIZE_MAX, with_a_word_too_many}, "makes no sense"},
        {"a failure that is none", {SIZE_MAX, with_no_status}, "makes no sense"},
        {"an unknown failure", {SIZE_MAX, with_a_status_too_many}, "makes no sense"},
        {"a send to no member", {SIZE_MAX, to_nobody}, "makes no sense"},
        {"another size is a mismatch", {SIZE_MAX, of_another_size}, "mismatch"},
        {"a buffer outside of all memory", {SIZE_MAX, from_outside}, "cannot be reached"},
        {"a place behind its buffer", {SIZE_MAX, to_outside}, "cannot be reached"},
        {"a place before its buffer", {SIZE_MAX, to_before}, "cannot be reached"},
        {"a buffer that is too small", {SIZE_MAX, to_a_small_buffer}, "cannot be reached"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        try(cases[i].name, &cases[i].answer, cases[i].wanted);
    return tap_done();
}
