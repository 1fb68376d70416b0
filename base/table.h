/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - a hash table that finds the items of its owner's array by their keys.
 *
 * The table keeps numbers of items and their hashes, no keys: the owner keeps the items, hashes a key, and says in the macro
 * which item is equal.
 *
 *     const uint64_t hash = table_hash_name(name);
 *     uint32_t found = TABLE_FIND(&names->table, hash, i, strcmp(names->items[i], name) == 0);
 *     if (found == TABLE_NONE && !table_add(&names->table, hash, names->count))
 *         return diag_no_memory(diag);
 *
 * Room for the item comes before table_add: what is in a table can be looked at, also when the next allocation fails. A table of
 * zeros is empty. table_add uses malloc, and table_fini frees; table_add_in uses an arena, always the same one, and
 * needs no table_fini. Items are not taken out. Open addressing with linear probing (Knuth, The Art of Computer Programming,
 * volume 3, algorithm L) in at most half of the slots: finding and adding take constant time in the mean. The hash is kept in
 * 32 bits, which choose the slot and spare nearly all comparisons with items that differ. A table cannot be listed, so the
 * order of its slots is never observable.
 */
#ifndef SWSIM_TABLE_H
#define SWSIM_TABLE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "hash.h"
#include "keyed_hash.h"

#define TABLE_NONE UINT32_MAX

/* With checks a table starts with two slots, so that tests see it grow. */
#ifdef SWSIM_CHECKS
enum { TABLE_FIRST_SLOTS = 2 };
#else
enum { TABLE_FIRST_SLOTS = 16 };
#endif

struct table_slot {
    uint32_t hash;
    uint32_t place; /* the number of the item and 1; 0: the slot is free */
};

struct table {
    struct table_slot *slots;
    size_t count, slot_count; /* slot_count is a power of two, or 0 */
};

/* The hash of a text of our own. Texts that a foreign file chooses are hashed by table_hash_name, so that they cannot be chosen
   to fall on one slot. */
static inline uint64_t table_hash_text(const char *text)
{
    return hash_bytes(text, strlen(text));
}

static inline uint64_t table_hash_name(const char *name)
{
    return keyed_hash(name, strlen(name));
}

/* The hash of a number or a pointer; hash_words (hash.h) hashes several. */
static inline uint64_t table_hash_number(uint64_t number)
{
    return hash_mix(number ^ UINT64_C(0x9e3779b97f4a7c15));
}

static inline uint64_t table_hash_pointer(const void *pointer)
{
    return table_hash_number((uintptr_t)pointer);
}

static inline uint32_t table_fold_(uint64_t hash)
{
    return (uint32_t)(hash ^ hash >> 32);
}

/* The next item with this hash, from slot *at on, which moves behind it; TABLE_NONE behind the last. */
static inline uint32_t table_next_(const struct table *table, uint32_t hash, size_t *at)
{
    const size_t mask = table->slot_count - 1;
    while (table->slot_count) {
        const struct table_slot *slot = &table->slots[*at & mask];
        ++*at;
        if (!slot->place)
            break;
        if (slot->hash == hash)
            return slot->place - 1;
    }
    return TABLE_NONE;
}

/* The number i of the item with this hash for which `equal`, an expression of i, is true; TABLE_NONE if there is none. The
   result is a uint32_t. */
#define TABLE_FIND(table, hash, i, equal)                                                          \
    __extension__({                                                                                \
        const uint32_t table_hash_ = table_fold_(hash);                                            \
        size_t table_at_ = table_hash_;                                                            \
        uint32_t i = table_next_((table), table_hash_, &table_at_);                                \
        while (i != TABLE_NONE && !(equal))                                                        \
            i = table_next_((table), table_hash_, &table_at_);                                     \
        i;                                                                                         \
    })

static inline void table_put_(struct table_slot *slots, size_t slot_count, struct table_slot slot)
{
    size_t at = slot.hash & (slot_count - 1);
    while (slots[at].place)
        at = (at + 1) & (slot_count - 1);
    slots[at] = slot;
}

/* With --enable-checks: each item can be found, and the count is right. */
static inline void table_check(const struct table *table)
{
#ifdef SWSIM_CHECKS
    size_t count = 0;
    for (size_t i = 0; i < table->slot_count; i++) {
        const struct table_slot *slot = &table->slots[i];
        count += slot->place != 0;
        for (size_t at = slot->hash; slot->place && (at & (table->slot_count - 1)) != i; at++)
            assert(table->slots[at & (table->slot_count - 1)].place);
    }
    assert(count == table->count && 2 * count <= table->slot_count);
#else
    (void)table;
#endif
}

/* Room for `count` items in all, so that no addition up to there fails. `arena` NULL: malloc. False: memory is exhausted, and the
   table is as it was. */
static inline bool table_reserve_in(struct table *table, struct arena *arena, size_t count)
{
    size_t slot_count = table->slot_count ? table->slot_count : TABLE_FIRST_SLOTS;
    if (count >= TABLE_NONE)
        return false;
    while (slot_count < 2 * count)
        slot_count *= 2;
    if (slot_count == table->slot_count)
        return true;
    struct table_slot *slots =
        arena ? arena_array(arena, slot_count, sizeof *slots) : calloc(slot_count, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < table->slot_count; i++)
        if (table->slots[i].place)
            table_put_(slots, slot_count, table->slots[i]);
    if (!arena)
        free(table->slots);
    table->slots = slots;
    table->slot_count = slot_count;
    table_check(table);
    return true;
}

static inline bool table_reserve(struct table *table, size_t count)
{
    return table_reserve_in(table, NULL, count);
}

/* Add item `number`, whose key is not in the table. Errors as table_reserve_in. */
static inline bool table_add_in(struct table *table, struct arena *arena, uint64_t hash,
                                size_t number)
{
    assert(number < TABLE_NONE);
    if (!table_reserve_in(table, arena, table->count + 1))
        return false;
    table_put_(table->slots, table->slot_count,
               (struct table_slot){table_fold_(hash), (uint32_t)number + 1});
    table->count++;
    return true;
}

static inline bool table_add(struct table *table, uint64_t hash, size_t number)
{
    return table_add_in(table, NULL, hash, number);
}

/* Forget all items, keep the room. */
static inline void table_clear(struct table *table)
{
    if (table->count)
        memset(table->slots, 0, table->slot_count * sizeof *table->slots);
    table->count = 0;
}

/* Only for a table that uses malloc. */
static inline void table_fini(struct table *table)
{
    table_check(table);
    free(table->slots);
    *table = (struct table){0};
}

#endif
