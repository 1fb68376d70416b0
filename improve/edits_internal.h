/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edits_internal.h - shared by the files of the edits.
 *
 *     edits.c           prices, the sorted list, dispatch by form
 *     edits_pipeline.c  tasks, stages, dependences, orders, knobs of the drivers
 *     edits_host.c      operations of host threads
 *     edits_calls.c     calls that differ between ranks, or that a rank leaves out
 *     edits_programs.c  rank programs, and the machine's knobs
 *
 * Each proposes edits, makes them, and describes them.
 */
#ifndef SWSIM_EDITS_INTERNAL_H
#define SWSIM_EDITS_INTERNAL_H

#include "edits.h"
#include "base/sort.h"

#include <string.h>

/* Edits further than this from every suspect are not proposed; 1 is one step. */
enum { NEAR_ENOUGH = 8, FAR_AWAY = 1000 };

struct proposer {
    const struct plan *plan;
    const struct suspects *suspects;
    const struct edits_end *end;
    bool hang; /* deadlock, drain, mismatch; otherwise an order is missing */
    struct arena *arena;
    struct edit_list *out;
    int *
        next_alike; /* host: per thread the next one that does the same on another rank, the last one's is the first */
    int **near; /* host: near[thread][op]; programs: near[rank][action]; pipeline: near[0][task] */
};

/* Add an edit at its price plus `extra` plus 2 for each step of `distance` to the next suspect. */
void propose(struct proposer *proposer, struct edit edit, int distance, int extra);

static inline bool edits_are_over(const struct proposer *proposer)
{
    return proposer->end && proposer->end->is_over(proposer->end->arg);
}

void propose_pipeline(struct proposer *proposer);
void propose_host(struct proposer *proposer);
void propose_faster(struct proposer *proposer);
void propose_calls(struct proposer *proposer);
void propose_programs(struct proposer *proposer);
void propose_machine(struct proposer *proposer);

/* Each makes an edit of its form; false, without a message, when memory is exhausted. */
bool apply_pipeline(struct plan *plan, const struct edit *edit);
bool apply_host(struct plan *plan, const struct edit *edit);
bool apply_list(struct plan *plan, const struct edit *edit);
bool apply_common(struct plan *plan, const struct edit *edit);

const char *describe_pipeline(const struct plan *plan, const struct edit *edit,
                              struct arena *arena);
const char *describe_host(const struct plan *plan, const struct edit *edit, struct arena *arena);
const char *describe_list(const struct plan *plan, const struct edit *edit, struct arena *arena);
const char *describe_common(const struct plan *plan, const struct edit *edit, struct arena *arena);

static inline bool edits_is_event_op(const struct host_op *op)
{
    return op_operand(op->kind) == OPERAND_EVENT && op->object >= 0;
}

static inline bool edits_communicates(const struct task *task)
{
    return task->work.kind == WORK_COLLECTIVE || task->work.kind == WORK_SEND ||
           task->work.kind == WORK_RECV;
}

/* Room for one operation before operation `at`, in the same repeat, or behind it; `at` may be the end of the thread.
   NULL without memory. */
struct host_op *edits_insert_before(struct plan *plan, int t, size_t at, enum op_kind kind);
struct host_op *edits_insert_behind(struct plan *plan, int t, size_t at, enum op_kind kind);

/* The number of the piece of a folded thread that has operation `at`: odd in a repeat. */
size_t edits_piece(const struct host_thread *thread, size_t at);
bool apply_call(struct plan *plan, const struct edit *edit);

/* "collective grads", "send x0 + recv x1", "record e"; of several alike in the thread, which. NULL: no memory. */
const char *edits_label(const struct plan *plan, int t, int i, struct arena *arena);
const char *describe_call(const struct plan *plan, const struct edit *edit, const char *place,
                          struct arena *arena);

/* The first host thread of `rank` that does the same as thread `t` in the same order; -1: none. */
int edits_like_on_rank(const struct plan *plan, int t, int rank);

/* The stages in use, without those of task `skip`. */
void edits_stage_range(const struct pipeline *pipeline, size_t skip, int *lowest, int *highest);

/* `stem`, or with a number behind it, so that it is in none of the tables; NULL: no memory. */
const char *fresh_name(struct plan *plan, const struct names *names, const char *stem);

/* Take item `from` out of an array and put it back so that it ends at index `to`. */
void shift_item(void *array, size_t size, size_t from, size_t to, void *scratch);

#endif
