/* SPDX-License-Identifier: Apache-2.0 */
/*
 * array.h - growing arrays: three variables of their owner, the items, their number and the room for them.
 *
 *     if (!ARRAY_GROW(path->steps, path->count, path->cap))
 *         return diag_no_memory(diag);
 *     path->steps[path->count++] = step;
 *
 * An array starts as NULL, 0, 0. The room doubles, so `n` additions move at most 2 n items. ARRAY_ macros use malloc, and the
 * owner frees the items; the ARENA_ macros use an arena. All are false when memory is exhausted or the room would overflow
 * its variable; the array is then as it was. Room is an int or a wider integer, which the macros assert. Arguments are
 * evaluated several times. Growth moves the items: pointers into the array are kept only with ARENA_GROW, whose old copies stay.
 */
#ifndef SWSIM_ARRAY_H
#define SWSIM_ARRAY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "arena.h"

/* With checks an array starts with room for one item, so that tests see it move. */
#ifdef SWSIM_CHECKS
enum { ARRAY_FIRST_CAP = 1 };
#else
enum { ARRAY_FIRST_CAP = 8 };
#endif

/* The room of an array that had room for `cap` items of `size` bytes and gets at least `wanted`; 0: more than `most`, or than
   memory can have. */
static inline size_t array_next_cap(size_t cap, size_t wanted, size_t size, size_t most)
{
    if (most > SIZE_MAX / 2 / size)
        most = SIZE_MAX / 2 / size;
    if (wanted > most)
        return 0;
    if (cap < ARRAY_FIRST_CAP)
        cap = ARRAY_FIRST_CAP;
    while (cap < wanted)
        cap = cap <= most / 2 ? 2 * cap : most;
    return cap < most ? cap : most;
}

/* The largest room that the variable `cap`, an int or wider, can hold. */
#define ARRAY_MOST(cap) (sizeof(cap) < sizeof(size_t) ? (size_t)INT_MAX : SIZE_MAX)

/* realloc, but for 0 bytes, which say that the room would overflow. */
static inline void *array_moved(void *items, size_t bytes)
{
    return bytes ? realloc(items, bytes) : NULL;
}

/* The body of the macros below: `moved` is an expression of array_cap_, 0 where that overflowed. */
#define ARRAY_RESERVE_WITH_(items, wanted, cap, moved)                                             \
    ((size_t)(wanted) <= (size_t)(cap) || __extension__({                                          \
         const size_t array_cap_ =                                                                 \
             array_next_cap((size_t)(cap), (size_t)(wanted), sizeof *(items), ARRAY_MOST(cap));    \
         _Static_assert(sizeof(cap) >= sizeof(int), "the room of an array is an int or wider");    \
         void *array_moved_ = (moved);                                                             \
         if (array_moved_) {                                                                       \
             (items) = array_moved_;                                                               \
             (cap) = (__typeof__(cap))array_cap_;                                                  \
         }                                                                                         \
         array_moved_ != NULL;                                                                     \
     }))

/* Room for at least `wanted` items. */
#define ARRAY_RESERVE(items, wanted, cap)                                                          \
    ARRAY_RESERVE_WITH_(items, wanted, cap,                                                        \
                        array_moved((void *)(items), array_cap_ * sizeof *(items)))

/* Room for one more item than `count`. */
#define ARRAY_GROW(items, count, cap) ARRAY_RESERVE(items, (size_t)(count) + 1, cap)

/* The same in an arena. ARENA_REGROW frees a large old copy, so no pointer into it may be kept. */
#define ARENA_RESERVE(arena, items, wanted, cap)                                                   \
    ARRAY_RESERVE_WITH_(items, wanted, cap,                                                        \
                        arena_moved((arena), (void *)(items), (size_t)(cap) * sizeof *(items),     \
                                    array_cap_ * sizeof *(items), false))
#define ARENA_GROW(arena, items, count, cap) ARENA_RESERVE(arena, items, (size_t)(count) + 1, cap)
#define ARENA_REGROW(arena, items, count, cap)                                                     \
    ARRAY_RESERVE_WITH_(items, (size_t)(count) + 1, cap,                                           \
                        arena_moved((arena), (void *)(items), (size_t)(cap) * sizeof *(items),     \
                                    array_cap_ * sizeof *(items), true))

#endif
