/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h - the bytes that host and rank programs hold, against `machine: {memory}`.
 *
 * A host program holds the buffers that it uses and never allocates all the time; those that it allocates are counted
 * by the machine, at each alloc. The bytes that a rank program holds follow from its list (plan/rank_memory.h).
 */
#ifndef SWSIM_MEMORY_H
#define SWSIM_MEMORY_H

#include "machine/program.h"
#include "plan/diag.h"
#include "plan/rank_memory.h"

/* The rank that holds most beyond its memory of what it never allocates, and these bytes; -1: all fit, or the program
   has iterations. */
enum status memory_of_hosts(const struct program *program, int64_t *bytes, int *rank,
                            struct diag *diag);

/* Of rank programs, in a sentence of `arena`: what the rank that lacks most holds, and by how much and by which part each
   rank does not fit. NULL: all fit. */
enum status memory_tell_lists(const struct plan *plan, struct arena *arena, const char **sentence,
                              struct diag *diag);

#endif
