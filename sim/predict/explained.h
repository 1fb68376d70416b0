/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explained.h - a run of a store with its ledger (trace/ledger.h), whoever made it.
 *
 * An import and a prediction are stored with their ledgers. That of a pipelined run is made here: the machine takes
 * the run's steps once more (stalls.h). Other runs have none.
 */
#ifndef SWSIM_EXPLAINED_H
#define SWSIM_EXPLAINED_H

#include "trace/store.h"

/* Load the whole run (STORE_LATEST: the newest) into `arena`, its steps left out where they tell nothing. A note says
   where an older store has no ledger. Failures as for store_load and stalls_add. */
enum status explained_load(struct store *store, int64_t run, struct arena *arena, struct trace *out,
                           struct diag *diag);

#endif
