/* SPDX-License-Identifier: Apache-2.0 */
/*
 * integers.h - arithmetic of whole numbers.
 */
#ifndef SWSIM_INTEGERS_H
#define SWSIM_INTEGERS_H

#include <stdint.h>

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
