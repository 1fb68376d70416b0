/*
 * launch.h - a run with a process for each rank: who starts them, and how they end.
 *
 * By itself swrun forks one process a rank, looks after them and makes the result. Under mpirun or srun
 * the processes are there already: each takes its number from the environment, rank 0's starts one more
 * for the rank itself and does what swrun does by itself; the others only run their rank. On one machine
 * they meet under a name; on several, rank 0 tells the others through MPI where to reach it, which is
 * all that MPI is used for.
 */
#ifndef SWSIM_LAUNCH_H
#define SWSIM_LAUNCH_H

#include "net/rendezvous.h"
#include "gpu/exec/runtime.h"

struct launch {
    int rank, size;        /* from mpirun or srun; size 0: by nobody */
    bool several_machines; /* these are on */
    const char *name;      /* where these meet; NULL: nobody said */
    char job[64];          /* else the job's name */
    int runs;              /* started so far */
    bool told;             /* rank 0 knows, and says, how the last run ended here */
    bool met;              /* `place` is known to all ranks */
    struct meeting_place place;
    struct listener *listener; /* of rank 0, once met */
    const atomic_int *wish;    /* what the user wants: a value of gpu/exec/runtime.h */
};

/* Looks at the environment. */
void launch_find(struct launch *launch);
void launch_fini(struct launch *launch);
/* Is the result of a run made here, or has this process only a rank? */
bool launch_is_spokesman(const struct launch *launch);

/* Rank 0 says where it is to be found; needed, and done, only on several machines. On another rank a
   failure without a message is one that rank 0 explains. */
enum status launch_meet(struct launch *launch, struct diag *diag);
/* This rank cannot begin: rank 0 is told why, if it comes at all. It has failed itself if it does not. */
void launch_report_failure(struct launch *launch, enum status status, const struct diag *why);

/* Like runtime_run, with all ranks. Where launch_is_spokesman is false *out is not set and diag stays empty,
   the messages being said elsewhere. */
enum status launch_run(struct launch *launch, const struct plan *plan,
                       const struct runtime_options *options, struct runtime_result *out,
                       struct diag *diag);

#endif
