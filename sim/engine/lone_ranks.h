/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lone_ranks.h - ranks that meet in collectives and nowhere else, each simulated by itself; private to sim/engine/.
 *
 * Ranks of a pipeline that differ in their times at most are in as many states together as the product of those of each, and
 * none is met twice. So each has a simulation of its own, of a program of one rank, and those with the same times share a memo.
 * It goes on until it waits for others:
 *
 *     rank 0   --- a ----- comes at 7, takes 5 ---|............| 15       S = 10: the last has come
 *     rank 1   ------ b ---------- comes at 10, takes 4 ---|...| 15       E = 15: S and the longest time
 *
 * A rank that comes to a collective cannot leave it before its own time for it is over (its horizon). When the last one
 * comes, the end is put where it belongs in each rank, and what the collective has waited is booked as a wait for peers.
 *
 * What a rank does between two collectives depends on nothing else, so the figures are those of all ranks simulated
 * together. Where that is not certain (a collective without duration, ranks that come to different ones, a rank that is
 * never over) they are simulated together after all.
 */
#ifndef SWSIM_LONE_RANKS_H
#define SWSIM_LONE_RANKS_H

#include "simulation.h"

/* As simulate_run. Not *done: the ranks are to be simulated together. */
enum status lone_ranks_run(const struct program *program, const struct timing *timing,
                           const struct simulate_options *options, struct simulation_result *out,
                           bool *done, struct diag *diag);

/* The simulation's rank has come to this operation of a collective, which takes it so long. Its event is there. */
void lone_rank_comes(struct simulation *sim, int op, int64_t iteration, int64_t ns);

#endif
