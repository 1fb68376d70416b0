/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.h - a run with a process for each rank: how the processes start, connect and end.
 *
 * By itself swrun forks one process a rank, supervises them and makes the result. Under mpirun or srun
 * the processes are there already: each takes its number from the environment, rank 0's starts one more
 * for the rank itself and does what swrun does by itself; the others only run their rank. They connect through a
 * rendezvous on their machine. Processes on several machines are refused.
 */
#ifndef SWSIM_LAUNCH_H
#define SWSIM_LAUNCH_H

#include "gpu/net/rendezvous.h"
#include "gpu/exec/runtime.h"

enum { LAUNCH_NAME_BYTES = 60 }; /* of the name of a rendezvous */

struct launch {
    int rank, size;                  /* from mpirun or srun; size 0: started by neither */
    const char *name;                /* of the rendezvous; NULL: not given */
    char job[LAUNCH_NAME_BYTES + 1]; /* else the job's name */
    int runs;                        /* started so far */
    bool told;                       /* rank 0 prints how the last run ended here */
    const atomic_int *wish;          /* of the user: a value of gpu/exec/runtime.h */
};

/* Fill rank, size and name from the environment. STATUS_USAGE: it is odd, or the ranks are on several machines, as
   each of them finds. */
enum status launch_find(struct launch *launch, struct diag *diag);
/* True if the result of a run is made here; false if this process has only a rank. */
bool launch_is_spokesman(const struct launch *launch);

/* This rank cannot begin: report the reason to rank 0, unless that has failed itself. */
void launch_report_failure(struct launch *launch, enum status status, const struct diag *why);

/* Like runtime_run, with all ranks. Where launch_is_spokesman is false *out is not set and diag stays empty,
   rank 0 prints the messages. */
enum status launch_run(struct launch *launch, const struct plan *plan,
                       const struct runtime_options *options, struct runtime_result *out,
                       struct diag *diag);

#endif
