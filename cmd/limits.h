/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits.h - `--limit=time=DURATION,mem=SIZE` of the verbs that do no search.
 *
 * A thread watches the clock and the memory of the process. When a limit is passed, it asks the verb to end as an interrupt
 * does; a verb that handles interrupts then prints what it has found. A verb that has not ended a moment later is ended by
 * the thread, with a message and the exit code of a limit.
 */
#ifndef SWSIM_LIMITS_H
#define SWSIM_LIMITS_H

#include "app.h"

/* Wrong use is told; no `list`, no limits. */
enum status limits_begin(struct app *app, const char *list);

/* "mem=SIZE" or "time=DURATION". *known is false, with STATUS_OK, where the key is another one. */
enum status limits_read(struct option_reader reader, const char *key, const char *value,
                        size_t *mem_bytes, int64_t *time_ns, bool *known);

#endif
