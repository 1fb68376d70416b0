/* SPDX-License-Identifier: Apache-2.0 */
/* t_arena.c - the arena: alignment, zeroing, stable pointers, the cap, overflow and growth. */
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "tests/tap.h"

static void test_alignment_and_zeroing(void)
{
    struct arena arena;
    arena_init(&arena, 0);
    int aligned = 1, zeroed = 1;
    for (size_t bytes = 1; bytes < 3000; bytes += 7) {
        unsigned char *memory = arena_alloc(&arena, bytes);
        aligned &= memory && (uintptr_t)memory % alignof(max_align_t) == 0;
        for (size_t i = 0; memory && i < bytes; i++)
            zeroed &= memory[i] == 0;
        if (memory)
            memset(memory, 0xff, bytes);
    }
    tap_ok(aligned, "every allocation is aligned for any type");
    tap_ok(zeroed, "every allocation is zeroed");
    tap_ok(!arena.failed, "nothing failed");
    arena_fini(&arena);
}

static void test_emptied(void)
{
    struct arena arena;
    arena_init(&arena, 0);
    char *before = arena_alloc(&arena, 1000);
    if (before)
        memset(before, 0xff, 1000);
    arena_empty(&arena);
    int zeroed = 1;
    for (int i = 0; i < 3; i++) {
        const char *after = arena_alloc(&arena, 300);
        for (size_t k = 0; k < 300; k++)
            zeroed &= after && after[k] == 0;
    }
    tap_ok(zeroed, "memory of an emptied arena is zeroed when it serves again");
    arena_fini(&arena);
}

static void test_adopted(void)
{
    struct arena arena, other;
    arena_init(&arena, 0);
    arena_init(&other, 0);
    arena_alloc(&arena, 100);
    char *kept = arena_alloc(&other, 100000);
    const size_t bytes = arena.used_bytes + other.used_bytes;
    arena_adopt(&arena, &other);
    if (kept)
        kept[99999] = 1;
    tap_ok(kept && arena.used_bytes == bytes && !other.head && arena_alloc(&arena, 10),
           "an arena has the blocks of another one that it adopts");
    arena_check(&arena);
    arena_fini(&arena);
}

static void test_pointers_stay(void)
{
    struct arena arena;
    arena_init(&arena, 0);
    char *first = arena_strdup(&arena, "first");
    for (int i = 0; i < 10000; i++)
        arena_alloc(&arena, 64);
    tap_is_str(first, "first", "a block does not move while others are added");
    arena_fini(&arena);
}

static void test_distinct(void)
{
    struct arena arena;
    arena_init(&arena, 0);
    char *nothing = arena_alloc(&arena, 0);
    char *one = arena_alloc(&arena, 1);
    char *large = arena_alloc(&arena, 4 << 20);
    char *small = arena_alloc(&arena, 8);
    tap_ok(nothing && one && large && small, "0 bytes, 1 byte and 4 MiB can be had");
    tap_ok(one + 1 <= small || small + 8 <= one, "two allocations do not overlap");
    if (large)
        memset(large, 1, 4 << 20);
    tap_ok(small && small[0] == 0 && small[7] == 0, "a large one does not reach into the next");
    arena_fini(&arena);
}

static void test_cap(void)
{
    struct arena arena;
    arena_init(&arena, 64 * 1024);
    int count = 0;
    while (count < 1000 && arena_alloc(&arena, 1024))
        count++;
    tap_ok(count > 0 && count <= 64, "a cap of 64 KiB gives at most 64 KiB (%d KiB)", count);
    tap_ok(arena.failed, "exhaustion is remembered");
    tap_ok(arena.used_bytes <= arena.cap_bytes, "no more is used than the cap allows");
    arena_fini(&arena);

    arena_init(&arena, 1024);
    tap_ok(!arena_alloc(&arena, 1 << 20), "one allocation beyond the cap is refused");
    arena_fini(&arena);
}

static void test_overflow(void)
{
    struct arena arena;
    arena_init(&arena, 0);
    tap_ok(!arena_array(&arena, SIZE_MAX / 4, 8), "a product beyond size_t is refused");
    tap_ok(arena.failed, "and remembered");
    arena.failed = false;
    tap_ok(!arena_array(&arena, 3, SIZE_MAX / 2), "the factors the other way round too");
    arena.failed = false;
    tap_ok(!arena_alloc(&arena, SIZE_MAX), "SIZE_MAX bytes are refused");
    tap_ok(arena.failed, "and remembered");
    arena.failed = false;
    tap_ok(!arena_alloc(&arena, SIZE_MAX - 64), "nearly SIZE_MAX bytes are refused");
    tap_ok(arena_array(&arena, 0, 8) != NULL, "an empty array is not a failure");
    arena_fini(&arena);
}

static void test_strings(void)
{
    struct arena arena;
    arena_init(&arena, 0);
    tap_is_str(arena_strdup(&arena, ""), "", "strdup of nothing");
    tap_is_str(arena_strndup(&arena, "abcdef", 3), "abc", "strndup cuts");
    tap_is_str(arena_printf(&arena, "%s-%d", "x", 42), "x-42", "printf");
    char *text = arena_printf(&arena, "%5000d", 7);
    tap_ok(text && strlen(text) == 5000 && text[4999] == '7', "printf of 5000 characters");
    arena_fini(&arena);
}

int main(void)
{
    test_alignment_and_zeroing();
    test_emptied();
    test_adopted();
    test_pointers_stay();
    test_distinct();
    test_cap();
    test_overflow();
    test_strings();
    return tap_done();
}
