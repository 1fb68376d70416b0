/* SPDX-License-Identifier: Apache-2.0 */
/*
 * printable.h - the one way of foreign text to a terminal, an SVG or a DOT file.
 *
 * Names, notes and messages may come from a plan, a trace store, a file name or an option of a stranger. What would
 * act instead of being seen is shown by its number: C0 and C1 control characters, the characters that change
 * the direction of text or end a line unseen, and bytes that are no UTF-8.
 *
 *     ESC [31m   ->  \x1b[31m        U+202E  ->  \u202e        0xff  ->  \xff
 */
#ifndef SWSIM_PRINTABLE_H
#define SWSIM_PRINTABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "arena.h"

/* Nothing but characters that are seen. `lines`: new lines and tabs are allowed. */
bool printable_is(const char *text, bool lines);

/* As much as is seen: the text itself where that is all of it, else a copy in the arena. NULL for NULL, and
   when memory is exhausted. */
const char *printable_text(struct arena *arena, const char *text, bool lines);

/* The same to a file. */
void printable_put(const char *text, bool lines, FILE *out);

/* The bytes of the character at `text`, which does not end there; *code is 0 for a byte that is no UTF-8. */
size_t printable_decode(const char *text, unsigned *code);

/* The bytes of the whole characters at the beginning of `text`, at most `most`. It ends where it is no UTF-8. */
int printable_fit(const char *text, int most);

/* True if this character acts instead of being seen. 0 does. */
bool printable_acts(unsigned code);

#endif
