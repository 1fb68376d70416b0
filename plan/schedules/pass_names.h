/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pass_names.h - names by which the work of a run tells which pass of which microbatch it is.
 *
 * "0F3", "(0F7;7B3)OVERLAP_F_B", with "PP:" in front or without: PyTorch's schedules of several stages write
 * "PP:" and the action (torch/distributed/pipelining/schedules.py, _get_profiler_function_name). "Forward 3" and
 * "Backward 3" are those of its ScheduleGPipe; they name no stage.
 */
#ifndef SWSIM_PASS_NAMES_H
#define SWSIM_PASS_NAMES_H

#include "plan/plan.h"

enum { PASS_STAGE_UNNAMED = -1, PASS_MOST_STAGES = 65536 };

/* The pass or the pair of passes, its parts in `arena`; of one without a stage the stage is PASS_STAGE_UNNAMED.
   False: it is no such name, or no memory was left, as the arena knows. */
bool pass_name_read(const char *name, struct arena *arena, struct action *out);

#endif
