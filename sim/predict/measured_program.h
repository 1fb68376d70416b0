/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measured_program.h - a measured run of a pipeline, ready to be looked at again: the plan it kept, as its device
 * took it, and the program that it executed.
 */
#ifndef SWSIM_MEASURED_PROGRAM_H
#define SWSIM_MEASURED_PROGRAM_H

#include "machine/program.h"
#include "trace/trace.h"

struct measured_program {
    struct arena arena;
    struct plan kept,
        plan; /* as the store has it; as the device took it (plan/strip_device_rules.h) */
    struct program_options options; /* driver, iterations, ranks, depth of the run */
    struct program *program;
};

/* The run that `trace` describes; of it only info and stats are looked at. STATUS_INPUT when it is no
   run of a pipeline that swrun could have made. *measured is set on success only, must stay where it is,
   and is ended with measured_program_close. A run of an older version does not say its depth: then it is the
   plan's. */
enum status measured_program_open(struct measured_program *measured, const struct trace *trace,
                                  struct diag *diag);
void measured_program_close(struct measured_program *measured);

#endif
