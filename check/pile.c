/* pile.c - see pile.h. */
#include "pile.h"

#include <assert.h>
#include <string.h>

enum { FIRST_LIST = 16 };

void pile_open(struct pile *pile, size_t item_bytes, struct budget *budget)
{
    *pile = (struct pile){.budget = budget, .item_bytes = item_bytes};
    assert(item_bytes && (item_bytes & (item_bytes - 1)) == 0 && item_bytes <= PILE_CHUNK_BYTES);
    while (item_bytes << pile->shift < PILE_CHUNK_BYTES)
        pile->shift++;
}

void pile_close(struct pile *pile)
{
    unsigned char **list = atomic_load_explicit(&pile->list, memory_order_relaxed);
    for (size_t i = 0; i < pile->chunk_count; i++)
        budget_free(pile->budget, list[i], PILE_CHUNK_BYTES);
    for (size_t i = 0, cap = FIRST_LIST; i < pile->retired_count; i++, cap *= 2)
        budget_free(pile->budget, pile->retired[i], cap * sizeof *list);
    budget_free(pile->budget, list, pile->list_cap * sizeof *list);
    *pile = (struct pile){0};
}

static enum status grow_list(struct pile *pile)
{
    size_t cap = pile->list_cap ? 2 * pile->list_cap : FIRST_LIST;
    unsigned char **old = atomic_load_explicit(&pile->list, memory_order_relaxed), **list;
    enum status status = budget_alloc(pile->budget, cap * sizeof *list, &list);
    if (status != STATUS_OK)
        return status;
    if (old) {
        memcpy(list, old, pile->chunk_count * sizeof *list);
        pile->retired[pile->retired_count++] = old;
    }
    atomic_store_explicit(&pile->list, list, memory_order_release);
    pile->list_cap = cap;
    return STATUS_OK;
}

static enum status add_chunk(struct pile *pile)
{
    enum status status = STATUS_OK;
    if (pile->chunk_count == pile->list_cap)
        status = grow_list(pile);
    unsigned char *chunk;
    if (status == STATUS_OK)
        status = budget_alloc(pile->budget, PILE_CHUNK_BYTES, &chunk);
    if (status != STATUS_OK)
        return status;
    atomic_load_explicit(&pile->list, memory_order_relaxed)[pile->chunk_count++] = chunk;
    return STATUS_OK;
}

enum status pile_push(struct pile *pile, const void *item)
{
    if (pile->count >> pile->shift == pile->chunk_count) {
        enum status status = add_chunk(pile);
        if (status != STATUS_OK)
            return status;
    }
    memcpy(pile_at(pile, pile->count, pile->item_bytes), item, pile->item_bytes);
    pile->count++;
    return STATUS_OK;
}

void pile_pop(struct pile *pile)
{
    assert(pile->count > 0);
    pile->count--;
}
