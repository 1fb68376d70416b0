/*
 * launch.h - a run with a process for each rank: who starts them, and how they end.
 *
 * By itself swrun forks one process a rank, looks after them and makes the result. Under mpirun or srun
 * the processes are there already: each takes its number from the environment, rank 0's starts one more
 * for the rank itself and does what swrun does by itself; the others only run their rank. All of them
 * must be on one machine.
 */
#ifndef SWSIM_LAUNCH_H
#define SWSIM_LAUNCH_H

#include "gpu/runtime.h"

struct launch {
    int rank, size;         /* from mpirun or srun; size 0: by nobody */
    const char *name;       /* where these meet; NULL: nobody said */
    char job[64];           /* else the job's name */
    int runs;               /* started so far */
    const atomic_int *wish; /* what the user wants: a value of gpu/runtime.h */
};

/* Looks at the environment. STATUS_USAGE: ranks that cannot meet. */
enum status launch_find(struct launch *launch, struct diag *diag);
/* Is the result of a run made here, or has this process only a rank? */
bool launch_speaks(const struct launch *launch);

/* Like runtime_run, with all ranks. Where launch_speaks is false *out is not set and diag stays empty,
   the messages being said elsewhere. */
enum status launch_run(struct launch *launch, const struct plan *plan,
                       const struct runtime_options *options, struct runtime_result *out,
                       struct diag *diag);

#endif
