/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broker_impl.h - the broker of a rendezvous from inside; private to its two files:
 *
 *     broker.c       carries mail, notices deaths, serves its owner: for all members
 *     broker_far.c   members on other machines: handshakes, their packets, their news
 *
 *     peers[rank]: socket  ->  read a packet  ->  route: to a peer's outbox, to all, to the inbox
 *                  outbox  ->  written as far as the socket takes it
 *     pending_peers:   socket  ->  a handshake, the secret  ->  a peer with a `partial`
 *     inbox:       for the owner, broker_receive
 *
 * One lock protects outboxes and inbox; the rest belongs to the broker's thread.
 */
#ifndef SWSIM_BROKER_IMPL_H
#define SWSIM_BROKER_IMPL_H

#include <poll.h>

#include "mail.h"

enum { PENDING_PEERS = 16 };

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
    int others;             /* the end a member inherits, until broker_start; -1: none */
    bool hello, left, gone; /* gone: without goodbye */
    bool in_barrier;
    struct letter *first, **last; /* outbox */
    size_t outbox_bytes;
    int64_t refused_ns;      /* since when no packet could be sent to it; 0: they can be */
    struct partial *partial; /* far: what has come of a packet; NULL: near */
};

/* A connection that has not yet proved to be a member. */
struct pending_peer {
    int socket; /* -1: an empty place */
    int64_t until_ns;
    size_t have;
    struct handshake handshake;
};

struct broker {
    int size, memory, wake;
    int local_listener;              /* a UNIX socket, for members on this machine */
    const struct listener *listener; /* for far members; NULL: there are none */
    struct pending_peer pending_peers[PENDING_PEERS];
    int64_t news_ns; /* when far members were last told of the board */
    struct board *board;
    struct peer *peers; /* [size] */
    struct pollfd *polls;
    pthread_t thread;
    bool started, welcomed;
    char packet[PACKET_BYTES]; /* being read */

    pthread_mutex_t lock; /* of the rest, and of the outboxes */
    pthread_cond_t arrived;
    bool closing;
    int failure;                       /* errno; the thread ends: mail is never lost silently */
    size_t outbox_bytes, outbox_limit; /* of all peers */
    size_t inbox_bytes;
    struct report_node {
        struct report_node *next;
        struct report *report;
    } * reports, **reports_end;
};

/* ---- broker.c ----------------------------------------------------------------------------------- */

/* With the lock held. Into the outbox of a peer that is there and has said hello; of any peer. */
void broker_post(struct broker *broker, struct peer *peer, const void *packet, size_t bytes);
void broker_put_in_outbox(struct broker *broker, struct peer *peer, const void *packet,
                          size_t bytes);

/* ---- broker_far.c: all on the broker's thread ------------------------------------------------------ */

enum { LISTENER_POLLS = 1 + PENDING_PEERS };

/* No pending peers; drop them all. */
void broker_far_init(struct broker *broker);
void broker_far_fini(struct broker *broker);
/* Fill LISTENER_POLLS of `polls` for the listener, and serve it afterwards. */
void broker_far_prepare(struct broker *broker, struct pollfd *polls);
void broker_far_attend(struct broker *broker, const struct pollfd *polls);
/* Take more of a far peer's packet: its bytes when broker->packet has it whole, 0: not yet, -1: never. */
ssize_t broker_far_read(struct broker *broker, struct peer *peer);
void broker_far_welcome(struct broker *broker, int rank);
/* broker->packet is a far member's question what time it is. */
void broker_far_tell_time(struct broker *broker, struct peer *peer);
/* broker->packet is what a far member says of itself on the board; with the lock held. */
void broker_far_hear_news(struct broker *broker, int from, size_t bytes);

#endif
