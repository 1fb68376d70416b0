/* SPDX-License-Identifier: Apache-2.0 */
/* parse_parallel.c - `parallel:`, the groups of ranks around rank programs. */
#include <string.h>

#include "plan/keywords.h"
#include "plan/schedules/parallel.h"
#include "parse_internal.h"

/* ---- what collectives cost ------------------------------------------------------------------- */

enum { MOST_CALLS = 1024 };

static bool field_calls(struct parser *parser, const struct node *value, void *member,
                        const struct field *field)
{
    struct amount *calls = member;
    calls->given = parse_number(parser, value, false, field->min, field->max, &calls->value);
    return calls->given;
}

#define CALLS(key, cost)                                                                           \
    FIELD(key, struct group_cost, calls[cost], field_calls, .min = 0, .max = MOST_CALLS)

static const struct field cost_fields[] = {
    FIELD("latency", struct group_cost, link.latency, field_given_time),
    FIELD("bandwidth", struct group_cost, link.bandwidth, field_given_rate),
    FIELD("bytes", struct group_cost, link.bytes, field_given_bytes),
    FIELD("between", struct group_cost, between, field_link),
    FIELD("time", struct group_cost, time, field_given_time),
    FIELD("call", struct group_cost, call, field_word, .words = keywords_group_call),
    FIELD("overlap", struct group_cost, overlap, field_bool),
    CALLS("F", COST_F),
    CALLS("I", COST_I),
    CALLS("W", COST_W),
    CALLS("B", COST_B),
};

/* Passes call collectives of these groups; gradients are reduced in the others. */
static bool in_passes(enum group_kind kind)
{
    return kind == GROUP_TP || kind == GROUP_CP || kind == GROUP_EP || kind == GROUP_EXPERT_TP;
}

/* The calls that each kind of group may make in a pass: a bit for each. */
static unsigned calls_allowed(enum group_kind kind)
{
    const unsigned usual = 1u << GROUP_CALL_USUAL;
    if (kind == GROUP_CP)
        return usual | 1u << GROUP_CALL_ALL_GATHER | 1u << GROUP_CALL_RING |
               1u << GROUP_CALL_ALL_TO_ALL;
    if (kind == GROUP_EP)
        return usual | 1u << GROUP_CALL_ALL_TO_ALL;
    return usual | 1u << GROUP_CALL_ALL_REDUCE | 1u << GROUP_CALL_GATHER_SCATTER;
}

static bool check_call(struct parser *parser, const struct node *key, enum group_kind kind,
                       const struct group_cost *cost)
{
    if (!in_passes(kind) && (cost->call != GROUP_CALL_USUAL || cost->overlap))
        return parse_error(parser, key->mark,
                           "found %s for group %s, expected it for tp, cp, ep or expert-tp",
                           cost->overlap ? "overlap" : "a call in passes", group_kind_key(kind));
    if (in_passes(kind) && !(calls_allowed(kind) & 1u << cost->call))
        return parse_error(parser, key->mark, "found call %s for group %s, expected %s",
                           keywords_group_call[cost->call], group_kind_key(kind),
                           kind == GROUP_CP   ? "all_gather, ring or all_to_all"
                           : kind == GROUP_EP ? "all_to_all"
                                              : "all_reduce or gather_scatter");
    return true;
}

static bool parse_cost(struct parser *parser, const struct node *key, const struct node *value,
                       enum group_kind kind, struct group_cost *cost)
{
    if (!parse_want_map(parser, value, "a cost such as {bytes: 64MiB, bandwidth: 200GB/s}") ||
        !fields_parse(parser, value, cost_fields, FIELD_COUNT(cost_fields), cost,
                      "the cost of a group"))
        return false;
    cost->given = true;
    for (int pass = 0; pass <= COST_B && !in_passes(kind); pass++)
        if (cost->calls[pass].given)
            return parse_error(parser, key->mark,
                               "found calls in passes for group %s, expected them for tp, cp, ep "
                               "or expert-tp",
                               group_kind_key(kind));
    return check_call(parser, key, kind, cost);
}

static int find_kind(const char *text)
{
    for (int kind = 0; kind < GROUP_KIND_COUNT; kind++)
        if (strcmp(text, group_kind_key((enum group_kind)kind)) == 0)
            return kind;
    return -1;
}

