/* SPDX-License-Identifier: Apache-2.0 */
/* divide.c - see divide.h. */
#include "divide.h"

#include <string.h>

enum { SAMPLE = 1024, TABLE = 4 * SAMPLE, MAX_PASSES = 8 };

/* A hash for each state of the sample: of one leaf, or of all leaves of a half (their exclusive or,
   from which a leaf can be removed again). */
struct column {
    uint64_t hash[SAMPLE];
};

struct division {
    struct budget *budget;
    size_t leaves, sample;
    struct column *columns; /* one a leaf */
    struct column *halves;  /* two */
    bool *second;           /* one a leaf: is in the second half */
    uint32_t *changes;      /* one a leaf: states of the sample in which it is not its parent's */
    uint64_t *seen;         /* an open-addressed table of hashes, */
    uint32_t *times;        /* and how often each was seen */
};

/* Pairs of states in the sample that agree in a half after a leaf was added to it or removed. */
static uint64_t agreeing_pairs(struct division *d, const struct column *half,
                               const struct column *leaf)
{
    uint64_t pairs = 0;
    memset(d->times, 0, TABLE * sizeof *d->times);
    for (size_t i = 0; i < d->sample; i++) {
        uint64_t hash = half->hash[i] ^ leaf->hash[i];
        size_t at = hash % TABLE;
        while (d->times[at] && d->seen[at] != hash)
            at = (at + 1) % TABLE;
        d->seen[at] = hash;
        pairs += d->times[at]++;
    }
    return pairs;
}

/* The estimated number of values of both halves, up to a factor. */
static double cost(uint64_t pairs, uint64_t pairs_too)
{
    return 1 / ((double)pairs + 0.5) + 1 / ((double)pairs_too + 0.5);
}

static void toggle(struct division *d, int half, size_t leaf)
{
    for (size_t i = 0; i < d->sample; i++)
        d->halves[half].hash[i] ^= d->columns[leaf].hash[i];
}

/* Move leaves as long as the cost decreases. */
static void improve(struct division *d)
{
    static const struct column nothing;
    double best = cost(agreeing_pairs(d, &d->halves[0], &nothing),
                       agreeing_pairs(d, &d->halves[1], &nothing));
    bool again = true;
    for (int pass = 0; pass < MAX_PASSES && again; pass++) {
        again = false;
        for (size_t leaf = 0; leaf < d->leaves; leaf++) {
            if (!d->changes[leaf])
                continue;
            double moved = cost(agreeing_pairs(d, &d->halves[0], &d->columns[leaf]),
                                agreeing_pairs(d, &d->halves[1], &d->columns[leaf]));
            if (moved >= best)
                continue;
            best = moved;
            again = true;
            toggle(d, 0, leaf);
            toggle(d, 1, leaf);
            d->second[leaf] = !d->second[leaf];
        }
    }
}

static void take_state(struct division *d, size_t i, const struct tree *tree,
                       const struct cursor *state, const struct cursor *parent)
{
    for (size_t leaf = 0; leaf < d->leaves; leaf++) {
        uint64_t number = state->numbers[tree->leaf_slot[leaf]];
        d->columns[leaf].hash[i] = hash_mix((leaf + 1) << 32 ^ number);
        d->changes[leaf] += number != parent->numbers[tree->leaf_slot[leaf]];
    }
}

static enum status take_sample(struct division *d, struct tree *tree, const struct states *states)
{
    struct cursor state, parent;
    enum status status = cursor_open(&state, tree), opened = cursor_open(&parent, tree);
    status = status == STATUS_OK ? opened : status;
    for (size_t i = 0; i < d->sample && status == STATUS_OK; i++) {
        uint32_t id = 1 + (uint32_t)((uint64_t)(states_count(states) - 1) * i / d->sample);
        cursor_load(&state, states_root(states, id));
        cursor_load(&parent, states_root(states, states_parent(states, id)));
        take_state(d, i, tree, &state, &parent);
    }
    cursor_close(&state);
    cursor_close(&parent);
    return status;
}

static enum status open_division(struct division *d)
{
    enum status status = budget_alloc(d->budget, d->leaves * sizeof *d->columns, &d->columns);
    if (status == STATUS_OK)
        status = budget_alloc(d->budget, 2 * sizeof *d->halves, &d->halves);
    if (status == STATUS_OK)
        status = budget_alloc(d->budget, d->leaves * sizeof *d->second, &d->second);
    if (status == STATUS_OK)
        status = budget_alloc(d->budget, d->leaves * sizeof *d->changes, &d->changes);
    if (status == STATUS_OK)
        status = budget_alloc(d->budget, TABLE * sizeof *d->seen, &d->seen);
    if (status == STATUS_OK)
        status = budget_alloc(d->budget, TABLE * sizeof *d->times, &d->times);
    return status;
}

static void close_division(struct division *d)
{
    budget_free(d->budget, d->columns, d->leaves * sizeof *d->columns);
    budget_free(d->budget, d->halves, 2 * sizeof *d->halves);
    budget_free(d->budget, d->second, d->leaves * sizeof *d->second);
    budget_free(d->budget, d->changes, d->leaves * sizeof *d->changes);
    budget_free(d->budget, d->seen, TABLE * sizeof *d->seen);
    budget_free(d->budget, d->times, TABLE * sizeof *d->times);
}

/* The leaves of one half, the most often changed first; equals keep their order. */
static size_t gather(const struct division *d, const uint32_t *leaves, bool second, uint32_t *out)
{
    size_t count = 0;
    for (size_t i = 0; i < d->leaves; i++) {
        size_t at = count;
        if (d->second[leaves[i]] != second)
            continue;
        for (; at > 0 && d->changes[out[at - 1]] < d->changes[leaves[i]]; at--)
            out[at] = out[at - 1];
        out[at] = leaves[i];
        count++;
    }
    return count;
}

static enum status reorder(const struct division *d, struct tree_order *order)
{
    uint32_t *leaves;
    enum status status = budget_alloc(d->budget, d->leaves * sizeof *leaves, &leaves);
    if (status != STATUS_OK)
        return status;
    order->first_half = gather(d, order->leaves, false, leaves);
    gather(d, order->leaves, true, leaves + order->first_half);
    memcpy(order->leaves, leaves, d->leaves * sizeof *leaves);
    order->ranked = true;
    budget_free(d->budget, leaves, d->leaves * sizeof *leaves);
    return STATUS_OK;
}

enum status divide_leaves(struct tree *tree, const struct states *states, struct tree_order *order)
{
    struct division d = {.budget = tree->budget, .leaves = order->count, .sample = SAMPLE};
    if (states_count(states) <= d.sample)
        d.sample = states_count(states) - 1;
    enum status status = open_division(&d);
    if (status == STATUS_OK)
        status = take_sample(&d, tree, states);
    if (status == STATUS_OK) {
        for (size_t i = 0; i < d.leaves; i++) {
            d.second[order->leaves[i]] = i >= order->first_half;
            toggle(&d, i >= order->first_half, order->leaves[i]);
        }
        improve(&d);
        status = reorder(&d, order);
    }
    close_division(&d);
    return status;
}
