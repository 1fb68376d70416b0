/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.h - a plan as canonical YAML: parse(print(plan)) means the same, print(parse(print(plan)))
 * is the same text byte for byte.
 *
 * Keys stand in a fixed order, values equal to their default are left out, names keep the order of the
 * plan. A plan that was read from a CSV or generated prints as YAML too. Comments are not kept.
 */
#ifndef SWSIM_PRINT_H
#define SWSIM_PRINT_H

#include <stdio.h>

#include "plan/plan.h"

/* Write and flush. STATUS_SYSTEM when the file cannot be written or memory is exhausted. */
enum status plan_print(const struct plan *plan, FILE *out, struct diag *diag);

/* The same as a text, which the caller frees; NULL on failure. STATUS_SYSTEM without memory. */
enum status plan_text(const struct plan *plan, char **out, struct diag *diag);

/* The same in `arena`; *out is set on success only. */
enum status plan_text_in(const struct plan *plan, struct arena *arena, const char **out,
                         struct diag *diag);

/* The text that is kept with a run, in `arena`: beside `generate` it has the lists that were found for it, so that whoever
   reads the text need not search for them. */
enum status plan_kept_text_in(const struct plan *plan, struct arena *arena, const char **out,
                              struct diag *diag);

/* Print `plan` and parse that as `name`. *text, the canonical text, lives in out->arena. On success the caller
   ends *out with plan_fini. Errors are those of plan_text and plan_parse. */
enum status plan_copy(const struct plan *plan, const char *name, struct plan *out,
                      const char **text, struct diag *diag);

#endif
