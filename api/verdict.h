/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict.h - the results of the checker, as text and as JSON.
 */
#ifndef SWSIM_VERDICT_H
#define SWSIM_VERDICT_H

#include "improve/repair.h"
#include "check/verify.h"
#include "plan/coverage.h"
#include "base/json.h"
#include "plan/text/warnings.h"

/* One plan under one driver. */
struct verdict_view {
    const struct verify_report *report;
    const struct repair *repair; /* NULL: none was looked for */
    bool several_drivers;        /* the repair was to hold under more than one */
    bool told;                   /* already shown with the previous driver */
    bool alike; /* it violates what the previous driver does, which is told in full */
    const struct warnings *warnings;
    const struct coverage *coverage;
};

/* The look of results for people, and the means to make them. */
struct verdict_style {
    struct arena *arena;
    struct diag *diag;
    bool color;
    bool quiet; /* no counterexample and no repair */
    bool whole; /* every step of a story */
    bool brief; /* of a story that is cut: no word of --full, which the reader has not */
};

/* "always", "in some interleavings", or that this is not decided: of a violated property. */
const char *verdict_quantifier(const struct verify_report *report, enum property property);

/* The heads of the columns of such lines. */
void verdict_print_head(FILE *out);

/* One line for people: name, driver, verdict, reach and cost; below it every violated property, the counterexample
   of the first and the repair of the plan. Steps that belong together are one line (telling.h), and a long story
   loses its middle, unless the whole is wanted. */
enum status verdict_print(const struct verdict_style *style, const struct verdict_view *view,
                          FILE *out);

/* The repair, behind the rest of a violated plan that verdict_print has shown before one was looked for. */
void verdict_print_repair(const struct verdict_style *style, const struct verdict_view *view,
                          FILE *out);

/* "proved", or under which drivers the repair is proved, where there is a choice. */
const char *verdict_proved_under(const struct repair *repair, bool several_drivers);

/* A violation that is told before all questions are answered: what it is, and how it happens. */
enum status verdict_print_found(const struct verdict_style *style,
                                const struct verify_report *so_far, FILE *out);

/* True if the plan is proved, and nothing else is to be said: no warning, and accesses to find races between. */
bool verdict_is_plain(const struct verdict_view *view);

/* One JSON object; its keys are a contract. */
void verdict_write(const struct verdict_view *view, struct json *json);

#endif
