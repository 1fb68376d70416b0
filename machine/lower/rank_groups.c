/* SPDX-License-Identifier: Apache-2.0 */
/* rank_groups.c - see rank_internal.h: the groups of `parallel:`, their communicators, the collectives of stages. */
#include "rank_internal.h"

#include <stdlib.h>

#include "plan/schedules/model.h"
#include "plan/schedules/parallel_lists.h"

static const struct parallel_spec *spec_of(const struct lowering *lowering)
{
    return &lowering->plan->programs.parallel;
}

static int world_rank(const struct lowering *lowering)
{
    return parallel_rank(lowering->plan, lowering->rank_count, lowering->replica, lowering->rank);
}

/* Are there layers of experts? */
static bool has_experts(const struct parallel_spec *spec)
{
    return spec->size[DIM_EP] > 1 || spec->expert_tp > 0;
}

bool groups_used(const struct lowering *lowering, enum group_kind kind)
{
    const struct parallel_spec *spec = spec_of(lowering);
    return spec->given && (!group_kind_experts(kind) || has_experts(spec)) &&
           parallel_group_size(spec, group_kind_dims(kind), group_kind_experts(kind)) > 1;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static bool ends_differ(const struct lowering *lowering)
{
    const struct parallel_spec *spec = spec_of(lowering);
    bool any = spec->reduce != GRAD_REDUCE_NONE || spec->embedding != EMBEDDING_NONE;
    for (size_t i = 0; i < spec->differing_count; i++) {
        struct list_ends ends = parallel_ends(lowering->plan, &spec->differing[i]);
        any |= ends.reduce != GRAD_REDUCE_NONE || ends.embedding != EMBEDDING_NONE;
    }
    return any || lowering->kinds & 1u << ACTION_REDUCE_EMBEDDING;
}

enum status groups_check(const struct lowering *lowering)
{
    const struct plan *plan = lowering->plan;
    const struct parallel_spec *spec = spec_of(lowering);
    if (!spec->given) {
        for (int i = 0; i < lowering->list_count; i++)
            for (size_t k = 0; k < lowering->lists[i].program->count; k++)
                if (lowering->lists[i].program->actions[k].kind == ACTION_REDUCE_EMBEDDING)
                    return plan_error_at(plan, lowering->diag,
                                         lowering->lists[i].program->actions[k].mark,
                                         "found REDUCE_EMBEDDING without \"parallel\", expected "
                                         "both: it names the groups");
        return STATUS_OK;
    }
    if (spec->size[DIM_PP] != lowering->rank_count)
        return plan_error_at(plan, lowering->diag, spec->mark,
                             "found pipelines of %d ranks, expected %d as the lists say",
                             spec->size[DIM_PP], lowering->rank_count);
    if (complete_lists_copies(plan) > 1 && ends_differ(lowering))
        return plan_error_at(plan, lowering->diag, spec->mark,
                             "found gradients reduced in groups beside %d copies of the model, "
                             "expected \"grad_reduce: none\" and \"embedding: none\": which copies "
                             "share gradients is not said",
                             complete_lists_copies(plan));
    for (size_t i = 0; plan->programs.fragment && i < spec->differing_count; i++)
        if (spec->differing[i].has_program)
            return plan_error_at(plan, lowering->diag, spec->differing[i].mark,
                                 "found a list of one rank in a fragment, expected whole lists");
    return STATUS_OK;
}

/* ---- communicators --------------------------------------------------------------------------- */

bool groups_begin(struct lowering *lowering)
{
    const struct parallel_spec *spec = spec_of(lowering);
    for (int kind = 0; spec->given && kind < GROUP_KIND_COUNT; kind++) {
        int count = parallel_groups(spec, group_kind_dims((enum group_kind)kind),
                                    group_kind_experts((enum group_kind)kind));
        int *comms = ARENA_ARRAY(&lowering->scratch, (size_t)count, int);
        for (int i = 0; comms && i < count; i++)
            comms[i] = -1;
        lowering->group_comms[kind] = comms;
    }
    return !lowering->scratch.failed;
}

static int compare_ranks(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static int make_comm(struct lowering *lowering, enum group_kind kind, int group)
{
    const struct parallel_spec *spec = spec_of(lowering);
    struct plan *out = lowering->out;
    int size = parallel_group_size(spec, group_kind_dims(kind), group_kind_experts(kind));
    struct comm comm = {
        .name = arena_printf(&out->arena, "%s.%d", group_kind_key(kind), group),
        .members = ARENA_ARRAY(&out->arena, (size_t)size, int),
    };
    if (!comm.name || !comm.members ||
        !arena_grow(&out->arena, (void **)&out->comms, out->comm_count, &lowering->comm_cap,
                    sizeof comm))
        return -1;
    comm.member_count = (size_t)group_members(spec, kind, group, comm.members);
    qsort(comm.members, comm.member_count, sizeof *comm.members, compare_ranks);
    lowering->group_comms[kind][group] = (int)out->comm_count;
    out->comms[out->comm_count] = comm;
    return (int)out->comm_count++;
}

int groups_comm(struct lowering *lowering, enum group_kind kind)
{
    int group = parallel_group_of(spec_of(lowering), group_kind_dims(kind),
                                  group_kind_experts(kind), world_rank(lowering));
    int known = lowering->group_comms[kind][group];
    return known >= 0 ? known : make_comm(lowering, kind, group);
}

bool groups_make_all(struct lowering *lowering)
{
    const struct parallel_spec *spec = spec_of(lowering);
    for (int k = 0; spec->given && k < GROUP_KIND_COUNT; k++) {
        enum group_kind kind = (enum group_kind)k;
        int count = parallel_groups(spec, group_kind_dims(kind), group_kind_experts(kind));
        bool any = false;
        for (int i = 0; i < count; i++)
            any |= lowering->group_comms[k][i] >= 0;
        for (int i = 0; any && i < count; i++)
            if (lowering->group_comms[k][i] < 0 && make_comm(lowering, kind, i) < 0)
                return false;
    }
    return true;
}

/* ---- collectives ----------------------------------------------------------------------------- */

void groups_cost(const struct lowering *lowering, struct rank_step *step, int64_t bytes)
{
    const struct comm *comm = &lowering->out->comms[step->comm];
    struct message_cost cost = parallel_cost(lowering->plan, step->collective.group, bytes,
                                             comm->members, comm->member_count);
    step->collective.bytes = cost.bytes;
    step->time_ns = cost.latency_ns + cost.transfer_ns;
}

static int64_t weight_bytes(const struct lowering *lowering, int stage)
{
    return lowering->costs[stage].of[COST_WEIGHTS];
}

enum collective_kind groups_reduction(const struct lowering *lowering)
{
    bool sharded =
        lowering->plan->programs.stages.model.distributed || lowering->kinds & 1u << ACTION_UNSHARD;
    return sharded ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_REDUCE;
}

/* Both halves of tied embeddings: 2 bytes a parameter. */
static int64_t embedding_bytes(const struct lowering *lowering)
{
    struct model_spec model = costs_model(lowering->plan);
    return 2 * (int64_t)model.vocab * model.hidden / (model.tensor > 1 ? model.tensor : 1);
}

bool groups_reduce(struct lowering *lowering, struct rank_step *step)
{
    bool embedding = step->action->kind == ACTION_REDUCE_EMBEDDING;
    bool beside = !embedding && (lowering->list->reduce == GRAD_REDUCE_OVERLAP ||
                                 lowering->list->reduce == GRAD_REDUCE_NONE);
    int64_t given = step->time_ns;
    step->collective = (struct step_collective){.kind = embedding ? COLLECTIVE_ALL_REDUCE
                                                                  : groups_reduction(lowering),
                                                .group = embedding ? GROUP_EMBEDDING : GROUP_DP_CP};
    step->stream = beside ? fsdp_stream(lowering) : lowering->compute;
    step->comm = groups_comm(lowering, step->collective.group);
    if (step->stream < 0 || step->comm < 0)
        return false;
    groups_cost(lowering, step,
                embedding ? embedding_bytes(lowering)
                          : weight_bytes(lowering, step->action->stage));
    if (lowering->plan->programs.times[step->action->kind].given)
        step->time_ns = given;
    return true;
}

/* The two ends of an embedding group call the same collective from different stages. */
const char *groups_step_name(struct lowering *lowering, const struct rank_step *step)
{
    char name[ACTION_NAME];
    struct arena *arena = lowering->sink.arena;
    comms_action_name(step->action, name, sizeof name);
    if (step->action->kind == ACTION_REDUCE_EMBEDDING)
        return arena_strdup(arena, action_text(step->action->kind));
    if (step->place != STEP_ALONE)
        return arena_printf(arena, "%s.%s", name, group_kind_key(step->collective.group));
    return arena_strdup(arena, name);
}
