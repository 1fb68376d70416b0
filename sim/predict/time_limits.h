/* SPDX-License-Identifier: Apache-2.0 */
/*
 * time_limits.h - which operation of a communicator exceeds its time limit first.
 *
 * A watchdog counts from the call of an operation to its end on that rank, as those of torch.distributed do. A prediction simulates
 * an operation to its end however long that takes; the job would not come to it.
 */
#ifndef SWSIM_TIME_LIMITS_H
#define SWSIM_TIME_LIMITS_H

#include "sim/engine/simulate.h"

/* An operation that exceeds the limit of its communicator. */
struct time_overrun {
    int op, rank;      /* op: program->ops */
    int64_t iteration; /* as effects have it */
    int64_t called_ns;
    int64_t taken_ns; /* from the call to the end; -1: it never ends */
    int64_t limit_ns; /* 0: no operation exceeds its limit */
};

/* The one whose watchdog acts first in the run of a replication; of several at one time that of the lowest communicator and
   member. Without limits nothing is simulated. */
enum status time_limits_find(const struct program *program, const struct timing *timing,
                             const struct simulate_options *options, struct time_overrun *out,
                             struct diag *diag);

#endif
