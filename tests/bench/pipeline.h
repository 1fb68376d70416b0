/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline.h - what the peers of the prediction benchmark share: TorchRec's SparseDist on one rank,
 * device parts only, and how long each of its tasks takes in each iteration, from the same random numbers as
 * `swsim predict`. So all of them must come to the same makespan.
 *
 *     memcpy      H2D                                                  period i
 *     data_dist   InputDistStart, InputDistWait                        period i + 1
 *     default     ZeroGrad, WaitBatch, Forward, Backward, OptimizerStep  period i + 2
 *
 * Three iterations are in flight: period p begins when iteration p - 3 is over. InputDistStart waits
 * for H2D, WaitBatch and Forward wait for InputDistWait.
 */
#ifndef SWSIM_BENCH_PIPELINE_H
#define SWSIM_BENCH_PIPELINE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PIPELINE_H2D,
    PIPELINE_START,
    PIPELINE_WAIT,
    PIPELINE_ZERO,
    PIPELINE_BATCH,
    PIPELINE_FORWARD,
    PIPELINE_BACKWARD,
    PIPELINE_OPTIMIZER,
    PIPELINE_TASKS,
    PIPELINE_DEPTH = 3,
    PIPELINE_RUN = 128 /* iterations drawn at once */
};

struct bench_pipeline;

/* Read the plan, with --jitter='*=normal(cv=0.3)'. Says on stderr what went wrong and returns NULL. */
struct bench_pipeline *pipeline_open(const char *plan_file, int64_t iterations, uint64_t seed);
void pipeline_close(struct bench_pipeline *pipeline);

/* Durations of a task for iterations first .. first + PIPELINE_RUN - 1, first a multiple of it. */
void pipeline_draw(const struct bench_pipeline *pipeline, int task, int64_t first,
                   int64_t out_ns[PIPELINE_RUN]);

/* Parse "PLAN ITERATIONS", run, and print "makespan_ns tasks seconds", of
   processor time. */
int pipeline_main(int argc, char **argv,
                  int64_t (*run)(const struct bench_pipeline *pipeline, int64_t iterations));

#ifdef __cplusplus
}
#endif
#endif
