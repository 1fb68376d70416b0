/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine_internal.h - the layout of a state; private to the machine's files.
 *
 *     cells (int32_t)                                     rows (row_words x uint64_t each)
 *     +--------------------------------------------+      +-------------------------------+
 *     | [0] iterations decided to exist            |      | threads, streams              |
 *     | ranks      RANK_CELLS each                 |      | items: one a place in a stream|
 *     | windows    rank x window x WINDOW_CELLS    |      | events, flags                 |
 *     | fired      rank x task x window: bits      |      | locks, tickets                |
 *     | threads    THREAD_CELLS + queue_cap x 3    |      | done, admit: rank x window    |
 *     | streams    STREAM_CELLS + ring of cap x 5  |      | entries: worker queue places  |
 *     | members    MEMBER_CELLS each               |      | queues: one a place           |
 *     | channels   1 + cap x 2                     |      | channels: one a message       |
 *     | hw queues  1 + hw_cap                      |      |                               |
 *     | events x3, flags x2, queues, locks,        |      +-------------------------------+
 *     | kernels, buffers x4, recorded,             |      last
 *     | awaited, loose, faults, made               |      +-------------------------------+
 *     +--------------------------------------------+      | a tick per record, instance   |
 *                                                         +-------------------------------+
 *
 * Iterations are absolute within a state; machine_canonical shifts them. Unused places are zero.
 *
 * Happens-before. A row is a vector clock: for each agent that accesses buffers (its column) how many
 * of its accesses have happened before the next step of the row's owner. `last` has of each access
 * (program->records, repeated for each iteration of the window) the tick at which its agent made it
 * last. Synchronisation joins rows; an access is a race if the last tick of a conflicting one is not
 * in the row (FastTrack: Flanagan, Freund 2009). An access that another one stands for is dead, its
 * tick 0: no row has to be touched. Ticks only grow; hb_renumber makes them finite.
 */
#ifndef SWSIM_MACHINE_INTERNAL_H
#define SWSIM_MACHINE_INTERNAL_H

#include <assert.h>

#include "machine.h"

enum rank_cell {
    RANK_OLDEST,       /* oldest iteration not retired */
    RANK_ADMITTED,     /* next iteration to admit */
    RANK_FINISHED,     /* oldest iteration with work that is not submitted or not finished */
    RANK_PERIOD,       /* clock: next period to enqueue */
    RANK_SERVED,       /* tickets served */
    RANK_NEXT_TICKET,  /* next number to hand out */
    RANK_SM_USED,      /* residency slots in use on the device whose first rank this is */
    RANK_END,          /* iterations there is data for; -1: open */
    RANK_COMM_ISSUED,  /* launch_order_implicit: operations issued on any communicator */
    RANK_COMM_STARTED, /* of those, started */
    RANK_CELLS
};
enum window_cell {
    WINDOW_SUBMIT_LEFT, /* tasks not submitted */
    WINDOW_DEVICE_LEFT, /* tasks whose event has not been reached */
    WINDOW_LAST_LEFT,   /* 1 until the last task in topological order is */
    WINDOW_CELLS
};
enum { FIRED = 1, DONE = 2 };
enum thread_cell {
    THREAD_PC,     /* within the body; drivers: 0 enqueue or admit, 1 retire, 2 at the end */
    THREAD_ITER,   /* iteration of the instance */
    THREAD_BODY,   /* -1: idle */
    THREAD_TICKET, /* of the instance */
    THREAD_COUNT,  /* instances queued */
    THREAD_FIRST,  /* the place of the oldest in the ring of instances; 0 if there is none */
    THREAD_CELLS
};
enum entry_cell { ENTRY_TASK, ENTRY_ITER, ENTRY_TICKET, ENTRY_CELLS };
enum stream_cell {
    STREAM_COUNT,   /* items queued, the head included */
    STREAM_RUNNING, /* the head has started */
    STREAM_DONE,    /* items popped so far: the head's position */
    STREAM_FIRST,   /* the head's place in the ring of items; 0 if there is none */
    STREAM_CELLS
};
enum item_cell {
    ITEM_OP,
    ITEM_ITER,
    ITEM_A, /* wait: stream waited for, -1 none; record: event instance; comm: issue number on it */
    ITEM_B, /* wait: position waited for; the wait is over when that stream has popped it. A greedy kernel that runs: the
               residency slots that it has */
    ITEM_C, /* comm: issue number on any communicator of this rank */
    ITEM_CELLS
};
enum member_cell { MEMBER_ISSUED, MEMBER_FINISHED, MEMBER_ACTIVE /* stream + 1 */, MEMBER_CELLS };
enum event_cell { EVENT_STREAM /* -1: nothing to wait for */, EVENT_POS, EVENT_OWNER, EVENT_CELLS };
enum flag_cell { FLAG_VALUE, FLAG_OWNER, FLAG_CELLS };
enum buffer_cell {
    BUFFER_STATE,
    BUFFER_STREAM,   /* it was allocated on, + 1 */
    BUFFER_FREED_AT, /* position of that stream when it was freed: earlier allocations got other
                        memory */
    BUFFER_TAKEN_AT, /* memory is counted: its position when it was allocated */
    BUFFER_CELLS
};
enum buffer_state { BUFFER_FRESH, BUFFER_LIVE, BUFFER_FREED };
/* The cell of a stream that `record_stream` may name for a buffer. */
enum recorded_cell {
    RECORDED_NOT,
    RECORDED,
    RECORDED_UNTIL /* and more: freed; the stream must have popped so many items less this one */
};
enum { CHANNEL_PART, CHANNEL_ITER, MESSAGE_CELLS };

