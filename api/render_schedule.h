/* SPDX-License-Identifier: Apache-2.0 */
/*
 * render_schedule.h - `swsim render` of rank programs: plans, predicted on the way, and runs of stores, as charts to be
 * drawn (trace/schedule_picture.h).
 *
 * Without times F, I and W last 1 each, and B 2; without bytes memory is counted in activations.
 */
#ifndef SWSIM_RENDER_SCHEDULE_H
#define SWSIM_RENDER_SCHEDULE_H

#include "plan/plan.h"
#include "trace/chart.h"
#include "trace/trace.h"

/* `plan` is of FORM_PROGRAMS; all is in `arena`. */
enum status render_schedule_plan(const struct plan *plan, struct arena *arena, struct chart *out,
                                 struct diag *diag);

/* Is the run one of rank programs, or an import whose work is named as passes? */
bool render_schedule_fits(const struct trace *trace);
/* Such a run. The plan that it kept says what ranks hold. */
enum status render_schedule_run(const struct trace *trace, struct arena *arena, struct chart *out,
                                struct diag *diag);

#endif
