/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foretold.h - a prediction as a run in memory: what record.h puts into a store, for an account (account.h).
 *
 * Of one replication, or the mean account of several. Its streams have their work and their waits; threads are left out, and so are edges.
 */
#ifndef SWSIM_FORETOLD_H
#define SWSIM_FORETOLD_H

#include "account.h"
#include "predict.h"
#include "trace/trace.h"

/* Predict `plan` into *out, which lives in `arena`, with sorted spans; *varies: another seed may give another run.
   STATUS_INPUT where it comes to a deadlock; failures as for predict. */
enum status foretell(const struct plan *plan, const struct program_options *options, uint64_t seed,
                     struct arena *arena, struct trace *out, bool *varies, struct diag *diag);

/* Adds to *sum, the account of the prediction with this seed, those with the seeds behind it: so many in all. */
enum status foretell_more(const struct plan *plan, const struct program_options *options,
                          uint64_t seed, int replications, struct arena *arena,
                          struct run_account *sum, struct diag *diag);

#endif
