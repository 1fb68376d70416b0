/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.c - see arena.h: a list of blocks, bump allocation in the first.
 *
 * Blocks grow with the arena, so that they are few and most of a large arena lies on large pages. A piece that is
 * large beside them has a block of its own, behind the first.
 */
#include "arena.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "large_pages.h"
#include "work_limit.h"

/* Under the address sanitizer what was not given out is poisoned, and lies between all that was. */
#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined __SANITIZE_ADDRESS__ || __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
enum { GAP_BYTES = 16 };
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes)   ((void)0)
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)0)
enum { GAP_BYTES = 0 };
#endif

/* With checks each piece is a block, so that a test can refuse any of them. */
#ifdef SWSIM_CHECKS
enum { LEAST_BLOCK = 1, MOST_BLOCK = 1 };
#else
enum { LEAST_BLOCK = 16 * 1024, MOST_BLOCK = 32 * 1024 * 1024 };
#endif

struct arena_block {
    struct arena_block *next;
    size_t used, cap;
    max_align_t data[];
};

void arena_init(struct arena *arena, size_t cap_bytes)
{
    *arena = (struct arena){.cap_bytes = cap_bytes};
}

static void drop_block(struct arena *arena, struct arena_block *block)
{
    if (arena->limit)
        work_limit_give(arena->limit, sizeof *block + block->cap);
    free(block);
}

void arena_fini(struct arena *arena)
{
    arena_check(arena);
    struct arena_block *block = arena->head;
    while (block) {
        struct arena_block *next = block->next;
        drop_block(arena, block);
        block = next;
    }
    *arena = (struct arena){0};
}

void arena_adopt(struct arena *arena, struct arena *from)
{
    struct arena_block **last = &from->head;
    assert(arena->limit == from->limit);
    while (*last)
        last = &(*last)->next;
    *last = arena->head; /* the block that is filled is now the other arena's */
    arena->head = from->head;
    arena->used_bytes += from->used_bytes;
    arena->failed |= from->failed;
    *from = (struct arena){0};
}

void arena_empty(struct arena *arena)
{
    struct arena_block *kept = arena->head;
    if (!kept || arena->used_bytes == 0)
        return;
    arena->head = kept->next;
    kept->next = NULL;
    struct arena rest = {
        .head = arena->head, .used_bytes = arena->used_bytes - kept->used, .limit = arena->limit};
    arena_fini(&rest);
    arena->head = kept;
    ASAN_UNPOISON_MEMORY_REGION(kept->data, kept->cap);
    memset(kept->data, 0, kept->used); /* what arena_alloc hands out is zero */
    arena->used_bytes = kept->used = 0;
    ASAN_POISON_MEMORY_REGION(kept->data, kept->cap);
}

void arena_check(const struct arena *arena)
{
#ifdef SWSIM_CHECKS
    size_t used_bytes = 0;
    for (const struct arena_block *block = arena->head; block; block = block->next) {
        assert(block->used <= block->cap && block != block->next);
        used_bytes += block->used;
    }
    assert(used_bytes == arena->used_bytes);
    assert(!arena->cap_bytes || used_bytes <= arena->cap_bytes);
#else
    (void)arena;
#endif
}

static size_t rounded(size_t bytes)
{
    const size_t align = _Alignof(max_align_t);
    return (bytes + align - 1) / align * align + GAP_BYTES;
}

static size_t next_block(const struct arena *arena)
{
    size_t bytes = arena->used_bytes / 4;
    bytes = bytes > LEAST_BLOCK ? bytes : LEAST_BLOCK;
    return bytes < MOST_BLOCK ? bytes : MOST_BLOCK;
}

static struct arena_block *add_block(struct arena *arena, size_t bytes)
{
    size_t room = next_block(arena);
    bool own = bytes > room / 4 && bytes > LEAST_BLOCK / 4;
    size_t cap = own ? bytes : room;
    struct arena_block *block = NULL;
    const size_t whole = sizeof *block + cap;
    const bool allowed = !arena->limit || work_limit_take(arena->limit, whole);
    if (allowed)
        block = large_calloc(1, whole);
    if (!block) {
        if (allowed && arena->limit)
            work_limit_give(arena->limit, whole);
        arena->failed = true;
        return NULL;
    }
    struct arena_block **place = own && arena->head ? &arena->head->next : &arena->head;
    block->cap = cap;
    block->next = *place;
    *place = block;
    ASAN_POISON_MEMORY_REGION(block->data, cap);
    return block;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 2) {
        arena->failed = true;
        return NULL;
    }
    size_t taken = rounded(bytes);
    if (arena->cap_bytes && taken > arena->cap_bytes - arena->used_bytes) {
        arena->failed = true;
        return NULL;
    }
    struct arena_block *block = arena->head;
    if (!block || block->cap - block->used < taken)
        block = add_block(arena, taken);
    if (!block)
        return NULL;
    void *memory = (char *)block->data + block->used;
    block->used += taken;
    arena->used_bytes += taken;
    ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
    return memory;
}

void *arena_array(struct arena *arena, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / 2 / size) {
        arena->failed = true;
        return NULL;
    }
    return arena_alloc(arena, count * size);
}

char *arena_strndup(struct arena *arena, const char *text, size_t length)
{
    char *copy = arena_alloc(arena, length + 1);
    if (copy)
        memcpy(copy, text, length);
    return copy;
}

char *arena_strdup(struct arena *arena, const char *text)
{
    return arena_strndup(arena, text, strlen(text));
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = length < 0 ? NULL : arena_alloc(arena, (size_t)length + 1);
    if (!text)
        return NULL;
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

/* The block that holds `memory` and nothing else, if there is one. */
static void free_block(struct arena *arena, const void *memory, size_t bytes)
{
    if (bytes <= LEAST_BLOCK / 4)
        return;
    for (struct arena_block **at = &arena->head; *at; at = &(*at)->next)
        if ((*at)->data == memory && (*at)->used == rounded(bytes)) {
            struct arena_block *block = *at;
            *at = block->next;
            arena->used_bytes -= block->used;
            drop_block(arena, block);
            return;
        }
}

void *arena_moved(struct arena *arena, void *old, size_t old_bytes, size_t new_bytes, bool frees)
{
    arena->failed |= new_bytes == 0;
    void *moved = new_bytes ? arena_alloc(arena, new_bytes) : NULL;
    if (!moved || !old_bytes)
        return moved;
    assert(old && old_bytes < new_bytes);
    memcpy(moved, old, old_bytes);
    if (frees)
        free_block(arena, old, old_bytes);
    return moved;
}
