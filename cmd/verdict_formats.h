/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict_formats.h - verdicts in the formats of CI systems: annotations of GitHub, SARIF 2.1.0, JUnit's XML.
 *
 * One document goes to standard output: formats_begin, formats_verdict for each plan and driver, formats_errors for the
 * errors of a plan, formats_end. A violation stands at the line of the operation that goes wrong, where that is known.
 */
#ifndef SWSIM_VERDICT_FORMATS_H
#define SWSIM_VERDICT_FORMATS_H

#include "api/verdict.h"

enum verdict_format { FORMAT_TEXT, FORMAT_GITHUB, FORMAT_SARIF, FORMAT_JUNIT };
#define VERDICT_FORMATS "text|github|sarif|junit"

struct formats {
    enum verdict_format format; /* not FORMAT_TEXT */
    struct json json;           /* FORMAT_SARIF */
    FILE *out;
};

void formats_begin(struct formats *formats, enum verdict_format format, FILE *out);
/* `expected`: the plan expects this verdict, which is then no error. Texts are made in `arena`; STATUS_SYSTEM: no memory. */
enum status formats_verdict(struct formats *formats, const struct verdict_view *view, bool expected,
                            struct arena *arena, struct diag *diag);
/* The errors among the messages, which are still printed for people: of a bad plan (STATUS_INPUT), or of one that is not as
   its `expect:` says. */
void formats_errors(struct formats *formats, const char *plan, enum status status,
                    const struct diag *diag);
/* STATUS_SYSTEM where the output took no more. */
enum status formats_end(struct formats *formats, struct diag *diag);

#endif
