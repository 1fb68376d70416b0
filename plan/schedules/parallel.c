/* SPDX-License-Identifier: Apache-2.0 */
/* parallel.c - see parallel.h. */
#include "parallel.h"

#include <stdio.h>
#include <string.h>

#include "base/sort.h"
#include "plan/plan.h"
#include "costs.h"
#include "base/list_key.h"

static const char *const dim_keys[] = {DIM_LIST(LIST_KEY)};

static const struct kind_row {
    const char *key;
    unsigned dims;
    bool experts;
} kinds[] = {
#define X(name, key, dims, experts) {key, dims, experts},
    GROUP_KIND_LIST(X)
#undef X
};

const char *dim_key(enum dim dim)
{
    return dim_keys[dim];
}

const char *group_kind_key(enum group_kind kind)
{
    return kinds[kind].key;
}

unsigned group_kind_dims(enum group_kind kind)
{
    return kinds[kind].dims;
}

bool group_kind_experts(enum group_kind kind)
{
    return kinds[kind].experts;
}

/* ---- the order ------------------------------------------------------------------------------- */

int parallel_find_dim(const char *text, size_t length)
{
    for (int dim = 0; dim < DIM_COUNT; dim++)
        if (strlen(dim_keys[dim]) == length && strncmp(text, dim_keys[dim], length) == 0)
            return dim;
    return -1;
}

const char *parallel_parse_order(const char *text, const int size[DIM_COUNT],
                                 enum dim order[DIM_COUNT])
{
    unsigned seen = 0;
    int count = 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, "-");
        int dim = parallel_find_dim(at, length);
        if (dim < 0)
            return "dimensions joined by \"-\", such as tp-cp-ep-dp-pp";
        if (seen & 1u << dim)
            return "each dimension once";
        seen |= 1u << dim;
        order[count++] = (enum dim)dim;
        at += length;
        if (!*at)
            break;
    }
    for (int dim = 0; dim < DIM_COUNT; dim++) {
        if (seen & 1u << dim)
            continue;
        if (size[dim] > 1)
            return "every dimension of more than one rank";
        order[count++] = (enum dim)dim;
    }
    return NULL;
}

void parallel_print_order(const struct parallel_spec *spec, char *out, size_t cap)
{
    size_t length = 0;
    for (int i = 0; i < DIM_COUNT; i++)
        length += (size_t)snprintf(out + length, cap - length, "%s%s", i ? "-" : "",
                                   dim_keys[spec->order[i]]);
}

/* ---- grids ----------------------------------------------------------------------------------- */

static int expert_tp(const struct parallel_spec *spec)
{
    return spec->expert_tp ? spec->expert_tp : spec->size[DIM_TP];
}

static int stage_ranks(const struct parallel_spec *spec)
{
    return spec->size[DIM_TP] * spec->size[DIM_CP] * spec->size[DIM_DP];
}

int parallel_world(const struct parallel_spec *spec)
{
    return stage_ranks(spec) * spec->size[DIM_PP];
}

int parallel_expert_dp(const struct parallel_spec *spec)
{
    return stage_ranks(spec) / (expert_tp(spec) * spec->size[DIM_EP]);
}

/* Context parallelism is not in the grid of experts, expert parallelism only there. */
static int size_of(const struct parallel_spec *spec, enum dim dim, bool experts)
{
    switch (dim) {
    case DIM_TP: return experts ? expert_tp(spec) : spec->size[DIM_TP];
    case DIM_DP: return experts ? parallel_expert_dp(spec) : spec->size[DIM_DP];
    case DIM_EP: return experts ? spec->size[DIM_EP] : 1;
    case DIM_CP: return experts ? 1 : spec->size[DIM_CP];
    case DIM_PP:
    case DIM_COUNT: break;
    }
    return spec->size[DIM_PP];
}

int parallel_group_size(const struct parallel_spec *spec, unsigned dims, bool experts)
{
    int size = 1;
    for (int dim = 0; dim < DIM_COUNT; dim++)
        if (dims & 1u << dim)
            size *= size_of(spec, (enum dim)dim, experts);
    return size;
}

int parallel_groups(const struct parallel_spec *spec, unsigned dims, bool experts)
{
    return parallel_group_size(spec, ~dims, experts);
}

