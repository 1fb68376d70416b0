/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kineto_operators.h - how long operators take, from a trace of PyTorch's profiler on a GPU.
 *
 * The profiler must have recorded shapes (record_shapes=True). An operator takes the time of all kernels, copies and fills that
 * are launched while it lasts on the same thread, its children's, too.
 */
#ifndef SWSIM_KINETO_OPERATORS_H
#define SWSIM_KINETO_OPERATORS_H

#include "plan/operator_times.h"
#include "trace/job/bytes.h"

/* Adds the operators of the trace. STATUS_INPUT: it is no such trace, it has no shapes, or no work of a GPU. */
enum status kineto_operators_read(struct bytes *bytes, struct arena *arena,
                                  struct operator_times *times, struct diag *diag);

#endif
