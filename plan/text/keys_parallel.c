/* SPDX-License-Identifier: Apache-2.0 */
/* keys_parallel.c - `parallel:`, the groups of ranks around rank programs. */
#include <string.h>

#include "plan/schedules/parallel.h"
#include "text_internal.h"

/* ---- what collectives cost ------------------------------------------------------------------- */

enum { MOST_CALLS = 1024 };

#define CALLS(key, cost)                                                                           \
    FIELD(key, struct group_cost, calls[cost], given_int, "The calls in each pass " key ".",       \
          .max = MOST_CALLS, .otherwise = -1)

static const struct field cost_fields[] = {
    CALLS("F", COST_F),
    CALLS("I", COST_I),
    CALLS("W", COST_W),
    CALLS("B", COST_B),
    FIELD("latency", struct group_cost, link.latency, given_time,
          "The time of a collective of no bytes."),
    FIELD("bandwidth", struct group_cost, link.bandwidth, given_rate, "The bytes a second."),
    FIELD("bytes", struct group_cost, link.bytes, given_bytes, "The bytes of a collective."),
    FIELD("between", struct group_cost, between, map,
          "The link of groups whose ranks are on several nodes.", .keys = &link_keys),
    FIELD("time", struct group_cost, time, given_time,
          "The time of a collective, in place of latency and bandwidth."),
    FIELD("call", struct group_cost, call, word, "The collectives of a pass.",
          .words = keywords_group_call),
    FIELD("overlap", struct group_cost, overlap, boolean,
          "Whether collectives of passes have a stream of their own, beside other passes."),
};
static const struct keys cost_keys =
    KEYS(cost_fields, "the cost of a group", "a cost such as {bytes: 64MiB, bandwidth: 200GB/s}");

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

static bool keys_parallel_check_call(struct parser *parser, const struct node *key,
                                     enum group_kind kind, const struct group_cost *cost)
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
    if (!keys_parse(parser, value, &cost_keys, cost))
        return false;
    cost->given = true;
    for (int pass = 0; pass <= COST_B && !in_passes(kind); pass++)
        if (cost->calls[pass].given)
            return parse_error(parser, key->mark,
                               "found calls in passes for group %s, expected them for tp, cp, ep "
                               "or expert-tp",
                               group_kind_key(kind));
    return keys_parallel_check_call(parser, key, kind, cost);
}

static bool has_collectives(enum group_kind kind)
{
    return kind != GROUP_DP && kind != GROUP_PP;
}

static int keys_parallel_find_kind(const char *text)
{
    for (int kind = 0; kind < GROUP_KIND_COUNT; kind++)
        if (strcmp(text, group_kind_key((enum group_kind)kind)) == 0)
            return kind;
    return -1;
}

static bool field_costs(PARSE_PARAMS)
{
    struct group_cost *costs = member;
    bool ok = parse_want_map(parser, value, "a mapping from groups to costs");
    if (!ok)
        return false;
    READ_MAP (parser, value, key, cost) {
        int kind = keys_parallel_find_kind(key->text);
        if (kind < 0 || !has_collectives((enum group_kind)kind))
            ok = parse_error(parser, key->mark,
                             "found \"%s\", expected a group with collectives: tp, cp, ep, "
                             "expert-tp, dp-cp, expert-dp or embedding",
                             key->text);
        else
            ok &= parse_cost(parser, key, cost, (enum group_kind)kind, &costs[kind]);
    }
    return ok;
}

static bool same_group_costs(SAME_PARAMS)
{
    const struct group_cost *costs = member;
    for (int kind = 0; kind < GROUP_KIND_COUNT; kind++)
        if (costs[kind].given)
            return false;
    return true;
}

static void print_group_costs(PRINT_PARAMS)
{
    const struct group_cost *costs = member;
    open_map(printer, FLOW);
    for (int kind = 0; kind < GROUP_KIND_COUNT; kind++) {
        if (!costs[kind].given)
            continue;
        put_word(printer, group_kind_key((enum group_kind)kind));
        print_map(printer, &costs[kind], &(struct field){.keys = &cost_keys});
    }
    close_map(printer);
}