static bool field_costs(struct parser *parser, const struct node *value, void *member,
                        const struct field *field)
{
    (void)field;
    struct group_cost *costs = member;
    bool ok = parse_want_map(parser, value, "a mapping from groups to costs");
    if (!ok)
        return false;
    READ_MAP (parser, value, key, cost) {
        int kind = find_kind(key->text);
        if (kind < 0 || kind == GROUP_DP || kind == GROUP_PP)
            ok = parse_error(parser, key->mark,
                             "found \"%s\", expected a group with collectives: tp, cp, ep, "
                             "expert-tp, dp-cp, expert-dp or embedding",
                             key->text);
        else
            ok &= parse_cost(parser, key, cost, (enum group_kind)kind, &costs[kind]);
    }
    return ok;
}

/* ---- ranks that differ ----------------------------------------------------------------------- */

static bool field_reduce(struct parser *parser, const struct node *value, void *member,
                         const struct field *field)
{
    struct rank_differs *differs = member;
    return differs->has_reduce = field_word(parser, value, &differs->reduce, field);
}

static bool field_embedding(struct parser *parser, const struct node *value, void *member,
                            const struct field *field)
{
    struct rank_differs *differs = member;
    return differs->has_embedding = field_word(parser, value, &differs->embedding, field);
}

static bool field_program(struct parser *parser, const struct node *value, void *member,
                          const struct field *field)
{
    (void)field;
    struct rank_differs *differs = member;
    differs->program = ARENA_ARRAY(&parser->plan->arena, 1, struct rank_program);
    if (!differs->program)
        return parse_no_memory(parser);
    return differs->has_program = parse_one_program(parser, value, differs->program);
}

static const struct field differs_fields[] = {
    {.key = "grad_reduce", .parse = field_reduce, .words = keywords_grad_reduce},
    {.key = "embedding", .parse = field_embedding, .words = keywords_embedding},
    {.key = "program", .parse = field_program},
};

static bool field_ranks(struct parser *parser, const struct node *value, void *member,
                        const struct field *field)
{
    (void)field;
    struct parallel_spec *spec = member;
    if (!parse_want_map(parser, value, "a mapping from ranks to what differs"))
        return false;
    spec->differing = ARENA_ARRAY(&parser->plan->arena, value->length + 1, struct rank_differs);
    if (!spec->differing)
        return parse_no_memory(parser);
    bool ok = true;
    READ_MAP (parser, value, key, differences) {
        int64_t rank;
        if (!parse_number(parser, key, true, 0, PLAN_MAX_RANKS - 1, &rank) ||
            !parse_want_map(parser, differences, "what differs, such as {grad_reduce: end}"))
            return false;
        struct rank_differs *differs = &spec->differing[spec->differing_count++];
        *differs = (struct rank_differs){.rank = (int)rank, .mark = key->mark};
        ok &= fields_parse(parser, differences, differs_fields, FIELD_COUNT(differs_fields),
                           differs, "the differences of a rank");
    }
    return ok;
}

/* ---- all ------------------------------------------------------------------------------------- */

#define SIZE(key, dim)                                                                             \
    FIELD(key, struct parallel_spec, size[dim], field_int, .min = 1, .max = PLAN_MAX_RANKS)

/* The order needs the sizes, so it is read behind them. */
static bool field_later(struct parser *parser, const struct node *value, void *member,
                        const struct field *field)
{
    (void)parser;
    (void)value;
    (void)member;
    (void)field;
    return true;
}

static const struct field parallel_fields[] = {
    SIZE("tp", DIM_TP),
    SIZE("cp", DIM_CP),
    SIZE("ep", DIM_EP),
    SIZE("dp", DIM_DP),
    SIZE("pp", DIM_PP),
    FIELD("expert_tp", struct parallel_spec, expert_tp, field_int, .min = 1, .max = PLAN_MAX_RANKS),
    FIELD("world", struct parallel_spec, world, field_int, .min = 1, .max = PLAN_MAX_RANKS),
    {.key = "order", .parse = field_later},
    {.key = "mesh", .parse = field_later},
    FIELD("grad_reduce", struct parallel_spec, reduce, field_word, .words = keywords_grad_reduce),
    FIELD("embedding", struct parallel_spec, embedding, field_word, .words = keywords_embedding),
    FIELD("costs", struct parallel_spec, costs, field_costs),
    {.key = "ranks", .parse = field_ranks, .offset = 0},
};

