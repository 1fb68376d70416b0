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

#endif
