/*
 * compare.h - where two blocks of memory differ, as fast as memory can be read.
 *
 * A search without reduction compares each successor with its parent as a whole to find what a step
 * has changed, which is little: several times as much is read here as anywhere else. So there is a
 * version for wide registers, taken where the processor has them.
 */
#ifndef SWSIM_COMPARE_H
#define SWSIM_COMPARE_H

#include <stddef.h>

enum { COMPARE_LINE = 64 };

/* The first line of 64 bytes, from line `from` on, in which the blocks differ; `lines`, which is
   how many they have, if they do not. Both start at a multiple of 64. */
size_t compare_lines(const void *a, const void *b, size_t from, size_t lines);

#endif
