/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plangraph.h - the picture of a plan as its author wrote it.
 *
 * Pipeline form: tasks grouped by stream; a solid arrow is a dependence within an iteration, a
 * dashed one reaches over `i+distance` iterations; tasks are drawn as rank 0 sees them. Host
 * programs: each thread's operations in a row, or in a column if there are many, those of a long one folded
 * (plangraph.c); dashed arrows lead from the operation that sets an event, a flag or a queue to those that wait for it,
 * also from and to the launch of a graph that does so, and from the end of a repeat to its begin. The output format
 * follows the extension: .svg, .png or .dot.
 */
#ifndef SWSIM_PLANGRAPH_H
#define SWSIM_PLANGRAPH_H

#include "base/diag.h"
#include "plan/plan.h"
#include "base/status.h"

#include "draw.h"

/* A larger graph is unreadable, and dot takes minutes to lay it out. */
enum { PLANGRAPH_MAX_NODES = 2000 };

/* The boxes of the picture; `all`: without folding. Without memory STATUS_SYSTEM. */
enum status plangraph_count(const struct plan *plan, bool all, size_t *out, struct diag *diag);

/* `all`: each operation of host programs. STATUS_INPUT for rank programs, which have no such graph; STATUS_LIMIT for too large a plan;
   STATUS_USAGE for an unknown extension; STATUS_SYSTEM when the file cannot be written. */
enum status plangraph_render(const struct plan *plan, bool all, const struct draw_target *target,
                             struct diag *diag);

#endif
