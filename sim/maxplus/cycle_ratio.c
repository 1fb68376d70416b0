/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cycle_ratio.c - see cycle_ratio.h. In order:
 *
 *     read_edges         degrees and sums; whether any height is negative
 *     lift_heights       then: potentials that make every height >= 0, or a cycle of negative height
 *     contract           nodes with one edge into them
 *     sort_edges         by tail, as hops: what the loop needs of an edge, side by side
 *     order_nodes        heads of edges of height 0 before their tails (Kahn 1962), or a cycle
 *     iterate            policy iteration, with a value a node
 *
 * Contraction. A cycle through a node v with one edge into it, u -> v, goes through u; so v can go if what
 * leaves it leaves u instead, longer and higher by u -> v:
 *
 *         +--> v --+--> x                 +------> x
 *     u --+  a,h   |  b,k             u --+  a+b,h+k
 *         |        +--> y                 +------> y
 *
 * The edges that remain are hops: each is an edge of the graph, with the way to its tail from the node that
 * stands for it, its root. Cycles of hops are the cycles of the graph, of the same sums, as long as one node
 * stays of each cycle that nothing else leads into. Ways stay as long, too: a way that visits each node once
 * is in each root's tree once, so what is said about widths below holds for the graph as it was. A thread
 * that launches work is a chain of such nodes, half of all events.
 *
 * A policy is one edge out of each node, or none: the way ends there. With a ratio r, the best known, an
 * edge's length is weight - r * height, here times the denominator of r, and the value of a node is no
 * more than the length of its policy's edge plus the value where that leads:
 *
 *     value(v) <= length(v -> w) + value(w)      for the policy's edge v -> w
 *
 * One sweep goes through the nodes in their order and lets each take an edge that makes its value larger.
 *
 *   - An edge that closes a cycle of the policy makes that cycle's length positive (add up what stands
 *     above round the cycle; for the new edge it was strict): its ratio is larger than r. The largest
 *     ratio of such cycles is the next r, and the values become those of the policy, whose other cycles
 *     are cut. Ratios are those of simple cycles, finitely many, and grow.
 *   - With no cycle values are at most the length of a simple way and grow, so sweeps come to an end.
 *   - When nothing grows, no cycle is longer than 0: the lengths round it add up to no more than the
 *     values' differences, which are 0. So r is the maximum.
 *
 * This is Howard's algorithm as Dasdan, Irani and Gupta have it (values are improved, not found anew),
 * without their need of a strongly connected graph. The first policy, the longest ways along edges of
 * height 0 to one with a height, is often the last. The loop allocates nothing, and counts in 64 bits
 * where sums fit, else in 128.
 */
#include "cycle_ratio.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>

#include "base/arena.h"

typedef __int128 wide;

enum { NONE = -1 };
static const int64_t SUM_LIMIT = INT64_C(1) << 62;
/* Values of a sweep stay below twice the sum of all lengths. */
static const int64_t NARROW_LIMIT = INT64_C(1) << 61;

/* An edge without its tail. */
struct hop {
    int to, height;
    int64_t weight_ns;
};

struct solver {
    const struct ratio_graph *graph;
    const struct ratio_edge *edges; /* the graph's, or lifted */
    struct arena arena;
    int nodes;
    int64_t weight_sum_ns, height_sum; /* of absolute values */
    bool negative;                     /* some height is */
    int *first;                        /* hops first[v] .. first[v + 1] - 1 leave v */
    struct hop *hops;
    int *edge_of; /* per hop: its last edge */
    int hop_count;
    int *flat_in;            /* per node: hops of height 0 that lead there */
    int *in_count, *in_edge; /* per node: edges into it, one of them */
    struct hop *roots;       /* per node: its root and the way from there; a root: itself */
    int kept;                /* nodes that are roots */
    int *order;              /* nodes: heads before tails */
    int *policy;             /* per node: a hop; NONE */
    int *seen;               /* per node: stamp of the walk that came by */
    int *stack;
    int stamp;
    int64_t *narrow; /* per node: its value, in either width */
    wide *wide;
    struct {
        int64_t weight_ns, height; /* of the best cycle; of less than any cycle at first */
        int *cycle, length;        /* its hops */
    } best;
    struct cycle_ratio result;
};

