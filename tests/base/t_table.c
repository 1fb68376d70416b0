/* SPDX-License-Identifier: Apache-2.0 */
/* t_table.c - hash tables: names, numbers, equal hashes, clearing, with malloc and in an arena. */
#include <stdio.h>

#include "base/table.h"
#include "tests/tap.h"

enum { MANY = 2000, NAME_TEXT = 16 };

static uint32_t find_name(const struct table *table, char (*names)[NAME_TEXT], const char *name)
{
    return TABLE_FIND(table, table_hash_name(name), i, strcmp(names[i], name) == 0);
}

static void test_names(struct arena *arena)
{
    static char names[MANY][NAME_TEXT];
    struct table table = {0};
    bool added = true, found = true, absent = true;
    tap_ok(find_name(&table, names, "x") == TABLE_NONE, "nothing is in an empty table");
    for (size_t i = 0; i < MANY; i++) {
        snprintf(names[i], NAME_TEXT, "name %zu", i);
        absent &= find_name(&table, names, names[i]) == TABLE_NONE;
        added &= table_add_in(&table, arena, table_hash_name(names[i]), i);
    }
    for (size_t i = 0; i < MANY; i++)
        found &= find_name(&table, names, names[i]) == i;
    table_check(&table);
    tap_ok(added && absent && found, "%d names, %s", MANY, arena ? "in an arena" : "with malloc");
    table_clear(&table);
    tap_ok(find_name(&table, names, names[0]) == TABLE_NONE, "a cleared table");
    tap_ok(table_add_in(&table, arena, table_hash_name(names[7]), 7) &&
               find_name(&table, names, names[7]) == 7,
           "is used again");
    if (!arena)
        table_fini(&table);
}

static void test_equal_hashes(void)
{
    struct table table = {0};
    bool right = true;
    for (size_t i = 0; i < 50; i++)
        right &= table_add(&table, 5, i);
    for (size_t number = 0; number < 50; number++)
        right &= TABLE_FIND(&table, 5, i, i == number) == number;
    right &= TABLE_FIND(&table, 5, i, i == 50) == TABLE_NONE;
    right &= TABLE_FIND(&table, 6, i, true) == TABLE_NONE;
    tap_ok(right, "items with one hash");
    table_fini(&table);
}

static void test_room(void)
{
    struct table table = {0};
    struct arena arena;
    tap_ok(table_reserve(&table, 1000) && table.slot_count == 2048, "room for a known number");
    const struct table_slot *slots = table.slots;
    for (size_t i = 0; i < 1000; i++)
        table_add(&table, table_hash_number(i), i);
    tap_ok(table.slots == slots, "is enough");
    tap_ok(!table_reserve(&table, SIZE_MAX) && !table_reserve(&table, TABLE_NONE),
           "no more than its numbers can tell apart");
    table_fini(&table);
    arena_init(&arena, 100);
    tap_ok(!table_reserve_in(&table, &arena, 1000) && !table.slots, "memory is exhausted");
    arena_fini(&arena);
}

int main(void)
{
    struct arena arena;
    arena_init(&arena, 0);
    test_names(NULL);
    test_names(&arena);
    arena_fini(&arena);
    test_equal_hashes();
    test_room();
    return tap_done();
}
