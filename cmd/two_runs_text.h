/* SPDX-License-Identifier: Apache-2.0 */
/*
 * two_runs_text.h - two runs held against each other, as tables, as sentences, as JSON.
 */
#ifndef SWSIM_TWO_RUNS_TEXT_H
#define SWSIM_TWO_RUNS_TEXT_H

#include <stdio.h>

#include "sim/predict/difference.h"

struct compared_run {
    const char *store; /* path; NULL: a prediction made just now */
    struct trace trace;
    struct run_account account;
};

/* The names of the two runs, and the time of a step of each. */
void two_runs_print_head(const struct compared_run *first, const struct compared_run *second,
                         const struct difference *difference, FILE *out);
/* Every stream's work by task and idle time by cause; `quiet`: without tasks and causes. */
void two_runs_print(const struct difference *difference, bool quiet, FILE *out);
/* The causes of the difference in sentences, the greatest first. */
void two_runs_explain(const struct compared_run *first, const struct compared_run *second,
                      const struct difference *difference, FILE *out);
enum status two_runs_write(const struct compared_run *first, const struct compared_run *second,
                           const struct difference *difference, FILE *out, struct diag *diag);

#endif