static void schema_group_costs(struct json *json, const struct field *field)
{
    json_put_string(json, "type", "object");
    json_put_bool(json, "additionalProperties", false);
    json_begin_object_at(json, "properties");
    for (int kind = 0; kind < GROUP_KIND_COUNT; kind++) {
        if (!has_collectives((enum group_kind)kind))
            continue;
        json_begin_object_at(json, group_kind_key((enum group_kind)kind));
        json_put_string(json, "description", "The cost of a collective of such a group.");
        schema_keys(json, cost_fields, FIELD_COUNT(cost_fields));
        json_end_object(json);
    }
    json_end_object(json);
}

static const struct field_kind kind_group_costs = {field_costs, print_group_costs, same_group_costs,
                                                   .schema = schema_group_costs};

/* ---- ranks that differ ----------------------------------------------------------------------- */

static bool field_reduce(PARSE_PARAMS)
{
    struct rank_differs *differs = member;
    return differs->has_reduce = field_word(parser, value, &differs->reduce, field);
}

static bool field_embedding(PARSE_PARAMS)
{
    struct rank_differs *differs = member;
    return differs->has_embedding = field_word(parser, value, &differs->embedding, field);
}

static bool field_program(PARSE_PARAMS)
{
    struct rank_differs *differs = member;
    differs->program = ARENA_ARRAY(&parser->plan->arena, 1, struct rank_program);
    if (!differs->program)
        return parse_no_memory(parser);
    return differs->has_program = parse_one_program(parser, value, differs->program);
}

#define DIFFERS_KIND(name, has, put, schema_)                                                      \
    static bool same_differs_##name(SAME_PARAMS)                                                   \
    {                                                                                              \
        return !((const struct rank_differs *)member)->has;                                        \
    }                                                                                              \
    static void print_differs_##name(PRINT_PARAMS)                                                 \
    {                                                                                              \
        const struct rank_differs *differs = member;                                               \
        put;                                                                                       \
    }                                                                                              \
    static const struct field_kind kind_differs_##name = {field_##name, print_differs_##name,      \
                                                          same_differs_##name, .schema = schema_};

DIFFERS_KIND(reduce, has_reduce, print_word(printer, &differs->reduce, field), schema_word)
DIFFERS_KIND(embedding, has_embedding, print_word(printer, &differs->embedding, field), schema_word)
DIFFERS_KIND(program, has_program, put_program(printer, differs->program), schema_program)

static const struct field differs_fields[] = {
    FIELD_OF_ALL("grad_reduce", differs_reduce, "When this rank reduces gradients.",
                 .words = keywords_grad_reduce, .otherwise = -1),
    FIELD_OF_ALL("embedding", differs_embedding, "When this rank reduces tied embeddings.",
                 .words = keywords_embedding, .otherwise = -1),
    FIELD_OF_ALL("program", differs_program, "The actions of this rank."),
};
static const struct keys differs_keys =
    KEYS(differs_fields, "the differences of a rank", "what differs, such as {grad_reduce: end}");

static bool field_ranks(PARSE_PARAMS)
{
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
            !parse_want_map(parser, differences, differs_keys.example))
            return false;
        struct rank_differs *differs = &spec->differing[spec->differing_count++];
        *differs = (struct rank_differs){.rank = (int)rank, .mark = key->mark};
        ok &= keys_parse(parser, differences, &differs_keys, differs);
    }
    return ok;
}

static bool same_differing(SAME_PARAMS)
{
    return ((const struct parallel_spec *)member)->differing_count == 0;
}

/* Each rank that differs is a line of its own. */
static void print_differing(PRINT_PARAMS)
{
    const struct parallel_spec *spec = member;
    open_map(printer, BLOCK);
    for (size_t i = 0; i < spec->differing_count; i++) {
        put_number(printer, spec->differing[i].rank);
        print_map(printer, &spec->differing[i], &(struct field){.keys = &differs_keys});
    }
    close_map(printer);
}

