/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pass_chart.h - passes of rank programs as a chart that can be drawn (trace/chart.h): those of a run in a trace store, or
 * predicted ones.
 *
 * The passes of a stored run are those of the ranks' schedules, where an import found annotations that name them, else work of
 * streams that is named as a pass (plan/schedules/actions.h), as in runs of rank programs.
 * Time begins with the first pass.
 */
#ifndef SWSIM_PASS_CHART_H
#define SWSIM_PASS_CHART_H

#include "plan/plan.h"
#include "trace/chart.h"
#include "trace/trace.h"

/* True if work of any rank has such a name. */
bool stored_chart_has_passes(const struct trace *trace);

/* `plan` is of FORM_PROGRAMS, with complete lists: of the first replica, with the bytes that they hold. NULL: all ranks,
   and F keeps one activation of `activation` bytes until B or W. STATUS_INPUT where there are no passes. All memory is
   the arena's; title, `activation` and `unit_ns` of the chart are the caller's. */
enum status stored_chart_make(const struct trace *trace, const struct plan *plan,
                              int64_t activation, struct arena *arena, struct chart *out,
                              struct diag *diag);

/* Predict one step of `plan`, of FORM_PROGRAMS, and keep what is drawn of it, in `arena`; title, `activation` and `unit_ns`
   are the caller's. STATUS_VIOLATED where the step does not come to its end. */
enum status pass_chart_make(const struct plan *plan, struct arena *arena, struct chart *out,
                            struct diag *diag);

#endif
