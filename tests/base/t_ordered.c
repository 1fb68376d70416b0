/* SPDX-License-Identifier: Apache-2.0 */
/* t_ordered.c - numbers in order: random ones put and dropped, beside a plain array; keys in order; the largest ones. */
#include "base/ordered.h"
#include "tests/random_draw.h"
#include "tests/tap.h"

enum { KEYS = 300, STEPS = 20000 };

/* The nearest key of `there` from `key` on, upwards or downwards; -1: none. */
static int nearest_of(const size_t *there, int key, int by)
{
    while (key >= 0 && key < KEYS && there[key] == 0)
        key += by;
    return key < KEYS ? key : -1;
}

static bool is_node(const struct ordered_node *node, const size_t *there, int key)
{
    return key < 0 ? node == NULL : node && node->key == (uint64_t)key && node->value == there[key];
}

static void test_random(struct arena *arena)
{
    static size_t there[KEYS]; /* values; 0: it is not there */
    struct ordered map = {0};
    struct random random = {.seed = 1};
    bool right = true;
    for (size_t step = 1; right && step <= STEPS; step++) {
        const int key = below(&random, KEYS);
        if (below(&random, 2)) {
            there[key] = step;
            right &= ordered_put(&map, arena, (uint64_t)key, step);
        } else {
            there[key] = 0;
            ordered_drop(&map, (uint64_t)key);
        }
        const int at = below(&random, KEYS);
        right &=
            is_node(ordered_last(&map, (uint64_t)at), there, nearest_of(there, at, -1)) &&
            is_node(ordered_first(&map, (uint64_t)at), there, nearest_of(there, at, 1)) &&
            is_node(ordered_before(&map, (uint64_t)at), there, nearest_of(there, at - 1, -1)) &&
            is_node(ordered_find(&map, (uint64_t)at), there, there[at] ? at : -1);
    }
    tap_ok(right, "%d random keys are found, put and dropped", STEPS);
    tap_ok(map.count <= KEYS, "dropped nodes are used again");
}

static size_t depth_of(const struct ordered *map, size_t node)
{
    const struct ordered_node *at = &map->nodes[node];
    if (node == 0)
        return 0;
    const size_t lesser = depth_of(map, at->below[0]), greater = depth_of(map, at->below[1]);
    return 1 + (lesser > greater ? lesser : greater);
}

static void test_depth(struct arena *arena)
{
    struct ordered map = {0};
    for (size_t i = 0; i < STEPS; i++)
        ordered_put(&map, arena, i, i);
    tap_ok(depth_of(&map, map.root) < 50, "%d keys in order have a depth of %zu", STEPS,
           depth_of(&map, map.root));
}

static void test_ends(struct arena *arena)
{
    struct ordered map = {0};
    tap_ok(!ordered_last(&map, 0) && !ordered_first(&map, 0) && !ordered_before(&map, 0),
           "nothing is in an empty map");
    ordered_drop(&map, 1);
    ordered_put(&map, arena, UINT64_MAX, 1);
    ordered_put(&map, arena, 0, 2);
    tap_ok(ordered_last(&map, UINT64_MAX)->value == 1 &&
               ordered_before(&map, UINT64_MAX)->value == 2 && !ordered_before(&map, 0) &&
               ordered_first(&map, 1)->value == 1,
           "the least and the greatest key");
}

int main(void)
{
    struct arena arena;
    arena_init(&arena, 0);
    test_random(&arena);
    test_depth(&arena);
    test_ends(&arena);
    arena_fini(&arena);
    return tap_done();
}
