/*
 * orbit.h - the exact steady state of any plan: when does its run repeat itself?
 *
 * Where durations do not vary, what happens next is a function of the machine's state, iteration numbers
 * being relative, and of how long everybody who is busy has been. There are finitely many of both within
 * the bounds of a plan, so sooner or later a run comes to an instant that looks like an earlier one, and
 * from there on repeats what lies between: its time over its iterations is the exact time of an iteration.
 * (Ghamarian, Geilen, Stuijk et al. 2006 find the throughput of data-flow graphs so.)
 *
 * How long somebody has been busy says how long it will be only if nobody slows it down: where work shares a
 * device (sharing.h) nothing is found.
 *
 * Nothing need be fixed for this: threads may race for a queue, a lock or residency slots; whoever is first
 * is first again. So it is exact for the schedule that comes about with these durations, under every
 * driver. But only where no such race is (event_graph.h) is it also a bound that no run with the same mean
 * durations beats in the long run, and only there is a task's slack known.
 *
 * The critical cycle: every step leads back to the one that made it possible (enabling_steps.h), and in the steady
 * state to the same step of an earlier repetition in the end; going back arrives at a cycle.
 *
 *     |--fill--|------ one repetition ------|------ one repetition ------| ...
 *              t1                           t2
 */
#ifndef SWSIM_ORBIT_H
#define SWSIM_ORBIT_H

#include "event_graph.h"

/* Most iterations of a run that are looked at, and most looks at agents, one a step and agent. */
enum { ORBIT_MOST_ITERATIONS = 4096, ORBIT_MOST_LOOKS = 10000000 };

/* Durations are the means, and data do not end. STEADY_UNKNOWN, with `why`, where the run does not repeat
   itself within those limits. Failures as for simulate_run; *out is set on success only. */
enum status orbit_find(const struct program *program, const struct timing *timing,
                       struct steady *out, struct diag *diag);

#endif
