/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chunked.h - a growing array whose items never move.
 *
 *     list of chunks          chunks of 16 KiB
 *     +---+---+---+---+       +-----------------+
 *     | o | o | o |   | ----> | item 0, 1, 2 .. |
 *     +---+---+---+---+       +-----------------+
 *
 * The array grows chunk by chunk, so a large one has no peak of memory while it grows. One thread (or
 * several, under a lock) may push while others read items pushed before: a list that is too short
 * is replaced, and the old list is kept until the end for threads that still read it. Memory comes
 * from a budget.
 */
#ifndef SWSIM_CHUNKED_H
#define SWSIM_CHUNKED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "budget.h"

enum { CHUNK_BYTES = 1 << 14 };

struct chunked {
    struct budget *budget;
    size_t item_bytes; /* a power of two */
    unsigned shift;    /* items of a chunk, as a power of two */
    size_t count;
    _Atomic(unsigned char **) list;
    size_t chunk_count, list_cap;
    void *retired[48]; /* lists outgrown; sizes double, so these are enough */
    size_t retired_count;
};

/* Takes no memory yet. */
void chunked_open(struct chunked *array, size_t item_bytes, struct budget *budget);
void chunked_close(struct chunked *array);

/* Append a copy of `item`; a failure changes nothing. */
enum status chunked_push(struct chunked *array, const void *item);
/* Remove the last item; its chunk stays. */
void chunked_pop(struct chunked *array);

/* `item_bytes` as a constant argument is faster than the array's own. */
static inline void *chunked_at(const struct chunked *array, size_t i, size_t item_bytes)
{
    unsigned char **list = atomic_load_explicit(&array->list, memory_order_acquire);
    size_t mask = ((size_t)1 << array->shift) - 1;
    return list[i >> array->shift] + (i & mask) * item_bytes;
}

#endif