/* The place of a rank in the dimensions of `dims`, mixed radix, the fastest first. */
static int parallel_place_in(const struct parallel_spec *spec, unsigned dims, bool experts,
                             int rank)
{
    int place = 0, weight = 1;
    for (int i = 0; i < DIM_COUNT; i++) {
        int size = size_of(spec, spec->order[i], experts);
        if (dims & 1u << spec->order[i]) {
            place += rank % size * weight;
            weight *= size;
        }
        rank /= size;
    }
    return place;
}

int parallel_group_of(const struct parallel_spec *spec, unsigned dims, bool experts, int rank)
{
    return parallel_place_in(spec, ~dims, experts, rank);
}

int parallel_member(const struct parallel_spec *spec, unsigned dims, bool experts, int group,
                    int index)
{
    int rank = 0, stride = 1;
    for (int i = 0; i < DIM_COUNT; i++) {
        int size = size_of(spec, spec->order[i], experts);
        int *from = dims & 1u << spec->order[i] ? &index : &group;
        rank += *from % size * stride;
        *from /= size;
        stride *= size;
    }
    return rank;
}

int group_members(const struct parallel_spec *spec, enum group_kind kind, int group, int *out)
{
    const struct kind_row *row = &kinds[kind];
    int size = parallel_group_size(spec, row->dims, row->experts), count = 0;
    for (int i = 0; i < size; i++)
        if (kind != GROUP_EMBEDDING || i == 0 || i == size - 1)
            out[count++] = parallel_member(spec, row->dims, row->experts, group, i);
    return count;
}

const char *parallel_check(const struct parallel_spec *spec)
{
    int64_t world = 1;
    for (int dim = 0; dim < DIM_COUNT; dim++)
        if (dim != DIM_EP && (world *= spec->size[dim]) > PLAN_MAX_RANKS)
            return "a product of tp, cp, dp and pp of at most 65536 ranks";
    if (stage_ranks(spec) % (expert_tp(spec) * spec->size[DIM_EP]) != 0)
        return "ep x expert_tp to divide tp x cp x dp";
    for (int rank = 0; rank < world; rank++)
        if (parallel_group_of(spec, 1u << DIM_PP, false, rank) !=
                parallel_group_of(spec, 1u << DIM_PP, true, rank) ||
            parallel_place_in(spec, 1u << DIM_PP, false, rank) !=
                parallel_place_in(spec, 1u << DIM_PP, true, rank))
            return "the same pipelines for experts: pp last in the order, or as many expert "
                   "replicas as dp";
    return NULL;
}

/* ---- the ranks of all pipelines of a plan ---------------------------------------------------- */

int parallel_rank(const struct parallel_spec *spec, int ranks, int replica, int own)
{
    return spec->given ? parallel_member(spec, 1u << DIM_PP, false, replica, own)
                       : own + replica * ranks;
}

void parallel_place(const struct parallel_spec *spec, int ranks, int rank, int *replica, int *own)
{
    *replica = spec->given ? parallel_group_of(spec, 1u << DIM_PP, false, rank) : rank / ranks;
    *own = spec->given ? parallel_place_in(spec, 1u << DIM_PP, false, rank) : rank % ranks;
}

bool parallel_apart(const struct plan *plan, int replica, int from, int to)
{
    const struct parallel_spec *spec = &plan->programs.parallel;
    int node = plan->programs.links.node;
    if (node && spec->given) {
        from = parallel_member(spec, 1u << DIM_PP, false, replica, from);
        to = parallel_member(spec, 1u << DIM_PP, false, replica, to);
    }
    return node && from / node != to / node;
}

const struct rank_differs *parallel_differs(const struct plan *plan, int rank)
{
    const struct parallel_spec *spec = &plan->programs.parallel;
    for (size_t i = 0; i < spec->differing_count; i++)
        if (spec->differing[i].rank == rank)
            return &spec->differing[i];
    return NULL;
}

/* ---- costs ----------------------------------------------------------------------------------- */

bool parallel_group_is_apart(const struct plan *plan, enum group_kind kind, int group)
{
    const struct parallel_spec *spec = &plan->programs.parallel;
    const struct kind_row *row = &kinds[kind];
    const int node = plan->programs.links.node;
    const int size = parallel_group_size(spec, row->dims, row->experts);
    const int first = node ? parallel_member(spec, row->dims, row->experts, group, 0) / node : 0;
    for (int i = 1; node && i < size; i++)
        if ((kind != GROUP_EMBEDDING || i == size - 1) &&
            parallel_member(spec, row->dims, row->experts, group, i) / node != first)
            return true;
    return false;
}

