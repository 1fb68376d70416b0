/*
 * rerun.h - a measured run of a pipeline, ready to be looked at again: the plan it kept, as its device
 * took it, and the program that it executed.
 */
#ifndef SWSIM_RERUN_H
#define SWSIM_RERUN_H

#include "machine/program.h"
#include "trace/trace.h"

struct rerun {
    struct arena arena;
    struct plan kept, plan;         /* as the store has it; as the device took it (plan/relax.h) */
    struct program_options options; /* driver, iterations, ranks, depth of the run */
    struct program *program;
};

/* The run that `trace` describes; of it only info and stats are looked at. STATUS_INPUT when it is no
   run of a pipeline that swrun could have made. `rerun` is set on success only, must stay where it is,
   and is ended with rerun_close. A run of an older version does not say its depth: then it is the
   plan's. */
enum status rerun_open(struct rerun *rerun, const struct trace *trace, struct diag *diag);
void rerun_close(struct rerun *rerun);

#endif
