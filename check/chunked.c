/* SPDX-License-Identifier: Apache-2.0 */
/* chunked.c - see chunked.h. */
#include "chunked.h"

#include <assert.h>
#include <string.h>

enum { FIRST_LIST = 16 };

void chunked_open(struct chunked *array, size_t item_bytes, struct budget *budget)
{
    *array = (struct chunked){.budget = budget, .item_bytes = item_bytes};
    assert(item_bytes && (item_bytes & (item_bytes - 1)) == 0 && item_bytes <= CHUNK_BYTES);
    while (item_bytes << array->shift < CHUNK_BYTES)
        array->shift++;
}

void chunked_close(struct chunked *array)
{
    unsigned char **list = atomic_load_explicit(&array->list, memory_order_relaxed);
    for (size_t i = 0; i < array->chunk_count; i++)
        budget_free(array->budget, list[i], CHUNK_BYTES);
    for (size_t i = 0, cap = FIRST_LIST; i < array->retired_count; i++, cap *= 2)
        budget_free(array->budget, array->retired[i], cap * sizeof *list);
    budget_free(array->budget, list, array->list_cap * sizeof *list);
    *array = (struct chunked){0};
}

static enum status grow_list(struct chunked *array)
{
    size_t cap = array->list_cap ? 2 * array->list_cap : FIRST_LIST;
    unsigned char **old = atomic_load_explicit(&array->list, memory_order_relaxed), **list;
    enum status status = budget_alloc(array->budget, cap * sizeof *list, &list);
    if (status != STATUS_OK)
        return status;
    if (old) {
        memcpy(list, old, array->chunk_count * sizeof *list);
        array->retired[array->retired_count++] = old;
    }
    atomic_store_explicit(&array->list, list, memory_order_release);
    array->list_cap = cap;
    return STATUS_OK;
}

static enum status chunked_add_chunk(struct chunked *array)
{
    enum status status = STATUS_OK;
    if (array->chunk_count == array->list_cap)
        status = grow_list(array);
    unsigned char *chunk;
    if (status == STATUS_OK)
        status = budget_alloc(array->budget, CHUNK_BYTES, &chunk);
    if (status != STATUS_OK)
        return status;
    atomic_load_explicit(&array->list, memory_order_relaxed)[array->chunk_count++] = chunk;
    return STATUS_OK;
}

enum status chunked_push(struct chunked *array, const void *item)
{
    if (array->count >> array->shift == array->chunk_count) {
        enum status status = chunked_add_chunk(array);
        if (status != STATUS_OK)
            return status;
    }
    memcpy(chunked_at(array, array->count, array->item_bytes), item, array->item_bytes);
    array->count++;
    return STATUS_OK;
}

void chunked_pop(struct chunked *array)
{
    assert(array->count > 0);
    array->count--;
}
