/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hardware_times.h - times for a plan of host programs that has none, from figures of hardware; and the steps of its prediction.
 *
 * A kernel takes the longest of what its numbers take at the rate of their type, what its bytes take, and the shortest kernel: a
 * roofline, below which no GPU is. Where operators were measured (plan/operator_times.h) one with the same shapes takes its
 * time; a product of matrices that was measured with other shapes is as far above its roofline as the nearest of these. A
 * collective is NCCL's own model of its rings and trees.
 */
#ifndef SWSIM_HARDWARE_TIMES_H
#define SWSIM_HARDWARE_TIMES_H

#include <stdio.h>

#include "plan/hardware.h"
#include "plan/operator_times.h"
#include "sim/predict/predict.h"

/*    NAME, what a report says of it */
#define TIME_SOURCE_LIST(X)                                                                        \
    X(PLAN, "times that the plan has")                                                             \
    X(MEASURED, "measured: the operator with these shapes")                                        \
    X(NEAR, "measured: the product of nearest shapes, by the roofline of both")                    \
    X(FLOPS, "roofline: operations with numbers")                                                  \
    X(BYTES, "roofline: bytes of the memory")                                                      \
    X(SHORTEST, "the shortest kernel: it has less to do")                                          \
    X(UNKNOWN, "the shortest kernel: what it does is not known")                                   \
    X(COPY, "copies from and to the host")                                                         \
    X(NCCL, "model of collectives and messages")
enum time_source {
#define X(name, about) TIME_##name,
    TIME_SOURCE_LIST(X)
#undef X
        TIME_SOURCES
};

/* Of all operations, those of graphs as often as they are written. */
struct hardware_times {
    struct {
        int64_t ns;
        size_t count;
    } of[TIME_SOURCES];
    int recorded, ranks; /* of the plan; of the job that is predicted */
    int group;    /* ranks of a group, of which the job has more than the plan (plan/blocks.h) */
    bool strided; /* ... which are no neighbours */
    size_t host_count; /* operations whose time on the host was measured */
};

/* `ranks`: the plan's stand for so many (plan/blocks.h); 0: for themselves. STATUS_INPUT where a figure is missing, or where
   they cannot. */
enum status hardware_times_set(struct plan *plan, const struct hardware *hardware,
                               const struct operator_times *measured, int ranks,
                               struct hardware_times *out, struct diag *diag);
void hardware_times_report(const struct hardware_times *times, const struct hardware *hardware,
                           FILE *out);

/* The observer of one simulation: when the work of each step (PLAN_STEP) is over. */
struct hardware_steps {
    const struct program *program;
    int *step_of;     /* per operation; -1: of none */
    int64_t *ends_ns; /* per step, of the last work */
    int count;
};
enum status hardware_steps_begin(void *steps, const struct program *program, struct diag *diag);
bool hardware_steps_work(void *steps, const struct simulate_span *span);
void hardware_steps_fini(struct hardware_steps *steps);
/* The median of the steps but for the first; -1: there are less than two. */
int64_t hardware_steps_median(const struct hardware_steps *steps);
void hardware_steps_report(const struct hardware_steps *steps, FILE *out);

#endif
