/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv.h - PyTorch's pipeline-parallel schedule files.
 *
 *     row = rank, no header, cell = action (actions.h), empty cell = idle
 *
 * A file with communication (compute_comms) has no empty cells before the end of a row, one without
 * (compute_only) may. Which stage lives on which rank follows from the rows. Two dialects of the
 * action text exist; a file with `BW`, or with `W` but without `I`, is in the old one, where B meant
 * backward for the input and BW the full backward. Cells are strict: `0F1junk` is an error.
 */
#ifndef SWSIM_CSV_H
#define SWSIM_CSV_H

#include <stdbool.h>
#include <stddef.h>

#include "plan/plan.h"

/* As plan_parse (parse.h): same contract. */
enum status plan_parse_csv(const char *file_name, const char *text, size_t length, struct plan *out,
                           struct diag *diag);

/* True if the text looks like a schedule rather than YAML. A plan's YAML starts with a key, a brace or a comment; a
   schedule with a digit, a parenthesis or an empty cell. */
bool csv_looks_like(const char *text, size_t length);

#endif
