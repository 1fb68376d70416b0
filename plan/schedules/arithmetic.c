/* SPDX-License-Identifier: Apache-2.0 */
/* arithmetic.c - see arithmetic.h. */
#include "arithmetic.h"

#include "comms.h"
#include "costs.h"
#include "parallel.h"
#include "plan/plan.h"

int64_t arithmetic_message_bytes(const struct arithmetic *arithmetic)
{
    return (int64_t)arithmetic->batch * arithmetic->width * (int64_t)sizeof(float);
}

static int arithmetic_layers_of(const struct arithmetic *arithmetic, const struct stage_cost *cost)
{
    if (arithmetic->layers_per_stage)
        return arithmetic->layers_per_stage;
    return cost->layers;
}

static bool has_layers(const struct plan *plan)
{
    return plan->programs.stages.layers.count > 0 || plan->programs.stages.model.layers > 0;
}

/* The dimension that divides a layer, or its rows, among ranks; -1: there is none. */
static int divides(const struct plan *plan)
{
    const struct parallel_spec *spec = &plan->programs.parallel;
    for (int dim = 0; spec->given && dim < DIM_COUNT; dim++)
        if (dim != DIM_PP && dim != DIM_DP && spec->size[dim] > 1)
            return dim;
    return -1;
}

/* Ranks are whole stages, of replicas or one alone. */
static enum status arithmetic_check(const struct plan *plan, struct diag *diag)
{
    const struct programs *programs = &plan->programs;
    const struct arithmetic *arithmetic = &programs->arithmetic;
    int dim = divides(plan);
    if (dim >= 0)
        return plan_error_at(plan, diag, arithmetic->mark,
                             "found \"arithmetic\" with %s: %d, expected data parallelism alone",
                             dim_key((enum dim)dim), programs->parallel.size[dim]);
    if (!programs->parallel.given && programs->fsdp_replicas > 1)
        return plan_error_at(plan, diag, arithmetic->mark,
                             "found \"arithmetic\" with %d replicas of sharded parameters, "
                             "expected one, or \"parallel: {dp: %d}\"",
                             programs->fsdp_replicas, programs->fsdp_replicas);
    if (plan_replicas(plan) > 1 && programs->stages.model.distributed)
        return plan_error_at(plan, diag, arithmetic->mark,
                             "found \"arithmetic\" with a distributed optimizer, expected "
                             "gradients that are whole on each rank");
    if (programs->fragment)
        return plan_error_at(plan, diag, arithmetic->mark,
                             "found \"arithmetic\" in a fragment, expected all passes");
    return STATUS_OK;
}

static enum status check_stage(const struct plan *plan, int stage, int layers, struct diag *diag)
{
    const struct arithmetic *arithmetic = &plan->programs.arithmetic;
    int64_t layer = (int64_t)arithmetic->batch * arithmetic->width * arithmetic->width;
    if (layers == 0)
        return plan_error_at(plan, diag, arithmetic->mark,
                             "found no layer in stage %d, expected one that can be computed",
                             stage);
    if (layers <= ARITHMETIC_MOST_WORK / layer)
        return STATUS_OK;
    return plan_error_at(plan, diag, arithmetic->mark,
                         "found %d layers of %lld multiplications in stage %d, expected at most "
                         "%lld multiplications in a pass",
                         layers, (long long)layer, stage, (long long)ARITHMETIC_MOST_WORK);
}

/* The rank of a stage in each replica; -1: it is in no list. */
static void place_stage(const struct plan *plan, const struct stage_map *map, int ranks, int stage,
                        struct arithmetic *made)
{
    int own = comms_rank_of(map, stage);
    for (int replica = 0; replica < made->replicas; replica++)
        made->rank_of[replica * made->stages + stage] =
            own < 0 ? -1 : parallel_rank(&plan->programs.parallel, ranks, replica, own);
}

enum status arithmetic_resolve(const struct plan *plan, const struct stage_map *map, int ranks,
                               const struct stage_cost *costs, struct arena *arena,
                               struct arithmetic *out, struct diag *diag)
{
    struct arithmetic made = plan->programs.arithmetic;
    if (!made.layers_per_stage && !has_layers(plan))
        made.layers_per_stage = 1;
    made.stages = map->stages;
    made.length = map->length;
    made.microbatches = map->microbatches;
    made.layers = ARENA_ARRAY(arena, (size_t)made.stages + 1, int);
    made.replicas = plan_replicas(plan);
    size_t places = (size_t)made.replicas * (size_t)made.stages;
    made.rank_of = ARENA_ARRAY(arena, places + 1, int);
    made.again = ARENA_ARRAY(arena, (size_t)made.microbatches + 1, bool);
    if (!made.layers || !made.rank_of || !made.again)
        return diag_no_memory(diag);
    enum status status = arithmetic_check(plan, diag);
    for (int s = 0; s < made.stages && status == STATUS_OK; s++) {
        made.layers[s] = arithmetic_layers_of(&made, &costs[s]);
        place_stage(plan, map, ranks, s, &made);
        status = check_stage(plan, s, made.layers[s], diag);
    }
    for (int m = 0; m < made.microbatches; m++)
        made.again[m] = costs_checkpointed(plan, m, made.microbatches);
    if (status == STATUS_OK)
        *out = made;
    return status;
}
