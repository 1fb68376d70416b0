/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rendezvous_queue.c - letters between members through memory that both have mapped.
 *
 *     sender                     common memory                          receiver
 *        |-- pass ---> | slot | slot | slot | ... |  written, taken  --- look ---> listener
 *        |---------------> bell of the receiver --- sleep, a futex
 *        '-- QUEUE: here it is; PASSED: too large, or no slot was free ---> its reader
 *
 * A sender makes a queue for each receiver with the first letter, in its own memory. It has one writer and one reader.
 * Letters are numbered, and heard in the order of their numbers, whichever way they come: a letter that comes by
 * mail was sent when all before it were in the queue or in the mail. Of two members that pass a letter to each other and
 * then look, one at least finds the other's: `written` is stored and loaded in one order for all.
 *
 * The contents of the queue are another process's: a slot is copied before it is checked, and a sender whose
 * letters are none counts as gone.
 */
#include "rendezvous_impl.h"

#include <assert.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SLOTS = 63, SLOT_BYTES = 240 };

struct letter_slot {
    uint64_t number;
    uint64_t bytes;
    char data[SLOT_BYTES];
};

struct letter_queue {
    _Alignas(64) _Atomic uint64_t written; /* letters so far: the sender's */
    _Alignas(64) _Atomic uint64_t taken;   /* the receiver's */
    _Alignas(64) struct letter_slot slots[SLOTS];
};

/* ---- bells ----------------------------------------------------------------------------------- */

