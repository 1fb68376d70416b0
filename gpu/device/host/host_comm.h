/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_comm.h - the channels of the host device, for the files that move their data; private to
 *
 *     host_comm.c         channels, handles, turns
 *     host_collective.c   collectives: members meet at a position
 *     host_desk.c         small ones between processes: what each member gives lies on its desk
 *
 * A channel belongs to its world and is freed with its last handle; a meeting is freed when its last member
 * leaves. All functions are called with the world's lock held.
 */
#ifndef SWSIM_HOST_COMM_H
#define SWSIM_HOST_COMM_H

#include <stdio.h>
#include <string.h>

#include "host.h"

struct piecework; /* host_collective.c */

/* One position of a communicator, from the first push there until the last member has left. */
struct meeting {
    struct meeting *next;
    uint64_t position;
    /* [channel->count] each, by place, behind `arrived` */
    char **sent;     /* where what the member gives is here; NULL: nowhere */
    char **received; /* the same of what it gets */
    bool *came;      /* arrived, or has left */
    bool *took;      /* where each member takes its own: what it gets has moved */
    bool *kept;      /* its block for itself is where it belongs */
    int arrivals, leavings, takings;
    bool adds;  /* each member adds a share of the sums that all get */
    bool takes; /* each member takes its own; known when all are there */
    bool desks; /* each member takes from the desks of the others */
    int taking; /* so many are at it here */
    bool moving, done;
    bool moved_here; /* by a thread of this process */
    bool claimed;    /* for this process, or in vain */
    bool found;      /* where each takes its own: what other processes give has been found */
    struct piecework *shared;   /* while the data moves: what other members here may move of it */
    atomic_uint changes;        /* so often it has failed, ended, or got something to share */
    int unreached;              /* the rank whose data cannot be had; -1: none */
    struct failure failure;     /* a mismatch: later arrivals fail with it, too */
    struct presence *arrived[]; /* [channel->count], by place; NULL: not yet, or left */
};

/* Lists of meetings by position: as many are open as collectives are pushed ahead. */
enum { MEETING_LISTS = 64 };

struct host_comm_channel {
    struct host_comm_channel *next;
    char *name;
    int *members;
    int count;
    struct host_world *world;
    bool near;                    /* members are in several processes, which share memory */
    int here;                     /* so many are in this one */
    struct host_desk_seat *seats; /* [count], where there are other processes */
    uint64_t hash;                /* its name for other processes */
    int handles;                  /* open ones */
    bool *open;                   /* [count] */
    uint64_t *positions;          /* [count] collectives pushed by each member */
    struct meeting *meetings[MEETING_LISTS];
    struct meeting *spare; /* meetings that are over, to be used again */
    int spares;
    struct host_part *unmatched, **unmatched_end;
    _Atomic uint64_t *
        claim; /* across processes: decides which of them moves data; NULL: the first member's does */
    int64_t claim_at; /* where it is for all */
    struct spin spin;
    pthread_cond_t changed; /* where there are no other processes */
    struct host_ring ring;  /* of `changed` */
};

/* NULL: there is none at this position. */
struct meeting *meeting_find(const struct host_comm_channel *channel, uint64_t position);
/* The meeting at a position, made by the first call for it. NULL: no memory. */
struct meeting *meeting_at(struct host_comm_channel *channel, uint64_t position);
/* A member arrives. Its operation is compared with that of one member that is there, which agrees with all others; if they
   differ, the meeting fails. */
void meeting_arrive(struct host_comm_channel *channel, struct meeting *meeting,
                    struct presence *presence);
/* All members have left. */
void meeting_close(struct host_comm_channel *channel, struct meeting *meeting);
/* The rank that is to move the data of a meeting at which all are; -1: none has claimed it yet. */
int meeting_mover(const struct host_comm_channel *channel, const struct meeting *meeting);

/* ---- host_desk.c: where processes share memory ---- */

/* True if the collective is small enough for desks. All members get the same answer, or their operations differ. */
bool desk_takes(const struct host_comm_channel *channel, const struct device_collective *what);
/* Put `bytes` at `data`, which a member of this process gives, on its desk, and say that they are there. False: the world has
   failed. */
bool desk_put(struct host_comm_channel *channel, struct meeting *meeting, const struct entry *entry,
              const void *data, size_t bytes);
/* The member has failed: other members that have not looked at its desk yet will not find its data. */
void desk_withdraw(struct host_comm_channel *channel, const struct meeting *meeting, int place);
/* Members of other processes that have come arrive. */
void desk_look(struct host_comm_channel *channel, struct meeting *meeting);
/* Wait until another member may have come; the caller looks again. */
void desk_wait(struct host_comm_channel *channel, const struct meeting *meeting);
/* The member has come to the position; true if it has. */
void desk_came(struct host_comm_channel *channel, int place, uint64_t position);
bool desk_has_come(const struct host_comm_channel *channel, int place, uint64_t position);
bool seats_open(struct host_comm_channel *channel);
void seats_close(struct host_comm_channel *channel);

/* A collective or group of the channel may go on. */
void channel_change(struct host_comm_channel *channel);
/* Wait until it may; the caller looks again. */
void channel_wait(struct host_comm_channel *channel);

static inline struct guest *guest_of(struct presence *presence)
{
    return (struct guest *)presence; /* its first member; only where there is no entry */
}

static inline struct guest *guest_of_part(struct host_part *part)
{
    return (struct guest *)((char *)part - offsetof(struct guest, part));
}

static inline struct host_comm *host_comm_of(const struct entry *entry)
{
    return (struct host_comm *)device_op_comm(&entry->op);
}

static inline int host_comm_rank_of(const struct entry *entry)
{
    return entry->stream->device->base.rank;
}

static inline bool same_tag(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static inline bool same_iteration(int64_t a, int64_t b)
{
    return a == b || a == 0 || b == 0;
}

/* " in iteration 7"; "" where it is not known. */
enum { ITERATION_TEXT = 40 };
static inline const char *iteration_text(int64_t iteration, char out[ITERATION_TEXT])
{
    out[0] = '\0';
    if (iteration > 0)
        snprintf(out, ITERATION_TEXT, " in iteration %lld", (long long)iteration - 1);
    return out;
}

static inline void host_comm_move_bytes(char *to, const char *from, size_t bytes)
{
    if (bytes > 0 && to != from)
        memmove(to, from, bytes);
}

#endif
