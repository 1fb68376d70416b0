/* SPDX-License-Identifier: Apache-2.0 */
/* t_sort.c - the smaller and the larger, comparisons, sorted arrays, binary search. */
#include <stdbool.h>

#include "base/sort.h"
#include "tests/tap.h"

static void test_pairs(void)
{
    tap_ok(min_int(-1, 2) == -1 && max_int(-1, 2) == 2, "min_int, max_int");
    tap_ok(min_i64(INT64_MIN, INT64_MAX) == INT64_MIN && max_u64(0, UINT64_MAX) == UINT64_MAX,
           "the limits of the types");
    tap_ok(compare_i64(INT64_MIN, INT64_MAX) < 0 && compare_i64(INT64_MAX, INT64_MIN) > 0 &&
               compare_double(0.5, 0.5) == 0,
           "comparisons do not overflow");
    tap_ok(compare_then(-1, 1) < 0 && compare_then(0, 1) > 0 && compare_then(0, 0) == 0,
           "a second key decides between equal ones");
}

static void test_sort(void)
{
    int numbers[] = {3, -1, 2, 2, INT32_MIN};
    const char *texts[] = {"b", "", "ab"};
    int *none = NULL;
    sort_int(numbers, 5);
    tap_ok(numbers[0] == INT32_MIN && numbers[1] == -1 && numbers[2] == 2 && numbers[4] == 3,
           "numbers");
    SORT(texts, 3, compare_items_text);
    tap_is_str(texts[1], "ab", "texts");
    SORT(none, 0, compare_items_int);
    sort_int(none, 0);
    tap_ok(true, "an empty array may be NULL");
}

static void test_search(void)
{
    int squares[100];
    bool right = true;
    for (int i = 0; i < 100; i++)
        squares[i] = i * i;
    for (int wanted = -1; wanted < 10000; wanted++) {
        const size_t at = SORT_FIRST(i, 0, (size_t)100, squares[i] >= wanted);
        right &= (at == 0 || squares[at - 1] < wanted) && (at == 100 || squares[at] >= wanted);
    }
    tap_ok(right, "the first of those that are not less");
    tap_is_int(SORT_FIRST(i, 10, 20, squares[i] > 144), 13, "within limits");
    tap_is_int(SORT_FIRST(i, 10, 20, false), 20, "none");
    tap_is_int(SORT_FIRST(i, 10, 20, true), 10, "all");
    tap_is_int(SORT_FIRST(i, 10, 10, squares[1000000 * i] > 0), 10, "nothing is asked of no items");
}

int main(void)
{
    test_pairs();
    test_sort();
    test_search();
    return tap_done();
}
