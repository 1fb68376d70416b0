/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intern.h - numbers for values: equal words get equal numbers, different ones different numbers.
 *
 *     index (open addressing, linear probing)      values (chunked), by number
 *     +-----------------------+                    +----------------------+
 *     |  tag  |  number + 1   | -----------------> | a fixed count of     |
 *     |        0: empty       |                    | 64-bit words each    |
 *     +-----------------------+                    +----------------------+
 *
 * A slot has 32 bits. The bits that the largest number does not need hold a part of the hash, so few
 * values are compared in vain; their number is chosen anew whenever the index grows. Numbers
 * are dense, from 0, in the order of insertion. The index grows by half when three quarters are
 * full and is filled again from the values: it never exists twice, unless threads share the table.
 *
 * Shared: a value that is already there, by far the most frequent case, is found without a lock;
 * new ones are added under a lock. A slot is published after its value. An outgrown index stays until
 * the end for threads that may be reading it; together these are less than twice the size of the
 * last.
 */
#ifndef SWSIM_INTERN_H
#define SWSIM_INTERN_H

#include <pthread.h>

#include "chunked.h"
#include "base/hash.h"

enum { INTERN_NONE = UINT32_MAX };

struct intern_index {
    uint32_t size;
    uint32_t number_mask; /* of a slot: the number, the rest is tag */
    _Atomic uint32_t slots[];
};

struct intern {
    struct budget *budget;
    size_t words;
    bool shared;
    pthread_mutex_t lock;
    struct chunked values;
    _Atomic(struct intern_index *) index;
    struct intern_index *retired[64];
    size_t retired_count;
};

/* `words`, the 64-bit words of a value: a power of two. */
enum status intern_open(struct intern *table, size_t words, bool shared, struct budget *budget);
/* Also after a failed open, or of a zeroed table. */
void intern_close(struct intern *table);

/* The number of `value`; *is_new: it was added. STATUS_LIMIT or STATUS_SYSTEM: it is not there, and
   there is no room for it; the table is unchanged. */
enum status intern_add(struct intern *table, const uint64_t *value, uint64_t hash, uint32_t *number,
                       bool *is_new);

static inline uint32_t intern_count(const struct intern *table)
{
    return (uint32_t)table->values.count;
}

/* The functions below take the number of words as a constant, to be unrolled. */
#define INTERN_INLINE static inline __attribute__((always_inline))

static inline const uint64_t *intern_value(const struct intern *table, uint32_t number,
                                           size_t words)
{
    return chunked_at(&table->values, number, words * sizeof(uint64_t));
}

static inline uint32_t intern_home(const struct intern_index *index, uint64_t hash)
{
    return (uint32_t)((hash & UINT32_MAX) * index->size >> 32);
}

static inline bool intern_equal(const uint64_t *a, const uint64_t *b, size_t words)
{
    uint64_t difference = a[0] ^ b[0];
    for (size_t i = 1; i + 3 <= words; i += 4)
        difference |= (a[i] ^ b[i]) | (a[i + 1] ^ b[i + 1]) | (a[i + 2] ^ b[i + 2]) |
                      (i + 3 < words ? a[i + 3] ^ b[i + 3] : 0);
    return difference == 0;
}

/* INTERN_NONE: not there (or, in a shared table, just added: intern_add looks again). */
INTERN_INLINE uint32_t intern_find(const struct intern *table, const uint64_t *value, uint64_t hash,
                                   size_t words)
{
    const struct intern_index *index = atomic_load_explicit(&table->index, memory_order_acquire);
    uint32_t tag = (uint32_t)(hash >> 32), mask = index->number_mask;
    for (uint32_t at = intern_home(index, hash);;) {
        uint32_t slot = atomic_load_explicit(&index->slots[at], memory_order_acquire);
        if (slot == 0)
            return INTERN_NONE;
        if (((slot ^ tag) & ~mask) == 0) {
            uint32_t number = (slot & mask) - 1;
            if (intern_equal(value, intern_value(table, number, words), words))
                return number;
        }
        at = at + 1 == index->size ? 0 : at + 1;
    }
}

INTERN_INLINE enum status intern_number(struct intern *table, const uint64_t *value, size_t words,
                                        uint32_t *number, bool *is_new)
{
    uint64_t hash = hash_words(value, words);
    *number = intern_find(table, value, hash, words);
    *is_new = false;
    return *number != INTERN_NONE ? STATUS_OK : intern_add(table, value, hash, number, is_new);
}

/* Prefetch the slot that intern_number will read. */
static inline void intern_prefetch(const struct intern *table, const uint64_t *value, size_t words)
{
    const struct intern_index *index = atomic_load_explicit(&table->index, memory_order_acquire);
    __builtin_prefetch(&index->slots[intern_home(index, hash_words(value, words))]);
}

#endif
