/* SPDX-License-Identifier: Apache-2.0 */
/* parse_costs.c - what messages, passes and stages of rank programs cost. */
#include <string.h>

#include "plan/keywords.h"
#include "plan/schedules/costs.h"
#include "parse_internal.h"
#include "base/units.h"

/* ---- messages -------------------------------------------------------------------------------- */

static const struct field link_fields[] = {
    FIELD("latency", struct link, latency, field_given_time),
    FIELD("bandwidth", struct link, bandwidth, field_given_rate),
    FIELD("bytes", struct link, bytes, field_given_bytes),
};

bool field_link(struct parser *parser, const struct node *value, void *member,
                const struct field *field)
{
    (void)field;
    return parse_want_map(parser, value, "a link such as {latency: 5us, bandwidth: 25GB/s}") &&
           fields_parse(parser, value, link_fields, FIELD_COUNT(link_fields), member, "a link");
}

static const struct field edge_fields[] = {
    FIELD("from", struct edge_link, from, field_int, .required = true, .max = PLAN_MAX_RANKS - 1),
    FIELD("to", struct edge_link, to, field_int, .required = true, .max = PLAN_MAX_RANKS - 1),
    FIELD("latency", struct edge_link, link.latency, field_given_time),
    FIELD("bandwidth", struct edge_link, link.bandwidth, field_given_rate),
    FIELD("bytes", struct edge_link, link.bytes, field_given_bytes),
};

static bool check_edge(struct parser *parser, const struct links *links,
                       const struct edge_link *edge)
{
    if (edge->from == edge->to)
        return parse_error(parser, edge->mark,
                           "found an edge from rank %d to itself, expected two ranks", edge->from);
    for (size_t i = 0; i < links->edge_count; i++)
        if (links->edges[i].from == edge->from && links->edges[i].to == edge->to)
            return parse_error(parser, edge->mark,
                               "found the edge from rank %d to rank %d a second time, expected it "
                               "once",
                               edge->from, edge->to);
    return true;
}

bool field_edges(struct parser *parser, const struct node *value, void *member,
                 const struct field *field)
{
    (void)field;
    struct links *links = member;
    bool ok = parse_want_list(parser, value, "edges such as [{from: 0, to: 1, latency: 5us}]");
    if (!ok || value->length == 0)
        return ok;
    links->edges = ARENA_ARRAY(&parser->plan->arena, value->length, struct edge_link);
    if (!links->edges)
        return parse_no_memory(parser);
    READ_LIST (parser, value, item) {
        struct edge_link edge = {.mark = item->mark};
        ok &= parse_want_map(parser, item, "an edge such as {from: 0, to: 1, latency: 5us}") &&
              fields_parse(parser, item, edge_fields, FIELD_COUNT(edge_fields), &edge, "an edge") &&
              check_edge(parser, links, &edge);
        links->edges[links->edge_count++] = edge;
    }
    return ok;
}

/* ---- stages and layers ----------------------------------------------------------------------- */

enum { MOST_LAYERS = PLAN_MAX_MODEL_STAGES };

static bool field_cost(struct parser *parser, const struct node *value, void *member, bool is_time)
{
    struct cost_list *list = member;
    bool single = value->kind != NODE_LIST, ok = true;
    size_t count = single ? 1 : value->length;
    list->mark = value->mark;
    if (value->kind == NODE_MAP || count == 0 || count > MOST_LAYERS)
        return parse_mismatch(
            parser, value, is_time ? "a time, or a list of times" : "a size, or a list of sizes");
    list->items = ARENA_ARRAY(&parser->plan->arena, count, int64_t);
    if (!list->items)
        return parse_no_memory(parser);
    for (const struct node *item = single ? value : value->first; item && ok && list->count < count;
         item = item->next)
        ok = is_time ? field_time(parser, item, &list->items[list->count++], NULL)
                     : field_bytes(parser, item, &list->items[list->count++], NULL);
    return ok;
}

static bool field_times(struct parser *parser, const struct node *value, void *member,
                        const struct field *field)
{
    (void)field;
    return field_cost(parser, value, member, true);
}

bool field_sizes(struct parser *parser, const struct node *value, void *member,
                 const struct field *field)
{
    (void)field;
    return field_cost(parser, value, member, false);
}

