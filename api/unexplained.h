/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unexplained.h - an imported plan whose job was idle for reasons that its trace does not tell.
 */
#ifndef SWSIM_UNEXPLAINED_H
#define SWSIM_UNEXPLAINED_H

#include "plan/diag.h"
#include "plan/plan.h"

/* STATUS_LIMIT, described, where more than a tenth of the job's idle time has no cause, unless `opaque`: a prediction
   would not be that of the job. */
enum status refuse_unexplained(const struct plan *plan, bool opaque, struct diag *diag);

#endif
