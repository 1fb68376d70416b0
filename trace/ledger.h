/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger.h - why the streams of a run were idle: one line for each cause on each stream.
 *
 * A line has the time in total. Its words are those of the spans that it
 * adds up (trace_span.cause), so a span finds its line by them. Times that are too short for a span of their own may
 * be in a line all the same. A run without lines has not been asked why its streams were idle.
 */
#ifndef SWSIM_LEDGER_H
#define SWSIM_LEDGER_H

#include "trace.h"

/* Causes beside those of the simulator (stall_key), and words of both. */
#define LEDGER_UNEXPLAINED "unexplained" /* nothing in the record of the run explains it */
#define LEDGER_ORDER       "order"       /* between one work and the next */
/* The others: "id", "call order", "time" and "ranks" of an import (trace/import/evidence.h, trace/import/meetings.h). */
#define LEDGER_BY_MODEL                                                                            \
    "model" /* the simulator's word, or the machine's that took the run's steps */

/* Add to the line of this agent with these words; the first one sets cause, word and waits_for. False: out of
   memory. */
bool trace_add_idle(struct trace *trace, const struct trace_idle *line);

/* The line of an agent with these words, which are the trace's own (trace_intern); NULL: none. */
const struct trace_idle *trace_find_idle(const struct trace *trace, int agent, const char *words);

#endif
