/* SPDX-License-Identifier: Apache-2.0 */
/* complete_lists.c - see complete_lists.h. */
#include "complete_lists.h"

#include <string.h>

#include "plan/plan.h"

#include "comms.h"
#include "generate.h"
#include "parallel.h"

/* ---- collectives at the ends of stages ------------------------------------------------------- */

struct list_ends parallel_ends(const struct plan *plan, const struct rank_differs *differs)
{
    const struct parallel_spec *spec = &plan->programs.parallel;
    return (struct list_ends){
        .reduce = differs && differs->has_reduce ? differs->reduce : spec->reduce,
        .embedding = differs && differs->has_embedding ? differs->embedding : spec->embedding};
}

/* A list being made longer. */
struct complete_lists_maker {
    const struct stage_map *map;
    struct list_ends ends;
    int own;
    struct rank_program list;
    size_t *last; /* per stage: 1 + the place of its last backward pass in the old list; 0: none */
    bool *listed; /* per stage: its REDUCE_GRAD is there already */
    bool has_embedding;
    struct mark mark; /* of what is added */
};

static void complete_lists_push(struct complete_lists_maker *maker, enum action_kind kind,
                                int stage)
{
    maker->list.actions[maker->list.count++] =
        (struct action){.kind = kind, .stage = stage, .microbatch = -1, .mark = maker->mark};
}

static void note_old(struct complete_lists_maker *maker, const struct rank_program *old)
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

static bool reduces(const struct complete_lists_maker *maker, int stage)
{
    return maker->last[stage] && !maker->listed[stage];
}

/* For each stage of the list. */
static void push_all(struct complete_lists_maker *maker, enum action_kind kind)
{
    for (int stage = 0; stage < maker->map->stages; stage++)
        if (reduces(maker, stage))
            complete_lists_push(maker, kind, stage);
}

/* The first and the last stage hold the embedding; one rank that has both needs no message. */
static void push_embedding(struct complete_lists_maker *maker)
{
    int last = maker->map->stages - 1;
    if (maker->has_embedding || comms_rank_of(maker->map, 0) == comms_rank_of(maker->map, last))
        return;
    if (comms_rank_of(maker->map, 0) == maker->own)
        complete_lists_push(maker, ACTION_REDUCE_EMBEDDING, 0);
    if (comms_rank_of(maker->map, last) == maker->own)
        complete_lists_push(maker, ACTION_REDUCE_EMBEDDING, last);
}

static void push_old(struct complete_lists_maker *maker, const struct rank_program *old,
                     bool at_stage)
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
                complete_lists_push(maker, ACTION_REDUCE_GRAD, parts[k].stage);
        }
    }
}

static void complete_lists_own_make(struct complete_lists_maker *maker,
                                    const struct rank_program *old, bool grads)
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

/* True if there are replicas to reduce gradients with. */
static bool has_replicas(const struct parallel_spec *spec)
{
    return parallel_group_size(spec, group_kind_dims(GROUP_DP_CP), false) > 1;
}

/* The list of place `own` of a pipeline with them, in `arena`. */
static enum status parallel_add_ends(const struct plan *plan, const struct list_ends *ends,
                                     const struct stage_map *map, int own, struct arena *arena,
                                     struct rank_program *list, struct diag *diag)
{
    size_t stages = (size_t)map->stages;
    struct complete_lists_maker maker = {.map = map, .ends = *ends, .own = own};
    if (ends->reduce == GRAD_REDUCE_NONE && ends->embedding == EMBEDDING_NONE)
        return STATUS_OK;
    size_t most = list->count + 2 * stages + 2;
    maker.list.actions = ARENA_ARRAY(arena, most, struct action);
    maker.last = ARENA_ARRAY(arena, stages, size_t);
    maker.listed = ARENA_ARRAY(arena, stages, bool);
    if (!maker.list.actions || !maker.last || !maker.listed)
        return diag_no_memory(diag);
    complete_lists_own_make(&maker, list, has_replicas(&plan->programs.parallel));
    *list = maker.list;
    return STATUS_OK;
}

