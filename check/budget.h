/*
 * budget.h - memory under a hard limit: nothing of a search is allocated without being counted.
 *
 * Every table of a search draws from one budget. A request beyond the limit is refused with
 * STATUS_LIMIT, one the system refuses with STATUS_SYSTEM; neither changes anything, so that a
 * search that is refused still knows all it knew. Counting is atomic: threads share a budget.
 */
#ifndef SWSIM_BUDGET_H
#define SWSIM_BUDGET_H

#include <stdatomic.h>
#include <stddef.h>

#include "plan/status.h"

struct budget {
    size_t limit_bytes;
    atomic_size_t used_bytes, peak_bytes;
    atomic_int fails_in; /* for tests: the system refuses the n-th request from now; 0: never */
};

void budget_init(struct budget *budget, size_t limit_bytes);

/* `bytes` zeroed bytes, aligned to a cache line, in *out. */
enum status budget_alloc(struct budget *budget, size_t bytes, void *out);
/* Change the size of such an array, NULL if it has none yet, without having both sizes at once where
   the system can do that. What it held stays; what is added is not zeroed. */
enum status budget_resize(struct budget *budget, void *array, size_t before, size_t after);
/* `memory` may be NULL. */
void budget_free(struct budget *budget, void *memory, size_t bytes);

/* Make room for `count` + 1 items of `bytes` each in an array of capacity *cap: doubles it. */
enum status budget_grow(struct budget *budget, void *array, size_t *cap, size_t count,
                        size_t item_bytes);

#endif
