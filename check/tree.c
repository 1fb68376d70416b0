/* SPDX-License-Identifier: Apache-2.0 */
/* tree.c - see tree.h. */
#include "tree.h"
#include "base/sort.h"

#include <assert.h>
#include <string.h>

#include "difference.h"

enum { RANK_LEVELS = 3 };
_Static_assert((int)TREE_LEAF_BYTES == (int)COMPARE_LINE, "a leaf is a line");

struct cursor_change {
    uint32_t slot, number;
};

/* ---- the shape ------------------------------------------------------------------------------- */

/* Leaves are divided below a node into parts, each a leaf or a node with a part of its own. */
struct tree_parts {
    size_t leaves, count;
    bool ranked; /* the first parts are a leaf each, and the last is the rest */
};

/* Ranked leaves hang one by one for a few levels, so that leaves that change often are near the top.
   The rest is divided evenly, so that the parts fill trees one level less deep. */
static struct tree_parts tree_divide(size_t leaves, int rank_levels)
{
    struct tree_parts parts = {.leaves = leaves, .ranked = rank_levels > 0 && leaves > TREE_FANOUT};
    size_t capacity = 1;
    while (capacity * TREE_FANOUT < leaves)
        capacity *= TREE_FANOUT;
    parts.count = parts.ranked ? TREE_FANOUT : (leaves + capacity - 1) / capacity;
    return parts;
}

/* Where the k-th part begins. */
static size_t part_start(const struct tree_parts *parts, size_t k)
{
    if (parts->ranked)
        return k < parts->count ? k : parts->leaves;
    return parts->leaves * k / parts->count;
}

/* The number of nodes above so many leaves, the topmost included. */
static size_t nodes_for(size_t leaves, int rank_levels)
{
    struct tree_parts parts = tree_divide(leaves, rank_levels);
    size_t nodes = 1;
    for (size_t k = 0; k < parts.count; k++) {
        size_t part = part_start(&parts, k + 1) - part_start(&parts, k);
        nodes += part > 1 ? nodes_for(part, rank_levels - 1) : 0;
    }
    return nodes;
}

/* Hang leaves below `node`; *next is the next free number of a node. The recursion is as deep as the
   tree. */
static void hang(struct tree *tree, const uint32_t *leaves, size_t count, int rank_levels,
                 size_t node, size_t *next)
{
    struct tree_parts parts = tree_divide(count, rank_levels);
    for (size_t k = 0; k < parts.count; k++) {
        size_t start = part_start(&parts, k), size = part_start(&parts, k + 1) - start;
        uint32_t slot = (uint32_t)(node * TREE_FANOUT + k);
        if (size == 1) {
            tree->leaf_slot[leaves[start]] = slot;
            tree->below[slot] = (int32_t)leaves[start];
            continue;
        }
        size_t child = (*next)++;
        tree->node_slot[child] = slot;
        tree->below[slot] = -(int32_t)child;
        hang(tree, leaves + start, size, rank_levels - 1, child, next);
    }
}

#ifdef SWSIM_CHECKS
/* Every leaf and every node but the two topmost hangs in one slot, a node below one of a smaller number. */
static bool tree_check(const struct tree *tree)
{
    size_t used = 0;
    for (size_t slot = 0; slot < tree->node_count * TREE_FANOUT; slot++)
        used += tree->below[slot] != TREE_NOTHING;
    for (size_t leaf = 0; leaf < tree->leaf_count; leaf++)
        if (tree->below[tree->leaf_slot[leaf]] != (int32_t)leaf)
            return false;
    for (size_t node = 2; node < tree->node_count; node++)
        if (tree->below[tree->node_slot[node]] != -(int32_t)node ||
            tree->node_slot[node] / TREE_FANOUT >= node)
            return false;
    return used == tree->leaf_count + tree->node_count - 2;
}
#endif

