/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.h - the two drivers for a real run: the machine decides which instance is handed out next.
 *
 * A runtime has real queues, signals and devices, but the machine defines periods and firing. A
 * `struct policy` is a machine state of which only the drivers' part is used: the runtime asks for
 * the next step of a rank's driver, executes it, and reports its end; the instances handed out come
 * back through a callback, in order.
 *
 * A policy is not safe for concurrent use: hold one lock around every call (the fire lock of the
 * data-flow driver). Unless the program was built with a known number of iterations, the runtime
 * reports the end of the data with policy_end_data.
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
/* The next step of the driver of `rank`. */
enum policy_next policy_next(const struct policy *policy, int rank, int64_t *iteration);

/* True if the iteration that this operation depends on exists, and is not skipped. For an operation of `rank` in
   `iteration`. */
bool policy_dependence_applies(const struct policy *policy, int rank, const struct op *op,
                               int64_t iteration);

/* The iteration that `rank` admits next; compare before and after a policy_enqueue. */
int64_t policy_admitted(const struct policy *policy, int rank);
/* The oldest that it has not retired; admitted, unless it is the one above. */
int64_t policy_oldest(const struct policy *policy, int rank);

void policy_has_data(struct policy *policy);
/* There are `iterations` iterations on this rank. */
void policy_end_data(struct policy *policy, int rank, int64_t iterations);
void policy_enqueue(struct policy *policy, int rank);
/* The oldest iteration is over. */
void policy_retire(struct policy *policy, int rank);
/* (task, iteration) has been submitted: under data-flow this may hand out others. */
void policy_complete(struct policy *policy, int rank, int task, int64_t iteration);

#endif
