/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_collectives.c - see rank_internal.h: the collectives of passes.
 *
 * A pass calls those of its groups on the stream of the passes, as PyTorch does with collectives that are not asynchronous;
 * with `overlap` on a stream of their group, beside the pass: they start when it may start, and it is done when they are,
 * too. With sequence parallelism the first all-gather stands before the pass; all others stand behind it: those of the
 * group cp, then tp, ep and expert-tp. A wait for the pass is a wait for the last of them.
 *
 * Sources: Megatron-Core 0.16, tensor_parallel/mappings.py and layers.py (a layer gathers and scatters twice, for attention
 * and for the MLP); Transformer Engine 2.4, attention/context_parallel.py (the ring of keys and values: backward their
 * gradients move with them, and once more to come home).
 */
#include "base/array.h"
#include "plan/schedules/model.h"

#include "rank_internal.h"

/* ---- sharded parameters ---------------------------------------------------------------------- */

/*
 * Sharded parameters.
 *
 * The ranks that hold the same stages in all replicas are one communicator, fsdp.R for rank R of the first
 * replica, or the group dp-cp. A stage is gathered into new memory by each UNSHARD, on the stream that gathers; the passes after
 * it read that memory, and RESHARD frees it. So a pass after RESHARD uses freed memory.
 */

/* ---- tables ---------------------------------------------------------------------------------- */

static void note_stage(struct fsdp *fsdp, const struct action *action)
{
    if (action->kind == ACTION_UNSHARD)
        fsdp->stages[action->stage].gathered = true;
    if (action->kind == ACTION_REDUCE_GRAD || action->kind == ACTION_REDUCE_EMBEDDING)
        fsdp->stages[action->stage].reduced = true;
}

bool fsdp_begin(struct rank_lowering *lowering)
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

void fsdp_again(struct rank_lowering *lowering, int stage)
{
    struct fsdp_stage *of = &lowering->fsdp.stages[stage];
    of->gathers = 0;
    of->whole = false;
}

int fsdp_stream(struct rank_lowering *lowering)
{
    bool grouped = lowering->plan->programs.parallel.given;
    return names_intern(&lowering->out->streams, &lowering->out->arena, grouped ? "dp" : "fsdp");
}

int fsdp_comm(struct rank_lowering *lowering, int stage)
{
    struct plan *out = lowering->out;
    if (lowering->plan->programs.parallel.given)
        return groups_comm(lowering, GROUP_DP_CP);
    int rank = comms_rank_of(&lowering->map, stage), *known = &lowering->fsdp.comms[rank];
    if (*known >= 0)
        return *known;
    struct comm comm = {.name = arena_printf(&out->arena, "fsdp.%d", rank),
                        .member_count = (size_t)lowering->replicas.count};
    comm.members = ARENA_ARRAY(&out->arena, comm.member_count, int);
    if (!comm.name || !comm.members ||
        !ARENA_GROW(&out->arena, out->comms, out->comm_count, lowering->comm_cap))
        return -1;
    for (int k = 0; k < lowering->replicas.count; k++)
        comm.members[k] = rank + k * lowering->rank_count;
    *known = (int)out->comm_count;
    out->comms[out->comm_count++] = comm;
    return *known;
}

/* ---- buffers --------------------------------------------------------------------------------- */

/* Before the first UNSHARD a pass reads what it will bring. */
int fsdp_parameters(struct rank_lowering *lowering, int stage)
{
    struct fsdp_stage *of = &lowering->fsdp.stages[stage];
    size_t gather = of->gathers ? (size_t)of->gathers - 1 : 0;
    while (gather >= of->cap)
        if (!ARENA_GROW(&lowering->scratch, of->parameters, of->cap, of->cap))
            return -1;
    return tensors_buffer(lowering, &of->parameters[gather],
                          &(struct tensor){TENSOR_PARAMETERS, stage, -1}, (int)gather);
}

int fsdp_gather(struct rank_lowering *lowering, int stage)
{
    struct fsdp_stage *of = &lowering->fsdp.stages[stage];
    of->gathers++;
    of->whole = true;
    return fsdp_parameters(lowering, stage);
}

int fsdp_free(struct rank_lowering *lowering, int stage)
{
    struct fsdp_stage *of = &lowering->fsdp.stages[stage];
    bool whole = of->whole;
    of->whole = false;
    return whole ? fsdp_parameters(lowering, stage) : -1;
}

