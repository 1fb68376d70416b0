/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sort.h - the smaller and the larger of two numbers, comparison functions for qsort, binary search.
 *
 * Everything is inline and typed; nothing is allocated and nothing can fail. The suffix names the type: int, i64, u64,
 * size or double (which has no NaN here).
 *
 *     static int compare_spans(const void *left, const void *right)
 *     {
 *         const struct span *a = left, *b = right;
 *         return compare_then(compare_int(a->agent, b->agent), compare_i64(a->start_ns, b->start_ns));
 *     }
 *
 *     SORT(spans, count, compare_spans);
 *     size_t at = SORT_FIRST(i, 0, count, spans[i].agent >= agent);
 */
#ifndef SWSIM_SORT_H
#define SWSIM_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * For each type: min_int and max_int; compare_int, which is negative, 0 or positive as qsort wants it; compare_items_int, the
 * comparison of two items of an array of int; sort_int, which sorts such an array ascending in count * log(count) steps.
 */
#define SORT_TYPES(X)                                                                              \
    X(int, int)                                                                                    \
    X(i64, int64_t)                                                                                \
    X(u64, uint64_t)                                                                               \
    X(size, size_t)                                                                                \
    X(double, double)

#define X(name, type)                                                                              \
    static inline type min_##name(type a, type b)                                                  \
    {                                                                                              \
        return a < b ? a : b;                                                                      \
    }                                                                                              \
    static inline type max_##name(type a, type b)                                                  \
    {                                                                                              \
        return a > b ? a : b;                                                                      \
    }                                                                                              \
    static inline int compare_##name(type a, type b)                                               \
    {                                                                                              \
        return (a > b) - (a < b);                                                                  \
    }                                                                                              \
    static inline int compare_items_##name(const void *left, const void *right)                    \
    {                                                                                              \
        return compare_##name(*(const type *)left, *(const type *)right);                          \
    }                                                                                              \
    static inline void sort_##name(type *items, size_t count)                                      \
    {                                                                                              \
        if (count > 1)                                                                             \
            qsort(items, count, sizeof *items, compare_items_##name);                              \
    }
SORT_TYPES(X)
#undef X

/* A comparison by a second key, which decides where the first key is equal. */
static inline int compare_then(int first, int second)
{
    return first ? first : second;
}

/* The comparison of two items of an array of texts; none of them is NULL. */
static inline int compare_items_text(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* qsort and qsort_r of an array, which may be NULL where it is empty. Equal items may change places: a comparison ends with a
   key that is unique, or the result depends on the C library. */
#define SORT(items, count, compare)                                                                \
    ((count) > 1 ? qsort((items), (count), sizeof *(items), (compare)) : (void)0)
#define SORT_BY(items, count, compare, context)                                                    \
    ((count) > 1 ? qsort_r((items), (count), sizeof *(items), (compare), (context)) : (void)0)

/*
 * The first number i from `low` to `high` - 1 for which `condition`, an expression of i, is true; `high` if there is none.
 * The condition is false up to some number and true from there on. It is evaluated about log2(high - low) times. The result
 * has the type of `high`.
 */
#define SORT_FIRST(i, low, high, condition)                                                        \
    __extension__({                                                                                \
        __typeof__((high) + 0) sort_low_ = (low), sort_high_ = (high);                             \
        while (sort_low_ < sort_high_) {                                                           \
            const __typeof__(sort_low_) i = sort_low_ + (sort_high_ - sort_low_) / 2;              \
            if (condition)                                                                         \
                sort_high_ = i;                                                                    \
            else                                                                                   \
                sort_low_ = i + 1;                                                                 \
        }                                                                                          \
        sort_low_;                                                                                 \
    })

/* Texts that are equal, or both NULL. */
static inline bool equal_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

#endif
