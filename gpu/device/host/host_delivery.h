/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_delivery.h - the data of a collective on the host device: sums, and blocks from member to member; private to the
 * room. It knows memory and places only: who may move what, and when, is host_collective.c.
 *
 * All of it at once, in pieces of at most DELIVERY_PIECE bytes, in any order and by any number of threads: none reads what
 * another one writes. Or each member takes what it gets; of sums that all get, its share or, alone, all of them.
 */
#ifndef SWSIM_HOST_DELIVERY_H
#define SWSIM_HOST_DELIVERY_H

#include "host_comm.h"

enum { DELIVERY_PIECE = 64 << 10 };

/* The arguments of all members at one position; all that moving the data reads. */
struct delivery {
    char *const *sent, *const *received; /* by place */
    const bool *kept;                    /* by place: its block for itself is there already */
    int count, root;                     /* the root's place */
    int taker;                           /* its memory is `own_sent` and `own_received`; -1: none */
    bool alone;                          /* it adds all sums itself, for itself only */
    const char *own_sent;
    char *own_received;
    enum collective_kind kind;
    enum number number;
    size_t bytes;
};

/* How many bytes a member gives, and gets. */
size_t delivery_given(const struct delivery *all, int place);
size_t delivery_got(const struct delivery *all);

/* ---- all at once ----------------------------------------------------------------------------- */

/* The pieces of one delivery, for all threads that help. */
struct piecework {
    const struct delivery *all;
    size_t count;
    atomic_size_t next;
    int helpers; /* with the world's lock */
};
size_t delivery_pieces(const struct delivery *all);
/* True if there are pieces that no thread moves yet. Then move them, one after the other. */
bool delivery_goes_on(const struct piecework *work);
void delivery_move_pieces(struct piecework *work);

/* ---- or each its own ------------------------------------------------------------------------- */

struct host_delivery_interval {
    size_t begin, end;
};
/* The share that the member at `place` adds of sums of so many bytes. */
struct host_delivery_interval delivery_share(size_t bytes, int members, int place);
/* Move to the member at place `to` what it gets; of common sums add its share. */
void delivery_take(const struct delivery *all, int to);

#endif