static enum status build_shape(struct tree *tree, const struct tree_order *order)
{
    struct budget *budget = tree->budget;
    size_t second = order->count - order->first_half, next = 2;
    tree->leaf_count = order->count;
    int levels = order->ranked ? RANK_LEVELS : 0;
    tree->node_count = nodes_for(order->first_half, levels) + nodes_for(second, levels);
    size_t slots = tree->node_count * TREE_FANOUT;
    enum status status =
        budget_alloc(budget, tree->leaf_count * sizeof *tree->leaf_slot, &tree->leaf_slot);
    if (status == STATUS_OK)
        status = budget_alloc(budget, tree->node_count * sizeof *tree->node_slot, &tree->node_slot);
    if (status == STATUS_OK)
        status = budget_alloc(budget, slots * sizeof *tree->below, &tree->below);
    if (status != STATUS_OK)
        return status;
    for (size_t slot = 0; slot < slots; slot++)
        tree->below[slot] = TREE_NOTHING;
    hang(tree, order->leaves, order->first_half, levels, 0, &next);
    hang(tree, order->leaves + order->first_half, second, levels, 1, &next);
    assert(next == tree->node_count);
#ifdef SWSIM_CHECKS
    assert(tree_check(tree));
#endif
    return STATUS_OK;
}

enum status tree_open(struct tree *tree, const struct program *program,
                      const struct tree_order *order, bool shared, struct budget *budget)
{
    static const uint64_t zeros[TREE_LEAF_WORDS];
    *tree = (struct tree){.program = program, .budget = budget};
    enum status status = build_shape(tree, order);
    if (status == STATUS_OK)
        status = intern_open(&tree->leaves, TREE_LEAF_WORDS, shared, budget);
    if (status == STATUS_OK)
        status = intern_open(&tree->nodes, TREE_NODE_WORDS, shared, budget);
    uint32_t zero;
    bool is_new;
    if (status == STATUS_OK)
        status = intern_number(&tree->leaves, zeros, TREE_LEAF_WORDS, &zero, &is_new);
    if (status == STATUS_OK)
        status = intern_number(&tree->nodes, zeros, TREE_NODE_WORDS, &zero, &is_new);
    return status;
}

void tree_close(struct tree *tree)
{
    if (!tree->budget)
        return;
    intern_close(&tree->leaves);
    intern_close(&tree->nodes);
    budget_free(tree->budget, tree->leaf_slot, tree->leaf_count * sizeof *tree->leaf_slot);
    budget_free(tree->budget, tree->node_slot, tree->node_count * sizeof *tree->node_slot);
    budget_free(tree->budget, tree->below, tree->node_count * TREE_FANOUT * sizeof *tree->below);
    *tree = (struct tree){0};
}

/* ---- cursors --------------------------------------------------------------------------------- */

static size_t state_bytes(const struct tree *tree)
{
    return tree->leaf_count * TREE_LEAF_BYTES;
}

/* With room for machine_canonical. */
static size_t work_bytes(const struct tree *tree)
{
    return max_size(state_bytes(tree), tree->program->at.block);
}

/* Words for so many bits. */
static size_t bit_words(size_t bits)
{
    return (bits + 63) / 64;
}

enum status cursor_open(struct cursor *cursor, struct tree *tree)
{
    struct budget *budget = tree->budget;
    *cursor = (struct cursor){.tree = tree};
    enum status status = budget_alloc(budget, state_bytes(tree), &cursor->node.cells);
    if (status == STATUS_OK)
        status = budget_alloc(budget, work_bytes(tree), &cursor->work.cells);
    if (status == STATUS_OK)
        status = budget_alloc(budget, tree->node_count * TREE_FANOUT * sizeof *cursor->numbers,
                              &cursor->numbers);
    if (status == STATUS_OK)
        status = budget_alloc(budget, bit_words(tree->leaf_count) * sizeof *cursor->differs,
                              &cursor->differs);
    if (status == STATUS_OK)
        status = budget_alloc(budget, bit_words(tree->node_count) * sizeof *cursor->dirty,
                              &cursor->dirty);
    if (status == STATUS_OK)
        status = budget_alloc(budget, (tree->leaf_count + tree->node_count) * sizeof *cursor->log,
                              &cursor->log);
    return status;
}

