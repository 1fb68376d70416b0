/* SPDX-License-Identifier: Apache-2.0 */
/* wakes.c - see wakes.h. */
#include "wakes.h"

#include <stdlib.h>

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

int wakes_key(const struct program *program, enum wake wake, int index)
{
    const int counts[] = {program->flag_families, program->lock_count, program->ranks,
                          program->stream_count};
    for (int before = 0; before < (int)wake; before++)
        index += counts[before];
    return index;
}

/* The key of the one thing that the operation may wait for, or -1. */
static int key_of(const struct program *p, const struct op *op, int rank)
{
    if (op_pushes(op->kind))
        return wakes_key(p, WAKE_STREAM, op->stream);
    if (op->kind == OP_SYNC && op->sync != SYNC_STREAM)
        return wakes_key(p, WAKE_DEVICE, rank);
    return op->kind == OP_SYNC     ? wakes_key(p, WAKE_STREAM, op->stream)
           : op->kind == OP_AWAIT  ? wakes_key(p, WAKE_FLAG, op->object)
           : op->kind == OP_LOCK   ? wakes_key(p, WAKE_LOCK, op->object)
           : op->kind == OP_TICKET ? wakes_key(p, WAKE_TURN, rank)
                                   : -1;
}

bool wakes_make(struct lists *wakes, const struct program *program, struct arena *arena)
{
    const struct program *p = program;
    size_t count = 0;
    struct lists_pair *pairs = malloc((p->op_count + (size_t)p->ranks) * sizeof *pairs);
    for (int i = 0; pairs && i < p->ranks * p->tasks; i++) {
        const struct body *body = &p->bodies[i];
        for (int k = body->first; k < body->first + body->count; k++) {
            int key = key_of(p, &p->ops[k], i / p->tasks);
            if (key >= 0)
                pairs[count++] = (struct lists_pair){key, p->worker[i]};
        }
    }
    for (int rank = 0; pairs && rank < p->ranks; rank++)
        pairs[count++] =
            (struct lists_pair){wakes_key(p, WAKE_DEVICE, rank), p->driver_thread[rank]};
    bool made =
        pairs && lists_make(wakes, arena, pairs, count, wakes_key(p, WAKE_DEVICE, p->ranks));
    free(pairs);
    return made;
}
