/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rendezvous_far.c - a member on another machine than the broker: its TCP connection; see rendezvous_impl.h.
 *
 *     member                           broker
 *       |-- rank, secret ---------------->|    through its listener (gpu/net/listener.c)
 *       |<--------------- answer ---------|
 *       |-- CLOCK ----------------------->|    some times: the time there
 *       |<---------------- moment --------|
 *       |-- HELLO ----------------------->|
 *       |<--------------- WELCOME --------|    when all have come
 *       |-- BOARD (its part), CLOCK ----->|    every NEWS_MS, and mail in between
 *       |<--------- BOARD (all), moment --|    gpu/net/far_clock.c
 *       |-- BYE, then an end ------------>|
 *       |<-------------------- an end ----|
 *
 * On the wire each packet follows its length, so a sender holds `sending`.
 */
#include "rendezvous_impl.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "listener.h"

enum { CONNECT_MS = 3000, BYE_MS = 3000, CLOCKS = 8 };

/* ---- packets --------------------------------------------------------------------------------- */

bool far_send(struct rendezvous *r, const struct mail *mail, const void *data, size_t bytes)
{
    struct {
        uint32_t length;
        struct mail mail;
    } head = {(uint32_t)(sizeof *mail + bytes), *mail};
    pthread_mutex_lock(&r->sending);
    bool sent = mail_write(r->socket, &head, sizeof head) && mail_write(r->socket, data, bytes);
    pthread_mutex_unlock(&r->sending);
    return sent;
}

ssize_t far_read(struct rendezvous *r)
{
    uint32_t length;
    if (!mail_read(r->socket, &length, sizeof length) || length > sizeof r->packet ||
        !mail_read(r->socket, r->packet, length))
        return -1;
    return (ssize_t)length;
}

ssize_t far_receive_welcome(struct rendezvous *r, struct mail *mail)
{
    uint32_t length;
    bool whole = mail_read(r->socket, &length, sizeof length) && length == sizeof *mail &&
                 mail_read(r->socket, mail, sizeof *mail);
    return whole ? (ssize_t)sizeof *mail : -1;
}

/* ---- the board and the clock ----------------------------------------------------------------- */

void far_take_news(struct rendezvous *r, const char *data, size_t bytes)
{
    union {
        struct mail_news news;
        char room[sizeof(struct mail_news) + NEWS_MEMBERS * sizeof(struct mail_news_member)];
    } all;
    if (bytes > sizeof all)
        return;
    memcpy(&all, data, bytes);
    if (mail_check_news(&all.news, bytes, r->size))
        mail_read_news(r->board, &all.news, r->rank);
}

/* Send this member's row of the board. */
static void tell_news(struct rendezvous *r)
{
    const struct mail mail = {.kind = MAIL_BOARD, .from = r->rank, .to = TO_BROKER};
    union {
        struct mail_news news;
        char room[sizeof(struct mail_news) + sizeof(struct mail_news_member)];
    } own;
    mail_write_news(r->board, r->rank, 1, &own.news);
    (void)rendezvous_send_mail(r, &mail, &own, sizeof own); /* its end is seen when reading */
}

static void ask_again(struct rendezvous *r)
{
    const struct mail question = {
        .kind = MAIL_CLOCK, .from = r->rank, .to = TO_BROKER, .number = ++r->questions};
    r->asked_ns = mail_clock_ns();
    (void)rendezvous_send_mail(r, &question, NULL, 0); /* its end is seen when reading */
}

/* A time of a run: sums and differences of such times fit. */
static bool is_moment(struct mail_moment moment)
{
    return moment.since_base_ns >= 0 && moment.since_base_ns < INT64_MAX / 8;
}

void far_take_moment(struct rendezvous *r, const struct mail *mail, const char *data, size_t bytes)
{
    struct mail_moment moment;
    int64_t heard_ns = mail_clock_ns();
    if (mail->number != r->questions || bytes != sizeof moment)
        return; /* overtaken by another question */
    memcpy(&moment, data, sizeof moment);
    if (!is_moment(moment))
        return;
    far_clock_hear(&r->clock, r->asked_ns, heard_ns, moment.since_base_ns);
}

/* Until there is something to read, news every few milliseconds. After the goodbye the broker has so long
   to say its own; false: it has not. */
