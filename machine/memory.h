/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h - the bytes that host and rank programs hold, against `machine: {memory}`.
 *
 * A host program holds the buffers that it uses and never allocates all the time; those that it allocates are counted
 * by the machine, at each alloc. The bytes that a rank program holds follow from its list (plan/schedules/rank_memory.h).
 */
#ifndef SWSIM_MEMORY_H
#define SWSIM_MEMORY_H

#include "base/diag.h"
#include "plan/schedules/rank_memory.h"
#include "program.h"

/* A sentence of `arena` where `machine: {memory}` is exceeded in every run: the bytes of the rank that lacks most; of rank
   programs also by how much and by which part each rank does not fit. `program`: that of the plan. NULL: all fit, as far as
   that is known without a run; the machine counts the rest, of pipelines all of it. */
enum status memory_tell(const struct plan *plan, const struct program *program, struct arena *arena,
                        const char **sentence, struct diag *diag);

#endif
