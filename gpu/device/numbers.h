/* SPDX-License-Identifier: Apache-2.0 */
/*
 * numbers.h - the types of numbers that collectives add up, and their sums in a stated precision.
 *
 * f32 is added in f32; f16 and bf16 are added in f32 and rounded once at the end, to nearest, ties to even;
 * i32 and i64 wrap around. The order is the caller's. Here for the host device and for what imitates others.
 */
#ifndef SWSIM_NUMBERS_H
#define SWSIM_NUMBERS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NUMBER_LIST(X)                                                                             \
    X(F32, "f32", 4) X(F16, "f16", 2) X(BF16, "bf16", 2) X(I32, "i32", 4) X(I64, "i64", 8)
enum number {
#define X(name, key, bytes) NUMBER_##name,
    NUMBER_LIST(X)
#undef X
};

/* "f32", "f16", ... */
static inline const char *number_key(enum number number)
{
    static const char *const keys[] = {
#define X(name, key, bytes) key,
        NUMBER_LIST(X)
#undef X
    };
    return keys[number];
}

static inline int64_t number_bytes(enum number number)
{
    static const int64_t sizes[] = {
#define X(name, key, bytes) bytes,
        NUMBER_LIST(X)
#undef X
    };
    return sizes[number];
}

static inline float number_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t number_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float number_from_bf16(uint16_t half)
{
    return number_float((uint32_t)half << 16);
}

static inline uint16_t number_to_bf16(float value)
{
    uint32_t bits = number_bits(value);
    if ((bits & 0x7fffffffU) > 0x7f800000U)
        return (uint16_t)(bits >> 16 | 0x40U); /* stays no number */
    return (uint16_t)((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

static inline float number_from_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000U) << 16, rest = half & 0x7fffU;
    if (rest >= 0x7c00U) /* infinite, or no number */
        return number_float(sign | 0x7f800000U | (rest & 0x3ffU) << 13);
    if (rest >= 0x400U)
        return number_float(sign | ((rest << 13) + ((127U - 15U) << 23)));
    float small = (float)rest * 0x1p-24F; /* subnormal: exact */
    return sign ? -small : small;
}

static inline uint16_t number_to_f16(float value)
{
    uint32_t bits = number_bits(value), sign = bits >> 16 & 0x8000U, rest = bits & 0x7fffffffU;
    if (rest > 0x7f800000U)
        return (uint16_t)(sign | 0x7e00U);
    if (rest >= 0x477ff000U) /* rounds to 65536 or more */
        return (uint16_t)(sign | 0x7c00U);
    if (rest >= 0x38800000U) /* normal */
        return (uint16_t)(sign | (rest - 0x38000000U + 0xfffU + (rest >> 13 & 1U)) >> 13);
    /* a number so large that its last place is 2^-24 rounds the other to it */
    float rounded = number_float(rest) + 0.5F;
    return (uint16_t)(sign | (number_bits(rounded) - 0x3f000000U));
}

enum { NUMBER_SUMS = 1024 };
union number_sums {
    float real[NUMBER_SUMS];
    uint64_t whole[NUMBER_SUMS];
};

/* sums[i] += x[i], at most NUMBER_SUMS. */
static inline void number_add(enum number number, union number_sums *sums, const void *x,
                              size_t count)
{
    for (size_t i = 0; i < count; i++)
        switch (number) {
        case NUMBER_F32: sums->real[i] += ((const float *)x)[i]; break;
        case NUMBER_F16: sums->real[i] += number_from_f16(((const uint16_t *)x)[i]); break;
        case NUMBER_BF16: sums->real[i] += number_from_bf16(((const uint16_t *)x)[i]); break;
        case NUMBER_I32: sums->whole[i] += ((const uint32_t *)x)[i]; break;
        case NUMBER_I64: sums->whole[i] += ((const uint64_t *)x)[i]; break;
        }
}

static inline void number_store(enum number number, const union number_sums *sums, void *out,
                                size_t count)
{
    if (number == NUMBER_F32) {
        memcpy(out, sums->real, count * sizeof *sums->real);
        return;
    }
    for (size_t i = 0; i < count; i++)
        switch (number) {
        case NUMBER_F32: break;
        case NUMBER_F16: ((uint16_t *)out)[i] = number_to_f16(sums->real[i]); break;
        case NUMBER_BF16: ((uint16_t *)out)[i] = number_to_bf16(sums->real[i]); break;
        case NUMBER_I32: ((uint32_t *)out)[i] = (uint32_t)sums->whole[i]; break;
        case NUMBER_I64: ((uint64_t *)out)[i] = sums->whole[i]; break;
        }
}

#endif
