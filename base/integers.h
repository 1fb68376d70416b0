/* SPDX-License-Identifier: Apache-2.0 */
/*
 * integers.h - arithmetic of whole numbers.
 */
#ifndef SWSIM_INTEGERS_H
#define SWSIM_INTEGERS_H

#include <stdint.h>

/* The sum of numbers that are not negative, INT64_MAX where it is more: of a limit and what comes on top of it. */
static inline int64_t integers_sum(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

/* The greatest common divisor of numbers that are not negative (Euclid); integers_gcd(a, 0) is a. */
static inline int64_t integers_gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The decimal digits of a number that is not negative, at `out`, without a final 0. Returns their end; there are at most
   INTEGERS_TEXT. */
enum { INTEGERS_TEXT = 10 };
static inline char *integers_print(char *out, int number)
{
    char digits[INTEGERS_TEXT];
    int count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (count > 0)
        *out++ = digits[--count];
    return out;
}

#endif