static void ring_bell(struct rendezvous *r, int rank)
{
    struct board_member *member = &r->board->members[rank];
    assert(rank >= 0 && rank < r->size);
    atomic_fetch_add(&member->bell, 1);
    if (atomic_load(&member->sleepers) > 0)
        syscall(SYS_futex, &member->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

const atomic_uint *rendezvous_bell(const struct rendezvous *r)
{
    return &r->board->members[r->rank].bell;
}

void rendezvous_ring(struct rendezvous *r)
{
    ring_bell(r, r->rank);
}

void rendezvous_rouse(struct rendezvous *r, int rank)
{
    if (atomic_load(&r->board->members[rank].sleepers) > 0)
        ring_bell(r, rank);
}

void rendezvous_sleep(struct rendezvous *r, unsigned seen, int64_t limit_ns,
                      const atomic_uint *word, unsigned value)
{
    struct board_member *member = &r->board->members[r->rank];
    const struct timespec limit = {.tv_sec = limit_ns / 1000000000,
                                   .tv_nsec = limit_ns % 1000000000};
    atomic_fetch_add(&member->sleepers, 1);
    if (!word || atomic_load(word) == value) /* else its writer may have seen no sleeper */
        syscall(SYS_futex, &member->bell, FUTEX_WAIT, seen, &limit, NULL, 0);
    atomic_fetch_sub(&member->sleepers, 1);
}

/* ---- the sender: `passing` is held ----------------------------------------------------------- */

/* Where there is no memory for it, letters go by mail. */
static void open_queue(struct rendezvous *r, int to)
{
    const struct mail mail = {.kind = MAIL_QUEUE, .from = r->rank, .to = to};
    struct outgoing *out = &r->outgoing[to];
    struct diag diag;
    int64_t offset;
    diag_init(&diag);
    out->tried = true;
    out->queue = rendezvous_alloc(r, sizeof *out->queue, &offset, &diag);
    if (out->queue && !rendezvous_send_mail(r, &mail, &offset, sizeof offset)) {
        rendezvous_free(r, out->queue, sizeof *out->queue, offset);
        out->queue = NULL;
    }
    diag_fini(&diag);
}

static bool write_slot(struct outgoing *out, const void *data, size_t bytes)
{
    struct letter_queue *queue = out->queue;
    if (bytes > SLOT_BYTES ||
        out->written - atomic_load_explicit(&queue->taken, memory_order_acquire) >= SLOTS)
        return false;
    assert(out->written <= out->passed); /* the others went by mail */
    struct letter_slot *slot = &queue->slots[out->written % SLOTS];
    slot->number = out->passed;
    slot->bytes = bytes;
    memcpy(slot->data, data, bytes);
    atomic_store(&queue->written, ++out->written);
    return true;
}

static bool mail_numbered(struct rendezvous *r, int to, uint64_t number, const void *data,
                          size_t bytes)
{
    const struct mail mail = {.kind = MAIL_PASSED, .from = r->rank, .to = to};
    if (bytes > RENDEZVOUS_MAX_BYTES - sizeof number)
        return false;
    char packet[RENDEZVOUS_MAX_BYTES];
    memcpy(packet, &number, sizeof number);
    memcpy(packet + sizeof number, data, bytes);
    return rendezvous_send_mail(r, &mail, packet, sizeof number + bytes);
}

bool rendezvous_pass(struct rendezvous *r, int to, const void *data, size_t bytes, bool wakes)
{
    assert(to >= 0 && to < r->size);
    if (to == r->rank)
        return rendezvous_send(r, to, data, bytes);
    pthread_mutex_lock(&r->passing);
    struct outgoing *out = &r->outgoing[to];
    if (!out->tried)
        open_queue(r, to);
    bool queued = out->queue && write_slot(out, data, bytes);
    bool passed = queued || mail_numbered(r, to, out->passed, data, bytes);
    out->passed += passed;
    pthread_mutex_unlock(&r->passing);
    if (queued && wakes)
        ring_bell(r, to);
    return passed;
}

void queues_close(struct rendezvous *r)
{
    for (int rank = 0; r->outgoing && rank < r->size; rank++)
        if (r->outgoing[rank].queue) /* the file keeps it: its receiver may still look */
            munmap(r->outgoing[rank].queue, sizeof *r->outgoing[rank].queue);
    free(r->outgoing);
    free(r->incoming);
    free(r->senders);
}

/* ---- the receiver: `listening` is held ------------------------------------------------------- */

/* The next letter of a sender has come. */
static void hear_queued(struct rendezvous *r, int from, const char *data, size_t bytes)
{
    r->incoming[from].heard++;
    if (r->listener)
        r->listener(r->listener_arg, from, data, bytes);
}

/* Letters of a queue, as far as none of the mail comes before them. False: they are none. */
static bool take_slots(struct rendezvous *r, int from)
{
    struct incoming *in = &r->incoming[from];
    struct letter_queue *queue = in->queue;
    struct letter_slot slot;
    uint64_t there;
    assert(in->taken <= in->heard);
    while (queue && (there = atomic_load(&queue->written) - in->taken)) {
        const struct letter_slot *next = &queue->slots[in->taken % SLOTS];
        if (there > SLOTS)
            return false;
        memcpy(&slot, next, sizeof slot);
        if (slot.number > in->heard)
            return true;
        if (slot.number < in->heard || slot.bytes > SLOT_BYTES)
            return false;
        atomic_store_explicit(&queue->taken, ++in->taken, memory_order_release);
        hear_queued(r, from, slot.data, (size_t)slot.bytes);
    }
    return true;
}

static void rendezvous_queue_give_up(struct rendezvous *r, int from)
{
    r->incoming[from].queue = NULL;
    rendezvous_lose(r, from);
}

void queue_take_older(struct rendezvous *r, int from)
{
    if (from >= 0 && from < r->size && !take_slots(r, from))
        rendezvous_queue_give_up(r, from);
}

void rendezvous_look(struct rendezvous *r)
{
    pthread_mutex_lock(&r->listening);
    assert(r->sender_count <= r->size);
    for (int i = 0; i < r->sender_count; i++)
        if (!take_slots(r, r->senders[i]))
            rendezvous_queue_give_up(r, r->senders[i]);
    pthread_mutex_unlock(&r->listening);
}

/* A sender tells where its queue is. */
static bool take_queue(struct rendezvous *r, int from, const char *data, size_t bytes)
{
    int64_t offset;
    struct incoming *in = &r->incoming[from];
    if (bytes != sizeof offset || in->known)
        return false;
    memcpy(&offset, data, sizeof offset);
    in->known = true;
    assert(r->sender_count < r->size);
    in->queue = rendezvous_map(r, offset, sizeof *in->queue);
    r->senders[r->sender_count++] = from;
    return in->queue;
}

static bool take_passed(struct rendezvous *r, int from, const char *data, size_t bytes)
{
    uint64_t number;
    if (bytes < sizeof number || !take_slots(r, from))
        return false;
    memcpy(&number, data, sizeof number);
    if (number != r->incoming[from].heard)
        return false;
    hear_queued(r, from, data + sizeof number, bytes - sizeof number);
    return take_slots(r, from);
}

bool queue_take(struct rendezvous *r, const struct mail *mail, const char *data, size_t bytes)
{
    if (mail->kind != MAIL_QUEUE && mail->kind != MAIL_PASSED)
        return false;
    if (mail->from < 0 || mail->from >= r->size)
        return true;
    pthread_mutex_lock(&r->listening);
    if (!(mail->kind == MAIL_QUEUE ? take_queue : take_passed)(r, mail->from, data, bytes))
        rendezvous_queue_give_up(r, mail->from);
    pthread_mutex_unlock(&r->listening);
    rendezvous_ring(r);
    return true;
}