/* The keys of COST_LIST, in its order. */
#define COST_FIELDS(type, member)                                                                  \
    FIELD("F", type, member.of[COST_F], field_times),                                              \
        FIELD("I", type, member.of[COST_I], field_times),                                          \
        FIELD("W", type, member.of[COST_W], field_times),                                          \
        FIELD("B", type, member.of[COST_B], field_times),                                          \
        FIELD("dispatch", type, member.of[COST_DISPATCH], field_times),                            \
        FIELD("combine", type, member.of[COST_COMBINE], field_times),                              \
        FIELD("optimizer", type, member.of[COST_OPTIMIZER], field_times),                          \
        FIELD("activation", type, member.of[COST_ACTIVATION], field_sizes),                        \
        FIELD("left", type, member.of[COST_LEFT], field_sizes),                                    \
        FIELD("input", type, member.of[COST_INPUT], field_sizes),                                  \
        FIELD("weights", type, member.of[COST_WEIGHTS], field_sizes),                              \
        FIELD("state", type, member.of[COST_STATE], field_sizes)

static const struct field stage_fields[] = {COST_FIELDS(struct stage_spec, stages)};

void parse_stages(struct parser *parser, const struct node *value)
{
    if (value && parse_want_map(parser, value, "costs such as {F: [1ms, 2ms], activation: 1GiB}"))
        fields_parse(parser, value, stage_fields, FIELD_COUNT(stage_fields),
                     &parser->plan->programs.stages, "\"stages\"");
}

struct single {
    struct cost_table costs;
};

static const struct field single_fields[] = {COST_FIELDS(struct single, costs)};

/* Embedding and head are one each. */
static bool field_single(struct parser *parser, const struct node *value, void *member,
                         const struct field *field)
{
    struct single *single = member;
    bool ok =
        parse_want_map(parser, value, "costs such as {F: 1ms, weights: 1GiB}") &&
        fields_parse(parser, value, single_fields, FIELD_COUNT(single_fields), single, field->key);
    for (int c = 0; ok && c < COST_COUNT; c++)
        if (single->costs.of[c].count > 1)
            ok = parse_error(parser, single->costs.of[c].mark, "found a list, expected one value");
    return ok;
}

static const struct field layer_fields[] = {
    FIELD("count", struct layers, count, field_int, .required = true, .min = 1, .max = MOST_LAYERS),
    COST_FIELDS(struct layers, each),
    FIELD("embedding", struct layers, embedding, field_single),
    FIELD("head", struct layers, head, field_single),
};

void parse_layers(struct parser *parser, const struct node *value)
{
    struct layers *layers = &parser->plan->programs.stages.layers;
    if (!value || !parse_want_map(parser, value, "costs such as {count: 24, F: 1ms}") ||
        !fields_parse(parser, value, layer_fields, FIELD_COUNT(layer_fields), layers, "\"layers\""))
        return;
    layers->mark = value->mark;
    for (int c = 0; c < COST_COUNT; c++)
        if (layers->each.of[c].count > 1 && layers->each.of[c].count != (size_t)layers->count)
            parse_error(parser, layers->each.of[c].mark,
                        "found \"%s\" of %zu layers, expected one for all or %d",
                        cost_key((enum cost)c), layers->each.of[c].count, layers->count);
}

/* ---- a model --------------------------------------------------------------------------------- */

static bool field_rate(struct parser *parser, const struct node *value, void *member,
                       const struct field *field)
{
    (void)field;
    const char *what;
    int64_t *flops = member;
    if (value->kind == NODE_SCALAR && units_parse_flops(value->text, flops, &what) && *flops > 0)
        return true;
    return parse_mismatch(parser, value, "operations a second such as 150TFLOPS");
}

enum { MOST_SIZE = 1 << 24 };

#define SIZE_FIELD(name, needed)                                                                   \
    FIELD(#name, struct model_spec, name, field_int, .required = (needed), .min = 1,               \
          .max = MOST_SIZE)

static const struct field model_fields[] = {
    FIELD("layers", struct model_spec, layers, field_int, .required = true, .min = 1,
          .max = MOST_LAYERS),
    SIZE_FIELD(hidden, true),
    SIZE_FIELD(heads, true),
    SIZE_FIELD(sequence, true),
    SIZE_FIELD(microbatch, true),
    SIZE_FIELD(kv_heads, false),
    SIZE_FIELD(ffn, false),
    FIELD("gated", struct model_spec, gated, field_bool),
    SIZE_FIELD(vocab, false),
    SIZE_FIELD(tensor, false),
    SIZE_FIELD(data, false),
    SIZE_FIELD(context, false),
    SIZE_FIELD(experts, false),
    SIZE_FIELD(top_k, false),
    SIZE_FIELD(expert_parallel, false),
    FIELD("sequence_parallel", struct model_spec, sequence_parallel, field_bool),
    FIELD("selective", struct model_spec, selective, field_bool),
    FIELD("tied", struct model_spec, tied, field_bool),
    FIELD("distributed_optimizer", struct model_spec, distributed, field_bool),
    FIELD("rate", struct model_spec, rate_flops, field_rate),
};

