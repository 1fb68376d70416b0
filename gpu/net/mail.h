/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mail.h - the packets on the sockets of a rendezvous (gpu/net/rendezvous.h), and what both ends share.
 *
 * A packet is a `struct mail` and its payload. On one machine the sockets keep packets whole, so several
 * threads may send on one without a lock. A far member gets a stream of bytes: there a packet follows its
 * length, and the sender holds a lock.
 *
 *     near   | mail | payload |                     UNIX, SOCK_SEQPACKET
 *     far    | bytes | mail | payload | bytes | ... TCP, behind `struct handshake` and its answer
 *
 * Both ends run the same program on the same kind of machine: numbers travel as they are in memory.
 */
#ifndef SWSIM_MAIL_H
#define SWSIM_MAIL_H

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "rendezvous.h"

enum mail_kind {
    MAIL_HELLO, /* member to broker: its rank */
    MAIL_WELCOME, /* broker to member, when all have said hello: the size; near: the file comes along */
    MAIL_PUT,     /* member to all, itself included: a key, 0, the value */
    MAIL_BARRIER, /* member to broker: it is in; broker to members: all are */
    MAIL_LETTER,  /* member to member, or to the broker's owner */
    MAIL_WISH,    /* broker to member: what its owner wishes */
    MAIL_BYE,     /* member to broker; not 0: it has failed */
    MAIL_LEFT,    /* broker to members: `from` said goodbye */
    MAIL_GONE,    /* broker to members: `from` is dead */
    MAIL_CLOCK,   /* far member to broker; broker to it, with the same number: struct mail_moment */
    MAIL_BOARD,   /* far member to broker: its part of the board; broker to it: the whole board */
    MAIL_FETCH,   /* member to member: a struct mail_range of its memory is wanted */
    MAIL_DATA,    /* its answer: a struct mail_range, and these bytes; 0 bytes: there are none */
    MAIL_STORE,   /* member to member: a struct mail_range, and what to write there */
    MAIL_QUEUE,   /* member to member: the offset of the queue of its letters, int64_t */
    MAIL_PASSED   /* member to member: a letter's number, uint64_t, and the letter */
};

struct mail {
    int32_t kind; /* enum mail_kind */
    int32_t from, to;
    int32_t number; /* WELCOME: members; WISH: the wish; CLOCK: of the question; BYE, LEFT */
};

enum { PACKET_BYTES = RENDEZVOUS_MAX_BYTES + (int)sizeof(struct mail) };

/* Nanoseconds since time 0 of the broker's board. */
struct mail_moment {
    int64_t since_base_ns;
};

struct mail_range {
    uint64_t id; /* of the request; STORE: 0 */
    int64_t offset, bytes;
};

/* Members first .. first + count - 1 of the board; beats count from its time 0, 0: none. */
struct mail_news {
    int32_t first, count, hung, unused;
    struct mail_news_member {
        int64_t progress, beat_ns, wanted;
    } members[];
};
enum { NEWS_MEMBERS = 1024, NEWS_MS = 20 };

/* The first words of a far member, and the broker's, before anything else is read from either. */
#define HANDSHAKE_MAGIC "swrun 1"
struct handshake {
    char magic[8];
    int32_t rank;
    char secret[MEETING_SECRET];
};
struct handshake_answer {
    char secret[MEETING_SECRET];
};

/* The address of a name, outside the file system: it ends with the socket. False: too long. */
bool mail_address(const char *name, struct sockaddr_un *out, socklen_t *length);
/* Send `mail` with a file descriptor, which the receiver gets a copy of, through a UNIX socket. False: errno says why
   not. */
bool mail_send_file(int socket, const struct mail *mail, int file);
/* Is the process at the other end of a UNIX socket of this user? *other: whose it is. */
bool mail_same_user(int socket, unsigned *other);
size_t mail_board_bytes(int size);
/* CLOCK_MONOTONIC in nanoseconds. */
int64_t mail_clock_ns(void);

/* A file in memory that begins with a board, and the board mapped; its time 0 is `base_ns`. It is sealed: nobody
   can make it shorter, which would kill those that have mapped it. Returns errno, then with nothing to close. */
int mail_open_board(int size, int64_t base_ns, int *file, struct board **board);
/* Is this file sealed like that, and does it have so many bytes from `offset` on? */
bool mail_check_file(int file, int64_t offset, size_t bytes);
/* A condition on CLOCK_MONOTONIC. Returns errno. */
int mail_init_condition(pthread_cond_t *condition);

/* Whole, on a socket that blocks; false: it has ended, or its time limit. */
bool mail_read(int socket, void *data, size_t bytes);
bool mail_write(int socket, const void *data, size_t bytes);
/* A TCP socket: no delay for small packets, and keepalive, which notices a dead machine. */
void mail_set_up_far(int socket);
/* Compare secrets in constant time. */
bool mail_same_secret(const char *a, const char *b);

/* Rows of a board for some members, and back. */
void mail_write_news(const struct board *board, int first, int count, struct mail_news *out);
void mail_read_news(struct board *board, const struct mail_news *news, int except);
/* Is this news, of members that there are? */
bool mail_check_news(const struct mail_news *news, size_t bytes, int size);

#endif
