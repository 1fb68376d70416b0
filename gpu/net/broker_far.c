/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broker_far.c - members on other machines, as the broker sees them: see broker_impl.h and gpu/net/listener.h.
 *
 *     accept --> pending peer --- handshake is good ---> peer with a `partial` --> packets, like a near peer's
 *                  |                               |  ^
 *                  '- bad, late, too many: away    |  '-- BOARD every NEWS_MS, CLOCK when asked
 *                                                  v
 *                                       its own part of the board
 *
 * A pending peer holds one of few places for a limited time, and the broker never waits for it. A stream of
 * bytes has no packets: each follows its length, piece by piece, and an impossible length ends the connection.
 */
#include "broker_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "listener.h"

enum { HANDSHAKE_MS = 3000 };

/* ---- packets --------------------------------------------------------------------------------- */

ssize_t broker_far_read(struct broker *broker, struct peer *peer)
{
    struct partial *partial = peer->partial;
    size_t head = sizeof partial->length, have = partial->have;
    char *at = have < head ? (char *)&partial->length + have : partial->packet + (have - head);
    size_t want = have < head ? head - have : head + partial->length - have;
    ssize_t got = recv(peer->socket, at, want, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got <= 0)
        return -1;
    partial->have += (size_t)got;
    if (partial->have == head &&
        (partial->length < sizeof(struct mail) || partial->length > PACKET_BYTES))
        return -1;
    if (partial->have < head || partial->have < head + partial->length)
        return 0;
    partial->have = 0;
    memcpy(broker->packet, partial->packet, partial->length);
    return (ssize_t)partial->length;
}

void broker_far_welcome(struct broker *broker, int rank)
{
    struct mail mail = {
        .kind = MAIL_WELCOME, .from = TO_BROKER, .to = rank, .number = broker->size};
    pthread_mutex_lock(&broker->lock);
    broker_post(broker, &broker->peers[rank], &mail, sizeof mail);
    pthread_mutex_unlock(&broker->lock);
}

/* ---- the clock and the board ----------------------------------------------------------------- */

void broker_far_tell_time(struct broker *broker, struct peer *peer)
{
    struct {
        struct mail mail;
        struct mail_moment moment;
    } packet = {.mail = {.kind = MAIL_CLOCK, .from = TO_BROKER}};
    struct mail question;
    memcpy(&question, broker->packet, sizeof question);
    packet.mail.number = question.number;
    packet.moment.since_base_ns = mail_clock_ns() - broker->board->base_ns;
    pthread_mutex_lock(&broker->lock);
    broker_put_in_outbox(broker, peer, &packet, sizeof packet);
    pthread_mutex_unlock(&broker->lock);
}

/* A far member reports itself only. */
void broker_far_hear_news(struct broker *broker, int from, size_t bytes)
{
    union {
        struct mail_news news;
        char room[sizeof(struct mail_news) + sizeof(struct mail_news_member)];
    } own;
    if (bytes != sizeof(struct mail) + sizeof own)
        return;
    memcpy(&own, broker->packet + sizeof(struct mail), sizeof own);
    if (own.news.first == from && own.news.count == 1)
        mail_read_news(broker->board, &own.news, -1);
}

/* Send the board to far members. The last news replaces all before it, so a member with mail waiting is
   skipped. */
static void tell_news(struct broker *broker)
{
    struct {
        struct mail mail;
        union {
            struct mail_news news;
            char room[sizeof(struct mail_news) + NEWS_MEMBERS * sizeof(struct mail_news_member)];
        };
    } packet = {.mail = {.kind = MAIL_BOARD, .from = TO_BROKER}};
    int64_t now_ns = mail_clock_ns();
    if (!broker->welcomed || now_ns - broker->news_ns < NEWS_MS * INT64_C(1000000))
        return;
    broker->news_ns = now_ns;
    pthread_mutex_lock(&broker->lock);
    for (int first = 0; first < broker->size; first += NEWS_MEMBERS) {
        int count = broker->size - first < NEWS_MEMBERS ? broker->size - first : NEWS_MEMBERS;
        mail_write_news(broker->board, first, count, &packet.news);
        for (int rank = 0; rank < broker->size; rank++)
            if (broker->peers[rank].partial && (!broker->peers[rank].first || first > 0))
                broker_post(broker, &broker->peers[rank], &packet,
                            sizeof packet.mail + sizeof packet.news +
                                (size_t)count * sizeof *packet.news.members);
    }
    pthread_mutex_unlock(&broker->lock);
}

