/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rewrite.h - the change of a plan as edits of the text that its author wrote.
 *
 * The canonical texts of a plan before and after a change differ in some keys and items. These are changed at the
 * same places of the author's text; all the rest stays as it is: comments, the order of keys, line breaks.
 */
#ifndef SWSIM_REWRITE_H
#define SWSIM_REWRITE_H

#include "base/arena.h"

/* `original` with the differences between `before`, which is its canonical text, and `after`. In `arena`; NULL: it
   cannot be done, or memory is exhausted. The result is a proposal: the caller parses and prints it, and compares
   that with `after`. */
const char *rewrite_text(const char *original, const char *before, const char *after,
                         struct arena *arena);

#endif
