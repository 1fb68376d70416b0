/* SPDX-License-Identifier: Apache-2.0 */
/* t_array.c - growing arrays: with malloc and in an arena, room of several types, and room that would overflow. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "tests/tap.h"

enum { MANY = 1000 };

static void test_malloc(void)
{
    int *items = NULL;
    size_t count = 0, cap = 0;
    bool ok = true, kept = true;
    for (int i = 0; i < MANY && ok; i++) {
        ok = ARRAY_GROW(items, count, cap);
        if (ok)
            items[count++] = i;
    }
    for (int i = 0; i < MANY && ok; i++)
        kept &= items[i] == i;
    tap_ok(ok && count == MANY && cap >= count, "an array grows to its items");
    tap_ok(kept, "items are kept when it moves");
    tap_ok(ARRAY_RESERVE(items, 5 * MANY, cap) && cap >= (size_t)5 * MANY &&
               items[MANY - 1] == MANY - 1,
           "more room at once");
    const int *before = items;
    tap_ok(ARRAY_RESERVE(items, 10, cap) && items == before, "room that is there moves nothing");
    free(items);
}

static void test_small_types(void)
{
    double *items = NULL;
    int count = 0, cap = 0;
    bool ok = true;
    for (; count < MANY && ok; count++) {
        ok = ARRAY_GROW(items, count, cap);
        if (ok)
            items[count] = count;
    }
    tap_ok(ok && cap >= MANY && items[MANY - 1] == MANY - 1, "room may be an int");
    free(items);
}

static void test_overflow(void)
{
    struct large {
        char bytes[1 << 20];
    } *items = NULL;
    int few = 0;
    size_t cap = 0;
    char *bytes = NULL;
    tap_ok(!ARRAY_RESERVE(items, SIZE_MAX / 2, cap) && !items && !cap, "bytes do not overflow");
    tap_ok(!ARRAY_RESERVE(bytes, (size_t)INT_MAX + 1, few) && !bytes && !few, "nor does an int");
    tap_is_int((int64_t)array_next_cap(INT_MAX / 2 + 1, INT_MAX / 2 + 2, 1, INT_MAX), INT_MAX,
               "the last step goes to the limit");
    tap_is_int((int64_t)array_next_cap(INT_MAX, (size_t)INT_MAX + 1, 1, INT_MAX), 0, "no further");
}

static void test_arena(void)
{
    struct arena arena;
    int64_t *items = NULL, *other = NULL;
    size_t count = 0, cap = 0, other_count = 0;
    uint32_t other_cap = 0;
    bool ok = true, kept = true;
    arena_init(&arena, 0);
    for (int i = 0; i < 100 * MANY && ok; i++) {
        ok = ARENA_GROW(&arena, items, count, cap) &&
             ARENA_REGROW(&arena, other, other_count, other_cap);
        if (ok)
            items[count++] = other[other_count++] = i;
    }
    for (int i = 0; i < 100 * MANY && ok; i++)
        kept &= items[i] == i && other[i] == i;
    tap_ok(ok && kept, "arrays in an arena");
    arena_check(&arena);
    tap_ok(!ARENA_RESERVE(&arena, items, SIZE_MAX / 4, cap) && arena.failed && items[1] == 1,
           "the arena remembers what it could not give");
    arena_fini(&arena);
    arena_init(&arena, 1000);
    items = NULL;
    for (count = cap = 0; ARENA_GROW(&arena, items, count, cap);)
        count++;
    tap_ok(count > 0 && count < 1000 / sizeof *items && arena.failed, "its cap is a limit");
    arena_fini(&arena);
}

/* The old place of a regrown array is freed only where nothing else is in its block. */
static void test_regrown(void)
{
    struct arena arena;
    arena_init(&arena, 0);
    int *numbers = NULL;
    size_t cap = 0;
    bool grown = true;
    char *between = NULL;
    for (int i = 0; grown && i < 1 << 20; i++) {
        grown = ARENA_REGROW(&arena, numbers, i, cap);
        if (grown)
            numbers[i] = i;
        if (i % 1000 == 0 && (between = arena_alloc(&arena, 100)))
            memset(between, i % 100, 100);
    }
    int same = grown && between != NULL;
    for (int i = 0; same && i < 1 << 20; i++)
        same = numbers[i] == i;
    tap_ok(same, "an array of 4 MiB that has grown between small pieces is whole");
    tap_ok(arena.used_bytes < 2 * (4 << 20), "and what it has grown from is freed (%zu bytes)",
           arena.used_bytes);
    arena_fini(&arena);
}

int main(void)
{
    test_malloc();
    test_small_types();
    test_overflow();
    test_arena();
    test_regrown();
    return tap_done();
}
