/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profiled.h - `--profile FILE[:RUN]`: a plan with times from a measured serial run.
 */
#ifndef SWSIM_PROFILED_H
#define SWSIM_PROFILED_H

#include "option_texts.h"
#include "sim/predict/profile.h"

/* Read the profile that `spec` names for `plan` on `ranks` ranks (0: the plan's), and note the origin of its times
   unless `quiet`. FILE alone: its newest serial run of a plan of that name. Failures as for store_open and profile_read;
   *out is ended with profile_fini. */
enum status profiled_read(struct option_reader reader, const char *spec, const struct plan *plan,
                          int ranks, bool quiet, struct profile *out);

/* The plan's times become the means of the profile that `spec` names, those of the slowest rank, on all
 * ranks and without jitter, and its cores those of the run's machine, if the profile has them. Times that were not
 * measured stay, and a note names them. Failures as above. */
enum status profiled_set_times(struct option_reader reader, const char *spec, bool quiet,
                               struct plan *plan);

#endif
