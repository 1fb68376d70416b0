/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_check.h - whether the plan of an import takes as long as its trace says.
 */
#ifndef SWSIM_REPLAY_CHECK_H
#define SWSIM_REPLAY_CHECK_H

#include "app.h"
#include "trace/import/import.h"

/* Reads the files again, for the run that was measured. */
struct replay_source {
    const char *const *paths;
    size_t count;
    const struct import_options *options;
};

/* Predicts the plan of host programs that traces became, and notes both times. Off by more than 5% is a warning with the largest difference;
   by more than 20% STATUS_LIMIT, described, unless `force`. A plan that cannot be predicted is a warning. */
enum status replay_check(struct app *app, const struct imported *imported,
                         const struct replay_source *source, bool force);

#endif
