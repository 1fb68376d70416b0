/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pass_chart.h - rank programs, predicted, as a chart that can be drawn (trace/chart.h).
 */
#ifndef SWSIM_PASS_CHART_H
#define SWSIM_PASS_CHART_H

#include "plan/plan.h"
#include "trace/chart.h"

/* Predict one step of `plan`, of FORM_PROGRAMS, and keep what is drawn of it, in `arena`; title, `activation` and `unit_ns`
   are the caller's. STATUS_VIOLATED where the step does not come to its end. */
enum status pass_chart_make(const struct plan *plan, struct arena *arena, struct chart *out,
                            struct diag *diag);

#endif
