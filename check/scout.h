/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scout.h - a few runs before the search.
 *
 * Whether a plan keeps the order of a serial run is seen in almost any of its runs, but only some iterations deep:
 * breadth first that may be millions of states. So before the search a few single runs are taken: the host
 * as far ahead of the device as it may be, the device as near behind the host, and some in random order. What they
 * violate is violated; they prove nothing.
 */
#ifndef SWSIM_SCOUT_H
#define SWSIM_SCOUT_H

#include "search.h"
#include "base/watch.h"

/* Look for violations of `wanted` until the watch says that it is over: `found` and `witness` of *out are set, and the caller frees it with
   search_result_fini; `states` and `transitions` count the steps. STATUS_SYSTEM: memory is exhausted. */
enum status scout_runs(const struct program *program, unsigned wanted, struct search_watch *watch,
                       struct search_result *out, struct diag *diag);

#endif
