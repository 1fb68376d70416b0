/* compare.c - see compare.h. Four lines at a time, then the one of them. */
#include "check/compare.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { RUN = 4 };

static const unsigned char *line_at(const void *block, size_t line)
{
    return (const unsigned char *)block + line * COMPARE_LINE;
}

static bool differ(const void *a, const void *b, size_t lines)
{
    const unsigned char *x = a, *y = b;
    uint64_t difference = 0;
    for (size_t i = 0; i < lines * COMPARE_LINE; i += sizeof difference) {
        uint64_t one, two;
        memcpy(&one, x + i, sizeof one);
        memcpy(&two, y + i, sizeof two);
        difference |= one ^ two;
    }
    return difference;
}

static size_t skip_equal(const void *a, const void *b, size_t from, size_t lines)
{
    while (from + RUN <= lines && !differ(line_at(a, from), line_at(b, from), RUN))
        from += RUN;
    return from;
}

#ifdef __x86_64__
#include <immintrin.h>

__attribute__((target("avx2"))) static size_t skip_equal_avx2(const void *a, const void *b,
                                                              size_t from, size_t lines)
{
    for (; from + RUN <= lines; from += RUN) {
        const __m256i *x = (const void *)line_at(a, from), *y = (const void *)line_at(b, from);
        __m256i difference = _mm256_setzero_si256();
        for (size_t i = 0; i < RUN * COMPARE_LINE / sizeof *x; i++)
            difference = _mm256_or_si256(
                difference, _mm256_xor_si256(_mm256_load_si256(x + i), _mm256_load_si256(y + i)));
        if (!_mm256_testz_si256(difference, difference))
            break;
    }
    return from;
}
#endif

size_t compare_lines(const void *a, const void *b, size_t from, size_t lines)
{
#ifdef __x86_64__
    from = __builtin_cpu_supports("avx2") ? skip_equal_avx2(a, b, from, lines)
                                          : skip_equal(a, b, from, lines);
#else
    from = skip_equal(a, b, from, lines);
#endif
    while (from < lines && !differ(line_at(a, from), line_at(b, from), 1))
        from++;
    return from;
}
