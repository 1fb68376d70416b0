/*
 * rank_fsdp.c - see rank_internal.h: sharded parameters, and the replicas of a pipeline that share them.
 *
 * The ranks that hold the same stages in all replicas are one communicator, fsdp.R for rank R of the first
 * replica. A stage is gathered into new memory by each UNSHARD, on the stream that gathers; the passes after
 * it read that memory, and RESHARD frees it. So a pass after RESHARD uses freed memory.
 */
#include "rank_internal.h"

/* ---- tables ---------------------------------------------------------------------------------- */

static void note_stage(struct fsdp *fsdp, const struct action *action)
{
    if (action->kind == ACTION_UNSHARD)
        fsdp->stages[action->stage].gathered = true;
    if (action->kind == ACTION_REDUCE_GRAD)
        fsdp->stages[action->stage].reduced = true;
}

bool fsdp_begin(struct lowering *lowering)
{
    struct fsdp *fsdp = &lowering->fsdp;
    fsdp->comms = ARENA_ARRAY(&lowering->scratch, (size_t)lowering->rank_count, int);
    fsdp->stages = ARENA_ARRAY(&lowering->scratch, (size_t)lowering->map.stages, struct fsdp_stage);
    if (!fsdp->comms || !fsdp->stages)
        return false;
    for (int rank = 0; rank < lowering->rank_count; rank++) {
        fsdp->comms[rank] = -1;
        for (size_t i = 0; i < lowering->ranks[rank].count; i++)
            note_stage(fsdp, &lowering->ranks[rank].actions[i]);
    }
    return true;
}

void fsdp_again(struct lowering *lowering)
{
    struct fsdp *fsdp = &lowering->fsdp;
    fsdp->next = 0;
    for (int stage = 0; stage < lowering->map.stages; stage++) {
        struct fsdp_stage *of = &fsdp->stages[stage];
        *of = (struct fsdp_stage){.gathered = of->gathered, .reduced = of->reduced};
    }
}

int fsdp_stream(struct lowering *lowering)
{
    return names_intern(&lowering->out->streams, &lowering->out->arena, "fsdp");
}

int fsdp_comm(struct lowering *lowering, int stage)
{
    struct plan *out = lowering->out;
    int rank = comms_rank_of(&lowering->map, stage), *known = &lowering->fsdp.comms[rank];
    if (*known >= 0)
        return *known;
    struct comm comm = {.name = arena_printf(&out->arena, "fsdp.%d", rank),
                        .member_count = (size_t)replica_count(lowering)};
    comm.members = ARENA_ARRAY(&out->arena, comm.member_count, int);
    if (!comm.name || !comm.members ||
        !arena_grow(&out->arena, (void **)&out->comms, out->comm_count, &lowering->comm_cap,
                    sizeof comm))
        return -1;
    for (int k = 0; k < replica_count(lowering); k++)
        comm.members[k] = rank + k * lowering->rank_count;
    *known = (int)out->comm_count;
    out->comms[out->comm_count++] = comm;
    return *known;
}

/* ---- buffers --------------------------------------------------------------------------------- */

/* Before the first UNSHARD a pass reads what it will bring. */
int fsdp_parameters(struct lowering *lowering, int stage)
{
    struct fsdp_stage *of = &lowering->fsdp.stages[stage];
    struct fsdp *fsdp = &lowering->fsdp;
    if (of->parameters == 0 && lowering->again)
        of->parameters = fsdp->made[fsdp->next++] + 1;
    if (of->parameters)
        return of->parameters - 1;
    int buffer = tensors_buffer(lowering, &of->parameters,
                                &(struct tensor){TENSOR_PARAMETERS, stage, -1}, of->gathers);
    if (buffer < 0 || !arena_grow(&lowering->scratch, (void **)&fsdp->made, fsdp->made_count,
                                  &fsdp->made_cap, sizeof *fsdp->made))
        return -1;
    fsdp->made[fsdp->made_count++] = buffer;
    return buffer;
}

int fsdp_gather(struct lowering *lowering, int stage)
{
    struct fsdp_stage *of = &lowering->fsdp.stages[stage];
    if (of->gathers > 0)
        of->parameters = 0;
    int buffer = fsdp_parameters(lowering, stage);
    of->gathers++;
    of->whole = true;
    return buffer;
}

int fsdp_free(struct lowering *lowering, int stage)
{
    struct fsdp_stage *of = &lowering->fsdp.stages[stage];
    bool whole = of->whole;
    of->whole = false;
    return whole ? of->parameters - 1 : -1;
}

/* ---- replicas -------------------------------------------------------------------------------- */

