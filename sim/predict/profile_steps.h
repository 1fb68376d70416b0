/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile_steps.h - what the operations of an imported job took in each of its steps.
 *
 * An import stores the measured run with its plan, whose operations have the times of the whole trace, the device's own
 * gaps in front of them, and of a collective the least of its ranks. An operation of one step has others like it in the
 * other steps: with the same rank, stream and name, and the same number among them within the step. Their times are its
 * distribution. CPU times stay as the plan has them.
 */
#ifndef SWSIM_PROFILE_STEPS_H
#define SWSIM_PROFILE_STEPS_H

#include "profile.h"

/* A measured run that an import stored? */
bool profile_is_imported(const struct run_info *info);

/* As profile_read, of host programs and of a run that was imported from a trace with two steps or more. */
enum status profile_read_steps(struct store *store, int64_t run, const struct plan *plan,
                               struct profile *out, struct diag *diag);

#endif
