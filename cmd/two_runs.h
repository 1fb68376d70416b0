/* SPDX-License-Identifier: Apache-2.0 */
/*
 * two_runs.h - `swsim compare DB:RUN ...`: one run held against another, or against a prediction.
 */
#ifndef SWSIM_TWO_RUNS_H
#define SWSIM_TWO_RUNS_H

#include "app.h"
#include "trace/trace.h"

struct two_runs {
    const char *first,
        *second; /* DB[:RUN]; the second may be a plan, or NULL: that of the first run */
    bool diff;   /* what got slower and why, instead of all figures */
    bool opaque; /* predict also what is unexplained */
    int cores;   /* that carry the work of a predicted plan; 0: those of the plan */
    uint64_t seed;
    int replications; /* of a prediction in which something varies */
    double
        limit; /* STATUS_VIOLATED where the second takes longer or shorter than the first by more; NAN: any */
};

/* Load what a spec names, with its ledger, in the app's arena: a run of a store, or what import makes of the trace of a job.
   *path: of the file. */
enum status two_runs_load(struct app *app, const char *spec, struct trace *out, const char **path);

/* Of the trace of a job: the plan that import makes of it where the host takes no time in what has this name; ended by plan_fini.
   STATUS_INPUT where `spec` is no trace. */
enum status two_runs_plan_without(struct app *app, const char *spec, const char *without,
                                  struct plan *out);

/* The plan that a run keeps; ended by plan_fini. */
enum status two_runs_plan(struct app *app, const struct trace *trace, struct plan *out);

enum status two_runs_compare(struct app *app, const struct two_runs *request);

#endif