static const enum group_kind pass_kinds[] = {GROUP_CP, GROUP_TP, GROUP_EP, GROUP_EXPERT_TP};
enum { PASS_KINDS = sizeof pass_kinds / sizeof *pass_kinds };

/* A call of a pass. */
struct rank_collectives_call {
    enum group_kind group;
    bool ring; /* each rank sends to the next one and receives from the one before */
    enum collective_kind kind;
    int64_t bytes;
    int64_t times; /* calls that it stands for: those of all layers of the stage */
};

/* ---- how many, how big ----------------------------------------------------------------------- */

/* The calls of a part of a pass on a group. */
struct part_calls {
    enum group_kind group;
    enum group_call call;
    bool forward;
    int pairs;             /* calls; of gather_scatter, pairs of them */
    int gathers;           /* of gather_scatter, for W: its input once more */
    int size;              /* of the group */
    enum step_place place; /* of all but the first gather */
    int64_t layers, bytes;
    int64_t queries; /* of an exchange: of its bytes, and of its answer */
};

/* By default collectives of passes move as many bytes as a message between stages, or what the model says. */
static int64_t call_bytes(const struct rank_lowering *lowering, const struct part_calls *calls)
{
    struct model_spec model = costs_model(lowering->plan);
    int64_t bytes = lowering->plan->programs.p2p_bytes;
    bool pairs = calls->call == GROUP_CALL_GATHER_SCATTER;
    if (model.layers == 0)
        return pairs ? bytes * calls->size : bytes;
    if (calls->group == GROUP_CP)
        return model_kv_bytes(&model) * (calls->call == GROUP_CALL_ALL_GATHER ? calls->size : 1);
    if (calls->group == GROUP_EP)
        return model_message_bytes(&model) * (model.top_k ? model.top_k : 1);
    return model_layer_bytes(&model);
}

/* Attention and MLP have an all-reduce or a pair of tp each, experts an all-to-all there and one back. */
static int64_t calls_of_layers(const struct part_calls *calls, int64_t layers)
{
    bool twice = calls->call == GROUP_CALL_ALL_REDUCE || calls->group == GROUP_EP;
    return twice && calls->group != GROUP_EXPERT_TP ? 2 * layers : layers;
}

/* Queries, or what attention makes of them: without a model as many as keys, which are half of the keys and values. */
static int64_t query_bytes(const struct rank_lowering *lowering, const struct part_calls *calls)
{
    struct model_spec model = costs_model(lowering->plan);
    return model.layers ? model_query_bytes(&model) : calls->bytes / 2;
}

/* A model without counts: each call stands for those of all layers. */
static int64_t rank_collectives_layers_of(const struct rank_lowering *lowering,
                                          const struct part_calls *calls, int stage)
{
    const struct programs *programs = &lowering->plan->programs;
    const struct group_cost *cost = &programs->parallel.costs[calls->group];
    int layers = lowering->costs[stage].layers;
    bool one = !programs->stages.model.layers || cost->time.given || cost->link.bytes.given;
    return one || layers == 0 || parallel_counts(&programs->parallel, calls->group)
               ? 1
               : calls_of_layers(calls, layers);
}

/* A pass backward whose pass forward is computed once more calls its collectives once more. */
static void rank_collectives_count_calls(const struct rank_lowering *lowering,
                                         const struct action *part, struct part_calls *out)
{
    const struct plan *plan = lowering->plan;
    const struct group_cost *cost = &plan->programs.parallel.costs[out->group];
    bool again = costs_checkpointed(plan, part->microbatch, lowering->map.microbatches);
    bool pairs = out->call == GROUP_CALL_GATHER_SCATTER;
    if (part->kind == ACTION_F) {
        out->pairs = parallel_calls(plan, out->group, COST_F);
    } else if (part->kind == ACTION_W) {
        out->pairs = pairs ? 0 : parallel_calls(plan, out->group, COST_W);
        out->gathers = pairs ? parallel_calls(plan, out->group, COST_W) : 0;
    } else {
        bool split = part->kind == ACTION_I;
        out->pairs = parallel_calls(plan, out->group, split ? COST_I : COST_B);
        if (pairs && !split && !cost->calls[COST_B].given) {
            out->gathers = parallel_calls(plan, out->group, COST_W);
            out->pairs = parallel_calls(plan, out->group, COST_I);
        }
        out->pairs += again ? parallel_calls(plan, out->group, COST_F) : 0;
    }
}

