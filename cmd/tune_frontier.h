/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune_frontier.h - `swsim tune` of rank programs: the frontier of time against memory (improve/frontier.h).
 */
#ifndef SWSIM_TUNE_FRONTIER_H
#define SWSIM_TUNE_FRONTIER_H

#include "app.h"

#include "improve/frontier.h"

struct frontier_request {
    struct frontier_options options;
    const char *plan_path, *picture_path; /* files to write; NULL: none */
};

/* Search, print, write. STATUS_VIOLATED where no candidate is proved and within the limits. */
enum status frontier_tune(struct app *app, struct frontier_request *request,
                          const struct plan *plan);

#endif
