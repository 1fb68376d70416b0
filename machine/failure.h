/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failure.h - faults and their consequences (doc/semantics.md, section 4, "Failures"), and communicators that are
 * aborted; private to the machine.
 *
 * Programs built with `faults` have an agent for each possible fault, and at most one of these steps
 * in a run: a task fails, the data of one rank end early, a rank dies. The consequence depends on the
 * plan's `on_failure`:
 *
 *     none     the failing thread is gone; no other agent is told
 *     wake     its rank stops: nothing more is handed out, and threads at a wait for another thread
 *              give up. The device finishes its queued work
 *     group_abort  wake, and a watchdog for each communicator: once a member is stopped, dead or out of
 *              data, it ends all operations of the communicator with an error and stops the other
 *              members
 *     abort    the same on each rank by itself: a watchdog for each member. One that has aborted its communicator
 *              waits for the device of its rank to be idle before another of that rank can act
 *
 *     cells, behind all others          +-----------------------+
 *       where something can abort       | aborted: each member  |
 *       with options.faults             | fault + 1, 0: none    |   program->faults
 *                                       | fate of each rank     |   enum fate
 *                                       | last abort of a rank  |   `abort`
 *                                       +-----------------------+
 *
 * Without `faults` the last three and the agents do not exist, and every question about them is answered no.
 */
#ifndef SWSIM_FAILURE_H
#define SWSIM_FAILURE_H

#include "machine_internal.h"

enum fate { FATE_RUNS, FATE_STOPPED, FATE_DEAD };

static inline bool failure_happened(const struct program *p, const int32_t *c)
{
    return p->options.faults && c[p->at.faults] != 0;
}
static inline int32_t *fate_cell(const struct program *p, int32_t *c, int rank)
{
    return c + p->at.faults + 1 + rank;
}
/* The last communicator, + 1, that a watchdog of the rank has aborted. */
static inline int32_t *aborting_cell(const struct program *p, int32_t *c, int rank)
{
    return c + p->at.faults + 1 + p->ranks + rank;
}
static inline int32_t *aborted_cell(const struct program *p, int32_t *c, int comm, int member)
{
    return c + p->at.aborted + p->comms[comm].first_member + member;
}
static inline bool failure_is_dead(const struct program *p, int32_t *c, int rank)
{
    return p->options.faults && *fate_cell(p, c, rank) == FATE_DEAD;
}
static inline bool failure_is_stopped(const struct program *p, int32_t *c, int rank)
{
    return p->options.faults && *fate_cell(p, c, rank) == FATE_STOPPED;
}
static inline bool failure_is_aborted(const struct program *p, int32_t *c, int comm, int member)
{
    return p->can_abort && *aborted_cell(p, c, comm, member);
}

/* True if this fault may happen now. */
bool failure_can_happen(const struct program *p, int32_t *c, const struct fault *fault);
void failure_happens(struct work_state *w, const struct fault *fault);

/* True if this is the worker whose task failed. It takes no further instance. */
bool failure_has_ended(const struct program *p, const int32_t *c, int thread);
/* True if a thread that stands at `op` gives up, because its rank has stopped. */
static inline bool failure_gives_up(const struct program *p, int32_t *c, int thread,
                                    const struct op *op)
{
    return failure_is_stopped(p, c, p->threads[thread].rank) && op_waits(op->kind) == WAITS_THREADS;
}
void failure_give_up(struct work_state *w, int thread);

/* The operations of a member that have been or will be issued end with an error; what it has sent or awaits is gone. */
void failure_abort_member(struct work_state *w, int comm, int member);
/* True if the watchdog of a communicator can abort it, on this rank or (-1) on all: it has a reason, and it has not
   done so yet. */
bool failure_can_abort(const struct program *p, int32_t *c, int comm, int rank);
void failure_abort(struct work_state *w, int comm, int rank);
/* The communicator whose watchdog on this rank has aborted it and waits for the device; -1: none does. */
int failure_abort_waits(const struct program *p, int32_t *c, int rank);

#endif
