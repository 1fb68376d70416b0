/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hang.h - dependences that one thread can never satisfy under the clock driver.
 *
 * A thread executes the instances of its tasks in the order in which they are handed out: period by period,
 * and within a period in enqueue order. An instance that needs one behind it in the same queue waits for
 * ever. Source: the SWPipeline reference's Corollaries 1 and 3, which refuse every dependence that points to
 * a later period; with a thread for each of the two tasks it need not hang.
 */
#ifndef SWSIM_HANG_H
#define SWSIM_HANG_H

#include <stdbool.h>

#include "plan.h"

/* True if the dependence points to a later period than its task's, on this rank. */
bool hang_is_later(const struct plan *plan, int rank, const struct dep *dep);

/* True if what the dependence needs comes after its task in the queue of one thread. `place`: of every task in the
   enqueue order of the rank. */
bool hang_is_certain(const struct plan *plan, int rank, const struct dep *dep, const int *place);

/* The first dependence that certainly hangs, on any of `ranks` ranks, or NULL. */
enum status hang_find(const struct plan *plan, int ranks, const struct dep **out,
                      struct diag *diag);

#endif
