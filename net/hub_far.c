/*
 * hub_far.c - members on other machines, as the hub sees them: see hub_impl.h and net/door.h.
 *
 *     accept --> stranger --- knock is good ---> peer with a `partial` --> packets, like anybody's
 *                  |                               |  ^
 *                  '- bad, late, too many: away    |  '-- BOARD every NEWS_MS, CLOCK when asked
 *                                                  v
 *                                       its own part of the board
 *
 * A stranger stands in one of few places for a limited time, and nobody waits for it. A stream of bytes
 * has no packets: each comes behind its length, piece by piece, and what is no length ends it.
 */
#include "hub_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "door.h"

enum { KNOCK_MS = 3000 };

/* ---- packets --------------------------------------------------------------------------------- */

ssize_t hub_far_read(struct hub *hub, struct peer *peer)
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
    memcpy(hub->packet, partial->packet, partial->length);
    return (ssize_t)partial->length;
}

void hub_far_welcome(struct hub *hub, int rank)
{
    struct mail mail = {.kind = MAIL_WELCOME, .from = TO_HUB, .to = rank, .number = hub->size};
    pthread_mutex_lock(&hub->lock);
    hub_post(hub, &hub->peers[rank], &mail, sizeof mail);
    pthread_mutex_unlock(&hub->lock);
}

/* ---- the clock and the board ----------------------------------------------------------------- */

void hub_far_tell_time(struct hub *hub, struct peer *peer)
{
    struct {
        struct mail mail;
        struct mail_moment moment;
    } packet = {.mail = {.kind = MAIL_CLOCK, .from = TO_HUB}};
    struct mail question;
    memcpy(&question, hub->packet, sizeof question);
    packet.mail.number = question.number;
    packet.moment.since_base_ns = mail_clock_ns() - hub->board->base_ns;
    pthread_mutex_lock(&hub->lock);
    hub_put_in_outbox(hub, peer, &packet, sizeof packet);
    pthread_mutex_unlock(&hub->lock);
}

/* A far member tells of itself, and of nobody else. */
void hub_far_hear_news(struct hub *hub, int from, size_t bytes)
{
    union {
        struct mail_news news;
        char room[sizeof(struct mail_news) + sizeof(struct mail_news_member)];
    } own;
    if (bytes != sizeof(struct mail) + sizeof own)
        return;
    memcpy(&own, hub->packet + sizeof(struct mail), sizeof own);
    if (own.news.first == from && own.news.count == 1)
        mail_read_news(hub->board, &own.news, -1);
}

/* Tell far members of the board: the last news is as good as all before, so who has mail waiting gets
   none. */
static void tell_news(struct hub *hub)
{
    struct {
        struct mail mail;
        union {
            struct mail_news news;
            char room[sizeof(struct mail_news) + NEWS_MEMBERS * sizeof(struct mail_news_member)];
        };
    } packet = {.mail = {.kind = MAIL_BOARD, .from = TO_HUB}};
    int64_t now_ns = mail_clock_ns();
    if (!hub->welcomed || now_ns - hub->news_ns < NEWS_MS * INT64_C(1000000))
        return;
    hub->news_ns = now_ns;
    pthread_mutex_lock(&hub->lock);
    for (int first = 0; first < hub->size; first += NEWS_MEMBERS) {
        int count = hub->size - first < NEWS_MEMBERS ? hub->size - first : NEWS_MEMBERS;
        mail_write_news(hub->board, first, count, &packet.news);
        for (int rank = 0; rank < hub->size; rank++)
            if (hub->peers[rank].partial && (!hub->peers[rank].first || first > 0))
                hub_post(hub, &hub->peers[rank], &packet,
                         sizeof packet.mail + sizeof packet.news +
                             (size_t)count * sizeof *packet.news.members);
    }
    pthread_mutex_unlock(&hub->lock);
}

/* ---- at the door ----------------------------------------------------------------------------- */

