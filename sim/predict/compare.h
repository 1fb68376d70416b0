/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.h - predicted against measured: what a prediction from a serial run says of the pipelined
 * runs beside it.
 *
 * Every finished pipelined run of a trace store is predicted with the profile (profile.h) of the newest
 * serial run of the same plan, on the same device, with as many ranks: same driver, depth and number
 * of iterations, and the cores of its machine. Nothing else of the pipelined run goes into its prediction. Iteration times of both
 * are reckoned by one rule (iterations.h), stall accounts by one piece of code (idle_cause.c, observe.h).
 * An import (swsim import --db), and a run of host programs, is predicted by its own plan, in which its times are: a
 * pipeline step by step, host programs as a whole. Of the measured streams only the busy share is known then.
 * The choices that a device makes by itself (plan/strip_device_rules.h) are left out of the predicted machine too.
 *
 * Errors are relative: (predicted - measured) / measured. Times are nanoseconds; a figure that does
 * not exist is NAN.
 */
#ifndef SWSIM_COMPARE_H
#define SWSIM_COMPARE_H

#include "predict.h"
#include "profile.h"

struct compare_options {
    int64_t run; /* only this one; STORE_ALL: all */
    bool opaque; /* predict also an import of which much time is unexplained */
    int cores;   /* that carry the work; 0: those of the plan, else those of the run's machine */
    const char *plan; /* only runs of the plan with this canonical text; NULL: of all */
    uint64_t seed;
    int replications, threads;      /* of each prediction */
    const atomic_bool *interrupted; /* no further run is compared when it turns true; NULL: never */
};

/* Shares of the whole run, the mean over the streams of one name. */
struct compared_account {
    double busy, stall[STALL_COUNT];
};

/* The work of one name on a stream: time and number, of a step or of the whole run, the mean over the ranks. */
struct compared_task {
    const char *name;
    double measured_ns, predicted_ns, measured_count, predicted_count;
    bool meets; /* a task with other ranks, whose time has the wait for them */
};

struct compared_stream {
    const char *name;
    struct compared_account measured, predicted;
    struct compared_task *tasks; /* the longest first */
    size_t task_count;
};

struct comparison {
    int64_t run, serial_run; /* serial_run: the run itself, where its own plan predicts it */
    const char *plan, *device;
    enum driver driver;
    int depth, ranks;
    int64_t iterations;
    int64_t profiled, warm_up; /* iterations of the serial run that count, and that were left out */
    size_t missing;            /* parts of tasks it did not measure */
    int cores;                 /* of the predicted machine; 0: as many as are wanted */
    bool own_cores;            /* those of the run's machine (profile.h) */
    bool whole;                /* the times are of the whole run */
    bool by_steps;             /* those of tasks are of a step, else of the whole run */
    double measured_ns, predicted_ns, error; /* mean iteration */
    bool accounted; /* else the run has no steps, and the measured accounts are empty */
    struct compared_stream *streams;
    size_t stream_count;
};

struct compared {
    struct arena arena; /* of everything below */
    struct comparison *runs;
    size_t run_count;
    size_t unmatched;                 /* runs that nothing predicts; each has a note in the diag */
    double median_error, worst_error; /* of the absolute errors */
    bool interrupted;                 /* not all runs were compared */
};

/* STATUS_INPUT when there is no run to compare, when no run has a serial one, and when a run does not fit
   its plan. *out is set on success only and ended with compared_fini. */
enum status compare_store(struct store *store, const struct compare_options *options,
                          struct compared *out, struct diag *diag);
void compared_fini(struct compared *compared);

#endif
