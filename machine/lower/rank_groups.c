/* SPDX-License-Identifier: Apache-2.0 */
/* rank_groups.c - see rank_internal.h: the groups of `parallel:`, their communicators, the collectives of stages. */
#include <stdlib.h>

#include "base/array.h"
#include "base/sort.h"
#include "plan/schedules/complete_lists.h"
#include "plan/schedules/model.h"

#include "rank_internal.h"

static const struct parallel_spec *rank_groups_spec_of(const struct rank_lowering *lowering)
{
    return &lowering->plan->programs.parallel;
}

/* The number of the group that the rank which is lowered is in. */
static int own_group(const struct rank_lowering *lowering, enum group_kind kind)
{
    return parallel_group_of(&lowering->grid, group_kind_dims(kind), group_kind_experts(kind),
                             rank_at(lowering, lowering->replica, lowering->rank));
}

/* True if there are layers of experts. */
static bool has_experts(const struct parallel_spec *spec)
{
    return spec->size[DIM_EP] > 1 || spec->expert_tp > 0;
}

bool groups_used(const struct rank_lowering *lowering, enum group_kind kind)
{
    const struct parallel_spec *spec = rank_groups_spec_of(lowering);
    return spec->given && (!group_kind_experts(kind) || has_experts(spec)) &&
           parallel_group_size(spec, group_kind_dims(kind), group_kind_experts(kind)) > 1;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static bool ends_differ(const struct rank_lowering *lowering)
{
    const struct parallel_spec *spec = rank_groups_spec_of(lowering);
    bool any = spec->reduce != GRAD_REDUCE_NONE || spec->embedding != EMBEDDING_NONE;
    for (size_t i = 0; i < spec->differing_count; i++) {
        struct list_ends ends = parallel_ends(lowering->plan, &spec->differing[i]);
        any |= ends.reduce != GRAD_REDUCE_NONE || ends.embedding != EMBEDDING_NONE;
    }
    return any || lowering->kinds & 1u << ACTION_REDUCE_EMBEDDING;
}

enum status groups_check(const struct rank_lowering *lowering)
{
    const struct plan *plan = lowering->plan;
    const struct parallel_spec *spec = rank_groups_spec_of(lowering);
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

bool groups_begin(struct rank_lowering *lowering)
{
    for (int kind = 0; lowering->grid.given && kind < GROUP_KIND_COUNT; kind++) {
        int count = parallel_groups(&lowering->grid, group_kind_dims((enum group_kind)kind),
                                    group_kind_experts((enum group_kind)kind));
        int *comms = ARENA_ARRAY(&lowering->scratch, (size_t)count, int);
        for (int i = 0; comms && i < count; i++)
            comms[i] = -1;
        lowering->group_comms[kind] = comms;
        lowering->group_apart[kind] = ARENA_ARRAY(&lowering->scratch, (size_t)count, bool);
    }
    return !lowering->scratch.failed;
}

/* True if a group of the grid that is lowered is on several nodes, as the group of the plan is that it stands for. */
static bool stands_apart(const struct rank_lowering *lowering, enum group_kind kind, int group)
{
    const struct parallel_spec *spec = rank_groups_spec_of(lowering);
    const unsigned dims = group_kind_dims(kind);
    const bool experts = group_kind_experts(kind);
    int replica, own, rank = parallel_member(&lowering->grid, dims, experts, group, 0);
    if (parallel_world(&lowering->grid) == parallel_world(spec))
        return parallel_group_is_apart(lowering->plan, kind, group);
    parallel_place(&lowering->grid, lowering->rank_count, rank, &replica, &own);
    rank = parallel_rank(spec, lowering->rank_count, 0, own);
    return parallel_group_is_apart(lowering->plan, kind,
                                   parallel_group_of(spec, dims, experts, rank));
}

static int make_comm(struct rank_lowering *lowering, enum group_kind kind, int group)
{
    struct plan *out = lowering->out;
    int size =
        parallel_group_size(&lowering->grid, group_kind_dims(kind), group_kind_experts(kind));
    struct comm comm = {
        .name = arena_printf(&out->arena, "%s.%d", group_kind_key(kind), group),
        .members = ARENA_ARRAY(&out->arena, (size_t)size, int),
    };
    if (!comm.name || !comm.members ||
        !ARENA_GROW(&out->arena, out->comms, out->comm_count, lowering->comm_cap))
        return -1;
    comm.member_count = (size_t)group_members(&lowering->grid, kind, group, comm.members);
    sort_int(comm.members, comm.member_count);
    lowering->group_comms[kind][group] = (int)out->comm_count;
    lowering->group_apart[kind][group] = stands_apart(lowering, kind, group);
    out->comms[out->comm_count] = comm;
    return (int)out->comm_count++;
}

int groups_comm(struct rank_lowering *lowering, enum group_kind kind)
{
    const int group = own_group(lowering, kind), known = lowering->group_comms[kind][group];
    return known >= 0 ? known : make_comm(lowering, kind, group);
}

/* All communicators of the kinds that are used so far. */
static bool groups_make_all(struct rank_lowering *lowering)
{
    for (int k = 0; lowering->grid.given && k < GROUP_KIND_COUNT; k++) {
        enum group_kind kind = (enum group_kind)k;
        int count =
            parallel_groups(&lowering->grid, group_kind_dims(kind), group_kind_experts(kind));
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

struct message_cost groups_call_cost(const struct rank_lowering *lowering, enum group_kind kind,
                                     int64_t bytes)
{
    return parallel_cost(lowering->plan, kind, bytes,
                         lowering->group_apart[kind][own_group(lowering, kind)]);
}

void groups_cost(const struct rank_lowering *lowering, struct rank_step *step, int64_t bytes)
{
    const struct message_cost cost = groups_call_cost(lowering, step->collective.group, bytes);
    step->collective.bytes = cost.bytes;
    step->time_ns = cost.latency_ns + cost.transfer_ns;
}

static int64_t weight_bytes(const struct rank_lowering *lowering, int stage)
{
    return lowering->costs[stage].of[COST_WEIGHTS];
}

enum collective_kind groups_reduction(const struct rank_lowering *lowering)
{
    bool sharded =
        lowering->plan->programs.stages.model.distributed || lowering->kinds & 1u << ACTION_UNSHARD;
    return sharded ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_REDUCE;
}

/* Both halves of tied embeddings: 2 bytes a parameter. */
static int64_t embedding_bytes(const struct rank_lowering *lowering)
{
    struct model_spec model = costs_model(lowering->plan);
    return 2 * (int64_t)model.vocab * model.hidden / (model.tensor > 1 ? model.tensor : 1);
}

bool groups_reduce(struct rank_lowering *lowering, struct rank_step *step)
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
const char *groups_step_name(struct rank_lowering *lowering, const struct rank_step *step)
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

/* ---- replicas -------------------------------------------------------------------------------- */

/*
 * The pipelines beside the first.
 *
 * The first walk lowers the lists of one pipeline. Communicators of its messages and its buffers are there again for each
 * other pipeline, those of groups and of sharded parameters connect pipelines. The second walk lowers a list for each
 * rank that has it, and turns each operation into one of that rank's pipeline.
 */

const struct rank_list *replicas_list(const struct rank_lowering *lowering, int rank, int *replica)
{
    int own;
    parallel_place(&lowering->grid, lowering->rank_count, rank, replica, &own);
    return &lowering->lists[lowering->replicas.lists[rank]];
}

/* ---- threads --------------------------------------------------------------------------------- */

static bool rank_groups_find_lists(struct rank_lowering *lowering)
{
    const struct parallel_spec *spec = &lowering->plan->programs.parallel;
    int ranks = lowering->out->ranks, *lists = ARENA_ARRAY(&lowering->scratch, (size_t)ranks, int);
    lowering->replicas.lists = lists;
    for (int rank = 0; lists && rank < ranks; rank++) {
        int replica;
        parallel_place(&lowering->grid, lowering->rank_count, rank, &replica, &lists[rank]);
    }
    for (size_t i = 0; lists && i < spec->differing_count; i++)
        lists[spec->differing[i].rank] = lowering->rank_count + (int)i;
    return lists != NULL;
}

static enum status make_threads(struct rank_lowering *lowering)
{
    size_t ops = 0;
    for (int rank = 0; rank < lowering->out->ranks; rank++) {
        const struct rank_list *list = &lowering->lists[lowering->replicas.lists[rank]];
        lowering->out->threads[rank] =
            (struct host_thread){.rank = rank, .name = "main", .op_count = list->op_count};
        lowering->all_parts += list->part_count;
        ops += list->op_count;
    }
    if (ops > PLAN_MAX_LOWERED)
        return diag_error(lowering->diag, STATUS_INPUT,
                          "%s: the rank programs need more than %d machine operations, expected a "
                          "smaller schedule",
                          lowering->plan->file, PLAN_MAX_LOWERED);
    return STATUS_OK;
}

/* ---- communicators of messages --------------------------------------------------------------- */

static bool is_route(const struct rank_lowering *lowering, int comm)
{
    for (int rank = 0; rank < lowering->rank_count; rank++)
        if (lowering->fsdp.comms[rank] == comm)
            return false;
    for (int k = 0; lowering->grid.given && k < GROUP_KIND_COUNT; k++) {
        int count = parallel_groups(&lowering->grid, group_kind_dims((enum group_kind)k),
                                    group_kind_experts((enum group_kind)k));
        for (int i = 0; i < count; i++)
            if (lowering->group_comms[k][i] == comm)
                return false;
    }
    return true;
}

static bool number_routes(struct rank_lowering *lowering)
{
    struct replicas *replicas = &lowering->replicas;
    size_t count = lowering->out->comm_count;
    replicas->route = ARENA_ARRAY(&lowering->scratch, count + 1, int);
    for (size_t i = 0; replicas->route && i < count; i++)
        if (is_route(lowering, (int)i))
            replicas->route[i] = ++replicas->routes;
    return replicas->route != NULL;
}

/* The members of a communicator of places as ranks of a pipeline; without members it has all places. */
static bool rank_groups_place_members(struct rank_lowering *lowering, struct comm *comm,
                                      const struct comm *of, int replica)
{
    comm->member_count = of->members ? of->member_count : (size_t)lowering->rank_count;
    comm->members = ARENA_ARRAY(&lowering->out->arena, comm->member_count, int);
    for (size_t i = 0; comm->members && i < comm->member_count; i++)
        comm->members[i] = rank_at(lowering, replica, of->members ? of->members[i] : (int)i);
    return comm->members != NULL;
}

static bool copy_route(struct rank_lowering *lowering, size_t of, int replica)
{
    struct plan *out = lowering->out;
    if (!ARENA_GROW(&out->arena, out->comms, out->comm_count, lowering->comm_cap))
        return false;
    struct comm *comm = &out->comms[out->comm_count++];
    *comm = out->comms[of];
    comm->name = arena_printf(&out->arena, "%s@%d", comm->name, replica);
    return comm->name && rank_groups_place_members(lowering, comm, &out->comms[of], replica);
}

static bool copy_routes(struct rank_lowering *lowering)
{
    struct plan *out = lowering->out;
    size_t count;
    if (!groups_make_all(lowering) || !number_routes(lowering))
        return false;
    count = out->comm_count;
    lowering->replicas.first_copy = (int)out->comm_count;
    for (int replica = 1; replica < lowering->replicas.count; replica++)
        for (size_t i = 0; i < count; i++)
            if (lowering->replicas.route[i] && !copy_route(lowering, i, replica))
                return false;
    for (size_t i = 0; i < count; i++) {
        struct comm places = out->comms[i];
        if (lowering->replicas.route[i] &&
            !rank_groups_place_members(lowering, &out->comms[i], &places, 0))
            return false;
    }
    return true;
}

/* ---- buffers --------------------------------------------------------------------------------- */

/* Each rank has buffers of its own: those of a pipeline follow those of the one before. */
static bool copy_buffers(struct rank_lowering *lowering)
{
    struct plan *out = lowering->out;
    size_t count = out->buffer_count;
    lowering->replicas.buffers = count;
    for (int replica = 1; replica < lowering->replicas.count; replica++)
        for (size_t i = 0; i < count; i++) {
            if (!ARENA_GROW(&out->arena, out->buffers, out->buffer_count, lowering->buffer_cap))
                return false;
            struct buffer *buffer = &out->buffers[out->buffer_count++];
            *buffer = out->buffers[i];
            buffer->owner = 1 + rank_at(lowering, replica, buffer->owner - 1);
        }
    for (size_t i = 0; i < count; i++)
        out->buffers[i].owner = 1 + rank_at(lowering, 0, out->buffers[i].owner - 1);
    return true;
}

enum status replicas_make(struct rank_lowering *lowering)
{
    bool several = lowering->plan->programs.parallel.given || lowering->replicas.count > 1;
    if (!rank_groups_find_lists(lowering))
        return diag_no_memory(lowering->diag);
    enum status status = make_threads(lowering);
    if (status == STATUS_OK && several && !(copy_routes(lowering) && copy_buffers(lowering)))
        return diag_no_memory(lowering->diag);
    return status;
}

/* ---- operations ------------------------------------------------------------------------------ */

static void move_list(const struct rank_lowering *lowering, struct index_list *list)
{
    int by = lowering->replica * (int)lowering->replicas.buffers;
    for (size_t i = 0; i < list->count; i++)
        list->items[i] += by;
}

void replicas_move(struct rank_lowering *lowering, struct host_op *op)
{
    const struct replicas *replicas = &lowering->replicas;
    int replica = lowering->replica;
    if (!replicas->route)
        return;
    bool of_pipeline =
        op->comm >= 0 && op->comm < replicas->first_copy && replicas->route[op->comm];
    if (replica > 0 && of_pipeline)
        op->comm =
            replicas->first_copy + (replica - 1) * replicas->routes + replicas->route[op->comm] - 1;
    if (op_operand(op->kind) == OPERAND_BUFFER)
        op->object += replica * (int)replicas->buffers;
    if (op->accesses) {
        move_list(lowering, &op->accesses->reads);
        move_list(lowering, &op->accesses->writes);
    }
    for (size_t i = 0; of_pipeline && i < host_op_part_count(op); i++)
        op->parts[i].peer = rank_at(lowering, replica, op->parts[i].peer);
}
