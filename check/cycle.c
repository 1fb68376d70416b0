/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cycle.c - see cycle.h. Nodes without incoming edges are removed until no node is left, or a cycle
 * (Kahn, Topological Sorting of Large Networks, CACM 1962). The nodes to be removed are a list linked
 * through the table of degrees, whose entries they no longer need.
 */
#include "cycle.h"

static const uint32_t NO_NODE = UINT32_MAX;

void edges_open(struct edges *edges, struct budget *budget)
{
    *edges = (struct edges){0};
    chunked_open(&edges->firsts, sizeof(uint32_t), budget);
    chunked_open(&edges->targets, sizeof(uint32_t), budget);
}

void edges_close(struct edges *edges)
{
    chunked_close(&edges->firsts);
    chunked_close(&edges->targets);
}

enum status edges_begin(struct edges *edges)
{
    uint32_t first = (uint32_t)edges->targets.count;
    return edges->targets.count < UINT32_MAX ? chunked_push(&edges->firsts, &first) : STATUS_LIMIT;
}

enum status edges_add(struct edges *edges, uint32_t to)
{
    edges->turns_back |= to < edges->firsts.count;
    return chunked_push(&edges->targets, &to);
}

static uint32_t target(const struct edges *edges, size_t edge)
{
    return *(const uint32_t *)chunked_at(&edges->targets, edge, sizeof(uint32_t));
}

static size_t cycle_first_edge(const struct edges *edges, size_t node)
{
    return node < edges->firsts.count
               ? *(const uint32_t *)chunked_at(&edges->firsts, node, sizeof(uint32_t))
               : edges->targets.count;
}

static bool is_cyclic(const struct edges *edges, uint32_t nodes, uint32_t *degree)
{
    uint32_t removed = 0, next = NO_NODE;
    for (size_t edge = 0; edge < edges->targets.count; edge++)
        degree[target(edges, edge)]++;
    for (uint32_t node = 0; node < nodes; node++)
        if (degree[node] == 0) {
            degree[node] = next;
            next = node;
        }
    while (next != NO_NODE) {
        uint32_t node = next;
        next = degree[node];
        removed++;
        for (size_t edge = cycle_first_edge(edges, node); edge < cycle_first_edge(edges, node + 1);
             edge++) {
            uint32_t to = target(edges, edge);
            if (--degree[to] == 0) {
                degree[to] = next;
                next = to;
            }
        }
    }
    return removed < nodes;
}

enum status edges_have_cycle(const struct edges *edges, uint32_t nodes, bool *out)
{
    uint32_t *degree;
    *out = false;
    if (!edges->turns_back)
        return STATUS_OK;
    enum status status =
        budget_alloc(edges->targets.budget, (size_t)nodes * sizeof *degree, &degree);
    if (status != STATUS_OK)
        return status;
    *out = is_cyclic(edges, nodes, degree);
    budget_free(edges->targets.budget, degree, (size_t)nodes * sizeof *degree);
    return STATUS_OK;
}
