/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower.h - internal to machine: the parts of program_build.
 *
 * A `struct lowering` is the scratch space of one build; the tables it fills belong to the program.
 */
#ifndef SWSIM_LOWER_H
#define SWSIM_LOWER_H

#include "base/table.h"
#include "machine/program.h"

enum { LOWER_KEPT = 8 };

struct lowering {
    struct program *program;
    const struct plan *plan;
    struct diag *diag;
    size_t thread_cap, stream_cap, comm_cap, channel_cap;
    size_t channel_total, stream_total, thread_total;
    struct table channels; /* of the program, by communicator and ranks; in its arena */
    struct table streams;  /* likewise, by rank and stream of the plan */
    struct names flags;    /* flag families by name */
    int at;                /* of the operations that are lowered, as in struct op */
    /* Plans with a legacy stream, rank by rank: a stream that is used and that it orders. */
    bool *in_order;
    int *pushers;       /* for each rank: threads that push to such streams */
    int first_implicit; /* event family of the first stream of rank 0: its work so far; without a legacy
                           stream there are none */
    struct barrier_meeting {
        int *threads;
        size_t count, cap;
    } * meetings; /* per barrier of the plan: the threads that meet there */
    bool *freed;  /* per buffer of the plan; NULL: not asked yet */
    const struct host_thread
        *driver;                 /* of devices of several ranks, which is lowered; NULL: none */
    struct rank_programs *ranks; /* where the operations of threads come from; NULL: the plan */
    int iteration; /* 1 + that of the operation of a host program that is lowered; 0: none */
    const struct given *kept[LOWER_KEPT]; /* the last different ones */
    unsigned kept_next;
    char *text; /* room for short names */
    size_t text_left;
    bool failed; /* memory was exhausted */
};

/* Every function below returns STATUS_SYSTEM when memory is exhausted, STATUS_INPUT when the plan
   has no meaning; both after reporting it. */
enum status lower_pipeline(struct lowering *lowering);
enum status lower_threads(struct lowering *lowering);

/* True if a thread of the host program frees this buffer of the plan. */
bool lower_frees(struct lowering *lowering, int buffer);
/* Operations of a thread of rank `home` of a host program, on whatever device. */
enum status lower_collective(struct lowering *lowering, int home, const struct host_op *from);
enum status lower_group(struct lowering *lowering, int home, const struct host_op *group);
/* A call of NCCL for one of several ranks that the thread calls for waits for the others: lower_devices.c. */
void lower_alone(struct lowering *lowering, int home, const struct host_op *call);

/* Table builders shared by the two. They set lowering->failed and return 0 on exhaustion, so that a
   caller can go on and check once. */
/* Reserve room for operations and parts: growing leaves the old copies in the arena. */
void lower_reserve(struct lowering *lowering, size_t ops, size_t parts);
/* Why it failed: memory, or more operations than a program has. */
enum status lower_failed(const struct lowering *lowering);
/* The plan needs more operations than there may be. */
enum status lower_too_large(const struct lowering *lowering);
struct op *lower_emit(struct lowering *lowering, enum op_kind kind, struct mark mark);
int lower_body_begin(struct lowering *lowering);
void lower_body_end(struct lowering *lowering, int body);
int lower_thread(struct lowering *lowering, struct thread_desc desc);
int lower_stream(struct lowering *lowering, int rank, int plan_stream);
enum status lower_comms(struct lowering *lowering);
int lower_channel(struct lowering *lowering, int comm, int from, int to);
int lower_name(struct lowering *lowering, const char *name);
/* A name that no other one equals; -1: out of memory. */
int lower_new_name(struct lowering *lowering, const char *name);
/* The name of a host operation, or -1. */
int lower_op_name(struct lowering *lowering, const struct host_op *op);
/* The operation gets `given`, or an equal one that is kept already; without jitter it takes the same time always. */
void lower_give(struct lowering *lowering, struct op *op, struct given given);
/* The same of a host operation, in memory that lives as long as the program. */
void lower_given(struct lowering *lowering, struct op *op, const struct host_op *from);
/* The residency slots of an operation: a greedy kernel needs one, and takes at most `sm`. */
void lower_slots(struct lowering *lowering, struct op *op, int sm, bool greedy);
int lower_flag(struct lowering *lowering, const char *name);
void lower_accesses(struct lowering *lowering, struct op *op, int rank,
                    const struct index_list *reads, const struct index_list *writes);
/* Of the operation whose accesses were listed last. */
void lower_more_accesses(struct lowering *lowering, struct op *op, int rank,
                         const struct index_list *reads, const struct index_list *writes);
/* The rank's instance of plan->buffers[0] in program->buffers: the others follow. Of a buffer with an owner there is
   one instance. */
static inline int lower_first_buffer(const struct plan *plan, int rank)
{
    bool owned = plan->buffer_count > 0 && plan->buffers[0].owner > 0;
    return owned ? 0 : rank * (int)plan->buffer_count;
}
/* Position of `rank` in the communicator, or -1. */
int lower_member(const struct lowering *lowering, int comm, int rank);
/* If collectives of this kind have one, `root` becomes a root of `op`: a rank, -1: the lowest member. */
void lower_root(struct lowering *lowering, struct op *op, enum collective_kind kind, int root);
/* `machine: {first_use_blocks: true}`: meet the peers of a call on the host first, those of all parts of a
   group at once; a collective's are all members of the communicator. */
struct first_use {
    int comm, rank; /* of parts that name none, and of a collective */
    const struct p2p_part *parts;
    size_t count; /* 0: a collective */
    struct mark mark;
};
void lower_first_use(struct lowering *lowering, const struct first_use *use);
/* `machine: {lazy_load: true}`: the context lock and the load around a push. */
void lower_load_begin(struct lowering *lowering, int rank, int name, struct mark mark);
void lower_load_end(struct lowering *lowering, int rank, struct mark mark);
/* `machine: {launch_blocking: true}`: behind the push of a kernel. */
void lower_launched(struct lowering *lowering, int stream, struct mark mark);
/* `machine: {alloc_may_sync: true}`: in front of an allocation. */
void lower_allocating(struct lowering *lowering, int rank, struct mark mark);
/* A push to a stream that the legacy default stream orders, or to that stream itself: what comes before
   and behind it. `locked`: the thread holds the context lock. `stream` is the plan's. */
enum status lower_legacy_open(struct lowering *lowering);
void lower_legacy_begin(struct lowering *lowering, int rank, int stream, bool locked,
                        struct mark mark);
void lower_legacy_end(struct lowering *lowering, int rank, int stream, bool locked,
                      struct mark mark);
int lower_context_lock(const struct lowering *lowering, int rank);

/* derive.c: the locks and buffers, before operations refer to them; the tables that follow from the operations. */
enum status lower_objects(struct lowering *lowering);
enum status lower_derive(struct lowering *lowering);

#endif