static struct stranger *free_place(struct hub *hub)
{
    for (int i = 0; i < STRANGERS; i++)
        if (hub->strangers[i].socket < 0)
            return &hub->strangers[i];
    return NULL;
}

static void turn_away(struct stranger *stranger)
{
    close(stranger->socket);
    stranger->socket = -1;
}

static void open_to(struct hub *hub)
{
    struct stranger *place = free_place(hub);
    int socket = place ? accept4(door_socket(hub->door), NULL, NULL, SOCK_CLOEXEC) : -1;
    if (socket < 0)
        return;
    mail_set_up_far(socket);
    *place = (struct stranger){.socket = socket,
                               .until_ns = mail_clock_ns() + KNOCK_MS * INT64_C(1000000)};
}

/* It has said who it is: of this run, and a rank that is missing? Then it is a member. */
static void let_in(struct hub *hub, struct stranger *stranger)
{
    const struct meeting_place *place = door_place(hub->door);
    const struct knock *knock = &stranger->knock;
    struct knock_answer answer;
    if (memcmp(knock->magic, KNOCK_MAGIC, sizeof knock->magic) != 0 ||
        !mail_same_secret(knock->secret, place->secret) || knock->rank < 0 ||
        knock->rank >= hub->size || hub->peers[knock->rank].socket >= 0 ||
        hub->peers[knock->rank].gone || hub->peers[knock->rank].hello) {
        turn_away(stranger);
        return;
    }
    struct partial *partial = calloc(1, sizeof *partial);
    memcpy(answer.secret, place->answer, sizeof answer.secret);
    if (!partial || send(stranger->socket, &answer, sizeof answer, MSG_DONTWAIT | MSG_NOSIGNAL) !=
                        (ssize_t)sizeof answer) {
        free(partial);
        turn_away(stranger);
        return;
    }
    pthread_mutex_lock(&hub->lock);
    hub->peers[knock->rank].partial = partial;
    hub->peers[knock->rank].socket = stranger->socket;
    pthread_mutex_unlock(&hub->lock);
    stranger->socket = -1;
}

static void hear_stranger(struct hub *hub, struct stranger *stranger)
{
    ssize_t got = recv(stranger->socket, (char *)&stranger->knock + stranger->have,
                       sizeof stranger->knock - stranger->have, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        turn_away(stranger);
        return;
    }
    stranger->have += (size_t)got;
    if (stranger->have == sizeof stranger->knock)
        let_in(hub, stranger);
}

/* Nobody stands at the door for long, nor once all members are here. */
static void mind_the_door(struct hub *hub)
{
    int64_t now_ns = mail_clock_ns();
    for (int i = 0; i < STRANGERS; i++)
        if (hub->strangers[i].socket >= 0 && (hub->welcomed || now_ns > hub->strangers[i].until_ns))
            turn_away(&hub->strangers[i]);
}

void hub_far_init(struct hub *hub)
{
    for (int i = 0; i < STRANGERS; i++)
        hub->strangers[i].socket = -1;
}

void hub_far_fini(struct hub *hub)
{
    for (int i = 0; i < STRANGERS; i++)
        if (hub->strangers[i].socket >= 0)
            turn_away(&hub->strangers[i]);
}

void hub_far_prepare(struct hub *hub, struct pollfd *polls)
{
    bool open = hub->door && !hub->welcomed && free_place(hub);
    polls[0] = (struct pollfd){.fd = open ? door_socket(hub->door) : -1, .events = POLLIN};
    for (int i = 0; i < STRANGERS; i++)
        polls[1 + i] = (struct pollfd){.fd = hub->strangers[i].socket, .events = POLLIN};
}

void hub_far_attend(struct hub *hub, const struct pollfd *polls)
{
    for (int i = 0; i < STRANGERS; i++)
        if (polls[1 + i].fd >= 0 && polls[1 + i].revents)
            hear_stranger(hub, &hub->strangers[i]);
    if (polls[0].revents)
        open_to(hub);
    mind_the_door(hub);
    tell_news(hub);
}
