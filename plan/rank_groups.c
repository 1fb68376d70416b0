/*
 * rank_groups.c - see rank_internal.h: the groups of `parallel:`, the collectives of passes and stages.
 *
 * Behind a pass its collectives run on the stream of the passes, as those of PyTorch that are not asynchronous do: first
 * those of the group cp, then tp, ep and expert-tp. What waits for the pass waits for the last of them.
 */
#include "rank_internal.h"

#include <stdlib.h>

#include "model.h"
#include "parallel_lists.h"

static const enum group_kind pass_kinds[] = {GROUP_CP, GROUP_TP, GROUP_EP, GROUP_EXPERT_TP};
enum { PASS_KINDS = sizeof pass_kinds / sizeof *pass_kinds };

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

static bool is_used(const struct parallel_spec *spec, enum group_kind kind)
{
    return (!group_kind_experts(kind) || has_experts(spec)) &&
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
                    return diag_error_at(lowering->diag, plan->file, NULL,
                                         lowering->lists[i].program->actions[k].mark,
                                         "found REDUCE_EMBEDDING without \"parallel\", expected "
                                         "both: it names the groups");
        return STATUS_OK;
    }
    if (spec->size[DIM_PP] != lowering->rank_count)
        return diag_error_at(lowering->diag, plan->file, NULL, spec->mark,
                             "found pipelines of %d ranks, expected %d as the lists say",
                             spec->size[DIM_PP], lowering->rank_count);
    if (rank_programs_copies(plan) > 1 && ends_differ(lowering))
        return diag_error_at(lowering->diag, plan->file, NULL, spec->mark,
                             "found gradients reduced in groups beside %d copies of the model, "
                             "expected \"grad_reduce: none\" and \"embedding: none\": which copies "
                             "share gradients is not said",
                             rank_programs_copies(plan));
    for (size_t i = 0; plan->programs.fragment && i < spec->differing_count; i++)
        if (spec->differing[i].has_program)
            return diag_error_at(lowering->diag, plan->file, NULL, spec->differing[i].mark,
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

/* A pass backward whose pass forward is computed once more calls its collectives once more. */
static int calls_of(const struct lowering *lowering, enum group_kind kind,
                    const struct action *part)
{
    const struct parallel_spec *spec = spec_of(lowering);
    bool again = costs_checkpointed(lowering->plan, part->microbatch, lowering->map.microbatches);
    int forward = parallel_calls(spec, kind, COST_F);
    if (!is_used(spec, kind))
        return 0;
    if (part->kind == ACTION_F)
        return forward;
    if (part->kind == ACTION_W)
        return parallel_calls(spec, kind, COST_W);
    if (part->kind == ACTION_I || part->kind == ACTION_B)
        return parallel_calls(spec, kind, part->kind == ACTION_I ? COST_I : COST_B) +
               (again ? forward : 0);
    return 0;
}

size_t groups_most_calls(const struct lowering *lowering)
{
    const struct parallel_spec *spec = spec_of(lowering);
    int most = 0;
    for (int i = 0; spec->given && i < PASS_KINDS; i++) {
        int pass = 0;
        for (int cost = COST_F; is_used(spec, pass_kinds[i]) && cost <= COST_B; cost++) {
            int calls = parallel_calls(spec, pass_kinds[i], (enum cost)cost);
            pass = calls > pass ? calls : pass;
        }
        most += 2 * pass;
    }
    return spec->given ? (size_t)most + 1 : 0; /* and the second of two reductions */
}

static enum collective_kind collective_of(enum group_kind kind, bool forward)
{
    if (kind == GROUP_CP)
        return forward ? COLLECTIVE_ALL_GATHER : COLLECTIVE_REDUCE_SCATTER;
    return kind == GROUP_EP ? COLLECTIVE_ALL_TO_ALL : COLLECTIVE_ALL_REDUCE;
}

/* By default collectives of passes move as many bytes as a message between stages. */
static int64_t pass_bytes(const struct lowering *lowering)
{
    int64_t bytes = lowering->plan->programs.p2p_bytes;
    struct model_spec model = costs_model(lowering->plan);
    return bytes || model.layers == 0 ? bytes : model_message_bytes(&model);
}

static void cost_step(const struct lowering *lowering, struct rank_step *step, int64_t bytes)
{
    const struct comm *comm = &lowering->out->comms[step->comm];
    struct message_cost cost = parallel_cost(lowering->plan, step->collective.group, bytes,
                                             comm->members, comm->member_count);
    step->collective.bytes = cost.bytes;
    step->time_ns = cost.latency_ns + cost.transfer_ns;
}

static bool add_tail(struct lowering *lowering, size_t head, enum group_kind kind,
                     enum collective_kind collective, int64_t bytes)
{
    struct rank_steps *now = &lowering->now;
    struct rank_step step = now->steps[head];
    step.kind = STEP_COLLECTIVE;
    step.is_tail = true;
    step.tail = 0;
    step.comm = groups_comm(lowering, kind);
    step.collective = (struct step_collective){.kind = collective, .group = kind};
    if (step.comm < 0)
        return false;
    cost_step(lowering, &step, bytes);
    now->steps[now->step_count++] = step;
    now->steps[head].tail++;
    return true;
}

static bool add_pass(struct lowering *lowering, size_t head, const struct action *part)
{
    for (int i = 0; i < PASS_KINDS; i++)
        for (int calls = calls_of(lowering, pass_kinds[i], part); calls > 0; calls--)
            if (!add_tail(lowering, head, pass_kinds[i],
                          collective_of(pass_kinds[i], part->kind == ACTION_F),
                          pass_bytes(lowering)))
                return false;
    return true;
}

static int64_t weight_bytes(const struct lowering *lowering, int stage)
{
    return lowering->costs[stage].of[COST_WEIGHTS];
}

static enum collective_kind reduction_of(const struct lowering *lowering)
{
    bool sharded =
        lowering->plan->programs.stages.model.distributed || lowering->kinds & 1u << ACTION_UNSHARD;
    return sharded ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_REDUCE;
}

bool groups_add_steps(struct lowering *lowering)
{
    size_t head = lowering->now.step_count - 1;
    const struct action *parts, *action = lowering->now.steps[head].action;
    if (!spec_of(lowering)->given)
        return true;
    if (action->kind == ACTION_REDUCE_GRAD && is_used(spec_of(lowering), GROUP_EXPERT_DP))
        return add_tail(lowering, head, GROUP_EXPERT_DP, reduction_of(lowering), 0);
    size_t count = comms_parts(action, &parts);
    for (size_t k = 0; k < count; k++)
        if (!add_pass(lowering, head, &parts[k]))
            return false;
    return true;
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
    step->collective =
        (struct step_collective){.kind = embedding ? COLLECTIVE_ALL_REDUCE : reduction_of(lowering),
                                 .group = embedding ? GROUP_EMBEDDING : GROUP_DP_CP};
    step->stream = beside ? fsdp_stream(lowering) : lowering->compute;
    step->comm = groups_comm(lowering, step->collective.group);
    if (step->stream < 0 || step->comm < 0)
        return false;
    cost_step(lowering, step,
              embedding ? embedding_bytes(lowering) : weight_bytes(lowering, step->action->stage));
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
    if (step->is_tail)
        return arena_printf(arena, "%s.%s", name, group_kind_key(step->collective.group));
    return arena_strdup(arena, name);
}
