/* SPDX-License-Identifier: Apache-2.0 */
/* found_limits.c - see found_limits.h. */
#include "found_limits.h"

#include "bubble_channel.h"
#include "comms.h"
#include "costs.h"
#include "generate.h"
#include "rank_memory.h"

static int most_needed(const struct generate_spec *spec)
{
    return spec->microbatches * spec->chunks;
}

/* ---- what the plan says ---------------------------------------------------------------------- */

/* The bytes that a stage keeps of a microbatch between its passes. */
static int64_t kept_bytes(const struct plan *costs, const struct stage_cost *stage)
{
    bool never = costs->programs.stages.checkpoint == CHECKPOINT_NEVER;
    return stage->of[never ? COST_ACTIVATION : COST_INPUT];
}

/* Less than one: weights and state leave no room. */
static void limit_rank(struct found_limits *limits, int rank, const int *rank_of,
                       const struct stage_cost *rows, int stages)
{
    int64_t memory = machine_memory(&limits->costs->machine, rank), left_bytes = memory, each = 1;
    for (int stage = 0; stage < stages; stage++) {
        if (rank_of[stage] != rank)
            continue;
        int64_t kept = kept_bytes(limits->costs, &rows[stage]);
        left_bytes -= rows[stage].of[COST_WEIGHTS] + rows[stage].of[COST_STATE];
        each = kept > each ? kept : each;
    }
    limits->activation_bytes[rank] = each;
    if (memory && left_bytes / each < limits->of[rank])
        limits->of[rank] = left_bytes > 0 ? (int)(left_bytes / each) : 0;
}

static enum status limit_by_bytes(struct found_limits *limits, const struct generate_spec *spec,
                                  const int *rank_of, struct arena *arena, struct diag *diag)
{
    int stages = spec->ranks * spec->chunks;
    struct stage_cost *rows;
    limits->activation_bytes = ARENA_ARRAY(arena, (size_t)spec->ranks, int64_t);
    if (!limits->activation_bytes)
        return diag_no_memory(diag);
    enum status status = costs_resolve(limits->costs, stages, arena, &rows, diag);
    for (int rank = 0; status == STATUS_OK && rank < spec->ranks; rank++)
        limit_rank(limits, rank, rank_of, rows, stages);
    return status;
}

enum status found_limits_make(const struct generate_spec *spec, const struct plan *costs,
                              const int *rank_of, struct arena *arena, struct found_limits *out,
                              struct diag *diag)
{
    bool by_bytes = costs && spec->memory <= 0 && machine_has_memory(&costs->machine);
    *out = (struct found_limits){.costs = costs,
                                 .ranks = spec->ranks,
                                 .by_bytes = by_bytes,
                                 .of = ARENA_ARRAY(arena, (size_t)spec->ranks, int)};
    if (!out->of)
        return diag_no_memory(diag);
    if (spec->memory == GENERATE_FIT && !by_bytes)
        return diag_error_at(diag, NULL, NULL, spec->mark,
                             "%s: found memory: fit, expected machine: {memory} beside it",
                             spec->schedule);
    found_limits_own(out, spec);
    return by_bytes ? limit_by_bytes(out, spec, rank_of, arena, diag) : STATUS_OK;
}

void found_limits_own(struct found_limits *limits, const struct generate_spec *spec)
{
    for (int rank = 0; rank < limits->ranks; rank++)
        limits->of[rank] = spec->memory == GENERATE_FIT ? most_needed(spec) : generate_memory(spec);
}

bool found_limits_hold(const struct found_limits *limits)
{
    int least, most;
    found_limits_range(limits, &least, &most);
    return least > 0;
}

void found_limits_range(const struct found_limits *limits, int *least, int *most)
{
    *least = *most = limits->of[0];
    for (int rank = 1; rank < limits->ranks; rank++) {
        *least = limits->of[rank] < *least ? limits->of[rank] : *least;
        *most = limits->of[rank] > *most ? limits->of[rank] : *most;
    }
}

/* ---- what lists hold ------------------------------------------------------------------------- */

static enum status weigh(const struct found_limits *limits, const struct rank_program *lists,
                         struct arena *arena, struct rank_memory **ranks, struct diag *diag)
{
    struct rank_program *with = ARENA_ARRAY(arena, (size_t)limits->ranks, struct rank_program);
    if (!with)
        return diag_no_memory(diag);
    for (int rank = 0; rank < limits->ranks; rank++)
        with[rank] = lists[rank];
    enum status status = comms_add(arena, with, limits->ranks, 1, diag);
    return status == STATUS_OK ? rank_memory_of_lists(limits->costs, with, arena, ranks, diag)
                               : status;
}

enum status found_limits_lower(struct found_limits *limits, const struct bubble_problem *problem,
                               const struct rank_program *lists, bool *fits, struct diag *diag)
{
    struct arena scratch;
    struct rank_memory *ranks;
    *fits = true;
    if (!limits->by_bytes)
        return STATUS_OK;
    arena_init(&scratch, 0);
    enum status status = weigh(limits, lists, &scratch, &ranks, diag);
    for (int rank = 0; status == STATUS_OK && rank < limits->ranks; rank++) {
        int64_t memory = machine_memory(&limits->costs->machine, rank);
        int64_t excess = ranks[rank].most - memory;
        if (!memory || excess <= 0)
            continue;
        int64_t held = bubble_channel_held(problem, &lists[rank]);
        int64_t less = held - excess / limits->activation_bytes[rank] - 1;
        /* Much of the excess may be what I leaves or computes again: that shrinks with each step, too. */
        limits->of[rank] = (int)(less > held / 2 ? less : held / 2);
        *fits = false;
    }
    arena_fini(&scratch);
    return status;
}
