/*
 * pile.h - an array that only grows, and whose items never move.
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
#ifndef SWSIM_PILE_H
#define SWSIM_PILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "budget.h"

enum { PILE_CHUNK_BYTES = 1 << 14 };

struct pile {
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
void pile_open(struct pile *pile, size_t item_bytes, struct budget *budget);
void pile_close(struct pile *pile);

/* Append a copy of `item`; nothing happens on failure. */
enum status pile_push(struct pile *pile, const void *item);
/* Take away the last item; its chunk stays. */
void pile_pop(struct pile *pile);

/* `item_bytes` again, since a constant is quicker than the pile's own. */
static inline void *pile_at(const struct pile *pile, size_t i, size_t item_bytes)
{
    unsigned char **list = atomic_load_explicit(&pile->list, memory_order_acquire);
    size_t mask = ((size_t)1 << pile->shift) - 1;
    return list[i >> pile->shift] + (i & mask) * item_bytes;
}

#endif