/* ---- results --------------------------------------------------------------------------------- */

/* The edges of a cycle are the result, which frees them. */
static enum status keep_edges(struct solver *s, enum ratio_kind kind, int *cycle, int length)
{
    struct cycle_ratio *result = &s->result;
    result->kind = kind;
    result->cycle = cycle;
    result->length = length;
    result->weight_ns = result->height = 0;
    for (int i = 0; i < length; i++) {
        result->weight_ns += s->graph->edges[cycle[i]].weight_ns;
        result->height += s->graph->edges[cycle[i]].height;
    }
    return STATUS_OK;
}

static int tail_of(const struct solver *s, int hop)
{
    return s->roots[s->edges[s->edge_of[hop]].from].to;
}

/* The edges of a hop, written from the end if there is room for them. Returns their number. */
static int unfold(const struct solver *s, int hop, int *end)
{
    const int root = tail_of(s, hop);
    int edge = s->edge_of[hop], length = 1;
    if (end)
        end[-1] = edge;
    for (int v = s->edges[edge].from; v != root; v = s->edges[edge].from) {
        edge = s->in_edge[v];
        length++;
        if (end)
            end[-length] = edge;
    }
    return length;
}

static enum status keep_hops(struct solver *s, enum ratio_kind kind, const int *hops, int count,
                             struct diag *diag)
{
    int length = 0;
    for (int i = 0; i < count; i++)
        length += unfold(s, hops[i], NULL);
    int *cycle = malloc((size_t)length * sizeof *cycle);
    if (!cycle)
        return diag_no_memory(diag);
    int *end = cycle + length;
    for (int i = count - 1; i >= 0; i--)
        end -= unfold(s, hops[i], end);
    return keep_edges(s, kind, cycle, length);
}

/* Following `parent`, an edge into each node, from `node` ends in a cycle. */
static enum status keep_parents(struct solver *s, const int *parent, int node, struct diag *diag)
{
    const struct ratio_edge *edges = s->graph->edges;
    for (int i = 0; i < s->nodes; i++)
        node = edges[parent[node]].from;
    int length = 0, at = node;
    do {
        length++;
        at = edges[parent[at]].from;
    } while (at != node);
    int *cycle = malloc((size_t)length * sizeof *cycle);
    if (!cycle)
        return diag_no_memory(diag);
    for (int i = length - 1; i >= 0; i--) {
        cycle[i] = parent[at];
        at = edges[parent[at]].from;
    }
    return keep_edges(s, RATIO_DEADLOCK, cycle, length);
}

/* ---- heights --------------------------------------------------------------------------------- */

static int64_t lifted(const struct ratio_edge *edge, const int64_t *lift)
{
    return edge->height + lift[edge->from] - lift[edge->to];
}

/* A node on a cycle of parents (NONE: a node has none), or NONE. */
static int find_parent_cycle(const struct solver *s, const int *parent, int *seen)
{
    for (int v = 0; v < s->nodes; v++)
        seen[v] = NONE;
    for (int start = 0; start < s->nodes; start++) {
        int v = start;
        while (seen[v] == NONE && parent[v] != NONE) {
            seen[v] = start;
            v = s->graph->edges[parent[v]].from;
        }
        if (seen[v] == start)
            return v;
    }
    return NONE;
}

/* The edges again, with heights that no cycle notices. */
static enum status lift_edges(struct solver *s, const int64_t *lift, struct diag *diag)
{
    struct ratio_edge *edges =
        ARENA_ARRAY(&s->arena, (size_t)s->graph->edge_count, struct ratio_edge);
    if (!edges)
        return diag_no_memory(diag);
    for (int e = 0; e < s->graph->edge_count; e++) {
        const int64_t height = lifted(&s->graph->edges[e], lift);
        if (height > INT_MAX)
            return diag_error(diag, STATUS_LIMIT,
                              "dependences reach over more than %d iterations: too far for an "
                              "exact steady state",
                              INT_MAX);
        edges[e] = s->graph->edges[e];
        edges[e].height = (int)height;
    }
    s->edges = edges;
    return STATUS_OK;
}

