/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stalls.h - why the streams of a measured run were idle, for its picture.
 *
 * A device logs what its streams do, and of their waits only those for events. What else a stream
 * lacked, the machine knows (observe.h).
 */
#ifndef SWSIM_STALLS_H
#define SWSIM_STALLS_H

#include "base/diag.h"
#include "trace/trace.h"

/* Does a run tell enough: measured, to its end, of a pipeline, with its plan? A serial run does not: it
   executed another plan than the one it keeps (gpu/exec/variant.h). */
bool stalls_known(const struct run_info *info);

/* Replace the waits of the trace's streams by spans that say what each was idle for, add the lines of its ledger, and sort the
   spans. Its steps are loaded; without any nothing changes. Failures as for measured_program_open and observe. */
enum status stalls_add(struct trace *trace, struct diag *diag);

#endif
