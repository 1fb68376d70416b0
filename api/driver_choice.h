/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_choice.h - which drivers a question is about; for the commands and libswsim alike.
 */
#ifndef SWSIM_DRIVER_CHOICE_H
#define SWSIM_DRIVER_CHOICE_H

#include <stddef.h>

#include "base/diag.h"
#include "plan/plan.h"

enum driver_choice { DRIVER_NOT_GIVEN = -1, CLOCK_ONLY, DATAFLOW_ONLY, BOTH_DRIVERS };

/* As given, else the plan's, else `usual`; an enum driver_choice each. A note tells where the given one and the plan's
   differ. */
int driver_choose(const struct plan *plan, int given, int usual, struct diag *diag);

/* STATUS_USAGE where one of the options that were given has no effect on the plan: it means something to a pipeline alone,
   or to its data-flow driver. `given`: their names without dashes, others among them; `driver`: the one that was given,
   `usual`: the one without it and the plan's. */
enum status driver_check_options(const struct plan *plan, const char *const *given, size_t count,
                                 int driver, int usual, struct diag *diag);

#endif
