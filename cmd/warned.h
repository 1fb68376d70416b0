/* SPDX-License-Identifier: Apache-2.0 */
/*
 * warned.h - the warnings about a plan, told once by each command that proves, predicts or runs it.
 */
#ifndef SWSIM_WARNED_H
#define SWSIM_WARNED_H

#include "app.h"

#include "plan/text/warnings.h"

/* Unless the app is quiet they become messages, with their position and line. */
void warned_tell(struct app *app, const struct plan *plan, const struct warnings *warnings);

/* Find the warnings about `plan` and tell them. Texts live as long as the app. */
enum status warned_find(struct app *app, const struct plan *plan, struct warnings *out);

#endif
