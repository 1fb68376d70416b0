/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_choice.h - which drivers a question is about; for the commands and libswsim alike.
 */
#ifndef SWSIM_DRIVER_CHOICE_H
#define SWSIM_DRIVER_CHOICE_H

#include "plan/diag.h"
#include "plan/plan.h"

enum driver_choice { DRIVER_NOT_GIVEN = -1, CLOCK_ONLY, DATAFLOW_ONLY, BOTH_DRIVERS };

/* As given, else the plan's, else `usual`; an enum driver_choice each. A note tells where the given one and the plan's
   differ. */
int driver_choose(const struct plan *plan, int given, int usual, struct diag *diag);

#endif