/* Bellman-Ford, which looks for a cycle now and then: not at the end only, that may be far. */
static enum status lift_heights(struct solver *s, struct diag *diag)
{
    const struct ratio_graph *graph = s->graph;
    int *parent = ARENA_ARRAY(&s->arena, (size_t)s->nodes, int);
    int *seen = ARENA_ARRAY(&s->arena, (size_t)s->nodes, int);
    int64_t *lift = ARENA_ARRAY(&s->arena, (size_t)s->nodes, int64_t);
    if (s->arena.failed)
        return diag_no_memory(diag);
    for (int v = 0; v < s->nodes; v++)
        parent[v] = NONE;
    bool changed = true;
    for (unsigned round = 1; changed; round++) {
        changed = false;
        for (int e = 0; e < graph->edge_count; e++) {
            const struct ratio_edge *edge = &graph->edges[e];
            if (lifted(edge, lift) >= 0)
                continue;
            lift[edge->to] = lift[edge->from] + edge->height;
            parent[edge->to] = e;
            changed = true;
        }
        bool look = changed && (round & (round - 1)) == 0;
        int node = look ? find_parent_cycle(s, parent, seen) : NONE;
        if (node != NONE)
            return keep_parents(s, parent, node, diag);
    }
    return lift_edges(s, lift, diag);
}

/* ---- contraction ----------------------------------------------------------------------------- */

/* A node with one edge into it has the root of where that comes from. Going back from there stops at a node
   that has one; if that is on the way itself, nothing else leads into the cycle, and it stays. */
static void find_root(struct solver *s, int v)
{
    int depth = 0;
    for (; s->roots[v].to == NONE; v = s->edges[s->in_edge[v]].from) {
        s->roots[v].to = v;
        if (s->in_count[v] != 1)
            break;
        s->stack[depth++] = v;
    }
    while (depth > 0) {
        const int to = s->stack[--depth];
        const struct ratio_edge *edge = &s->edges[s->in_edge[to]];
        const struct hop *from = &s->roots[edge->from];
        if (to != v)
            s->roots[to] = (struct hop){from->to, from->height + edge->height,
                                        from->weight_ns + edge->weight_ns};
    }
}

static enum status contract(struct solver *s, struct diag *diag)
{
    s->roots = ARENA_ARRAY(&s->arena, (size_t)s->nodes, struct hop);
    s->stack = ARENA_ARRAY(&s->arena, (size_t)s->nodes, int);
    if (s->arena.failed)
        return diag_no_memory(diag);
    const bool fits = s->height_sum <= INT_MAX / 3; /* lifted heights of ways, in an int */
    for (int v = 0; v < s->nodes; v++)
        s->roots[v].to = fits ? NONE : v;
    for (int v = 0; v < s->nodes; v++)
        if (s->roots[v].to == NONE)
            find_root(s, v);
    return STATUS_OK;
}

static bool is_root(const struct solver *s, int v)
{
    return s->roots[v].to == v;
}

/* ---- the order of hops and nodes ------------------------------------------------------------- */

static void count_hops(struct solver *s)
{
    for (int e = 0; e < s->graph->edge_count; e++)
        if (is_root(s, s->edges[e].to))
            s->first[s->roots[s->edges[e].from].to]++;
    /* Counted by one end: afterwards first[v] .. first[v + 1] is the place for those at v. */
    for (int v = 0; v < s->nodes; v++)
        s->first[v + 1] += s->first[v];
    for (int v = s->nodes; v > 0; v--)
        s->first[v] = s->first[v - 1];
    s->first[0] = 0;
}

