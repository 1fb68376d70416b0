/* SPDX-License-Identifier: Apache-2.0 */
/* lists.h - items listed by the object they use. Private to proof/ and to the writers of certificates. */
#ifndef SWSIM_PROOF_LISTS_H
#define SWSIM_PROOF_LISTS_H

#include "base/arena.h"

/* items[first[object]] to items[first[object + 1]] are those of one object, in order. */
struct lists_lists {
    int *first, *items;
};

/* A counting sort: keys[i] is the object of item i, -1: none. The arena tells whether memory was there. */
static inline struct lists_lists lists_by(struct arena *arena, const int *keys, size_t count,
                                          int objects)
{
    struct lists_lists lists = {ARENA_ARRAY(arena, (size_t)objects + 2, int),
                                ARENA_ARRAY(arena, count + 1, int)};
    for (size_t i = 0; !arena->failed && i < count; i++)
        lists.first[keys[i] + 2] += keys[i] >= 0;
    for (int object = 2; !arena->failed && object <= objects + 1; object++)
        lists.first[object] += lists.first[object - 1];
    for (size_t i = 0; !arena->failed && i < count; i++)
        if (keys[i] >= 0)
            lists.items[lists.first[keys[i] + 1]++] = (int)i;
    return lists;
}

#endif
