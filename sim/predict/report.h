/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - a prediction for people and, as JSON, for programs.
 *
 * The keys of the JSON are a contract (swsim --help predict, README). Streams of one name are given
 * as the mean over the ranks that have it; with several ranks `ranks` adds each by itself.
 */
#ifndef SWSIM_REPORT_H
#define SWSIM_REPORT_H

#include <stdio.h>

#include "base/json.h"
#include "plan/text/warnings.h"
#include "predict.h"

/* Text, with codes of colours for a terminal; `quiet` leaves out all but the main figures. */
enum status report_print(const struct prediction *prediction, bool quiet, bool color, FILE *out,
                         struct diag *diag);

/* Of the report of a second driver the parts, between empty lines, that are not in that of `base`, the first one, and the part with its
   own time; then the difference of the two. */
enum status report_print_second(const struct prediction *prediction, const struct prediction *base,
                                bool quiet, bool color, FILE *out, struct diag *diag);

/* One more line: how it compares with another with the same random numbers. */
void report_difference(const struct prediction *prediction, const struct prediction *base,
                       FILE *out);

/* Which of several predictions this is. */
struct report_row {
    const char *swept; /* the key that was swept, with its value; NULL: none */
    int64_t value;
    const char *what_if;             /* what was changed, as the user said it; NULL: nothing */
    int what_columns;                /* that the longest of them takes */
    const struct prediction *base;   /* what it was before; NULL: nothing to compare with */
    const struct warnings *warnings; /* about the plan; NULL: none were looked for */
    const bool *within;              /* prediction_keeps_bounds; NULL: there are no bounds */
};

/* One JSON object. Fails only when memory is exhausted, then having written nothing. */
enum status report_write(const struct prediction *prediction, const struct report_row *row,
                         struct json *json, struct diag *diag);

/* A table with a line for each value of the key that was swept. */
void report_sweep_head(const char *key, FILE *out);
void report_sweep_line(const struct prediction *prediction, int64_t value, FILE *out);

/* A table with a line for each change. A row without a base is the plan as it is, and comes first. Of a plan without
   iterations it is about the whole time. */
void report_what_if_line(const struct prediction *prediction, const struct report_row *row,
                         FILE *out);

#endif