static enum status cycle_ratio_sort_edges(struct solver *s, struct diag *diag)
{
    s->first = ARENA_ARRAY(&s->arena, (size_t)s->nodes + 2, int);
    s->hops = ARENA_ARRAY(&s->arena, (size_t)s->graph->edge_count, struct hop);
    s->edge_of = ARENA_ARRAY(&s->arena, (size_t)s->graph->edge_count, int);
    s->flat_in = ARENA_ARRAY(&s->arena, (size_t)s->nodes, int);
    if (s->arena.failed)
        return diag_no_memory(diag);
    count_hops(s);
    for (int e = 0; e < s->graph->edge_count; e++)
        if (is_root(s, s->edges[e].to)) {
            const struct ratio_edge *edge = &s->edges[e];
            const struct hop *from = &s->roots[edge->from];
            const int place = s->first[from->to]++;
            s->edge_of[place] = e;
            s->hops[place] = (struct hop){edge->to, from->height + edge->height,
                                          from->weight_ns + edge->weight_ns};
            s->flat_in[edge->to] += s->hops[place].height == 0;
        }
    for (int v = s->nodes; v > 0; v--)
        s->first[v] = s->first[v - 1];
    s->first[0] = 0;
    s->hop_count = s->first[s->nodes];
    return STATUS_OK;
}

/* Nodes that Kahn's algorithm left over: each has a hop of height 0 from another such node. */
static enum status keep_flat_cycle(struct solver *s, const int *left, struct diag *diag)
{
    int *parent = ARENA_ARRAY(&s->arena, (size_t)s->nodes, int);
    int *hops = ARENA_ARRAY(&s->arena, (size_t)s->kept, int);
    int some = NONE, length = 0;
    if (s->arena.failed)
        return diag_no_memory(diag);
    for (int i = 0; i < s->hop_count; i++)
        if (s->hops[i].height == 0 && left[tail_of(s, i)] > 0 && left[s->hops[i].to] > 0)
            parent[some = s->hops[i].to] = i;
    for (int i = 0; i < s->kept; i++)
        some = tail_of(s, parent[some]);
    int v = some;
    do {
        hops[s->kept - ++length] = parent[v];
        v = tail_of(s, parent[v]);
    } while (v != some);
    return keep_hops(s, RATIO_DEADLOCK, hops + s->kept - length, length, diag);
}

/* Tails before heads, written from the end. */
static enum status order_nodes(struct solver *s, struct diag *diag)
{
    int *left = s->flat_in, kept = 0, count = 0;
    for (int v = 0; v < s->nodes; v++)
        kept += is_root(s, v);
    s->order = ARENA_ARRAY(&s->arena, (size_t)kept, int);
    if (!s->order)
        return diag_no_memory(diag);
    int *queue = s->order + kept; /* the k-th in it is queue[-1 - k] */
    for (int v = 0; v < s->nodes; v++)
        if (left[v] == 0 && is_root(s, v))
            queue[-1 - count++] = v;
    for (int next = 0; next < count; next++) {
        const int v = queue[-1 - next], end = s->first[v + 1];
        for (int i = s->first[v]; i < end; i++) {
            const struct hop *hop = &s->hops[i];
            if (hop->height == 0 && --left[hop->to] == 0)
                queue[-1 - count++] = hop->to;
        }
    }
    s->kept = kept;
    return count == kept ? STATUS_OK : keep_flat_cycle(s, left, diag);
}

/* ---- policy iteration ------------------------------------------------------------------------ */

/* The edge of the longest way to one with a height, rather not to a node without edges. */
static void choose_first(struct solver *s)
{
    int64_t *values = s->narrow;
    for (int i = 0; i < s->kept; i++) {
        const int v = s->order[i], end = s->first[v + 1];
        int64_t longest_ns = -s->weight_sum_ns - 1;
        int choice = NONE;
        for (int k = s->first[v]; k < end; k++) {
            const struct hop *hop = &s->hops[k];
            int64_t ns = hop->weight_ns + (hop->height == 0 ? values[hop->to] : 0);
            if (choice != NONE && ns <= longest_ns)
                continue;
            choice = k;
            longest_ns = ns;
        }
        s->policy[v] = choice;
        values[v] = longest_ns;
    }
}

