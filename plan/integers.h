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

#endif
