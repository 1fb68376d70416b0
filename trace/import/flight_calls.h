/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flight_calls.h - what the dumps of PyTorch's flight recorder say: which collectives, sends and receives each rank
 * called, in its order, alone or in batches.
 *
 * A process group is known by its name and its ranks: groups of other ranks may have the same name. Entries of one group
 * with one sequence number are one call, a batch, which an entry of the name "coalesced" ends; only that one has the
 * state. A batch at the end of a dump without that entry was not launched. A dump is a ring: it may have lost its
 * oldest entries, and calls that cannot be compared for that reason are marked. Sources: FlightRecorder.hpp and
 * ProcessGroupNCCL.cpp of PyTorch 2.3 to 2.10.
 */
#ifndef SWSIM_FLIGHT_CALLS_H
#define SWSIM_FLIGHT_CALLS_H

#include "plan/plan.h"
#include "value.h"

struct flight_dump {
    const char *file;
    int64_t rank; /* -1: not known */
    const struct value *root;
};

/* A collective, or a message. */
struct flight_part {
    const char *name; /* "all_reduce", "send 0->1" */
    bool is_message, send;
    int64_t peer;              /* a message: a rank of the job; -1: not known */
    enum collective_kind kind; /* a collective */
    int64_t bytes;             /* that the members must agree in; 0: they need not */
    enum element element;      /* of a message's tensor */
    const char *dtype; /* of a collective's tensors, which they must agree in; NULL: not told */
};

struct flight_call {
    int group;       /* job->groups */
    bool is_message; /* numbered with the messages of its group, else with its collectives */
    int64_t number;  /* from the job's begin on; -1: not told */
    bool completed, started;
    bool
        over; /* so it is on all ranks, with the same call, and a later one of the group is as well */
    bool is_batch; /* it has an end of its own: "coalesced" */
    bool left_out; /* a ring has lost what it would be compared with, or it was not launched */
    const struct value *entry; /* the first one */
    struct flight_part *parts;
    size_t part_count, part_cap;
};

struct flight_rank {
    const char *file;
    const struct value *root; /* of its dump */
    int64_t rank;
    struct flight_call *calls;
    size_t call_count, call_cap;
    int *last_call; /* by group: 1 + its last call; 0: it has none */
    size_t group_count, group_cap;
    bool is_ring; /* it has lost entries */
};

struct flight_group {
    const char *name, *description;
    int64_t *ranks; /* of the job, by rank in the group */
    size_t rank_count;
    int64_t first_number; /* of its collectives: those that no member's ring has lost */
    bool is_forgotten;    /* the ring of a member has no collective of it */
    bool is_guessed;      /* no dump says who belongs to it: all do */
    int64_t last_over; /* the number of the last collective that is over on all members; -1: none */
};

struct flight_job {
    struct arena *arena;
    struct flight_rank *ranks; /* those with a dump, ascending */
    size_t rank_count;
    struct flight_group *groups;
    size_t group_count, group_cap;
    bool has_ring;
    size_t over_count;                   /* calls that are over everywhere */
    const struct standstill *standstill; /* what else tells where ranks stand; NULL: nothing */
    struct diag *diag;                   /* while it is read; status: why a file is refused */
    enum status status;
};

/* True if this is the document of a dump. */
bool flight_is_dump(const struct value *root);
/* The rank that the dump says, or else its file's name, as in nccl_trace_rank_3; -1. */
int64_t flight_rank(const struct value *root, const char *file);

/* All of it lives in `arena` and in the dumps. STATUS_INPUT for two dumps of a rank, for one
   that calls a group it is no member of, and for dumps without entries. */
enum status flight_read(const struct flight_dump *dumps, size_t count, struct arena *arena,
                        struct flight_job *out, struct diag *diag);

/* True if two calls have the same operations, with as many bytes of the same type. */
bool flight_same_call(const struct flight_call *a, const struct flight_call *b);

/* The first collective of a rank in a group that is not over; of any group, or a message: -1. NULL: there is none. */
const struct flight_call *flight_open_call(const struct flight_rank *rank, int group);

/* Where the program made the call, as "train.py:41": the innermost frame that is none of PyTorch's; NULL: not told. */
const char *flight_line(const struct flight_call *call, struct arena *arena);

/* The place in job->ranks of a rank; -1: there is no dump of it. */
int flight_find_rank(const struct flight_job *job, int64_t rank);

/* True if the dump has entries of a backend that records collectives only. */
bool flight_lacks_messages(const struct flight_rank *rank);

#endif
