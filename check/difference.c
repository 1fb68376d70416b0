/* SPDX-License-Identifier: Apache-2.0 */
/* difference.c - see difference.h. Four lines at a time, and one by one where those differ. */
#include "difference.h"

#include <stdbool.h>
#include <string.h>

enum { RUN = 4 };

static const unsigned char *line_at(const void *block, size_t line)
{
    return (const unsigned char *)block + line * COMPARE_LINE;
}

static bool difference_differ(const unsigned char *a, const unsigned char *b)
{
    uint64_t difference = 0;
    for (size_t i = 0; i < COMPARE_LINE; i += sizeof difference) {
        uint64_t one, two;
        memcpy(&one, a + i, sizeof one);
        memcpy(&two, b + i, sizeof two);
        difference |= one ^ two;
    }
    return difference;
}

/* From line `from` on; the words of `differs` are clear. */
static void compare_plainly(const void *a, const void *b, size_t from, size_t lines,
                            uint64_t *differs)
{
    for (size_t i = from; i < lines; i++)
        differs[i / 64] |= (uint64_t)difference_differ(line_at(a, i), line_at(b, i)) << (i % 64);
}

#ifdef __x86_64__
#include <immintrin.h>

#define WIDE __attribute__((target("avx2")))

WIDE static inline __m256i line_difference(const __m256i *x, const __m256i *y)
{
    return _mm256_or_si256(_mm256_xor_si256(_mm256_load_si256(x), _mm256_load_si256(y)),
                           _mm256_xor_si256(_mm256_load_si256(x + 1), _mm256_load_si256(y + 1)));
}

/* All whole runs; returns how many lines that is. A run is in one word of `differs`. */
WIDE static size_t compare_widely(const void *a, const void *b, size_t lines, uint64_t *differs)
{
    size_t at = 0;
    for (; at + RUN <= lines; at += RUN) {
        const __m256i *x = (const void *)line_at(a, at), *y = (const void *)line_at(b, at);
        __m256i one = line_difference(x, y), two = line_difference(x + 2, y + 2);
        __m256i three = line_difference(x + 4, y + 4), four = line_difference(x + 6, y + 6);
        __m256i any = _mm256_or_si256(_mm256_or_si256(one, two), _mm256_or_si256(three, four));
        if (_mm256_testz_si256(any, any))
            continue;
        unsigned equal = (unsigned)_mm256_testz_si256(one, one) |
                         (unsigned)_mm256_testz_si256(two, two) << 1 |
                         (unsigned)_mm256_testz_si256(three, three) << 2 |
                         (unsigned)_mm256_testz_si256(four, four) << 3;
        differs[at / 64] |= (uint64_t)(equal ^ 0xf) << (at % 64);
    }
    return at;
}
#else
static size_t compare_widely(const void *a, const void *b, size_t lines, uint64_t *differs)
{
    (void)a, (void)b, (void)lines, (void)differs;
    return 0;
}
#endif

static bool has_wide_registers(void)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

void compare_lines(const void *a, const void *b, size_t lines, uint64_t *differs)
{
    memset(differs, 0, (lines + 63) / 64 * sizeof *differs);
    size_t done = has_wide_registers() ? compare_widely(a, b, lines, differs) : 0;
    compare_plainly(a, b, done, lines, differs);
}
