/*
 * verdict.h - what the checker found out, in words and as JSON.
 */
#ifndef SWSIM_VERDICT_H
#define SWSIM_VERDICT_H

#include "app.h"

#include "check/verify.h"
#include "core/json.h"

/* One line for people: name, driver, verdict, reach and cost; below it every violated property and,
   unless the app is quiet, the counterexample of the first. A long one loses its middle on `out`
   unless `whole`. */
void verdict_print(const struct app *app, const struct verify_report *report, bool whole,
                   FILE *out);

/* One JSON object; its keys are a contract. */
void verdict_write(const struct verify_report *report, struct json *json);

#endif
