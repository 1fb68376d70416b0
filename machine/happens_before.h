/* SPDX-License-Identifier: Apache-2.0 */
/*
 * happens_before.h - knowledge of accesses, and the races it reveals; private to the machine.
 *
 * machine_internal.h defines rows. Every function does nothing when the plan declares no accesses
 * (row_words is 0).
 */
#ifndef SWSIM_HAPPENS_BEFORE_H
#define SWSIM_HAPPENS_BEFORE_H

#include "machine_internal.h"

/* True if there is knowledge, in the state or beside it. */
static inline bool hb_is_kept(const struct work_state *w)
{
    return w->clocks || w->p->at.row_words;
}

/* to := to | from. */
void hb_join(struct work_state *w, int to, int from);
void hb_copy(struct work_state *w, int to, int from);
void hb_clear(struct work_state *w, int index);
/* Rows first .. first + count - 1 move one down; the last becomes zero. */
void hb_shift(struct work_state *w, int first, int count);

/* Number the ticks of each agent anew, from 1, by what the state can still tell apart: live accesses that the same rows
   know get one tick. */
void hb_renumber(const struct program *p, int32_t *c);

/* Check and remember the accesses of `op` by `agent`, whose knowledge is row `self`. */
void hb_access(struct work_state *w, const struct op *op, int64_t iteration, int self, int agent);

/* The allocation of `buffer` is called, or takes effect, by the owner of row `self`. */
void hb_allocated(struct work_state *w, int buffer, enum knowledge_of kind, int self);
/* True if row `self` knows that the allocation of `buffer` has been called. True where the thread that called it is the
   only one that asks. */
bool hb_knows_call(struct work_state *w, int buffer, int self);

/* Forget the accesses to the buffers of an iteration on a rank, which get new instances. */
void hb_forget_iteration(struct work_state *w, int rank, int64_t iteration);

/* True if there is a live access to `buffer` by an agent other than `agent` that is not in row `self`, and by no stream
   that `record_stream` has named. The accessing agent goes to *other. */
bool hb_unknown_access(struct work_state *w, int buffer, int self, int agent, int *other);

#endif
