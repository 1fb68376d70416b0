/* SPDX-License-Identifier: Apache-2.0 */
/* intern.c - see intern.h. */
#include "intern.h"

#include <assert.h>
#include <string.h>

#ifdef SWSIM_CHECKS
enum { FIRST_SIZE = 8 };
#else
enum { FIRST_SIZE = 1 << 10 };
#endif

static const uint32_t MAX_NUMBERS = UINT32_MAX / 4 * 3 - 2;

static size_t index_bytes(uint32_t size)
{
    return sizeof(struct intern_index) + (size_t)size * sizeof(uint32_t);
}

/* Called before the index is published, or under the lock. */
static void intern_put(struct intern_index *index, uint64_t hash, uint32_t number)
{
    uint32_t at = intern_home(index, hash);
    assert(number < index->number_mask);
    while (atomic_load_explicit(&index->slots[at], memory_order_relaxed))
        at = at + 1 == index->size ? 0 : at + 1;
    uint32_t tag = (uint32_t)(hash >> 32) & ~index->number_mask;
    atomic_store_explicit(&index->slots[at], tag | (number + 1), memory_order_release);
}

static void intern_prepare(struct intern_index *index, uint32_t size)
{
    index->size = size;
    index->number_mask = 1;
    while (index->number_mask < size)
        index->number_mask = index->number_mask << 1 | 1;
}

enum status intern_open(struct intern *table, size_t words, bool shared, struct budget *budget)
{
    *table = (struct intern){.budget = budget, .words = words, .shared = shared};
    chunked_open(&table->values, words * sizeof(uint64_t), budget);
    struct intern_index *index;
    enum status status = budget_alloc(budget, index_bytes(FIRST_SIZE), &index);
    if (status != STATUS_OK)
        return status;
    intern_prepare(index, FIRST_SIZE);
    if (shared && pthread_mutex_init(&table->lock, NULL) != 0) {
        budget_free(budget, index, index_bytes(FIRST_SIZE));
        return STATUS_SYSTEM;
    }
    atomic_store_explicit(&table->index, index, memory_order_release);
    return STATUS_OK;
}

void intern_close(struct intern *table)
{
    struct intern_index *index = atomic_load_explicit(&table->index, memory_order_relaxed);
    if (!index)
        return;
    for (size_t i = 0; i < table->retired_count; i++)
        budget_free(table->budget, table->retired[i], index_bytes(table->retired[i]->size));
    budget_free(table->budget, index, index_bytes(index->size));
    chunked_close(&table->values);
    if (table->shared)
        pthread_mutex_destroy(&table->lock);
    atomic_store_explicit(&table->index, NULL, memory_order_relaxed);
}

#ifdef SWSIM_CHECKS
/* Every value is found under its number, and the index has a slot that is empty, at which a search ends. */
static bool intern_check(const struct intern *table)
{
    const struct intern_index *index = atomic_load_explicit(&table->index, memory_order_relaxed);
    uint32_t used = 0;
    for (uint32_t at = 0; at < index->size; at++)
        used += atomic_load_explicit(&index->slots[at], memory_order_relaxed) != 0;
    for (uint32_t number = 0; number < intern_count(table); number++) {
        const uint64_t *value = intern_value(table, number, table->words);
        if (intern_find(table, value, hash_words(value, table->words), table->words) != number)
            return false;
    }
    return used == intern_count(table) && used < index->size;
}
#endif

static uint32_t grown(uint32_t size)
{
    uint64_t wanted = (uint64_t)size + size / 2;
    return wanted < UINT32_MAX ? (uint32_t)wanted : UINT32_MAX;
}

static void intern_fill(const struct intern *table, struct intern_index *index)
{
    for (uint32_t number = 0; number < intern_count(table); number++)
        intern_put(index, hash_words(intern_value(table, number, table->words), table->words),
                   number);
}

/* Threads that share the table may be reading the index; otherwise it is rebuilt in place. */
static enum status intern_grow(struct intern *table)
{
    struct intern_index *old = atomic_load_explicit(&table->index, memory_order_relaxed);
    struct intern_index *index = old;
    uint32_t size = grown(old->size);
    enum status status = table->shared ? budget_alloc(table->budget, index_bytes(size), &index)
                                       : budget_resize(table->budget, &index,
                                                       index_bytes(old->size), index_bytes(size));
    if (status != STATUS_OK)
        return status;
    if (table->shared) {
        assert(table->retired_count < sizeof table->retired / sizeof *table->retired);
        table->retired[table->retired_count++] = old;
    } else
        memset(index, 0, index_bytes(size));
    intern_prepare(index, size);
    intern_fill(table, index);
    atomic_store_explicit(&table->index, index, memory_order_release);
#ifdef SWSIM_CHECKS
    assert(intern_check(table));
#endif
    return STATUS_OK;
}

static enum status intern_append(struct intern *table, const uint64_t *value, uint64_t hash,
                                 uint32_t *number)
{
    uint32_t count = intern_count(table);
    enum status status = STATUS_OK;
    if (count >= MAX_NUMBERS)
        return STATUS_LIMIT;
    if ((uint64_t)4 * (count + 1) >
        (uint64_t)3 * atomic_load_explicit(&table->index, memory_order_relaxed)->size)
        status = intern_grow(table);
    if (status == STATUS_OK)
        status = chunked_push(&table->values, value);
    if (status != STATUS_OK)
        return status;
    intern_put(atomic_load_explicit(&table->index, memory_order_relaxed), hash, count);
    *number = count;
    return STATUS_OK;
}

enum status intern_add(struct intern *table, const uint64_t *value, uint64_t hash, uint32_t *number,
                       bool *is_new)
{
    enum status status = STATUS_OK;
    if (table->shared)
        pthread_mutex_lock(&table->lock);
    *number = intern_find(table, value, hash, table->words);
    *is_new = *number == INTERN_NONE;
    if (*is_new)
        status = intern_append(table, value, hash, number);
    if (table->shared)
        pthread_mutex_unlock(&table->lock);
    return status;
}
