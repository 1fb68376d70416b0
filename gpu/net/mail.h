/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mail.h - the packets on the sockets of a rendezvous (gpu/net/rendezvous.h), and what both ends share.
 *
 * A packet is a `struct mail` and its payload. The sockets (UNIX, SOCK_SEQPACKET) keep packets whole, so several
 * threads may send on one without a lock. Both ends run the same program: numbers travel as they are in memory.
 */
#ifndef SWSIM_MAIL_H
#define SWSIM_MAIL_H

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "rendezvous.h"

enum mail_kind {
    MAIL_HELLO,   /* member to broker: its rank */
    MAIL_WELCOME, /* broker to member, when all have said hello: the size; the file comes along */
    MAIL_PUT,     /* member to all, itself included: a key, 0, the value */
    MAIL_BARRIER, /* member to broker: it is in; broker to members: all are */
    MAIL_LETTER,  /* member to member, or to the broker's owner */
    MAIL_WISH,    /* broker to member: what its owner wishes */
    MAIL_BYE,     /* member to broker; not 0: it has failed */
    MAIL_LEFT,    /* broker to members: `from` said goodbye */
    MAIL_GONE,    /* broker to members: `from` is dead */
    MAIL_QUEUE,   /* member to member: the offset of the queue of its letters, int64_t */
    MAIL_PASSED   /* member to member: a letter's number, uint64_t, and the letter */
};

struct mail {
    int32_t kind; /* enum mail_kind */
    int32_t from, to;
    int32_t number; /* WELCOME: members; WISH: the wish; BYE, LEFT: true after a failure */
};

enum { PACKET_BYTES = RENDEZVOUS_MAX_BYTES + (int)sizeof(struct mail) };

/* The address of a name, outside the file system: it ends with the socket. False: too long. */
bool mail_address(const char *name, struct sockaddr_un *out, socklen_t *length);
/* Send `mail` with a file descriptor, which the receiver gets a copy of, through a UNIX socket. False: errno says why
   not. */
bool mail_send_file(int socket, const struct mail *mail, int file);
/* True if the process at the other end of a UNIX socket is of this user. *other: whose it is. */
bool mail_same_user(int socket, unsigned *other);
size_t mail_board_bytes(int size);
/* CLOCK_MONOTONIC in nanoseconds. */
int64_t mail_clock_ns(void);

/* A file in memory that begins with a board, and the board mapped; its time 0 is `base_ns`. It is sealed: nobody
   can make it shorter, which would kill those that have mapped it. Returns errno, then with nothing to close. */
int mail_open_board(int size, int64_t base_ns, int *file, struct board **board);
/* True if this file is sealed like that, and has so many bytes from `offset` on. */
bool mail_check_file(int file, int64_t offset, size_t bytes);
/* A condition on CLOCK_MONOTONIC. Returns errno. */
int mail_init_condition(pthread_cond_t *condition);

#endif