/* `parallel:` says these sizes for the model, too. */
static void check_parallel(struct parser *parser, const struct node *value,
                           const struct model_spec *model)
{
    const struct parallel_spec *spec = &parser->plan->programs.parallel;
    const struct {
        const char *key;
        int found, expected;
    } sizes[] = {{"tensor", model->tensor, spec->size[DIM_TP]},
                 {"data", model->data, spec->size[DIM_DP] * spec->size[DIM_CP]},
                 {"context", model->context, spec->size[DIM_CP]},
                 {"expert_parallel", model->expert_parallel, spec->size[DIM_EP]}};
    for (size_t i = 0; spec->given && i < FIELD_COUNT(sizes); i++)
        if (sizes[i].found && sizes[i].found != sizes[i].expected)
            parse_error(parser, node_find(value, sizes[i].key)->mark,
                        "found %s %d, expected %d as \"parallel\" says", sizes[i].key,
                        sizes[i].found, sizes[i].expected);
}

/* Ranks divide heads, tokens and experts into equal parts, as Megatron-Core demands. */
static void check_parts(struct parser *parser, const struct node *value)
{
    struct model_spec model = costs_model(parser->plan);
    const struct {
        const char *key;
        int found;
        const char *by;
        int parts;
    } sizes[] = {{"heads", model.heads, "tensor", model.tensor},
                 {"heads", model.heads, "kv_heads", model.kv_heads},
                 {"kv_heads", model.kv_heads, "tensor", model.tensor},
                 {"sequence", model.sequence, "context", model.context},
                 {"sequence", model.sequence, "tensor", model.sequence_parallel ? model.tensor : 1},
                 {"experts", model.experts, "expert_parallel", model.expert_parallel}};
    for (size_t i = 0; i < FIELD_COUNT(sizes); i++)
        if (sizes[i].parts && sizes[i].found % sizes[i].parts)
            parse_error(parser, node_find(value, sizes[i].key)->mark,
                        "found %s %d, expected a multiple of %s %d", sizes[i].key, sizes[i].found,
                        sizes[i].by, sizes[i].parts);
}

void parse_model(struct parser *parser, const struct node *value)
{
    struct stage_spec *spec = &parser->plan->programs.stages;
    if (!value ||
        !parse_want_map(parser, value, "a transformer such as {layers: 24, hidden: 1024}") ||
        !fields_parse(parser, value, model_fields, FIELD_COUNT(model_fields), &spec->model,
                      "\"model\""))
        return;
    if (!spec->layers.count)
        spec->layers.mark = value->mark;
    check_parallel(parser, value, &spec->model);
    check_parts(parser, value);
    if (spec->layers.count && spec->layers.count != spec->model.layers)
        parse_error(parser, value->mark,
                    "found a model of %d layers, expected %d as \"layers\" says",
                    spec->model.layers, spec->layers.count);
}

/* ---- layers of stages ------------------------------------------------------------------------ */

static bool parse_balanced(struct parser *parser, const struct node *value)
{
    struct stage_spec *spec = &parser->plan->programs.stages;
    spec->balance = BALANCE_LISTED;
    if (value->length > PLAN_MAX_MODEL_STAGES)
        return parse_mismatch(parser, value, "the layers of each stage");
    spec->balanced = ARENA_ARRAY(&parser->plan->arena, value->length + 1, int);
    if (!spec->balanced)
        return parse_no_memory(parser);
    READ_LIST (parser, value, count) {
        int64_t number;
        if (!parse_number(parser, count, false, 0, MOST_LAYERS, &number))
            return false;
        spec->balanced[spec->balanced_count++] = (int)number;
    }
    return true;
}

/* balance := even | found | [layers, ...] */
void parse_balance(struct parser *parser, const struct node *value)
{
    static const struct field field = {.words = keywords_balance};
    struct stage_spec *spec = &parser->plan->programs.stages;
    if (!value)
        return;
    spec->balance_mark = value->mark;
    if (spec->layers.count == 0 && spec->model.layers == 0)
        parse_error(parser, value->mark, "found \"balance\" without \"layers\", expected both");
    else if (value->kind == NODE_LIST)
        parse_balanced(parser, value);
    else
        field_word(parser, value, &spec->balance, &field);
}
