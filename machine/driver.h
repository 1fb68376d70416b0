/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.h - the two drivers (doc/semantics.md, section 4); private to the machine.
 *
 * A driver is a thread whose operations are ENQUEUE (clock) or ADMIT (data-flow), and RETIRE.
 * driver.c has the parts of both: admitting an iteration, handing an instance to its worker,
 * retiring. clock.c and dataflow.c decide when an instance is handed out.
 */
#ifndef SWSIM_DRIVER_H
#define SWSIM_DRIVER_H

#include "machine_internal.h"

/* The driver's phases, kept in its THREAD_PC. */
enum { PHASE_ADMIT, PHASE_RETIRE, PHASE_END };

bool driver_can_step(const struct program *p, int32_t *c, int rank);
void driver_step(struct work_state *w, int rank);
/* The iteration its next step is about to admit, if it has not yet. */
int64_t driver_next(const struct program *p, const int32_t *rank_state);
/* True if the driver waits for the data loader to decide whether the next iteration exists. */
bool driver_asks_for_data(const struct program *p, int32_t *c, int rank);
/* Give iteration `iteration` its context: window entry, slots, buffers; checks the bound. */
void driver_admit(struct work_state *w, int rank, int64_t iteration);
/* Clear the CPU signal and the event of (task, iteration); the iteration becomes the slot's owner. */
void driver_arm_slot(struct work_state *w, int rank, int task, int64_t iteration);
/* Put (task, iteration) into its worker's queue. */
void driver_hand_out(struct work_state *w, int rank, int task, int64_t iteration, int64_t ticket);
/* Update the driver's phase, after a change that is no step of the driver. */
void driver_settle(const struct program *p, int32_t *c, int rank);
/* True if retiring, by the plan's rule, waits for the end of the submissions (driver_awaits_submission), or for the
   event of this task. Afterwards the driver knows the accesses before them. */
bool driver_awaits_submission(const struct program *p);
bool driver_awaits_event(const struct program *p, int task);
/* Work of an iteration has been submitted, or finished: the first unfinished one may be a later one.
   Queues are FIFO, so iterations are finished in order. */
void driver_finish(struct work_state *w, int rank);
/* True if this iteration has work that is not submitted, or not finished on the device. */
bool driver_unfinished(const struct program *p, int32_t *c, int rank, int64_t iteration);

/* clock.c */
void clock_enqueue(struct work_state *w, int rank);
int64_t clock_newest(const struct program *p, const int32_t *rank_state);

/* dataflow.c */
/* Admit an iteration; behind the last one, pass the turns of iterations that do not exist. */
void dataflow_admit(struct work_state *w, int rank);
/* True if all iterations have been admitted, and the turn of one that does not exist has come. */
bool dataflow_has_void_turn(const struct program *p, int32_t *c, int rank);
void dataflow_complete(struct work_state *w, int rank, int task, int64_t iteration);

#endif