void cursor_close(struct cursor *cursor)
{
    struct tree *tree = cursor->tree;
    if (!tree)
        return;
    budget_free(tree->budget, cursor->node.cells, state_bytes(tree));
    budget_free(tree->budget, cursor->work.cells, work_bytes(tree));
    budget_free(tree->budget, cursor->numbers,
                tree->node_count * TREE_FANOUT * sizeof *cursor->numbers);
    budget_free(tree->budget, cursor->differs,
                bit_words(tree->leaf_count) * sizeof *cursor->differs);
    budget_free(tree->budget, cursor->dirty, bit_words(tree->node_count) * sizeof *cursor->dirty);
    budget_free(tree->budget, cursor->log,
                (tree->leaf_count + tree->node_count) * sizeof *cursor->log);
    *cursor = (struct cursor){0};
}

static unsigned char *leaf_at(const struct state *state, size_t leaf)
{
    return (unsigned char *)state->cells + leaf * TREE_LEAF_BYTES;
}

void cursor_restore(struct cursor *cursor)
{
    memcpy(cursor->work.cells, cursor->node.cells, state_bytes(cursor->tree));
}

/* ---- from a root to the state ---------------------------------------------------------------- */

#ifdef SWSIM_CHECKS
/* The state of the cursor's node is what its numbers say, from the two halves down to each leaf. */
static bool cursor_check(const struct cursor *cursor)
{
    const struct tree *tree = cursor->tree;
    for (size_t node = 0; node < tree->node_count; node++) {
        uint32_t number = node < 2 ? cursor->half[node] : cursor->numbers[tree->node_slot[node]];
        if (memcmp(intern_value(&tree->nodes, number, TREE_NODE_WORDS),
                   cursor->numbers + node * TREE_FANOUT, TREE_NODE_WORDS * sizeof(uint64_t)) != 0)
            return false;
    }
    for (size_t leaf = 0; leaf < tree->leaf_count; leaf++)
        if (memcmp(intern_value(&tree->leaves, cursor->numbers[tree->leaf_slot[leaf]],
                                TREE_LEAF_WORDS),
                   leaf_at(&cursor->node, leaf), TREE_LEAF_BYTES) != 0)
            return false;
    return true;
}
#endif

static void load_leaf(struct cursor *cursor, size_t leaf, uint32_t number)
{
    const uint64_t *words = intern_value(&cursor->tree->leaves, number, TREE_LEAF_WORDS);
    memcpy(leaf_at(&cursor->node, leaf), words, TREE_LEAF_BYTES);
    memcpy(leaf_at(&cursor->work, leaf), words, TREE_LEAF_BYTES);
}

/* The recursion is as deep as the tree, a few levels. */
static void load_node(struct cursor *cursor, size_t node, uint32_t number)
{
    const struct tree *tree = cursor->tree;
    uint32_t *numbers = cursor->numbers + node * TREE_FANOUT, wanted[TREE_FANOUT];
    memcpy(wanted, intern_value(&tree->nodes, number, TREE_NODE_WORDS), sizeof wanted);
    for (size_t k = 0; k < TREE_FANOUT; k++) {
        if (numbers[k] == wanted[k])
            continue;
        int32_t below = tree->below[node * TREE_FANOUT + k];
        numbers[k] = wanted[k];
        if (below >= 0)
            load_leaf(cursor, (size_t)below, wanted[k]);
        else
            load_node(cursor, (size_t)-below, wanted[k]);
    }
}

void cursor_load(struct cursor *cursor, uint64_t root)
{
    for (int half = 0; half < 2; half++) {
        uint32_t number = (uint32_t)(root >> (32 * half));
        if (cursor->half[half] != number)
            load_node(cursor, (size_t)half, number);
        cursor->half[half] = number;
    }
#ifdef SWSIM_CHECKS
    assert(cursor_check(cursor));
#endif
}

