/*
 * chunked.h - an array that only grows, and whose items never move.
 *
 *     list of chunks          chunks of 16 KiB
 *     +---+---+---+---+       +-----------------+
 *     | o | o | o |   | ----> | item 0, 1, 2 .. |
 *     +---+---+---+---+       +-----------------+
 *
 * Growing takes one chunk more, so that a large array has no peak while it doubles. One thread (or
 * several, under a lock) may push while others read items they know of: a list that has become too
 * short is replaced, and the old one kept until the end for those who still read it. Items are
 * counted from 0; memory comes from a budget.
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

/* Append a copy of `item`; nothing happens on failure. */
enum status chunked_push(struct chunked *array, const void *item);
/* Take away the last item; its chunk stays. */
void chunked_pop(struct chunked *array);

/* `item_bytes` again, since a constant is quicker than the array's own. */
static inline void *chunked_at(const struct chunked *array, size_t i, size_t item_bytes)
{
    unsigned char **list = atomic_load_explicit(&array->list, memory_order_acquire);
    size_t mask = ((size_t)1 << array->shift) - 1;
    return list[i >> array->shift] + (i & mask) * item_bytes;
}

#endif
