/* tree.c - see tree.h. */
#include "check/tree.h"

#include <string.h>

enum { RUN_LEAVES = 4 };

struct cursor_change {
    uint32_t slot, number;
};

/* ---- the shape ------------------------------------------------------------------------------- */

/* Into how many parts `leaves` leaves are divided below one node, so that the parts fill trees one
   level less deep. */
static size_t part_count(size_t leaves)
{
    size_t capacity = 1;
    while (capacity * TREE_FANOUT < leaves)
        capacity *= TREE_FANOUT;
    return (leaves + capacity - 1) / capacity;
}

/* How many nodes it takes to hang these many leaves, the topmost included. */
static size_t nodes_for(size_t leaves)
{
    size_t parts = part_count(leaves), nodes = 1;
    for (size_t k = 0; k < parts; k++) {
        size_t part = leaves * (k + 1) / parts - leaves * k / parts;
        nodes += part > 1 ? nodes_for(part) : 0;
    }
    return nodes;
}

/* Hang leaves below `node`; *next is the next free number of a node. As deep as the tree. */
static void hang(struct tree *tree, const uint32_t *leaves, size_t count, size_t node, size_t *next)
{
    size_t parts = part_count(count);
    for (size_t k = 0; k < parts; k++) {
        const uint32_t *part = leaves + count * k / parts;
        size_t part_size = (size_t)(leaves + count * (k + 1) / parts - part);
        uint32_t slot = (uint32_t)(node * TREE_FANOUT + k);
        if (part_size == 1) {
            tree->leaf_slot[*part] = slot;
            tree->below[slot] = (int32_t)*part;
            continue;
        }
        size_t child = (*next)++;
        tree->node_slot[child] = slot;
        tree->below[slot] = -(int32_t)child;
        hang(tree, part, part_size, child, next);
    }
}

static enum status build_shape(struct tree *tree, const struct tree_order *order)
{
    struct budget *budget = tree->budget;
    size_t second = order->count - order->first_half, next = 2;
    tree->leaf_count = order->count;
    tree->node_count = nodes_for(order->first_half) + nodes_for(second);
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
    hang(tree, order->leaves, order->first_half, 0, &next);
    hang(tree, order->leaves + order->first_half, second, 1, &next);
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

static size_t dirty_words(const struct tree *tree)
{
    return (tree->node_count + 63) / 64;
}

enum status cursor_open(struct cursor *cursor, struct tree *tree)
{
    struct budget *budget = tree->budget;
    *cursor = (struct cursor){.tree = tree};
    enum status status = budget_alloc(budget, state_bytes(tree), &cursor->node.cells);
    if (status == STATUS_OK)
        status = budget_alloc(budget, state_bytes(tree), &cursor->work.cells);
    if (status == STATUS_OK)
        status = budget_alloc(budget, tree->node_count * TREE_FANOUT * sizeof *cursor->numbers,
                              &cursor->numbers);
    if (status == STATUS_OK)
        status = budget_alloc(budget, dirty_words(tree) * sizeof *cursor->dirty, &cursor->dirty);
    if (status == STATUS_OK)
        status = budget_alloc(
            budget, (tree->leaf_count + tree->node_count) * sizeof *cursor->log, &cursor->log);
    return status;
}

void cursor_close(struct cursor *cursor)
{
    struct tree *tree = cursor->tree;
    if (!tree)
        return;
    budget_free(tree->budget, cursor->node.cells, state_bytes(tree));
    budget_free(tree->budget, cursor->work.cells, state_bytes(tree));
    budget_free(tree->budget, cursor->numbers,
                tree->node_count * TREE_FANOUT * sizeof *cursor->numbers);
    budget_free(tree->budget, cursor->dirty, dirty_words(tree) * sizeof *cursor->dirty);
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

static void load_leaf(struct cursor *cursor, size_t leaf, uint32_t number)
{
    const uint64_t *words = intern_value(&cursor->tree->leaves, number, TREE_LEAF_WORDS);
    memcpy(leaf_at(&cursor->node, leaf), words, TREE_LEAF_BYTES);
    memcpy(leaf_at(&cursor->work, leaf), words, TREE_LEAF_BYTES);
}

/* As deep as the tree, which is a few levels. */
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
}

/* ---- from a state to its root ---------------------------------------------------------------- */

static void change(struct cursor *cursor, uint32_t slot, uint32_t number)
{
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
        change(cursor, cursor->tree->leaf_slot[leaf], number);
    return status;
}

/* Do `leaves` leaves from this one on differ? */
static bool differ(const struct cursor *cursor, size_t leaf, size_t leaves)
{
    typedef uint64_t vector __attribute__((vector_size(16), may_alias));
    const vector *x = (const void *)leaf_at(&cursor->node, leaf);
    const vector *y = (const void *)leaf_at(&cursor->work, leaf);
    vector difference = x[0] ^ y[0];
    for (size_t i = 1; i < leaves * TREE_LEAF_BYTES / sizeof *x; i++)
        difference |= x[i] ^ y[i];
    return difference[0] | difference[1];
}

/* What is equal, and most is, is passed over several leaves at a time. */
static enum status store_leaves(struct cursor *cursor)
{
    size_t leaves = cursor->tree->leaf_count, leaf = 0;
    enum status status = STATUS_OK;
    while (leaf < leaves && status == STATUS_OK)
        if (leaf + RUN_LEAVES <= leaves && !differ(cursor, leaf, RUN_LEAVES)) {
            leaf += RUN_LEAVES;
        } else {
            size_t end = leaf + RUN_LEAVES < leaves ? leaf + RUN_LEAVES : leaves;
            for (; leaf < end && status == STATUS_OK; leaf++)
                if (differ(cursor, leaf, 1))
                    status = store_leaf(cursor, leaf);
        }
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
        change(cursor, tree->node_slot[node], number);
    return STATUS_OK;
}

/* What is above a node has a smaller number: from the last changed one down to the halves. */
static enum status store_nodes(struct cursor *cursor, uint32_t *half)
{
    enum status status = STATUS_OK;
    for (size_t word = dirty_words(cursor->tree); word-- > 0;)
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
        memset(cursor->dirty, 0, dirty_words(cursor->tree) * sizeof *cursor->dirty);
    }
    while (cursor->log_count > 0) {
        struct cursor_change *last = &cursor->log[--cursor->log_count];
        cursor->numbers[last->slot] = last->number;
    }
    *root = half[0] | (uint64_t)half[1] << 32;
    return status;
}
