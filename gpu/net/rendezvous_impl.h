/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rendezvous_impl.h - a member's end of a rendezvous from inside; private to its files:
 *
 *     rendezvous.c         joining and leaving, mail and its receivers, values, barriers, mapped memory
 *     rendezvous_queue.c   letters through memory that both members have mapped
 *
 *     user's threads --- put, barrier, send ---> send_mail ---> socket --->  broker
 *                ^                                                             |
 *                '-- lock, changed --- reader: take <---- packet <--- socket <-'
 *
 * The reader notes under `lock` the events this member may wait for (values, barriers, deaths) and
 * wakes the waiting threads. Letters reach their receiver under `listening`, so a receiver that is being
 * removed is not running any more. Lock order: listening before any lock of the receiver; `passing` and `lock` are the last.
 */
#ifndef SWSIM_RENDEZVOUS_IMPL_H
#define SWSIM_RENDEZVOUS_IMPL_H

#include "mail.h"

struct common_value {
    struct common_value *next;
    size_t bytes; /* of key, 0 and data */
    char text[];
};

struct mapping {
    struct mapping *next;
    int64_t offset;
    size_t bytes;
    void *address;
};

struct letter_queue; /* in common memory */

/* Letters to a member. */
struct outgoing {
    struct letter_queue *queue; /* NULL: they go by mail */
    bool tried;                 /* to make one */
    uint64_t passed;            /* so far: the number of the next */
    uint64_t written;           /* into the queue */
};

/* Letters from one. */
struct incoming {
    struct letter_queue *queue; /* NULL: not known, or given up */
    bool known;
    uint64_t heard; /* so far: the number of the next */
    uint64_t taken; /* out of the queue */
};

/* Memory in the file that others may still look at. */
struct late_memory {
    struct late_memory *next;
    int64_t offset;
    size_t bytes;
    bool aged;
};

struct rendezvous {
    int rank, size, socket, memory;
    struct board *board;
    pthread_t reader;
    bool started;
    atomic_bool cut_off; /* mail cannot be sent: the broker is gone */
    atomic_int wish, counted;
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
    struct common_value *values;
    size_t value_bytes; /* that came */
    struct mapping *mappings;
    struct late_memory *late; /* to be given back */
    uint64_t barriers;        /* that all were in */
    int gone, left, failed;   /* the first; -1: none */
};

/* ---- rendezvous.c ---------------------------------------------------------------------------- */

/* False: too large, or the broker is gone. */
bool rendezvous_send_mail(struct rendezvous *r, const struct mail *mail, const void *data,
                          size_t bytes);
/* A member counts as gone. */
void rendezvous_lose(struct rendezvous *r, int rank);

/* ---- rendezvous_queue.c ---------------------------------------------------------------------- */

/* Letters of a queue, or where it is; false: it is no such mail. Without the lock. */
bool queue_take(struct rendezvous *r, const struct mail *mail, const char *data, size_t bytes);
/* Letters that `from` queued before it sent a letter that has come by mail. `listening` is held. */
void queue_take_older(struct rendezvous *r, int from);
void queues_close(struct rendezvous *r);

#endif
