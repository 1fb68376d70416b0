/* SPDX-License-Identifier: Apache-2.0 */
/* parallel_lists.c - see parallel_lists.h. */
#include "parallel_lists.h"
#include "parallel.h"

struct list_ends parallel_ends(const struct plan *plan, const struct rank_differs *differs)
{
    const struct parallel_spec *spec = &plan->programs.parallel;
    return (struct list_ends){
        .reduce = differs && differs->has_reduce ? differs->reduce : spec->reduce,
        .embedding = differs && differs->has_embedding ? differs->embedding : spec->embedding};
}

/* A list being made longer. */
struct maker {
    const struct stage_map *map;
    struct list_ends ends;
    int own;
    struct rank_program list;
    size_t *last; /* per stage: 1 + the place of its last backward pass in the old list; 0: none */
    bool *listed; /* per stage: its REDUCE_GRAD is there already */
    bool has_embedding;
    struct mark mark; /* of what is added */
};

static void push(struct maker *maker, enum action_kind kind, int stage)
{
    maker->list.actions[maker->list.count++] =
        (struct action){.kind = kind, .stage = stage, .microbatch = -1, .mark = maker->mark};
}

static void note_old(struct maker *maker, const struct rank_program *old)
{
    for (size_t i = 0; i < old->count; i++) {
        const struct action *parts;
        size_t count = comms_parts(&old->actions[i], &parts);
        for (size_t k = 0; k < count; k++) {
            if (parts[k].kind == ACTION_W || parts[k].kind == ACTION_B)
                maker->last[parts[k].stage] = i + 1;
            if (parts[k].kind == ACTION_REDUCE_GRAD)
                maker->listed[parts[k].stage] = true;
            maker->has_embedding |= parts[k].kind == ACTION_REDUCE_EMBEDDING;
        }
    }
}

static bool reduces(const struct maker *maker, int stage)
{
    return maker->last[stage] && !maker->listed[stage];
}

/* For each stage of the list. */
static void push_all(struct maker *maker, enum action_kind kind)
{
    for (int stage = 0; stage < maker->map->stages; stage++)
        if (reduces(maker, stage))
            push(maker, kind, stage);
}

/* The first and the last stage hold the embedding; one rank that has both needs no message. */
static void push_embedding(struct maker *maker)
{
    int last = maker->map->stages - 1;
    if (maker->has_embedding || comms_rank_of(maker->map, 0) == comms_rank_of(maker->map, last))
        return;
    if (comms_rank_of(maker->map, 0) == maker->own)
        push(maker, ACTION_REDUCE_EMBEDDING, 0);
    if (comms_rank_of(maker->map, last) == maker->own)
        push(maker, ACTION_REDUCE_EMBEDDING, last);
}

static void push_old(struct maker *maker, const struct rank_program *old, bool at_stage)
{
    for (size_t i = 0; i < old->count; i++) {
        const struct action *parts, *action = &old->actions[i];
        size_t count = comms_parts(action, &parts);
        maker->mark = action->mark;
        maker->list.actions[maker->list.count++] = *action;
        for (size_t k = 0; at_stage && k < count; k++) {
            bool last = (parts[k].kind == ACTION_W || parts[k].kind == ACTION_B) &&
                        maker->last[parts[k].stage] == i + 1;
            if (last && reduces(maker, parts[k].stage))
                push(maker, ACTION_REDUCE_GRAD, parts[k].stage);
        }
    }
}

static void make(struct maker *maker, const struct rank_program *old, bool grads)
{
    enum grad_reduce reduce = grads ? maker->ends.reduce : GRAD_REDUCE_NONE;
    note_old(maker, old);
    push_old(maker, old, reduce == GRAD_REDUCE_STAGE || reduce == GRAD_REDUCE_OVERLAP);
    if (maker->ends.embedding == EMBEDDING_FIRST)
        push_embedding(maker);
    if (reduce == GRAD_REDUCE_END)
        push_all(maker, ACTION_REDUCE_GRAD);
    if (reduce == GRAD_REDUCE_OVERLAP)
        push_all(maker, ACTION_WAIT_REDUCE_GRAD);
    if (maker->ends.embedding == EMBEDDING_LAST)
        push_embedding(maker);
}

/* Is there anybody to reduce gradients with? */
static bool has_replicas(const struct parallel_spec *spec)
{
    return parallel_group_size(spec, group_kind_dims(GROUP_DP_CP), false) > 1;
}

enum status parallel_add_ends(const struct plan *plan, const struct list_ends *ends,
                              const struct stage_map *map, int own, struct arena *arena,
                              struct rank_program *list, struct diag *diag)
{
    size_t stages = (size_t)map->stages;
    struct maker maker = {.map = map, .ends = *ends, .own = own};
    if (ends->reduce == GRAD_REDUCE_NONE && ends->embedding == EMBEDDING_NONE)
        return STATUS_OK;
    size_t most = list->count + 2 * stages + 2;
    maker.list.actions = ARENA_ARRAY(arena, most, struct action);
    maker.last = ARENA_ARRAY(arena, stages, size_t);
    maker.listed = ARENA_ARRAY(arena, stages, bool);
    if (!maker.list.actions || !maker.last || !maker.listed)
        return diag_no_memory(diag);
    make(&maker, list, has_replicas(&plan->programs.parallel));
    *list = maker.list;
    return STATUS_OK;
}
