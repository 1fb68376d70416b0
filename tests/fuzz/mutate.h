/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutate.h - changes of texts that readers of texts understand: by words, numbers and lines.
 *
 * Bytes alone hardly ever make a second key of the same name, a task that waits for itself or a number just above a
 * limit. The words are those of the parser's own tables (words.sh), and those of the input itself.
 */
#ifndef SWSIM_FUZZ_MUTATE_H
#define SWSIM_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* Change `data` in place; `size` bytes of `most`. Returns the new size; 0: nothing could be done with this input. */
size_t mutate_text(uint8_t *data, size_t size, size_t most, uint32_t seed);

/* Lines of `a` with some of `b` among them, in `out`. Returns its size. */
size_t mutate_mix(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint8_t *out,
                  size_t most, uint32_t seed);

#endif
