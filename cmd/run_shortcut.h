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
    const atomic_int *stop; /* RUNTIME_DRAIN, RUNTIME_ABORT: take in nothing more */
};

/* One serial iteration keeps the results of the tasks, then comes the run that `options` describe, with
   them put back: measured, replayed through the machine, and stored where options->db says. Its results
   are not compared, because they are not to be those of the plan. *out is ended by shortcut_close,
   which is called in any case. */
struct swpipe;
enum status shortcut_run(struct app *app, const struct plan *plan,
                         const struct runtime_options *options, const struct shortcut_run *how,
                         struct swpipe **pipe, const struct runtime_result **out);
void shortcut_close(struct swpipe *pipe);

#endif
