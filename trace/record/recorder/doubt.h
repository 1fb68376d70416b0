/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doubt.h - answers that the program gets first: an option, for it changes the run.
 *
 * A question whether an event is done that is answered with yes at once does not show what the program would have done behind
 * a no. So the first question for each record of an event is answered with no, as it would have been a little earlier. It is
 * not where the program may know better: where some call has waited, a host function has begun or another answer was yes, and
 * that may imply it, which is so of all that was recorded before what is known to be done. SWSIM_RECORD_ASK_TWICE is set where
 * it is wanted.
 */
#ifndef SWSIM_DOUBT_H
#define SWSIM_DOUBT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording.h"

/* A call of the program is over, and this is its item. */
void doubt_see(enum recording_kind kind, size_t count, const uint64_t *words);
/* All that was called before is known to be done. */
void doubt_know_all(void);
/* The true answer was yes. True if the program is told no. */
bool doubt_answer(enum recording_kind kind, size_t count, const uint64_t *words);

#endif