static bool is_beside(const struct rank_lowering *lowering, enum group_kind kind)
{
    return lowering->plan->programs.parallel.costs[kind].overlap;
}

static struct part_calls calls_of(const struct rank_lowering *lowering, enum group_kind kind,
                                  const struct action *part)
{
    const struct parallel_spec *spec = &lowering->plan->programs.parallel;
    struct part_calls out = {.group = kind,
                             .call = parallel_call(lowering->plan, kind),
                             .place = is_beside(lowering, kind) ? STEP_BESIDE : STEP_BEHIND,
                             .forward = part->kind == ACTION_F};
    if (!comms_is_pass(part) || !groups_used(lowering, kind))
        return out;
    rank_collectives_count_calls(lowering, part, &out);
    out.size = parallel_group_size(spec, group_kind_dims(kind), group_kind_experts(kind));
    out.layers = rank_collectives_layers_of(lowering, &out, part->stage);
    out.bytes = call_bytes(lowering, &out);
    out.queries = query_bytes(lowering, &out);
    return out;
}

size_t collectives_most(const struct rank_lowering *lowering)
{
    const struct plan *plan = lowering->plan;
    size_t most = 2; /* the second of two reductions; a JOIN */
    for (int i = 0; i < PASS_KINDS; i++) {
        enum group_kind kind = pass_kinds[i];
        size_t size = (size_t)parallel_group_size(&plan->programs.parallel, group_kind_dims(kind),
                                                  group_kind_experts(kind));
        size_t each = parallel_call(plan, kind) == GROUP_CALL_RING ? size : 2, pass = 0;
        for (int cost = COST_F; groups_used(lowering, kind) && cost <= COST_B; cost++)
            pass += (size_t)parallel_calls(plan, kind, (enum cost)cost);
        most += each * pass;
    }
    return plan->programs.parallel.given ? most : 0;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static int rank_collectives_stream_of(struct rank_lowering *lowering, enum group_kind kind)
{
    return is_beside(lowering, kind)
               ? names_intern(&lowering->out->streams, &lowering->out->arena, group_kind_key(kind))
               : lowering->compute;
}

/* The calls that it stands for start one behind the other. */
static void cost_call(const struct rank_lowering *lowering, struct rank_step *step,
                      const struct rank_collectives_call *call)
{
    groups_cost(lowering, step, call->bytes * call->times);
    if (call->times == 1)
        return;
    step->time_ns += groups_call_cost(lowering, call->group, 0).latency_ns * (call->times - 1);
}

static bool rank_collectives_add_call(struct rank_lowering *lowering, const struct rank_step *pass,
                                      enum step_place place,
                                      const struct rank_collectives_call *call)
{
    struct rank_steps *now = &lowering->now;
    struct rank_step step = *pass;
    step.kind = call->ring ? STEP_RING : STEP_COLLECTIVE;
    step.place = place;
    step.behind = 0;
    step.stream = rank_collectives_stream_of(lowering, call->group);
    step.comm = groups_comm(lowering, call->group);
    step.collective = (struct step_collective){.kind = call->kind, .group = call->group};
    if (step.comm < 0 || step.stream < 0)
        return false;
    cost_call(lowering, &step, call);
    now->steps[now->step_count++] = step;
    return true;
}

/* Keys and values go round; backward their gradients with them, and these once more to come home. */
static bool add_ring(struct rank_lowering *lowering, const struct rank_step *pass,
                     const struct part_calls *calls)
{
    struct rank_collectives_call call = {
        .group = calls->group, .ring = true, .times = calls->layers};
    int rounds = calls->forward ? calls->size - 1 : calls->size;
    for (int i = 0; i < rounds; i++) {
        bool both = !calls->forward && i > 0 && i < rounds - 1;
        call.bytes = both ? 2 * calls->bytes : calls->bytes;
        if (!rank_collectives_add_call(lowering, pass, calls->place, &call))
            return false;
    }
    return true;
}

/* Of queries, keys and values, and of what attention makes of them. */
static bool add_exchanges(struct rank_lowering *lowering, const struct rank_step *pass,
                          const struct part_calls *calls)
{
    struct rank_collectives_call call = {
        .group = calls->group, .kind = COLLECTIVE_ALL_TO_ALL, .times = calls->layers};
    for (int i = 0; i < 2; i++) {
        bool three = (i == 0) == calls->forward;
        call.bytes = three ? calls->bytes + calls->queries : calls->queries;
        if (!rank_collectives_add_call(lowering, pass, calls->place, &call))
            return false;
    }
    return true;
}

/* One call, as it stands behind a pass. */
static bool add_one(struct rank_lowering *lowering, const struct rank_step *pass,
                    const struct part_calls *calls)
{
    struct rank_collectives_call call = {
        .group = calls->group, .bytes = calls->bytes, .times = calls->layers};
    switch (calls->call) {
    case GROUP_CALL_RING: return add_ring(lowering, pass, calls);
    case GROUP_CALL_ALL_TO_ALL:
        if (calls->group == GROUP_CP)
            return add_exchanges(lowering, pass, calls);
        call.kind = COLLECTIVE_ALL_TO_ALL;
        break;
    case GROUP_CALL_ALL_GATHER:
        call.kind = calls->forward ? COLLECTIVE_ALL_GATHER : COLLECTIVE_REDUCE_SCATTER;
        break;
    case GROUP_CALL_GATHER_SCATTER: call.kind = COLLECTIVE_REDUCE_SCATTER; break;
    case GROUP_CALL_USUAL:
    case GROUP_CALL_ALL_REDUCE: call.kind = COLLECTIVE_ALL_REDUCE; break;
    }
    return rank_collectives_add_call(lowering, pass, calls->place, &call);
}

static bool add_gathers(struct rank_lowering *lowering, const struct rank_step *pass,
                        const struct part_calls *calls, int count, enum step_place place)
{
    struct rank_collectives_call call = {.group = calls->group,
                                         .kind = COLLECTIVE_ALL_GATHER,
                                         .bytes = calls->bytes,
                                         .times = calls->layers};
    for (int i = 0; i < count; i++)
        if (!rank_collectives_add_call(lowering, pass, place, &call))
            return false;
    return true;
}

/* All but the first gather. */
static bool add_rest(struct rank_lowering *lowering, const struct rank_step *pass,
                     const struct part_calls *calls)
{
    bool pairs = calls->call == GROUP_CALL_GATHER_SCATTER;
    for (int k = 0; k < calls->pairs; k++)
        if ((k > 0 && pairs && !add_gathers(lowering, pass, calls, 1, calls->place)) ||
            !add_one(lowering, pass, calls))
            return false;
    return true;
}

static bool add_before(struct rank_lowering *lowering, const struct rank_step *pass,
                       const struct part_calls *calls)
{
    int first = calls->call == GROUP_CALL_GATHER_SCATTER && calls->pairs > 0;
    bool beside = calls->place == STEP_BESIDE;
    return add_gathers(lowering, pass, calls, first + calls->gathers,
                       beside ? STEP_BESIDE : STEP_BEFORE) &&
           (!beside || add_rest(lowering, pass, calls));
}

bool collectives_before(struct rank_lowering *lowering, const struct rank_step *pass)
{
    const struct action *parts;
    size_t count = comms_parts(pass->action, &parts);
    for (size_t k = 0; lowering->plan->programs.parallel.given && k < count; k++)
        for (int i = 0; i < PASS_KINDS; i++) {
            struct part_calls calls = calls_of(lowering, pass_kinds[i], &parts[k]);
            if (!add_before(lowering, pass, &calls))
                return false;
        }
    return true;
}

static bool add_behind(struct rank_lowering *lowering, const struct rank_step *pass,
                       const struct action *part)
{
    for (int i = 0; i < PASS_KINDS; i++) {
        struct part_calls calls = calls_of(lowering, pass_kinds[i], part);
        if (calls.place == STEP_BEHIND && !add_rest(lowering, pass, &calls))
            return false;
    }
    return true;
}

/* The results of the pass are there when those beside it are done. */
static void add_join(struct rank_lowering *lowering, size_t pass)
{
    struct rank_steps *now = &lowering->now;
    if (pass == 0 || now->steps[pass - 1].place != STEP_BESIDE ||
        now->steps[pass - 1].listed != now->steps[pass].listed)
        return;
    struct rank_step step = now->steps[pass];
    step.kind = STEP_JOIN;
    step.place = STEP_BEHIND;
    now->steps[now->step_count++] = step;
}

/* Experts with replicas of their own reduce their gradients, too. */
static bool add_reduction(struct rank_lowering *lowering, const struct rank_step *pass)
{
    struct rank_steps *now = &lowering->now;
    struct rank_step step = *pass;
    step.place = STEP_BEHIND;
    step.comm = groups_comm(lowering, GROUP_EXPERT_DP);
    step.collective =
        (struct step_collective){.kind = groups_reduction(lowering), .group = GROUP_EXPERT_DP};
    if (step.comm < 0)
        return false;
    groups_cost(lowering, &step, 0);
    now->steps[now->step_count++] = step;
    return true;
}

bool collectives_behind(struct rank_lowering *lowering)
{
    struct rank_steps *now = &lowering->now;
    size_t at = now->step_count - 1;
    const struct rank_step pass = now->steps[at];
    const struct action *parts;
    size_t count = comms_parts(pass.action, &parts);
    bool ok = true;
    if (!lowering->plan->programs.parallel.given)
        return true;
    if (pass.action->kind == ACTION_REDUCE_GRAD && groups_used(lowering, GROUP_EXPERT_DP))
        ok = add_reduction(lowering, &pass);
    add_join(lowering, at);
    for (size_t k = 0; ok && k < count; k++)
        ok = add_behind(lowering, &pass, &parts[k]);
    now->steps[at].behind = (uint32_t)(now->step_count - 1 - at);
    return ok;
}

/* ---- waits ----------------------------------------------------------------------------------- */

/* A collective beside a pass starts when the passes before are done and the input of its own is there. */
static void link_beside(struct rank_lowering *lowering, size_t at)
{
    struct rank_steps *now = &lowering->now;
    const struct rank_step *step = &now->steps[at];
    const struct action *parts;
    size_t count = comms_parts(step->action, &parts), before = at;
    while (before > 0 && now->steps[before - 1].listed == step->listed)
        if (now->steps[--before].stream == step->stream)
            return; /* behind another one */
    while (before > 0 && now->steps[before - 1].stream != lowering->compute)
        before--;
    steps_wait(now, at, (uint32_t)before);
    for (size_t k = 0; k < count; k++)
        tensors_await(lowering, at, &parts[k]);
}

void collectives_link(struct rank_lowering *lowering, size_t at)
{
    struct rank_steps *now = &lowering->now;
    const struct rank_step *step = &now->steps[at];
    unsigned waited = 0; /* a bit for each group */
    if (step->kind != STEP_JOIN) {
        link_beside(lowering, at);
        return;
    }
    for (size_t i = at; i > 0 && now->steps[i - 1].listed == step->listed; i--) {
        const struct rank_step *other = &now->steps[i - 1];
        if (other->place != STEP_BESIDE || waited & 1u << other->collective.group)
            continue;
        waited |= 1u << other->collective.group;
        steps_wait(now, at, (uint32_t)i);
    }
}

/* ---- a ring ---------------------------------------------------------------------------------- */

/* The ranks before and behind this one in its communicator. */
static void find_neighbours(const struct rank_lowering *lowering, const struct rank_step *step,
                            int *previous, int *next)
{
    const struct comm *comm = &lowering->out->comms[step->comm];
    int own = rank_at(lowering, lowering->replica, lowering->rank);
    size_t at = 0, count = comm->member_count;
    while (at + 1 < count && comm->members[at] != own)
        at++;
    *previous = comm->members[(at + count - 1) % count];
    *next = comm->members[(at + 1) % count];
}

bool collectives_ring(struct rank_lowering *lowering, struct host_op *op,
                      const struct rank_step *step)
{
    int previous, next;
    const struct p2p_part part = {
        .root = -1, .comm = -1, .stream = -1, .bytes = step->collective.bytes, .mark = op->mark};
    op->comm = step->comm;
    op->parts = ARENA_ARRAY(lowering->sink.arena, 2, struct p2p_part);
    if (!op->parts)
        return false;
    find_neighbours(lowering, step, &previous, &next);
    op->parts[0] = op->parts[1] = part;
    op->parts[0].send = true;
    op->parts[0].peer = next;
    op->parts[1].peer = previous;
    op->part_count = 2;
    lowering->part_count += 2;
    return names_part(lowering, &op->parts[0], step) && names_part(lowering, &op->parts[1], step);
}
