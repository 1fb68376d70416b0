/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_far.c - what comes over TCP: to the broker from ranks on other machines, and to such a rank.
 *
 *     0 [piece]...    to the broker, from two connections; of 0x40: without the two good handshakes before
 *     1 [piece]...    to a rank; of 0x40: without the answers to its questions and the welcome before
 *
 *     piece: end, form, bytes, and so many bytes.  `end` is the connection. Forms: 0 as they are; 1 a packet behind its
 *     length, the first four bytes being its kind, from, to and number; 2 a handshake with the right secret, whose bytes are
 *     changed by those of the piece, beginning with the rank
 *
 * The streams are UNIX sockets here, which have what TCP has in this: bytes in order, no packets, an end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpu/net/broker_impl.h"
#include "gpu/net/rendezvous_impl.h"
#include "targets.h"

enum { MEMBERS = 2, HEAD = 3, SILENT = 0x40, FAR_CLOCKS = 8 };
static const int64_t pending_ns = 100000000, most_wait_ns = 1000000000;

static void send_bytes(int socket, const void *data, size_t bytes)
{
    (void)send(socket, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void send_packet(int socket, const struct mail *mail, const void *data, size_t bytes)
{
    uint32_t length = (uint32_t)(sizeof *mail + bytes);
    send_bytes(socket, &length, sizeof length);
    send_bytes(socket, mail, sizeof *mail);
    send_bytes(socket, data, bytes);
}

/* A byte as a rank, a kind or a number: -2 .. 253. */
static int32_t small(uint8_t byte)
{
    return (int32_t)byte - 2;
}

static void send_handshake(int socket, int32_t rank, const char *secret, const uint8_t *changes,
                           size_t count)
{
    struct handshake words = {.magic = HANDSHAKE_MAGIC, .rank = rank};
    char *bytes = (char *)&words;
    memcpy(words.secret, secret, sizeof words.secret);
    for (size_t i = 0; i < count; i++)
        bytes[(i + sizeof words.magic) % sizeof words] ^= (char)changes[i];
    send_bytes(socket, &words, sizeof words);
}

static void send_piece(int socket, const char *secret, int form, const uint8_t *data, size_t bytes)
{
    if (form % 3 == 1 && bytes >= 4) {
        const struct mail mail = {small(data[0]), small(data[1]), small(data[2]), small(data[3])};
        send_packet(socket, &mail, data + 4, bytes - 4);
    } else if (form % 3 == 2) {
        send_handshake(socket, 0, secret, data, bytes);
    } else {
        send_bytes(socket, data, bytes);
    }
}

static void send_all(const int *sockets, int count, const char *secret, const uint8_t *data,
                     size_t size)
{
    for (size_t at = 0; at + HEAD <= size;) {
        const uint8_t *head = data + at;
        size_t bytes = head[2];
        at += HEAD;
        bytes = bytes < size - at ? bytes : size - at;
        send_piece(sockets[head[0] % count], secret, head[1], data + at, bytes);
        at += bytes;
    }
}

/* ---- to the broker ----------------------------------------------------------------------------- */

/* Until the other end closes, which it does whatever it was sent; who runs the target sees when it does not. */
static void read_to_end(int socket)
{
    char bytes[4096];
    ssize_t got;
    do
        got = recv(socket, bytes, sizeof bytes, 0);
    while (got > 0 || (got < 0 && errno == EINTR)); /* a fuzzer has an alarm */
    FUZZ_EXPECT(got == 0 || errno == ECONNRESET);   /* it was sent more than it read */
    close(socket);
}

static void talk_to_broker(bool silent, const uint8_t *data, size_t size)
{
    static struct listener *listener; /* one serves all brokers */
    struct diag diag;
    struct broker *broker;
    int ends[MEMBERS][2], mine[MEMBERS];
    fuzz_diag_begin(&diag);
    if (!listener)
        FUZZ_EXPECT(listener_open("fuzz", "127.0.0.1", &listener, &diag) == STATUS_OK);
    const char *secret = listener_place(listener)->secret;
    FUZZ_EXPECT(broker_open(MEMBERS, &broker, &diag) == STATUS_OK);
    broker->listener = listener;
    for (int i = 0; i < MEMBERS; i++) {
        FUZZ_EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends[i]) == 0);
        broker->pending_peers[i] =
            (struct pending_peer){.socket = ends[i][0], .until_ns = mail_clock_ns() + pending_ns};
        mine[i] = ends[i][1];
        if (!silent)
            send_handshake(mine[i], i, secret, data, 0);
    }
    send_all(mine, MEMBERS, secret, data, size);
    for (int i = 0; i < MEMBERS; i++)
        shutdown(mine[i], SHUT_WR);
    FUZZ_EXPECT(broker_start(broker, &diag) == STATUS_OK);
    for (int i = 0; i < MEMBERS; i++)
        read_to_end(mine[i]);
    for (struct report *report; (report = broker_receive(broker, 0));)
        free(report);
    broker_close(broker);
    fuzz_diag_end(&diag, true);
}

/* ---- to a rank --------------------------------------------------------------------------------- */

/* The words of a good broker until all have come. */
static void welcome(int socket)
{
    const struct mail mail = {MAIL_WELCOME, TO_BROKER, 0, MEMBERS}, clock = {.kind = MAIL_CLOCK};
    for (int i = 0; i < FAR_CLOCKS; i++) {
        const struct mail_moment moment = {.since_base_ns = i};
        send_packet(socket, &clock, &moment, sizeof moment);
    }
    send_packet(socket, &mail, NULL, 0);
}

static void talk_to_rank(bool silent, const uint8_t *data, size_t size)
{
    static const char secret[MEETING_SECRET];
    struct diag diag;
    struct rendezvous *member;
    int ends[2];
    fuzz_diag_begin(&diag);
    FUZZ_EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    FUZZ_EXPECT(rendezvous_make(0, &member, &diag) == STATUS_OK);
    member->far = true;
    member->socket = ends[0];
    if (!silent)
        welcome(ends[1]);
    send_all(&ends[1], 1, secret, data, size);
    shutdown(ends[1], SHUT_WR);
    enum status status = rendezvous_meet(member, mail_clock_ns() + most_wait_ns, &member, &diag);
    if (status == STATUS_OK) {
        fuzz_ask(member);
        rendezvous_leave(member);
    }
    close(ends[1]);
    fuzz_diag_end(&diag, status == STATUS_OK);
}

void fuzz_far(const uint8_t *data, size_t size)
{
    if (size == 0)
        return;
    bool silent = data[0] & SILENT;
    if ((data[0] & ~SILENT) % 2 == 0)
        talk_to_broker(silent, data + 1, size - 1);
    else
        talk_to_rank(silent, data + 1, size - 1);
}
