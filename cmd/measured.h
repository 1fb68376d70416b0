/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measured.h - the figures of a real run, as text and as JSON: the output of `swrun`.
 */
#ifndef SWSIM_MEASURED_H
#define SWSIM_MEASURED_H

#include <stdio.h>

#include "base/json.h"
#include "gpu/exec/runtime.h"
#include "plan/text/warnings.h"

struct measured {
    const struct plan *plan;
    const struct runtime_options *options;
    const struct runtime_result *result;
    bool stats;                      /* calls and times by name, too */
    const struct warnings *warnings; /* about the plan */
};

/* Text, with codes of colours for a terminal; `quiet` leaves out the streams. */
void measured_print(const struct measured *measured, bool quiet, bool color, FILE *out);

/* One JSON object; its keys are a contract. Streams of one name are given as their mean over the
   ranks; with several ranks `ranks` adds each by itself. */
void measured_write(const struct measured *measured, struct json *json);

/* "blocked": the agents that cannot go on. */
void measured_write_blocked(const struct runtime_result *result, struct json *json);
/* A key with true or false, null where the answer is unknown. */
void measured_put_answer(struct json *json, const char *key, enum answer answer);

#endif
