/* SPDX-License-Identifier: Apache-2.0 */
/* budget.c - see budget.h. */
#include "budget.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LINE_BYTES = 64, FIRST_ITEMS = 16 };

/* From this size on the system is asked for large pages: otherwise address translation dominates
   random probes of a table. */
static const uintptr_t LARGE_BYTES = (uintptr_t)4 << 20, LARGE_PAGE = (uintptr_t)2 << 20;

void budget_init(struct budget *budget, size_t limit_bytes)
{
    budget->limit_bytes = limit_bytes;
    atomic_init(&budget->used_bytes, 0);
    atomic_init(&budget->peak_bytes, 0);
    atomic_init(&budget->fails_in, 0);
}

static enum status budget_charge(struct budget *budget, size_t bytes)
{
    size_t used = atomic_fetch_add(&budget->used_bytes, bytes) + bytes;
    if (used > budget->limit_bytes || bytes > budget->limit_bytes) {
        atomic_fetch_sub(&budget->used_bytes, bytes);
        return STATUS_LIMIT;
    }
    size_t peak = atomic_load(&budget->peak_bytes);
    while (peak < used && !atomic_compare_exchange_weak(&budget->peak_bytes, &peak, used))
        ;
    return STATUS_OK;
}

static bool fails(struct budget *budget)
{
    return atomic_load_explicit(&budget->fails_in, memory_order_relaxed) > 0 &&
           atomic_fetch_sub(&budget->fails_in, 1) == 1;
}

static void advise_large_pages(void *memory, size_t bytes)
{
    uintptr_t from = ((uintptr_t)memory + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);
    uintptr_t to = ((uintptr_t)memory + bytes) & ~(LARGE_PAGE - 1);
    if (bytes >= LARGE_BYTES && from < to)
        (void)madvise((void *)from, to - from, MADV_HUGEPAGE); /* a refusal costs only speed */
}

enum status budget_alloc(struct budget *budget, size_t bytes, void *out)
{
    bytes = bytes ? bytes : 1;
    enum status status = budget_charge(budget, bytes);
    if (status != STATUS_OK)
        return status;
    void *memory;
    if (fails(budget) || posix_memalign(&memory, LINE_BYTES, bytes) != 0) {
        atomic_fetch_sub(&budget->used_bytes, bytes);
        return STATUS_SYSTEM;
    }
    advise_large_pages(memory, bytes);
    *(void **)out = memset(memory, 0, bytes);
    return STATUS_OK;
}

enum status budget_resize(struct budget *budget, void *array, size_t before, size_t after)
{
    enum status status = after > before ? budget_charge(budget, after - before) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    void **at = array, *memory = fails(budget) ? NULL : realloc(*at, after);
    if (!memory) {
        atomic_fetch_sub(&budget->used_bytes, after > before ? after - before : 0);
        return STATUS_SYSTEM;
    }
    if (after < before)
        atomic_fetch_sub(&budget->used_bytes, before - after);
    advise_large_pages(memory, after);
    *at = memory;
    return STATUS_OK;
}

void budget_free(struct budget *budget, void *memory, size_t bytes)
{
    if (!memory)
        return;
    free(memory);
    atomic_fetch_sub(&budget->used_bytes, bytes ? bytes : 1);
}

enum status budget_grow(struct budget *budget, void *array, size_t *cap, size_t count,
                        size_t item_bytes)
{
    if (count < *cap)
        return STATUS_OK;
    size_t grown = *cap ? 2 * *cap : FIRST_ITEMS;
    enum status status = budget_resize(budget, array, *cap * item_bytes, grown * item_bytes);
    if (status == STATUS_OK)
        *cap = grown;
    return status;
}
