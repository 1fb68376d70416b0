/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded_run.h - the run that was recorded, as a trace like those of our own runs.
 *
 * A span for each operation of a device, from CUPTI's records, on its stream; one for each call that pushes or waits, on its
 * thread. Streams, threads and operations have the names of the plan. A rank waits in an operation of several ranks
 * for those that come later: all but the least time over the ranks. There are no iterations.
 */
#ifndef SWSIM_RECORDED_RUN_H
#define SWSIM_RECORDED_RUN_H

#include "recorded_internal.h"

/* Fills options->run, behind recorded_write. STATUS_INPUT: no operation has a measured time. */
enum status recorded_run(struct recorded_job *job);

#endif
