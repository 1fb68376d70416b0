/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predict.h - how fast a plan will be, and why: simulations summed up.
 *
 * A prediction is made of replications with different random numbers, spread over threads and over processes
 * (sim/predict/result_wire.h); the number of either changes nothing but the time it takes. It owns its program and refers to the plan, which
 * must outlive it. Times are nanoseconds; a figure that does not exist is NAN (doubles) or -1.
 */
#ifndef SWSIM_PREDICT_H
#define SWSIM_PREDICT_H

#include "critical_path.h"
#include "pipeline_figures.h"
#include "sim/engine/simulate.h"
#include "sim/maxplus/steady.h"
#include "sim/maxplus/slack.h"
#include "time_limits.h"
#include "result_wire.h"

enum {
    PREDICT_MAX_REPLICATIONS = 100000,
    PREDICT_MAX_THREADS = 256,
    PREDICT_ITERATIONS = 1000, /* of a replication, where nobody says */
    /* Exposed times are found without being asked for up to so many tasks and ranks. */
    PREDICT_EXPOSED_TASKS = 32,
    PREDICT_EXPOSED_RANKS = 16
};

enum predict_exposed { EXPOSED_IF_CHEAP, EXPOSED_ALWAYS, EXPOSED_NEVER };

struct predict_options {
    struct program_options program; /* iterations must be given for a pipeline */
    uint64_t seed;
    int replications, threads; /* >= 1 */
    const struct jitter_rule *jitter;
    size_t jitter_count;
    const struct time_rule *times; /* what if */
    size_t time_count;
    enum predict_exposed exposed;
    bool in_flight; /* wanted over time, of the first replication */
    /* Of which iteration of the first replication (or PATH_SLOWEST, PATH_MIDDLE; host programs have one
       path) the critical path is wanted. NULL: of none. */
    const int64_t *critical_path;
    /* Watches the first replication; it is told from the calling thread. NULL: none. */
    const struct simulate_observer *observer;
    /* Other processes take part, which predict the same at the same time. NULL: none. Rank 0 watches and
       explains; what the others get is a program without figures. */
    const struct result_wire *wire;
    /* Ends the replications when it turns true: those that are complete count, without any it is STATUS_LIMIT.
       NULL: never. */
    const atomic_bool *interrupted;
    /* Called before the simulation, so that the observer can prepare; NULL: not needed. */
    enum status (*begin)(void *context, const struct program *program, struct diag *diag);
};

struct prediction {
    struct program *program;
    struct timing timing;
    uint64_t seed;
    int replications;
    /* Of one replication: its own figures. Of several: means over them, and the confidence interval
       is that of the replications' means. */
    struct iteration_figures iteration;
    double *means_ns; /* of several replications: the mean of each; else NULL */
    double throughput_per_s;
    double makespan_ns, fill_ns, drain_ns;
    /* Summed over replications; busy + stalls == total_ns for each stream, in whole nanoseconds. */
    struct stream_account *streams; /* beside program->streams */
    int64_t total_ns;
    struct slowdown
        *slowdowns;        /* per subject (sharing.h), summed too; NULL: no work slows other work */
    struct steady steady;  /* exact, where nothing is left to chance */
    int64_t *slack_ns;     /* per task, of that steady state; NULL: not known */
    double jitter_penalty; /* by how much an iteration is longer than in `steady`, as a share of
                                   that; NAN where nothing varies or there is no steady state */
    double serial_ns;      /* an iteration with no other in flight; NAN: not computed */
    double *serial_exposed_ns;  /* per task; NULL: not computed */
    double bubble;              /* idle part of the ranks' compute streams */
    double *exposed_ns;         /* per task; NULL: not computed */
    int64_t exposed_iterations; /* of the runs they were found with */
    int64_t in_flight_max, in_flight_bytes_max;
    struct in_flight *in_flight;         /* over time, on rank 0; NULL: not wanted */
    double in_flight_mean;               /* iterations of a rank, over time; NAN for other forms */
    struct critical_path *critical_path; /* NULL: not wanted */
    struct pipeline_figures *pipeline;   /* of rank programs, of the first replication; else NULL */
    int64_t tasks, steps;                /* all replications */
    double seconds;                      /* it took, exposed times included */
    double cpu_seconds;                  /* of all threads of the process, meanwhile */
    unsigned violated;                   /* in any replication */
    struct blocked *blocked;             /* of the first replication that came to a deadlock */
    size_t blocked_count;
    int blocked_replication; /* its number; -1: none */
    struct time_overrun
        overrun; /* of the first replication; limit_ns 0: nothing exceeds a time limit */
};

/* A deadlock is a result: STATUS_OK, see `blocked`. Failures as for program_build and simulate_run.
 *out is set on success only and ended with prediction_fini. */
enum status predict(const struct plan *plan, const struct predict_options *options,
                    struct prediction *out, struct diag *diag);
void prediction_fini(struct prediction *prediction);

/* Host programs without steps have none: their figure is the makespan. */
bool prediction_has_iterations(const struct prediction *prediction);

/* True if the prediction keeps the bounds that the plan's `expect:` (if `expect`) and `most_ns` (0: none) have for the time
   of an iteration (without any: of the whole); else an error says what is wrong. *asked: false if there are no bounds. */
bool prediction_keeps_bounds(const struct prediction *prediction, bool expect, int64_t most_ns,
                             bool *asked, struct diag *diag);

/* By how much an iteration (without any: the whole) is longer in b than in a, with the same random numbers, and surely
   between what. NAN where they cannot be compared part by part. */
double prediction_difference(const struct prediction *a, const struct prediction *b,
                             struct interval *in);

/* The stream of a rank that the bubble is about: "compute", else "main", else its busiest; -1
   where the rank has no stream. */
int prediction_compute_stream(const struct prediction *prediction, int rank);

#endif
