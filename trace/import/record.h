/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - the measured run of an imported job, as a trace like those of our own runs.
 *
 * A span for each work on its stream, one for each call that pushes, waits or records on its thread: a wait where
 * the thread waits for the device. The steps of the profiler are the iterations. Where annotations name passes of
 * microbatches (passes.h), each rank has a schedule with a span for each.
 */
#ifndef SWSIM_RECORD_H
#define SWSIM_RECORD_H

#include "import.h"
#include "trace/trace.h"

/* Fills `trace`, which trace_init has begun. STATUS_SYSTEM without memory. */
enum status import_record(const struct imported *imported, struct trace *trace, struct diag *diag);

#endif
