/*
 * export_promela.h - a lowered program as a Promela model, for the model checker SPIN.
 *
 * The model is a second opinion on two properties: SPIN reports a deadlock as an invalid end state
 * and a mismatch as a violated assertion. Buffers, races, slots and bounds are left out; the comment
 * at the top of the model says so and how to run it.
 */
#ifndef SWSIM_EXPORT_PROMELA_H
#define SWSIM_EXPORT_PROMELA_H

#include <stdio.h>

#include "plan/diag.h"
#include "machine/program.h"

/* Write the model of `program` to `out`. A pipeline must have been built with a known number of
   iterations. With `exact`, a plain pipeline's model takes exactly the machine's steps, so that
   states can be counted on both sides; without, it is as small as SPIN likes it. STATUS_INPUT where
   the number of iterations is open, where the program is too big for SPIN (255 places in a queue, 16
   bits in a counter), or where `exact` is asked of another program. Errors in writing stay in `out`:
   the caller asks it. */
enum status export_promela(const struct program *program, bool exact, FILE *out, struct diag *diag);

#endif