/* A program and a state at work; `e` is never NULL. */
struct work_state {
    const struct program *p;
    int32_t *c;
    struct effect *e;
    struct clocks *clocks; /* options.clocks: knowledge is there, else NULL */
};

static inline int32_t *rank_cells(const struct program *p, int32_t *c, int rank)
{
    ASSERT_INDEX(rank, p->ranks);
    return c + p->at.ranks + rank * RANK_CELLS;
}
/* Residency slots in use on the device of this rank. */
static inline int32_t *device_sm_used(const struct program *p, int32_t *c, int rank)
{
    return rank_cells(p, c, p->device[rank]) + RANK_SM_USED;
}
static inline int32_t *window_cells(const struct program *p, int32_t *c, int rank,
                                    int64_t iteration)
{
    ASSERT_INDEX(rank, p->ranks);
    return c + p->at.windows + (rank * p->window + (int)(iteration % p->window)) * WINDOW_CELLS;
}
static inline int32_t *fired_cell(const struct program *p, int32_t *c, int rank, int task,
                                  int64_t iteration)
{
    ASSERT_INDEX(rank, p->ranks);
    ASSERT_INDEX(task, p->tasks);
    return c + p->at.fired + (rank * p->tasks + task) * p->window + (int)(iteration % p->window);
}
static inline int32_t *thread_cells(const struct program *p, int32_t *c, int thread)
{
    ASSERT_INDEX(thread, p->thread_count);
    return c + p->at.threads[thread];
}
/* The k-th oldest instance in the queue of a worker; or, k their number, the place of the next. */
static inline int32_t *entry_cells(const struct program *p, int32_t *c, int thread, int k)
{
    ASSERT_INDEX(thread, p->thread_count);
    ASSERT_INDEX(k, p->threads[thread].queue_cap + 1);
    int32_t *state = c + p->at.threads[thread];
    int place = state[THREAD_FIRST] + k, cap = p->threads[thread].queue_cap;
    return state + THREAD_CELLS + (place < cap ? place : place - cap) * ENTRY_CELLS;
}
static inline int32_t *stream_cells(const struct program *p, int32_t *c, int stream)
{
    ASSERT_INDEX(stream, p->stream_count);
    return c + p->at.streams[stream];
}
/* The place in the ring of the k-th item of a stream; or, k its number of items, of the next. */
static inline int item_place(const struct program *p, const int32_t *c, int stream, int k)
{
    ASSERT_INDEX(stream, p->stream_count);
    ASSERT_INDEX(k, p->streams[stream].cap + 1);
    int place = c[p->at.streams[stream] + STREAM_FIRST] + k, cap = p->streams[stream].cap;
    return k == 0 || place < cap ? place : place - cap;
}
static inline int32_t *item_cells(const struct program *p, int32_t *c, int stream, int k)
{
    return c + p->at.streams[stream] + STREAM_CELLS + item_place(p, c, stream, k) * ITEM_CELLS;
}
static inline int item_row(const struct program *p, const int32_t *c, int stream, int k)
{
    return p->at.row_items[stream] + item_place(p, c, stream, k);
}
/* True if the record that this item, a wait, waits for has been reached. */
static inline bool wait_is_over(const struct program *p, const int32_t *c, const int32_t *item)
{
    return item[ITEM_A] < 0 || c[p->at.streams[item[ITEM_A]] + STREAM_DONE] > item[ITEM_B];
}
static inline int32_t *member_cells(const struct program *p, int32_t *c, const struct op *op)
{
    ASSERT_INDEX(op->comm, p->comm_count);
    ASSERT_INDEX(op->member, p->comms[op->comm].count);
    return c + p->at.members + (p->comms[op->comm].first_member + op->member) * MEMBER_CELLS;
}
static inline int32_t *event_cells(const struct program *p, int32_t *c, int instance)
{
    return c + p->at.events + instance * EVENT_CELLS;
}
static inline int32_t *flag_cells(const struct program *p, int32_t *c, int instance)
{
    return c + p->at.flags + instance * FLAG_CELLS;
}
static inline uint64_t *row(const struct program *p, int32_t *c, int index)
{
    return (uint64_t *)(void *)((char *)c + p->at.rows_at) +
           (size_t)index * (size_t)p->at.row_words;
}
/* Per access of an agent to a buffer's instance the tick of the last one; 0: none, or it is dead. */
static inline void *last_ticks(const struct program *p, int32_t *c)
{
    return (char *)c + p->at.last_at;
}
static inline const struct op *head_op(const struct program *p, int32_t *c, int stream)
{
    return &p->ops[item_cells(p, c, stream, 0)[ITEM_OP]];
}

