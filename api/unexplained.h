/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unexplained.h - an imported plan whose job was idle for reasons that its trace does not tell.
 */
#ifndef SWSIM_UNEXPLAINED_H
#define SWSIM_UNEXPLAINED_H

#include "base/diag.h"
#include "plan/plan.h"

/* STATUS_LIMIT, described, where plan_is_unexplained, unless `opaque`: no prediction, and no better plan that rests on
   one. */
enum status refuse_unexplained(const struct plan *plan, bool opaque, struct diag *diag);

#endif
