/*
 * hub_impl.h - the hub of a rendezvous from inside; private to its two rooms:
 *
 *     hub.c       carries mail, notices who dies, serves its owner: for all members
 *     hub_far.c   members on other machines: who knocks, what comes of their packets, their news
 *
 *     peers[rank]: socket  ->  read a packet  ->  route: to a peer's outbox, to all, to the inbox
 *                  outbox  ->  written as far as the socket takes it
 *     strangers:   socket  ->  a knock, the secret  ->  a peer with a `partial`
 *     inbox:       for the owner, hub_receive
 *
 * One lock protects outboxes and inbox; the rest belongs to the hub's thread.
 */
#ifndef SWSIM_HUB_IMPL_H
#define SWSIM_HUB_IMPL_H

#include <poll.h>

#include "mail.h"

enum { STRANGERS = 16 };

/* The length goes before the packet to a far member. */
struct letter {
    struct letter *next;
    size_t sent, bytes; /* of what begins at `length` */
    uint32_t length;
    char packet[];
};

/* A packet from a far member, as far as it has come. */
struct partial {
    uint32_t length;
    size_t have; /* of length and packet */
    char packet[PACKET_BYTES];
};

struct peer {
    int socket;             /* -1: not there, or not any more */
    int others;             /* the end a member inherits, until hub_start; -1: none */
    bool hello, left, gone; /* gone: without goodbye */
    bool in_barrier;
    struct letter *first, **last; /* outbox */
    struct partial *partial;      /* far: what has come of a packet; NULL: near */
};

/* Somebody at the door. */
struct stranger {
    int socket; /* -1: nobody */
    int64_t until_ns;
    size_t have;
    struct knock knock;
};

struct hub {
    int size, memory, listener, wake;
    const struct door *door; /* for far members; NULL: there are none */
    struct stranger strangers[STRANGERS];
    int64_t news_ns; /* when far members were last told of the board */
    struct board *board;
    struct peer *peers; /* [size] */
    struct pollfd *polls;
    pthread_t thread;
    bool started, welcomed;
    char packet[PACKET_BYTES]; /* being read */

    pthread_mutex_t lock; /* of the rest, and of the outboxes */
    pthread_cond_t arrived;
    bool closing, no_memory;
    size_t inbox_bytes;
    struct report_node {
        struct report_node *next;
        struct report *report;
    } * reports, **reports_end;
};

/* ---- hub.c ----------------------------------------------------------------------------------- */

/* With the lock held. Into the outbox of a peer that is there and has said hello; of any peer. */
void hub_post(struct hub *hub, struct peer *peer, const void *packet, size_t bytes);
void hub_put_in_outbox(struct hub *hub, struct peer *peer, const void *packet, size_t bytes);

/* ---- hub_far.c: all on the hub's thread ------------------------------------------------------ */

enum { DOOR_POLLS = 1 + STRANGERS };

/* Nobody at the door; all away from it. */
void hub_far_init(struct hub *hub);
void hub_far_fini(struct hub *hub);
/* What to wait for at the door, and to see to it: DOOR_POLLS of `polls`. */
void hub_far_prepare(struct hub *hub, struct pollfd *polls);
void hub_far_attend(struct hub *hub, const struct pollfd *polls);
/* What has come of a far peer's packet: its bytes when hub->packet has it whole, 0: not yet, -1: never. */
ssize_t hub_far_read(struct hub *hub, struct peer *peer);
void hub_far_welcome(struct hub *hub, int rank);
/* hub->packet is a far member's question what time it is. */
void hub_far_tell_time(struct hub *hub, struct peer *peer);
/* hub->packet is what a far member says of itself on the board; with the lock held. */
void hub_far_hear_news(struct hub *hub, int from, size_t bytes);

#endif
