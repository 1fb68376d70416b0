/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse.h - from text to a plan: YAML (JSON is YAML) and PyTorch schedule CSV.
 *
 * A plan is refused with file, line and column, the found and the expected text; several errors are
 * reported where the rest of the file can still be understood. Ill-formed are unknown or duplicate
 * keys, dangling names, wrong units, cyclic dependences, two forms at once. A well-formed plan with a
 * deadlock or a race is accepted: finding those is the task of the checker.
 *
 * On success the caller owns *out and ends it with plan_fini. On failure *out is empty and needs no
 * plan_fini. STATUS_INPUT: a bad plan; STATUS_SYSTEM: the file cannot be read or memory is
 * exhausted.
 */
#ifndef SWSIM_PARSE_H
#define SWSIM_PARSE_H

#include <stddef.h>

#include "plan/plan.h"

/* Read a plan from a file; "-" is standard input. At most PLAN_MAX_FILE_BYTES. */
enum status plan_read(const char *path, struct plan *out, struct diag *diag);

/* Parse a text of `length` bytes. `file_name` is for messages, and its suffix decides the format
   (.csv, .yaml, .yml, .json); without one of these the text's first character does. */
enum status plan_parse(const char *file_name, const char *text, size_t length, struct plan *out,
                       struct diag *diag);

#endif