/* A DeviceMesh of PyTorch names its dimensions the other way round: the last one has the neighbours. */
static const char *order_of_mesh(struct parser *parser, const struct node *mesh)
{
    const char *order = NULL;
    READ_LIST (parser, mesh, dim) {
        if (dim->kind != NODE_SCALAR)
            return NULL;
        order = order ? arena_printf(&parser->scratch, "%s-%s", dim->text, order) : dim->text;
    }
    return order;
}

static bool settle_mesh(struct parser *parser, const struct node *mesh, struct parallel_spec *spec)
{
    const char *order = mesh->kind == NODE_LIST ? order_of_mesh(parser, mesh) : NULL;
    const char *wrong = order ? parallel_parse_order(order, spec->size, spec->order)
                              : "the dimensions of a mesh such as [pp, dp, tp]";
    return !wrong || parse_mismatch(parser, mesh, wrong);
}

static bool settle_order(struct parser *parser, const struct node *value,
                         struct parallel_spec *spec)
{
    const struct node *node = node_find(value, "order"), *mesh = node_find(value, "mesh");
    const char *wrong;
    if (node && mesh)
        return parse_error(parser, mesh->mark, "found mesh beside order, expected one of them");
    if (mesh)
        return settle_mesh(parser, mesh, spec);
    if (node && node->kind != NODE_SCALAR)
        return parse_mismatch(parser, node, "an order such as tp-cp-ep-dp-pp");
    wrong = parallel_parse_order(node ? node->text : "tp-cp-ep-dp-pp", spec->size, spec->order);
    return !wrong || parse_mismatch(parser, node, wrong);
}

static bool settle_sizes(struct parser *parser, const struct node *value,
                         struct parallel_spec *spec)
{
    const struct plan *plan = parser->plan;
    const struct node *pp = node_find(value, "pp"), *world = node_find(value, "world");
    if (pp && spec->size[DIM_PP] != plan->ranks)
        return parse_error(parser, pp->mark, "found pp %d, expected %d as the lists of ranks say",
                           spec->size[DIM_PP], plan->ranks);
    spec->size[DIM_PP] = plan->ranks;
    if (!settle_order(parser, value, spec))
        return false;
    const char *wrong = parallel_check(spec);
    if (wrong)
        return parse_error(parser, value->mark, "found groups that do not fit, expected %s", wrong);
    if (world && spec->world != parallel_world(spec))
        return parse_error(parser, world->mark,
                           "found world %d, expected %d, the product of tp, cp, dp and pp",
                           spec->world, parallel_world(spec));
    return true;
}

static bool check_differing(struct parser *parser, const struct parallel_spec *spec)
{
    for (size_t i = 0; i < spec->differing_count; i++)
        if (spec->differing[i].rank >= parallel_world(spec))
            return parse_error(parser, spec->differing[i].mark,
                               "found rank %d, expected ranks below %d", spec->differing[i].rank,
                               parallel_world(spec));
    return true;
}

/* Read behind the lists, which say how many ranks a pipeline has. */
void parse_parallel(struct parser *parser, const struct node *value)
{
    struct parallel_spec *spec = &parser->plan->programs.parallel;
    if (!value || !parse_want_map(parser, value, "sizes such as {tp: 2, dp: 4}"))
        return;
    spec->mark = value->mark;
    for (int dim = 0; dim < DIM_COUNT; dim++)
        spec->size[dim] = 1;
    if (!fields_parse(parser, value, parallel_fields, FIELD_COUNT(parallel_fields), spec,
                      "\"parallel\"") ||
        !settle_sizes(parser, value, spec) || !check_differing(parser, spec))
        return;
    spec->given = true;
    if (parser->plan->programs.fsdp_replicas)
        parse_error(
            parser, value->mark,
            "found \"parallel\" beside \"fsdp\" with replicas, expected dp alone to say how "
            "many there are");
}
