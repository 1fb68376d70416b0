/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repeats.h - stretches of a list that come several times in a row.
 *
 * Long stories say such a stretch once: a b c a b c a b c d is 3 times a b c, and d. Items are told apart by keys: a hash
 * of the words of a step without the numbers in them, so that the same step of another rank or iteration is the same.
 */
#ifndef SWSIM_REPEATS_H
#define SWSIM_REPEATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REPEATS_LONGEST = 64 }; /* a stretch */

/* Items first .. first + length - 1, and as many behind them again, `times` in all. */
struct stretch {
    size_t first, length, times;
};

/* The key of a text without its numbers, mixed with `seed`. */
uint64_t repeats_key(const char *text, uint64_t seed);

/* From left to right, each where it leaves out the most items, at least `least`. They are in order and apart; `out` has
   room for count / 2 + 1. Returns their number. Time: count * REPEATS_LONGEST in the mean. */
size_t repeats_find(const uint64_t *keys, size_t count, size_t least, struct stretch *out);

/* Of stretches of any length the one that leaves out the most items: the loop of a program. It comes at least `least` times in a
   row; else out->times is 0. Lengths that are tried are those at which windows of items come again most often. Time:
   count * log(count). False: no memory. */
bool repeats_most(const uint64_t *keys, size_t count, size_t least, struct stretch *out);

#endif
