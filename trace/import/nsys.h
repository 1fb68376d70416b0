/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nsys.h - exports of Nsight Systems (SQLite) as ranks of a job: one for each process with work on a device.
 *
 * Tables and columns come and go between the versions of the schema, so the file is asked for them; what it lacks is
 * not told. A compressed export is inflated in memory.
 */
#ifndef SWSIM_NSYS_H
#define SWSIM_NSYS_H

#include "trace/job/job.h"

/* Add the processes of the export at `path`. STATUS_INPUT for a file that is no export, is damaged, or has no work of a
   device. */
enum status nsys_read(const char *path, struct job *job, struct diag *diag);

#endif
