/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serial.h - whether a run accesses its buffers in the order of a serial run. Private to the machine.
 *
 * A serial run executes iteration after iteration, in each the tasks in topological order
 * (program->serial_place). Two runs that order the accesses of every buffer instance alike, writes with
 * writes and writes with reads, compute the same. With options.serial a state counts, per rank and task that
 * writes, the iterations whose accesses have been made; so each access knows which writes came before it:
 *
 *     of task W, before access (X, i):    serial run    W(0) .. W(i)    if W is before X, else W(0) .. W(i - 1)
 *                                         this run      made[W] of them
 *
 * A read may lag by as many iterations as `staleness:` allows its buffer: by the same number behind each
 * writer, so that it sees what a serial run had some iterations ago.
 */
#ifndef SWSIM_SERIAL_H
#define SWSIM_SERIAL_H

#include "machine_internal.h"

/* Task op->task makes its accesses of `iteration`. An order that a serial run does not have is a violation of
   PROPERTY_SERIAL. Does nothing without options.serial. */
void serial_access(struct work_state *w, const struct op *op, int rank, int64_t iteration);

#endif
