/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tuning.h - what a search for a better plan has found, as text and as JSON; for `swsim tune` and libswsim alike.
 */
#ifndef SWSIM_TUNING_H
#define SWSIM_TUNING_H

#include <stdio.h>

#include "improve/tune.h"
#include "base/json.h"

/* The given plan, the best that was found, and how they differ. */
struct tuning {
    const char *name;
    enum driver driver; /* NONE: host programs */
    uint64_t seed;
    struct tune_counts counts;
    struct tune_result before, after;
    const char **changes; /* NULL ends the list */
    const char *diff;
    bool better, exact, interrupted;
    bool unfit; /* there is neither a better plan nor a given one that may stay */
};

/* Check that the search may begin. A plan that hangs has no results to compare with: STATUS_VIOLATED, unless stale
   reads are allowed. Warns of what limits the answer. */
enum status tuning_check(const struct tune *tune, struct diag *diag);

/* Search, and judge both plans again from their texts. The tune must outlive it; changes and diff live in `arena`.
   STATUS_LIMIT: the found plan is not proved when it is read again. On failure there is nothing to end. */
enum status tuning_make(struct tune *tune, struct arena *arena, struct tuning *out,
                        struct diag *diag);
/* The same of a host program: tune_host.h. */
enum status tuning_make_host(const struct plan *plan, const struct tune_options *options,
                             struct arena *arena, struct tuning *out, struct diag *diag);
void tuning_fini(struct tuning *tuning);

/* For people; `quiet` leaves out the difference. */
void tuning_print(const struct tuning *tuning, bool quiet, FILE *out);

/* One JSON object; its keys are a contract. */
void tuning_write(const struct tuning *tuning, struct json *json);

#endif
