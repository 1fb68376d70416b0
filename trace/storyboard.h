/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storyboard.h - the picture of a witness: a row for every agent, a column for every step.
 *
 * From left to right stand the steps of the witness, one a column: columns are steps, not time. At the right
 * end stand the blocked agents with the reasons; red arrows lead around the cycle, and one
 * leads from an access to the one it races with. Every box
 * has a tooltip with the whole sentence of its step.
 */
#ifndef SWSIM_STORYBOARD_H
#define SWSIM_STORYBOARD_H

#include "base/diag.h"
#include "draw.h"
#include "trace.h"

/* Draw `trace`, of kind witness, to `target`; `title` may be NULL: the plan's name. Each of its spans
   is a box; its steps have the texts and may be left out. Errors as timeline_render. */
enum status storyboard_render(const struct trace *trace, const char *title,
                              const struct draw_target *target, struct diag *diag);

#endif
