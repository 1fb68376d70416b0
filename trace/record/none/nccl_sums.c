/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_sums.c - the arithmetic of reductions, in the order of the ranks, so that all ranks have the same result. */
#include "nccl.h"

#include <math.h>
#include <string.h>

static const struct {
    size_t bytes;
    const char *name;
} nccl_types[] = {{1, "int8"},    {1, "uint8"},    {4, "int32"},      {4, "uint32"},
                  {8, "int64"},   {8, "uint64"},   {2, "float16"},    {4, "float32"},
                  {8, "float64"}, {2, "bfloat16"}, {1, "float8e4m3"}, {1, "float8e5m2"}};

size_t nccl_type_bytes(int type)
{
    return type >= 0 && type < 12 ? nccl_types[type].bytes : 0;
}

const char *nccl_type_name(int type)
{
    return type >= 0 && type < 12 ? nccl_types[type].name : "an unknown type";
}

static float bfloat_load(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float out;
    memcpy(&out, &wide, sizeof out);
    return out;
}
static uint16_t bfloat_store(float value)
{
    uint32_t wide;
    memcpy(&wide, &value, sizeof wide);
    if (value != value)
        return 0x7fc0;
    return (uint16_t)((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
}

float nccl_half(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, rest = bits & 1023;
    const float sign = bits & 0x8000 ? -1.0F : 1.0F;
    if (exponent == 31)
        return rest ? NAN : sign * INFINITY;
    return sign *
           (exponent ? ldexpf((float)(rest + 1024), exponent - 25) : ldexpf((float)rest, -24));
}

/* To the nearest, of two equally near ones to the even one; what is too large becomes infinite. */
static uint16_t half_store(float value)
{
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    const float size = fabsf(value);
    int exponent;
    if (isnan(value))
        return 0x7e00;
    if (size >= 65520.0F)
        return sign | 0x7c00;
    if (size < ldexpf(1, -14))
        return (uint16_t)(sign | (uint16_t)rintf(ldexpf(size, 24)));
    const float part = frexpf(size, &exponent); /* of 0.5 to 1 */
    /* what is rounded up to 2048 carries into the exponent */
    return (uint16_t)(sign | (uint16_t)(((exponent + 13) << 10) + (int)rintf(ldexpf(part, 11))));
}

/* Eight bits: sign, exponent of `exponent` bits, the rest. */
static float small_load(unsigned bits, int exponent)
{
    const int rest = 7 - exponent, bias = (1 << (exponent - 1)) - 1;
    const unsigned e = bits >> rest & ((1u << exponent) - 1), m = bits & ((1u << rest) - 1);
    float value = (float)(e ? (1u << rest) + m : m);
    for (int i = (int)(e ? e : 1) - bias - rest; i != 0; i += i < 0 ? 1 : -1)
        value = i < 0 ? value / 2 : value * 2;
    return bits & 0x80 ? -value : value;
}
/* The nearest number; infinities and what is none are left out. */
static unsigned char small_store(float value, int exponent)
{
    const unsigned last = exponent == 4 ? 0x7e : 0x7b;
    const float size = value < 0 ? -value : value;
    unsigned best = 0;
    for (unsigned bits = 1; bits <= last; bits++) {
        const float own = small_load(bits, exponent), best_is = small_load(best, exponent);
        if ((own > size ? own - size : size - own) <
            (best_is > size ? best_is - size : size - best_is))
            best = bits;
    }
    return (unsigned char)(best | (value < 0 ? 0x80 : 0));
}

#define PLAIN(x)        (x)
#define LOAD_BFLOAT(x)  bfloat_load(x)
#define STORE_BFLOAT(x) bfloat_store(x)
#define LOAD_E4M3(x)    small_load(x, 4)
#define STORE_E4M3(x)   small_store(x, 4)
#define LOAD_E5M2(x)    small_load(x, 5)
#define STORE_E5M2(x)   small_store(x, 5)

/* WIDE is what is computed with. */
#define COMBINE(TYPE, WIDE, LOAD, STORE)                                                           \
    for (size_t i = 0; i < count; i++) {                                                           \
        WIDE all = 0;                                                                              \
        for (int rank = 0; rank < ranks; rank++) {                                                 \
            TYPE part = 0;                                                                         \
            if (parts[rank])                                                                       \
                memcpy(&part, parts[rank] + i * sizeof part, sizeof part);                         \
            WIDE value = (WIDE)LOAD(part);                                                         \
            if (factors)                                                                           \
                value = (WIDE)((double)value * factors[rank]);                                     \
            all = rank == 0                   ? value                                              \
                  : operation == NCCL_PRODUCT ? (WIDE)(all * value)                                \
                  : operation == NCCL_MAX     ? (all > value ? all : value)                        \
                  : operation == NCCL_MIN     ? (all < value ? all : value)                        \
                                              : (WIDE)(all + value);                                   \
        }                                                                                          \
        if (operation == NCCL_AVERAGE)                                                             \
            all = (WIDE)(all / (WIDE)ranks);                                                       \
        const TYPE result = (TYPE)STORE(all);                                                      \
        memcpy(out + i * sizeof result, &result, sizeof result);                                   \
    }                                                                                              \
    return;

void nccl_combine(char *out, const char *const *parts, int ranks, size_t count, int type,
                  int operation, const double *factors)
{
    switch (type) {
    case 0: COMBINE(int8_t, int64_t, PLAIN, PLAIN)
    case 1: COMBINE(uint8_t, uint64_t, PLAIN, PLAIN)
    case 2: COMBINE(int32_t, int64_t, PLAIN, PLAIN)
    case 3: COMBINE(uint32_t, uint64_t, PLAIN, PLAIN)
    case 4: COMBINE(int64_t, int64_t, PLAIN, PLAIN)
    case 5: COMBINE(uint64_t, uint64_t, PLAIN, PLAIN)
    case 6: COMBINE(uint16_t, float, nccl_half, half_store)
    case 7: COMBINE(float, float, PLAIN, PLAIN)
    case 8: COMBINE(double, double, PLAIN, PLAIN)
    case 9: COMBINE(uint16_t, float, LOAD_BFLOAT, STORE_BFLOAT)
    case 10: COMBINE(uint8_t, float, LOAD_E4M3, STORE_E4M3)
    case 11: COMBINE(uint8_t, float, LOAD_E5M2, STORE_E5M2)
    default: return;
    }
}
