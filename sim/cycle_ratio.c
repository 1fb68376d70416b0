/*
 * cycle_ratio.c - see cycle_ratio.h. In order:
 *
 *     read_edges         degrees and sums; is any height negative?
 *     lift_heights       then: potentials that make every height >= 0, or a cycle of negative height
 *     sort_edges         by tail
 *     order_nodes        heads of edges of height 0 before their tails (Kahn 1962), or a cycle
 *     iterate            policy iteration, with a value a node
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
#include "sim/cycle_ratio.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"

typedef __int128 wide;

enum { NONE = -1 };
static const int64_t SUM_LIMIT = INT64_C(1) << 62;
/* Values of a sweep stay below twice the sum of all lengths. */
static const int64_t NARROW_LIMIT = INT64_C(1) << 61;

struct solver {
    const struct ratio_graph *graph;
    const struct ratio_edge *edges; /* the graph's, or lifted */
    struct arena arena;
    int nodes;
    int64_t weight_sum_ns, height_sum; /* of absolute values */
    bool negative;                     /* some height is */
    int *first, *out;                  /* edges out[first[v]] .. out[first[v + 1] - 1] leave v */
    int *flat_in;                      /* per node: edges of height 0 that lead there */
    int *order;                        /* nodes: heads before tails */
    int *policy;                       /* per node: an edge; NONE */
    int *seen;                         /* per node: stamp of the walk that came by */
    int *stack;
    int stamp;
    int64_t *narrow; /* per node: its value, in either width */
    wide *wide;
    struct {
        int64_t weight_ns, height; /* of the best cycle; of less than any cycle at first */
        int *cycle, length;        /* its edges */
    } best;
    struct cycle_ratio result;
};

/* ---- results --------------------------------------------------------------------------------- */