struct message_cost parallel_cost(const struct plan *plan, enum group_kind kind, int64_t bytes,
                                  bool apart)
{
    const struct group_cost *cost = &plan->programs.parallel.costs[kind];
    const struct link *links[] = {&cost->between, &cost->link};
    struct message_cost out = costs_link(links + !apart, 1 + apart, bytes);
    if (cost->time.given)
        out = (struct message_cost){.bytes = out.bytes, .latency_ns = cost->time.value};
    return out;
}

/* ---- replicas that are alike ----------------------------------------------------------------- */

struct parallel_spec parallel_few(const struct parallel_spec *spec, int most)
{
    struct parallel_spec few = *spec;
    for (int dim = 0; dim < DIM_COUNT; dim++)
        if (dim != DIM_PP)
            few.size[dim] = min_int(few.size[dim], most);
    few.expert_tp = min_int(few.expert_tp, most);
    return parallel_check(&few) ? *spec : few;
}

/* True if all groups of a kind with a rank of one place are on one node, or all on several. */
static bool groups_are_alike(const struct plan *plan, enum group_kind kind)
{
    const struct parallel_spec *spec = &plan->programs.parallel;
    const struct kind_row *row = &kinds[kind];
    const int groups = parallel_groups(spec, row->dims, row->experts), places = spec->size[DIM_PP];
    for (int group = 0; group < groups; group++) {
        int replica, own;
        const int rank = parallel_member(spec, row->dims, row->experts, group, 0);
        parallel_place(spec, places, rank, &replica, &own);
        const int first =
            parallel_group_of(spec, row->dims, row->experts, parallel_rank(spec, places, 0, own));
        if (parallel_group_is_apart(plan, kind, group) !=
            parallel_group_is_apart(plan, kind, first))
            return false;
    }
    return true;
}

bool parallel_replicas_are_alike(const struct plan *plan)
{
    const struct parallel_spec *spec = &plan->programs.parallel;
    const int places = spec->size[DIM_PP];
    bool ring = false;
    for (int kind = 0; kind < GROUP_KIND_COUNT; kind++)
        ring |= parallel_call(plan, (enum group_kind)kind) == GROUP_CALL_RING;
    if (plan_replicas(plan) == 1 || ring || spec->differing_count > 0 ||
        plan->machine.share_device || plan->machine.first_use_blocks)
        return false;
    if (!spec->given)
        return plan->programs.links.node == 0;
    for (int kind = 0; plan->programs.links.node && kind < GROUP_KIND_COUNT; kind++)
        if (!groups_are_alike(plan, (enum group_kind)kind))
            return false;
    for (int replica = 1; plan->programs.links.node && replica < plan_replicas(plan); replica++)
        for (int own = 0; own < places; own++)
            if (parallel_apart(plan, replica, own, (own + 1) % places) !=
                parallel_apart(plan, 0, own, (own + 1) % places))
                return false;
    return true;
}

/* ---- calls ----------------------------------------------------------------------------------- */

enum group_call parallel_call(const struct plan *plan, enum group_kind kind)
{
    enum group_call given = plan->programs.parallel.costs[kind].call;
    if (given != GROUP_CALL_USUAL)
        return given;
    if (kind == GROUP_CP)
        return GROUP_CALL_ALL_GATHER;
    if (kind == GROUP_EP)
        return GROUP_CALL_ALL_TO_ALL;
    return plan->programs.stages.model.sequence_parallel ? GROUP_CALL_GATHER_SCATTER
                                                         : GROUP_CALL_ALL_REDUCE;
}

int parallel_calls(const struct plan *plan, enum group_kind kind, enum cost pass)
{
    const struct group_cost *cost = &plan->programs.parallel.costs[kind];
    if (cost->calls[pass].given)
        return (int)cost->calls[pass].value;
    if (pass == COST_B && cost->calls[COST_I].given)
        return (int)(cost->calls[COST_I].value + parallel_calls(plan, kind, COST_W));
    if (pass == COST_W)
        return 0;
    return parallel_call(plan, kind) == GROUP_CALL_GATHER_SCATTER ? 2 : 1;
}

bool parallel_counts(const struct parallel_spec *spec, enum group_kind kind)
{
    bool any = false;
    for (int pass = 0; pass <= COST_B; pass++)
        any |= spec->costs[kind].calls[pass].given;
    return any;
}
