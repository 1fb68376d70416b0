/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_fsdp.c - see rank_internal.h: sharded parameters.
 *
 * The ranks that hold the same stages in all replicas are one communicator, fsdp.R for rank R of the first
 * replica, or the group dp-cp. A stage is gathered into new memory by each UNSHARD, on the stream that gathers; the passes after
 * it read that memory, and RESHARD frees it. So a pass after RESHARD uses freed memory.
 */
#include "rank_internal.h"

/* ---- tables ---------------------------------------------------------------------------------- */

static void note_stage(struct fsdp *fsdp, const struct action *action)
{
    if (action->kind == ACTION_UNSHARD)
        fsdp->stages[action->stage].gathered = true;
    if (action->kind == ACTION_REDUCE_GRAD || action->kind == ACTION_REDUCE_EMBEDDING)
        fsdp->stages[action->stage].reduced = true;
}

bool fsdp_begin(struct lowering *lowering)
{
    struct fsdp *fsdp = &lowering->fsdp;
    fsdp->comms = ARENA_ARRAY(&lowering->scratch, (size_t)lowering->rank_count, int);
    fsdp->stages = ARENA_ARRAY(&lowering->scratch, (size_t)lowering->map.stages, struct fsdp_stage);
    if (!fsdp->comms || !fsdp->stages)
        return false;
    for (int rank = 0; rank < lowering->rank_count; rank++)
        fsdp->comms[rank] = -1;
    for (int i = 0; i < lowering->list_count; i++)
        for (size_t k = 0; k < lowering->lists[i].program->count; k++)
            note_stage(fsdp, &lowering->lists[i].program->actions[k]);
    return true;
}

void fsdp_again(struct lowering *lowering, int stage)
{
    struct fsdp_stage *of = &lowering->fsdp.stages[stage];
    of->gathers = 0;
    of->whole = false;
}

int fsdp_stream(struct lowering *lowering)
{
    bool grouped = lowering->plan->programs.parallel.given;
    return names_intern(&lowering->out->streams, &lowering->out->arena, grouped ? "dp" : "fsdp");
}

int fsdp_comm(struct lowering *lowering, int stage)
{
    struct plan *out = lowering->out;
    if (lowering->plan->programs.parallel.given)
        return groups_comm(lowering, GROUP_DP_CP);
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
    size_t gather = of->gathers ? (size_t)of->gathers - 1 : 0;
    while (gather >= of->cap)
        if (!arena_grow(&lowering->scratch, (void **)&of->parameters, of->cap, &of->cap,
                        sizeof *of->parameters))
            return -1;
    return tensors_buffer(lowering, &of->parameters[gather],
                          &(struct tensor){TENSOR_PARAMETERS, stage, -1}, (int)gather);
}

int fsdp_gather(struct lowering *lowering, int stage)
{
    struct fsdp_stage *of = &lowering->fsdp.stages[stage];
    of->gathers++;
    of->whole = true;
    return fsdp_parameters(lowering, stage);
}

int fsdp_free(struct lowering *lowering, int stage)
{
    struct fsdp_stage *of = &lowering->fsdp.stages[stage];
    bool whole = of->whole;
    of->whole = false;
    return whole ? fsdp_parameters(lowering, stage) : -1;
}
