/* tree.c - see tree.h. */
#include "check/tree.h"

#include <string.h>

#include "check/affinity.h"

enum { MAX_LEVELS = 16, RUN_LEAVES = 4 };

struct cursor_change {
    uint32_t slot, number;
};

/* ---- the shape ------------------------------------------------------------------------------- */

/* How many nodes each level has, the leaves being level 0; the last level has the two halves. */
static int plan_levels(size_t leaves, size_t *counts)
{
    int top = 0;
    counts[0] = leaves;
    do {
        size_t nodes = (counts[top] + TREE_FANOUT - 1) / TREE_FANOUT;
        counts[++top] = nodes < 2 ? 2 : (nodes + 1) / 2 * 2;
    } while (counts[top] > 2);
    return top;
}

/* Spread the `count` things of a level evenly over the nodes above, those from `first` on. `order`,
   for leaves, says which of them comes when. */
static void hang(struct tree *tree, const size_t *counts, int level, size_t first,
                 size_t first_here, const uint32_t *order)
{
    size_t above = counts[level + 1], last_node = SIZE_MAX, place = 0;
    for (size_t i = 0; i < counts[level]; i++) {
        size_t node = first + i * above / counts[level];
        place = node == last_node ? place + 1 : 0;
        last_node = node;
        uint32_t slot = (uint32_t)(node * TREE_FANOUT + place);
        if (level == 0) {
            tree->leaf_slot[order[i]] = slot;
            tree->below[slot] = (int32_t)order[i];
        } else {
            tree->node_slot[first_here + i] = slot;
            tree->below[slot] = -(int32_t)(first_here + i);
        }
    }
}

static enum status build_shape(struct tree *tree, const size_t *counts, int top)
{
    struct budget *budget = tree->budget;
    size_t leaves = tree->leaf_count, nodes = tree->node_count;
    uint32_t *order = NULL;
    enum status status = budget_alloc(budget, leaves * sizeof *tree->leaf_slot, &tree->leaf_slot);
    if (status == STATUS_OK)
        status = budget_alloc(budget, nodes * sizeof *tree->node_slot, &tree->node_slot);
    if (status == STATUS_OK)
        status = budget_alloc(budget, nodes * TREE_FANOUT * sizeof *tree->below, &tree->below);
    if (status == STATUS_OK)
        status = budget_alloc(budget, leaves * sizeof *order, &order);
    if (status == STATUS_OK && !affinity_order(tree->program, TREE_LEAF_BYTES, order, leaves))
        status = STATUS_SYSTEM;
    if (status == STATUS_OK) {
        for (size_t slot = 0; slot < nodes * TREE_FANOUT; slot++)
            tree->below[slot] = TREE_NOTHING;
        for (size_t first = 0, level = (size_t)top; level > 0; first += counts[level--])
            hang(tree, counts, (int)level - 1, first, first + counts[level], order);
    }
    budget_free(budget, order, leaves * sizeof *order);
    return status;
}

enum status tree_open(struct tree *tree, const struct program *program, bool shared,
                      struct budget *budget)
{
    static const uint64_t zeros[TREE_LEAF_WORDS];
    size_t counts[MAX_LEVELS];
    *tree = (struct tree){.program = program, .budget = budget};
    tree->leaf_count = (program->at.bytes + TREE_LEAF_BYTES - 1) / TREE_LEAF_BYTES;
    int top = plan_levels(tree->leaf_count, counts);
    for (int level = 1; level <= top; level++)
        tree->node_count += counts[level];
    enum status status = build_shape(tree, counts, top);
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
