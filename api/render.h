/* SPDX-License-Identifier: Apache-2.0 */
/*
 * render.h - what `swsim render` and libswsim draw: rank programs, predicted on the way, and runs of stores, as charts to
 * be drawn (trace/schedule_picture.h), and the part of a stored run that a picture needs.
 *
 * Without times F, I and W last 1 each, and B 2; without bytes memory is counted in activations.
 */
#ifndef SWSIM_RENDER_H
#define SWSIM_RENDER_H

#include "plan/plan.h"
#include "trace/chart.h"
#include "trace/store.h"
#include "trace/trace.h"

/* `plan` is of FORM_PROGRAMS; all is in `arena`. */
enum status render_schedule_plan(const struct plan *plan, struct arena *arena, struct chart *out,
                                 struct diag *diag);

/* True if the run is one of rank programs, or an import whose work is named as passes. */
bool render_schedule_fits(const struct trace *trace);
/* Such a run. The plan that it kept says what ranks hold. */
enum status render_schedule_run(const struct trace *trace, struct arena *arena, struct chart *out,
                                struct diag *diag);

/* ---- a part of a run ------------------------------------------------------------------------- */

/* The part of a stored run that a picture of it needs; for `swsim render` and libswsim alike. */

/* Iterations from .. to, as store_load takes them, or a time since the run's start. */
struct run_part {
    int64_t from, to;
    bool has_time;
    int64_t from_ns, to_ns;
};

/* Load it, with the steps of a counterexample, and with what streams waited for where steps tell it. Later parts of long
   runs go without, and a note says so. All is in `arena`. */
enum status render_run_load(struct store *store, int64_t run, const struct run_part *part,
                            struct arena *arena, struct trace *out, struct diag *diag);

#endif
