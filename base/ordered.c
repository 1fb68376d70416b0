/* SPDX-License-Identifier: Apache-2.0 */
/* ordered.c - see ordered.h. */
#include "ordered.h"

#include "array.h"
#include "hash.h"

static uint64_t ordered_rank(size_t node)
{
    return hash_mix(node);
}

static const struct ordered_node *ordered_nearest(const struct ordered *map, uint64_t key,
                                                  bool above)
{
    const struct ordered_node *nearest = NULL;
    for (size_t at = map->root; at > 0;) {
        const struct ordered_node *node = &map->nodes[at];
        if (above ? node->key >= key : node->key <= key)
            nearest = node;
        if (node->key == key)
            break;
        at = node->below[node->key < key];
    }
    return nearest;
}

const struct ordered_node *ordered_last(const struct ordered *map, uint64_t key)
{
    return ordered_nearest(map, key, false);
}

const struct ordered_node *ordered_first(const struct ordered *map, uint64_t key)
{
    return ordered_nearest(map, key, true);
}

const struct ordered_node *ordered_find(const struct ordered *map, uint64_t key)
{
    const struct ordered_node *nearest = ordered_last(map, key);
    return nearest && nearest->key == key ? nearest : NULL;
}

/* Where the node with this key hangs, or the first one below which a node of this number would hang. */
static size_t *ordered_link(struct ordered *map, uint64_t key, size_t number)
{
    size_t *link = &map->root;
    while (*link > 0 && map->nodes[*link].key != key &&
           (number == 0 || ordered_rank(*link) >= ordered_rank(number)))
        link = &map->nodes[*link].below[map->nodes[*link].key < key];
    return link;
}

bool ordered_put(struct ordered *map, struct arena *arena, uint64_t key, size_t value)
{
    const size_t found = *ordered_link(map, key, 0),
                 number = map->unused ? map->unused : map->count + 1;
    if (found > 0) {
        map->nodes[found].value = value;
        return true;
    }
    if (!ARENA_RESERVE(arena, map->nodes, number + 1, map->cap))
        return false;
    if (number == map->unused)
        map->unused = map->nodes[number].below[0];
    else
        map->count = number;
    size_t *link = ordered_link(map, key, number), at = *link;
    *link = number;
    map->nodes[number] = (struct ordered_node){.key = key, .value = value};
    /* The nodes that hung there go below the new one, to the side of their keys. */
    size_t *ends[2] = {&map->nodes[number].below[0], &map->nodes[number].below[1]};
    while (at > 0) {
        const bool above = map->nodes[at].key > key;
        *ends[above] = at;
        ends[above] = &map->nodes[at].below[!above];
        at = *ends[above];
    }
    *ends[0] = *ends[1] = 0;
    return true;
}

void ordered_drop(struct ordered *map, uint64_t key)
{
    size_t *link = ordered_link(map, key, 0);
    const size_t number = *link;
    if (number == 0)
        return;
    size_t lesser = map->nodes[number].below[0], greater = map->nodes[number].below[1];
    while (lesser > 0 && greater > 0) {
        const bool takes_lesser = ordered_rank(lesser) > ordered_rank(greater);
        size_t *taken = takes_lesser ? &lesser : &greater;
        *link = *taken;
        link = &map->nodes[*taken].below[takes_lesser];
        *taken = *link;
    }
    *link = lesser > 0 ? lesser : greater;
    map->nodes[number].below[0] = map->unused;
    map->unused = number;
}
