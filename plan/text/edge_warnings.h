/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edge_warnings.h - edges of `p2p:` that no message of rank programs takes: they have no effect.
 */
#ifndef SWSIM_EDGE_WARNINGS_H
#define SWSIM_EDGE_WARNINGS_H

#include "warnings.h"

/* Append one warning to `out` that names the first such edge and counts the others; its text lives in `arena`. A plan
   that is refused has none. STATUS_SYSTEM: no memory. */
enum status edge_warnings_find(const struct plan *plan, struct arena *arena, struct warnings *out,
                               struct diag *diag);

#endif
