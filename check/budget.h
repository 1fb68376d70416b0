/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget.h - memory under a hard limit: every allocation of a search is counted.
 *
 * Every table of a search draws from one budget. A request beyond the limit fails with STATUS_LIMIT,
 * a request that the system refuses with STATUS_SYSTEM. A failed request changes nothing, so the
 * search keeps its results. Counting is atomic: threads share a budget.
 */
#ifndef SWSIM_BUDGET_H
#define SWSIM_BUDGET_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/status.h"

struct budget {
    size_t limit_bytes;
    atomic_size_t used_bytes, peak_bytes;
    atomic_int fails_in; /* for tests: the system refuses the n-th request from now; 0: never */
};

void budget_init(struct budget *budget, size_t limit_bytes);

/* `bytes` zeroed bytes, aligned to a cache line, in *out. */
enum status budget_alloc(struct budget *budget, size_t bytes, void *out);
/* Resize such an array (NULL: none yet), in place where the system can. The contents stay; added bytes
   are not zeroed. */
enum status budget_resize(struct budget *budget, void *array, size_t before, size_t after);
/* `memory` may be NULL. */
void budget_free(struct budget *budget, void *memory, size_t bytes);

/* Make room for `count` + 1 items in an array of capacity *cap, by doubling it. */
enum status budget_grow(struct budget *budget, void *array, size_t *cap, size_t count,
                        size_t item_bytes);

#endif
