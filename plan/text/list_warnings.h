/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list_warnings.h - what is wrong with the lists of rank programs, action by action.
 *
 * Every verdict is of the machine. These warnings say beside it which actions break a rule of schedules: one that stands
 * twice, lacks another, has no other end, or comes before what it needs. Each names row, column and rule; what breaks a
 * rule because another action does is left out.
 */
#ifndef SWSIM_LIST_WARNINGS_H
#define SWSIM_LIST_WARNINGS_H

#include "warnings.h"

/* Append them to `out`, whose texts live in `arena`; a kind that has many ends with their number. Generated lists have
   none. STATUS_SYSTEM: no memory. */
enum status list_warnings_find(const struct plan *plan, struct arena *arena, struct warnings *out,
                               struct diag *diag);

/* Append one warning to `out` that names the first edge of `p2p:` that no message takes, and counts the others: they have no
   effect. A plan that is refused has none. STATUS_SYSTEM: no memory. */
enum status list_warnings_find_edges(const struct plan *plan, struct arena *arena,
                                     struct warnings *out, struct diag *diag);

#endif
