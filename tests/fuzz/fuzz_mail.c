/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_mail.c - mail of a member to the broker and its fellows, and of a broker to a member.
 *
 *     0 [end kind from to number bytes ...]...    packets of members; `end` is whose, and of 0x80 cuts it off
 *     1 [end kind from to number bytes ...]...    packets of the broker to a member
 *
 * Good members say hello first, unless the first byte has the bit 0x40.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gpu/net/mail.h"
#include "base/diag.h"
#include "targets.h"

enum { MEMBERS = 2, HEAD = 6, MOST_WAIT_NS = 1000000000, SHORT = 0x80, SILENT = 0x40 };

/* A byte as a rank, a kind or a number: -2 .. 253. */
static int32_t small(uint8_t byte)
{
    return (int32_t)byte - 2;
}

static void send_packet(int socket, const struct mail *mail, const uint8_t *data, size_t bytes,
                        bool cut)
{
    char packet[sizeof *mail + 256];
    memcpy(packet, mail, sizeof *mail);
    memcpy(packet + sizeof *mail, data, bytes);
    size_t whole = cut ? bytes % sizeof *mail : sizeof *mail + bytes;
    (void)send(socket, packet, whole, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Send all packets of the input, each to the socket of its end. */
static void send_all(const int *sockets, int count, const uint8_t *data, size_t size)
{
    for (size_t at = 0; at + HEAD <= size;) {
        const uint8_t *head = data + at;
        const struct mail mail = {small(head[1]), small(head[2]), small(head[3]), small(head[4])};
        size_t bytes = head[5];
        at += HEAD;
        bytes = bytes < size - at ? bytes : size - at;
        send_packet(sockets[(head[0] & ~SHORT) % count], &mail, data + at, bytes, head[0] & SHORT);
        at += bytes;
    }
}

/* ---- to the broker ----------------------------------------------------------------------------- */

static void read_reports(struct broker *broker)
{
    for (struct report *report; (report = broker_receive(broker, 0));)
        free(report);
}

static void mail_to_broker(bool silent, const uint8_t *data, size_t size)
{
    struct diag diag;
    struct broker *broker;
    int sockets[MEMBERS];
    fuzz_diag_begin(&diag);
    FUZZ_EXPECT(broker_open(MEMBERS, &broker, &diag) == STATUS_OK);
    for (int rank = 0; rank < MEMBERS; rank++) {
        FUZZ_EXPECT(broker_invite(broker, rank, &diag) == STATUS_OK);
        sockets[rank] = fcntl(broker_invited(broker, rank), F_DUPFD_CLOEXEC, 0);
        FUZZ_EXPECT(sockets[rank] >= 0);
    }
    FUZZ_EXPECT(broker_start(broker, &diag) == STATUS_OK);
    for (int rank = 0; rank < MEMBERS && !silent; rank++) {
        const struct mail hello = {MAIL_HELLO, rank, TO_BROKER, 0};
        send_packet(sockets[rank], &hello, data, 0, false);
    }
    send_all(sockets, MEMBERS, data, size);
    for (int rank = 0; rank < MEMBERS; rank++)
        close(sockets[rank]);
    while (broker_ended(broker) < MEMBERS)
        usleep(20);
    read_reports(broker);
    broker_close(broker);
    fuzz_diag_end(&diag, true);
}

/* ---- to a member ------------------------------------------------------------------------------- */

/* The welcome of a good broker, with the file of the board. */
static void welcome(int socket, int memory)
{
    const struct mail mail = {MAIL_WELCOME, TO_BROKER, 0, MEMBERS};
    (void)mail_send_file(socket, &mail, memory);
}

static void mail_to_member(bool silent, const uint8_t *data, size_t size)
{
    struct diag diag;
    struct rendezvous *member;
    struct board *board;
    int ends[2], memory;
    fuzz_diag_begin(&diag);
    FUZZ_EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    FUZZ_EXPECT(mail_open_board(MEMBERS, mail_clock_ns(), &memory, &board) == 0);
    if (!silent)
        welcome(ends[1], memory);
    send_all(&ends[1], 1, data, size);
    shutdown(ends[1], SHUT_WR);
    enum status status =
        rendezvous_join(ends[0], 0, mail_clock_ns() + MOST_WAIT_NS, &member, &diag);
    if (status == STATUS_OK) {
        fuzz_ask(member);
        rendezvous_leave(member);
    }
    close(ends[1]);
    close(memory);
    munmap(board, mail_board_bytes(MEMBERS));
    fuzz_diag_end(&diag, status == STATUS_OK);
}

void fuzz_mail(const uint8_t *data, size_t size)
{
    if (size == 0)
        return;
    bool silent = data[0] & SILENT;
    ((data[0] & ~SILENT) % 2 == 0 ? mail_to_broker : mail_to_member)(silent, data + 1, size - 1);
}