/* ---- from a state to its root ---------------------------------------------------------------- */

static void tree_change(struct cursor *cursor, uint32_t slot, uint32_t number)
{
    assert(cursor->log_count < cursor->tree->leaf_count + cursor->tree->node_count);
    cursor->log[cursor->log_count++] = (struct cursor_change){slot, cursor->numbers[slot]};
    cursor->numbers[slot] = number;
    uint32_t node = slot / TREE_FANOUT;
    cursor->dirty[node / 64] |= UINT64_C(1) << (node % 64);
}

static enum status store_leaf(struct cursor *cursor, size_t leaf)
{
    uint64_t words[TREE_LEAF_WORDS];
    uint32_t number;
    bool is_new;
    memcpy(words, leaf_at(&cursor->work, leaf), sizeof words);
    memcpy(leaf_at(&cursor->work, leaf), leaf_at(&cursor->node, leaf), sizeof words);
    enum status status =
        intern_number(&cursor->tree->leaves, words, TREE_LEAF_WORDS, &number, &is_new);
    if (status == STATUS_OK)
        tree_change(cursor, cursor->tree->leaf_slot[leaf], number);
    return status;
}

static enum status store_leaves(struct cursor *cursor)
{
    const struct tree *tree = cursor->tree;
    enum status status = STATUS_OK;
    compare_lines(cursor->node.cells, cursor->work.cells, tree->leaf_count, cursor->differs);
    for (size_t word = 0; word < bit_words(tree->leaf_count); word++)
        for (uint64_t bits = cursor->differs[word]; bits && status == STATUS_OK; bits &= bits - 1)
            status = store_leaf(cursor, word * 64 + (size_t)__builtin_ctzll(bits));
    return status;
}

static enum status store_node(struct cursor *cursor, size_t node, uint32_t *half)
{
    const struct tree *tree = cursor->tree;
    uint64_t value[TREE_NODE_WORDS];
    uint32_t number;
    bool is_new;
    memcpy(value, cursor->numbers + node * TREE_FANOUT, sizeof value);
    enum status status =
        intern_number(&cursor->tree->nodes, value, TREE_NODE_WORDS, &number, &is_new);
    if (status != STATUS_OK)
        return status;
    if (node < 2)
        half[node] = number;
    else
        tree_change(cursor, tree->node_slot[node], number);
    return STATUS_OK;
}

/* A parent has a smaller number than its children: from the last changed node down to the halves. */
static enum status store_nodes(struct cursor *cursor, uint32_t *half)
{
    enum status status = STATUS_OK;
    for (size_t word = bit_words(cursor->tree->node_count); word-- > 0;)
        while (cursor->dirty[word] && status == STATUS_OK) {
            unsigned bit = 63 - (unsigned)__builtin_clzll(cursor->dirty[word]);
            cursor->dirty[word] &= ~(UINT64_C(1) << bit);
            status = store_node(cursor, word * 64 + bit, half);
        }
    return status;
}

enum status cursor_store(struct cursor *cursor, uint64_t *root)
{
    uint32_t half[2] = {cursor->half[0], cursor->half[1]};
    enum status status = store_leaves(cursor);
    if (status == STATUS_OK)
        status = store_nodes(cursor, half);
    if (status != STATUS_OK) {
        cursor_restore(cursor);
        memset(cursor->dirty, 0, bit_words(cursor->tree->node_count) * sizeof *cursor->dirty);
    }
    while (cursor->log_count > 0) {
        struct cursor_change *last = &cursor->log[--cursor->log_count];
        cursor->numbers[last->slot] = last->number;
    }
#ifdef SWSIM_CHECKS
    assert(cursor_check(cursor));
#endif
    *root = half[0] | (uint64_t)half[1] << 32;
    return status;
}