/* ---- at the listener ----------------------------------------------------------------------------- */

static struct pending_peer *free_place(struct broker *broker)
{
    for (int i = 0; i < PENDING_PEERS; i++)
        if (broker->pending_peers[i].socket < 0)
            return &broker->pending_peers[i];
    return NULL;
}

static void turn_away(struct pending_peer *peer)
{
    close(peer->socket);
    peer->socket = -1;
}

static void open_to(struct broker *broker)
{
    struct pending_peer *place = free_place(broker);
    int socket = place ? accept4(listener_socket(broker->listener), NULL, NULL, SOCK_CLOEXEC) : -1;
    if (socket < 0)
        return;
    mail_set_up_far(socket);
    *place = (struct pending_peer){.socket = socket,
                                   .until_ns = mail_clock_ns() + HANDSHAKE_MS * INT64_C(1000000)};
}

/* The handshake is complete: a missing rank of this run becomes a member. */
static void let_in(struct broker *broker, struct pending_peer *peer)
{
    const struct meeting_place *place = listener_place(broker->listener);
    const struct handshake *handshake = &peer->handshake;
    struct handshake_answer answer;
    if (memcmp(handshake->magic, HANDSHAKE_MAGIC, sizeof handshake->magic) != 0 ||
        !mail_same_secret(handshake->secret, place->secret) || handshake->rank < 0 ||
        handshake->rank >= broker->size || broker->peers[handshake->rank].socket >= 0 ||
        broker->peers[handshake->rank].gone || broker->peers[handshake->rank].hello) {
        turn_away(peer);
        return;
    }
    struct partial *partial = calloc(1, sizeof *partial);
    memcpy(answer.secret, place->answer, sizeof answer.secret);
    if (!partial || send(peer->socket, &answer, sizeof answer, MSG_DONTWAIT | MSG_NOSIGNAL) !=
                        (ssize_t)sizeof answer) {
        free(partial);
        turn_away(peer);
        return;
    }
    pthread_mutex_lock(&broker->lock);
    broker->peers[handshake->rank].partial = partial;
    broker->peers[handshake->rank].socket = peer->socket;
    pthread_mutex_unlock(&broker->lock);
    peer->socket = -1;
}

static void hear_pending_peer(struct broker *broker, struct pending_peer *peer)
{
    ssize_t got = recv(peer->socket, (char *)&peer->handshake + peer->have,
                       sizeof peer->handshake - peer->have, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        turn_away(peer);
        return;
    }
    peer->have += (size_t)got;
    if (peer->have == sizeof peer->handshake)
        let_in(broker, peer);
}

/* Drop pending peers that are late, and all of them once every member is here. */
static void drop_pending_peers(struct broker *broker)
{
    int64_t now_ns = mail_clock_ns();
    for (int i = 0; i < PENDING_PEERS; i++)
        if (broker->pending_peers[i].socket >= 0 &&
            (broker->welcomed || now_ns > broker->pending_peers[i].until_ns))
            turn_away(&broker->pending_peers[i]);
}

void broker_far_init(struct broker *broker)
{
    for (int i = 0; i < PENDING_PEERS; i++)
        broker->pending_peers[i].socket = -1;
}

void broker_far_fini(struct broker *broker)
{
    for (int i = 0; i < PENDING_PEERS; i++)
        if (broker->pending_peers[i].socket >= 0)
            turn_away(&broker->pending_peers[i]);
}

void broker_far_prepare(struct broker *broker, struct pollfd *polls)
{
    bool open = broker->listener && !broker->welcomed && free_place(broker);
    polls[0] =
        (struct pollfd){.fd = open ? listener_socket(broker->listener) : -1, .events = POLLIN};
    for (int i = 0; i < PENDING_PEERS; i++)
        polls[1 + i] = (struct pollfd){.fd = broker->pending_peers[i].socket, .events = POLLIN};
}

void broker_far_attend(struct broker *broker, const struct pollfd *polls)
{
    for (int i = 0; i < PENDING_PEERS; i++)
        if (polls[1 + i].fd >= 0 && polls[1 + i].revents)
            hear_pending_peer(broker, &broker->pending_peers[i]);
    if (polls[0].revents)
        open_to(broker);
    drop_pending_peers(broker);
    tell_news(broker);
}
