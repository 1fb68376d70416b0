/*
 * storyboard.h - the picture of a witness: a row for every agent, a column for every step.
 *
 * From left to right stands what happened, one step a column, in the order of the witness: columns are
 * steps, not time. At the right end stands who cannot go on, and what for; red arrows lead around the
 * cycle. Every box has a tooltip with the step's whole sentence.
 */
#ifndef SWSIM_STORYBOARD_H
#define SWSIM_STORYBOARD_H

#include "plan/diag.h"
#include "trace.h"

/* Draw `trace`, of kind witness, to `path`; `title` may be NULL: the plan's name. Its spans say which
   steps are one box, its steps say what they are; those may be left out. Errors as timeline_render. */
enum status storyboard_render(const struct trace *trace, const char *title, const char *path,
                              struct diag *diag);

#endif
