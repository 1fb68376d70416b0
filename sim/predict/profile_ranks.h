/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile_ranks.h - what passes and messages of rank programs really took: costs by stage and edge from a measured run.
 *
 * A pass on a stream waits for nothing once it has begun, so a run need not be serial, and may be one of another
 * schedule of the same stages. Of all microbatches the median is taken: the first ones warm up.
 *
 *     F I W B    from their starts to their ends, by stage, instead of `stages:`, `layers:` and `times:`
 *     messages   from the later start of its two ends to their later end, by edge, instead of `p2p:`
 *
 * A backward pass that was measured only as a whole is divided as the plan divides it, else in halves; one measured only
 * as I and W is both together. A pass that was not measured keeps the plan's costs.
 */
#ifndef SWSIM_PROFILE_RANKS_H
#define SWSIM_PROFILE_RANKS_H

#include "profile.h"

/* As profile_read, of rank programs: `run`, or the newest finished run of a plan of that name. STATUS_INPUT also where
   the run has other stages. The profile has no parts but `drawn` of `operations`: passes of a stage, and edges. */
enum status profile_read_ranks(struct store *store, int64_t run, const struct plan *plan,
                               struct profile *out, struct diag *diag);

#endif
