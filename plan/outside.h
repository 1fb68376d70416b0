/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outside.h - the buffers of a plan that hold values before anything is written.
 *
 * Those that `inputs:` names; without that key the shared buffers of a pipeline, and of a host program those that no
 * operation writes or allocates.
 */
#ifndef SWSIM_OUTSIDE_H
#define SWSIM_OUTSIDE_H

#include "plan.h"

/* outside[b], for each of plan->buffers: does it come from outside? */
void outside_find(const struct plan *plan, bool *outside);

#endif
