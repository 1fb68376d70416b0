/*
 * structure.h - what can be proved of a data-flow plan without a search.
 *
 * Under data-flow an instance is queued only after everything it waits for has been submitted, so
 * most interleavings differ in nothing that matters. The theorems and their proofs are in
 * doc/checker.md
 * ("Data-flow by structure"); here is decided whether a program satisfies their conditions.
 */
#ifndef SWSIM_STRUCTURE_H
#define SWSIM_STRUCTURE_H

#include "core/program.h"
#include "core/diag.h"

/* The properties (bits of enum property) that hold for any number of iterations and every
   interleaving by structure alone; 0 for programs that are not data-flow pipelines. */
enum status structure_proves(const struct program *program, unsigned *proved, struct diag *diag);

#endif
