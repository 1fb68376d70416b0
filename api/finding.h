/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finding.h - what is found out about a plan: the verdicts of its drivers, its repair, warnings, what a verdict covers.
 *
 * For `swsim verify` and libswsim alike. A finding refers to its plan; the texts of warnings live in the caller's
 * arena, everything else in the finding.
 */
#ifndef SWSIM_FINDING_H
#define SWSIM_FINDING_H

#include "verdict.h"

struct finding {
    const struct plan *plan;
    struct verify_report reports[REPAIR_MAX_DRIVERS]; /* the first `count` are there */
    int count;
    bool repair_sought;
    struct repair repair; /* if it was sought */
    struct warnings warnings;
    struct coverage coverage;
};

/* Read the plan: its coverage and its warnings. On failure there is nothing to close. */
enum status finding_open(struct finding *finding, const struct plan *plan, struct arena *arena,
                         struct diag *diag);
void finding_close(struct finding *finding);

/* Verify the plan under `options`, which name the driver, as one report more. The time of the limits begins here, as that of
   finding_repair does there. */
enum status finding_verify(struct finding *finding, const struct verify_options *options,
                           struct diag *diag);

/* Behind the last report: if the plan is proved without races, warn of writes that nobody can read. The warnings from
   *first on are new. */
enum status finding_dead_writes(struct finding *finding, const struct verify_options *options,
                                struct arena *arena, size_t *first, struct diag *diag);

/* Look for a repair if a report is of a violation; `options` need not say which drivers. */
enum status finding_repair(struct finding *finding, const struct repair_options *options,
                           struct diag *diag);

/* The report of this number as verdict_print and verdict_write show it: the repair is told with the first violation. */
struct verdict_view finding_view(const struct finding *finding, int number);

#endif
