/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gap_chains.c - see gap_chains.h.
 *
 * The reachability index of chain covers (Jagadish 1990), with a few of the chains: the longest path of edges without length,
 * then the longest of what is left, and so on. One walk against the order of the edges finds the first places, one along it
 * the last ones. Tasks on a cycle without length, and those behind it, are left out of the walks.
 */
#include "gap_chains.h"

#include <limits.h>
#include <string.h>

#include "base/sort.h"

enum { NONE = -1 };

struct chain_builder {
    struct gap_chains *chains;
    int tasks;
    const int *first;
    const struct gap_edge *edges;
    int *order, sorted; /* tasks in the order of edges without length */
    int *height;        /* per task: of the longest path from it */
    int *scratch;       /* per task, and one more */
};

#define EACH_EDGE(builder, task, edge)                                                             \
    for (const struct gap_edge *edge = (builder)->edges + (builder)->first[task],                  \
                               *end_ = (builder)->edges + (builder)->first[(task) + 1];            \
         edge < end_; edge++)

/* Kahn 1962. */
static void order_tasks(struct chain_builder *builder)
{
    int *missing = builder->scratch, count = 0;
    for (int t = 0; t < builder->tasks; t++)
        missing[t] = 0;
    for (int t = 0; t < builder->tasks; t++)
        EACH_EDGE (builder, t, edge)
            missing[edge->to] += edge->length == 0;
    for (int t = 0; t < builder->tasks; t++)
        if (missing[t] == 0)
            builder->order[count++] = t;
    for (int at = 0; at < count; at++)
        EACH_EDGE (builder, builder->order[at], edge)
            if (edge->length == 0 && --missing[edge->to] == 0)
                builder->order[count++] = edge->to;
    builder->sorted = count;
}

static void find_heights(struct chain_builder *builder)
{
    for (int t = 0; t < builder->tasks; t++)
        builder->height[t] = 0;
    for (int i = builder->sorted - 1; i >= 0; i--)
        EACH_EDGE (builder, builder->order[i], edge)
            if (edge->length == 0)
                builder->height[builder->order[i]] =
                    max_int(builder->height[builder->order[i]], builder->height[edge->to] + 1);
}

static void put_on_chain(struct chain_builder *builder, int task, int chain, int place)
{
    struct gap_reach *reach = &builder->chains->of[0][task];
    reach->first[chain] = reach->last[chain] = place;
    builder->height[task] = NONE;
}

/* The longest path of tasks that are on no chain. */
static void choose_chain(struct chain_builder *builder, int chain)
{
    int task = 0;
    for (int t = 1; t < builder->tasks; t++)
        task = builder->height[t] > builder->height[task] ? t : task;
    for (int place = 0; task != NONE && builder->height[task] != NONE; place++) {
        int next = NONE;
        put_on_chain(builder, task, chain, place);
        EACH_EDGE (builder, task, edge)
            if (edge->length == 0 &&
                (next == NONE || builder->height[edge->to] > builder->height[next]))
                next = edge->to;
        task = next;
    }
}

static void reach_first(struct gap_reach *from, const struct gap_reach *to)
{
    for (int c = 0; c < GAP_CHAINS; c++)
        from->first[c] = min_int(from->first[c], to->first[c]);
}

static void reach_last(struct gap_reach *to, const struct gap_reach *from)
{
    for (int c = 0; c < GAP_CHAINS; c++)
        to->last[c] = max_int(to->last[c], from->last[c]);
}

/* Along edges without length. */
static void follow(struct chain_builder *builder, struct gap_reach *of)
{
    for (int i = builder->sorted - 1; i >= 0; i--)
        EACH_EDGE (builder, builder->order[i], edge)
            if (edge->length == 0)
                reach_first(&of[builder->order[i]], &of[edge->to]);
    for (int i = 0; i < builder->sorted; i++)
        EACH_EDGE (builder, builder->order[i], edge)
            if (edge->length == 0)
                reach_last(&of[edge->to], &of[builder->order[i]]);
}

bool gap_chains_build(struct gap_chains *chains, struct arena *arena, int tasks, const int *first,
                      const struct gap_edge *edges)
{
    struct chain_builder builder = {
        .chains = chains,
        .tasks = tasks,
        .first = first,
        .edges = edges,
        .order = ARENA_ARRAY(arena, (size_t)tasks, int),
        .height = ARENA_ARRAY(arena, (size_t)tasks, int),
        .scratch = ARENA_ARRAY(arena, (size_t)tasks, int),
    };
    for (int length = 0; length < GAP_CHAIN_LENGTHS; length++)
        chains->of[length] = ARENA_ARRAY(arena, (size_t)tasks, struct gap_reach);
    if (arena->failed)
        return false;
    struct gap_reach *straight = chains->of[0], *longer = chains->of[1];
    for (int t = 0; t < tasks; t++)
        for (int c = 0; c < GAP_CHAINS; c++) {
            straight[t].first[c] = INT_MAX;
            straight[t].last[c] = NONE;
        }
    order_tasks(&builder);
    find_heights(&builder);
    for (int chain = 0; chain < GAP_CHAINS; chain++)
        choose_chain(&builder, chain);
    follow(&builder, straight);
    memcpy(longer, straight, (size_t)tasks * sizeof *longer);
    for (int t = 0; t < tasks; t++)
        EACH_EDGE (&builder, t, edge)
            if (edge->length == 1) {
                reach_first(&longer[t], &straight[edge->to]);
                reach_last(&longer[edge->to], &straight[t]);
            }
    follow(&builder, longer);
    return true;
}

static bool chains_meet(const struct gap_reach *from, const struct gap_reach *to)
{
    bool meets = false;
    for (int c = 0; c < GAP_CHAINS; c++)
        meets |= from->first[c] <= to->last[c];
    return meets;
}

bool gap_chains_lead(const struct gap_chains *chains, int from, int to, int most)
{
    const struct gap_reach *straight = chains->of[0], *longer = chains->of[1];
    if (most < 1)
        return most == 0 && chains_meet(&straight[from], &straight[to]);
    return chains_meet(&longer[from], &straight[to]) || chains_meet(&straight[from], &longer[to]);
}
