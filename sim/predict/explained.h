/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explained.h - loads a stored run together with its ledger, the account of its idle time (trace/trace.h).
 *
 * An import and a prediction are stored with their ledgers. That of a pipelined run is made here: the machine takes
 * the run's steps once more (observe.h). Other runs have none.
 */
#ifndef SWSIM_EXPLAINED_H
#define SWSIM_EXPLAINED_H

#include "trace/store.h"

/* Load the whole run (STORE_LATEST: the newest) into `arena`, its steps left out where they tell nothing. A note says
   where an older store has no ledger. Failures as for store_load and stalls_add. */
enum status explained_load(struct store *store, int64_t run, struct arena *arena, struct trace *out,
                           struct diag *diag);

/* True if a run tells enough: measured, to its end, of a pipeline, with its plan. A serial run does not: it executed
   another plan than the one it keeps (gpu/exec/variant.h). */
bool stalls_known(const struct run_info *info);

/* Replace the waits of the trace's streams by spans that say what each was idle for, add the lines of its ledger, and sort the
   spans. Its steps are loaded; without any nothing changes. Failures as for measured_program_open and observe. */
enum status stalls_add(struct trace *trace, struct diag *diag);

#endif