/* Messages from the generators and from comms.c know the position but not the file. */
static void complete_lists_name_file(struct diag *diag, size_t first, const char *file)
{
    for (size_t i = first; i < diag->count; i++) {
        if (diag->messages[i].file || !file)
            continue;
        diag->messages[i].file = strdup(file);
        if (!diag->messages[i].file)
            diag->out_of_memory = true;
    }
}

int complete_lists_copies(const struct plan *plan)
{
    const struct programs *programs = &plan->programs;
    int given = programs->copies > 1 ? programs->copies : 1;
    return programs->generate.given ? generate_copies(&programs->generate) : given;
}

struct plan complete_lists_like(const struct plan *plan)
{
    struct plan like = *plan;
    struct generate_spec *spec = &like.programs.generate;
    if (spec->given && generate_is_found(spec->schedule)) {
        spec->schedule = generate_rule_like(spec->schedule);
        spec->memory = 0;
    }
    return like;
}

enum status complete_lists_given(const struct plan *plan, struct arena *arena,
                                 struct rank_program **ranks, int *rank_count, struct diag *diag)
{
    const struct programs *programs = &plan->programs;
    if (programs->generate.given)
        return generate_program(&programs->generate, arena, ranks, rank_count, diag);
    *rank_count = plan->ranks;
    *ranks = ARENA_ARRAY(arena, (size_t)plan->ranks, struct rank_program);
    if (!*ranks)
        return diag_no_memory(diag);
    memcpy(*ranks, programs->ranks, (size_t)plan->ranks * sizeof **ranks);
    return STATUS_OK;
}

static enum status complete_lists_add_messages(const struct plan *plan, struct arena *arena,
                                               struct rank_program *ranks, int rank_count,
                                               struct diag *diag)
{
    return comms_present(ranks, rank_count)
               ? STATUS_OK
               : comms_add(arena, ranks, rank_count, complete_lists_copies(plan), diag);
}

/* The collectives at the ends of stages, in all lists, or in that of one rank that differs. */
static enum status complete_lists_add_ends(const struct plan *plan, struct arena *arena,
                                           struct rank_program *ranks, int rank_count,
                                           const struct rank_differs *differs, int own,
                                           struct diag *diag)
{
    struct stage_map map;
    struct list_ends ends = parallel_ends(plan, differs);
    if (ends.reduce == GRAD_REDUCE_NONE && ends.embedding == EMBEDDING_NONE)
        return STATUS_OK;
    enum status status =
        comms_map_stages(arena, ranks, rank_count, complete_lists_copies(plan), &map, diag);
    for (int rank = differs ? own : 0;
         status == STATUS_OK && rank < (differs ? own + 1 : rank_count); rank++)
        status = parallel_add_ends(plan, &ends, &map, rank, arena, &ranks[rank], diag);
    return status;
}

/* The list of a rank that differs; `given`: those of its pipeline, as the plan has them, and `with`: with messages. */
static enum status make_differing(const struct plan *plan, struct arena *arena,
                                  const struct rank_program *given, const struct rank_program *with,
                                  int rank_count, const struct rank_differs *differs,
                                  struct rank_program *out, struct diag *diag)
{
    int replica, own;
    parallel_place(&plan->programs.parallel, rank_count, differs->rank, &replica, &own);
    struct rank_program *lists = ARENA_ARRAY(arena, (size_t)rank_count, struct rank_program);
    if (!lists)
        return diag_no_memory(diag);
    memcpy(lists, differs->has_program ? given : with, (size_t)rank_count * sizeof *lists);
    enum status status = STATUS_OK;
    if (differs->has_program) {
        lists[own] = *differs->program;
        status = complete_lists_add_messages(plan, arena, lists, rank_count, diag);
    }
    if (status == STATUS_OK)
        status = complete_lists_add_ends(plan, arena, lists, rank_count, differs, own, diag);
    *out = lists[own];
    return status;
}

/* True if no list with messages refers to the one without: its actions were copied, and none has parts. */
static bool are_copied(const struct rank_program *given, const struct rank_program *with, int count)
{
    for (int rank = 0; rank < count; rank++)
        for (size_t i = 0; i < given[rank].count; i++)
            if (given[rank].actions == with[rank].actions || given[rank].actions[i].parts)
                return false;
    return true;
}

