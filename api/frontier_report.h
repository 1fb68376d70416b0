/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frontier_report.h - the frontier of rank programs as text, as JSON and as a picture; for `swsim tune` and libswsim alike.
 */
#ifndef SWSIM_FRONTIER_REPORT_H
#define SWSIM_FRONTIER_REPORT_H

#include <stdio.h>

#include "improve/frontier.h"
#include "base/json.h"

/* STATUS_USAGE where options and plan both count samples, and differ. */
enum status frontier_check_samples(const struct frontier_options *options, const struct plan *plan,
                                   struct diag *diag);

/* Limits of the answer: times that are assumed, candidates that were not tried. */
void frontier_warn(const struct frontier *frontier, struct diag *diag);

/* For people; `quiet` leaves out what is not on the frontier. */
void frontier_print(const struct frontier *frontier, bool quiet, FILE *out);
/* One JSON object; its keys are a contract. */
void frontier_write(const struct frontier *frontier, struct json *json);

/* A picture of a sorted frontier (frontier_picture.c), in the format of the path's extension (trace/draw.h). Without a proved
   candidate it is an empty sheet. */
enum status frontier_draw(const struct frontier *frontier, const char *path, struct diag *diag);

/* The fastest candidate as a plan, in the frontier's arena; *found is false where none is proved. */
enum status frontier_best(const struct frontier *frontier, struct plan *out, bool *found,
                          struct diag *diag);

#endif
