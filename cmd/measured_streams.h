/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measured_streams.h - the streams of a real run for people: a row for those that are busy alike, and a step in one line.
 */
#ifndef SWSIM_MEASURED_STREAMS_H
#define SWSIM_MEASURED_STREAMS_H

#include "measured.h"

/* Of the time of the run. */
double measured_busy(const struct runtime_result *result, const struct runtime_stream *stream);

/* Writes nothing where there are no streams. */
void measured_print_streams(const struct runtime_result *result, FILE *out);

/* The work of the computing stream, as predict shows it; nothing of host programs, and of pipelines whose
   tasks all ran on streams without one. */
void measured_print_step(const struct measured *measured, bool color, FILE *out);

#endif
