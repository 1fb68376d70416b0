/*
 * structure.h - what can be proved of a pipeline without a search.
 *
 * A driver hands out an instance only after everything it waits for (data-flow), or in an order in
 * which that comes first (clock). So most interleavings differ in nothing that matters, and under
 * data-flow or with several threads on a stream they are many. The theorems and their proofs are in
 * doc/checker.md ("Proved by structure"); here is decided whether a program satisfies their
 * conditions.
 */
#ifndef SWSIM_STRUCTURE_H
#define SWSIM_STRUCTURE_H

#include "machine/program.h"
#include "plan/diag.h"

/* The properties (bits of enum property) that hold for any number of iterations and every
   interleaving by structure alone; 0 for programs that are no pipelines. */
enum status structure_proves(const struct program *program, unsigned *proved, struct diag *diag);

#endif