/* The communicators of messages, whose ranks all belong to one replica. */
static bool copy_comm(struct lowering *lowering, int of, int replica, int *copy)
{
    struct plan *out = lowering->out;
    if (!arena_grow(&out->arena, (void **)&out->comms, out->comm_count, &lowering->comm_cap,
                    sizeof *out->comms))
        return false;
    struct comm comm = out->comms[of];
    comm.name = arena_printf(&out->arena, "%s@%d", comm.name, replica);
    comm.members = ARENA_ARRAY(&out->arena, comm.member_count, int);
    if (!comm.name || !comm.members)
        return false;
    for (size_t i = 0; i < comm.member_count; i++)
        comm.members[i] = out->comms[of].members[i] + replica * lowering->rank_count;
    *copy = (int)out->comm_count;
    out->comms[out->comm_count++] = comm;
    return true;
}

/* Without members a communicator has all ranks: those of the first replica. */
static bool name_members(struct lowering *lowering, struct comm *comm)
{
    if (comm->members)
        return true;
    comm->member_count = (size_t)lowering->rank_count;
    comm->members = ARENA_ARRAY(&lowering->out->arena, comm->member_count, int);
    for (int rank = 0; comm->members && rank < lowering->rank_count; rank++)
        comm->members[rank] = rank;
    return comm->members != NULL;
}

static bool copy_parts(struct lowering *lowering, struct host_op *op, int replica)
{
    struct p2p_part *parts = ARENA_ARRAY(&lowering->out->arena, op->part_count, struct p2p_part);
    if (!parts)
        return false;
    for (size_t i = 0; i < op->part_count; i++) {
        parts[i] = op->parts[i];
        parts[i].peer += replica * lowering->rank_count;
    }
    op->parts = parts;
    return true;
}

/* Each rank has buffers of its own: those of replica k follow those of replica k - 1. */
static bool copy_buffers(struct lowering *lowering, size_t count, int replica)
{
    struct plan *out = lowering->out;
    for (size_t i = 0; i < count; i++) {
        if (!arena_grow(&out->arena, (void **)&out->buffers, out->buffer_count,
                        &lowering->buffer_cap, sizeof *out->buffers))
            return false;
        out->buffers[out->buffer_count] = out->buffers[i];
        out->buffers[out->buffer_count++].owner += replica * lowering->rank_count;
    }
    return true;
}

static bool copy_accesses(struct lowering *lowering, struct index_list *list, int first_buffer)
{
    int *items = ARENA_ARRAY(&lowering->out->arena, list->count + 1, int);
    for (size_t i = 0; items && i < list->count; i++)
        items[i] = list->items[i] + first_buffer;
    list->items = items;
    return items != NULL;
}

static bool copy_op(struct lowering *lowering, struct host_op *op, int replica, const int *comms,
                    int first_buffer)
{
    if (op->comm >= 0)
        op->comm = op->work.comm = comms[op->comm];
    if (op_operand(op->kind) == OPERAND_BUFFER)
        op->object += first_buffer;
    return (op->reads.count == 0 || copy_accesses(lowering, &op->reads, first_buffer)) &&
           (op->writes.count == 0 || copy_accesses(lowering, &op->writes, first_buffer)) &&
           (op->part_count == 0 || copy_parts(lowering, op, replica));
}

static bool copy_thread(struct lowering *lowering, int rank, int replica, const int *comms,
                        int first_buffer)
{
    const struct host_thread *from = &lowering->out->threads[rank];
    struct host_thread *to = &lowering->out->threads[rank + replica * lowering->rank_count];
    *to = *from;
    to->rank += replica * lowering->rank_count;
    to->ops = ARENA_ARRAY(&lowering->out->arena, from->op_count, struct host_op);
    for (size_t i = 0; to->ops && i < from->op_count; i++) {
        to->ops[i] = from->ops[i];
        if (!copy_op(lowering, &to->ops[i], replica, comms, first_buffer))
            return false;
    }
    return to->ops != NULL;
}

static bool is_shared(const struct lowering *lowering, int comm)
{
    for (int rank = 0; rank < lowering->rank_count; rank++)
        if (lowering->fsdp.comms[rank] == comm)
            return true;
    return false;
}

bool fsdp_replicate(struct lowering *lowering)
{
    int count = (int)lowering->out->comm_count;
    size_t buffers = lowering->out->buffer_count;
    int *comms = ARENA_ARRAY(&lowering->scratch, (size_t)count + 1, int);
    bool ok = comms;
    for (int i = 0; ok && replica_count(lowering) > 1 && i < count; i++)
        ok = name_members(lowering, &lowering->out->comms[i]);
    for (int replica = 1; ok && replica < replica_count(lowering); replica++) {
        for (int i = 0; ok && i < count; i++) {
            comms[i] = i;
            ok = is_shared(lowering, i) || copy_comm(lowering, i, replica, &comms[i]);
        }
        int first_buffer = (int)lowering->out->buffer_count;
        ok = ok && copy_buffers(lowering, buffers, replica);
        for (int rank = 0; ok && rank < lowering->rank_count; rank++)
            ok = copy_thread(lowering, rank, replica, comms, first_buffer);
    }
    return ok;
}
