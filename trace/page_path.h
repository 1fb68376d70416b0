/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_path.h - the chain of work that decided when a run was over, from its trace alone.
 *
 * The simulator finds the same path from its own steps (sim/predict/critical_path.h), which a store does not keep. A run of
 * which only the trace is left, a measured one above all, has this one. On predicted runs both are equal. In a measured run
 * a gap may be left: nothing that is recorded was over at its end.
 */
#ifndef SWSIM_PAGE_PATH_H
#define SWSIM_PAGE_PATH_H

#include "trace.h"

/* Indices of spans in the order of time, in `arena`; `before`: for each span the work in front of it on its agent, -1:
   none. Waits are on no path. False: out of memory. */
bool page_path_find(const struct trace *trace, const int *before, struct arena *arena, int **path,
                    size_t *count);

#endif
