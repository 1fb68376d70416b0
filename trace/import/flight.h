/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flight.h - dumps of PyTorch's flight recorder, one a rank, as threads of a job: which collectives, sends and receives each rank
 * called, in its order.
 *
 * A dump has neither streams nor the host's waits, so the plan stands under hypotheses, which its `about` says:
 * every process group has a stream and a communicator of its own, which its sends and receives share, or those in no
 * batch have one for each two ranks, as where NCCL was not initialised eagerly; the host waits
 * for each operation, or for none; operations take residency slots, or none; a rank without a dump has called what the
 * others called. Dumps are rings: what is older than the oldest entry of another member of the group is left out.
 */
#ifndef SWSIM_FLIGHT_H
#define SWSIM_FLIGHT_H

#include "flight_calls.h"
#include "trace/job/job.h"

struct flight_options {
    const char *name;
    bool host_waits;   /* for each operation; else for none */
    bool pair_streams; /* a message that is in no batch runs on a communicator of its two ranks */
    bool launch_order; /* operations of a rank run in the order of their launches */
    int64_t sm_slots;  /* operations that can be resident at once; 0: any number */
};

/* Adds a thread for each dump to the job, and what they name to its plan. Fails without memory only. Warns of ranks without a dump, and of calls that are not
   over and whose counterparts a ring has lost. */
enum status flight_threads(const struct flight_job *job, const struct flight_options *options,
                           struct job *out, struct diag *diag);

#endif
