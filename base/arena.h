/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h - memory with one lifetime: allocate piecewise, free everything at once.
 *
 * Blocks are never moved, so pointers stay valid until arena_fini. An arena that could not get
 * memory returns NULL and remembers it in `failed`; a builder may check once at its end. A cap
 * protects against inputs that would make it huge, a limit that several arenas share bounds the work that fills them.
 */
#ifndef SWSIM_ARENA_H
#define SWSIM_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct arena_block;
struct work_limit;

struct arena {
    struct arena_block *head;
    size_t used_bytes;
    size_t cap_bytes; /* 0: no cap */
    struct work_limit
        *limit; /* asked before each block, work_limit.h; NULL: none. It outlives the arena */
    bool failed;
};

void arena_init(struct arena *arena, size_t cap_bytes);
void arena_fini(struct arena *arena);
/* Nothing is in use any more; one block serves again. */
void arena_empty(struct arena *arena);

/* The blocks of `from` become those of the arena; both have one limit. */
void arena_adopt(struct arena *arena, struct arena *from);

/* Zeroed, aligned for any type. NULL when memory or the cap is exhausted. */
void *arena_alloc(struct arena *arena, size_t bytes);
/* `count` elements of `size` bytes; NULL also when the product overflows. */
void *arena_array(struct arena *arena, size_t count, size_t size);
char *arena_strdup(struct arena *arena, const char *text);
char *arena_strndup(struct arena *arena, const char *text, size_t length);
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A block of memory at another place that has more room: what base/array.h is made of. The first `old_bytes` are those of
   `old`, the rest is zero. With `frees` the old block is freed where it is large. NULL as arena_alloc; also for 0 new bytes, which
   stand for a size that overflowed. */
void *arena_moved(struct arena *arena, void *old, size_t old_bytes, size_t new_bytes, bool frees);

/* With --enable-checks: every block has the bytes that it should have, and their sum is used_bytes. */
void arena_check(const struct arena *arena);

#define ARENA_NEW(arena, type)          ((type *)arena_alloc((arena), sizeof(type)))
#define ARENA_ARRAY(arena, count, type) ((type *)arena_array((arena), (count), sizeof(type)))

#endif
