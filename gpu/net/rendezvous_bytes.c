/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rendezvous_bytes.c - memory of members that cannot be mapped here: fetched and stored by mail.
 *
 *     fetcher                    owner's reader              writer
 *       |-- FETCH id, range ------->|                          |
 *       |<---- DATA id, piece ------|  pread of its file       |
 *       |<---- DATA id, piece ------|                          |
 *       |                           |<-- STORE range, bytes ---|
 *       |                           |  pwrite                  |
 *
 * All goes through the broker, pieces of one answer in order. A range that the owner does not have is
 * answered with 0 bytes; one that cannot be stored ends the run there, since what was computed is lost.
 */
#include "rendezvous_impl.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_NS = 50000000 };
enum { RANGE_BYTES = RENDEZVOUS_MAX_BYTES - (int)sizeof(struct mail_range) };

/* ---- the owner ------------------------------------------------------------------------------- */

static bool send_range(struct rendezvous *r, enum mail_kind kind, int to,
                       const struct mail_range *range, const void *data)
{
    const struct mail mail = {.kind = (int32_t)kind, .from = r->rank, .to = to};
    size_t bytes = kind == MAIL_FETCH ? 0 : (size_t)range->bytes;
    char packet[RENDEZVOUS_MAX_BYTES];
    memcpy(packet, range, sizeof *range);
    if (data && bytes > 0)
        memcpy(packet + sizeof *range, data, bytes);
    return rendezvous_send_mail(r, &mail, packet, sizeof *range + bytes);
}

/* Is there memory of this member at all of the range? */
static bool has_range(const struct rendezvous *r, const struct mail_range *range)
{
    int64_t used = atomic_load(&r->board->used_bytes);
    return range->offset >= (int64_t)mail_board_bytes(r->size) && range->bytes >= 0 &&
           used >= range->offset && range->bytes <= used - range->offset;
}

/* A request for bytes of this member: send them in pieces, or an empty piece if they cannot be had. An end
   of the connection is noticed elsewhere. */
static void give(struct rendezvous *r, int to, const struct mail_range *range)
{
    char piece[RANGE_BYTES];
    struct mail_range part = {.id = range->id, .offset = 0};
    bool good = has_range(r, range);
    while (good && part.offset < range->bytes) {
        int64_t left = range->bytes - part.offset;
        part.bytes = left < RANGE_BYTES ? left : RANGE_BYTES;
        good = pread(r->memory, piece, (size_t)part.bytes, (off_t)(range->offset + part.offset)) ==
                   part.bytes &&
               send_range(r, MAIL_DATA, to, &part, piece);
        part.offset += part.bytes;
    }
    part.bytes = 0;
    if (!good)
        (void)send_range(r, MAIL_DATA, to, &part, piece);
}

/* Another member has computed bytes of this one: store them. */
static void keep(struct rendezvous *r, const struct mail_range *range, const char *data)
{
    if (!has_range(r, range) ||
        pwrite(r->memory, data, (size_t)range->bytes, (off_t)range->offset) != range->bytes)
        rendezvous_lose_broker(r); /* what was computed is lost, and with it the run */
}

/* ---- the asking member ----------------------------------------------------------------------- */

/* Requested bytes have come; with the lock held. The request may have been given up. */
static void take_data(struct rendezvous *r, const struct mail_range *range, const char *data)
{
    for (struct fetch *at = r->fetches; at; at = at->next) {
        if (at->id != range->id)
            continue;
        if (range->bytes == 0 || range->offset != (int64_t)at->have ||
            (size_t)range->bytes > at->bytes - at->have) {
            at->refused = true;
            return;
        }
        memcpy(at->to + at->have, data, (size_t)range->bytes);
        at->have += (size_t)range->bytes;
    }
}

/* Until it is there, or cannot come any more; with the lock held. */
static bool await_fetch(struct rendezvous *r, int rank, const struct fetch *fetch,
                        const atomic_bool *stop)
{
    while (fetch->have < fetch->bytes) {
        int64_t until_ns = mail_clock_ns() + LOOK_NS;
        struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
        if (fetch->refused || r->gone == rank || r->gone == r->size || r->left == rank ||
            atomic_load(stop))
            return false;
        pthread_cond_timedwait(&r->changed, &r->lock, &until);
    }
    return true;
}

bool rendezvous_fetch(struct rendezvous *r, int rank, int64_t offset, void *to, size_t bytes,
                      const atomic_bool *stop)
{
    struct fetch fetch = {.to = to, .bytes = bytes};
    struct mail_range range = {.offset = offset, .bytes = (int64_t)bytes};
    if (bytes == 0)
        return true;
    pthread_mutex_lock(&r->lock);
    range.id = fetch.id = ++r->fetched;
    fetch.next = r->fetches;
    r->fetches = &fetch;
    pthread_mutex_unlock(&r->lock);
    bool good = send_range(r, MAIL_FETCH, rank, &range, NULL);
    pthread_mutex_lock(&r->lock);
    good = good && await_fetch(r, rank, &fetch, stop);
    struct fetch **at = &r->fetches;
    while (*at != &fetch)
        at = &(*at)->next;
    *at = fetch.next;
    pthread_mutex_unlock(&r->lock);
    return good;
}

bool rendezvous_store(struct rendezvous *r, int rank, int64_t offset, const void *from,
                      size_t bytes)
{
    const char *at = from;
    struct mail_range range = {.offset = offset};
    while (bytes > 0) {
        range.bytes = bytes < RANGE_BYTES ? (int64_t)bytes : RANGE_BYTES;
        if (!send_range(r, MAIL_STORE, rank, &range, at))
            return false;
        at += range.bytes;
        range.offset += range.bytes;
        bytes -= (size_t)range.bytes;
    }
    return true;
}

/* ---- the reader ------------------------------------------------------------------------------ */

/* Bytes from member to member; false: it is no such mail. */
bool bytes_take(struct rendezvous *r, const struct mail *mail, const char *data, size_t bytes)
{
    struct mail_range range;
    if (mail->kind != MAIL_FETCH && mail->kind != MAIL_DATA && mail->kind != MAIL_STORE)
        return false;
    if (bytes < sizeof range)
        return true;
    memcpy(&range, data, sizeof range);
    bool whole = range.bytes >= 0 && (size_t)range.bytes == bytes - sizeof range;
    if (mail->kind == MAIL_FETCH)
        give(r, mail->from, &range);
    else if (mail->kind == MAIL_STORE && whole)
        keep(r, &range, data + sizeof range);
    else if (whole) {
        pthread_mutex_lock(&r->lock);
        take_data(r, &range, data + sizeof range);
        pthread_cond_broadcast(&r->changed);
        pthread_mutex_unlock(&r->lock);
    }
    return true;
}