static enum status complete_lists_complete_from(const struct plan *plan, struct arena *arena,
                                                struct arena *without, struct rank_program **ranks,
                                                int *rank_count, struct rank_program **differing,
                                                struct diag *diag)
{
    const struct parallel_spec *spec = &plan->programs.parallel;
    struct rank_program *given, *with;
    enum status status = complete_lists_given(plan, without, &given, rank_count, diag);
    if (status != STATUS_OK)
        return status;
    size_t count = (size_t)*rank_count;
    with = ARENA_ARRAY(arena, count, struct rank_program);
    *ranks = ARENA_ARRAY(arena, count, struct rank_program);
    *differing = ARENA_ARRAY(arena, spec->differing_count, struct rank_program);
    if (!with || !*ranks || !*differing)
        return diag_no_memory(diag);
    memcpy(with, given, count * sizeof *with);
    status = complete_lists_add_messages(plan, arena, with, *rank_count, diag);
    for (size_t i = 0; status == STATUS_OK && i < spec->differing_count; i++)
        status = make_differing(plan, arena, given, with, *rank_count, &spec->differing[i],
                                &(*differing)[i], diag);
    memcpy(*ranks, with, count * sizeof *with);
    if (status == STATUS_OK && are_copied(given, with, *rank_count))
        arena_fini(without);
    return status == STATUS_OK
               ? complete_lists_add_ends(plan, arena, *ranks, *rank_count, NULL, -1, diag)
               : status;
}

/* The lists without messages go where nothing refers to them. */
static enum status complete_lists_complete(const struct plan *plan, struct arena *arena,
                                           struct rank_program **ranks, int *rank_count,
                                           struct rank_program **differing, struct diag *diag)
{
    struct arena without;
    arena_init(&without, 0);
    without.limit = arena->limit;
    const enum status status =
        complete_lists_complete_from(plan, arena, &without, ranks, rank_count, differing, diag);
    without.limit = arena->limit;
    arena_adopt(arena, &without);
    return status;
}

enum status complete_lists_fill_all(const struct plan *plan, struct arena *arena,
                                    struct rank_program **ranks, int *rank_count,
                                    struct rank_program **differing, struct diag *diag)
{
    size_t first = diag->count;
    struct rank_program *made = NULL, *others = NULL;
    int count = 0;
    enum status status = complete_lists_complete(plan, arena, &made, &count, &others, diag);
    if (status != STATUS_OK) {
        complete_lists_name_file(diag, first, plan->file);
        return status;
    }
    *ranks = made;
    *rank_count = count;
    *differing = plan->programs.parallel.differing_count ? others : NULL;
    return STATUS_OK;
}

enum status complete_lists_fill(const struct plan *plan, struct arena *arena,
                                struct rank_program **ranks, int *rank_count, struct diag *diag)
{
    struct rank_program *differing;
    return complete_lists_fill_all(plan, arena, ranks, rank_count, &differing, diag);
}

static enum status map_lists(const struct plan *plan, struct complete_lists *lists,
                             struct diag *diag)
{
    size_t first = diag->count;
    enum status status = complete_lists_fill_all(plan, &lists->arena, &lists->ranks,
                                                 &lists->rank_count, &lists->differing, diag);
    if (status == STATUS_OK)
        status = comms_map_stages(&lists->arena, lists->ranks, lists->rank_count,
                                  complete_lists_copies(plan), &lists->map, diag);
    if (status != STATUS_OK)
        complete_lists_name_file(diag, first, plan->file);
    return status;
}

enum status complete_lists_make(const struct plan *plan, struct work_limit *limit,
                                struct complete_lists *out, struct diag *diag)
{
    struct complete_lists made = {0};
    arena_init(&made.arena, 0);
    made.arena.limit = limit;
    enum status status = map_lists(plan, &made, diag);
    if (status == STATUS_OK)
        *out = made;
    else
        complete_lists_fini(&made);
    return status;
}

void complete_lists_fini(struct complete_lists *lists)
{
    arena_fini(&lists->arena);
    *lists = (struct complete_lists){0};
}