/* The residency slots that the running head of a stream has. */
static inline int slots_held(const struct program *p, int32_t *c, int stream)
{
    const struct op *op = head_op(p, c, stream);
    return op_is_greedy(op) ? item_cells(p, c, stream, 0)[ITEM_B] : op->sm;
}

/* The stream of a rank that holds the operation issued as `number` on one of its communicators (or, `comm` -1, on any of
   them); -1: none. */
static inline int stream_holding(const struct program *p, int32_t *c, int rank, int comm,
                                 int32_t number)
{
    ASSERT_INDEX(rank, p->ranks);
    const int issued = comm < 0 ? ITEM_C : ITEM_A;
    for (int i = p->rank_first[rank]; i < p->rank_first[rank + 1]; i++) {
        int s = p->rank_streams[i], cap = p->streams[s].cap;
        const int32_t *state = stream_cells(p, c, s), *ring = state + STREAM_CELLS;
        for (int k = 0, place = state[STREAM_FIRST]; k < state[STREAM_COUNT]; k++) {
            const int32_t *item = ring + place * ITEM_CELLS;
            place = place + 1 < cap ? place + 1 : 0;
            if (item[issued] != number)
                continue;
            int uses = p->ops[item[ITEM_OP]].comm;
            if (uses >= 0 && (comm < 0 || uses == comm))
                return s;
        }
    }
    return -1;
}

/* The stream with the next operation of a member of a communicator; -1: it has not been pushed. */
static inline int member_holder(const struct program *p, int32_t *c, int comm, int member)
{
    ASSERT_INDEX(comm, p->comm_count);
    ASSERT_INDEX(member, p->comms[comm].count);
    const int index = p->comms[comm].first_member + member;
    const int32_t *cells = c + p->at.members + index * MEMBER_CELLS;
    if (cells[MEMBER_ISSUED] == cells[MEMBER_FINISHED])
        return -1;
    return p->member_stream[index] >= 0
               ? p->member_stream[index]
               : stream_holding(p, c, p->comms[comm].members[member], comm, cells[MEMBER_FINISHED]);
}

/* The instance of a family for an iteration; single objects (distance < 0) have one instance. */
static inline int instance_of(const struct program *p, const struct op *op, int64_t iteration)
{
    if (op->distance < 0)
        return op->object * p->slots;
    return op->object * p->slots + (int)((iteration - op->distance) % p->slots);
}

/* The operation a thread is at, or NULL (idle, at its end, a driver). */
static inline const struct op *machine_thread_op(const struct program *p, int32_t *c, int thread)
{
    const int32_t *state = thread_cells(p, c, thread);
    if (p->threads[thread].kind == THREAD_DRIVER || state[THREAD_BODY] < 0)
        return NULL;
    const struct body *body = &p->bodies[state[THREAD_BODY]];
    return state[THREAD_PC] < body->count ? &p->ops[body->first + state[THREAD_PC]] : NULL;
}

static inline int32_t *buffer_cells(const struct program *p, int32_t *c, int buffer)
{
    return c + p->at.buffers + buffer * BUFFER_CELLS;
}
/* The position of the next item that is pushed to a stream. */
static inline int32_t machine_tail(const struct program *p, int32_t *c, int stream)
{
    const int32_t *state = stream_cells(p, c, stream);
    return state[STREAM_DONE] + state[STREAM_COUNT];
}

/* True if `record_stream` has named the stream of this agent for the buffer. */
bool machine_is_recorded(const struct program *p, int32_t *c, int buffer, int agent);

/* True if the iteration that this operation depends on exists, and is not skipped. */
bool dependence_applies(const struct program *p, int32_t *c, int rank, const struct op *op,
                        int64_t iteration);
/* True if nothing is queued or running on the device of this rank. */
bool machine_device_idle(const struct program *p, int32_t *c, int rank);
/* True if an operation with branches can be done without a wait, or its answer is yes. Then `then` follows. */
bool machine_says_yes(const struct program *p, int32_t *c, int thread, const struct op *op);
bool machine_thread_can_step(const struct program *p, int32_t *c, int thread);
/* The operation a part belongs to: parts of one operation are neighbours. */
const struct op *machine_part_op(const struct program *p, int part);
bool machine_can_start(const struct program *p, int32_t *c, int stream);
bool machine_group_matched(const struct program *p, int32_t *c, const struct op *op);
bool machine_iteration_over(const struct program *p, int32_t *c, int rank, int64_t iteration);

#endif
