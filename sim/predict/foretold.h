/*
 * foretold.h - a prediction as a run in memory: what record.h puts into a store, for an account (account.h).
 *
 * One replication. Its streams have their work and their waits; threads are left out, and so are edges.
 */
#ifndef SWSIM_FORETOLD_H
#define SWSIM_FORETOLD_H

#include "predict.h"
#include "trace/trace.h"

/* Predict `plan` into *out, which lives in `arena`, with sorted spans. STATUS_INPUT where it comes to a deadlock;
   failures as for predict. */
enum status foretell(const struct plan *plan, const struct program_options *options, uint64_t seed,
                     struct arena *arena, struct trace *out, struct diag *diag);

#endif
