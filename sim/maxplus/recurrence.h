/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recurrence.h - a clock-driven plan in time, by a recursion over its event graph.
 *
 * Where the order of everything is fixed (event_graph.h), an event happens when the latest of its
 * causes does: one maximum and one addition each, no queue, no state of the machine. The results are
 * those of the event-driven engine to the nanosecond, stalls and their causes included, several
 * times as fast; and RANDOM_LANES replications can be computed side by side.
 *
 * A recurrence is made once for a program and a timing, which must outlive it, and then read by any
 * number of threads.
 */
#ifndef SWSIM_RECURRENCE_H
#define SWSIM_RECURRENCE_H

#include "event_graph.h"

struct recurrence;

/* *out is NULL, and `why` says why, where the plan has no recurrence. STATUS_SYSTEM when memory runs
   out. */
enum status recurrence_build(const struct program *program, const struct timing *timing,
                             struct recurrence **out, char why[EVENT_GRAPH_WHY], struct diag *diag);
void recurrence_close(struct recurrence *recurrence);

/* One replication, as simulate_run; the observer must want progress only. `steps` is zero: no machine
   takes any. Where an iteration is over just when another is admitted and times do not tell which is first,
   the run is repeated by simulate_run. */
enum status recurrence_run(const struct recurrence *recurrence,
                           const struct simulate_options *options, struct simulation_result *out,
                           struct diag *diag);

/* The replications from options->replication on, one a lane; what is in flight, and the progress, are those
   of the first. On failure none is set. */
enum status recurrence_run_lanes(const struct recurrence *recurrence,
                                 const struct simulate_options *options,
                                 struct simulation_result out[RANDOM_LANES], struct diag *diag);

#endif
