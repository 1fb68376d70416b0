/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tape_lines.h - a recording of one process as lines of text: THREAD AT TOOK KIND WORD...
 *
 * Numbers are decimal or hexadecimal, times ns; TOOK "-": longer than an item can tell. KIND is a name of
 * RECORDING_LIST, or a number. Behind the number of a TEXT come its characters. Lines that are none are left out.
 */
#ifndef SWSIM_TAPE_LINES_H
#define SWSIM_TAPE_LINES_H

#include <stddef.h>
#include <stdint.h>

enum { TAPE_LINES_THREADS = 4 };

/* The file, of *size bytes, which the caller frees: a chunk for each thread up to the last. A chunk that does not fit is
   left out. */
void *tape_lines(const uint8_t *data, size_t length, size_t *size);

#endif
