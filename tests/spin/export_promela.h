/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_promela.h - a lowered program as a Promela model, for the model checker SPIN.
 *
 * The model is a second opinion on two properties: SPIN reports a deadlock as an invalid end state
 * and a mismatch as a violated assertion. Buffers, races, slots and bounds are left out. The comment
 * at the top of a model tells how to run it.
 */
#ifndef SWSIM_EXPORT_PROMELA_H
#define SWSIM_EXPORT_PROMELA_H

#include <stdio.h>

#include "base/diag.h"
#include "machine/program.h"

/* Write the model of `program` to `out`. A pipeline must have been built with a known number of
   iterations. STATUS_INPUT where that number is open or the program is too big for SPIN (255 places
   in a queue, 16 bits in a counter). Errors in writing stay in `out`, for the caller to look at. */
enum status export_promela(const struct program *program, FILE *out, struct diag *diag);

#endif