static const struct field differing_field = {.kind = &kind_map, .keys = &differs_keys};
static const struct field_kind kind_differing = {field_ranks, print_differing, same_differing,
                                                 .schema = schema_names};

/* ---- all ------------------------------------------------------------------------------------- */

#define SIZE(key, dim, about, ...)                                                                 \
    FIELD(key, struct parallel_spec, size[dim], int, about, .min = 1, .max = PLAN_MAX_RANKS,       \
          __VA_ARGS__)

/* The order needs the sizes, so it is read behind them. */
static bool field_later(PARSE_PARAMS)
{
    return true;
}

static void print_order_of_dims(PRINT_PARAMS)
{
    char order[8 * DIM_COUNT];
    parallel_print_order(member, order, sizeof order);
    put_word(printer, order);
}

static bool same_never(SAME_PARAMS)
{
    return false;
}

static void schema_order_of_dims(struct json *json, const struct field *field)
{
    json_put_string(json, "type", "string");
}

static void schema_mesh(struct json *json, const struct field *field)
{
    schema_begin_list(json);
    json_put_string(json, "type", "string");
    schema_end(json);
}

static const struct field_kind kind_dims = {field_later, print_order_of_dims, same_never,
                                            .schema = schema_order_of_dims};
static const struct field_kind kind_mesh = {.parse = field_later, .schema = schema_mesh};

static const struct field parallel_fields[] = {
    SIZE("tp", DIM_TP, "The ranks of tensor parallelism.", .otherwise = 1),
    SIZE("cp", DIM_CP, "The ranks of context parallelism.", .otherwise = 1),
    SIZE("ep", DIM_EP, "The ranks of expert parallelism.", .otherwise = 1),
    FIELD("expert_tp", struct parallel_spec, expert_tp, int,
          "The ranks of tensor parallelism in experts. The default is tp.", .min = 1,
          .max = PLAN_MAX_RANKS),
    SIZE("dp", DIM_DP, "The ranks of data parallelism.", .otherwise = 1),
    SIZE("pp", DIM_PP, "The ranks of a pipeline, to be checked: one for each list."),
    FIELD("world", struct parallel_spec, world, int, "The number of all ranks, to be checked.",
          .min = 1, .max = PLAN_MAX_RANKS),
    FIELD_OF_ALL("order", dims, "The dimensions, the fastest first, such as tp-cp-ep-dp-pp."),
    FIELD_OF_ALL("mesh", mesh, "The dimensions as a DeviceMesh has them: the fastest last."),
    FIELD("grad_reduce", struct parallel_spec, reduce, word,
          "When gradients are reduced among replicas.", .words = keywords_grad_reduce),
    FIELD("embedding", struct parallel_spec, embedding, word,
          "When the gradients of tied embeddings are reduced.", .words = keywords_embedding),
    FIELD("costs", struct parallel_spec, costs, group_costs,
          "What a collective of each kind of group costs."),
    FIELD_OF_ALL("ranks", differing, "How a rank differs from the others.",
                 .each = &differing_field),
};
const struct keys parallel_keys =
    KEYS(parallel_fields, "\"parallel\"", "sizes such as {tp: 2, dp: 4}");

void print_parallel(struct printer *printer)
{
    const struct parallel_spec *spec = &printer->plan->programs.parallel;
    open_map(printer, spec->differing_count ? BLOCK : FLOW);
    fields_print(printer, parallel_fields, FIELD_COUNT(parallel_fields), spec, NULL);
    close_map(printer);
}

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
    if (!value || !parse_want_map(parser, value, parallel_keys.example))
        return;
    spec->mark = value->mark;
    for (int dim = 0; dim < DIM_COUNT; dim++)
        spec->size[dim] = 1;
    if (!keys_parse(parser, value, &parallel_keys, spec) || !settle_sizes(parser, value, spec) ||
        !check_differing(parser, spec))
        return;
    spec->given = true;
    if (parser->plan->programs.fsdp_replicas)
        parse_error(
            parser, value->mark,
            "found \"parallel\" beside \"fsdp\" with replicas, expected dp alone to say how "
            "many there are");
}
