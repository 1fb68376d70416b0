/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exposed.h - the exposed time of each task: by how much the mean iteration is longer than in a short run of
 * the same random numbers in which the task takes no time. Once as the plan is run, and once with one iteration
 * at a time.
 */
#ifndef SWSIM_EXPOSED_H
#define SWSIM_EXPOSED_H

#include "predict.h"

/* Is it asked for, or found in a short time; does the plan have iterations that end? */
bool exposed_is_wanted(const struct prediction *prediction, const struct predict_options *options);

/* Fills exposed_ns, exposed_iterations, serial_exposed_ns and serial_ns of a prediction whose program and
   timing are made. An error leaves what is filled to prediction_fini. */
enum status exposed_find(struct prediction *prediction, const struct plan *plan,
                         const struct predict_options *options, struct diag *diag);

#endif
