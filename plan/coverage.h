/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coverage.h - what a verdict about a plan covers: which work declares what it reads and writes, and what is assumed.
 *
 * Races are found between accesses that the plan declares. Where none is declared, race freedom is proved of nothing.
 * Of an imported plan no verdict covers what was not recorded of its job (`unrecorded:`).
 */
#ifndef SWSIM_COVERAGE_H
#define SWSIM_COVERAGE_H

#include "base/json.h"
#include "plan.h"

struct coverage {
    const char *unit;                    /* what is counted: "tasks", "operations", "actions" */
    int64_t all, declared;               /* with `reads` or `writes`; actions: by their meaning */
    int64_t buffers;                     /* that are read or written */
    bool assumes_shared;                 /* shared buffers hold values before the first iteration */
    bool assumes_unwritten;              /* host programs: so do buffers that no operation writes */
    const struct unrecorded *unrecorded; /* the plan's */
    size_t unrecorded_count;
};

enum { COVERAGE_TEXT = 2 * PLAN_MAX_NAME + 4 };
/* "messages: the dump has none", written to `text`. */
const char *coverage_unrecorded(const struct unrecorded *entry, char text[COVERAGE_TEXT]);
/* Say in diag of each of them that the verdicts and predictions to come do not cover it. */
void coverage_warn(const struct plan *plan, struct diag *diag);

enum status coverage_find(const struct plan *plan, struct coverage *out, struct diag *diag);

/* True if there is work, and none of it declares an access. */
bool coverage_is_nothing(const struct coverage *coverage);
/* True if some of the work declares its accesses, and some does not. */
bool coverage_is_partial(const struct coverage *coverage);

/* The work that declares no access, each in diag as a note with its place in the file, the first few of them.
   STATUS_VIOLATED where there is any. */
enum status coverage_tell_undeclared(const struct plan *plan, const struct coverage *coverage,
                                     struct diag *diag);

/* The key "coverage"; `not_asked`: bits of the properties that were not asked for. */
void coverage_write(const struct coverage *coverage, unsigned not_asked, struct json *json);

/* outside[b], for each of plan->buffers: true if it holds values before anything is written. These are the buffers that `inputs:`
   names; without that key the shared buffers of a pipeline, and of a host program those that no operation writes or
   allocates. */
void coverage_inputs(const struct plan *plan, bool *outside);

#endif
