/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff.h - two texts compared line by line, as a unified diff.
 *
 * The longest common subsequence of lines, by dynamic programming over what lies between the common
 * beginning and the common end (Hunt and McIlroy 1976 say why lines; the table is small for texts
 * that differ in one place). Where even that is too large, everything between is shown as replaced.
 * A hunk's heading names the keys of a YAML text it stands under.
 */
#ifndef SWSIM_DIFF_H
#define SWSIM_DIFF_H

#include "base/arena.h"

/* The hunks, with `context` unchanged lines around each; "" if the texts are equal. In `arena`;
   NULL when memory is exhausted. */
const char *diff_unified(const char *before, const char *after, int context, struct arena *arena);

#endif
