/* SPDX-License-Identifier: Apache-2.0 */
/*
 * touch.h - the host's accesses to pinned memory, seen by its pages: an option, for it costs two system calls a copy.
 *
 * Behind a copy, fill or kernel that writes pinned memory its pages are closed, behind one that reads it they are read-only;
 * the program's first access opens them again, as far as it needs, and is noted. A program that gives such memory to the system, as read(2) does, gets EFAULT,
 * and one with a handler of its own for SIGSEGV loses the notes. SWSIM_RECORD_TOUCH is set where it is wanted.
 */
#ifndef SWSIM_TOUCH_H
#define SWSIM_TOUCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording.h"

/* True if accesses are seen in this process. */
bool touch_on(void);

/* A thread begins, with the mask of its creator: it must not block what an access raises. */
void touch_begin_thread(void);

/* A call of the program is over, and this is its item. */
void touch_see(enum recording_kind kind, size_t count, const uint64_t *words);

#endif
