/* SPDX-License-Identifier: Apache-2.0 */
/*
 * action_times.h - `--times=F=1ms,B=2ms`: durations of actions instead of the plan's own; a schedule in CSV has none.
 */
#ifndef SWSIM_ACTION_TIMES_H
#define SWSIM_ACTION_TIMES_H

#include "app.h"

/* STATUS_USAGE for a plan of another form, and for what is no such list. */
enum status action_times_set(struct app *app, const char *text, struct plan *plan);

#endif
