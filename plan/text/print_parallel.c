/* SPDX-License-Identifier: Apache-2.0 */
/* print_parallel.c - the groups around rank programs in canonical text. */
#include "plan/keywords.h"
#include "plan/schedules/parallel.h"
#include "print_internal.h"

static void put_calls(struct printer *printer, const struct group_cost *cost)
{
    static const char *const keys[] = {
        [COST_F] = "F", [COST_I] = "I", [COST_W] = "W", [COST_B] = "B"};
    for (int pass = COST_F; pass <= COST_B; pass++)
        if (cost->calls[pass].given)
            put_pair_number(printer, keys[pass], cost->calls[pass].value, -1);
}

static void put_group_costs(struct printer *printer, const struct parallel_spec *spec)
{
    bool any = false;
    for (int kind = 0; kind < GROUP_KIND_COUNT; kind++)
        any |= spec->costs[kind].given;
    if (!any)
        return;
    put_word(printer, "costs");
    open_map(printer, FLOW);
    for (int kind = 0; kind < GROUP_KIND_COUNT; kind++) {
        const struct group_cost *cost = &spec->costs[kind];
        if (!cost->given)
            continue;
        put_word(printer, group_kind_key((enum group_kind)kind));
        open_map(printer, FLOW);
        put_calls(printer, cost);
        put_link_pairs(printer, &cost->link);
        put_link(printer, "between", &cost->between);
        if (cost->time.given)
            put_pair_time(printer, "time", cost->time.value, -1);
        put_pair_keyword(printer, "call", keywords_group_call, cost->call, GROUP_CALL_USUAL);
        put_pair_bool(printer, "overlap", cost->overlap, false);
        close_map(printer);
    }
    close_map(printer);
}

static void put_differing(struct printer *printer, const struct parallel_spec *spec)
{
    if (spec->differing_count == 0)
        return;
    put_word(printer, "ranks");
    open_map(printer, BLOCK);
    for (size_t i = 0; i < spec->differing_count; i++) {
        const struct rank_differs *differs = &spec->differing[i];
        put_number(printer, differs->rank);
        open_map(printer, FLOW);
        if (differs->has_reduce)
            put_pair_word(printer, "grad_reduce", keywords_grad_reduce[differs->reduce]);
        if (differs->has_embedding)
            put_pair_word(printer, "embedding", keywords_embedding[differs->embedding]);
        if (differs->has_program) {
            put_word(printer, "program");
            put_program(printer, differs->program);
        }
        close_map(printer);
    }
    close_map(printer);
}

/* Each rank that differs is a line of its own. */
void print_parallel(struct printer *printer)
{
    const struct parallel_spec *spec = &printer->plan->programs.parallel;
    char order[8 * DIM_COUNT];
    if (!spec->given)
        return;
    parallel_print_order(spec, order, sizeof order);
    put_word(printer, "parallel");
    open_map(printer, spec->differing_count ? BLOCK : FLOW);
    put_pair_number(printer, "tp", spec->size[DIM_TP], 1);
    put_pair_number(printer, "cp", spec->size[DIM_CP], 1);
    put_pair_number(printer, "ep", spec->size[DIM_EP], 1);
    put_pair_number(printer, "expert_tp", spec->expert_tp, 0);
    put_pair_number(printer, "dp", spec->size[DIM_DP], 1);
    put_pair_number(printer, "pp", spec->size[DIM_PP], 0);
    put_pair_number(printer, "world", spec->world, 0);
    put_pair_word(printer, "order", order);
    put_pair_keyword(printer, "grad_reduce", keywords_grad_reduce, spec->reduce, GRAD_REDUCE_NONE);
    put_pair_keyword(printer, "embedding", keywords_embedding, spec->embedding, EMBEDDING_NONE);
    put_group_costs(printer, spec);
    put_differing(printer, spec);
    close_map(printer);
}
