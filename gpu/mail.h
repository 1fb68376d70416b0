/*
 * mail.h - what goes over the sockets of a rendezvous (gpu/rendezvous.h): one mail a packet.
 *
 * A packet is a `struct mail` and its payload. The sockets keep packets whole, so several threads may
 * send on one without a lock.
 */
#ifndef SWSIM_MAIL_H
#define SWSIM_MAIL_H

#include <sys/socket.h>
#include <sys/un.h>

#include "gpu/rendezvous.h"

enum mail_kind {
    MAIL_HELLO,   /* member to hub: who it is */
    MAIL_WELCOME, /* hub to member, when all have said hello: the size; the file comes along */
    MAIL_PUT,     /* member to all, itself included: a key, 0, the value */
    MAIL_BARRIER, /* member to hub: it is in; hub to members: all are */
    MAIL_LETTER,  /* member to member, or to the hub's owner */
    MAIL_WISH,    /* hub to member: what its owner wishes */
    MAIL_BYE,     /* member to hub */
    MAIL_LEFT,    /* hub to members: `from` said goodbye */
    MAIL_GONE     /* hub to members: `from` is dead */
};

struct mail {
    int32_t kind; /* enum mail_kind */
    int32_t from, to;
    int32_t number; /* WELCOME: members; WISH: the wish */
};

enum { PACKET_BYTES = RENDEZVOUS_MAX_BYTES + (int)sizeof(struct mail) };

/* The address of a name, outside the file system: it ends with the socket. False: too long. */
bool mail_address(const char *name, struct sockaddr_un *out, socklen_t *length);
size_t mail_board_bytes(int size);
/* CLOCK_MONOTONIC in nanoseconds. */
int64_t mail_clock_ns(void);

#endif
