/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded_walk.h - a walk over the items of a recording, in the order of their ends.
 *
 * recorded_calls.c walks and takes the items of CUDA, recorded_copies.c those about memory,
 * recorded_groups.c those of NCCL. Results of a function live in the job's arena; false or NULL: no memory.
 */
#ifndef SWSIM_RECORDED_WALK_H
#define SWSIM_RECORDED_WALK_H

#include "recorded_internal.h"

struct walk {
    struct recorded_job *job;
    struct recorded_process *process;
    struct recorded_thread *thread;
    size_t number; /* of the thread */
    const struct recording_item *item;
};

/* ---- recorded_calls.c ------------------------------------------------------------------------- */

/* When the item's call was over. */
int64_t walk_end_ns(const struct walk *walk);
/* An operation of the thread, on its device. */
struct recorded_op walk_op(const struct walk *walk, enum op_kind kind);
/* To the thread; a push to a stream that is captured goes to the graph. `stream` NULL: no push. */
bool walk_add(const struct walk *walk, const struct recorded_stream *stream,
              const struct recorded_op *op);
/* The stream of a handle, which was made before the recording began if it is not known; the default streams are
   those of the thread and its device. Good until the next stream is made. */
struct recorded_stream *walk_stream(const struct walk *walk, uint64_t handle);
/* Later pushes to `stream` come after all that was pushed to `before`. */
bool walk_join(const struct walk *walk, struct recorded_stream *stream,
               struct recorded_stream *before);
bool walk_use_device(struct recorded_process *process, int device);

/* A push to a stream, on its device. */
bool walk_push(const struct walk *walk, struct recorded_stream *stream, struct recorded_op *op);
/* The event of a handle, as of streams. */
struct recorded_event *walk_event(const struct walk *walk, uint64_t handle);
/* The plan waits for what there is now; the latter two do not where the thread has waited for the same before. */
bool walk_sync_stream(const struct walk *walk, struct recorded_stream *stream);
bool walk_await_event(const struct walk *walk, struct recorded_event *event);
bool walk_await_stream(const struct walk *walk, struct recorded_stream *stream);
bool walk_sync_device(const struct walk *walk, int device);
bool walk_is_legacy(const struct recorded_stream *stream);
/* The stream of a device that has its copies with other devices which wait for all work of both. Good until the next
   stream is made. */
struct recorded_stream *walk_peer_stream(const struct walk *walk, int device);

/* The walk's item is a call that a plan has no words for, `name` of the arena or for good. */
bool walk_unmodelled(const struct walk *walk, const char *name);

/* ---- recorded_order.c: what this thread is seen to come after ----------------------------------- */

bool walk_order_begin(struct recorded_job *job, struct recorded_process *process);
/* The thread goes on after so many items of another one. */
bool walk_order_follow(const struct walk *walk, size_t other, uint64_t count);
/* Do several threads let others go on by this object, which need not begin in the order of the run? */
bool walk_order_has_several(const struct walk *walk, uint64_t object);
/* It begins a host function, the item's: behind the call that pushed it. */
bool walk_order_host(const struct walk *walk);
/* The thread uses what was used so before: counts a use that nothing orders. */
void walk_order_use(const struct walk *walk, const struct recorded_use *before);
struct recorded_use walk_order_here(const struct walk *walk);
void walk_order_accesses(const struct walk *walk, const struct recorded_op *op);

/* Has it been seen to come after that? */
bool walk_order_is_behind(const struct walk *walk, const struct recorded_use *use);

/* ---- recorded_known.c: what a thread knows to be done -------------------------------------------- */

bool walk_known_begin(struct recorded_job *job, struct recorded_process *process);
/* A push or a record: what the order of the legacy stream puts in front of it. */
bool walk_known_action(const struct walk *walk, struct recorded_stream *stream);
/* The event is recorded there; the stream has got a wait for it. */
bool walk_known_record(const struct walk *walk, struct recorded_event *event,
                       struct recorded_stream *stream);
bool walk_known_wait(const struct walk *walk, struct recorded_stream *stream,
                     const struct recorded_event *event);
/* Does all work of the stream from now on come behind the first pushes of another one? */
bool walk_known_behind(const struct recorded_stream *stream, size_t other, uint64_t pushes);
/* The thread has learned that all of it so far is done. */
bool walk_known_stream(const struct walk *walk, struct recorded_stream *stream, bool by_wait);
bool walk_known_event(const struct walk *walk, struct recorded_event *event, bool by_wait);
/* It goes on after so many items of another one. */
bool walk_known_hear(const struct walk *walk, size_t other, uint64_t count);
/* Is it known that the first pushes of a stream, or the event's last record, are done: from a wait, or from anything? */
bool walk_knows(const struct walk *walk, const struct recorded_stream *stream, uint64_t pushes,
                bool by_wait);
bool walk_knows_record(const struct walk *walk, const struct recorded_event *event, bool by_wait);

/* ---- recorded_queries.c ------------------------------------------------------------------------- */

/* The thread has pushed to the stream; it has recorded the event there. */
bool walk_count_push(const struct walk *walk, struct recorded_stream *stream);
bool walk_note_record(const struct walk *walk, struct recorded_event *event,
                      struct recorded_stream *stream);
/* The thread knows that all work so far is done: it has waited for it, or a query has told it. */
bool walk_learn_stream(const struct walk *walk, struct recorded_stream *stream, bool by_wait);
bool walk_learn_event(const struct walk *walk, struct recorded_event *event, bool by_wait);
bool walk_learn_device(const struct walk *walk, int device);
bool walk_take_query_stream(const struct walk *walk);
bool walk_take_query_event(const struct walk *walk);

/* ---- recorded_copies.c: the walk's item, of each of these kinds -------------------------------- */

bool walk_take_reset(const struct walk *walk);
bool walk_take_alloc(const struct walk *walk);
bool walk_take_alloc_async(const struct walk *walk);
bool walk_take_free(const struct walk *walk);
bool walk_take_free_async(const struct walk *walk);
bool walk_take_copy(const struct walk *walk);
bool walk_take_copy_2d(const struct walk *walk);
bool walk_take_copy_batch(const struct walk *walk);
bool walk_take_fill(const struct walk *walk);
bool walk_take_touch(const struct walk *walk);

/* Its memory is given back: what was done to it without an order is a race. `waits`: for the device, first. */
bool walk_free_block(const struct walk *walk, size_t block, bool waits);

/* ---- recorded_maps.c: the walk's item, of each of these kinds ----------------------------------- */

bool walk_take_physical(const struct walk *walk);
bool walk_take_physical_kept(const struct walk *walk);
bool walk_take_physical_end(const struct walk *walk);
bool walk_take_map(const struct walk *walk);
bool walk_take_unmap(const struct walk *walk);

/* ---- recorded_values.c: the walk's item, of this kind ------------------------------------------- */

bool walk_take_value(const struct walk *walk, bool writes);

/* ---- recorded_groups.c: the walk's item, of each of these kinds -------------------------------- */

bool walk_take_comm(const struct walk *walk);
bool walk_take_comm_end(const struct walk *walk);
bool walk_take_exchange(const struct walk *walk);
bool walk_take_group(const struct walk *walk);
bool walk_take_group_end(const struct walk *walk);

#endif
