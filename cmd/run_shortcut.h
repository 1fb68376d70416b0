/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_shortcut.h - `swrun --shortcut`: a run in which the results of some tasks are put back instead of being
 * computed, by the public library (gpu/lib/swpipe.h).
 */
#ifndef SWSIM_SHORTCUT_RUN_H
#define SWSIM_SHORTCUT_RUN_H

#include <stdatomic.h>

#include "app.h"

#include "gpu/exec/runtime.h"

struct shortcut_run {
    const char *const *tasks; /* names of the plan's */
    size_t count;
    const atomic_int *stop; /* RUNTIME_DRAIN, RUNTIME_ABORT: admit no more batches */
};

/* One serial iteration keeps the results of the tasks, then the run of `options` restores
   them: it is measured, replayed through the machine, and stored in options->db. Its results are not
   compared, because they differ from those of the plan. *out is ended by shortcut_close,
   which is called in any case. */
struct swpipe;
enum status shortcut_run(struct app *app, const struct plan *plan,
                         const struct runtime_options *options, const struct shortcut_run *how,
                         struct swpipe **pipe, const struct runtime_result **out);
void shortcut_close(struct swpipe *pipe);

#endif
