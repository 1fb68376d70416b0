/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processes.h - several processes in one trace of PyTorch's profiler, as files that were joined have them: a rank each.
 *
 * A process is what its calls name; the rows of devices name none. A work belongs to the process with its correlation
 * id. Where two have it, as those that do the same do, the call nearest in the file is meant; and a row of a device
 * belongs as a whole to the process that has nearly all of it. Where each has a device of its own, the ranks have the numbers
 * of their devices. Without a device, processes with operations of gloo are
 * ranks, numbered in the order in which the file names them if they are as many as the job has.
 */
#ifndef SWSIM_PROCESSES_H
#define SWSIM_PROCESSES_H

#include "trace/job/job.h"

/* Replace the rank, as its file has it, by one for each process with work on a device, in the order in which the file
   names them. It stays as it is where there is one such process. STATUS_SYSTEM without memory. */
enum status processes_split(struct job *job, size_t rank, struct diag *diag);

#endif
