/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exposure.h - `swrun --profile`: what each task adds to an iteration.
 */
#ifndef SWSIM_EXPOSURE_H
#define SWSIM_EXPOSURE_H

#include "app.h"

#include "plan/plan.h"
#include "gpu/device/device.h"

struct exposure_options {
    enum device_kind device;
    int ranks;      /* 0: the plan's */
    int iterations; /* of a round; 0: the library's default */
    int64_t timeout_ns;
};

/* Measure serial iterations of a plan of the pipeline form, then with each task left out in turn
   (swpipe_profile), and print the table, or one JSON object. */
enum status exposure_show(struct app *app, const struct plan *plan,
                          const struct exposure_options *options);

#endif
