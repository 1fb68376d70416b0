/* SPDX-License-Identifier: Apache-2.0 */
/*
 * structure.h - properties of a pipeline that are proved without a search.
 *
 * A driver hands out an instance after its dependences (data-flow), or in an order in which they come
 * first (clock). So most interleavings have the same result, and under data-flow or with several
 * threads on a stream there are many. The theorems and their proofs are in doc/checker.md ("Proved
 * by structure"); this file checks their conditions.
 */
#ifndef SWSIM_STRUCTURE_H
#define SWSIM_STRUCTURE_H

#include "base/watch.h"
#include "machine/program.h"
#include "base/diag.h"

/* The properties (bits of enum property) that hold for any number of iterations and every
   interleaving by structure alone; 0 for programs other than pipelines, and when `watch` ends a long
   proof. */
enum status structure_proves(const struct program *program, struct search_watch *watch,
                             unsigned *proved, struct diag *diag);

#endif
