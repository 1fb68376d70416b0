/* SPDX-License-Identifier: Apache-2.0 */
/*
 * actions.h - PyTorch's action text: stage, operation, microbatch.
 *
 *     action     := stage operation [ microbatch ] | "(" action ";" action ")" "OVERLAP_F_B"
 *     operation  := F | I | W | B | UNSHARD | RESHARD | REDUCE_GRAD | SEND_F | RECV_F | SEND_B | RECV_B |
 *                   WAIT_SEND_F | WAIT_SEND_B | WAIT_RECV_F | WAIT_RECV_B | WAIT_REDUCE_GRAD
 *
 * `0F3`, `2UNSHARD`, `(0F7;7B3)OVERLAP_F_B`. Which operations have a microbatch is ACTION_LIST's
 * third column. Everything must be consumed. In the old dialect B reads as I and BW as B (csv.h).
 */
#ifndef SWSIM_ACTIONS_H
#define SWSIM_ACTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "plan/plan.h"

/* Parse exactly `length` bytes. On failure *what is a sentence with the found and the expected text (static, or in
   the arena), *where is the byte offset, and *out is untouched. Marks are left zero. A composite's
   stage is that of its forward part. */
bool action_parse(const char *text, size_t length, bool old_dialect, struct arena *arena,
                  struct action *out, const char **what, size_t *where);

/* As snprintf: writes at most cap - 1 bytes and a NUL, returns the length of the whole text. */
size_t action_format(const struct action *action, char *buf, size_t cap);

/* Write the text; nothing for an idle cell. A failed write stays in the FILE for ferror. */
void action_print(const struct action *action, FILE *out);

/* ---- names of passes ------------------------------------------------------------------------- */

/*
 * Names by which the work of a run tells which pass of which microbatch it is.
 *
 * "0F3", "(0F7;7B3)OVERLAP_F_B", with "PP:" in front or without: PyTorch's schedules of several stages write
 * "PP:" and the action (torch/distributed/pipelining/schedules.py, _get_profiler_function_name). "Forward 3" and
 * "Backward 3" are those of its ScheduleGPipe; they name no stage.
 */

enum { PASS_STAGE_UNNAMED = -1, PASS_MOST_STAGES = 65536 };

/* The pass or the pair of passes, its parts in `arena`; of one without a stage the stage is PASS_STAGE_UNNAMED.
   False: it is no such name, or no memory was left, as the arena knows. */
bool pass_name_read(const char *name, struct arena *arena, struct action *out);

#endif
