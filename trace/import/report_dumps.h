/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_dumps.h - what dumps of the flight recorder hold: of each rank and process group how many calls, how many of
 * them are over, and which is the first that is not.
 */
#ifndef SWSIM_REPORT_DUMPS_H
#define SWSIM_REPORT_DUMPS_H

#include <stdio.h>

#include "flight_calls.h"

struct json;

void report_dumps(const struct flight_job *job, FILE *out);
/* As members of an object. */
void report_dumps_json(const struct flight_job *job, struct json *json);

#endif
