/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kineto.h - traces of PyTorch's profiler (Kineto), which are JSON of the Chrome Trace Event format, as ranks of
 * a job: an object with `traceEvents`, or the bare array of them. Names of CUDA and of HIP; the categories of
 * all versions since 2021. Events that no plan needs (operators, queries, flows) are passed over and cost no memory.
 */
#ifndef SWSIM_KINETO_H
#define SWSIM_KINETO_H

#include "trace/job/bytes.h"
#include "trace/job/job.h"

/* Add the trace as a rank, or as one for each process in it. STATUS_INPUT for text that is no
   JSON or no trace, and for times that no clock shows. Events that end before they begin are left out, with a warning that counts them. */
enum status kineto_read(struct bytes *bytes, struct job *job, struct diag *diag);

#endif
