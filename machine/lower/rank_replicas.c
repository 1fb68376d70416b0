/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_replicas.c - see rank_internal.h: the pipelines beside the first.
 *
 * The first walk lowers the lists of one pipeline. Communicators of its messages and its buffers are there again for each
 * other pipeline, those of groups and of sharded parameters connect pipelines. The second walk lowers a list for each
 * rank that has it, and turns each operation into one of that rank's pipeline.
 */
#include "rank_internal.h"

const struct rank_list *replicas_list(const struct lowering *lowering, int rank, int *replica)
{
    int own;
    parallel_place(lowering->plan, lowering->rank_count, rank, replica, &own);
    return &lowering->lists[lowering->replicas.lists[rank]];
}

static int rank_at(const struct lowering *lowering, int replica, int own)
{
    return parallel_rank(lowering->plan, lowering->rank_count, replica, own);
}

/* ---- threads --------------------------------------------------------------------------------- */

static bool find_lists(struct lowering *lowering)
{
    const struct parallel_spec *spec = &lowering->plan->programs.parallel;
    int ranks = lowering->out->ranks, *lists = ARENA_ARRAY(&lowering->scratch, (size_t)ranks, int);
    lowering->replicas.lists = lists;
    for (int rank = 0; lists && rank < ranks; rank++) {
        int replica;
        parallel_place(lowering->plan, lowering->rank_count, rank, &replica, &lists[rank]);
    }
    for (size_t i = 0; lists && i < spec->differing_count; i++)
        lists[spec->differing[i].rank] = lowering->rank_count + (int)i;
    return lists != NULL;
}

static enum status make_threads(struct lowering *lowering)
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

static bool is_route(const struct lowering *lowering, int comm)
{
    for (int rank = 0; rank < lowering->rank_count; rank++)
        if (lowering->fsdp.comms[rank] == comm)
            return false;
    const struct parallel_spec *spec = &lowering->plan->programs.parallel;
    for (int k = 0; spec->given && k < GROUP_KIND_COUNT; k++) {
        int count = parallel_groups(spec, group_kind_dims((enum group_kind)k),
                                    group_kind_experts((enum group_kind)k));
        for (int i = 0; i < count; i++)
            if (lowering->group_comms[k][i] == comm)
                return false;
    }
    return true;
}

static bool number_routes(struct lowering *lowering)
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
static bool place_members(struct lowering *lowering, struct comm *comm, const struct comm *of,
                          int replica)
{
    comm->member_count = of->members ? of->member_count : (size_t)lowering->rank_count;
    comm->members = ARENA_ARRAY(&lowering->out->arena, comm->member_count, int);
    for (size_t i = 0; comm->members && i < comm->member_count; i++)
        comm->members[i] = rank_at(lowering, replica, of->members ? of->members[i] : (int)i);
    return comm->members != NULL;
}

static bool copy_route(struct lowering *lowering, size_t of, int replica)
{
    struct plan *out = lowering->out;
    if (!arena_grow(&out->arena, (void **)&out->comms, out->comm_count, &lowering->comm_cap,
                    sizeof *out->comms))
        return false;
    struct comm *comm = &out->comms[out->comm_count++];
    *comm = out->comms[of];
    comm->name = arena_printf(&out->arena, "%s@%d", comm->name, replica);
    return comm->name && place_members(lowering, comm, &out->comms[of], replica);
}

static bool copy_routes(struct lowering *lowering)
{
    struct plan *out = lowering->out;
    size_t count;
    if (!groups_make_all(lowering) || !number_routes(lowering))
        return false;
    count = out->comm_count;
    lowering->replicas.first_copy = (int)out->comm_count;
    for (int replica = 1; replica < replica_count(lowering); replica++)
        for (size_t i = 0; i < count; i++)
            if (lowering->replicas.route[i] && !copy_route(lowering, i, replica))
                return false;
    for (size_t i = 0; i < count; i++) {
        struct comm places = out->comms[i];
        if (lowering->replicas.route[i] && !place_members(lowering, &out->comms[i], &places, 0))
            return false;
    }
    return true;
}

/* ---- buffers --------------------------------------------------------------------------------- */

/* Each rank has buffers of its own: those of a pipeline follow those of the one before. */
static bool copy_buffers(struct lowering *lowering)
{
    struct plan *out = lowering->out;
    size_t count = out->buffer_count;
    lowering->replicas.buffers = count;
    for (int replica = 1; replica < replica_count(lowering); replica++)
        for (size_t i = 0; i < count; i++) {
            if (!arena_grow(&out->arena, (void **)&out->buffers, out->buffer_count,
                            &lowering->buffer_cap, sizeof *out->buffers))
                return false;
            struct buffer *buffer = &out->buffers[out->buffer_count++];
            *buffer = out->buffers[i];
            buffer->owner = 1 + rank_at(lowering, replica, buffer->owner - 1);
        }
    for (size_t i = 0; i < count; i++)
        out->buffers[i].owner = 1 + rank_at(lowering, 0, out->buffers[i].owner - 1);
    return true;
}

enum status replicas_make(struct lowering *lowering)
{
    bool several = lowering->plan->programs.parallel.given || replica_count(lowering) > 1;
    if (!find_lists(lowering))
        return diag_no_memory(lowering->diag);
    enum status status = make_threads(lowering);
    if (status == STATUS_OK && several && !(copy_routes(lowering) && copy_buffers(lowering)))
        return diag_no_memory(lowering->diag);
    return status;
}

/* ---- operations ------------------------------------------------------------------------------ */

static void move_list(const struct lowering *lowering, struct index_list *list)
{
    int by = lowering->replica * (int)lowering->replicas.buffers;
    for (size_t i = 0; i < list->count; i++)
        list->items[i] += by;
}

void replicas_move(struct lowering *lowering, struct host_op *op)
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
    move_list(lowering, &op->reads);
    move_list(lowering, &op->writes);
    for (size_t i = 0; of_pipeline && i < op->part_count; i++)
        op->parts[i].peer = rank_at(lowering, replica, op->parts[i].peer);
}
