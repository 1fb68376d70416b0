/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trial.h - one run of a plan on the host device, for tests of the runtime.
 *
 * A trial keeps the plan, the result and the messages until trial_fini, whether the run took place or not.
 */
#ifndef SWSIM_TRIAL_H
#define SWSIM_TRIAL_H

#include "gpu/exec/runtime.h"

struct trial {
    struct plan plan;
    bool parsed, ran;
    struct runtime_result result; /* all 0 unless `ran` */
    enum status status;           /* STATUS_INPUT: the plan was not read */
    struct diag diag;
};

/* Only a pipeline has a driver: other forms run without one, whatever the options say. */
void trial_text(struct trial *trial, const char *text, struct runtime_options options);
void trial_file(struct trial *trial, const char *path, struct runtime_options options);
void trial_fini(struct trial *trial);

bool trial_says(const struct trial *trial, const char *text);
/* Messages, violations and blocked agents, as comments. */
void trial_tell(const struct trial *trial);

/* Finished legally, without a violation, with results that are not known to differ from a serial run's. */
bool trial_went_well(const struct trial *trial);
/* Well, and the results are a serial run's. */
bool trial_matched(const struct trial *trial);
/* The ends of a random plan: not run, mismatch, or end or hang as the machine does. */
bool trial_is_possible(const struct trial *trial);

#endif
