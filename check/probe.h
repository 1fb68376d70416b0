/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.h - a few long walks, for violations that lie deep.
 *
 * A breadth-first search of many ranks passes all combinations of their first choices before it sees the
 * second ones. A walk takes one choice after the other, by a fixed sequence of pseudo-random numbers,
 * with the same steps and chains as the search, and looks at all successors of the states it passes. It
 * proves nothing; what it finds is a run of the machine.
 */
#ifndef SWSIM_PROBE_H
#define SWSIM_PROBE_H

#include "explore.h"

/* Walk from the node `root` until one of `properties` is violated or `steps` machine steps are taken. Adds
   to the counts, to `found` and to the witnesses of `result`. `batch` is room for the work. */
enum status probe_run(struct explorer *explorer, struct batch *batch, uint64_t root,
                      unsigned properties, uint64_t steps, struct search_result *result);

#endif
