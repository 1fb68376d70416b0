/* SPDX-License-Identifier: Apache-2.0 */
/*
 * closed_sets.h - certificates by reduced states around agents that are drawn, not chosen.
 *
 * swcheck believes every closed set of agents with a step. So a writer may take any of them, in each state another one, and may
 * look for those that pass a violation by: here it takes what comes.
 */
#ifndef SWSIM_CLOSED_SETS_H
#define SWSIM_CLOSED_SETS_H

#include "base/diag.h"
#include "check/proof/proof.h"

/* A certificate that claims all that the steps of its set do not violate, which the caller frees; NULL: the set has more than
   `most` states, hangs, or the plan has none. */
char *closed_sets_certify(const struct plan *plan, const struct program_options *options,
                          size_t most, uint64_t seed, struct diag *diag);

#endif
