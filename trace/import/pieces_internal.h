/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pieces_internal.h - what the files that find pieces share: the works of a step in slots, the cuts between them.
 *
 * A slot is a place of a section's stream, with one work of each step. piece_slots.c fills them, piece_cuts.c
 * says where a piece begins, piece_peers.c when ranks wait for each other, pieces.c lists the pieces, piece_times.c measures them, piece_deps.c orders them.
 */
#ifndef SWSIM_PIECES_INTERNAL_H
#define SWSIM_PIECES_INTERNAL_H

#include "pieces.h"

/* A call of a section that waits for the device. */
struct wait_slot {
    int section;
    int *calls; /* per step, or -1 */
    bool kept;  /* it is a piece */
};

/* A time in which the collectives of a rank wait for other ranks. */
struct peer_wait {
    int64_t start_ns, end_ns;
};

struct piece_search {
    const struct turns *turns;
    const struct job_rank *rank; /* turns->rank */
    const struct evidence *evidence;
    const struct sections *sections;
    struct arena *arena;
    struct pieces *out;
    int steps, streams;
    int64_t long_ns;
    bool opaque;
    int *base;    /* per section and stream: its first slot; one more at the end */
    int *slot_of; /* per work; -1: in no step */
    int *work_at; /* per slot and step; -1 */
    int *before;  /* per work: the one before it on its stream; -1 */
    int64_t *sum; /* per work: the time of all works of its stream up to its end */
    bool *cut;    /* per slot: a piece begins */
    bool *
        beside; /* per slot: the piece that ends in front of it is one whose launches went on beside it */
    struct peer_wait *peer_waits; /* by time, none touches another; of all ranks */
    size_t peer_wait_count;
    int slots;
    int *piece_of; /* per slot */
    struct wait_slot *waits;
    size_t wait_count, wait_cap, piece_cap;
};

static inline int64_t later_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The work of a slot in a step; -1. */
static inline int pieces_work_at(const struct piece_search *search, int slot, int step)
{
    return search->work_at[(size_t)slot * (size_t)search->steps + (size_t)step];
}

/* The collective of several ranks that a work is part of; NULL: none. */
static inline const struct meetings_meeting *pieces_meeting(const struct piece_search *search,
                                                            int work)
{
    const struct meetings_meeting *meetings = search->turns->meetings;
    return meetings && meetings[work].comm >= 0 ? &meetings[work] : NULL;
}

/* `count` and one more of this value; NULL without memory. */
int *pieces_filled(struct arena *arena, size_t count, int value);

/* Each is one part of the search; false without memory. */
bool pieces_fill_slots(struct piece_search *search);
bool pieces_fill_waits(struct piece_search *search);
bool pieces_find_peer_waits(struct piece_search *search);
void pieces_find_cuts(struct piece_search *search);
void pieces_walk(struct piece_search *search);
void pieces_drop_short_rests(struct piece_search *search);
bool pieces_find_deps(struct piece_search *search);
void pieces_settle_waits(struct piece_search *search);
void pieces_add_own_gaps(struct piece_search *search);

/* How much of a time is waiting for other ranks. */
int64_t pieces_peer_ns(const struct piece_search *search, int64_t from_ns, int64_t until_ns);
/* How long a call waits for the device. */
int64_t pieces_blocked_ns(const struct piece_search *search, int call);
/* True if the gap in front of a work, as far as nothing else explains it, is its own time. */
bool pieces_own_gap(const struct piece_search *search, int work);
/* When the push of a work takes effect; INT64_MIN: it has none. */
int64_t pieces_push_time(const struct piece_search *search, int work);
/* The end of the run of slots up to the next cut. */
int pieces_run_end(const struct piece_search *search, int slot, int end);
/* The first work of a piece in a step; -1. */
int pieces_first_work(const struct piece_search *search, const struct piece *piece, int step);
/* The number of the step that is so many places earlier; -1: it is not there. */
int pieces_step_before(const struct piece_search *search, int step, int distance);

#endif