/* From v along the policy and back to v: the hops, unless only their sums are wanted. */
static int cycle_ratio_add_up(const struct solver *s, int v, int *hops, int64_t *weight_ns,
                              int64_t *height)
{
    int length = 0, at = v;
    *weight_ns = *height = 0;
    do {
        const struct hop *hop = &s->hops[s->policy[at]];
        if (hops)
            hops[length] = s->policy[at];
        length++;
        *weight_ns += hop->weight_ns;
        *height += hop->height;
        at = hop->to;
    } while (at != v);
    return length;
}

static void try_cycle(struct solver *s, int v)
{
    int64_t weight_ns, height;
    cycle_ratio_add_up(s, v, NULL, &weight_ns, &height);
    if ((wide)weight_ns * s->best.height <= (wide)s->best.weight_ns * height)
        return;
    assert(height > 0); /* cycles without height are deadlocks, found before */
    s->best.length = cycle_ratio_add_up(s, v, s->best.cycle, &weight_ns, &height);
    s->best.weight_ns = weight_ns;
    s->best.height = height;
}

/* The policy's cycles: the best becomes the best known, all are cut. True if there is one. */
static bool try_cycles(struct solver *s)
{
    bool found = false;
    int before = s->stamp;
    for (int i = s->kept - 1; i >= 0; i--) {
        int v = s->order[i], walk = ++s->stamp;
        while (s->seen[v] <= before && s->policy[v] != NONE) {
            s->seen[v] = walk;
            v = s->hops[s->policy[v]].to;
        }
        if (s->seen[v] == walk && s->policy[v] != NONE) {
            try_cycle(s, v);
            s->policy[v] = NONE;
            found = true;
        }
    }
    return found;
}

/* The same in both widths. */
#define VALUE     int64_t
#define VALUES    narrow
#define NAME(one) one##_narrow
#include "cycle_ratio.inc"
#undef VALUE
#undef VALUES
#undef NAME
#define VALUE     wide
#define VALUES    wide
#define NAME(one) one##_wide
#include "cycle_ratio.inc"

/* True if values fit in 64 bits, with a ratio of such a numerator and denominator. The heights of a way come with the
   potentials of its ends. */
static bool cycle_ratio_is_narrow(const struct solver *s, int64_t weight_ns, int64_t height)
{
    const int lifts = s->negative ? 3 : 1;
    return (wide)height * s->weight_sum_ns + (wide)llabs(weight_ns) * s->height_sum * lifts <
           NARROW_LIMIT;
}

static enum status cycle_ratio_make_tables(struct solver *s, struct diag *diag)
{
    const size_t nodes = (size_t)s->nodes;
    s->policy = ARENA_ARRAY(&s->arena, nodes, int);
    s->seen = ARENA_ARRAY(&s->arena, nodes, int);
    s->best.cycle = ARENA_ARRAY(&s->arena, nodes, int);
    s->narrow = ARENA_ARRAY(&s->arena, nodes, int64_t);
    if (!cycle_ratio_is_narrow(s, s->weight_sum_ns + 1, s->height_sum + 1))
        s->wide = ARENA_ARRAY(&s->arena, nodes, wide);
    return s->arena.failed ? diag_no_memory(diag) : STATUS_OK;
}

static void cycle_ratio_improve(struct solver *s)
{
    bool better = true, narrow = true, improved;
    choose_first(s);
    try_cycles(s);
    do {
        narrow = better ? cycle_ratio_is_narrow(s, s->best.weight_ns, s->best.height) : narrow;
        if (better)
            (narrow ? evaluate_narrow : evaluate_wide)(s);
        improved = (narrow ? sweep_narrow : sweep_wide)(s);
        better = improved && try_cycles(s);
        s->result.rounds++;
    } while (improved);
}