static enum status keep_cycle(struct solver *s, enum ratio_kind kind, const int *edges, int length,
                              struct diag *diag)
{
    struct cycle_ratio *result = &s->result;
    int *cycle = malloc((size_t)length * sizeof *cycle);
    if (!cycle)
        return diag_no_memory(diag);
    memcpy(cycle, edges, (size_t)length * sizeof *cycle);
    free(result->cycle);
    result->kind = kind;
    result->cycle = cycle;
    result->length = length;
    result->weight_ns = result->height = 0;
    for (int i = 0; i < length; i++) {
        result->weight_ns += s->graph->edges[edges[i]].weight_ns;
        result->height += s->graph->edges[edges[i]].height;
    }
    return STATUS_OK;
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
    int *cycle = ARENA_ARRAY(&s->arena, (size_t)length, int);
    if (!cycle)
        return diag_no_memory(diag);
    for (int i = length - 1; i >= 0; i--) {
        cycle[i] = parent[at];
        at = edges[parent[at]].from;
    }
    return keep_cycle(s, RATIO_DEADLOCK, cycle, length, diag);
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

/* ---- the order of edges and nodes ------------------------------------------------------------ */

/* Count edges by one end: afterwards first[v] .. first[v + 1] is the place for those at v. */
static void start_places(int *first, int count)
{
    for (int v = 0; v < count; v++)
        first[v + 1] += first[v];
    for (int v = count; v > 0; v--)
        first[v] = first[v - 1];
    first[0] = 0;
}

static enum status sort_edges(struct solver *s, struct diag *diag)
{
    s->out = ARENA_ARRAY(&s->arena, (size_t)s->graph->edge_count, int);
    s->flat_in = ARENA_ARRAY(&s->arena, (size_t)s->nodes, int);
    if (s->arena.failed)
        return diag_no_memory(diag);
    start_places(s->first, s->nodes);
    for (int e = 0; e < s->graph->edge_count; e++) {
        const struct ratio_edge *edge = &s->edges[e];
        s->out[s->first[edge->from]++] = e;
        s->flat_in[edge->to] += edge->height == 0;
    }
    for (int v = s->nodes; v > 0; v--)
        s->first[v] = s->first[v - 1];
    s->first[0] = 0;
    return STATUS_OK;
}

/* Nodes that Kahn's algorithm left over: each has an edge of height 0 from another such node. */
static enum status keep_flat_cycle(struct solver *s, const int *left, struct diag *diag)
{
    int *parent = ARENA_ARRAY(&s->arena, (size_t)s->nodes, int);
    int some = NONE;
    if (!parent)
        return diag_no_memory(diag);
    for (int e = 0; e < s->graph->edge_count; e++) {
        const struct ratio_edge *edge = &s->edges[e];
        if (edge->height == 0 && left[edge->from] > 0 && left[edge->to] > 0)
            parent[some = edge->to] = e;
    }
    return keep_parents(s, parent, some, diag);
}

/* Tails before heads, written from the end. */
static enum status order_nodes(struct solver *s, struct diag *diag)
{
    int *left = s->flat_in;
    s->order = ARENA_ARRAY(&s->arena, (size_t)s->nodes, int);
    if (!s->order)
        return diag_no_memory(diag);
    int *queue = s->order + s->nodes; /* the k-th in it is queue[-1 - k] */
    int count = 0;
    for (int v = 0; v < s->nodes; v++)
        if (left[v] == 0)
            queue[-1 - count++] = v;
    for (int next = 0; next < count; next++) {
        const int v = queue[-1 - next], end = s->first[v + 1];
        for (int i = s->first[v]; i < end; i++) {
            const struct ratio_edge *edge = &s->edges[s->out[i]];
            if (edge->height == 0 && --left[edge->to] == 0)
                queue[-1 - count++] = edge->to;
        }
    }
    return count == s->nodes ? STATUS_OK : keep_flat_cycle(s, left, diag);
}

/* ---- policy iteration ------------------------------------------------------------------------ */

/* The edge of the longest way to one with a height, rather not to a node without edges. */
static void choose_first(struct solver *s)
{
    int64_t *values = s->narrow;
    for (int i = 0; i < s->nodes; i++) {
        const int v = s->order[i], end = s->first[v + 1];
        int64_t longest_ns = -s->weight_sum_ns - 1;
        int choice = NONE;
        for (int k = s->first[v]; k < end; k++) {
            const struct ratio_edge *edge = &s->edges[s->out[k]];
            int64_t ns = edge->weight_ns + (edge->height == 0 ? values[edge->to] : 0);
            if (choice != NONE && ns <= longest_ns)
                continue;
            choice = s->out[k];
            longest_ns = ns;
        }
        s->policy[v] = choice;
        values[v] = longest_ns;
    }
}

/* From v along the policy and back to v: the edges, unless only their sums are wanted. */
static int add_up(const struct solver *s, int v, int *edges, int64_t *weight_ns, int64_t *height)
{
    int length = 0, at = v;
    *weight_ns = *height = 0;
    do {
        const struct ratio_edge *edge = &s->edges[s->policy[at]];
        if (edges)
            edges[length] = s->policy[at];
        length++;
        *weight_ns += edge->weight_ns;
        *height += edge->height;
        at = edge->to;
    } while (at != v);
    return length;
}

static void try_cycle(struct solver *s, int v)
{
    int64_t weight_ns, height;
    add_up(s, v, NULL, &weight_ns, &height);
    if ((wide)weight_ns * s->best.height <= (wide)s->best.weight_ns * height)
        return;
    s->best.length = add_up(s, v, s->best.cycle, &weight_ns, &height);
    s->best.weight_ns = weight_ns;
    s->best.height = height;
}

/* The policy's cycles: the best becomes the best known, all are cut. Is there one? */
static bool try_cycles(struct solver *s)
{
    bool found = false;
    int before = s->stamp;
    for (int start = s->nodes - 1; start >= 0; start--) {
        int v = start, walk = ++s->stamp;
        while (s->seen[v] <= before && s->policy[v] != NONE) {
            s->seen[v] = walk;
            v = s->edges[s->policy[v]].to;
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
#include "sim/cycle_ratio.inc"
#undef VALUE
#undef VALUES
#undef NAME
#define VALUE     wide
#define VALUES    wide
#define NAME(one) one##_wide
#include "sim/cycle_ratio.inc"

/* Do values fit in 64 bits, with a ratio of such a numerator and denominator? The heights of a way come
   with the potentials of its ends. */
static bool is_narrow(const struct solver *s, int64_t weight_ns, int64_t height)
{
    const int lifts = s->negative ? 3 : 1;
    return (wide)height * s->weight_sum_ns + (wide)llabs(weight_ns) * s->height_sum * lifts <
           NARROW_LIMIT;
}

static enum status make_tables(struct solver *s, struct diag *diag)
{
    const size_t nodes = (size_t)s->nodes;
    s->policy = ARENA_ARRAY(&s->arena, nodes, int);
    s->seen = ARENA_ARRAY(&s->arena, nodes, int);
    s->stack = ARENA_ARRAY(&s->arena, nodes, int);
    s->best.cycle = ARENA_ARRAY(&s->arena, nodes, int);
    s->narrow = ARENA_ARRAY(&s->arena, nodes, int64_t);
    if (!is_narrow(s, s->weight_sum_ns + 1, s->height_sum + 1))
        s->wide = ARENA_ARRAY(&s->arena, nodes, wide);
    return s->arena.failed ? diag_no_memory(diag) : STATUS_OK;
}

static void improve(struct solver *s)
{
    bool better = true, narrow = true, improved;
    choose_first(s);
    try_cycles(s);
    do {
        narrow = better ? is_narrow(s, s->best.weight_ns, s->best.height) : narrow;
        if (better)
            (narrow ? evaluate_narrow : evaluate_wide)(s);
        improved = (narrow ? sweep_narrow : sweep_wide)(s);
        better = improved && try_cycles(s);
        s->result.rounds++;
    } while (improved);
}

static enum status iterate(struct solver *s, struct diag *diag)
{
    enum status status = make_tables(s, diag);
    if (status != STATUS_OK)
        return status;
    s->best.weight_ns = -s->weight_sum_ns - 1; /* less than the ratio of any cycle */
    s->best.height = 1;
    improve(s);
    return s->best.length ? keep_cycle(s, RATIO_FOUND, s->best.cycle, s->best.length, diag)
                          : STATUS_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum status read_edges(struct solver *s, struct diag *diag)
{
    const struct ratio_graph *graph = s->graph;
    s->first = ARENA_ARRAY(&s->arena, (size_t)s->nodes + 2, int);
    if (!s->first)
        return diag_no_memory(diag);
    wide weight_ns = 0;
    int64_t height = 0; /* no overflow: both factors have 31 bits */
    for (int e = 0; e < graph->edge_count; e++) {
        const struct ratio_edge *edge = &graph->edges[e];
        weight_ns += edge->weight_ns < 0 ? -(wide)edge->weight_ns : edge->weight_ns;
        height += edge->height < 0 ? -(int64_t)edge->height : edge->height;
        s->negative |= edge->height < 0;
        s->first[edge->from]++;
    }
    if (weight_ns >= SUM_LIMIT || height >= SUM_LIMIT)
        return diag_error(diag, STATUS_LIMIT,
                          "the durations of one iteration add up to more than 146 years: "
                          "too much for an exact steady state");
    s->weight_sum_ns = (int64_t)weight_ns;
    s->height_sum = (int64_t)height;
    return STATUS_OK;
}

static enum status solve(struct solver *s, struct diag *diag)
{
    enum status status = read_edges(s, diag);
    if (status == STATUS_OK && s->negative)
        status = lift_heights(s, diag);
    if (status != STATUS_OK || s->result.kind == RATIO_DEADLOCK)
        return status;
    status = sort_edges(s, diag);
    if (status == STATUS_OK)
        status = order_nodes(s, diag);
    if (status != STATUS_OK || s->result.kind == RATIO_DEADLOCK)
        return status;
    return iterate(s, diag);
}

enum status cycle_ratio_find(const struct ratio_graph *graph, struct cycle_ratio *out,
                             struct diag *diag)
{
    struct solver solver = {.graph = graph, .edges = graph->edges, .nodes = graph->nodes};
    arena_init(&solver.arena, 0);
    enum status status = graph->nodes > 0 ? solve(&solver, diag) : STATUS_OK;
    arena_fini(&solver.arena);
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
