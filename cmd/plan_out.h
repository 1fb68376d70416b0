/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_out.h - a plan in one of the formats that can be exported.
 */
#ifndef SWSIM_PLAN_OUT_H
#define SWSIM_PLAN_OUT_H

#include <stdio.h>

#include "app.h"

#include "plan/plan.h"

enum plan_format { PLAN_YAML, PLAN_JSON, PLAN_CSV };

/* CSV is for rank programs only: STATUS_INPUT for others. */
enum status plan_write(struct app *app, const struct plan *plan, enum plan_format format,
                       FILE *out);

/* The same into the file at `path`, "-" is standard output. It is written beside and renamed, whole or not at all. */
enum status plan_write_file(struct app *app, const struct plan *plan, enum plan_format format,
                            const char *path);

/* In CSV; `later`: it is known to be for PyTorch 2.15 or a later version. */
enum status plan_write_csv(struct app *app, const struct plan *plan, bool later, FILE *out);

#endif
