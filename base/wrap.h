/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrap.h - a stream that breaks lines which are wider than the terminal at their spaces.
 *
 *     stdout = wrap_open(stdout, 80);
 *
 * What continues a line stands below its last column, or a little further in. JSON and the lines of a diff, which begin with
 * a brace, a sign or an @, stay as they are. The stream closes the one below it; a line is written when it is complete.
 */
#ifndef SWSIM_WRAP_H
#define SWSIM_WRAP_H

#include <stdio.h>

/* NULL: out of memory; `out` then stays open. */
FILE *wrap_open(FILE *out, int width);

#endif
