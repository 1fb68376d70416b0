/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rendezvous_impl.h - a member's end of a rendezvous from inside; private to its files:
 *
 *     rendezvous.c         joining and leaving, mail and its receivers, values, barriers, mapped
 *                          memory: all that a member does, wherever it is
 *     rendezvous_far.c     the connection of a member on another machine than the broker
 *     rendezvous_bytes.c   memory that cannot be mapped: bytes of it fetched and stored by mail
 *     rendezvous_queue.c   letters through memory that both members have mapped
 *
 *     user's threads --- put, barrier, send, fetch ---> send_mail ---> socket --->  broker
 *                ^                                                                   |
 *                '-- lock, changed --- reader: take <------ packet <--- socket <-----'
 *
 * The reader notes under `lock` the events this member may wait for (values, barriers, deaths, bytes) and
 * wakes the waiting threads. Letters reach their receiver under `listening`, so a receiver that is being
 * removed is not running any more. Lock order: listening before any lock of the receiver; `passing`, `sending` and `lock` are
 * the last.
 */
#ifndef SWSIM_RENDEZVOUS_IMPL_H
#define SWSIM_RENDEZVOUS_IMPL_H

#include "far_clock.h"
#include "mail.h"

struct value {
    struct value *next;
    size_t bytes; /* of key, 0 and data */
    char text[];
};

struct mapping {
    struct mapping *next;
    int64_t offset;
    size_t bytes;
    void *address;
};

/* Bytes that have been asked for. */
struct fetch {
    struct fetch *next;
    uint64_t id;
    char *to;
    size_t bytes, have;
    bool refused;
};

struct queue; /* in common memory */

/* Letters to a member of this machine. */
struct outgoing {
    struct queue *queue; /* NULL: they go by mail */
    bool tried;          /* to make one */
    uint64_t passed;     /* so far: the number of the next */
    uint64_t written;    /* into the queue */
};

/* Letters from one. */
struct incoming {
    struct queue *queue; /* NULL: not known, or given up */
    bool known;
    uint64_t heard; /* so far: the number of the next */
    uint64_t taken; /* out of the queue */
};

/* Memory in the file that others may still look at. */
struct late {
    struct late *next;
    int64_t offset;
    size_t bytes;
    bool aged;
};

struct rendezvous {
    int rank, size, socket, memory;
    bool far;                /* from the broker */
    pthread_mutex_t sending; /* far: a packet is being written */
    struct far_clock clock;  /* far: set with the board */
    int64_t told_ns;         /* far, the reader's: when the last news went to the broker, */
    int64_t asked_ns;        /*   and asked for the time, */
    int32_t questions;       /*   so often so far */
    atomic_bool leaving;
    struct board *board;
    pthread_t reader;
    bool started;
    atomic_int wish, counted;
    atomic_bool located;       /* it has said on which machine it is */
    char packet[PACKET_BYTES]; /* being read */

    pthread_mutex_t listening;
    rendezvous_listener *listener;
    void *listener_arg;
    struct incoming *incoming; /* [size] */
    int *senders;              /* [size] those with a queue */
    int sender_count;

    pthread_mutex_t passing;   /* of the next */
    struct outgoing *outgoing; /* [size] */

    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t changed;
    struct value *values;
    size_t value_bytes; /* that came */
    struct mapping *mappings;
    struct late *late;      /* to be given back */
    struct fetch *fetches;  /* under way */
    uint64_t fetched;       /* so far: the last id */
    uint64_t barriers;      /* that all were in */
    int gone, left, failed; /* the first; -1: none */
};

enum { MEETING_RETRY_MS = 20 }; /* while the broker is not there yet */

/* ---- rendezvous.c ---------------------------------------------------------------------------- */

/* False: too large, or the broker is gone. */
bool rendezvous_send_mail(struct rendezvous *r, const struct mail *mail, const void *data,
                          size_t bytes);
/* Says that `what` was refused, and why: errno. */
enum status rendezvous_refused(struct diag *diag, int rank, const char *what);
/* Without a socket yet. */
enum status rendezvous_make(int rank, struct rendezvous **out, struct diag *diag);
/* The socket is there: come to the meeting. Takes `r`: a failure ends it. */
enum status rendezvous_meet(struct rendezvous *r, int64_t deadline_ns, struct rendezvous **out,
                            struct diag *diag);
/* A member counts as gone. */
void rendezvous_lose(struct rendezvous *r, int rank);
/* The broker is gone, or nothing is worth any more what it says. */
void rendezvous_lose_broker(struct rendezvous *r);

/* ---- rendezvous_far.c ------------------------------------------------------------------------ */

/* As near: a packet is sent, read into r->packet (its bytes; < 0: the end), the welcome received. */
bool far_send(struct rendezvous *r, const struct mail *mail, const void *data, size_t bytes);
ssize_t far_read(struct rendezvous *r);
ssize_t far_receive_welcome(struct rendezvous *r, struct mail *mail);
/* Until there is something to read, telling news meanwhile; false: the broker does not say goodbye. */
bool far_await_mail(struct rendezvous *r);
/* Rows of the board have come from the broker. */
void far_take_news(struct rendezvous *r, const char *data, size_t bytes);
/* The answer to the last question for the time there, or to an earlier one. */
void far_take_moment(struct rendezvous *r, const struct mail *mail, const char *data, size_t bytes);
/* When time 0 of the broker's board was, on the clock here. False: the connection has ended. */
bool far_ask_time(struct rendezvous *r, int64_t *base_ns);

/* ---- rendezvous_bytes.c ---------------------------------------------------------------------- */

/* Bytes from member to member; false: it is no such mail. Without the lock. */
bool bytes_take(struct rendezvous *r, const struct mail *mail, const char *data, size_t bytes);

/* ---- rendezvous_queue.c ---------------------------------------------------------------------- */

/* Letters of a queue, or where it is; false: it is no such mail. Without the lock. */
bool queue_take(struct rendezvous *r, const struct mail *mail, const char *data, size_t bytes);
/* Letters that `from` queued before it sent a letter that has come by mail. `listening` is held. */
void queue_take_older(struct rendezvous *r, int from);
void queues_close(struct rendezvous *r);

#endif
