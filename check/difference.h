/* SPDX-License-Identifier: Apache-2.0 */
/*
 * difference.h - the lines in which two blocks of memory differ, as fast as memory can be read.
 *
 * A search without reduction compares each successor with its parent as a whole to find the few
 * changes of a step, and reads more memory here than anywhere else. So there is a version for wide
 * registers, used where the processor has them.
 */
#ifndef SWSIM_DIFFERENCE_H
#define SWSIM_DIFFERENCE_H

#include <stddef.h>
#include <stdint.h>

enum { COMPARE_LINE = 64 };

/* Of two blocks of `lines` lines of 64 bytes each, both aligned to 64, set bit i of `differs` (word
   i / 64, bit i mod 64) if they differ in line i, and clear it if they do not. */
void compare_lines(const void *a, const void *b, size_t lines, uint64_t *differs);

#endif
