/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulator.h - the engines behind one door.
 *
 *     event        the machine's steps in the order of their times (simulate.h): everything
 *     recurrence   a recursion over the event graph (recurrence.h): clock-driven plans of fixed order
 *     batched      the same for RANDOM_LANES replications side by side
 *
 * Whichever runs, the results are the same to the nanosecond; only `steps` tells the engine, since it is
 * zero where no machine takes any. A simulator refers to its program and timing and may be used by
 * any number of threads at once.
 */
#ifndef SWSIM_SIMULATOR_H
#define SWSIM_SIMULATOR_H

#include "sim/engine/simulate.h"

/*            NAME        key */
#define ENGINE_LIST(X)                                                                             \
    X(AUTO, "auto")                                                                                \
    X(EVENT, "event")                                                                              \
    X(RECURRENCE, "recurrence")                                                                    \
    X(BATCHED, "batched")

enum engine {
#define X(name, key) ENGINE_##name,
    ENGINE_LIST(X)
#undef X
};

const char *engine_key(enum engine engine);

struct simulator;

/* ENGINE_AUTO takes the fastest that applies. STATUS_USAGE when another is wanted and does not apply,
   with the reason in diag. *out is set on success only. */
enum status simulator_open(const struct program *program, const struct timing *timing,
                           enum engine wanted, struct simulator **out, struct diag *diag);
void simulator_close(struct simulator *simulator);

/* The engine of `replications` replications. */
enum engine simulator_engine(const struct simulator *simulator, int replications);
/* How many replications are best done in one go: 1 or RANDOM_LANES. */
int simulator_lanes(const struct simulator *simulator);

/* `count` replications from options->replication on, at most simulator_lanes of them. An observer
   watches the first one and is told its spans, iterations and steps by the event-driven engine. On failure
   nothing is in `out`. */
enum status simulator_run(const struct simulator *simulator, const struct simulate_options *options,
                          int count, struct simulation_result *out, struct diag *diag);

#endif
