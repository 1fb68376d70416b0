/* SPDX-License-Identifier: Apache-2.0 */
/* complete_lists.c - see complete_lists.h. */
#include "complete_lists.h"

#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "parallel_lists.h"
#include "parallel.h"

/* Messages from the generators and from comms.c know the position but not the file. */
static void name_file(struct diag *diag, size_t first, const char *file)
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

static enum status add_messages(const struct plan *plan, struct arena *arena,
                                struct rank_program *ranks, int rank_count, struct diag *diag)
{
    return comms_present(ranks, rank_count)
               ? STATUS_OK
               : comms_add(arena, ranks, rank_count, complete_lists_copies(plan), diag);
}

/* The collectives at the ends of stages, in all lists, or in that of one rank that differs. */
static enum status add_ends(const struct plan *plan, struct arena *arena,
                            struct rank_program *ranks, int rank_count,
                            const struct rank_differs *differs, int own, struct diag *diag)
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
    parallel_place(plan, rank_count, differs->rank, &replica, &own);
    struct rank_program *lists = ARENA_ARRAY(arena, (size_t)rank_count, struct rank_program);
    if (!lists)
        return diag_no_memory(diag);
    memcpy(lists, differs->has_program ? given : with, (size_t)rank_count * sizeof *lists);
    enum status status = STATUS_OK;
    if (differs->has_program) {
        lists[own] = *differs->program;
        status = add_messages(plan, arena, lists, rank_count, diag);
    }
    if (status == STATUS_OK)
        status = add_ends(plan, arena, lists, rank_count, differs, own, diag);
    *out = lists[own];
    return status;
}

static enum status complete(const struct plan *plan, struct arena *arena,
                            struct rank_program **ranks, int *rank_count,
                            struct rank_program **differing, struct diag *diag)
{
    const struct parallel_spec *spec = &plan->programs.parallel;
    struct rank_program *given, *with;
    enum status status = complete_lists_given(plan, arena, &given, rank_count, diag);
    if (status != STATUS_OK)
        return status;
    size_t count = (size_t)*rank_count;
    with = ARENA_ARRAY(arena, count, struct rank_program);
    *ranks = ARENA_ARRAY(arena, count, struct rank_program);
    *differing = ARENA_ARRAY(arena, spec->differing_count, struct rank_program);
    if (!with || !*ranks || !*differing)
        return diag_no_memory(diag);
    memcpy(with, given, count * sizeof *with);
    status = add_messages(plan, arena, with, *rank_count, diag);
    for (size_t i = 0; status == STATUS_OK && i < spec->differing_count; i++)
        status = make_differing(plan, arena, given, with, *rank_count, &spec->differing[i],
                                &(*differing)[i], diag);
    memcpy(*ranks, with, count * sizeof *with);
    return status == STATUS_OK ? add_ends(plan, arena, *ranks, *rank_count, NULL, -1, diag)
                               : status;
}

enum status complete_lists_fill_all(const struct plan *plan, struct arena *arena,
                                    struct rank_program **ranks, int *rank_count,
                                    struct rank_program **differing, struct diag *diag)
{
    size_t first = diag->count;
    struct rank_program *made = NULL, *others = NULL;
    int count = 0;
    enum status status = complete(plan, arena, &made, &count, &others, diag);
    if (status != STATUS_OK) {
        name_file(diag, first, plan->file);
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
        name_file(diag, first, plan->file);
    return status;
}

enum status complete_lists_make(const struct plan *plan, struct complete_lists *out,
                                struct diag *diag)
{
    struct complete_lists made = {0};
    arena_init(&made.arena, 0);
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