bool far_await_mail(struct rendezvous *r)
{
    int64_t bye_ns = 0;
    for (;;) {
        struct pollfd mail = {.fd = r->socket, .events = POLLIN};
        int64_t now_ns = mail_clock_ns();
        bool leaving = atomic_load(&r->leaving);
        if (leaving && bye_ns == 0)
            bye_ns = now_ns;
        if (leaving && now_ns - bye_ns > BYE_MS * INT64_C(1000000))
            return false;
        if (!leaving && now_ns - r->told_ns >= NEWS_MS * INT64_C(1000000)) {
            tell_news(r);
            ask_again(r);
            r->told_ns = now_ns;
        }
        if (poll(&mail, 1, NEWS_MS) > 0)
            return true;
    }
}

/* Time 0 of the broker's board on the clock of this machine: of a few questions the one that was answered
   fastest says it best, halfway between asking and answer (Cristian 1989). */
bool far_ask_time(struct rendezvous *r, int64_t *base_ns)
{
    const struct mail question = {.kind = MAIL_CLOCK, .from = r->rank, .to = TO_BROKER};
    int64_t fastest_ns = INT64_MAX;
    struct {
        uint32_t length;
        struct mail mail;
        struct mail_moment moment;
    } __attribute__((packed)) answer;
    for (int i = 0; i < CLOCKS; i++) {
        int64_t asked_ns = mail_clock_ns();
        if (!rendezvous_send_mail(r, &question, NULL, 0) ||
            !mail_read(r->socket, &answer, sizeof answer) || answer.mail.kind != MAIL_CLOCK ||
            !is_moment(answer.moment))
            return false;
        int64_t took_ns = mail_clock_ns() - asked_ns;
        if (took_ns >= fastest_ns)
            continue;
        fastest_ns = took_ns;
        *base_ns = asked_ns + took_ns / 2 - answer.moment.since_base_ns;
    }
    return true;
}

/* ---- to the listener ----------------------------------------------------------------------------- */

/* -1: no broker there. */
static int connect_to(uint32_t address, uint16_t port)
{
    const struct sockaddr_in where = {
        .sin_family = AF_INET, .sin_port = port, .sin_addr = {.s_addr = address}};
    struct timeval limit = {.tv_sec = CONNECT_MS / 1000};
    int far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (far < 0)
        return -1;
    mail_set_up_far(far);
    setsockopt(far, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit); /* of connect, too */
    setsockopt(far, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(far, (const struct sockaddr *)&where, sizeof where) == 0)
        return far;
    close(far);
    return -1;
}

/* Send the secret; the answer proves the broker. */
static bool handshake(int far, const struct meeting_place *place, int rank)
{
    struct handshake words = {.magic = HANDSHAKE_MAGIC, .rank = rank};
    struct handshake_answer answer;
    struct timeval forever = {0};
    memcpy(words.secret, place->secret, sizeof words.secret);
    if (!mail_write(far, &words, sizeof words) || !mail_read(far, &answer, sizeof answer) ||
        !mail_same_secret(answer.secret, place->answer))
        return false;
    setsockopt(far, SOL_SOCKET, SO_SNDTIMEO, &forever, sizeof forever);
    return true;
}

/* One of the broker's addresses can be reached from here; it may not open before it has done with an
   earlier run. */
static int reach(const struct meeting_place *place, int rank, int64_t deadline_ns)
{
    do {
        for (int i = 0; i < place->address_count && i < MEETING_ADDRESSES; i++) {
            int far = connect_to(place->addresses[i], place->port);
            if (far >= 0 && handshake(far, place, rank))
                return far;
            if (far >= 0)
                close(far);
        }
        nanosleep(&(struct timespec){.tv_nsec = MEETING_RETRY_MS * 1000000L}, NULL);
    } while (mail_clock_ns() < deadline_ns);
    return -1;
}

enum status rendezvous_reach(const struct meeting_place *place, int run, int rank,
                             int64_t deadline_ns, struct rendezvous **out, struct diag *diag)
{
    char name[RENDEZVOUS_MAX_NAME + 1], machine[sizeof place->machine];
    struct rendezvous *r;
    listener_machine(machine);
    if (strcmp(machine, place->machine) == 0) {
        listener_run_name(place, run, name);
        return rendezvous_find(name, rank, deadline_ns, out, diag);
    }
    enum status status = rendezvous_make(rank, &r, diag);
    if (status)
        return status;
    r->far = true;
    r->socket = reach(place, rank, deadline_ns);
    if (r->socket >= 0)
        return rendezvous_meet(r, deadline_ns, out, diag);
    rendezvous_leave(r);
    return diag_error(diag, STATUS_LIMIT,
                      "rank %d: the machine of rank 0 was not reached in time at any of its %d "
                      "addresses, port %d",
                      rank, (int)place->address_count, ntohs(place->port));
}
