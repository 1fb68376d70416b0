/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers.h - the passes of rank programs with `arithmetic:` (plan/schedules/arithmetic.h) on the layers they stand for.
 *
 *     F   y = f(x w + b), layer by layer; keeps x w + b and y of each; on the last stage the loss
 *     I   the gradient of x from that of y, layer by layer backwards; keeps that of x w + b for W
 *     W   adds to the gradients of w and b what this microbatch gives
 *     B   I, then W
 *
 * Where the plan computes a microbatch once more (`checkpoint:`) F keeps nothing and I or B begins with F. Activations
 * and gradients move as the messages of the plan, from and to the places that passes read and write; stages of one
 * rank share a place.
 *
 * The order of sums. Each number is computed by itself in a fixed order (gpu/device/dense.h). The gradients of weights are added up in
 * the order of the microbatches' numbers, not of arrival: what a microbatch gives ahead of its turn is held in a place
 * of its own until its turn comes. The lists say when that is, so places are assigned before the run: a
 * list whose backward passes ascend takes none, one that goes from the last microbatch to the first one takes m - 1,
 * each as big as the gradients of the stage.
 *
 * So the gradients of any schedule that keeps its dependences equal those of the whole model on one thread, one
 * microbatch after another, in every bit. layers_judge computes that and compares. What no pass or message has written
 * holds numbers that are not a number, so a pass ahead of its input shows.
 *
 * Replicas have microbatches of their own. A REDUCE_GRAD gathers their gradients, and each replica adds them up in the
 * order of the replicas: sums inside of a collective have the order of its library. In the serial result each replica's
 * gradients are added up first, too.
 *
 * Copies of the model begin with the same weights and get microbatches of their own; each is compared by itself.
 */
#ifndef SWSIM_LAYERS_H
#define SWSIM_LAYERS_H

#include "run.h"

struct layer_run;

/* Of one process: memory of the devices, steps of the passes. */
#define LAYERS_MAX_BYTES (INT64_C(2) << 30)

/* After the streams, before the first step; run->layers stays NULL where the plan has no arithmetic. */
enum status layers_open(struct run *run, struct diag *diag);
void layers_close(struct run *run);

/* The number of operations that layers_open has pushed to a rank. */
int layers_pushes(const struct run *run);

/* The steps of a kernel; count 0: it is no pass. Of a reduction those behind its collective: the sum. */
struct device_dense layers_steps(const struct run *run, const struct op *op);
/* Where a part of a group is sent from or received, and its bytes. False: it is no message of this plan. */
bool layers_message(const struct run *run, const struct part *part, struct device_ref *ref,
                    int64_t *bytes);
/* Where a collective is a reduction of gradients, it gathers them from all replicas instead. False: it is none. */
bool layers_gather(const struct run *run, const struct op *op,
                   struct device_collective *collective);

/* With the devices idle: compare what the ranks of this process have computed with the serial result. */
enum status layers_judge(struct run *run, struct runtime_arithmetic *out, struct diag *diag);

#endif
