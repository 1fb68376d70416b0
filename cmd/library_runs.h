/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library_runs.h - what `swrun` does by the public library (gpu/lib/swpipe.h): `--profile` and `--shortcut`.
 */
#ifndef SWSIM_LIBRARY_RUNS_H
#define SWSIM_LIBRARY_RUNS_H

#include <stdatomic.h>

#include "app.h"

#include "gpu/exec/runtime.h"

struct exposure_options {
    enum device_kind device;
    int ranks;      /* 0: the plan's */
    int iterations; /* of a round; 0: the library's default */
    int64_t timeout_ns;
};

/* Measure serial iterations of a plan of the pipeline form, then with each task left out in turn (swpipe_profile), and print how
   much time each task adds, as a table or as one JSON object. */
enum status exposure_show(struct app *app, const struct plan *plan,
                          const struct exposure_options *options);

struct shortcut_run {
    const char *const *tasks; /* names of the plan's */
    size_t count;
    const atomic_int *stop; /* RUNTIME_DRAIN, RUNTIME_ABORT: admit no more batches */
};

/* A run in which the results of some tasks are put back instead of being computed. One serial iteration keeps the results
   of the tasks, then the run of `options` restores them: it is measured, replayed through the machine, and stored in
   options->db. Its results are not compared, because they differ from those of the plan. *out is ended by
   shortcut_close, which is called in any case. */
struct swpipe;
enum status shortcut_run(struct app *app, const struct plan *plan,
                         const struct runtime_options *options, const struct shortcut_run *how,
                         struct swpipe **pipe, const struct runtime_result **out);
void shortcut_close(struct swpipe *pipe);

#endif
