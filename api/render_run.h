/* SPDX-License-Identifier: Apache-2.0 */
/*
 * render_run.h - the part of a stored run that a picture of it needs; for `swsim render` and libswsim alike.
 */
#ifndef SWSIM_RENDER_RUN_H
#define SWSIM_RENDER_RUN_H

#include "trace/store.h"

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
