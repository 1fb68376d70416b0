/*
 * policy.h - the two drivers for a real run: which instance to hand out next, decided by the
 * machine.
 *
 * A runtime has real queues, signals and devices, but it must not have its own idea of what a
 * period is or when an instance fires. A `struct policy` is a machine state of which only the
 * drivers' part is used: the runtime asks what the driver of a rank does next, does it, and says
 * what has happened; the instances the driver hands out come back through a callback, in order.
 *
 * A policy is not safe for concurrent use: hold one lock around every call (this is the fire lock
 * of the data-flow driver). The program must be built with a known number of iterations, or the
 * runtime says when the data ends with policy_end_data.
 */
#ifndef SWSIM_POLICY_H
#define SWSIM_POLICY_H

#include "machine.h"

struct policy;

/* Put (task, iteration) into the queue of `thread` (program->threads); `ticket` if it is ordered.
 */
typedef void policy_hand_out(void *arg, int thread, int task, int64_t iteration, int64_t ticket);

struct policy *policy_open(const struct program *program, policy_hand_out *hand_out, void *arg);
void policy_close(struct policy *policy);

enum policy_next {
    POLICY_ENQUEUE, /* enqueue a period or admit an iteration: call policy_enqueue */
    POLICY_FETCH, /* is there data for iteration *iteration? then policy_has_data or policy_end_data
                   */
    POLICY_RETIRE, /* wait until *iteration is over by the plan's rule, then policy_retire */
    POLICY_END
};
/* What the driver of `rank` does next. */
enum policy_next policy_next(const struct policy *policy, int rank, int64_t *iteration);

/* The iteration that `rank` admits next; compare before and after a policy_enqueue. */
int64_t policy_admitted(const struct policy *policy, int rank);

void policy_has_data(struct policy *policy);
/* There are `iterations` iterations on this rank. */
void policy_end_data(struct policy *policy, int rank, int64_t iterations);
void policy_enqueue(struct policy *policy, int rank);
/* The oldest iteration is over. */
void policy_retire(struct policy *policy, int rank);
/* (task, iteration) has been submitted: under data-flow this may hand out others. */
void policy_complete(struct policy *policy, int rank, int task, int64_t iteration);

#endif
