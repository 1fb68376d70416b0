/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pieces.h - the sections of a job in pieces that a pipeline's tasks can be.
 *
 * A piece is what a section does on one stream, or a part of that; or a wait of the thread for the device; or CPU time
 * alone. A run of work is cut
 *
 *     - at work that an event delays for long, and behind the work that it waits for;
 *     - around a collective that takes long, and around each one in which ranks of the job meet;
 *     - where work or the thread waits for other ranks, more than 2% of a step, whatever the caller calls long: as
 *       time of the rank that waited it would make the step longer than the slowest rank does;
 *     - where a thread that waits for long goes on: on all streams;
 *     - at the last work that its launch delays, if launches make a run wait for long: what is in front of it
 *       went on beside the thread, what is behind it ends later than the thread came there.
 *
 * "Long" is more than a share of a step that the caller gives; what is shorter stays in the times. Works correspond over the steps by their place on the stream within the section.
 * The times of a piece are per step, so that they have a distribution.
 */
#ifndef SWSIM_PIECES_H
#define SWSIM_PIECES_H

#include "evidence.h"
#include "sections.h"
#include "turns.h"

enum piece_kind { PIECE_WORK, PIECE_WAIT, PIECE_HOST };

struct piece {
    enum piece_kind kind;
    int section;
    int stream;                 /* WORK: rank->streams */
    int first_slot, slot_count; /* WORK */
    int wait;                   /* WAIT: its number */
    bool is_collective;         /* WORK: of one collective */
    enum collective_kind collective;
    int *comm; /* of a collective: per step its communicator, -1: it meets nobody; else NULL */
    bool sync_after; /* WORK: the thread waits for its end */
    bool beside;     /* WORK: its launches went on beside it, so their delays are not its time */
    int64_t *host_ns,
        *after_ns; /* per step: CPU time in front of its push, or behind its wait, and behind the push */
    int64_t *time_ns;           /* per step: device time */
    int64_t *start_ns, *end_ns; /* per step: of WORK on the device; 0 where it did nothing */
};

/* `task` begins after `on` of the step `distance` earlier has ended. */
struct piece_dep {
    int task, on, distance;
    bool told; /* by an id or a wait of the thread; else inferred */
};

struct pieces {
    struct piece *items; /* in the order of their pushes and waits */
    size_t count;
    struct piece_dep *deps;
    size_t dep_count;
    int *of_work; /* per work of all ranks: its piece; -1: it is in none */
};

/* `detail`: the share of a step that is long, in millionths; `opaque`: idle time without a cause is time of the work behind
   it, else of none. The pieces are those of all ranks; time that one waits for others in a collective is not in them. All
   memory is in `arena`; false without it. */
bool pieces_find(const struct turns *turns, const struct sections *sections, int detail,
                 bool opaque, struct arena *arena, struct pieces *out);

#endif
