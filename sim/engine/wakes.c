/* SPDX-License-Identifier: Apache-2.0 */
/* wakes.c - see wakes.h. */
#include "wakes.h"

#include <stdlib.h>

#include "machine/uses.h"

/* ---- lists ----------------------------------------------------------------------------------- */

static int compare_pairs(const void *a, const void *b)
{
    const struct lists_pair *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

bool lists_make(struct lists *lists, struct arena *arena, struct lists_pair *pairs, size_t count,
                int keys)
{
    lists->first = ARENA_ARRAY(arena, (size_t)keys + 1, int);
    lists->items = ARENA_ARRAY(arena, count + 1, int);
    if (!lists->first || !lists->items)
        return false;
    int kept = 0;
    if (count)
        qsort(pairs, count, sizeof *pairs, compare_pairs);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || compare_pairs(&pairs[i - 1], &pairs[i]) != 0) {
            lists->items[kept++] = pairs[i].item;
            lists->first[pairs[i].key + 1] = kept;
        }
    for (int key = 0; key < keys; key++)
        if (lists->first[key + 1] < lists->first[key])
            lists->first[key + 1] = lists->first[key];
    return true;
}

/* ---- threads --------------------------------------------------------------------------------- */

bool wakes_make(struct lists *wakes, const struct program *program, struct arena *arena)
{
    const struct program *p = program;
    size_t count = 0;
    struct lists_pair *pairs = malloc((p->op_count + (size_t)p->ranks) * sizeof *pairs);
    for (int i = 0; pairs && i < p->ranks * p->tasks; i++) {
        const struct body *body = &p->bodies[i];
        for (int k = body->first; k < body->first + body->count; k++) {
            int object = op_awaited(p, &p->ops[k], p->worker[i]);
            if (object >= 0)
                pairs[count++] = (struct lists_pair){object, p->worker[i]};
        }
    }
    for (int rank = 0; pairs && rank < p->ranks; rank++)
        pairs[count++] =
            (struct lists_pair){uses_use_object(p, OBJECT_DEVICE, rank), p->driver_thread[rank]};
    bool made = pairs && lists_make(wakes, arena, pairs, count, p->uses->object_count);
    free(pairs);
    return made;
}
