/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.h - a plan of its own with the same meaning: printed and parsed again.
 *
 * The copy shares nothing with the original and is as a reader of the printed plan gets it: indices follow the
 * text, comments and positions of the original file are gone.
 */
#ifndef SWSIM_COPY_H
#define SWSIM_COPY_H

#include "plan/plan.h"

/* Print `plan` and parse that as `name`. *text, the canonical text, lives in out->arena. On success the caller
   ends *out with plan_fini. Errors are those of plan_text and plan_parse. */
enum status plan_copy(const struct plan *plan, const char *name, struct plan *out,
                      const char **text, struct diag *diag);

#endif