static enum status cycle_ratio_iterate(struct solver *s, struct diag *diag)
{
    enum status status = cycle_ratio_make_tables(s, diag);
    if (status != STATUS_OK)
        return status;
    s->best.weight_ns = -s->weight_sum_ns - 1; /* less than the ratio of any cycle */
    s->best.height = 1;
    cycle_ratio_improve(s);
    return s->best.length ? keep_hops(s, RATIO_FOUND, s->best.cycle, s->best.length, diag)
                          : STATUS_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum status read_edges(struct solver *s, struct diag *diag)
{
    const struct ratio_graph *graph = s->graph;
    s->in_count = ARENA_ARRAY(&s->arena, (size_t)s->nodes, int);
    s->in_edge = ARENA_ARRAY(&s->arena, (size_t)s->nodes, int);
    if (s->arena.failed)
        return diag_no_memory(diag);
    uint64_t weight_ns = 0;
    int64_t height = 0, sum = 0; /* no overflow: both factors have 31 bits */
    bool huge = false;
    for (int e = 0; e < graph->edge_count; e++) {
        const struct ratio_edge *edge = &graph->edges[e];
        assert(edge->from >= 0 && edge->from < s->nodes && edge->to >= 0 && edge->to < s->nodes);
        weight_ns += edge->weight_ns < 0 ? -(uint64_t)edge->weight_ns : (uint64_t)edge->weight_ns;
        huge |= weight_ns >= (uint64_t)SUM_LIMIT;
        height += edge->height < 0 ? -(int64_t)edge->height : edge->height;
        sum += edge->height;
        s->in_count[edge->to]++;
        s->in_edge[edge->to] = e;
    }
    if (huge || height >= SUM_LIMIT)
        return diag_error(diag, STATUS_LIMIT,
                          "the durations of one iteration add up to more than 146 years: "
                          "too much for an exact steady state");
    s->weight_sum_ns = (int64_t)weight_ns;
    s->height_sum = height;
    s->negative = sum < height;
    return STATUS_OK;
}

static enum status cycle_ratio_solve(struct solver *s, struct diag *diag)
{
    enum status status = read_edges(s, diag);
    if (status == STATUS_OK && s->negative)
        status = lift_heights(s, diag);
    if (status != STATUS_OK || s->result.kind == RATIO_DEADLOCK)
        return status;
    status = contract(s, diag);
    if (status == STATUS_OK)
        status = cycle_ratio_sort_edges(s, diag);
    if (status == STATUS_OK)
        status = order_nodes(s, diag);
    if (status != STATUS_OK || s->result.kind == RATIO_DEADLOCK)
        return status;
    return cycle_ratio_iterate(s, diag);
}

/* True if it is a cycle of the graph, with these sums. For assertions. */
static bool is_cycle(const struct ratio_graph *graph, const struct cycle_ratio *ratio)
{
    int64_t weight_ns = 0, height = 0;
    for (int i = 0; i < ratio->length; i++) {
        const struct ratio_edge *edge = &graph->edges[ratio->cycle[i]];
        if (edge->to != graph->edges[ratio->cycle[(i + 1) % ratio->length]].from)
            return false;
        weight_ns += edge->weight_ns;
        height += edge->height;
    }
    return ratio->kind == RATIO_FOUND ? weight_ns == ratio->weight_ns && height == ratio->height
                                      : height <= 0;
}

enum status cycle_ratio_find(const struct ratio_graph *graph, struct cycle_ratio *out,
                             struct diag *diag)
{
    struct solver solver = {.graph = graph, .edges = graph->edges, .nodes = graph->nodes};
    arena_init(&solver.arena, 0);
    enum status status = graph->nodes > 0 ? cycle_ratio_solve(&solver, diag) : STATUS_OK;
    arena_fini(&solver.arena);
    assert(status != STATUS_OK || solver.result.length == 0 || is_cycle(graph, &solver.result));
    if (status == STATUS_OK)
        *out = solver.result;
    else
        cycle_ratio_fini(&solver.result);
    return status;
}

void cycle_ratio_fini(struct cycle_ratio *ratio)
{
    free(ratio->cycle);
    *ratio = (struct cycle_ratio){0};
}
