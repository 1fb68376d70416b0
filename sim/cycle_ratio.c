/*
 * cycle_ratio.c - see cycle_ratio.h. In order:
 *
 *     lift_heights       potentials that make every height >= 0, or a cycle of negative height
 *     order_nodes        number nodes so that arcs of height 0 lead to smaller numbers, or a cycle
 *     make_arcs          the edges again, by number of their tail
 *     find_components    Tarjan 1972, and only arcs inside a component are kept
 *     iterate            policy iteration in one component
 *
 * A policy is one arc out of each node. Its value at a node is the length of the way it leads to
 * the root, a node of the best cycle, where an arc's length is weight - ratio * height, here times
 * the ratio's denominator. Improving goes through the nodes in their order and uses values already
 * improved: an improved arc on a cycle makes that cycle's length positive, its ratio larger than
 * the best. So either the ratio grows, or the best cycle stays as it is and values do: it ends.
 */
#include "sim/cycle_ratio.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"

typedef __int128 wide;

enum { NONE = -1 };
static const int64_t SUM_LIMIT = INT64_C(1) << 62;

struct arc {
    int to, edge;
    int64_t weight_ns, height;
};

struct solver {
    const struct ratio_graph *graph;
    struct arena arena;
    int nodes;
    int64_t *lift; /* per node of the graph: potential */
    int *number;   /* per node of the graph; all below is by number */
    int *first;    /* arcs[first[v] .. first[v + 1]) leave v */
    struct arc *arcs;
    int *in_first, *in_tails, *in_arcs; /* arcs that enter a node, and where they come from */
    int *component, *members, component_count;
    int *component_first; /* members[component_first[c] ..) in order of number */
    int *policy;          /* arc out of each node */
    wide *value;
    int *seen; /* stamp of the walk that came by */
    int stamp;
    bool *resolved;
    int *stack;
    struct {
        int root; /* NONE: no cycle yet */
        int64_t weight_ns, height;
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

static int64_t lifted(const struct solver *s, const struct ratio_edge *edge)
{
    return edge->height + s->lift[edge->from] - s->lift[edge->to];
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

/* Bellman-Ford, which looks for a cycle now and then: not at the end only, that may be far. */
static enum status lift_heights(struct solver *s, struct diag *diag)
{
    const struct ratio_graph *graph = s->graph;
    int *parent = ARENA_ARRAY(&s->arena, (size_t)s->nodes, int);
    int *seen = ARENA_ARRAY(&s->arena, (size_t)s->nodes, int);
    s->lift = ARENA_ARRAY(&s->arena, (size_t)s->nodes, int64_t);
    if (s->arena.failed)
        return diag_no_memory(diag);
    for (int v = 0; v < s->nodes; v++)
        parent[v] = NONE;
    bool changed = true;
    for (unsigned round = 1; changed; round++) {
        changed = false;
        for (int e = 0; e < graph->edge_count; e++) {
            const struct ratio_edge *edge = &graph->edges[e];
            if (lifted(s, edge) >= 0)
                continue;
            s->lift[edge->to] = s->lift[edge->from] + edge->height;
            parent[edge->to] = e;
            changed = true;
        }
        bool look = changed && (round & (round - 1)) == 0;
        int node = look ? find_parent_cycle(s, parent, seen) : NONE;
        if (node != NONE)
            return keep_parents(s, parent, node, diag);
    }
    return STATUS_OK;
}

/* Nodes that Kahn's algorithm left over: each has an edge of height 0 from another such node. */
static enum status keep_flat_cycle(struct solver *s, const int *left, struct diag *diag)
{
    const struct ratio_graph *graph = s->graph;
    int *parent = ARENA_ARRAY(&s->arena, (size_t)s->nodes, int);
    int some = NONE;
    if (!parent)
        return diag_no_memory(diag);
    for (int e = 0; e < graph->edge_count; e++) {
        const struct ratio_edge *edge = &graph->edges[e];
        if (lifted(s, edge) == 0 && left[edge->from] > 0 && left[edge->to] > 0)
            parent[some = edge->to] = e;
    }
    return keep_parents(s, parent, some, diag);
}

/* Count edges by one end: afterwards first[v] .. first[v + 1] is the place for those at v. */
static void start_places(int *first, int count)
{
    for (int v = 0; v < count; v++)
        first[v + 1] += first[v];
    for (int v = count; v > 0; v--)
        first[v] = first[v - 1];
    first[0] = 0;
}

/* Kahn's algorithm along the edges of height 0. */
static enum status order_nodes(struct solver *s, struct diag *diag)
{
    const struct ratio_graph *graph = s->graph;
    size_t nodes = (size_t)s->nodes;
    int *left = ARENA_ARRAY(&s->arena, nodes, int), *queue = ARENA_ARRAY(&s->arena, nodes, int);
    int *place = ARENA_ARRAY(&s->arena, nodes + 2, int);
    int *heads = ARENA_ARRAY(&s->arena, (size_t)graph->edge_count, int);
    s->number = ARENA_ARRAY(&s->arena, nodes, int);
    if (s->arena.failed)
        return diag_no_memory(diag);
    for (int e = 0; e < graph->edge_count; e++)
        if (lifted(s, &graph->edges[e]) == 0) {
            left[graph->edges[e].to]++;
            place[graph->edges[e].from]++;
        }
    start_places(place, s->nodes);
    for (int e = 0; e < graph->edge_count; e++)
        if (lifted(s, &graph->edges[e]) == 0)
            heads[place[graph->edges[e].from]++] = graph->edges[e].to;
    int count = 0;
    for (int v = 0; v < s->nodes; v++)
        if (left[v] == 0)
            queue[count++] = v;
    for (int next = 0; next < count; next++) {
        int v = queue[next];
        s->number[v] = s->nodes - 1 - next;
        for (int i = v ? place[v - 1] : 0; i < place[v]; i++)
            if (--left[heads[i]] == 0)
                queue[count++] = heads[i];
    }
    return count == s->nodes ? STATUS_OK : keep_flat_cycle(s, left, diag);
}

/* ---- arcs and components --------------------------------------------------------------------- */

static enum status make_arcs(struct solver *s, struct diag *diag)
{
    const struct ratio_graph *graph = s->graph;
    s->first = ARENA_ARRAY(&s->arena, (size_t)s->nodes + 2, int);
    s->arcs = ARENA_ARRAY(&s->arena, (size_t)graph->edge_count, struct arc);
    if (s->arena.failed)
        return diag_no_memory(diag);
    for (int e = 0; e < graph->edge_count; e++)
        s->first[s->number[graph->edges[e].from]]++;
    start_places(s->first, s->nodes);
    for (int e = 0; e < graph->edge_count; e++) {
        const struct ratio_edge *edge = &graph->edges[e];
        s->arcs[s->first[s->number[edge->from]]++] =
            (struct arc){s->number[edge->to], e, edge->weight_ns, lifted(s, edge)};
    }
    for (int v = s->nodes; v > 0; v--)
        s->first[v] = s->first[v - 1];
    s->first[0] = 0;
    return STATUS_OK;
}

struct tarjan {
    int *index, *low, *next, *path;
    bool *open;
    int count, depth;
};

static void enter(struct solver *s, struct tarjan *t, int v, int *waiting)
{
    t->index[v] = t->low[v] = ++t->count;
    t->next[v] = s->first[v];
    t->open[v] = true;
    t->path[t->depth++] = v;
    s->stack[(*waiting)++] = v;
}

/* All that can be reached from v; the call stack is t->path. */
static void visit(struct solver *s, struct tarjan *t, int v)
{
    int waiting = 0;
    enter(s, t, v, &waiting);
    while (t->depth > 0) {
        v = t->path[t->depth - 1];
        if (t->next[v] < s->first[v + 1]) {
            int to = s->arcs[t->next[v]++].to;
            if (t->index[to] == 0)
                enter(s, t, to, &waiting);
            else if (t->open[to] && t->index[to] < t->low[v])
                t->low[v] = t->index[to];
            continue;
        }
        t->depth--;
        if (t->depth > 0 && t->low[v] < t->low[t->path[t->depth - 1]])
            t->low[t->path[t->depth - 1]] = t->low[v];
        if (t->low[v] < t->index[v])
            continue;
        int member;
        do {
            member = s->stack[--waiting];
            t->open[member] = false;
            s->component[member] = s->component_count;
        } while (member != v);
        s->component_count++;
    }
}

static enum status find_components(struct solver *s, struct diag *diag)
{
    size_t nodes = (size_t)s->nodes;
    struct tarjan t = {.index = ARENA_ARRAY(&s->arena, nodes, int),
                       .low = ARENA_ARRAY(&s->arena, nodes, int),
                       .next = ARENA_ARRAY(&s->arena, nodes, int),
                       .path = ARENA_ARRAY(&s->arena, nodes, int),
                       .open = ARENA_ARRAY(&s->arena, nodes, bool)};
    s->stack = ARENA_ARRAY(&s->arena, nodes, int);
    s->component = ARENA_ARRAY(&s->arena, nodes, int);
    s->members = ARENA_ARRAY(&s->arena, nodes, int);
    if (s->arena.failed)
        return diag_no_memory(diag);
    for (int v = 0; v < s->nodes; v++)
        if (t.index[v] == 0)
            visit(s, &t, v);
    s->component_first = ARENA_ARRAY(&s->arena, (size_t)s->component_count + 2, int);
    if (s->arena.failed)
        return diag_no_memory(diag);
    for (int v = 0; v < s->nodes; v++)
        s->component_first[s->component[v]]++;
    start_places(s->component_first, s->component_count);
    for (int v = 0; v < s->nodes; v++)
        s->members[s->component_first[s->component[v]]++] = v;
    for (int c = s->component_count; c > 0; c--)
        s->component_first[c] = s->component_first[c - 1];
    s->component_first[0] = 0;
    return STATUS_OK;
}

/* Arcs between components are on no cycle. What is left is also listed by where it leads. */
static enum status keep_inner_arcs(struct solver *s, struct diag *diag)
{
    int kept = 0, from = 0;
    for (int v = 0; v < s->nodes; v++) {
        int end = s->first[v + 1];
        for (; from < end; from++)
            if (s->component[v] == s->component[s->arcs[from].to])
                s->arcs[kept++] = s->arcs[from];
        s->first[v + 1] = kept;
    }
    s->in_first = ARENA_ARRAY(&s->arena, (size_t)s->nodes + 2, int);
    s->in_tails = ARENA_ARRAY(&s->arena, (size_t)kept, int);
    s->in_arcs = ARENA_ARRAY(&s->arena, (size_t)kept, int);
    if (s->arena.failed)
        return diag_no_memory(diag);
    for (int a = 0; a < kept; a++)
        s->in_first[s->arcs[a].to]++;
    start_places(s->in_first, s->nodes);
    for (int v = 0; v < s->nodes; v++)
        for (int a = s->first[v]; a < s->first[v + 1]; a++) {
            int place = s->in_first[s->arcs[a].to]++;
            s->in_tails[place] = v;
            s->in_arcs[place] = a;
        }
    for (int v = s->nodes; v > 0; v--)
        s->in_first[v] = s->in_first[v - 1];
    s->in_first[0] = 0;
    return STATUS_OK;
}

/* ---- policy iteration ------------------------------------------------------------------------ */

static wide arc_length(const struct solver *s, const struct arc *arc)
{
    return (wide)arc->weight_ns * s->best.height - (wide)s->best.weight_ns * arc->height;
}

static const struct arc *chosen(const struct solver *s, int v)
{
    return &s->arcs[s->policy[v]];
}

/* The arc of the longest way to an arc with a height. */
static void choose_first(struct solver *s, const int *members, int count)
{
    for (int i = 0; i < count; i++) {
        int v = members[i];
        s->policy[v] = NONE;
        for (int a = s->first[v]; a < s->first[v + 1]; a++) {
            const struct arc *arc = &s->arcs[a];
            wide length = arc->weight_ns + (arc->height == 0 ? s->value[arc->to] : 0);
            if (s->policy[v] != NONE && length <= s->value[v])
                continue;
            s->policy[v] = a;
            s->value[v] = length;
        }
    }
}

/* Is the policy's cycle through v better than the best so far? Then it is the best. */
static void try_cycle(struct solver *s, int v)
{
    int64_t weight_ns = 0, height = 0;
    int at = v;
    do {
        weight_ns += chosen(s, at)->weight_ns;
        height += chosen(s, at)->height;
        at = chosen(s, at)->to;
    } while (at != v);
    if (s->best.root != NONE &&
        (wide)weight_ns * s->best.height <= (wide)s->best.weight_ns * height)
        return;
    s->best.root = v;
    s->best.weight_ns = weight_ns;
    s->best.height = height;
}

static void try_cycles(struct solver *s, const int *members, int count)
{
    int before = s->stamp;
    for (int i = 0; i < count; i++) {
        int v = members[i], walk = ++s->stamp;
        for (; s->seen[v] <= before; v = chosen(s, v)->to)
            s->seen[v] = walk;
        if (s->seen[v] == walk)
            try_cycle(s, v);
    }
}

/* Values of the nodes from which the policy leads to the root. */
static int evaluate(struct solver *s, const int *members, int count)
{
    int done = 1, before = s->stamp++;
    for (int i = 0; i < count; i++)
        s->resolved[members[i]] = false;
    s->resolved[s->best.root] = true;
    s->value[s->best.root] = 0;
    for (int i = 0; i < count; i++) {
        int v = members[i], depth = 0;
        for (; !s->resolved[v] && s->seen[v] <= before; v = chosen(s, v)->to) {
            s->seen[v] = s->stamp;
            s->stack[depth++] = v;
        }
        if (!s->resolved[v])
            continue; /* another cycle */
        done += depth;
        while (depth-- > 0) {
            v = s->stack[depth];
            s->value[v] = arc_length(s, chosen(s, v)) + s->value[chosen(s, v)->to];
            s->resolved[v] = true;
        }
    }
    return done;
}

/* Lead the others to the root as well, the nearest first. */
static void redirect(struct solver *s, const int *members, int count)
{
    int queued = 0;
    for (int i = 0; i < count; i++)
        if (s->resolved[members[i]])
            s->stack[queued++] = members[i];
    for (int next = 0; next < queued; next++) {
        int v = s->stack[next];
        for (int i = s->in_first[v]; i < s->in_first[v + 1]; i++) {
            int tail = s->in_tails[i];
            if (s->resolved[tail])
                continue;
            s->resolved[tail] = true;
            s->policy[tail] = s->in_arcs[i];
            s->value[tail] = arc_length(s, chosen(s, tail)) + s->value[v];
            s->stack[queued++] = tail;
        }
    }
}

static bool improve(struct solver *s, const int *members, int count)
{
    bool improved = false;
    for (int i = 0; i < count; i++) {
        int v = members[i];
        for (int a = s->first[v]; a < s->first[v + 1]; a++) {
            wide value = arc_length(s, &s->arcs[a]) + s->value[s->arcs[a].to];
            if (value <= s->value[v])
                continue;
            s->value[v] = value;
            s->policy[v] = a;
            improved = true;
        }
    }
    return improved;
}

static void iterate(struct solver *s, const int *members, int count)
{
    s->best.root = NONE;
    choose_first(s, members, count);
    do {
        s->result.rounds++;
        try_cycles(s, members, count);
        if (evaluate(s, members, count) < count)
            redirect(s, members, count);
    } while (improve(s, members, count));
}

/* Is the component's best cycle the best of all so far? */
static enum status keep_best(struct solver *s, struct diag *diag)
{
    const struct cycle_ratio *known = &s->result;
    if (known->kind == RATIO_FOUND &&
        (wide)s->best.weight_ns * known->height <= (wide)known->weight_ns * s->best.height)
        return STATUS_OK;
    int length = 0, v = s->best.root;
    do {
        s->stack[length++] = chosen(s, v)->edge;
        v = chosen(s, v)->to;
    } while (v != s->best.root);
    return keep_cycle(s, RATIO_FOUND, s->stack, length, diag);
}

static enum status solve_components(struct solver *s, struct diag *diag)
{
    size_t nodes = (size_t)s->nodes;
    s->policy = ARENA_ARRAY(&s->arena, nodes, int);
    s->value = ARENA_ARRAY(&s->arena, nodes, wide);
    s->seen = ARENA_ARRAY(&s->arena, nodes, int);
    s->resolved = ARENA_ARRAY(&s->arena, nodes, bool);
    if (s->arena.failed)
        return diag_no_memory(diag);
    enum status status = STATUS_OK;
    for (int c = 0; status == STATUS_OK && c < s->component_count; c++) {
        const int *members = s->members + s->component_first[c];
        int count = s->component_first[c + 1] - s->component_first[c];
        if (s->first[members[0]] == s->first[members[0] + 1])
            continue; /* a node by itself */
        iterate(s, members, count);
        status = keep_best(s, diag);
    }
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum status check_sums(const struct ratio_graph *graph, struct diag *diag)
{
    int64_t weight_ns = 0, height = 0;
    for (int e = 0; e < graph->edge_count; e++) {
        const struct ratio_edge *edge = &graph->edges[e];
        bool huge = edge->weight_ns >= SUM_LIMIT || edge->weight_ns <= -SUM_LIMIT;
        int64_t more_ns = huge ? SUM_LIMIT : llabs(edge->weight_ns);
        height += llabs(edge->height);
        if (more_ns >= SUM_LIMIT - weight_ns || height >= SUM_LIMIT)
            return diag_error(diag, STATUS_LIMIT,
                              "the durations of one iteration add up to more than 146 years: "
                              "too much for an exact steady state");
        weight_ns += more_ns;
    }
    return STATUS_OK;
}

static enum status solve(struct solver *s, struct diag *diag)
{
    enum status status = check_sums(s->graph, diag);
    if (status == STATUS_OK)
        status = lift_heights(s, diag);
    if (status == STATUS_OK && s->result.kind == RATIO_NONE)
        status = order_nodes(s, diag);
    if (status != STATUS_OK || s->result.kind == RATIO_DEADLOCK)
        return status;
    status = make_arcs(s, diag);
    if (status == STATUS_OK)
        status = find_components(s, diag);
    if (status == STATUS_OK)
        status = keep_inner_arcs(s, diag);
    return status == STATUS_OK ? solve_components(s, diag) : status;
}

enum status cycle_ratio_find(const struct ratio_graph *graph, struct cycle_ratio *out,
                             struct diag *diag)
{
    struct solver solver = {.graph = graph, .nodes = graph->nodes};
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
